"""The log of one job: a line when something changes, one for temporary trouble, and a sign of life in between."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, Protocol

from ..clock import Clock
from ..job import Job
from ..jobs.progress import Progress
from ..models import Bundle, ExportJob
from ..text import about, minutes, moment, pluralize, trying_again, without_query, works_until

STANDSTILL_SECONDS: Final = 600.0
"""How long progress may stand still before people are warned that it does."""


class Sink(Protocol):
    """Where a job's log goes: the console itself, or what keeps it for later."""

    @property
    def in_workflow(self) -> bool:
        """Whether a runner reads what is written."""
        ...

    @property
    def debugging(self) -> bool:
        """Whether debug logging is on."""
        ...

    def line(self, text: str, /) -> None:
        """Take a line of the log."""
        ...

    def debug(self, text: str, /) -> None:
        """Take a line that is seen only with debug logging."""
        ...

    def warning(self, lines: Sequence[str], /) -> None:
        """Take a warning; its first line is the title."""
        ...


class JobLog:
    """Tells how one job goes. It is the transport's listener too. Safe to use from several threads."""

    def __init__(self, sink: Sink, clock: Clock, record: Job, *, known_statuses: tuple[str, ...]) -> None:
        self._sink = sink
        self._clock = clock
        self._record = record
        self._known_statuses = {*known_statuses}
        self._shown: tuple[object, ...] = ()
        self._in_trouble = ""
        self._last_line_at = clock.monotonic()
        self._waiting_since = clock.monotonic()
        self._busy_with: Callable[[], str] | None = None
        self._progress = Progress()
        self._warned_of_standstill = False
        self._lock = threading.RLock()

    def title(self, text: str) -> None:
        """Begin the job's log."""
        self._tell(text)

    def note(self, text: str) -> None:
        """Add a line to the job's log."""
        self._tell(f"  {text}")

    def notice(self, text: str) -> None:
        """Add a line to the job's log that is to be seen at once, also where there are many jobs."""
        self.note(text)

    def debug(self, text: str) -> None:
        """Add a line that is seen only with debug logging."""
        self._sink.debug(text)

    def warning(self, lines: Sequence[str]) -> None:
        """Show what is no failure but should be seen; the first line is the title."""
        self._sink.warning(lines)

    def waiting(self) -> None:
        """Count the elapsed time of the readings to come from now."""
        self._waiting_since = self._clock.monotonic()

    def reading(self) -> None:
        """Show the job's state if it has changed since it was last shown."""
        record = self._record
        with self._lock:
            self._progress.see(
                self._clock.monotonic(),
                record.progress,
                record.page_count,
                queued=record.status == ExportJob.QUEUED,
                ended=record.status in {ExportJob.COMPLETED, ExportJob.FAILED},
            )
            state = (record.status, self._percent(), record.page_count)
            if state != self._shown:
                self._shown = state
                self._explain_unknown_status()
                self._tell(self._state_line())
            self._warn_of_standstill()

    def heartbeat(self, every_seconds: float) -> None:
        """Show the state again if nothing was told for this long."""
        with self._lock:
            self.look_for_standstill()
            if self._clock.monotonic() - self._last_line_at < every_seconds:
                return
            state = f"  {self._busy_with()}" if self._busy_with is not None else self._state_line()
            self._tell(state + (f"    {self._in_trouble}" if self._in_trouble else ""))

    def look_for_standstill(self) -> None:
        """Warn, once a job, when its progress stands still; not while the API gives no good answer, when nobody knows."""
        with self._lock:
            if not self._in_trouble:
                self._warn_of_standstill()

    def busy_with(self, what: Callable[[], str] | None) -> None:
        """Have what this tells shown as the sign of life, in place of the job's state; nothing for the latter again."""
        self._busy_with = what

    def trouble(self, what: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Tell of temporary trouble, once, and what happens next."""
        self._in_trouble = "(no good answer from the API)"
        self.note(trying_again(what, budget_seconds, pause_seconds))

    def recovered(self, after_seconds: float) -> None:
        """Tell that the trouble is over."""
        self._in_trouble = ""
        self.note(f"The API answers again after {minutes(after_seconds)}.")

    def exchanged(self, method: str, path: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        """Write a request to the debug log: never a header or a body."""
        named = f" request id {request_id}" if request_id else ""
        self._sink.debug(f"{method} {path}: {outcome}, {milliseconds:.0f} ms{named}")

    def link_masked(self) -> None:
        """Tell what masking the link means; source: GitHub's documentation of job outputs."""
        if not self._sink.in_workflow:
            self.note("Outside of a workflow nothing masks the link, which is among the outputs below.")
            return
        self.note(
            "The link is masked, as `mask-bundle-url` asks: later steps of this job can read `bundleUrl`, but GitHub drops it, "
            "and `results` with it, from job outputs. For another job pass `jobId` on, and make a fresh link there with `job-id`."
        )

    def bundle_ready(self, bundle: Bundle) -> None:
        """Tell of the bundle's link, without the query that opens it."""
        until = f", {works_until(bundle.expires, self._clock.now())}" if bundle.expires is not None else ""
        self.note(f"Bundle link ready: {without_query(bundle.url)}{until}")

    def _percent(self) -> int | None:
        progress = self._record.progress  # as it is now: a reading may come while a sign of life is given
        return None if progress is None or self._record.status == ExportJob.COMPLETED else int(progress)

    def _explain_unknown_status(self) -> None:
        status = self._record.status
        if status is not None and status not in self._known_statuses:
            self._known_statuses.add(status)
            self.note(f"The platform reports the status '{status}', which is not known here; waiting goes on.")

    def _state_line(self) -> str:
        record, percent, now = self._record, self._percent(), self._clock.monotonic()
        shown_percent = "" if percent is None else f"{percent} %"
        counted = "" if record.page_count is None else pluralize(record.page_count, "page")
        elapsed = minutes(now - self._waiting_since)
        rest = self._progress.rest_seconds(now) if self._stands_still_for(now) < STANDSTILL_SECONDS else None
        left = "" if rest is None else f"    about {about(rest)} left"
        state = record.status or ("waiting" if record.job_id else "starting")
        return f"  {state:<10} {shown_percent:>5} {counted:>12} {elapsed:>9}{left}"

    def _stands_still_for(self, now: float) -> float:
        since = self._progress.still_since
        return 0.0 if since is None else now - since

    def _warn_of_standstill(self) -> None:
        record, now = self._record, self._clock.monotonic()
        lasted = self._stands_still_for(now)
        if self._warned_of_standstill or lasted < STANDSTILL_SECONDS:
            return
        self._warned_of_standstill = True
        today = self._clock.now()
        percent = self._percent()
        known = [f"{percent} %"] if percent is not None else []
        known += [pluralize(record.page_count, "page")] if record.page_count is not None else []
        state = ", ".join(known) or f"'{record.status}'"
        self.warning(
            [
                f"{record.subject}: no progress for {minutes(lasted)}",
                f"It has stood at {state} since {moment(today - timedelta(seconds=lasted), today)}.",
                "Waiting goes on until `timeout`.",
                f"Look at job {record.job_id} in the dashboard. To attach to it later: `job-id: {record.job_id}`",
            ]
        )

    def _tell(self, text: str) -> None:
        with self._lock:
            self._last_line_at = self._clock.monotonic()
            self._sink.line(text)
