"""Starts a static export, once the platform serves the commit that the workflow asks for."""

import copy
from collections.abc import Mapping, Sequence

from ..api.admin_api import Unannounced
from ..context import PlatformContext
from ..errors import NoRoom
from ..inputs.settings import ExportSettings, Mode
from ..job import QUEUE, RUN, STARTED, Job, Kind
from ..models import Reading
from ..text import format_clock
from .commit import wait_for_commit


class Export(Kind):
    """A static export of a site."""

    mode = Mode.EXPORT

    def how_to_collect(self, job: Job, subject: str) -> str:
        if job.is_completed:
            return (
                f"{subject} is completed. A run with `{job.inputs_to_collect}` "
                "makes its bundle link without exporting again."
            )
        return super().how_to_collect(job, subject)

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

    def phase_of(self, reading: Reading) -> str:
        return QUEUE if reading.is_queued else RUN

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


def start_site(
    job: Job,
    settings: ExportSettings,
    context: PlatformContext,
) -> Unannounced[None]:
    """Start an export and record it in the job. The caller announces it.

    Raises `ActionError`, and what `AdminApi.start_export` does.
    """
    commit = settings.commit
    if commit is not None and context.github is not None and job.deployed is None:
        github = copy.copy(context.github)  # another thread may be using it
        wait_for_commit(job, commit.commit_timeout_seconds, github, context)
    return context.api.start_export(job, settings.start_options)
