"""The facts of a failure, one per line: the same in the annotation, the log and the summary."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ..errors import ActionError, Cancelled, InternalError, InvalidInput, NotFound
from ..job import Job
from ..models import ExportJob
from ..text import pluralize
from .console import Console

MAX_DETAILED_FAILURES: Final = (
    9  # the runner keeps ten annotations per step (source: actions/runner), and the tenth counts
)


def annotate_failures(console: Console, jobs: Iterable[Job]) -> None:
    """Write an annotation for each failure, with cancelled jobs last, and one that counts those beyond the limit.

    The stack trace of a bug in the action goes to the debug log, once if several jobs failed with it.
    """
    failed = [(job, job.failure) for job in jobs if job.failure is not None]
    failed.sort(key=lambda pair: isinstance(pair[1], Cancelled))
    for error in dict.fromkeys(error for _, error in failed):
        if isinstance(error, InternalError) and error.bug is not None:
            console.trace(error.bug)
    for job, error in failed[
        :MAX_DETAILED_FAILURES
    ]:  # the titles have no foreign text: the runner does not mask them
        outcome = (
            error.failure_reason
            if isinstance(error, Cancelled)
            else f"{job.verdict}: {error.failure_reason}"
        )
        title = f"{job.kind} {outcome}"
        console.error(failure_lines(job, error), title=title)
    if rest := Counter(error.failure_reason for _, error in failed[MAX_DETAILED_FAILURES:]):
        first = f"{pluralize(rest.total(), 'more export')} did not succeed"
        counts = ", ".join(f"{count:,} {reason}" for reason, count in rest.most_common())
        last = "The job summary and the output `results` list each of them."
        console.error([first, f"{counts}.", last], title="More failures")


def failure_lines(job: Job, error: ActionError) -> list[str]:
    """Return the title of a failure, its details, the likely cause, what to do, and the request ID."""
    advice = (error.cause, error.remedy, how_to_collect(job, error), request_line(error))
    return [job.headline(error), *error.details, *filter(None, advice)]


def request_line(error: ActionError) -> str:
    """Return the request ID as a sentence, or nothing if there is none."""
    return f"Request ID {error.request_id}." if error.request_id else ""


def how_to_collect(job: Job, error: ActionError, *, subject: str = "") -> str:
    """Return how a later run can collect a job that continues or has completed. Empty if no run can."""
    if job.job_id is None or isinstance(error, InvalidInput | NotFound):
        return ""
    subject, collecting = subject or f"Job {job.job_id}", f"with `{job.inputs_to_collect}`"
    if not job.is_agent_job and job.status == ExportJob.COMPLETED:
        return f"{subject} is completed. A run {collecting} makes its bundle link without exporting again."
    if job.has_ended or not (job.was_started_here or job.status is not None):
        return ""
    collect = "wait for" if job.is_agent_job else "collect"
    if not job.has_known_status:
        return f"If the job is still running, {collect} it in a later run {collecting}."
    return f"{subject} continues on the platform. {collect.capitalize()} it in a later run {collecting}."
