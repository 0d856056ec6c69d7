"""The log of one job: a line when something changes, one for each outage, and a heartbeat while nothing changes."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ..clock import Clock
from ..events import Events
from ..job import DOWNLOAD, UNPACK, Job
from ..models import AGENT, API, AgentJob, Bundle, ExportJob
from ..text import (
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

STALL_SECONDS: Final = 600.0
"""How long progress may stand still before people are warned."""

LINE_SECONDS: Final = 10.0
"""The pause between two progress lines of a download or of unpacking, and between two reports of storage errors."""

MIN_REPORTED_OUTAGE_SECONDS: Final = 5.0
"""The end of a shorter storage outage is not reported: its beginning was."""


class JobLog(Events):
    """Writes the log of one job. Safe to use from several threads.

    `warning`, the `_write_…` methods, `_note_at_once` and `_mask_explanation` are what a log of several jobs overrides.
    """

    def __init__(self, console: Console, clock: Clock, job: Job) -> None:
        self._console = console
        self._clock = clock
        self._job = job
        self._lock = threading.RLock()
        self._explained_statuses = {*(AgentJob if job.mode == AGENT else ExportJob).KNOWN_STATUSES}
        self._shown: tuple[object, ...] = ()
        self._last_line_at = self._polling_since = clock.monotonic()
        self._in_api_outage = False
        self._storage_error_logged_at = float("-inf")
        self._warned_of_standstill = False
        self._phase: str | None = None
        self._phase_began = self._progress_logged_at = clock.monotonic()
        self._received_bytes = self._logged_bytes = 0
        self._bundle_bytes: int | None = None
        self._connections = 0
        self._unpacked_files = self._unpacked_bytes = 0

    def heartbeat(self, every_seconds: float) -> None:
        """Write the current state if nothing was logged for this long."""
        with self._lock:
            self.check_for_standstill()
            if self._clock.monotonic() - self._last_line_at >= every_seconds:
                self._log(self._current_line() + ("    (no successful response from the API)" if self._in_api_outage else ""))

    def check_for_standstill(self) -> None:
        """Warn, once a job, when its progress stands still. During an outage nobody knows whether it does."""
        with self._lock:
            job, now = self._job, self._clock.monotonic()
            seconds = self._stood_still_seconds(now)
            if self._in_api_outage or self._warned_of_standstill or seconds < STALL_SECONDS:
                return
            self._warned_of_standstill = True
            today = self._clock.now()
            state = ", ".join(filter(None, self._shown_progress())) or f"'{job.status}'"
            lines = [
                f"{job.subject}: no progress for {format_clock(seconds)}",
                f"It has been at {state} since {format_time(today - timedelta(seconds=seconds), today)}.",
                "Waiting continues until `timeout`.",
                f"Check job {job.job_id} in the dashboard. To attach to it later, use `job-id: {job.job_id}`",
            ]
            self.warning(job, lines)

    def close(self) -> None:
        """Do nothing: every line is written at once."""

    def job_begun(self, job: Job) -> None:
        if job.mode == AGENT:
            self._log(job.subject)
        else:
            self._log(f"Static export of {job.domain}" if job.domain else "Static export")

    def job_known(self, job: Job) -> None:
        if job.was_started_here:
            self._note(f"Job {job.job_id} started (attach to it later with job-id: {job.job_id})")
        elif job.mode != AGENT:  # an agent's job is in the title
            self._note(f"Attaching to job {job.job_id}.")

    def not_waiting(self, job: Job) -> None:
        self._note("Not waiting for it, because `wait` is `false`.")

    def polling(self, job: Job) -> None:
        self._polling_since = self._clock.monotonic()

    def status_read(self, job: Job) -> None:
        with self._lock:
            state = (job.status, *self._shown_progress())
            if state != self._shown:
                self._shown = state
                if job.status is not None and job.status not in self._explained_statuses:
                    self._explained_statuses.add(job.status)
                    self._note(
                        f"The platform reports the status '{job.status}', which the action does not know; waiting continues."
                    )
                self._log(self._status_line())
            self.check_for_standstill()

    def job_ended(self, job: Job) -> None:
        if job.mode == AGENT and job.failure is None:
            self._note(f"Pull request: {job.pr_link}" if job.pr_link else "No pull request.")

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        self._console.warning(lines)

    def request_ended(self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        named = f" request id {request_id}" if request_id else ""
        self._write_debug(f"{request}: {outcome}, {milliseconds:.0f} ms{named}")

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        text = describe_retry(error, budget_seconds, pause_seconds)
        if server == API:
            self._in_api_outage = True
            self._note(text)
            return
        now = self._clock.monotonic()
        if now >= self._storage_error_logged_at + LINE_SECONDS:  # a connection may keep breaking
            self._storage_error_logged_at = now
            self._note_at_once(text)

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        if server == API:
            self._in_api_outage = False
            self._note(f"The API is responding again after {format_clock(after_seconds)}.")
        elif after_seconds >= MIN_REPORTED_OUTAGE_SECONDS:
            self._note_at_once(f"The download resumed after {format_clock(after_seconds)}.")

    def link_made(self, job: Job, *, masked: bool) -> None:
        bundle = self._hide_link(job, masked=masked)
        until = f", {format_expiry(bundle.expires, self._clock.now())}" if bundle.expires is not None else ""
        self._note(f"Bundle link ready: {without_query(bundle.url)}{until}")
        if masked and self._console.in_workflow:
            self._note(self._mask_explanation(job))
        elif masked:
            self._note("Outside of a workflow nothing masks the link, which is in the outputs below.")

    def link_renewed(self, job: Job, *, masked: bool) -> None:
        self._hide_link(job, masked=masked)

    def link_redirected(self, job: Job, url: str) -> None:
        self._console.redact_link(url)

    def link_expired(self, job: Job, error: str) -> None:
        self._note_at_once(f"{error}. Making a fresh link.")

    def downloading(self, job: Job) -> None:
        self._begin_phase(DOWNLOAD)

    def storage_responded(self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None) -> None:
        self._connections += status in {200, 206}
        part = f" {requested}" if requested is not None else ""
        named = f", request id {request_id}" if request_id is not None else ""
        self._write_debug(f"GET {without_query(address)}{part}: {status}{named}")

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        self._received_bytes, self._bundle_bytes = received, size
        self._log_progress()

    def download_restarted(self, job: Job, reason: str) -> None:
        self._received_bytes = self._logged_bytes = 0
        self._note(f"Restarting the download: {reason}.")

    def download_moved(self, job: Job) -> None:
        self._received_bytes = self._logged_bytes = 0
        self._note("The bundle does not fit in the runner's temporary folder. Using the disk of the workspace instead.")

    def downloaded(self, job: Job) -> None:
        downloaded = job.downloaded
        assert downloaded is not None  # noqa: S101  # it is set before the event; this tells the type checker
        kept = f" to {job.bundle_path}" if job.bundle_path is not None else ""
        took = format_seconds(self._clock.monotonic() - self._phase_began)
        over = f" over {self._connections} connections" if self._connections > 1 else ""
        shortened = f"{downloaded.sha256[:4]}…{downloaded.sha256[-4:]}"
        self._note(f"Downloaded {format_bytes(downloaded.size)}{kept} in {took}{over}, SHA-256 {shortened}")

    def archive_saved(self, job: Job) -> None:
        self._note(f"Saved the archive to {job.bundle_path}")

    def unpacking(self, job: Job) -> None:
        self._begin_phase(UNPACK)

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        self._unpacked_files, self._unpacked_bytes = files, size
        self._log_progress()

    def unpacked(self, job: Job) -> None:
        self._note(f"Unpacked {pluralize(job.site_files or 0, 'file')} to {job.site_path}/")

    def values_written(self, job: Job) -> None:
        self._note(f"Wrote the Helm values file {job.values_file}")

    def _log(self, text: str) -> None:
        with self._lock:
            self._last_line_at = self._clock.monotonic()
            self._write_line(text)

    def _note(self, text: str) -> None:
        self._log(f"  {text}")

    def _note_at_once(self, text: str) -> None:
        """Log what should be seen at once, even among many jobs."""
        self._note(text)

    def _write_line(self, text: str) -> None:
        self._console.line(text)

    def _write_debug(self, text: str) -> None:
        self._console.debug(text)

    def _mask_explanation(self, job: Job) -> str:
        """Explain what masking the link means. Source: GitHub's documentation of job outputs."""
        return (
            "The link is masked, because `mask-bundle-url` is set: later steps of this job can read `bundleUrl`, but GitHub "
            "drops it, and `results` with it, from job outputs. For another job, pass `jobId` on, and make a fresh link there "
            "with `job-id`."
        )

    def _hide_link(self, job: Job, *, masked: bool) -> Bundle:
        """Keep the secrets of the job's link out of the log, and return its bundle."""
        bundle = job.bundle
        assert bundle is not None  # noqa: S101  # it is set before the event; this tells the type checker
        self._console.redact_link(bundle.url, names=[job.job_id, bundle.expires_at])
        if masked:
            self._console.mask_in_job(bundle.url)
        return bundle

    def _shown_progress(self) -> tuple[str, str]:
        """Return the percentage and the page count, each empty where it is not known."""
        progress, count = self._job.progress, self._job.page_count  # read once: they may change during a heartbeat
        percent = "" if progress is None or self._job.status == ExportJob.COMPLETED else f"{int(progress)} %"
        return percent, "" if count is None else pluralize(count, "page")

    def _current_line(self) -> str:
        if self._phase == DOWNLOAD:
            return self._download_line()
        return self._unpack_line() if self._phase == UNPACK else self._status_line()

    def _status_line(self) -> str:
        job, now = self._job, self._clock.monotonic()
        percent, counted = self._shown_progress()
        elapsed = format_clock(now - self._polling_since)
        remaining = job.remaining_seconds(now) if self._stood_still_seconds(now) < STALL_SECONDS else None
        left = "" if remaining is None else f"    about {format_eta(remaining)} left"
        state = job.status or ("waiting" if job.job_id else "starting")
        return f"  {state:<10} {percent:>5} {counted:>12} {elapsed:>9}{left}"

    def _download_line(self) -> str:
        now, received, total = self._clock.monotonic(), self._received_bytes, self._bundle_bytes  # read once, as above
        rate = max(received - self._logged_bytes, 0) / max(now - self._progress_logged_at, 1.0)
        share = f"{100 * received // total} %" if total else ""
        so_far = f"{format_bytes(received)} of {format_bytes(total)}" if total else format_bytes(received)
        return f"  downloading {share:>5} {so_far:>24} {format_bytes(rate):>12}/s {format_clock(now - self._phase_began):>9}"

    def _unpack_line(self) -> str:
        elapsed = format_clock(self._clock.monotonic() - self._phase_began)
        return f"  unpacking {pluralize(self._unpacked_files, 'file'):>18}, {format_bytes(self._unpacked_bytes)} {elapsed:>9}"

    def _begin_phase(self, name: str) -> None:
        self._phase_began = self._progress_logged_at = self._clock.monotonic()
        self._logged_bytes = 0
        self._phase = name

    def _log_progress(self) -> None:
        """Write the phase's line if the last one was long ago."""
        now = self._clock.monotonic()
        if now >= self._progress_logged_at + LINE_SECONDS:
            self._log(self._current_line())
            self._progress_logged_at, self._logged_bytes = now, self._received_bytes

    def _stood_still_seconds(self, now: float) -> float:
        since = self._job.stalled_since
        return 0.0 if since is None else now - since
