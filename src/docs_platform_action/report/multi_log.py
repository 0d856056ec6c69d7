"""The log of several exports: live lines when something changes, and the whole log of each domain at the end."""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from ..clock import Clock
from ..events import Events
from ..job import CANCELLED, NOT_STARTED, STARTED, VERDICTS, Job
from ..models import API, ExportJob
from ..text import describe_retry, format_clock
from .console import Console
from .domain_text import MAX_LISTED_NAMES, describe_duration, describe_outcome, describe_unstarted, list_names
from .failures import failure_lines
from .job_log import HEARTBEAT_SECONDS, MAX_STATUSES, JobLog
from .kept_lines import KeptLines

RUNNING: Final = "running"
PENDING: Final = "pending"
STAGES: Final = (*VERDICTS, RUNNING, PENDING)
"""The stages of a domain, in the order in which they are counted."""

QUIET_SECONDS: Final = 30.0
"""Shortest time between two live lines about an outage: short failures of many domains would fill the log."""

_MAX_NAME_WIDTH: Final = 40
_CHANGE_WIDTH: Final = 54


class MultiLog(Events):
    """Forwards each event to the log of its domain, one at a time. Nothing is logged after `close`."""

    def __init__(self, console: Console, clock: Clock, jobs: Sequence[Job]) -> None:
        self.explained_statuses = {*ExportJob.KNOWN_STATUSES}
        self.outage = _SharedOutage()
        self.is_closed = False
        self._console = console
        self._clock = clock
        self._domains = {job: _DomainLog(self, console, clock, job) for job in jobs}
        self._stage_counts = Counter({PENDING: len(jobs)})
        self._name_width = min(max(len(job.domain or "") for job in jobs), _MAX_NAME_WIDTH)
        self._began = self._last_line_at = clock.monotonic()
        self._shown_counts = ""
        self._notices_quiet_until = float("-inf")
        self._shown_warnings: set[tuple[str, ...]] = set()
        self._lock = threading.Lock()

    def _forward(self, event: str, *args: Any, **kwargs: Any) -> None:
        job = args[0]
        with self._lock:
            getattr(self._domains[job], event)(*args, **kwargs)

    def begin(self, *, max_parallel: int) -> None:
        """Write the title."""
        count = len(self._domains)
        parallel = f"{max_parallel} at a time" if max_parallel < count else "all in parallel"
        self._console.line(f"Static export of {count:,} domains, {parallel}")

    def heartbeat(self) -> None:
        with self._lock:
            running = [domain for domain in self._domains.values() if domain.stage == RUNNING]
            for domain in running:
                domain.warn_if_stalled()
            if self._clock.monotonic() - self._last_line_at < HEARTBEAT_SECONDS:
                return
            self._shown_counts = text = self._describe_counts()
            if len(running) <= MAX_LISTED_NAMES:
                text = text.replace(RUNNING, f"{RUNNING} ({', '.join(domain.describe_progress() for domain in running)})")
            if affected := [*self.outage.affected]:
                names = f" for {list_names(affected)}" if len(affected) < len(running) else ""
                text += f"    (no successful response from the API{names})"
            self._write(text)

    def close(self) -> None:
        """Write the final counts, the domains that were not started, and the log of each domain."""
        with self._lock:
            if self.is_closed:
                return
            for domain in self._domains.values():
                if domain.stage == PENDING:
                    self.set_stage(domain, NOT_STARTED)
                elif domain.stage == RUNNING and domain.job.failure is not None:  # its end was not announced
                    self.set_stage(domain, domain.job.verdict)
            if self._describe_counts() != self._shown_counts:
                self._write(self._describe_counts())
            self.is_closed = True
        for line in describe_unstarted(job for job, domain in self._domains.items() if domain.stage == NOT_STARTED):
            self._console.line(f"  {line}")
        logged = [domain for domain in self._domains.values() if domain.lines]
        if logged:
            self._console.line("The log of each domain, by the time of day in UTC:")
        for domain in logged:
            with self._console.bugs_as_warnings("The log of a domain"):
                duration = describe_duration(domain.job, domain.stage, self._clock.monotonic())
                self._console.group(f"{domain.job.domain}: {duration}", domain.lines)

    def set_stage(self, domain: "_DomainLog", stage: str) -> None:
        """Change a domain's stage and the counts: to count all domains for each line would take quadratic time."""
        self._stage_counts[domain.stage] -= 1
        self._stage_counts[stage] += 1
        domain.stage = stage

    def show(self, job: Job, text: str, *, counts: bool = False) -> None:
        """Show a line about a domain, with the counts if they have changed."""
        counted = self._describe_counts()
        if counts and counted != self._shown_counts:
            self._shown_counts = counted
            text = f"{text:<{_CHANGE_WIDTH}}  {counted}"
        self._write(f"{job.domain:<{self._name_width}}  {text}")

    def show_notice(self, job: Job, text: str) -> None:
        """Show a notice about a bundle, unless one was shown recently: all domains probably share the storage."""
        now = self._clock.monotonic()
        if now >= self._notices_quiet_until:
            self._notices_quiet_until = now + QUIET_SECONDS
            self.show(job, text)

    def show_warning(self, lines: Sequence[str]) -> None:
        """Show a warning, unless the same one was shown."""
        if not self.is_closed and tuple(lines) not in self._shown_warnings:
            self._shown_warnings.add(tuple(lines))
            self._last_line_at = self._clock.monotonic()
            self._console.warning(lines)

    def _write(self, text: str) -> None:
        if not self.is_closed:
            self._last_line_at = self._clock.monotonic()
            self._console.line(f"{format_clock(self._last_line_at - self._began):>7}  {text}")

    def _describe_counts(self) -> str:
        return ", ".join(f"{self._stage_counts[stage]:,} {stage}" for stage in STAGES if self._stage_counts[stage])


class _DomainLog(JobLog):
    """Keeps the log of one domain in `lines`, however often it changes, and shows its main events live."""

    def __init__(self, multi_log: MultiLog, console: Console, clock: Clock, job: Job) -> None:
        super().__init__(console, clock, job)
        self.stage = PENDING
        self.lines = KeptLines()
        self._multi_log = multi_log
        self._status: str | None = None
        self._unknown_statuses: set[str] = set()
        self._shown_statuses = 0

    def job_begun(self, job: Job) -> None:
        super().job_begun(job)
        if self.stage == PENDING:
            self._multi_log.set_stage(self, RUNNING)

    def job_known(self, job: Job) -> None:
        super().job_known(job)
        self._status = job.status or ExportJob.QUEUED  # needs no line of its own
        self._multi_log.show(job, f"started, job-id: {job.job_id}", counts=True)

    def status_read(self, job: Job) -> None:
        super().status_read(job)
        status = job.status
        if status is None or status == self._status:
            return
        self._status = status
        if status in {ExportJob.COMPLETED, ExportJob.FAILED} or status in self._unknown_statuses:
            return  # `job_ended` shows how a job ended
        if self._shown_statuses == MAX_STATUSES:  # the domain's own log shows further changes
            return
        self._shown_statuses += 1
        if status not in ExportJob.KNOWN_STATUSES:
            self._unknown_statuses.add(status)
        shown = self._shorten(status)
        is_explained = shown in self._multi_log.explained_statuses
        self._multi_log.explained_statuses.add(shown)
        self._multi_log.show(job, shown if is_explained else f"reports the unknown status '{shown}'; waiting continues")

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        super().retrying(job, server, error, budget_seconds=budget_seconds, pause_seconds=pause_seconds)
        if server == API and self._multi_log.outage.begin(job, self._clock.monotonic()):
            self._multi_log.show(job, describe_retry(error, budget_seconds, pause_seconds))

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        super().recovered(job, server, after_seconds=after_seconds)
        outage_seconds = self._multi_log.outage.end(job, self._clock.monotonic()) if server == API else None
        if outage_seconds is not None:
            self._multi_log.show(job, f"The API is responding again after {format_clock(max(outage_seconds, after_seconds))}.")

    def job_ended(self, job: Job) -> None:
        if self.stage not in {RUNNING, PENDING}:
            return
        self._multi_log.set_stage(self, job.verdict if self.stage == RUNNING else NOT_STARTED)
        self._multi_log.outage.remove(job)
        if self.lines and job.failure is not None:
            self._keep(*failure_lines(job, job.failure))
        if self.stage not in {NOT_STARTED, STARTED}:  # `close` and `job_known` show these
            self._multi_log.show(job, describe_outcome(job, self._clock.now()), counts=self.stage != CANCELLED)

    def describe_progress(self) -> str:
        """Return the job's domain, status and percentage."""
        status, progress = self.job.status, self.job.progress  # read once: another thread may change them
        percent = f" {int(progress)} %" if progress is not None and status != ExportJob.COMPLETED else ""
        return f"{self.job.domain} {self._shorten(status) if status else 'starting'}{percent}"

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        title, *details = lines
        self._keep(f"Warning: {title}", *(f"  {detail}" for detail in details))
        self._multi_log.show_warning(lines)

    def _note_live(self, text: str) -> None:
        super()._note_live(text)
        self._multi_log.show_notice(self.job, text)

    def _write_line(self, text: str) -> None:
        self._keep(text.removeprefix("  "))

    def _write_debug(self, text: str) -> None:
        if not self._multi_log.is_closed:
            self._console.debug(f"{self.job.domain}: {text}")

    def _keep(self, *lines: str) -> None:
        if not self._multi_log.is_closed:
            for line in lines:  # made safe, and thereby shortened, now: foreign text may be much longer
                self.lines.append(self._console.safe(f"{self._clock.now():%H:%M:%S}  {line}"))


class _SharedOutage:
    """An outage of the API that affects several jobs; one of them reports it for all."""

    def __init__(self) -> None:
        self.affected: dict[Job, None] = {}  # in the order in which the outage reached them
        self._reporter: Job | None = None
        self._since: float | None = None
        self._quiet_until = float("-inf")

    def begin(self, job: Job, now: float) -> bool:
        """Record an affected job; return whether to show the outage."""
        self.affected[job] = None
        if self._since is not None or now < self._quiet_until:
            return False
        self._since, self._reporter, self._quiet_until = now, job, now + QUIET_SECONDS
        return True

    def end(self, job: Job, now: float) -> float | None:
        """Record that a job has recovered; return the outage's length in seconds if its end should be shown."""
        self.affected.pop(job, None)
        if self._since is None or self._reporter not in (None, job):
            return None
        outage_seconds, self._since = now - self._since, None
        return outage_seconds

    def remove(self, job: Job) -> None:
        """Remove a job that has ended. If it was the reporter, the next job to recover reports the end."""
        self.affected.pop(job, None)
        if self._reporter is job:
            self._reporter = None
            self._since = self._since if self.affected else None
