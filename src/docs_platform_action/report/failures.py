"""The facts of a failure, one a line: the same in the annotation, the log and the summary."""

import traceback
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ..errors import ActionError, Cancelled, InternalError, InvalidInput, NotFound
from ..job import Job
from ..models import EXPORT, ExportJob
from ..text import pluralize
from .console import Console

MOST_FAILURES: Final = 9
"""Failures with an annotation of their own: the runner keeps ten a step (source: actions/runner); the last counts the rest."""


def write_traces(console: Console, jobs: Iterable[Job]) -> None:
    """Write the stack trace of each bug in the action to the debug log, once if several jobs failed with it."""
    for error in {id(job.failure): job.failure for job in jobs if isinstance(job.failure, InternalError)}.values():
        if error.bug is not None:
            trace = console.hide("".join(traceback.format_exception(error.bug)))  # in one piece: a key may be wrapped
            for line in trace.splitlines():
                console.debug(line)


def annotate_failures(console: Console, records: Iterable[Job]) -> None:
    """Write an annotation for each job that failed, or for as many as are shown and one that counts the rest."""
    for lines in failures_shown(records):
        console.error(lines)


def failures_shown(records: Iterable[Job]) -> list[list[str]]:
    """Give the lines of each failure that is shown: first those that are not merely cancelled, in the order of the records."""
    failed = [(record, record.failure) for record in records if record.failure is not None]
    failed.sort(key=lambda pair: isinstance(pair[1], Cancelled))
    shown = [failure_lines(record, error) for record, error in failed[:MOST_FAILURES]]
    rest = [error for _, error in failed[MOST_FAILURES:]]
    return [*shown, _counted(rest)] if rest else shown


def _counted(errors: Sequence[ActionError]) -> list[str]:
    kinds = {isinstance(error, Cancelled) for error in errors}
    ended = "were cancelled" if kinds == {True} else "failed" if kinds == {False} else "failed or were cancelled"
    subject = pluralize(len(errors), "more export")
    return [
        f"{subject} {ended.replace('were', 'was') if len(errors) == 1 else ended}",
        f"{reasons_counted(errors)}.",
        "The job summary and the output `results` hold each of them.",
    ]


def reasons_counted(errors: Iterable[ActionError]) -> str:
    """Count what went wrong, the most frequent first."""
    counted = Counter(error.failure_reason for error in errors)
    return ", ".join(f"{count:,} {reason}" for reason, count in counted.most_common())


def failure_lines(record: Job, error: ActionError) -> list[str]:
    """Tell what happened, why it probably did, what to do, and how to find it again. The first line is the title."""
    lines = [record.headline(error), *error.facts, error.because, error.way_out, how_to_collect(record, error)]
    if error.request_id:
        lines.append(f"Request id {error.request_id}.")
    return [line for line in lines if line]


def how_to_collect(record: Job, error: ActionError) -> str:
    """Tell how a later run can pick up a job that goes on, or has completed, without this one."""
    attach = f"`job-id: {record.job_id}`"
    if record.job_id is None or isinstance(error, InvalidInput | NotFound):
        return ""
    if record.mode == EXPORT and record.status == ExportJob.COMPLETED:
        return f"Job {record.job_id} is completed; a run with {attach} makes its bundle link without exporting again."
    is_seen = record.started or record.status is not None
    has_ended = record.agent_job is not None and record.agent_job.ended
    if not error.job_goes_on or not is_seen or has_ended:
        return ""
    return f"Job {record.job_id} goes on at the platform; nothing is lost. Collect it in a later run with {attach}."


def how_to_collect_in_short(record: Job, error: ActionError) -> str:
    """Tell the same in what completes "The job …", where there is little room."""
    told = how_to_collect(record, error).removeprefix(f"Job {record.job_id} ")
    return told.replace("; nothing is lost. Collect it", "; collect it", 1)
