"""The facts of a failure, one a line: the same in the annotation, the log and the summary."""

import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ..errors import ActionError, Cancelled, InternalError, InvalidInput, NotFound, TimedOut, Unavailable
from ..job import NOT_STARTED, Job
from ..models import EXPORT, ExportJob
from ..text import pluralize
from .console import Console

MAX_FAILURES: Final = 9
"""Failures with an annotation of their own: the runner keeps ten a step (source: actions/runner); the last counts the rest."""

MIN_ALIKE: Final = 3
"""How many failures must have the same cause to be described once, and not again for each job."""


def write_traces(console: Console, jobs: Iterable[Job]) -> None:
    """Write the stack trace of each bug in the action to the debug log, once if several jobs failed with it."""
    for error in {id(job.failure): job.failure for job in jobs if isinstance(job.failure, InternalError)}.values():
        if error.bug is not None:
            trace = console.hide("".join(traceback.format_exception(error.bug)))  # in one piece: a key may be wrapped
            for line in trace.splitlines():
                console.debug(line)


def failures_shown(jobs: Iterable[Job]) -> list[list[str]]:
    """Return the lines of each failure that has an annotation: first those that are not merely cancelled, in the jobs' order."""
    failed = [(job, job.failure) for job in jobs if job.failure is not None]
    failed.sort(key=lambda pair: isinstance(pair[1], Cancelled))
    shown = [failure_lines(job, error) for job, error in failed[:MAX_FAILURES]]
    rest = [error for _, error in failed[MAX_FAILURES:]]
    return [*shown, _counted(rest)] if rest else shown


def _counted(errors: Sequence[ActionError]) -> list[str]:
    kinds = {isinstance(error, Cancelled) for error in errors}
    cancelled = "was cancelled" if len(errors) == 1 else "were cancelled"
    ended = cancelled if kinds == {True} else "failed" if kinds == {False} else "failed or were cancelled"
    reasons = Counter(error.failure_reason for error in errors).most_common()
    return [
        f"{pluralize(len(errors), 'more export')} {ended}",
        f"{', '.join(f'{count:,} {reason}' for reason, count in reasons)}.",
        "The job summary and the output `results` hold each of them.",
    ]


def failed_alike(jobs: Iterable[Job]) -> Sequence[Job]:
    """Return the jobs whose failures have the same cause, if they are many; of several causes that of the most jobs."""
    alike: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        # how far a job was that goes on is its own
        if job.failure is not None and not isinstance(job.failure, Cancelled | TimedOut):
            alike.setdefault(_cause(job, job.failure), []).append(job)
    most = max(alike.values(), key=len, default=[])
    return most if len(most) >= MIN_ALIKE else []


def _cause(job: Job, error: ActionError) -> tuple[str, ...]:
    kind = (error.failure_reason, error.summary)
    if isinstance(error, Unavailable):  # of one outage, its length and the last error differ between jobs
        return kind
    # the last fact of a job that was not started says whose response it was
    facts = error.details[:-1] if job.verdict == NOT_STARTED else error.details
    return (*kind, error.cause, error.remedy, *facts)


def failure_lines(job: Job, error: ActionError) -> list[str]:
    """Return what happened, why it probably did, what to do, and how to find it again. The first line is the title."""
    request = f"Request id {error.request_id}." if error.request_id else ""
    lines = [job.headline(error), *error.details, error.cause, error.remedy, how_to_collect(job, error), request]
    return [line for line in lines if line]


def how_to_collect(job: Job, error: ActionError) -> str:
    """Return how a later run can pick up a job that goes on, or has completed, without this one."""
    attach = f"`job-id: {job.job_id}`"
    if job.job_id is None or isinstance(error, InvalidInput | NotFound):
        return ""
    if job.mode == EXPORT and job.status == ExportJob.COMPLETED:
        return f"Job {job.job_id} is completed; a run with {attach} makes its bundle link without exporting again."
    has_ended = job.agent_job is not None and job.agent_job.has_ended
    if not error.job_continues or not job.api_responded or has_ended:
        return ""
    return f"Job {job.job_id} continues at the platform, and nothing is lost. Collect it in a later run with {attach}."


def how_to_collect_in_short(job: Job, error: ActionError) -> str:
    """Return the same as a completion of "The job …", where there is little room."""
    told = how_to_collect(job, error).removeprefix(f"Job {job.job_id} ")
    return told.replace(", and nothing is lost. Collect it", "; collect it", 1)
