"""The log of several exports side by side: a line when something changes at one, and the whole log of each at the end."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ..clock import Clock
from ..job import CANCELLED, NOT_STARTED, STARTED, Job
from ..models import ExportJob
from ..text import minutes, trying_again
from .console import Console
from .domain_state import AT_WORK, NAMES, STATES, TO_COME, Row, how_long, in_the_end, names, never_begun, what_became, where, why
from .job_log import JobLog, Sink
from .trouble import QUIET_SECONDS, CommonTrouble

MOST_STATUSES: Final = 8
"""How many changes of a domain's status are told live."""

_WIDEST_DOMAIN: Final = 40
_WIDEST_CHANGE: Final = 54


@dataclass(frozen=True, kw_only=True)
class _Events:
    """What a domain's log tells the board, beside the lines that are kept."""

    status: Callable[[], None]
    notice: Callable[[str], None]
    trouble: Callable[[str], None]
    recovered: Callable[[float], None]


class _DomainLog(JobLog):
    """The log of one job of many: it goes on as that of one alone, and the board hears of what is to be seen at once."""

    def __init__(self, sink: Sink, clock: Clock, record: Job, *, known_statuses: tuple[str, ...], events: _Events) -> None:
        super().__init__(sink, clock, record, known_statuses=known_statuses)
        self._events = events

    def reading(self) -> None:
        """Show the job's state if it has changed."""
        super().reading()
        self._events.status()

    def notice(self, text: str) -> None:
        """Add a line to the job's log that is to be seen at once."""
        super().notice(text)
        self._events.notice(text)

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


class Board:
    """Shows several exports in one log. Safe to use from several threads; once closed it takes no more, from whichever.

    Live it tells what changes, each line with its domain; what each job's own log tells is kept, and written when all is over.
    """

    def __init__(
        self,
        console: Console,
        clock: Clock,
        records: Sequence[Job],
        *,
        max_parallel: int,
        known_statuses: tuple[str, ...],
    ) -> None:
        self._console = console
        self._clock = clock
        self._rows = {id(record): Row(record=record) for record in records}
        self._counted = Counter(row.state for row in self._rows.values())
        self._working: dict[Row, None] = {}
        self._max_parallel = max_parallel
        self._known_statuses = known_statuses
        self._explained = {*known_statuses}
        self._width = min(max((len(row.name) for row in self._rows.values()), default=0), _WIDEST_DOMAIN)
        self._began = self._told_at = clock.monotonic()
        self._told_counts = ""
        self._trouble = CommonTrouble()
        self._noticed_until = float("-inf")
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

    def log_of(self, record: Job) -> JobLog:
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
                        notice=partial(self._tell_notice, row),
                        trouble=partial(self._tell_trouble, row),
                        recovered=partial(self._tell_recovered, row),
                    ),
                )
            return row.log

    def at_work(self, record: Job) -> None:
        """Take note that a domain's turn has come; what becomes of it is told with its first change."""
        row = self._rows[id(record)]
        with self._lock:
            if row.state == TO_COME:
                self._move(row, AT_WORK)

    def job_known(self, record: Job) -> None:
        """Tell that a domain's job is started, and which it is."""
        row = self._rows[id(record)]
        with self._lock:
            row.status = record.status or ExportJob.QUEUED  # which needs no line of its own
            self._tell(row, f"started, job-id: {record.job_id}", counts=True)

    def ended(self, record: Job) -> None:
        """Tell what became of a domain, unless its turn never came: of those is told when all is over."""
        row = self._rows[id(record)]
        with self._lock:
            if row.state not in {AT_WORK, TO_COME}:
                return
            self._move(row, record.verdict if row.state == AT_WORK else NOT_STARTED)
            self._trouble.left(row)
            if row.lines:
                row.lines += [self._timed(line) for line in why(record)]
            if row.state not in {NOT_STARTED, STARTED}:
                self._tell(row, what_became(record, self._clock.now()), counts=row.state != CANCELLED)

    def heartbeat(self, every_seconds: float) -> None:
        """Show how far all are, if nothing was told live for this long; and look for those that stand still."""
        with self._lock:
            logs = [row.log for row in self._working if row.log is not None]
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
                self._move(row, in_the_end(row))
            if self._counts() != self._told_counts:
                self._write(self._counts())
            for line in never_begun(row for row in self._rows.values() if row.state == NOT_STARTED):
                self._console.line(f"  {line}")
            self._closed = True
            told = [row for row in self._rows.values() if row.lines]
        now = self._clock.monotonic()
        if told:
            self._console.line("The log of each domain, by the time of day in UTC:")
        for row in told:
            title = f"{row.name}: {how_long(row, row.record.duration_seconds(now))}"
            self._console.group(title, row.lines)

    def _keep(self, row: Row, text: str) -> None:
        with self._lock:
            if not self._closed:
                row.lines.append(self._timed(text.removeprefix("  ")))

    def _timed(self, text: str) -> str:
        return f"{self._clock.now():%H:%M:%S}  {text}"

    def _debug(self, row: Row, text: str) -> None:
        with self._lock:
            if not self._closed:
                self._console.debug(f"{row.name}: {text}")

    def _warn(self, row: Row, lines: Sequence[str]) -> None:
        title, *facts = lines
        with self._lock:
            if self._closed:
                return
            for line in (f"Warning: {title}", *(f"  {fact}" for fact in facts)):
                row.lines.append(self._timed(line))
            if tuple(lines) not in self._warned:
                self._warned.add(tuple(lines))
                self._told_at = self._clock.monotonic()
                self._console.warning(lines)

    def _tell_status(self, row: Row) -> None:
        status = row.record.status
        with self._lock:
            if status is None or status == row.status:
                return
            row.status = status
            if status in {ExportJob.COMPLETED, ExportJob.FAILED} or status in row.unknown:
                return  # what became of the job is told soon, with more to it
            if status not in self._known_statuses:
                row.unknown.add(status)
            row.told += 1
            if row.told > MOST_STATUSES:
                return  # one that counts or flaps: its own log has them all
            explained = status in self._explained
            self._explained.add(status)
            self._tell(row, status if explained else f"reports the status '{status}', which is not known here; waiting goes on")

    def _tell_notice(self, row: Row, text: str) -> None:
        """Tell of trouble with a bundle: the storage's, most likely, and so the same for others a moment later."""
        with self._lock:
            now = self._clock.monotonic()
            if now >= self._noticed_until:
                self._noticed_until = now + QUIET_SECONDS
                self._tell(row, text)

    def _tell_trouble(self, row: Row, text: str) -> None:
        with self._lock:
            if self._trouble.met(row, self._clock.monotonic()):
                self._tell(row, text)

    def _tell_recovered(self, row: Row, after_seconds: float) -> None:
        with self._lock:
            lasted = self._trouble.over(row, self._clock.monotonic())
            if lasted is not None:
                self._tell(row, f"The API answers again after {minutes(max(lasted, after_seconds))}.")

    def _tell(self, row: Row, what: str, *, counts: bool = False) -> None:
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

    def _move(self, row: Row, state: str) -> None:
        """Change a domain's state, and count it anew: counting all rows for each line would take the square of their number."""
        self._counted[row.state] -= 1
        self._counted[state] += 1
        self._working.pop(row, None)
        if state == AT_WORK:
            self._working[row] = None
        row.state = state

    def _counts(self, *, naming: bool = False) -> str:
        counted, rows = self._counted, self._working if naming else {}
        named = {AT_WORK: f" ({', '.join(map(where, rows))})" if 0 < len(rows) <= NAMES else ""}
        return ", ".join(f"{counted[state]:,} {state}{named.get(state, '')}" for state in STATES if counted[state])

    def _troubled(self) -> str:
        rows = self._trouble.met_by
        if not rows:
            return ""
        few = "" if len(rows) >= len(self._working) else f" for {names(rows)}"
        return f"    (no good answer from the API{few})"
