"""The log of several exports side by side: a line when something changes at one, and the whole log of each at the end."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from ..clock import Clock
from ..errors import Cancelled
from ..model import ExportJob
from ..record import JobRecord
from ..sizes import size
from .console import Console
from .failure import failure_lines
from .joblog import JobLog, Sink
from .text import minutes, moment, pages, trying_again, works_until

QUIET_SECONDS: Final = 30.0
"""How long after trouble that was told no other is told: what comes and goes at one domain after the other would fill the log."""

NAMES: Final = 3
"""How many domains a line names before it counts the rest."""

_WIDEST_DOMAIN: Final = 40
_WIDEST_CHANGE: Final = 54

_DONE, _STARTED, _FAILED, _CANCELLED, _NOT_STARTED = "done", "started", "failed", "cancelled", "not started"
_AT_WORK, _TO_COME = "at work", "to come"
_STATES: Final = (_DONE, _STARTED, _FAILED, _CANCELLED, _NOT_STARTED, _AT_WORK, _TO_COME)


@dataclass(frozen=True, kw_only=True)
class _Events:
    """What a domain's log tells the board, beside the lines that are kept."""

    status: Callable[[], None]
    trouble: Callable[[str], None]
    recovered: Callable[[float], None]


class _DomainLog(JobLog):
    """The log of one job of many: it goes on as that of one alone, and the board hears of what is to be seen at once."""

    def __init__(self, sink: Sink, clock: Clock, record: JobRecord, *, known_statuses: tuple[str, ...], events: _Events) -> None:
        super().__init__(sink, clock, record, known_statuses=known_statuses)
        self._events = events

    def reading(self) -> None:
        """Show the job's state if it has changed."""
        super().reading()
        self._events.status()

    def trouble(self, what: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Tell of temporary trouble, once, and what happens next."""
        super().trouble(what, budget_seconds=budget_seconds, pause_seconds=pause_seconds)
        self._events.trouble(trying_again(what, budget_seconds, pause_seconds))

    def recovered(self, after_seconds: float) -> None:
        """Tell that the trouble is over."""
        super().recovered(after_seconds)
        self._events.recovered(after_seconds)

    def link_masked(self) -> None:
        """Tell what masking the link means: of several domains `results` alone has it."""
        if not self._sink.in_workflow:
            super().link_masked()
            return
        self.note(
            "The link is masked, as `mask-bundle-url` asks: later steps of this job can read it in `results`, which GitHub drops "
            f"from job outputs. Another job can make a fresh link with `job-id: {self._record.job_id}`."
        )


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Where the log of one job of many goes."""

    in_workflow: bool
    debugging: bool
    line: Callable[[str], None]
    debug: Callable[[str], None]
    warning: Callable[[Sequence[str]], None]


@dataclass(kw_only=True, eq=False)
class _Row:
    """What the board knows of one domain."""

    record: JobRecord
    state: str = _TO_COME
    status: str | None = None
    unknown: set[str] = field(default_factory=set)
    log: JobLog | None = None
    lines: list[tuple[datetime, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.record.domain or self.record.subject


class _Trouble:
    """Who gets no good answer, and whose trouble is told in the name of all."""

    def __init__(self) -> None:
        self.met_by: list[_Row] = []
        self._told_by: _Row | None = None
        self._since: float | None = None
        self._quiet_until = float("-inf")

    def met(self, row: _Row, now: float) -> bool:
        """Take note that a domain meets it; tell whether that is news."""
        if row not in self.met_by:
            self.met_by.append(row)
        if self._since is not None or now < self._quiet_until:
            return False
        self._since, self._told_by, self._quiet_until = now, row, now + QUIET_SECONDS
        return True

    def over(self, row: _Row, now: float) -> float | None:
        """Take note that a domain gets good answers again; tell how long it lasted since it was told, if its end is news."""
        self._forget(row)
        if self._since is None or self._told_by not in (None, row):
            return None
        lasted, self._since = now - self._since, None
        return lasted

    def left(self, row: _Row) -> None:
        """Take note that a domain has ended, in trouble or not: of one that told it, the next to recover tells the end."""
        self._forget(row)
        if self._told_by is row:
            self._told_by = None
            self._since = self._since if self.met_by else None

    def _forget(self, row: _Row) -> None:
        if row in self.met_by:
            self.met_by.remove(row)


class Board:
    """Shows several exports in one log. Safe to use from several threads; once closed it takes no more, from whichever.

    Live it tells what changes, each line with its domain; what each job's own log tells is kept, and written when all is over.
    """

    def __init__(
        self,
        console: Console,
        clock: Clock,
        records: Sequence[JobRecord],
        *,
        max_parallel: int,
        known_statuses: tuple[str, ...],
    ) -> None:
        self._console = console
        self._clock = clock
        self._rows = {id(record): _Row(record=record) for record in records}
        self._max_parallel = max_parallel
        self._known_statuses = known_statuses
        self._explained = {*known_statuses}
        self._width = min(max((len(row.name) for row in self._rows.values()), default=0), _WIDEST_DOMAIN)
        self._began = self._told_at = clock.monotonic()
        self._told_counts = ""
        self._trouble = _Trouble()
        self._warned: set[tuple[str, ...]] = set()
        self._closed = False
        self._lock = threading.RLock()  # taken inside a job's log, so no log is called with it held

    def begin(self) -> None:
        """Write the title, and count time from here."""
        count = len(self._rows)
        at_a_time = f"{self._max_parallel} at a time" if self._max_parallel < count else "all at the same time"
        with self._lock:
            self._began = self._told_at = self._clock.monotonic()
            self._console.line(f"Static export of {count:,} domains, {at_a_time}")

    def log_of(self, record: JobRecord) -> JobLog:
        """Give the log of a domain's job, the same each time."""
        row = self._rows[id(record)]
        with self._lock:
            if row.log is None:
                row.log = _DomainLog(
                    _Kept(
                        in_workflow=self._console.in_workflow,
                        debugging=self._console.debugging,
                        line=partial(self._keep, row),
                        debug=partial(self._debug, row),
                        warning=partial(self._warn, row),
                    ),
                    self._clock,
                    record,
                    known_statuses=self._known_statuses,
                    events=_Events(
                        status=partial(self._tell_status, row),
                        trouble=partial(self._tell_trouble, row),
                        recovered=partial(self._tell_recovered, row),
                    ),
                )
            return row.log

    def at_work(self, record: JobRecord) -> None:
        """Take note that a domain's turn has come; what becomes of it is told with its first change."""
        row = self._rows[id(record)]
        with self._lock:
            row.state = _AT_WORK if row.state == _TO_COME else row.state

    def job_known(self, record: JobRecord) -> None:
        """Tell that a domain's job is started, and which it is."""
        row = self._rows[id(record)]
        with self._lock:
            row.status = record.status or ExportJob.QUEUED  # which needs no line of its own
            self._tell(row, f"started, job-id: {record.job_id}", counts=True)

    def ended(self, record: JobRecord) -> None:
        """Tell what became of a domain, unless its turn never came: of those is told when all is over."""
        row = self._rows[id(record)]
        with self._lock:
            if row.state not in {_AT_WORK, _TO_COME}:
                return
            row.state = _verdict(record) if row.state == _AT_WORK else _NOT_STARTED
            self._trouble.left(row)
            if row.lines:
                row.lines += [(self._clock.now(), line) for line in _why(record)]
            if row.state not in {_NOT_STARTED, _STARTED}:
                self._tell(row, _what_became(record, self._clock.now()), counts=row.state != _CANCELLED)

    def heartbeat(self, every_seconds: float) -> None:
        """Show how far all are, if nothing was told live for this long; and look for those that stand still."""
        with self._lock:
            logs = [row.log for row in self._at_work() if row.log is not None]
        for log in logs:
            log.look_for_standstill()
        with self._lock:
            if self._clock.monotonic() - self._told_at >= every_seconds:
                self._told_counts = self._counts()
                self._write(self._counts(naming=True) + self._troubled())

    def close(self) -> None:
        """Tell how it all ended, what never began, and write each domain's log. From here on nothing more is taken."""
        with self._lock:
            if self._closed:
                return
            for row in self._rows.values():
                row.state = _in_the_end(row)
            if self._counts() != self._told_counts:
                self._write(self._counts())
            for line in _never_begun(row for row in self._rows.values() if row.state == _NOT_STARTED):
                self._console.line(f"  {line}")
            self._closed = True
            told = [row for row in self._rows.values() if row.lines]
        now = self._clock.monotonic()
        if told:
            self._console.line("The log of each domain, by the time of day in UTC:")
        for row in told:
            title = f"{row.name}: {_how_long(row, row.record.duration_seconds(now))}"
            self._console.group(title, [f"{at:%H:%M:%S}  {text}" for at, text in row.lines])

    def _keep(self, row: _Row, text: str) -> None:
        with self._lock:
            if not self._closed:
                row.lines.append((self._clock.now(), text.removeprefix("  ")))

    def _debug(self, row: _Row, text: str) -> None:
        with self._lock:
            if not self._closed:
                self._console.debug(f"{row.name}: {text}")

    def _warn(self, row: _Row, lines: Sequence[str]) -> None:
        title, *facts = lines
        with self._lock:
            if self._closed:
                return
            for line in (f"Warning: {title}", *(f"  {fact}" for fact in facts)):
                row.lines.append((self._clock.now(), line))
            if tuple(lines) not in self._warned:
                self._warned.add(tuple(lines))
                self._told_at = self._clock.monotonic()
                self._console.warning(lines)

    def _tell_status(self, row: _Row) -> None:
        status = row.record.status
        with self._lock:
            if status is None or status == row.status:
                return
            row.status = status
            if status in {ExportJob.COMPLETED, ExportJob.FAILED} or status in row.unknown:
                return  # what became of the job is told soon, with more to it
            if status not in self._known_statuses:
                row.unknown.add(status)
            explained = status in self._explained
            self._explained.add(status)
            self._tell(row, status if explained else f"reports the status '{status}', which is not known here; waiting goes on")

    def _tell_trouble(self, row: _Row, text: str) -> None:
        with self._lock:
            if self._trouble.met(row, self._clock.monotonic()):
                self._tell(row, text)

    def _tell_recovered(self, row: _Row, after_seconds: float) -> None:
        with self._lock:
            lasted = self._trouble.over(row, self._clock.monotonic())
            if lasted is not None:
                self._tell(row, f"The API answers again after {minutes(max(lasted, after_seconds))}.")

    def _tell(self, row: _Row, what: str, *, counts: bool = False) -> None:
        counted = self._counts()
        named = f"{row.name:<{self._width}}  "
        if counts and counted != self._told_counts:
            self._told_counts = counted
            self._write(f"{named}{what:<{_WIDEST_CHANGE}}  {counted}")
        else:
            self._write(f"{named}{what}")

    def _write(self, text: str) -> None:
        if not self._closed:
            self._told_at = self._clock.monotonic()
            self._console.line(f"{minutes(self._told_at - self._began):>7}  {text}")

    def _at_work(self) -> list[_Row]:
        return [row for row in self._rows.values() if row.state == _AT_WORK]

    def _counts(self, *, naming: bool = False) -> str:
        counted = Counter(row.state for row in self._rows.values())
        rows = self._at_work() if naming else []
        named = {_AT_WORK: f" ({', '.join(map(_where, rows))})" if 0 < len(rows) <= NAMES else ""}
        return ", ".join(f"{counted[state]:,} {state}{named.get(state, '')}" for state in _STATES if counted[state])

    def _troubled(self) -> str:
        rows = self._trouble.met_by
        if not rows:
            return ""
        few = "" if len(rows) >= len(self._at_work()) else f" for {_names(rows)}"
        return f"    (no good answer from the API{few})"


def _in_the_end(row: _Row) -> str:
    """Give the state of a domain when all is over, whether anybody told that it ended or not."""
    if row.state == _TO_COME:
        return _NOT_STARTED
    return _verdict(row.record) if row.state == _AT_WORK and row.record.failure is not None else row.state


def _verdict(record: JobRecord) -> str:
    if record.failure is None:
        return _STARTED if record.started and record.bundle is None else _DONE
    return _CANCELLED if isinstance(record.failure, Cancelled) else _FAILED


def _what_became(record: JobRecord, now: datetime) -> str:
    failure, bundle = record.failure, record.bundle
    if failure is not None:
        return failure.happened if isinstance(failure, Cancelled) else f"failed: {failure.failure_reason}, {failure.happened}"
    told = ", ".join(
        filter(
            None,
            [
                pages(record.page_count) if record.page_count is not None else "",
                size(record.downloaded.size) if record.downloaded is not None else "",
                _link(bundle.expires, now) if bundle is not None and bundle.expires is not None else "",
            ],
        )
    )
    return f"{_DONE}: {told}" if told else _DONE


def _link(expires: datetime, now: datetime) -> str:
    return f"link works until {moment(expires, now)}" if expires > now else f"link {works_until(expires, now)}"


def _why(record: JobRecord) -> list[str]:
    return failure_lines(record, record.failure) if record.failure is not None else []


def _how_long(row: _Row, seconds: float) -> str:
    failure, took = row.record.failure, minutes(seconds)
    if row.state == _NOT_STARTED:
        return row.state
    if row.state in {_DONE, _STARTED}:
        return f"{row.state} in {took}"
    if row.state == _FAILED and failure is not None:
        return f"failed after {took} ({failure.failure_reason})"
    return f"{_CANCELLED if row.state == _CANCELLED else 'not ended'} after {took}"


def _where(row: _Row) -> str:
    status, progress = row.record.status, row.record.progress  # as they are now: the next reading may come in between
    percent = f" {int(progress)} %" if progress is not None and status != ExportJob.COMPLETED else ""
    return f"{row.name} {status or 'starting'}{percent}"


def _never_begun(rows: Iterable[_Row]) -> list[str]:
    """Tell of the domains whose turn never came: one line a reason."""
    by_reason: dict[str, list[_Row]] = {}
    for row in rows:
        by_reason.setdefault(row.record.failure.failure_reason if row.record.failure is not None else "", []).append(row)
    lines: list[str] = []
    for alike in by_reason.values():
        failure = alike[0].record.failure
        happened = "the run was cancelled" if isinstance(failure, Cancelled) else failure.happened if failure is not None else ""
        why = f": {happened}" if happened else ""
        subject = "1 domain was" if len(alike) == 1 else f"{len(alike):,} domains were"
        lines.append(f"{subject} not started ({_names(alike)}){why}")
    return lines


def _names(rows: Sequence[_Row]) -> str:
    rest = f" and {len(rows) - NAMES:,} more" if len(rows) > NAMES else ""
    return ", ".join(row.name for row in rows[:NAMES]) + rest
