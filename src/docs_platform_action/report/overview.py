"""The summary's overview of several jobs: a table with one row per job."""

import re
from collections.abc import Collection, Sequence
from itertools import compress
from typing import Final

from ..errors import Cancelled
from ..job import DONE, FAILED, NOT_STARTED, Job
from ..models import ExportJob
from ..text import MAX_WORD_LENGTH, as_sentence, format_bytes, format_clock
from .failures import how_to_collect
from .view import MAX_NAME_LENGTH, View

_MAX_SUMMARY_LENGTH: Final = 120
_MAX_ADVICE_LENGTH: Final = 800  # it may hold the id of a job, and a part of an id is useless

_SAME_MEANING: Final = {(DONE, ExportJob.COMPLETED), (FAILED, ExportJob.FAILED)}


class Overview:
    """The table, without the columns that are empty for all jobs. The page explains some of the failures above it."""

    def __init__(self, jobs: Sequence[Job], view: View, explained_above: Collection[Job]) -> None:
        self._view = view
        self._explained_above = explained_above
        has_pages = any(job.page_count is not None for job in jobs)
        has_size = any(job.downloaded is not None for job in jobs)
        has_time = any(job.began_at is not None for job in jobs)
        has_link = any(job.failure is None and job.bundle is not None for job in jobs)
        has_failure = any(job.failure is not None for job in jobs)
        self._shown_columns = (True, True, has_pages, has_size, has_time, has_link or has_failure)
        last = "Link or failure" if has_link and has_failure else "Link" if has_link else "Failure"
        self.head = self._line("Domain", "Result", "Pages", "Bundle", "Time", last)
        self.head += self._line(":---", ":---", "---:", "---:", "---:", ":---")

    def row(self, job: Job) -> str:
        """Return a job's row."""
        downloaded, seconds = job.downloaded, self._view.seconds_of(job)
        return self._line(
            self._view.show(job.domain, max_length=MAX_NAME_LENGTH),
            self._result(job),
            "" if job.page_count is None else f"{job.page_count:,}",
            ""
            if downloaded is None
            else format_bytes(downloaded.size).replace(" ", "&nbsp;"),  # a narrow column would break the line there
            "" if seconds is None else format_clock(seconds),
            self._link_or_failure(job),
        )

    def _line(self, *cells: str) -> str:
        return f"| {' | '.join(compress(cells, self._shown_columns))} |\n"

    def _result(self, job: Job) -> str:
        """Return the verdict, and the status where it adds something."""
        verdict = f"**{FAILED}**" if job.verdict == FAILED else job.verdict
        status = self._view.show(job.status, max_length=MAX_WORD_LENGTH)
        if not status or (job.verdict, job.status) in _SAME_MEANING:
            return verdict
        return f"{verdict} ({status})" if job.failure is None else f"{verdict}, last seen {status}"

    def _link_or_failure(self, job: Job) -> str:
        """Return a link's expiry or a failure. They share one wide column, as no job has both."""
        error = job.failure
        if error is None:
            return "" if job.bundle is None else self._view.expiry_of(job.bundle)
        reason = f"`{error.failure_reason}`"
        is_unstarted = job.verdict == NOT_STARTED or (job.job_id is None and not job.is_start_unconfirmed)
        if isinstance(error, Cancelled) and is_unstarted:
            return f"{reason}: not started. Run the workflow again."
        # the result shows a cancel; the alert or the job's details contain the cause and the remedy
        is_shown = isinstance(error, Cancelled) or job in self._explained_above
        sentences = [] if is_shown else [self._short(error.summary)]
        if collecting := how_to_collect(job, error, subject="The job"):
            sentences.append(self._view.show_prose(collecting, about=job, max_length=_MAX_ADVICE_LENGTH))
        return f"{reason}: {' '.join(sentences)}" if sentences else reason

    def _short(self, text: str) -> str:
        """Show a sentence without the API's host, which is the same in each row."""
        text = as_sentence(re.sub(r"^([Tt]he API) at \S+ ", r"\1 ", text))
        return self._view.show(text, max_length=_MAX_SUMMARY_LENGTH)
