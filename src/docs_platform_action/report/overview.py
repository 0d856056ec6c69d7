"""The summary's overview of several jobs: a table, one row a job."""

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import compress
from typing import Final

from ..errors import ActionError, Cancelled, TimedOut
from ..job import DONE, FAILED, NOT_STARTED, Job
from ..models import ExportJob
from ..text import format_bytes, format_clock, sentence
from .failures import how_to_collect_in_short
from .view import MAX_NAME_LENGTH, MAX_WORD_LENGTH, View, name_of, seconds_at, size_of

_MAX_SUMMARY_LENGTH: Final = 120
_MAX_DETAIL_LENGTH: Final = 140
_MAX_REMEDY_LENGTH: Final = 400
"""It may hold the id of a job, which nobody can use a part of."""

_SAYING_THE_SAME: Final = {(DONE, ExportJob.COMPLETED), (FAILED, ExportJob.FAILED)}


class Overview:
    """The table, without the columns that are empty for all jobs.

    `told_above` holds the `id` of each job whose row need not repeat what happened and what to do about it.
    """

    def __init__(self, jobs: Sequence[Job], view: View, told_above: Collection[int]) -> None:
        self._view = view
        self._told_above = told_above
        linked = any(job.failure is None and job.bundle is not None for job in jobs)
        failed = any(job.failure is not None for job in jobs)
        self._shown = (
            True,
            True,
            any(job.page_count is not None for job in jobs),
            any(size_of(job) is not None for job in jobs),
            any(job.began_at is not None for job in jobs),
            linked or failed,
        )
        last = "Link valid until, or what happened" if linked and failed else "Link valid until" if linked else "What happened"
        titles = ("Domain" if all(job.domain for job in jobs) else "Job", "Result", "Pages", "Bundle", "Time", last)
        self.head = self._line(titles) + self._line(("---", "---", "---:", "---:", "---:", "---"))

    def row(self, job: Job) -> str:
        """Return a job's row."""
        count, seconds = size_of(job), seconds_at(job, self._view)
        cells = (
            self._view.show(name_of(job), longest=MAX_NAME_LENGTH),
            self._result(job),
            "" if job.page_count is None else f"{job.page_count:,}",
            "" if count is None else format_bytes(count).replace(" ", "&nbsp;"),  # in a narrow column it would break there
            "" if seconds is None else format_clock(seconds),
            self._link_or_failure(job),
        )
        return self._line(cells)

    def _line(self, cells: Iterable[str]) -> str:
        return f"| {' | '.join(compress(cells, self._shown))} |\n"

    def _result(self, job: Job) -> str:
        """Return the verdict, and the status where it says more."""
        verdict = job.verdict
        told = f"**{verdict}**" if verdict == FAILED else verdict
        status = self._view.show(job.status, longest=MAX_WORD_LENGTH)
        if not status or (verdict, job.status) in _SAYING_THE_SAME:
            return told
        return f"{told} ({status})" if job.failure is None else f"{told}, last seen {status}"

    def _link_or_failure(self, job: Job) -> str:
        """Return what a good job has, and what happened to a failed one: one wide column, as no job has both."""
        error, view = job.failure, self._view
        if error is None:
            return "" if job.bundle is None else view.works_until(job.bundle)
        reason = f"`{error.failure_reason}`"
        is_unstarted = job.verdict == NOT_STARTED or (job.job_id is None and not job.is_start_unconfirmed)
        if isinstance(error, Cancelled) and is_unstarted:
            return f"{reason}, not started: run the workflow again."
        collecting = how_to_collect_in_short(job, error)
        told_above = id(job) in self._told_above
        # the row's other cells show how far the job was, and how long the run had waited for it
        told_beside = bool(collecting) and isinstance(error, Cancelled | TimedOut) and job.status is not None
        told = [] if told_above or told_beside else self._happened(error)
        if collecting:
            told.append(view.show_prose(f"The job {collecting}" if told else collecting, longest=_MAX_REMEDY_LENGTH))
        elif error.remedy and not told_above:
            told.append(view.show_prose(error.remedy, longest=_MAX_REMEDY_LENGTH))
        return f"{reason}: {' '.join(told)}" if told else reason

    def _happened(self, error: ActionError) -> list[str]:
        """Return in short what happened, and the first fact, such as what the API said."""
        fact = [self._short(said, _MAX_DETAIL_LENGTH) for said in error.details[:1]]
        if isinstance(error, Cancelled):  # which the second cell says
            return fact
        return [self._short(error.summary, _MAX_SUMMARY_LENGTH), *fact]

    def _short(self, text: str, longest: int) -> str:
        """Show a sentence without the API's host, which is the same in each row; a quotation that is cut is still closed."""
        shown = self._view.show(sentence(re.sub(r"^([Tt]he API) at \S+ ", r"\1 ", text)), longest=longest)
        return f'{shown}"' if shown.endswith("…") and shown.count('"') % 2 else shown
