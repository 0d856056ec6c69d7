"""Mode `export`: starts static exports, waits for them, and delivers them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..context import PlatformContext
from ..errors import NoRoom
from ..inputs.settings import ExportSettings
from ..job import STARTED, Job
from ..text import format_clock
from .collect import Collect, SiteWork, check_export, deliver, make_link, wait_until_ended
from .commit import note_later_deployment, wait_until_deployed
from .task import Batch, Task


class Export(Collect):
    """A static export that the run starts."""

    mode = "export"

    def lack_of_room(self, job: Job) -> str:
        if job.room is None:
            return ""
        refusal = job.room.refusal
        if refusal.status == NoRoom.LIMIT:
            return "the platform allows no more starts for now (429)"
        reason = f"another export of {job.site} is running"
        if refusal.own_site is not None:
            reason = f"the platform is exporting the same deployment for {refusal.own_site}"
        if refusal.running_job_id is not None:
            reason += f" (job {refusal.running_job_id})"
        return reason

    def how_to_collect_other(self, job: Job) -> str:
        if job.room is None or job.room.refusal.status == NoRoom.LIMIT:
            return ""
        if job.room.refusal.own_site is not None:
            return ""
        running = job.room.refusal.running_job_id
        if running is None:
            inputs = self.inputs_to_collect(job, "ID")
            return f"To use that export, collect it with `{inputs}` (the dashboard shows the ID)."
        inputs = self.inputs_to_collect(job, running)
        return f"To use that export, collect it with `{inputs}`."

    def verdict_without_failure(self, job: Job) -> str:
        if job.was_started_here and job.link is None:
            return STARTED
        return super().verdict_without_failure(job)

    def cancelled_before_start(self, job: Job, now: float) -> Sequence[str]:
        sentences = [*super().cancelled_before_start(job, now)]
        if job.room is None or job.room.next_at <= now:
            return sentences
        waited = format_clock(now - job.room.since)
        sentences.append(f"It had waited for room for {waited}: {job.lack_of_room}.")
        if job.room.refusal.asked_pause:
            sentences.append(job.room.refusal.asked_pause)
        if job.how_to_collect_other:
            sentences.append(job.how_to_collect_other)
        return sentences

    def fields(self, job: Job) -> Mapping[str, object]:
        if job.deployed is None or job.job_id is None:
            return {}
        return {"deployedCommit": job.deployed.commit}


@dataclass(frozen=True, kw_only=True)
class ExportWork(SiteWork):
    """What is asked for a site."""

    start_options: Mapping[str, object]
    is_only_one: bool


def wait_for_commit(job: Job, _work: ExportWork, context: PlatformContext) -> None:
    """Wait until the platform serves the commit. Before a further attempt to start, again."""
    if context.github is not None:
        wait_until_deployed(job, context.github, context)


def start(job: Job, work: ExportWork, context: PlatformContext) -> None:
    """Start the export, write its id, and only then announce it, because the log may block.

    Also raises `NoRoom` and `StartHeld`.
    """
    answered = context.platform.start_export(job, work.start_options)
    if work.is_only_one:  # of several, only `results` has the ids
        context.outputs.write_job_id(job)
    context.platform.announce(answered)
    context.listener.job_known(job)


def note_later_commit(job: Job, _work: ExportWork, context: PlatformContext) -> None:
    """Note which other commit was deployed during the export."""
    if context.github is not None:
        note_later_deployment(job, context.github, context)


def leave(job: Job, _work: ExportWork, context: PlatformContext) -> None:
    """Leave the job to a later run."""
    context.listener.noted(job, "Not waiting for the job, because `wait` is `false`.")


EXPORT: Final = Export()
STEPS: Final = (
    wait_for_commit,
    start,
    wait_until_ended,
    note_later_commit,
    check_export,
    make_link,
    deliver,
)
STEPS_WITHOUT_WAIT: Final = (wait_for_commit, start, leave)


def batch(settings: ExportSettings) -> Batch:
    """Return a task for each site."""
    jobs = []
    for site in settings.sites:
        job = Job(
            kind=EXPORT,
            domain=site.domain,
            project_id=site.project_id,
            masks_bundle_url=site.delivery.mask_bundle_url,
            is_first_publication=site.delivery.publication.is_first,
        )
        jobs.append(job)
    tasks = []
    deliveries = {}
    for job, site in zip(jobs, settings.sites, strict=True):
        work = ExportWork(
            waiting=settings.waiting,
            delivery=site.delivery,
            start_options=settings.start_options,
            is_only_one=len(jobs) == 1,
        )
        steps = STEPS if settings.wait else STEPS_WITHOUT_WAIT
        tasks.append(Task(job=job, settings=work, steps=steps))
        if not work.is_only_one:  # a single one has just renewed its link
            deliveries[job] = site.delivery
    return Batch(
        tasks=tasks,
        platform=settings.platform,
        commit=settings.commit,
        start_timeout_seconds=settings.start_timeout_seconds,
        max_parallel=settings.max_parallel,
        deliveries=deliveries,
    )
