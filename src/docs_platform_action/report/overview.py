"""The summary's overview of several jobs: a table, one row a job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..model import ExportJob
from ..record import DONE, FAILED, JobRecord
from ..sizes import size
from .text import minutes
from .view import LONGEST_NAME, LONGEST_WORD, View, name_of, seconds_at, size_of

_LONGEST_REMEDY: Final = 400


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the overview; `is_told` says whether any job has something to tell in it."""

    title: str
    rule: str = "---"
    cell: Callable[[JobRecord, View], str]
    is_told: bool = True


def columns_for(records: Sequence[JobRecord]) -> Sequence[Column]:
    """Choose the columns in which any of the jobs has something to tell."""
    linked = any(record.failure is None and record.bundle is not None for record in records)
    failed = any(record.failure is not None for record in records)
    last = ", or ".join([*(["Link works until"] if linked else []), *(["what to do"] if failed else [])])
    columns = [
        Column(title="Domain" if all(record.domain for record in records) else "Job", cell=_name),
        Column(title="Result", cell=_result),
        Column(title="Pages", rule="---:", cell=_pages, is_told=any(record.page_count is not None for record in records)),
        Column(title="Bundle", rule="---:", cell=_size, is_told=any(size_of(record) is not None for record in records)),
        Column(title="Time", rule="---:", cell=_time, is_told=any(record.began is not None for record in records)),
        Column(title=last[:1].upper() + last[1:], cell=_link_or_remedy, is_told=linked or failed),
    ]
    return [column for column in columns if column.is_told]


def head_of(columns: Sequence[Column]) -> str:
    """Write the table's first two lines."""
    return f"| {' | '.join(column.title for column in columns)} |\n| {' | '.join(column.rule for column in columns)} |\n"


def row_of(record: JobRecord, columns: Sequence[Column], view: View) -> str:
    """Write a job's row."""
    return f"| {' | '.join(column.cell(record, view) for column in columns)} |\n"


def _name(record: JobRecord, view: View) -> str:
    return view.show(name_of(record), longest=LONGEST_NAME)


def _result(record: JobRecord, view: View) -> str:
    """Tell verdict and status, the latter where it says more."""
    verdict = record.verdict
    told = f"**{verdict}**" if verdict == FAILED else verdict
    status = view.show(record.status, longest=LONGEST_WORD)
    return f"{told} ({status})" if status and (verdict, record.status) not in _SAYING_THE_SAME else told


_SAYING_THE_SAME: Final = {(DONE, ExportJob.COMPLETED), (FAILED, ExportJob.FAILED)}


def _pages(record: JobRecord, _view: View) -> str:
    return "" if record.page_count is None else f"{record.page_count:,}"


def _size(record: JobRecord, _view: View) -> str:
    count = size_of(record)
    return "" if count is None else size(count).replace(" ", "&nbsp;")  # in a narrow column it would break there


def _time(record: JobRecord, view: View) -> str:
    seconds = seconds_at(record, view)
    return "" if seconds is None else minutes(seconds)


def _link_or_remedy(record: JobRecord, view: View) -> str:
    """Tell what a good job has, and what a failed one needs: one wide column for both, as none has the two."""
    if record.failure is not None:
        remedy = view.show_prose(record.failure.way_out, longest=_LONGEST_REMEDY)
        return f"`{record.failure.failure_reason}`" + (f": {remedy}" if remedy else "")
    return "" if record.bundle is None else view.works_until(record.bundle)
