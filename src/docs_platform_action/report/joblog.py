"""The log of one job: a line when something changes, one for temporary trouble, and a sign of life in between."""

import threading
from collections.abc import Callable

from ..clock import Clock
from ..model import Bundle
from ..record import JobRecord
from .console import Console
from .text import minutes, pages, trying_again, without_query, works_until


class JobLog:
    """Tells how one job goes. It is the transport's listener too."""

    def __init__(self, console: Console, clock: Clock, record: JobRecord, *, known_statuses: tuple[str, ...]) -> None:
        self._console = console
        self._clock = clock
        self._record = record
        self._known_statuses = {*known_statuses}
        self._shown: tuple[object, ...] = ()
        self._in_trouble = ""
        self._last_line_at = clock.monotonic()
        self._waiting_since = clock.monotonic()
        self._busy_with: Callable[[], str] | None = None
        self._lock = threading.Lock()

    def title(self, text: str) -> None:
        """Begin the job's log."""
        self._tell(text)

    def note(self, text: str) -> None:
        """Add a line to the job's log."""
        self._tell(f"  {text}")

    def debug(self, text: str) -> None:
        """Add a line that is seen only with debug logging."""
        self._console.debug(text)

    def waiting(self) -> None:
        """Count the elapsed time of the readings to come from now."""
        self._waiting_since = self._clock.monotonic()

    def reading(self) -> None:
        """Show the job's state if it has changed since it was last shown."""
        record = self._record
        percent = None if record.progress is None or record.status == "completed" else int(record.progress)
        state = (record.status, percent, record.page_count)
        if state == self._shown:
            return
        self._shown = state
        if record.status is not None and record.status not in self._known_statuses:
            self._known_statuses.add(record.status)
            self.note(f"The platform reports the status '{record.status}', which is not known here; waiting goes on.")
        self._tell(self._state_line(percent))

    def heartbeat(self, every_seconds: float) -> None:
        """Show the state again if nothing was told for this long."""
        if self._clock.monotonic() - self._last_line_at < every_seconds:
            return
        record = self._record
        percent = None if record.progress is None or record.status == "completed" else int(record.progress)
        state = f"  {self._busy_with()}" if self._busy_with is not None else self._state_line(percent)
        self._tell(state + (f"    {self._in_trouble}" if self._in_trouble else ""))

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
        self._console.debug(f"{method} {path}: {outcome}, {milliseconds:.0f} ms{named}")

    def link_masked(self) -> None:
        """Tell what masking the link means; source: GitHub's documentation of job outputs."""
        if not self._console.in_workflow:
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

    def _state_line(self, percent: int | None) -> str:
        record = self._record
        shown_percent = "" if percent is None else f"{percent} %"
        counted = "" if record.page_count is None else pages(record.page_count)
        elapsed = minutes(self._clock.monotonic() - self._waiting_since)
        return (
            f"  {record.status or ('waiting' if record.job_id else 'starting'):<10} {shown_percent:>5} {counted:>12} {elapsed:>9}"
        )

    def _tell(self, text: str) -> None:
        with self._lock:
            self._last_line_at = self._clock.monotonic()
            self._console.line(text)
