"""The job summary: the page that people look at after the run, as full as GitHub takes it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from ..errors import DENIED_CAUSE, Cancelled
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, VERDICTS, Job
from ..models import AGENT
from ..text import minutes, pluralize, sentence, size
from .console import Console
from .details import details_of, failed_alike, folded, told_for_all
from .overview import columns_for, head_of, row_of
from .timeline import timeline_of
from .view import LONGEST_NAME, View, minute, name_of, size_of

ROOM_BYTES: Final = 1_000_000
"""What a page may take: GitHub drops one of more than 1,048,576 bytes (source: actions/runner, CreateStepSummaryCommand)."""

SMALLEST_ROOM_BYTES: Final = 2_048
"""Any page can be shortened until it fits into this."""

_LONGEST_SUBJECT: Final = 300
_LONGEST_CAUSE: Final = 200
_MOST_NAMED: Final = 10
_FEW_ROWS: Final = 12
"""A table that needs no scrolling: nobody has to be told which of its rows to look for."""


def summary_of(records: Sequence[Job], view: View, *, duration_seconds: float, room_bytes: int = ROOM_BYTES) -> str:
    """Write the page of a step in GitHub's Markdown: the verdict, what is known of each job, and a timeline.

    `duration_seconds` is the step's. A page of more than `room_bytes` in UTF-8 (at least `SMALLEST_ROOM_BYTES`) is shortened
    step by step, and says so.
    """
    if len(records) == 1:
        return _OneJob(records[0], view, duration_seconds).fitting(room_bytes)
    return _Jobs(records, view, duration_seconds).fitting(room_bytes)


def room_left(file: Path | None) -> int:
    """Tell how many bytes a page may take in the file that `GITHUB_STEP_SUMMARY` names, beside what is there already."""
    try:
        held = file.stat().st_size if file is not None else 0
    except OSError:  # there is no such file yet, or writing to it will tell what is wrong with it
        held = 0
    return max(ROOM_BYTES - held, SMALLEST_ROOM_BYTES)


def write_summary(page: str, file: Path | None, console: Console) -> None:
    """Append the page to the file that `GITHUB_STEP_SUMMARY` names; one that cannot be written costs a warning, not the run."""
    if file is None:
        return
    try:
        with file.open("a", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.write(console.hide(page))
    except OSError as error:
        why = f"The file that GITHUB_STEP_SUMMARY names: {error.strerror}."
        cause = [DENIED_CAUSE] if isinstance(error, PermissionError) else []
        console.warning(["The job summary could not be written.", why, *cause, "The run goes on."])


class _OneJob:
    """The page of one job."""

    def __init__(self, record: Job, view: View, duration_seconds: float) -> None:
        self._record = record
        self._view = view
        self._duration_seconds = duration_seconds
        self._headline = f"### {view.show(record.subject, longest=_LONGEST_SUBJECT)}: {record.verdict}\n\n"

    def fitting(self, room_bytes: int) -> str:
        """Write as much as fits."""
        return (
            _within(room_bytes, self._page(quoting=True))
            or _within(room_bytes, self._page(quoting=False, note="Shortened: what servers said is not shown.\n\n"))
            or self._shortest()
        )

    def _page(self, *, quoting: bool, note: str = "") -> Iterator[str]:
        record, view = self._record, self._view
        yield self._headline + note
        yield "\n".join(details_of(record, view, duration_seconds=self._duration_seconds, quoting=quoting)) + "\n"
        drawn = timeline_of([record], view)
        yield f"\n{drawn}" if drawn else ""

    def _shortest(self) -> str:
        failure = self._record.failure
        reason = f"Failure reason: `{failure.failure_reason}`\n\n" if failure is not None else ""
        return f"{self._headline}{reason}Shortened: no details are shown; see the log, and the output `results`.\n"


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What a page of several jobs shows besides the table: the details of which jobs, and the timeline."""

    note: str = ""
    detailed: Sequence[Job] = ()
    quoting: bool = True
    drawn: bool = True


class _Jobs:
    """The page of several jobs. What does not fit is given up where the room ends, so none takes longer than a full page."""

    def __init__(self, records: Sequence[Job], view: View, duration_seconds: float) -> None:
        self._records = records
        self._view = view
        self._duration_seconds = duration_seconds
        self._alike = failed_alike(records)
        self._told_above = {id(record) for record in self._alike}
        self._columns = columns_for(records, told_above=self._told_above)
        self._rows: dict[int, str] = {}
        verdicts = {id(record): record.verdict for record in records}
        self._counts = Counter(verdicts.values())
        self._failed = [record for record in records if verdicts[id(record)] == FAILED]
        cancelled = [record for record in records if verdicts[id(record)] == CANCELLED]
        unstarted = [record for record in records if verdicts[id(record)] == NOT_STARTED and record.failure is not None]
        self._bad = [*self._failed, *cancelled, *unstarted]
        self._good = [record for record in records if record.failure is None]
        self._done = [record for record in records if verdicts[id(record)] == DONE]

    def fitting(self, room_bytes: int) -> str:
        """Write as much as fits."""
        table = _within(room_bytes, map(self._row, self._records))
        if table is None:
            return self._with_fewer_rows(room_bytes)
        tried = (_within(room_bytes, self._page(plan, table)) for plan in self._plans())
        return next((page for page in tried if page is not None), None) or self._with_fewer_rows(room_bytes)

    def _plans(self) -> Iterator[_Plan]:
        others_alike = {id(record) for record in self._alike[1:]}
        bad = [record for record in self._bad if id(record) not in others_alike and not _is_put_off(record)]
        yield _Plan(detailed=[*bad, *self._good])
        if bad:
            only = "Shortened: details are shown only of what failed or was cancelled"
            yield _Plan(detailed=bad, note=f"{only}.")
            yield _Plan(detailed=bad, quoting=False, note=f"{only}, without what servers said.")
        elsewhere = "see the log, and the output `results`"
        yield _Plan(note=f"Shortened: no details are shown; {elsewhere}.")
        yield _Plan(drawn=False, note=f"Shortened: neither details nor the timeline are shown; {elsewhere}.")

    def _page(self, plan: _Plan, table: str) -> Iterator[str]:
        yield self._headline
        if self._alike:
            yield self._cause(self._alike[0], detailed=bool(plan.detailed))
        others = [record for record in self._failed if id(record) not in self._told_above]
        if len(self._records) > _FEW_ROWS and others:
            yield self._named(others)
        yield f"{plan.note}\n\n" if plan.note else ""
        yield head_of(self._columns)
        yield table
        yield "\n"
        if plan.drawn and self._timeline:
            yield f"{self._timeline}\n"
        for record in plan.detailed:
            yield folded(record, self._view, name=name_of(record), quoting=plan.quoting)

    def _with_fewer_rows(self, room_bytes: int) -> str:
        """Show the rows of what did not end well before others, each at its place."""
        note = "Shortened: neither details nor the timeline are shown, and rows while there is room, what failed first.\n\n"
        cause = f"{self._happened(self._alike[0])}\n\n" if self._alike else ""
        head = self._headline + cause + note + head_of(self._columns)
        room_bytes -= _bytes(head + self._more(len(self._records)))
        kept: set[int] = set()
        for record in (*self._bad, *self._good):
            room_bytes -= _bytes(self._row(record))
            if room_bytes < 0:
                break
            kept.add(id(record))
        rows = [self._row(record) for record in self._records if id(record) in kept]
        return head + "".join(rows) + self._more(len(self._records) - len(rows))

    def _row(self, record: Job) -> str:
        if id(record) not in self._rows:
            self._rows[id(record)] = row_of(record, self._columns, self._view)
        return self._rows[id(record)]

    @property
    def _headline(self) -> str:
        counted = [(self._counts[verdict], verdict) for verdict in VERDICTS if self._counts[verdict]]
        told = ", ".join(f"{count:,} {verdict}" for count, verdict in counted)
        if len(counted) == 1:
            told = f"all {counted[0][1]}"
        jobs = f"{len(self._records):,} {self._kind}"
        what = jobs if any(record.mode == AGENT for record in self._records) else f"Static export of {jobs}"
        return f"### {what}: {told}\n\n{self._totals}\n\n"

    @cached_property
    def _kind(self) -> str:
        return "domains" if all(record.domain for record in self._records) else "jobs"

    @property
    def _totals(self) -> str:
        counts = [record.page_count for record in self._done if record.page_count is not None]
        sizes = [count for count in map(size_of, self._done) if count is not None]
        told = [*([pluralize(sum(counts), "page")] if counts else []), *([f"{size(sum(sizes))} of bundles"] if sizes else [])]
        took = f"The step took {minutes(self._duration_seconds)} and ended at {minute(self._view.now)}."
        return f"{took} In all {' and '.join(told)}." if told else took

    def _happened(self, first: Job) -> str:
        """Tell what happened to those that failed alike."""
        count, total = len(self._alike), len(self._records)
        who = f"All {total:,}" if count == total else f"{count:,} of {total:,}"
        happened = first.failure.happened if first.failure is not None else ""
        return f"**{who} {self._kind}: {self._view.show(sentence(happened), longest=_LONGEST_CAUSE)}**"

    def _cause(self, first: Job, *, detailed: bool) -> str:
        """Tell for all that failed alike what is not told again in each row."""
        told = [self._happened(first)]
        told += [told_for_all(first, first.failure, self._view)] if first.failure is not None else []
        name = self._view.show(name_of(first), longest=LONGEST_NAME)
        told += [f"The details of {name}, the first, stand for all of them."] if detailed else []
        return " ".join(told) + "\n\n"

    def _named(self, failed: Sequence[Job]) -> str:
        names = [f"{self._view.show(name_of(record))} (`{_reason(record)}`)" for record in failed[:_MOST_NAMED]]
        more = [f"and {len(failed) - len(names):,} more"] if len(failed) > len(names) else []
        return f"{'Also failed' if self._alike else 'Failed'}: {', '.join([*names, *more])}.\n\n"

    @staticmethod
    def _more(count: int) -> str:
        return f"\n… and {count:,} more: see the output `results`.\n" if count else ""

    @cached_property
    def _timeline(self) -> str:
        return timeline_of(self._records, self._view)


def _is_put_off(record: Job) -> bool:
    """Tell whether all that is known of a job is that a cancel came before its turn."""
    return record.verdict == NOT_STARTED and isinstance(record.failure, Cancelled)


def _reason(record: Job) -> str:
    return record.failure.failure_reason if record.failure is not None else ""


def _within(room_bytes: int, pieces: Iterable[str]) -> str | None:
    """Join pieces, unless they take more than the room."""
    kept: list[str] = []
    for piece in pieces:
        room_bytes -= _bytes(piece)
        if room_bytes < 0:
            return None
        kept.append(piece)
    return "".join(kept)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
