"""The facts of a failure, one per line: the same in the annotation, the log and the summary."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ..errors import ActionError, Cancelled, InternalError, InvalidInput, NotFound, TimedOut, Unavailable
from ..job import NOT_STARTED, Job
from ..models import ExportJob
from ..text import pluralize
from .console import Console

MAX_DETAILED_FAILURES: Final = 9
"""The runner keeps ten annotations per step (source: actions/runner); the tenth counts the remaining failures."""

_MIN_SHARED: Final = 3


def write_traces(console: Console, jobs: Iterable[Job]) -> None:
    """Write the stack trace of each bug in the action to the debug log, once if several jobs failed with it."""
    for error in dict.fromkeys(job.failure for job in jobs):
        if isinstance(error, InternalError) and error.bug is not None:
            console.trace(error.bug)


def annotate_failures(console: Console, jobs: Iterable[Job]) -> None:
    """Write an annotation for each failure, with cancelled jobs last, and one that counts those beyond the limit."""
    failed = [(job, job.failure) for job in jobs if job.failure is not None]
    failed.sort(key=lambda pair: isinstance(pair[1], Cancelled))
    for job, error in failed[:MAX_DETAILED_FAILURES]:
        with console.bugs_as_warnings("An error annotation"):
            console.error(failure_lines(job, error), title=_title_of(job, error))
    if rest := Counter(error.failure_reason for _, error in failed[MAX_DETAILED_FAILURES:]):
        first = f"{pluralize(rest.total(), 'more export')} did not succeed"
        counts = ", ".join(f"{count:,} {reason}" for reason, count in rest.most_common())
        last = "The job summary and the output `results` list each of them."
        console.error([first, f"{counts}.", last], title="More failures")


def _title_of(job: Job, error: ActionError) -> str:
    """Return an annotation's title. It has no foreign text: the runner does not mask titles (source: actions/runner)."""
    outcome = error.failure_reason if isinstance(error, Cancelled) else f"{job.verdict}: {error.failure_reason}"
    return f"{'Agent job' if job.is_agent_job else 'Static export'} {outcome}"


def jobs_with_shared_failure(jobs: Iterable[Job]) -> Sequence[Job]:
    """Return the jobs with the most common failure, if it is the only one or common enough to be explained once."""
    groups: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        if job.failure is not None and not isinstance(job.failure, Cancelled):
            groups.setdefault(_shared_key(job, job.failure), []).append(job)
    largest = max(groups.values(), key=len, default=[])
    return largest if len(largest) >= _MIN_SHARED or len(groups) == 1 else []


def _shared_key(job: Job, error: ActionError) -> tuple[str, ...]:
    if isinstance(error, TimedOut):  # each job got to a different point
        return (error.failure_reason, str(id(job)))
    if isinstance(error, Unavailable):  # the length and the last error of one outage differ from job to job
        return (error.failure_reason, error.summary)
    # the last detail of a job that was not started names the first job, which the platform rejected
    details = error.details[:-1] if job.verdict == NOT_STARTED else error.details
    return (error.failure_reason, error.summary, error.cause, error.remedy, *details)


def failure_lines(job: Job, error: ActionError) -> list[str]:
    """Return the title of a failure, its details, the likely cause, what to do, and the request id."""
    return [job.headline(error), *error.details, *advice_lines(job, error)]


def advice_lines(job: Job, error: ActionError) -> list[str]:
    """Return the lines of a failure that the action adds: cause, remedy, how to collect the job, and the request id."""
    request = f"Request id {error.request_id}." if error.request_id else ""
    return [line for line in (error.cause, error.remedy, how_to_collect(job, error), request) if line]


def how_to_collect(job: Job, error: ActionError, *, subject: str = "") -> str:
    """Return how a later run can collect a job that continues or has completed. Empty if no run can."""
    if job.job_id is None or isinstance(error, InvalidInput | NotFound):
        return ""
    subject, collecting = subject or f"Job {job.job_id}", f"with `{job.inputs_to_collect}`"
    if not job.is_agent_job and job.status == ExportJob.COMPLETED:
        return f"{subject} is completed. A run {collecting} makes its bundle link without exporting again."
    if job.has_ended or not (job.was_started_here or job.status is not None):
        return ""
    collect = "Wait for" if job.is_agent_job else "Collect"
    return f"{subject} continues at the platform. {collect} it in a later run {collecting}."
