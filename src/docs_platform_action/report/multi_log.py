"""The log of several exports: live lines when something changes, and the whole log of each domain at the end."""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..clock import Clock
from ..events import Events
from ..job import CANCELLED, NOT_STARTED, STARTED, VERDICTS, Job
from ..models import API, ExportJob
from ..text import describe_retry, format_clock
from .console import Console
from .domain_text import MAX_LISTED_NAMES, describe_duration, describe_outcome, describe_progress, describe_unstarted, list_names
from .failures import failure_lines
from .job_log import HEARTBEAT_SECONDS, JobLog

RUNNING: Final = "running"
PENDING: Final = "pending"
STAGES: Final = (*VERDICTS, RUNNING, PENDING)
"""The stages of a domain, in the order in which they are counted."""

MAX_STATUSES: Final = 8
"""Status changes of one domain that are shown live."""

QUIET_SECONDS: Final = 30.0
"""Shortest time between two live lines about an outage: short failures of many domains would fill the log."""

_MAX_NAME_WIDTH: Final = 40
_CHANGE_WIDTH: Final = 54


class MultiLog(Events):
    """Writes live lines, and in `close` the log of each domain; later events are ignored. Safe to use from several threads."""

    def __init__(self, console: Console, clock: Clock, jobs: Sequence[Job], *, max_parallel: int) -> None:
        super().__init__()
        self._console = console
        self._clock = clock
        self._domains = {id(job): _DomainLog(self, console, clock, job) for job in jobs}
        self._stage_counts = Counter({PENDING: len(jobs)})
        self._max_parallel = max_parallel
        self._explained_statuses = {*ExportJob.KNOWN_STATUSES}
        self._name_width = min(max(len(job.domain or "") for job in jobs), _MAX_NAME_WIDTH)
        self._began = self._last_line_at = clock.monotonic()
        self._shown_counts = ""
        self._outage = _SharedOutage()
        self._notices_quiet_until = float("-inf")
        self._shown_warnings: set[tuple[str, ...]] = set()
        self._closed = False
        self._lock = threading.RLock()  # taken after the lock of a domain's log, never before it

    def begin(self) -> None:
        """Write the title."""
        count = len(self._domains)
        parallel = f"{self._max_parallel} at a time" if self._max_parallel < count else "all in parallel"
        self._console.line(f"Static export of {count:,} domains, {parallel}")

    def heartbeat(self) -> None:
        for domain in self._running():
            domain.warn_if_stalled()
        with self._lock:
            if self._clock.monotonic() - self._last_line_at < HEARTBEAT_SECONDS:
                return
            running = [domain.job for domain in self._running()]
            affected = [domain.job for domain in self._outage.affected]
            self._shown_counts = text = self._describe_counts()
            if len(running) <= MAX_LISTED_NAMES:
                text = text.replace(RUNNING, f"{RUNNING} ({', '.join(map(describe_progress, running))})")
            if affected:
                names = f" for {list_names(affected)}" if len(affected) < len(running) else ""
                text += f"    (no successful response from the API{names})"
            self._write(text)

    def close(self) -> None:
        """Write the final counts, the domains that were not started, and the log of each domain."""
        with self._lock:
            if self._closed:
                return
            for domain in self._domains.values():
                if domain.stage == PENDING:
                    self._set_stage(domain, NOT_STARTED)
                elif domain.stage == RUNNING and domain.job.failure is not None:  # its end was not announced
                    self._set_stage(domain, domain.job.verdict)
            if self._describe_counts() != self._shown_counts:
                self._write(self._describe_counts())
            for line in describe_unstarted(domain.job for domain in self._domains.values() if domain.stage == NOT_STARTED):
                self._console.line(f"  {line}")
            self._closed = True
            logged = [domain for domain in self._domains.values() if domain.lines]
        now = self._clock.monotonic()
        if logged:
            self._console.line("The log of each domain, by the time of day in UTC:")
        for domain in logged:
            duration = describe_duration(domain.job, domain.stage, domain.job.duration_seconds(now))
            self._console.group(f"{domain.job.domain}: {duration}", domain.lines)

    def job_begun(self, job: Job) -> None:
        super().job_begun(job)
        domain = self._domains[id(job)]
        with self._lock:
            if domain.stage == PENDING:
                self._set_stage(domain, RUNNING)

    def job_known(self, job: Job) -> None:
        super().job_known(job)
        domain = self._domains[id(job)]
        with self._lock:
            domain.status = job.status or ExportJob.QUEUED  # needs no line of its own
            self._show(domain, f"started, job-id: {job.job_id}", counts=True)

    def status_read(self, job: Job) -> None:
        super().status_read(job)
        domain, status = self._domains[id(job)], job.status
        with self._lock:
            if status is None or status == domain.status:
                return
            domain.status = status
            if status in {ExportJob.COMPLETED, ExportJob.FAILED} or status in domain.unknown_statuses:
                return  # `job_ended` shows how a job ended
            if status not in ExportJob.KNOWN_STATUSES:
                domain.unknown_statuses.add(status)
            domain.shown_statuses += 1
            if domain.shown_statuses > MAX_STATUSES:
                return  # the domain's own log shows every change
            is_explained = status in self._explained_statuses
            self._explained_statuses.add(status)
            self._show(domain, status if is_explained else f"reports the unknown status '{status}'; waiting continues")

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        super().retrying(job, server, error, budget_seconds=budget_seconds, pause_seconds=pause_seconds)
        domain = self._domains[id(job)]
        with self._lock:
            if server == API and self._outage.begin(domain, self._clock.monotonic()):
                self._show(domain, describe_retry(error, budget_seconds, pause_seconds))

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        super().recovered(job, server, after_seconds=after_seconds)
        domain = self._domains[id(job)]
        with self._lock:
            outage_seconds = self._outage.end(domain, self._clock.monotonic()) if server == API else None
            if outage_seconds is not None:
                self._show(domain, f"The API is responding again after {format_clock(max(outage_seconds, after_seconds))}.")

    def job_ended(self, job: Job) -> None:
        super().job_ended(job)
        domain = self._domains[id(job)]
        with self._lock:
            if domain.stage not in {RUNNING, PENDING}:
                return
            self._set_stage(domain, job.verdict if domain.stage == RUNNING else NOT_STARTED)
            self._outage.remove(domain)
            if domain.lines and job.failure is not None:
                domain.lines += map(self._timed, failure_lines(job, job.failure))
            if domain.stage not in {NOT_STARTED, STARTED}:  # `close` and `job_known` show these
                self._show(domain, describe_outcome(job, self._clock.now()), counts=domain.stage != CANCELLED)

    def keep_line(self, domain: "_DomainLog", text: str) -> None:
        with self._lock:
            if not self._closed:
                domain.lines.append(self._timed(text.removeprefix("  ")))

    def show_notice(self, domain: "_DomainLog", text: str) -> None:
        """Show a notice about a bundle, unless one was shown recently: all domains probably share the storage."""
        with self._lock:
            now = self._clock.monotonic()
            if now >= self._notices_quiet_until:
                self._notices_quiet_until = now + QUIET_SECONDS
                self._show(domain, text)

    def show_warning(self, domain: "_DomainLog", lines: Sequence[str]) -> None:
        """Keep a warning in the domain's own log, and show it unless the same one was shown."""
        title, *details = lines
        with self._lock:
            if self._closed:
                return
            domain.lines += map(self._timed, [f"Warning: {title}", *(f"  {detail}" for detail in details)])
            if tuple(lines) not in self._shown_warnings:
                self._shown_warnings.add(tuple(lines))
                self._last_line_at = self._clock.monotonic()
                self._console.warning(lines)

    def show_debug(self, domain: "_DomainLog", text: str) -> None:
        with self._lock:
            if not self._closed:
                self._console.debug(f"{domain.job.domain}: {text}")

    def _listeners_of(self, job: Job) -> Sequence[Events]:
        return (self._domains[id(job)],)

    def _timed(self, text: str) -> str:
        return f"{self._clock.now():%H:%M:%S}  {text}"

    def _show(self, domain: "_DomainLog", text: str, *, counts: bool = False) -> None:
        counted = self._describe_counts()
        if counts and counted != self._shown_counts:
            self._shown_counts = counted
            text = f"{text:<{_CHANGE_WIDTH}}  {counted}"
        self._write(f"{domain.job.domain:<{self._name_width}}  {text}")

    def _write(self, text: str) -> None:
        if not self._closed:
            self._last_line_at = self._clock.monotonic()
            self._console.line(f"{format_clock(self._last_line_at - self._began):>7}  {text}")

    def _set_stage(self, domain: "_DomainLog", stage: str) -> None:
        """Change a domain's stage and the counts: to count all domains for each line would take quadratic time."""
        self._stage_counts[domain.stage] -= 1
        self._stage_counts[stage] += 1
        domain.stage = stage

    def _describe_counts(self) -> str:
        return ", ".join(f"{self._stage_counts[stage]:,} {stage}" for stage in STAGES if self._stage_counts[stage])

    def _running(self) -> "Sequence[_DomainLog]":
        return [domain for domain in self._domains.values() if domain.stage == RUNNING]


class _DomainLog(JobLog):
    """The log of one domain, kept in `lines`. `status` is the last one that was read."""

    def __init__(self, multi_log: MultiLog, console: Console, clock: Clock, job: Job) -> None:
        super().__init__(console, clock, job)
        self.job = job
        self.stage = PENDING
        self.status: str | None = None
        self.unknown_statuses: set[str] = set()
        self.shown_statuses = 0
        self.lines: list[str] = []
        self._multi_log = multi_log

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        self._multi_log.show_warning(self, lines)

    def _note_live(self, text: str) -> None:
        super()._note_live(text)
        self._multi_log.show_notice(self, text)

    def _write_line(self, text: str) -> None:
        self._multi_log.keep_line(self, text)

    def _write_debug(self, text: str) -> None:
        self._multi_log.show_debug(self, text)


class _SharedOutage:
    """An outage of the API that affects several domains; one of them reports it for all."""

    def __init__(self) -> None:
        self.affected: dict[_DomainLog, None] = {}  # in the order in which the outage reached them
        self._reporter: _DomainLog | None = None
        self._since: float | None = None
        self._quiet_until = float("-inf")

    def begin(self, domain: _DomainLog, now: float) -> bool:
        """Record an affected domain; return whether to show the outage."""
        self.affected[domain] = None
        if self._since is not None or now < self._quiet_until:
            return False
        self._since, self._reporter, self._quiet_until = now, domain, now + QUIET_SECONDS
        return True

    def end(self, domain: _DomainLog, now: float) -> float | None:
        """Record that a domain has recovered; return the outage's length in seconds if its end should be shown."""
        self.affected.pop(domain, None)
        if self._since is None or self._reporter not in (None, domain):
            return None
        outage_seconds, self._since = now - self._since, None
        return outage_seconds

    def remove(self, domain: _DomainLog) -> None:
        """Remove a domain that has ended. If it was the reporter, the next domain to recover reports the end."""
        self.affected.pop(domain, None)
        if self._reporter is domain:
            self._reporter = None
            self._since = self._since if self.affected else None
