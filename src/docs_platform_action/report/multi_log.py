"""The log of several exports: a live line when something changes at one of them, and the whole log of each at the end."""

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
    NAMES,
    PENDING,
    RUNNING,
    STAGES,
    DomainState,
    describe_duration,
    describe_outcome,
    describe_unstarted,
    names,
    where,
)
from .failures import failure_lines
from .job_log import JobLog

MAX_STATUSES: Final = 8
"""Changes of one domain's status that are shown live."""

QUIET_SECONDS: Final = 30.0
"""The shortest time between two live reports of an outage: failures that come and go at many domains would fill the log."""

_WIDEST_DOMAIN: Final = 40
_WIDEST_CHANGE: Final = 54


class MultiLog(Events):
    """Writes the log of several exports. Safe to use from several threads.

    Live lines name their domain. What each job's own log says is kept, and written by `close`, after which all is ignored.
    """

    def __init__(self, console: Console, clock: Clock, jobs: Sequence[Job], *, max_parallel: int) -> None:
        super().__init__()
        self._console = console
        self._clock = clock
        self._states = {id(job): DomainState(job=job) for job in jobs}
        self._logs = {number: _DomainLog(self, console, clock, state) for number, state in self._states.items()}
        self._counted = Counter(state.stage for state in self._states.values())
        self._max_parallel = max_parallel
        self._explained_statuses = {*ExportJob.KNOWN_STATUSES}
        self._width = min(max((len(state.name) for state in self._states.values()), default=0), _WIDEST_DOMAIN)
        self._began = self._last_line_at = clock.monotonic()
        self._shown_counts = ""
        self._outage = _SharedOutage()
        self._notices_quiet_until = float("-inf")
        self._shown_warnings: set[tuple[str, ...]] = set()
        self._closed = False
        self._lock = threading.RLock()  # a job's log takes it while it holds its own lock, so no job's log is called with it held

    def begin(self) -> None:
        """Write the title."""
        count = len(self._states)
        at_a_time = f"{self._max_parallel} at a time" if self._max_parallel < count else "all in parallel"
        self._console.line(f"Static export of {count:,} domains, {at_a_time}")

    def heartbeat(self, every_seconds: float) -> None:
        """Show the state of all if nothing was shown live for this long, and warn of jobs that stand still."""
        for state in self._at_work():
            self._logs[id(state.job)].check_for_standstill()
        with self._lock:
            if self._clock.monotonic() - self._last_line_at < every_seconds:
                return
            working, troubled = self._at_work(), [*self._outage.states]
            self._shown_counts = told = self._counts()
            if 0 < len(working) <= NAMES:
                told = told.replace(RUNNING, f"{RUNNING} ({', '.join(map(where, working))})")
            if troubled:
                some = "" if len(troubled) >= len(working) else f" for {names(troubled)}"
                told += f"    (no successful response from the API{some})"
            self._write(told)

    def close(self) -> None:
        """Write how it all ended, what never began, and each domain's log. Whatever comes later is ignored."""
        with self._lock:
            if self._closed:
                return
            for state in self._states.values():
                if state.stage == PENDING:
                    self._move(state, NOT_STARTED)
                elif state.stage == RUNNING and state.job.failure is not None:  # its end was not announced
                    self._move(state, state.job.verdict)
            if self._counts() != self._shown_counts:
                self._write(self._counts())
            for line in describe_unstarted(state for state in self._states.values() if state.stage == NOT_STARTED):
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
                self._move(state, RUNNING)

    def job_known(self, job: Job) -> None:
        super().job_known(job)
        state = self._states[id(job)]
        with self._lock:
            state.status = job.status or ExportJob.QUEUED  # which needs no line of its own
            self._show(state, f"started, job-id: {job.job_id}", counts=True)

    def status_read(self, job: Job) -> None:
        super().status_read(job)
        state, status = self._states[id(job)], job.status
        with self._lock:
            if status is None or status == state.status:
                return
            state.status = status
            if status in {ExportJob.COMPLETED, ExportJob.FAILED} or status in state.unknown_statuses:
                return  # the end is shown soon, with its result
            if status not in ExportJob.KNOWN_STATUSES:
                state.unknown_statuses.add(status)
            state.shown_statuses += 1
            if state.shown_statuses > MAX_STATUSES:
                return  # a status that counts or flaps: its own log has every change
            explained = status in self._explained_statuses
            self._explained_statuses.add(status)
            self._show(
                state,
                status if explained else f"reports the status '{status}', which the action does not know; waiting continues",
            )

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
            lasted = self._outage.end(state, self._clock.monotonic()) if server == API else None
            if lasted is not None:
                self._show(state, f"The API is responding again after {format_clock(max(lasted, after_seconds))}.")

    def job_ended(self, job: Job) -> None:
        super().job_ended(job)
        state = self._states[id(job)]
        with self._lock:
            if state.stage not in {RUNNING, PENDING}:
                return
            self._move(state, job.verdict if state.stage == RUNNING else NOT_STARTED)
            self._outage.remove(state)
            if state.lines and job.failure is not None:
                state.lines += [self._timed(line) for line in failure_lines(job, job.failure)]
            if state.stage not in {NOT_STARTED, STARTED}:  # `close` shows what never began, and `job_known` what only started
                self._show(state, describe_outcome(job, self._clock.now()), counts=state.stage != CANCELLED)

    def keep_line(self, state: DomainState, text: str) -> None:
        """Keep a line of a domain's own log."""
        with self._lock:
            if not self._closed:
                state.lines.append(self._timed(text.removeprefix("  ")))

    def show_notice(self, state: DomainState, text: str) -> None:
        """Show a notice about a bundle, unless another was shown just before: the storage is probably the same for all."""
        with self._lock:
            now = self._clock.monotonic()
            if now >= self._notices_quiet_until:
                self._notices_quiet_until = now + QUIET_SECONDS
                self._show(state, text)

    def show_warning(self, state: DomainState, lines: Sequence[str]) -> None:
        """Keep a warning in a domain's own log, and show it unless another domain had the same."""
        title, *facts = lines
        with self._lock:
            if self._closed:
                return
            for line in (f"Warning: {title}", *(f"  {fact}" for fact in facts)):
                state.lines.append(self._timed(line))
            if tuple(lines) not in self._shown_warnings:
                self._shown_warnings.add(tuple(lines))
                self._last_line_at = self._clock.monotonic()
                self._console.warning(lines)

    def show_debug(self, state: DomainState, text: str) -> None:
        """Write a line of the debug log."""
        with self._lock:
            if not self._closed:
                self._console.debug(f"{state.name}: {text}")

    def _listeners_of(self, job: Job) -> Sequence[Events]:
        return (self._logs[id(job)],)

    def _timed(self, text: str) -> str:
        return f"{self._clock.now():%H:%M:%S}  {text}"

    def _show(self, state: DomainState, text: str, *, counts: bool = False) -> None:
        counted = self._counts()
        named = f"{state.name:<{self._width}}  "
        if counts and counted != self._shown_counts:
            self._shown_counts = counted
            self._write(f"{named}{text:<{_WIDEST_CHANGE}}  {counted}")
        else:
            self._write(f"{named}{text}")

    def _write(self, text: str) -> None:
        if not self._closed:
            self._last_line_at = self._clock.monotonic()
            self._console.line(f"{format_clock(self._last_line_at - self._began):>7}  {text}")

    def _move(self, state: DomainState, stage: str) -> None:
        """Change a domain's stage and the counts: counting all domains for each line would take quadratic time."""
        self._counted[state.stage] -= 1
        self._counted[stage] += 1
        state.stage = stage

    def _counts(self) -> str:
        return ", ".join(f"{self._counted[stage]:,} {stage}" for stage in STAGES if self._counted[stage])

    def _at_work(self) -> Sequence[DomainState]:
        return [state for state in self._states.values() if state.stage == RUNNING]


class _DomainLog(JobLog):
    """The log of one job of several, whose lines the multi log keeps or shows."""

    def __init__(self, multi_log: MultiLog, console: Console, clock: Clock, state: DomainState) -> None:
        super().__init__(console, clock, state.job)
        self._multi_log = multi_log
        self._state = state

    def _write_line(self, text: str) -> None:
        self._multi_log.keep_line(self._state, text)

    def _note_at_once(self, text: str) -> None:
        super()._note_at_once(text)
        self._multi_log.show_notice(self._state, text)

    def _write_debug(self, text: str) -> None:
        self._multi_log.show_debug(self._state, text)

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        self._multi_log.show_warning(self._state, lines)

    def _mask_explanation(self, job: Job) -> str:
        return (
            "The link is masked, because `mask-bundle-url` is set: later steps of this job can read it in `results`, which "
            f"GitHub drops from job outputs. Another job can make a fresh link with `job-id: {job.job_id}`."
        )


class _SharedOutage:
    """An outage of the API that several domains meet: one of them reports it for all."""

    def __init__(self) -> None:
        self.states: dict[DomainState, None] = {}  # in the order in which they met it
        self._reporter: DomainState | None = None
        self._since: float | None = None
        self._quiet_until = float("-inf")

    def begin(self, state: DomainState, now: float) -> bool:
        """Record that a domain meets it, and return whether that should be shown."""
        self.states[state] = None
        if self._since is not None or now < self._quiet_until:
            return False
        self._since, self._reporter, self._quiet_until = now, state, now + QUIET_SECONDS
        return True

    def end(self, state: DomainState, now: float) -> float | None:
        """Record that a domain has recovered, and return how long the outage lasted if its end should be shown."""
        self.states.pop(state, None)
        if self._since is None or self._reporter not in (None, state):
            return None
        lasted, self._since = now - self._since, None
        return lasted

    def remove(self, state: DomainState) -> None:
        """Record that a domain has ended. If it was the reporter, the next domain to recover reports the end."""
        self.states.pop(state, None)
        if self._reporter is state:
            self._reporter = None
            self._since = self._since if self.states else None
