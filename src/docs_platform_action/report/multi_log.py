"""The log of several exports: live lines when something changes, and the whole log of each domain at the end."""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ..clock import Clock
from ..events import Events
from ..job import CANCELLED, NOT_STARTED, STARTED, Job
from ..models import API, ExportJob
from ..text import describe_retry, format_clock
from .console import Console
from .domain_state import (
    MAX_LISTED_DOMAINS,
    PENDING,
    RUNNING,
    STAGES,
    DomainState,
    describe_duration,
    describe_not_started,
    describe_outcome,
    describe_progress,
    list_names,
)
from .failures import failure_lines
from .job_log import HEARTBEAT_SECONDS, JobLog

MAX_STATUSES: Final = 8
"""Status changes of one domain that are shown live."""

QUIET_SECONDS: Final = 30.0
"""Shortest time between two live lines about an outage: short failures of many domains would fill the log."""

_MAX_NAME_WIDTH: Final = 40
_CHANGE_WIDTH: Final = 54


class MultiLog(Events):
    """Writes the log of several exports. Safe to use from several threads.

    Live lines name their domain. Each job's own log is kept until `close` writes it; later events are ignored.
    """

    def __init__(self, console: Console, clock: Clock, jobs: Sequence[Job], *, max_parallel: int) -> None:
        super().__init__()
        self._console = console
        self._clock = clock
        self._states = {id(job): DomainState(job=job) for job in jobs}
        self._logs = {number: _DomainLog(self, console, clock, state) for number, state in self._states.items()}
        self._stage_counts = Counter({PENDING: len(self._states)})
        self._max_parallel = max_parallel
        self._explained_statuses = {*ExportJob.KNOWN_STATUSES}
        self._name_width = min(max(len(state.name) for state in self._states.values()), _MAX_NAME_WIDTH)
        self._began = self._last_line_at = clock.monotonic()
        self._shown_counts = ""
        self._outage = _SharedOutage()
        self._notices_quiet_until = float("-inf")
        self._shown_warnings: set[tuple[str, ...]] = set()
        self._closed = False
        self._lock = threading.RLock()  # a job's log may hold its own lock when it takes this one, never the other way round

    def begin(self) -> None:
        """Write the title."""
        count = len(self._states)
        parallel = f"{self._max_parallel} at a time" if self._max_parallel < count else "all in parallel"
        self._console.line(f"Static export of {count:,} domains, {parallel}")

    def heartbeat(self) -> None:
        for state in self._running():
            self._logs[id(state.job)].warn_if_stalled()
        with self._lock:
            if self._clock.monotonic() - self._last_line_at < HEARTBEAT_SECONDS:
                return
            running, affected = self._running(), [*self._outage.affected]
            self._shown_counts = text = self._describe_counts()
            if len(running) <= MAX_LISTED_DOMAINS:
                text = text.replace(RUNNING, f"{RUNNING} ({', '.join(map(describe_progress, running))})")
            if affected:
                domains = f" for {list_names(affected)}" if len(affected) < len(running) else ""
                text += f"    (no successful response from the API{domains})"
            self._write(text)

    def close(self) -> None:
        """Write the final counts, the domains that were not started, and the log of each domain."""
        with self._lock:
            if self._closed:
                return
            for state in self._states.values():
                if state.stage == PENDING:
                    self._set_stage(state, NOT_STARTED)
                elif state.stage == RUNNING and state.job.failure is not None:  # its end was not announced
                    self._set_stage(state, state.job.verdict)
            if self._describe_counts() != self._shown_counts:
                self._write(self._describe_counts())
            for line in describe_not_started(state for state in self._states.values() if state.stage == NOT_STARTED):
                self._console.line(f"  {line}")
            self._closed = True
            logged = [state for state in self._states.values() if state.lines]
        now = self._clock.monotonic()
        if logged:
            self._console.line("The log of each domain, by the time of day in UTC:")
        for state in logged:
            title = f"{state.name}: {describe_duration(state, state.job.duration_seconds(now))}"
            self._console.group(title, state.lines)

    def job_begun(self, job: Job) -> None:
        super().job_begun(job)
        state = self._states[id(job)]
        with self._lock:
            if state.stage == PENDING:
                self._set_stage(state, RUNNING)

    def job_known(self, job: Job) -> None:
        super().job_known(job)
        state = self._states[id(job)]
        with self._lock:
            state.status = job.status or ExportJob.QUEUED  # needs no line of its own
            self._show(state, f"started, job-id: {job.job_id}", counts=True)

    def status_read(self, job: Job) -> None:
        super().status_read(job)
        state, status = self._states[id(job)], job.status
        with self._lock:
            if status is None or status == state.status:
                return
            state.status = status
            if status in {ExportJob.COMPLETED, ExportJob.FAILED} or status in state.unknown_statuses:
                return  # `job_ended` shows the end with its result
            if status not in ExportJob.KNOWN_STATUSES:
                state.unknown_statuses.add(status)
            state.shown_statuses += 1
            if state.shown_statuses > MAX_STATUSES:
                return  # the domain's own log shows every change
            is_explained = status in self._explained_statuses
            self._explained_statuses.add(status)
            self._show(state, status if is_explained else f"reports the unknown status '{status}'; waiting continues")

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        super().retrying(job, server, error, budget_seconds=budget_seconds, pause_seconds=pause_seconds)
        state = self._states[id(job)]
        with self._lock:
            if server == API and self._outage.begin(state, self._clock.monotonic()):
                self._show(state, describe_retry(error, budget_seconds, pause_seconds))

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        super().recovered(job, server, after_seconds=after_seconds)
        state = self._states[id(job)]
        with self._lock:
            outage_seconds = self._outage.end(state, self._clock.monotonic()) if server == API else None
            if outage_seconds is not None:
                self._show(state, f"The API is responding again after {format_clock(max(outage_seconds, after_seconds))}.")

    def job_ended(self, job: Job) -> None:
        super().job_ended(job)
        state = self._states[id(job)]
        with self._lock:
            if state.stage not in {RUNNING, PENDING}:
                return
            self._set_stage(state, job.verdict if state.stage == RUNNING else NOT_STARTED)
            self._outage.remove(state)
            if state.lines and job.failure is not None:
                state.lines += map(self._timed, failure_lines(job, job.failure))
            if state.stage not in {NOT_STARTED, STARTED}:  # `close` and `job_known` show these
                self._show(state, describe_outcome(job, self._clock.now()), counts=state.stage != CANCELLED)

    def keep_line(self, state: DomainState, text: str) -> None:
        with self._lock:
            if not self._closed:
                state.lines.append(self._timed(text.removeprefix("  ")))

    def show_notice(self, state: DomainState, text: str) -> None:
        """Show a notice about a bundle, unless one was shown recently: all domains probably share the storage."""
        with self._lock:
            now = self._clock.monotonic()
            if now >= self._notices_quiet_until:
                self._notices_quiet_until = now + QUIET_SECONDS
                self._show(state, text)

    def show_warning(self, state: DomainState, lines: Sequence[str]) -> None:
        """Keep a warning in the domain's own log, and show it unless the same one was shown."""
        title, *details = lines
        with self._lock:
            if self._closed:
                return
            state.lines += map(self._timed, [f"Warning: {title}", *(f"  {detail}" for detail in details)])
            if tuple(lines) not in self._shown_warnings:
                self._shown_warnings.add(tuple(lines))
                self._last_line_at = self._clock.monotonic()
                self._console.warning(lines)

    def show_debug(self, state: DomainState, text: str) -> None:
        with self._lock:
            if not self._closed:
                self._console.debug(f"{state.name}: {text}")

    def _listeners_of(self, job: Job) -> Sequence[Events]:
        return (self._logs[id(job)],)

    def _timed(self, text: str) -> str:
        return f"{self._clock.now():%H:%M:%S}  {text}"

    def _show(self, state: DomainState, text: str, *, counts: bool = False) -> None:
        counted = self._describe_counts()
        if counts and counted != self._shown_counts:
            self._shown_counts = counted
            text = f"{text:<{_CHANGE_WIDTH}}  {counted}"
        self._write(f"{state.name:<{self._name_width}}  {text}")

    def _write(self, text: str) -> None:
        if not self._closed:
            self._last_line_at = self._clock.monotonic()
            self._console.line(f"{format_clock(self._last_line_at - self._began):>7}  {text}")

    def _set_stage(self, state: DomainState, stage: str) -> None:
        """Change a domain's stage and the counts: to count all domains for each line would take quadratic time."""
        self._stage_counts[state.stage] -= 1
        self._stage_counts[stage] += 1
        state.stage = stage

    def _describe_counts(self) -> str:
        return ", ".join(f"{self._stage_counts[stage]:,} {stage}" for stage in STAGES if self._stage_counts[stage])

    def _running(self) -> Sequence[DomainState]:
        return [state for state in self._states.values() if state.stage == RUNNING]


class _DomainLog(JobLog):
    """The log of one job of several, which hands its lines to the multi log."""

    def __init__(self, multi_log: MultiLog, console: Console, clock: Clock, state: DomainState) -> None:
        super().__init__(console, clock, state.job)
        self._multi_log = multi_log
        self._state = state

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        self._multi_log.show_warning(self._state, lines)

    def _note_live(self, text: str) -> None:
        super()._note_live(text)
        self._multi_log.show_notice(self._state, text)

    def _write_line(self, text: str) -> None:
        self._multi_log.keep_line(self._state, text)

    def _write_debug(self, text: str) -> None:
        self._multi_log.show_debug(self._state, text)


class _SharedOutage:
    """An outage of the API that affects several domains; one of them reports it for all."""

    def __init__(self) -> None:
        self.affected: dict[DomainState, None] = {}  # in the order in which the outage reached them
        self._reporter: DomainState | None = None
        self._since: float | None = None
        self._quiet_until = float("-inf")

    def begin(self, state: DomainState, now: float) -> bool:
        """Record an affected domain; return whether to show the outage."""
        self.affected[state] = None
        if self._since is not None or now < self._quiet_until:
            return False
        self._since, self._reporter, self._quiet_until = now, state, now + QUIET_SECONDS
        return True

    def end(self, state: DomainState, now: float) -> float | None:
        """Record that a domain has recovered; return the outage's length in seconds if its end should be shown."""
        self.affected.pop(state, None)
        if self._since is None or self._reporter not in (None, state):
            return None
        outage_seconds, self._since = now - self._since, None
        return outage_seconds

    def remove(self, state: DomainState) -> None:
        """Remove a domain that has ended. If it was the reporter, the next domain to recover reports the end."""
        self.affected.pop(state, None)
        if self._reporter is state:
            self._reporter = None
            self._since = self._since if self.affected else None
