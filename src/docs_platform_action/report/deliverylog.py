"""What becomes of a finished bundle, in the log of its job."""

from collections.abc import Callable
from typing import Final

from ..clock import Clock
from ..models import Downloaded
from ..text import minutes, pause, pluralize, size, trying_again, without_query
from .job_log import JobLog

LINE_SECONDS: Final = 10.0
"""How long a download or an unpacking goes on between two lines that tell how far it is."""

WORTH_TELLING_SECONDS: Final = 5.0
"""An outage that is over sooner was told when it came, which is enough."""


class DeliveryLog:
    """Tells how a download and an unpacking go. It is the listener of both."""

    def __init__(self, log: JobLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._began = self._told_at = clock.monotonic()
        self._told_bytes = self._received = 0
        self._size: int | None = None
        self._trouble_at: float | None = None
        self._connections = 0
        self._files = self._unpacked = 0

    def downloading(self) -> None:
        """Count time from here."""
        self._begin(self._download_line)

    def answered(self, address: str, status: int, asked: str | None, request_id: str | None) -> None:
        """Write an answer of the storage to the debug log, and count those that bring something of the bundle."""
        self._connections += status in {200, 206}
        part = f" {asked}" if asked is not None else ""
        named = f", request id {request_id}" if request_id is not None else ""
        self._log.debug(f"GET {without_query(address)}{part}: {status}{named}")

    def progressed(self, received: int, size_in_all: int | None) -> None:
        """Take note of the bytes that are there, and tell of them every few seconds."""
        self._received, self._size = received, size_in_all
        now = self._clock.monotonic()
        if now >= self._told_at + LINE_SECONDS:
            self._log.note(self._download_line())
            self._told_at, self._told_bytes = now, received

    def trouble(self, what: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Tell of temporary trouble, once, and what happens next; of a connection that keeps breaking, every few seconds."""
        now = self._clock.monotonic()
        if self._trouble_at is None or now >= self._trouble_at + LINE_SECONDS:
            self._trouble_at = now
            self._log.notice(trying_again(what, budget_seconds, pause_seconds))

    def recovered(self, after_seconds: float) -> None:
        """Tell that the trouble is over, if it was worth a second line."""
        if after_seconds >= WORTH_TELLING_SECONDS:
            self._log.notice(f"The download goes on after {minutes(after_seconds)}.")

    def link_died(self, why: str) -> None:
        """Tell that a fresh link is made."""
        self._log.notice(f"{why}. Making a fresh link.")

    def started_over(self, why: str) -> None:
        """Tell that the download begins again."""
        self._told_bytes = self._received = 0
        self._log.note(f"Starting the download over: {why}.")

    def moved_to_workspace(self) -> None:
        """Log that the archive does not fit in the runner's temporary folder, and that the download begins again elsewhere."""
        self._told_bytes = self._received = 0
        self._log.note("The bundle does not fit in the runner's temporary folder. Using the disk of the workspace instead.")

    def downloaded(self, downloaded: Downloaded, name: str | None) -> None:
        """Tell that the bundle is there whole, and where if it is kept."""
        kept = f" to {name}" if name is not None else ""
        seconds = self._clock.monotonic() - self._began
        took = pause(seconds) if seconds >= 0.05 else "under 0.1 s"
        over = f" over {self._connections} connections" if self._connections > 1 else ""
        shortened = f"{downloaded.sha256[:4]}…{downloaded.sha256[-4:]}"
        self._log.note(f"Downloaded {size(downloaded.size)}{kept} in {took}{over}, SHA-256 {shortened}")

    def saved(self, name: str) -> None:
        """Report where the archive was saved, if that had to wait."""
        self._log.note(f"Saved the archive to {name}")

    def unpacking(self) -> None:
        """Count time from here."""
        self._begin(self._unpacking_line)

    def unpacked_so_far(self, count: int, size_in_all: int) -> None:
        """Take note of the files that are there, and tell of them every few seconds."""
        self._files, self._unpacked = count, size_in_all
        now = self._clock.monotonic()
        if now >= self._told_at + LINE_SECONDS:
            self._log.note(self._unpacking_line())
            self._told_at = now

    def unpacked(self, count: int, name: str) -> None:
        """Tell that the site is there."""
        self._log.note(f"Unpacked {pluralize(count, 'file')} to {name}/")

    def wrote_values(self, name: str) -> None:
        """Tell that the Helm values file is there."""
        self._log.note(f"Wrote the Helm values file {name}")

    def _begin(self, line: Callable[[], str]) -> None:
        self._began = self._told_at = self._clock.monotonic()
        self._told_bytes = 0
        self._log.busy_with(line)

    def _download_line(self) -> str:
        now, received, size_in_all = self._clock.monotonic(), self._received, self._size  # as they are: a sign of life asks too
        rate = max(received - self._told_bytes, 0) / max(now - self._told_at, 1.0)
        share = f"{100 * received // size_in_all} %" if size_in_all else ""
        there = f"{size(received)} of {size(size_in_all)}" if size_in_all else size(received)
        return f"downloading {share:>5} {there:>24} {size(rate):>12}/s {minutes(now - self._began):>9}"

    def _unpacking_line(self) -> str:
        elapsed = minutes(self._clock.monotonic() - self._began)
        return f"unpacking {pluralize(self._files, 'file'):>18}, {size(self._unpacked)} {elapsed:>9}"
