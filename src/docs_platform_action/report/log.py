"""The log: a line for each change and each outage, and a heartbeat while nothing changes.

The lines of one job are written at once. Those of several jobs are kept for the end, and their main
events are shown live.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ..clock import Clock
from ..errors import NoRoom
from ..job import DEPLOYMENT, DOWNLOAD, ROOM, UNPACK, VERIFICATION, Job
from ..models import API, STORAGE, Archive, BundleLink
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
from .failures import failure_lines
from .live import LiveLines
from .room import describe_wait

# different statuses of one job that are explained, and shown live
MAX_STATUSES: Final = 8

MAX_REASON_LENGTH: Final = 300  # of an unknown status

# silence before a heartbeat line: at least one line per minute, with a margin for the tick
HEARTBEAT_SECONDS: Final = 55.0

# between two progress lines of a download or of unpacking, and between two notices of errors of the
# storage or GitHub
LINE_SECONDS: Final = 10.0

# shortest outage of the storage or GitHub whose end is reported
MIN_REPORTED_OUTAGE_SECONDS: Final = 5.0


@dataclass
class _Shown:
    """What the log has shown of one job, and what it measures to show it.

    Times are on the clock's `monotonic`.
    """

    last_line_at: float
    statuses: set[str] = field(default_factory=set)
    state: tuple[str, ...] = ()
    note: str = ""
    lack_of_room: str = ""
    is_in_outage: bool = False
    error_noticed_at: float = float("-inf")  # of the storage or GitHub
    received_bytes: int = 0
    bundle_bytes: int | None = None
    unpacked_files: int = 0
    unpacked_bytes: int = 0
    progress_at: float = 0.0
    progress_bytes: int = 0


class Log:
    """Implements `Listener`. Safe to use from several threads. Nothing is logged after `close`."""

    def __init__(
        self, console: Console, clock: Clock, jobs: Sequence[Job], *, max_parallel: int
    ) -> None:
        self._console = console
        self._clock = clock
        self._shown = {job: _Shown(last_line_at=clock.monotonic()) for job in jobs}
        self._live: LiveLines | None = None
        if len(jobs) > 1:
            self._live = LiveLines(console, clock, jobs, max_parallel)
        self._is_closed = False
        self._lock = threading.RLock()

    def job_begun(self, job: Job) -> None:
        with self._lock:
            if self._open_live is not None:
                self._open_live.begin()
            self._log(job, job.title)

    def job_known(self, job: Job) -> None:
        if job.started_at is not None:
            self._log_start(job, job.started_at)
        elif job.site and job.job_id:  # otherwise the title names the job, or there is none
            self._note(job, f"Collecting job {job.job_id}.")

    def _log_start(self, job: Job, started_at: float) -> None:
        if job.room is not None:
            waited = format_clock(started_at - job.room.since)
            self._note(job, f"The platform accepted the start after {waited}.")
        with self._lock:
            if self._open_live is not None:
                self._open_live.start(job)
        later = f"{job.kind.later_verb} it later with {job.inputs_to_collect}"
        self._note(job, f"Job {job.job_id} started ({later})")
        self._show(job, f"started, job-id: {job.job_id}", counts=True)

    def noted(self, job: Job, text: str, *, is_live: bool = False) -> None:
        if text == self._shown[job].note:
            return
        self._shown[job].note = text
        self._note(job, text)
        if is_live:
            self._show(job, text)

    def status_read(self, job: Job) -> None:
        shown = self._shown[job]
        status = job.status or ""
        state = (status, _percent(job), _pages(job))
        if state == shown.state:
            return
        shown.state = state
        if status not in shown.statuses and len(shown.statuses) < MAX_STATUSES:
            shown.statuses.add(status)
            self._log_new_status(job, status)
        self._log(job, self._status_line(job))

    def _log_new_status(self, job: Job, status: str) -> None:
        """Explain an unknown status, or show a known one live.

        Other lines show that a job was started and is queued, and that it has ended.
        """
        if not job.has_known_status:
            text = f"reports the unknown status '{self._word(status)}'{self._reason_of(job)}"
            text += "; waiting continues."
            self._note(job, f"The platform {text}")
            self._show(job, text)
            return
        if job.is_queued or job.has_ended:
            return
        percent = _percent(job)
        self._show(job, f"{status} {percent}" if percent else status)

    def request_ended(
        self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None
    ) -> None:
        text = f"{request}: {outcome}, {milliseconds:.0f} ms"
        self._debug(job, text + _request_suffix(request_id))

    def retrying(
        self,
        job: Job,
        server: str,
        error: str,
        *,
        budget_seconds: float,
        pause_seconds: float,
    ) -> None:
        text = describe_retry(error, budget_seconds, pause_seconds)
        if server == API:
            self._begin_outage(job, text)
            return
        now = self._clock.monotonic()
        shown = self._shown[job]
        # a connection may break many times a second
        if now >= shown.error_noticed_at + LINE_SECONDS:
            shown.error_noticed_at = now
            self._notice(job, text)

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        after = f"after {format_clock(after_seconds)}"
        if server == API:
            self._end_outage(job, f"The API is responding again {after}.")
            return
        if after_seconds < MIN_REPORTED_OUTAGE_SECONDS:
            return
        if server == STORAGE:
            self._notice(job, f"The download resumed {after}.")
        else:
            self._notice(job, f"{server} is responding again {after}.")

    def waiting_for_room(self, job: Job, refusal: NoRoom) -> None:
        """Log why a start waits, unless the same reason was logged last."""
        is_new = job.lack_of_room != self._shown[job].lack_of_room
        self._shown[job].lack_of_room = job.lack_of_room
        lines = [self._describe_wait(job), *refusal.details]
        if job.how_to_collect_other:
            lines.append(job.how_to_collect_other)
        with self._lock:
            if self._open_live is not None:
                self._open_live.begin_wait(job, lines, is_new=is_new)
        if is_new:
            for line in lines:
                self._note(job, line)

    def link_made(self, job: Job, link: BundleLink) -> None:
        text = f"Bundle link ready: {without_query(link.url)}"
        if link.expires is not None:
            text += f", {format_expiry(link.expires, self._clock.now())}"
        self._note(job, text)

    def storage_responded(
        self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None
    ) -> None:
        request = f"GET {without_query(address)}"
        if requested is not None:
            request += f" {requested}"
        self._debug(job, f"{request}: {status}{_request_suffix(request_id)}")

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        self._shown[job].received_bytes = received
        self._shown[job].bundle_bytes = size
        self._log_progress(job)

    def download_restarted(self, job: Job, reason: str) -> None:
        shown = self._shown[job]
        shown.received_bytes = 0
        shown.progress_bytes = 0
        shown.progress_at = self._clock.monotonic()
        self._note(job, f"Restarting the download: {reason}.")

    def downloaded(self, job: Job, archive: Archive) -> None:
        size = format_bytes(archive.size)
        duration = format_seconds(self._phase_seconds(job))
        digest = format_digest(archive.sha256)
        self._note(job, f"Downloaded {size} in {duration}, SHA-256 {digest}")

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        self._shown[job].unpacked_files = files
        self._shown[job].unpacked_bytes = size
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
            if self._is_closed:
                return
            if job.kind.makes_pull_request and job.failure is None:
                self._log_pull_request(job)
            if self._live is None:
                return
            failure: Sequence[str] = ()
            if job.failure is not None:
                failure = failure_lines(job, job.failure)
            self._live.end(job, failure)

    def _log_pull_request(self, job: Job) -> None:
        if job.pr_link:
            self._console.line("  Pull request:", link=job.pr_link)
        else:
            self._console.line("  No pull request.")

    def heartbeat(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            if self._live is not None:
                self._live.heartbeat(HEARTBEAT_SECONDS)
                return
            (job,) = self._shown
            shown = self._shown[job]
            if self._clock.monotonic() - shown.last_line_at < HEARTBEAT_SECONDS:
                return
            line = self._current_line(job)
            if shown.is_in_outage:
                line += "    (no successful response from the API)"
            self._log(job, line)

    def close(self) -> None:
        """Write what is kept for the end."""
        with self._lock:
            self._is_closed = True
        if self._live is not None:
            self._live.close()

    @property
    def _open_live(self) -> LiveLines | None:
        """The live lines, unless there is only one job or the log is closed."""
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

    def _note(self, job: Job, text: str) -> None:
        self._log(job, f"  {text}")

    def _show(self, job: Job, text: str, *, counts: bool = False) -> None:
        """Show a live line, if there are several jobs."""
        with self._lock:
            if self._open_live is not None:
                self._open_live.show(job, text, counts=counts)

    def _notice(self, job: Job, text: str) -> None:
        """Log a line about the storage or GitHub."""
        self._note(job, text)
        with self._lock:
            if self._open_live is not None:
                self._open_live.show_notice(job, text)

    def _begin_outage(self, job: Job, text: str) -> None:
        self._note(job, text)
        with self._lock:
            self._shown[job].is_in_outage = True
            if self._open_live is not None:
                self._open_live.begin_outage(job, text)

    def _end_outage(self, job: Job, text: str) -> None:
        self._note(job, text)
        with self._lock:
            self._shown[job].is_in_outage = False
            if self._open_live is not None:
                self._open_live.end_outage(job, text)

    def _debug(self, job: Job, text: str) -> None:
        if self._is_closed:
            return
        if self._live is not None:
            text = f"{job.domain}: {text}"
        self._console.debug(text)

    def _describe_wait(self, job: Job) -> str:
        now = self._clock.now()
        return describe_wait(job, now=now, monotonic=self._clock.monotonic())

    def _word(self, status: str) -> str:
        """Hide secrets in a status, then shorten it.

        The other order could leave part of a secret.
        """
        return shortened(self._console.safe(status))

    def _reason_of(self, job: Job) -> str:
        """Return the reason in a job's last reading, in brackets, if there is one."""
        if job.reading is None or job.reading.error is None:
            return ""
        return f' ("{shortened(self._console.safe(job.reading.error), MAX_REASON_LENGTH)}")'

    def _phase_seconds(self, job: Job) -> float:
        """Return how long the current phase of a job has taken."""
        return self._clock.monotonic() - job.phases[-1].began_at

    def _log_progress(self, job: Job) -> None:
        now = self._clock.monotonic()
        shown = self._shown[job]
        last_at = max(shown.progress_at, job.phases[-1].began_at)
        if now < last_at + LINE_SECONDS:
            return
        self._log(job, self._current_line(job))
        shown.progress_at = now
        shown.progress_bytes = shown.received_bytes

    def _current_line(self, job: Job) -> str:
        if job.is_in(DOWNLOAD):
            return self._download_line(job)
        if job.is_in(UNPACK):
            return self._unpack_line(job)
        if job.is_in(ROOM) and job.room is not None:
            waited = format_clock(self._clock.monotonic() - job.room.since)
            return f"  waiting {waited:>9}    {self._describe_wait(job)}"
        return self._status_line(job)

    def _status_line(self, job: Job) -> str:
        now = self._clock.monotonic()
        since = job.waiting_since
        waited_seconds = 0.0 if since is None else now - since
        elapsed = format_clock(waited_seconds)
        line = f"  {self._state_of(job):<10} {_percent(job):>5} {_pages(job):>12} {elapsed:>9}"
        remaining = job.remaining_seconds(now)
        if remaining is None:
            return line
        return f"{line}    about {format_eta(remaining)} left"

    def _state_of(self, job: Job) -> str:
        if job.status:
            return self._word(job.status)
        if job.is_in(VERIFICATION):
            return "verifying"
        if job.job_id or job.is_in(DEPLOYMENT):
            return "waiting"
        return "starting"

    def _download_line(self, job: Job) -> str:
        now = self._clock.monotonic()
        shown = self._shown[job]
        began_at = job.phases[-1].began_at
        # read once: another thread changes them
        received = shown.received_bytes
        total = shown.bundle_bytes
        percent = ""
        size = format_bytes(received)
        if total:
            percent = f"{100 * received // total} %"
            size = f"{size} of {format_bytes(total)}"
        recent_bytes = max(received - shown.progress_bytes, 0)
        recent_seconds = max(now - max(shown.progress_at, began_at), 1.0)
        rate = f"{format_bytes(recent_bytes / recent_seconds)}/s"
        elapsed = format_clock(now - began_at)
        return f"  downloading {percent:>5} {size:>24} {rate:>14} {elapsed:>9}"

    def _unpack_line(self, job: Job) -> str:
        shown = self._shown[job]
        files = pluralize(shown.unpacked_files, "file")
        size = format_bytes(shown.unpacked_bytes)
        elapsed = format_clock(self._phase_seconds(job))
        return f"  unpacking {files:>18}, {size} {elapsed:>9}"


def _percent(job: Job) -> str:
    """Return the percentage of a job that is running, or nothing if it is not known."""
    progress = job.progress
    if progress is None or job.is_completed:
        return ""
    return f"{int(progress)} %"


def _pages(job: Job) -> str:
    """Return the page count, or nothing if it is not known."""
    pages = job.reported_pages  # read once: another thread may change it
    return "" if pages is None else pluralize(pages, "page")


def _request_suffix(request_id: str | None) -> str:
    return f", request ID {request_id}" if request_id else ""
