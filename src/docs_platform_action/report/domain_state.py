"""A domain's row on the board: its state, and the words for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ..errors import Cancelled
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from ..models import ExportJob
from ..text import minutes, moment, pluralize, size, works_until
from .failures import failure_lines
from .job_log import JobLog

AT_WORK: Final = "at work"
TO_COME: Final = "to come"
STATES: Final = (*VERDICTS, AT_WORK, TO_COME)
"""What a domain can be in, in the order in which they are counted."""

NAMES: Final = 3
"""How many domains a line names before it counts the rest."""


@dataclass(kw_only=True, eq=False)
class Row:
    """What the board knows of one domain."""

    record: Job
    state: str = TO_COME
    status: str | None = None
    unknown: set[str] = field(default_factory=set)
    told: int = 0
    log: JobLog | None = None
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What it is called in the log."""
        return self.record.domain or self.record.subject


def in_the_end(row: Row) -> str:
    """Give the state of a domain when all is over, whether anybody told that it ended or not."""
    if row.state == TO_COME:
        return NOT_STARTED
    return row.record.verdict if row.state == AT_WORK and row.record.failure is not None else row.state


def what_became(record: Job, now: datetime) -> str:
    """Tell how a domain's job ended, with what came of it or why it failed."""
    failure, bundle = record.failure, record.bundle
    if failure is not None:
        return failure.happened if isinstance(failure, Cancelled) else f"failed: {failure.failure_reason}, {failure.happened}"
    told = ", ".join(
        filter(
            None,
            [
                pluralize(record.page_count, "page") if record.page_count is not None else "",
                size(record.downloaded.size) if record.downloaded is not None else "",
                _link(bundle.expires, now) if bundle is not None and bundle.expires is not None else "",
            ],
        )
    )
    return f"{DONE}: {told}" if told else DONE


def _link(expires: datetime, now: datetime) -> str:
    return f"link works until {moment(expires, now)}" if expires > now else f"link {works_until(expires, now)}"


def why(record: Job) -> list[str]:
    """Give the lines on what a job failed with, if it did."""
    return failure_lines(record, record.failure) if record.failure is not None else []


def how_long(row: Row, seconds: float) -> str:
    """Tell how a domain's job ended, and after how long."""
    failure, took = row.record.failure, minutes(seconds)
    if row.state == NOT_STARTED:
        return row.state
    if row.state in {DONE, STARTED}:
        return f"{row.state} in {took}"
    if row.state == FAILED and failure is not None:
        return f"failed after {took} ({failure.failure_reason})"
    return f"{CANCELLED if row.state == CANCELLED else 'not ended'} after {took}"


def where(row: Row) -> str:
    """Tell how far a domain's job is."""
    status, progress = row.record.status, row.record.progress  # as they are now: the next reading may come in between
    percent = f" {int(progress)} %" if progress is not None and status != ExportJob.COMPLETED else ""
    return f"{row.name} {status or 'starting'}{percent}"


def never_begun(rows: Iterable[Row]) -> list[str]:
    """Tell of the domains whose turn never came: one line a reason."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        by_reason.setdefault(row.record.failure.failure_reason if row.record.failure is not None else "", []).append(row)
    lines: list[str] = []
    for alike in by_reason.values():
        failure = alike[0].record.failure
        happened = "the run was cancelled" if isinstance(failure, Cancelled) else failure.happened if failure is not None else ""
        why = f": {happened}" if happened else ""
        subject = f"{pluralize(len(alike), 'domain')} {'was' if len(alike) == 1 else 'were'}"
        lines.append(f"{subject} not started ({names(alike)}){why}")
    return lines


def names(rows: Sequence[Row]) -> str:
    """Name some domains, and count the rest."""
    rest = f" and {len(rows) - NAMES:,} more" if len(rows) > NAMES else ""
    return ", ".join(row.name for row in rows[:NAMES]) + rest
