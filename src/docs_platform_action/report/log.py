"""The log: a line when something changes, one for each outage, and a heartbeat while nothing changes.

The lines of one job are written at once. Those of several are kept for the end, and their main events are shown live.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ..clock import Clock
from ..job import DEPLOYMENT, DOWNLOAD, ROOM, UNPACK, VERIFICATION, Job
from ..models import API, STORAGE, ExportJob
from ..text import (
    describe_retry,
    format_bytes,
    format_clock,
    format_digest,
    format_eta,
    format_expiry,
    format_seconds,
    pluralize,
    shortened,
    without_query,
)
from .console import Console
from .estimate import Estimate
from .failures import failure_lines
from .live import LiveLines
from .room import describe_wait

MAX_STATUSES: Final = 8  # different statuses of one job that are explained, and shown live
HEARTBEAT_SECONDS: Final = 55.0  # of silence before a heartbeat line: at least one line per minute, with a margin for the tick
LINE_SECONDS: Final = 10.0  # between two progress lines of a download or of unpacking, and two reports of storage errors
MIN_REPORTED_OUTAGE_SECONDS: Final = 5.0  # of the storage, whose end is reported


@dataclass
class _Shown:
    """What the log has shown of one job, and what it measures to show it. Times are on the clock's `monotonic`."""

    last_line_at: float
    statuses: set[str] = field(default_factory=set)
    state: tuple[object, ...] = ()
    note: str = ""
    lack_of_room: str = ""
    estimate: Estimate = field(default_factory=Estimate)
    is_in_outage: bool = False
    storage_error_at: float = float("-inf")
    received_bytes: int = 0
    bundle_bytes: int | None = None
    unpacked_files: int = 0
    unpacked_bytes: int = 0
    progress_at: float = 0.0
    progress_bytes: int = 0


class Log:
    """Implements `Events`. Safe to use from several threads. Nothing is logged after `close`."""

    def __init__(
        self, console: Console, clock: Clock, jobs: Sequence[Job], *, max_parallel: int
    ) -> None:
        self._console = console
        self._clock = clock
        self._shown = {job: _Shown(last_line_at=clock.monotonic()) for job in jobs}
        self._live = LiveLines(console, clock, jobs, max_parallel) if len(jobs) > 1 else None
        self._is_closed = False
        self._lock = threading.RLock()

    def job_begun(self, job: Job) -> None:
        with self._lock:
            if self._open_live is not None:
                self._open_live.begin()
            self._log(job, job.title)

    def job_known(self, job: Job) -> None:
        if job.was_started_here:
            if job.room is not None and job.started_at is not None:
                waited = format_clock(job.started_at - job.room.since)
                self._note(job, f"The platform accepted the start after {waited}.")
            with self._lock:
                if self._open_live is not None:
                    self._open_live.start(job)
            text = f"Job {job.job_id} started (collect it later with {job.inputs_to_collect})"
            self._note(job, text, live=f"started, job-id: {job.job_id}", counts=True)
        elif job.site and job.job_id:  # otherwise the title names the job, or there is none
            self._note(job, f"Collecting job {job.job_id}.")

    def noted(self, job: Job, text: str, *, is_live: bool = False) -> None:
        if text != self._shown[job].note:
            self._shown[job].note = text
            self._note(job, text, live=text if is_live else "")

    def status_read(self, job: Job) -> None:
        shown, status, now = self._shown[job], job.status or "", self._clock.monotonic()
        is_queued = status == ExportJob.QUEUED
        shown.estimate.update(now, job.progress, queued=is_queued, ended=job.has_ended)
        state = (status, *_progress_columns(job))
        if state != shown.state:
            shown.state = state
            is_new = status not in shown.statuses and len(shown.statuses) < MAX_STATUSES
            shown.statuses.add(status)
            if is_new and not job.has_known_status:
                text = f"reports the unknown status '{self._word(status)}'; waiting continues."
                self._note(job, f"The platform {text}", live=text)
            elif (
                is_new and not job.has_ended and not (is_queued and job.was_started_here)
            ):  # a start says the same
                self._show(job, " ".join(filter(None, (status, _percent(job)))))
            self._log(job, self._status_line(job))

    def request_ended(
        self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None
    ) -> None:
        suffix = f", request ID {request_id}" if request_id else ""
        self._debug(job, f"{request}: {outcome}, {milliseconds:.0f} ms{suffix}")

    def retrying(
        self,
        job: Job,
        server: str,
        error: str,
        *,
        budget_seconds: float,
        pause_seconds: float,
    ) -> None:
        shown = self._shown[job]
        now = self._clock.monotonic()
        text = describe_retry(error, budget_seconds, pause_seconds)
        if server == API:
            shown.is_in_outage = True
            self._note(job, text)
            with self._lock:
                if self._open_live is not None:
                    self._open_live.begin_outage(job, text)
        elif (
            now >= shown.storage_error_at + LINE_SECONDS
        ):  # a connection may break many times a second
            shown.storage_error_at = now
            self._notice(job, text)

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        after = f"after {format_clock(after_seconds)}"
        if server == API:
            text = f"The API is responding again {after}."
            self._note(job, text)
            with self._lock:
                self._shown[job].is_in_outage = False
                if self._open_live is not None:
                    self._open_live.end_outage(job, text)
        elif after_seconds >= MIN_REPORTED_OUTAGE_SECONDS:
            resumed = (
                "The download resumed" if server == STORAGE else f"{server} is responding again"
            )
            self._notice(job, f"{resumed} {after}.")

    def waiting_for_room(self, job: Job) -> None:
        """Log why a start waits, unless the same reason was logged last."""
        room = job.room
        assert room is not None  # noqa: S101  # for the type checker: it is set before the event
        is_new = job.lack_of_room != self._shown[job].lack_of_room
        self._shown[job].lack_of_room = job.lack_of_room
        advice = job.how_to_collect_other
        lines = [*filter(None, (self._describe_wait(job), *room.refusal.details, advice))]
        with self._lock:
            if self._open_live is not None:
                self._open_live.begin_wait(job, lines, is_new=is_new)
        for line in lines if is_new else ():
            self._note(job, line)

    def link_made(self, job: Job) -> None:
        self._note(job, f"Bundle link ready: {self._link_of(job)}")

    def storage_responded(
        self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None
    ) -> None:
        requested_range = f" {requested}" if requested is not None else ""
        suffix = f", request ID {request_id}" if request_id is not None else ""
        self._debug(job, f"GET {without_query(address)}{requested_range}: {status}{suffix}")

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        self._shown[job].received_bytes, self._shown[job].bundle_bytes = received, size
        self._log_progress(job)

    def download_restarted(self, job: Job, reason: str) -> None:
        self._shown[job].received_bytes = self._shown[job].progress_bytes = 0
        self._shown[job].progress_at = self._clock.monotonic()
        self._note(job, f"Restarting the download: {reason}.")

    def downloaded(self, job: Job) -> None:
        archive = job.delivered.archive
        assert archive is not None  # noqa: S101  # for the type checker: it is set before the event
        duration = format_seconds(self._clock.monotonic() - job.phases[-1].began_at)
        digest = format_digest(archive.sha256)
        self._note(job, f"Downloaded {format_bytes(archive.size)} in {duration}, SHA-256 {digest}")

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        self._shown[job].unpacked_files, self._shown[job].unpacked_bytes = files, size
        self._log_progress(job)

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        with self._lock:
            if self._is_closed:
                return
            if self._live is None:
                self._console.warning(lines)
            else:
                self._live.warn(job, lines)

    def job_ended(self, job: Job) -> None:
        with self._lock:
            if job.is_agent_job and job.failure is None and not self._is_closed:
                self._console.line(
                    "  Pull request:" if job.pr_link else "  No pull request.",
                    link=job.pr_link or "",
                )
            if self._open_live is not None:
                self._open_live.end(
                    job, failure_lines(job, job.failure) if job.failure is not None else ()
                )

    def heartbeat(self) -> None:
        with self._lock:
            if self._open_live is not None:
                self._open_live.heartbeat(HEARTBEAT_SECONDS)
            elif self._live is None:
                (job,) = self._shown
                if self._clock.monotonic() - self._shown[job].last_line_at >= HEARTBEAT_SECONDS:
                    outage = (
                        "    (no successful response from the API)"
                        if self._shown[job].is_in_outage
                        else ""
                    )
                    self._log(job, self._current_line(job) + outage)

    def close(self) -> None:
        """Write what is kept for the end."""
        with self._lock:
            self._is_closed = True
        if self._live is not None:
            self._live.close()

    @property
    def _open_live(self) -> LiveLines | None:
        return None if self._is_closed else self._live

    def _log(self, job: Job, text: str) -> None:
        with self._lock:
            self._shown[job].last_line_at = self._clock.monotonic()
            if self._is_closed:
                return
            if self._live is None:
                self._console.line(text)
            else:
                self._live.keep(job, text.removeprefix("  "))

    def _note(self, job: Job, text: str, *, live: str = "", counts: bool = False) -> None:
        self._log(job, f"  {text}")
        if live:
            self._show(job, live, counts=counts)

    def _show(self, job: Job, text: str, *, counts: bool = False) -> None:
        with self._lock:
            if self._open_live is not None:
                self._open_live.show(job, text, counts=counts)

    def _notice(self, job: Job, text: str) -> None:
        """Log a line about a bundle."""
        self._note(job, text)
        with self._lock:
            if self._open_live is not None:
                self._open_live.show_notice(job, text)

    def _debug(self, job: Job, text: str) -> None:
        if not self._is_closed:
            self._console.debug(text if self._live is None else f"{job.domain}: {text}")

    def _describe_wait(self, job: Job) -> str:
        now = self._clock.now()
        return describe_wait(job, now=now, monotonic=self._clock.monotonic())

    def _word(self, status: str) -> str:
        """Hide secrets in a status, then shorten it. The other order could leave part of a secret."""
        return shortened(self._console.safe(status))

    def _link_of(self, job: Job) -> str:
        link = job.link
        assert link is not None  # noqa: S101  # for the type checker: it is set before the event
        until = (
            f", {format_expiry(link.expires, self._clock.now())}"
            if link.expires is not None
            else ""
        )
        return f"{without_query(link.url)}{until}"

    def _log_progress(self, job: Job) -> None:
        shown, now = self._shown[job], self._clock.monotonic()
        if now >= max(shown.progress_at, job.phases[-1].began_at) + LINE_SECONDS:
            self._log(job, self._current_line(job))
            shown.progress_at, shown.progress_bytes = now, shown.received_bytes

    def _current_line(self, job: Job) -> str:
        if job.is_in(DOWNLOAD):
            return self._download_line(job)
        if job.is_in(ROOM) and job.room is not None:
            waited = format_clock(self._clock.monotonic() - job.room.since)
            return f"  waiting {waited:>9}    {self._describe_wait(job)}"
        return self._unpack_line(job) if job.is_in(UNPACK) else self._status_line(job)

    def _status_line(self, job: Job) -> str:
        now, since = self._clock.monotonic(), job.waiting_since
        percent, pages = _progress_columns(job)
        elapsed = format_clock(now - since if since is not None else 0.0)
        remaining = self._shown[job].estimate.remaining_seconds(now)
        eta = "" if remaining is None else f"    about {format_eta(remaining)} left"
        return f"  {self._state_of(job):<10} {percent:>5} {pages:>12} {elapsed:>9}{eta}"

    def _state_of(self, job: Job) -> str:
        if job.status:
            return self._word(job.status)
        if job.is_in(VERIFICATION):
            return "verifying"
        return "waiting" if job.job_id or job.is_in(DEPLOYMENT) else "starting"

    def _download_line(self, job: Job) -> str:
        now, shown, began_at = self._clock.monotonic(), self._shown[job], job.phases[-1].began_at
        received, total = (
            shown.received_bytes,
            shown.bundle_bytes,
        )  # read once: another thread changes them
        rate = max(received - shown.progress_bytes, 0) / max(
            now - max(shown.progress_at, began_at), 1.0
        )
        percent = f"{100 * received // total} %" if total else ""
        size = (
            f"{format_bytes(received)} of {format_bytes(total)}"
            if total
            else format_bytes(received)
        )
        return f"  downloading {percent:>5} {size:>24} {format_bytes(rate):>12}/s {format_clock(now - began_at):>9}"

    def _unpack_line(self, job: Job) -> str:
        shown, elapsed = (
            self._shown[job],
            format_clock(self._clock.monotonic() - job.phases[-1].began_at),
        )
        return f"  unpacking {pluralize(shown.unpacked_files, 'file'):>18}, {format_bytes(shown.unpacked_bytes)} {elapsed:>9}"


def _percent(job: Job) -> str:
    progress = job.progress
    return "" if progress is None or job.status == ExportJob.COMPLETED else f"{int(progress)} %"


def _progress_columns(job: Job) -> tuple[str, str]:
    """Return the percentage and the page count, each empty where it is not known."""
    return _percent(job), "" if job.pages is None else pluralize(job.pages, "page")
