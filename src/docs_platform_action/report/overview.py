"""The summary's overview of several jobs: a table, one row a job."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from ..errors import ActionError, Cancelled, TimedOut
from ..job import DONE, FAILED, NOT_STARTED, Job
from ..models import ExportJob
from ..text import minutes, sentence, size
from .failures import how_to_collect_in_short
from .view import LONGEST_NAME, LONGEST_WORD, View, name_of, seconds_at, size_of

_LONGEST_HAPPENED: Final = 120
_LONGEST_FACT: Final = 140
_LONGEST_REMEDY: Final = 400
"""It may hold the id of a job, which nobody can use a part of."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the overview; `is_told` says whether any job has something to tell in it."""

    title: str
    rule: str = "---"
    cell: Callable[[Job, View], str]
    is_told: bool = True


def columns_for(records: Sequence[Job], *, told_above: Collection[int] = ()) -> Sequence[Column]:
    """Choose the columns in which any of the jobs has something to tell.

    `told_above` holds the `id` of each record whose cell need not tell again what happened and what to do about it.
    """

    def last_cell(record: Job, view: View) -> str:
        return _link_or_failure(record, view, told_above=id(record) in told_above)

    linked = any(record.failure is None and record.bundle is not None for record in records)
    failed = any(record.failure is not None for record in records)
    last = ", or ".join([*(["Link works until"] if linked else []), *(["what happened"] if failed else [])])
    columns = [
        Column(title="Domain" if all(record.domain for record in records) else "Job", cell=_name),
        Column(title="Result", cell=_result),
        Column(title="Pages", rule="---:", cell=_pages, is_told=any(record.page_count is not None for record in records)),
        Column(title="Bundle", rule="---:", cell=_size, is_told=any(size_of(record) is not None for record in records)),
        Column(title="Time", rule="---:", cell=_time, is_told=any(record.began is not None for record in records)),
        Column(title=last[:1].upper() + last[1:], cell=last_cell, is_told=linked or failed),
    ]
    return [column for column in columns if column.is_told]


def head_of(columns: Sequence[Column]) -> str:
    """Write the table's first two lines."""
    return f"| {' | '.join(column.title for column in columns)} |\n| {' | '.join(column.rule for column in columns)} |\n"


def row_of(record: Job, columns: Sequence[Column], view: View) -> str:
    """Write a job's row."""
    return f"| {' | '.join(column.cell(record, view) for column in columns)} |\n"


def _name(record: Job, view: View) -> str:
    return view.show(name_of(record), longest=LONGEST_NAME)


def _result(record: Job, view: View) -> str:
    """Tell verdict and status, the latter where it says more."""
    verdict = record.verdict
    told = f"**{verdict}**" if verdict == FAILED else verdict
    status = view.show(record.status, longest=LONGEST_WORD)
    if not status or (verdict, record.status) in _SAYING_THE_SAME:
        return told
    return f"{told} ({status})" if record.failure is None else f"{told}, last seen {status}"


_SAYING_THE_SAME: Final = {(DONE, ExportJob.COMPLETED), (FAILED, ExportJob.FAILED)}


def _pages(record: Job, _view: View) -> str:
    return "" if record.page_count is None else f"{record.page_count:,}"


def _size(record: Job, _view: View) -> str:
    count = size_of(record)
    return "" if count is None else size(count).replace(" ", "&nbsp;")  # in a narrow column it would break there


def _time(record: Job, view: View) -> str:
    seconds = seconds_at(record, view)
    return "" if seconds is None else minutes(seconds)


def _link_or_failure(record: Job, view: View, *, told_above: bool) -> str:
    """Tell what a good job has, and what is to know of a failed one: one wide column for both, as none has the two."""
    error = record.failure
    if error is None:
        return "" if record.bundle is None else view.works_until(record.bundle)
    reason = f"`{error.failure_reason}`"
    if isinstance(error, Cancelled) and _is_unstarted(record):
        return f"{reason}, not started: run the workflow again."
    collecting = how_to_collect_in_short(record, error)
    told = [] if told_above or (collecting and _is_told_beside(record, error)) else _happened(error, view)
    if collecting:
        told.append(view.show_prose(f"The job {collecting}" if told else collecting, longest=_LONGEST_REMEDY))
    elif error.way_out and not told_above:
        told.append(view.show_prose(error.way_out, longest=_LONGEST_REMEDY))
    return f"{reason}: {' '.join(told)}" if told else reason


def _is_unstarted(record: Job) -> bool:
    return record.verdict == NOT_STARTED or (record.job_id is None and not record.start_in_doubt)


def _is_told_beside(record: Job, error: ActionError) -> bool:
    """Tell whether the row's other cells tell what happened: how far the job was, and after what time it was left."""
    return isinstance(error, Cancelled | TimedOut) and record.status is not None


def _happened(error: ActionError, view: View) -> list[str]:
    """Tell in short what happened, and the first fact, such as what the API said."""
    fact = [_short(said, view, _LONGEST_FACT) for said in error.facts[:1]]
    if isinstance(error, Cancelled):  # which the row tells beside
        return fact
    return [_short(error.happened, view, _LONGEST_HAPPENED), *fact]


def _short(text: str, view: View, longest: int) -> str:
    """Show a sentence without the API's host, which is the same in each row; a quotation that is cut ends all the same."""
    shown = view.show(sentence(re.sub(r"^([Tt]he API) at \S+ ", r"\1 ", text)), longest=longest)
    return f'{shown}"' if shown.endswith("…") and shown.count('"') % 2 else shown
