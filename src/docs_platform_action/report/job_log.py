"""The log of one job: a line when something changes, one for each outage, and a heartbeat while nothing changes."""

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from ..clock import Clock
from ..events import Events
from ..job import Job
from ..models import API, AgentJob, ExportJob
from ..text import (
    MAX_WORD_LENGTH,
    describe_retry,
    format_bytes,
    format_clock,
    format_eta,
    format_expiry,
    format_seconds,
    format_time,
    pluralize,
    without_query,
)
from .console import Console

MAX_STATUSES: Final = 8
"""Unknown statuses of one job that are explained, and changes of its status that a log of several jobs shows live."""

HEARTBEAT_SECONDS: Final = 55.0
"""Silence before a heartbeat line: at least one line per minute, with a margin for the tick that writes it."""

STALL_SECONDS: Final = 600.0
"""How long a job may make no progress before the log warns."""

LINE_SECONDS: Final = 10.0
"""Pause between two progress lines of a download or of unpacking, and between two reports of storage errors."""

MIN_REPORTED_OUTAGE_SECONDS: Final = 5.0
"""Shortest storage outage whose end is reported."""


class JobLog(Events):
    """Writes the log of one job. Safe to use from several threads."""

    def __init__(self, console: Console, clock: Clock, job: Job) -> None:
        self._console = console
        self._clock = clock
        self.job = job
        self._lock = threading.RLock()
        self._known_statuses = (AgentJob if job.is_agent_job else ExportJob).KNOWN_STATUSES
        self._explained_statuses: set[str] = set()
        self._logged_state: tuple[object, ...] = ()
        self._last_line_at = self._polling_since = self._phase_began = self._progress_logged_at = clock.monotonic()
        self._in_api_outage = False
        self._storage_error_logged_at = float("-inf")
        self._stall_was_reported = False
        self._current_line: Callable[[], str] = self._status_line
        self._received_bytes = self._logged_bytes = 0
        self._bundle_bytes: int | None = None
        self._connections = 0
        self._unpacked_files = self._unpacked_bytes = 0

    def heartbeat(self) -> None:
        with self._lock:
            self.warn_if_stalled()
            if self._clock.monotonic() - self._last_line_at >= HEARTBEAT_SECONDS:
                self._log(self._current_line() + ("    (no successful response from the API)" if self._in_api_outage else ""))

    def warn_if_stalled(self) -> None:
        """Warn once if the job makes no progress. During an API outage its progress is unknown."""
        with self._lock:
            job, stalled_seconds = self.job, self._stalled_seconds()
            if self._in_api_outage or self._stall_was_reported or stalled_seconds < STALL_SECONDS:
                return
            self._stall_was_reported = True
            now = self._clock.now()
            progress = ", ".join(filter(None, self._progress_columns())) or f"'{job.status}'"
            lines = [
                f"{job.subject}: no progress for {format_clock(stalled_seconds)}",
                f"It has been at {progress} since {format_time(now - timedelta(seconds=stalled_seconds), now)}.",
                "The action keeps waiting until `timeout`.",
                f"Check job {job.job_id} in the dashboard. To collect it later, use `{job.inputs_to_collect}`.",
            ]
            self.warning(job, lines)

    def close(self) -> None:
        """Do nothing: every line is written at once."""

    def job_begun(self, job: Job) -> None:
        self._log(job.title)

    def job_known(self, job: Job) -> None:
        if job.was_started_here:
            self._note(f"Job {job.job_id} started (collect it later with {job.inputs_to_collect})")
        elif not job.is_agent_job:  # the title names an agent job
            self._note(f"Collecting job {job.job_id}.")

    def not_waiting(self, job: Job) -> None:
        self._note("Not waiting for the job, because `wait` is `false`.")

    def polling(self, job: Job) -> None:
        self._polling_since = self._clock.monotonic()

    def status_read(self, job: Job) -> None:
        with self._lock:
            state = (job.status, *self._progress_columns())
            if state != self._logged_state:
                self._logged_state = state
                self._explain_status()
                self._log(self._status_line())
            self.warn_if_stalled()

    def job_ended(self, job: Job) -> None:
        if job.pr_link is not None:
            self._console.redactor.show([job.pr_link])
        if job.is_agent_job and job.failure is None:
            self._note(f"Pull request: {job.pr_link}" if job.pr_link else "No pull request.")

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        self._console.warning(lines)

    def request_ended(self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        suffix = f", request id {request_id}" if request_id else ""
        self._write_debug(f"{request}: {outcome}, {milliseconds:.0f} ms{suffix}")

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        text, now = describe_retry(error, budget_seconds, pause_seconds), self._clock.monotonic()
        if server == API:
            self._in_api_outage = True
            self._note(text)
        elif now >= self._storage_error_logged_at + LINE_SECONDS:  # a connection may break many times a second
            self._storage_error_logged_at = now
            self._note_live(text)

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        if server == API:
            self._in_api_outage = False
            self._note(f"The API is responding again after {format_clock(after_seconds)}.")
        elif after_seconds >= MIN_REPORTED_OUTAGE_SECONDS:
            self._note_live(f"The download resumed after {format_clock(after_seconds)}.")

    def link_made(self, job: Job) -> None:
        self._note(f"Bundle link ready: {self._hidden_link(job)}")
        if job.masks_bundle_url and self._console.in_workflow:
            self._note(  # source: GitHub's documentation of job outputs
                "The link is masked, because `mask-bundle-url` is set: later steps of this job can read it, but GitHub drops job "
                f"outputs that contain it, also `results`. Another job can make a new link with `{job.inputs_to_collect}`."
            )
        elif job.masks_bundle_url:
            self._note("Outside a workflow, `mask-bundle-url` hides the link only if OUTPUT_ENV_FILE is set.")

    def link_renewed(self, job: Job) -> None:
        self._note(f"New bundle link: {self._hidden_link(job)}")

    def link_redirected(self, job: Job, url: str) -> None:
        self._console.redact_link(url)

    def link_expired(self, job: Job, error: str) -> None:
        self._note_live(f"{error}. Making a new link.")

    def downloading(self, job: Job) -> None:
        self._begin_phase(self._download_line)

    def storage_responded(self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None) -> None:
        self._connections += status in {200, 206}
        requested_range = f" {requested}" if requested is not None else ""
        suffix = f", request id {request_id}" if request_id is not None else ""
        self._write_debug(f"GET {without_query(address)}{requested_range}: {status}{suffix}")

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        self._received_bytes, self._bundle_bytes = received, size
        self._log_progress()

    def download_restarted(self, job: Job, reason: str) -> None:
        self._received_bytes = self._logged_bytes = 0
        self._note(f"Restarting the download: {reason}.")

    def downloaded(self, job: Job) -> None:
        downloaded = job.downloaded
        assert downloaded is not None  # noqa: S101  # for the type checker: it is set before the event
        duration = format_seconds(self._clock.monotonic() - self._phase_began)
        connections = f" over {self._connections} connections" if self._connections > 1 else ""
        digest = f"{downloaded.sha256[:4]}…{downloaded.sha256[-4:]}"
        self._note(f"Downloaded {format_bytes(downloaded.size)} in {duration}{connections}, SHA-256 {digest}")

    def archive_saved(self, job: Job) -> None:
        self._note(f"Saved the archive to {job.bundle_path}")

    def unpacking(self, job: Job) -> None:
        self._begin_phase(self._unpack_line)

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        self._unpacked_files, self._unpacked_bytes = files, size
        self._log_progress()

    def unpacked(self, job: Job) -> None:
        self._note(f"Unpacked {pluralize(job.site_files or 0, 'file')} to {job.site_path}/")

    def values_written(self, job: Job) -> None:
        self._note(f"Wrote the Helm values file {job.values_file}")

    def _explain_status(self) -> None:
        status = self.job.status
        is_explained = status is None or status in self._known_statuses or status in self._explained_statuses
        if status is not None and not is_explained and len(self._explained_statuses) < MAX_STATUSES:
            self._explained_statuses.add(status)
            self._note(f"The platform reports the unknown status '{self._shorten(status)}'; waiting continues.")

    def _shorten(self, status: str) -> str:
        """Hide secrets in a status, then shorten it. The other order could leave part of a secret."""
        status = self._console.safe(status)
        return status if len(status) <= MAX_WORD_LENGTH else f"{status[:MAX_WORD_LENGTH]}…"

    def _log(self, text: str) -> None:
        with self._lock:
            self._last_line_at = self._clock.monotonic()
            self._write_line(text)

    def _note(self, text: str) -> None:
        self._log(f"  {text}")

    def _note_live(self, text: str) -> None:
        """Log a line that a log of several jobs also shows live."""
        self._note(text)

    def _write_line(self, text: str) -> None:
        self._console.line(text)

    def _write_debug(self, text: str) -> None:
        self._console.debug(text)

    def _hidden_link(self, job: Job) -> str:
        """Keep the secrets of the job's link out of the log, and return the rest of it with its expiry."""
        bundle = job.bundle
        assert bundle is not None  # noqa: S101  # for the type checker: it is set before the event
        date = bundle.expires_at if bundle.expires is not None else None  # any other text may repeat a secret
        self._console.redact_link(bundle.url, names=[job.job_id, date])
        if job.masks_bundle_url:
            self._console.mask_in_job(bundle.url)
        until = f", {format_expiry(bundle.expires, self._clock.now())}" if bundle.expires is not None else ""
        return f"{without_query(bundle.url)}{until}"

    def _progress_columns(self) -> tuple[str, str]:
        """Return the percentage and the page count, each empty where it is not known. An ended job has no earlier count."""
        progress, count, reading = self.job.progress, self.job.pages_so_far, self.job.export_job  # read once: threads change them
        count = reading.page_count if reading is not None and reading.has_ended else count
        percent = "" if progress is None or self.job.status == ExportJob.COMPLETED else f"{int(progress)} %"
        return percent, "" if count is None else pluralize(count, "page")

    def _status_line(self) -> str:
        job, estimate, now = self.job, self.job.estimate, self._clock.monotonic()
        percent, pages = self._progress_columns()
        elapsed = format_clock(now - self._polling_since)
        remaining = estimate.remaining_seconds(now) if estimate and self._stalled_seconds() < STALL_SECONDS else None
        eta = "" if remaining is None else f"    about {format_eta(remaining)} left"
        state = self._shorten(job.status) if job.status else "waiting" if job.job_id else "starting"
        return f"  {state:<10} {percent:>5} {pages:>12} {elapsed:>9}{eta}"

    def _download_line(self) -> str:
        now, received, total = self._clock.monotonic(), self._received_bytes, self._bundle_bytes  # read once, as above
        rate = max(received - self._logged_bytes, 0) / max(now - self._progress_logged_at, 1.0)
        percent = f"{100 * received // total} %" if total else ""
        size = f"{format_bytes(received)} of {format_bytes(total)}" if total else format_bytes(received)
        return f"  downloading {percent:>5} {size:>24} {format_bytes(rate):>12}/s {format_clock(now - self._phase_began):>9}"

    def _unpack_line(self) -> str:
        elapsed = format_clock(self._clock.monotonic() - self._phase_began)
        return f"  unpacking {pluralize(self._unpacked_files, 'file'):>18}, {format_bytes(self._unpacked_bytes)} {elapsed:>9}"

    def _begin_phase(self, line: Callable[[], str]) -> None:
        self._phase_began = self._progress_logged_at = self._clock.monotonic()
        self._logged_bytes = 0
        self._current_line = line

    def _log_progress(self) -> None:
        now = self._clock.monotonic()
        if now >= self._progress_logged_at + LINE_SECONDS:
            self._log(self._current_line())
            self._progress_logged_at, self._logged_bytes = now, self._received_bytes

    def _stalled_seconds(self) -> float:
        since = self.job.estimate.stalled_since if self.job.estimate else None
        return 0.0 if since is None else self._clock.monotonic() - since
