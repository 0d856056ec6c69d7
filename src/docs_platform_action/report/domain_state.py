"""What the log of several exports knows of one domain, and the words for it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ..errors import Cancelled
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from ..models import ExportJob
from ..text import format_bytes, format_clock, format_expiry, format_time, pluralize

RUNNING: Final = "running"
PENDING: Final = "pending"
STAGES: Final = (*VERDICTS, RUNNING, PENDING)
"""The stages of a domain, in the order in which they are counted."""

NAMES: Final = 3
"""How many domains a line names before it counts the rest."""


@dataclass(kw_only=True, eq=False)
class DomainState:
    """What is known of one domain. `lines` are those of its own log, and `status` is the last one that was read."""

    job: Job
    stage: str = PENDING
    status: str | None = None
    unknown_statuses: set[str] = field(default_factory=set)
    shown_statuses: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the domain is called in the log."""
        return self.job.domain or self.job.subject


def describe_outcome(job: Job, now: datetime) -> str:
    """Return how a domain's job ended: its result, or why it failed."""
    failure, bundle = job.failure, job.bundle
    if failure is not None:
        return failure.summary if isinstance(failure, Cancelled) else f"failed: {failure.failure_reason}, {failure.summary}"
    told = []
    if job.page_count is not None:
        told.append(pluralize(job.page_count, "page"))
    if job.downloaded is not None:
        told.append(format_bytes(job.downloaded.size))
    if bundle is not None and bundle.expires is not None:
        works = bundle.expires > now
        told.append(f"link {f'valid until {format_time(bundle.expires, now)}' if works else format_expiry(bundle.expires, now)}")
    return f"{DONE}: {', '.join(told)}" if told else DONE


def describe_duration(state: DomainState, seconds: float) -> str:
    """Return how a domain's job ended, and after how long."""
    failure, took = state.job.failure, format_clock(seconds)
    if state.stage == NOT_STARTED:
        return state.stage
    if state.stage in {DONE, STARTED}:
        return f"{state.stage} in {took}"
    if state.stage == FAILED and failure is not None:
        return f"failed after {took} ({failure.failure_reason})"
    return f"{CANCELLED if state.stage == CANCELLED else 'not ended'} after {took}"


def where(state: DomainState) -> str:
    """Return the status and the progress of a domain's job."""
    status, progress = state.job.status, state.job.progress  # as they are now: the next reading may come in between
    percent = f" {int(progress)} %" if progress is not None and status != ExportJob.COMPLETED else ""
    return f"{state.name} {status or 'starting'}{percent}"


def describe_unstarted(states: Iterable[DomainState]) -> list[str]:
    """Return a line for each reason why domains were not started."""
    by_reason: dict[str, list[DomainState]] = {}
    for state in states:
        by_reason.setdefault(state.job.failure.failure_reason if state.job.failure is not None else "", []).append(state)
    lines: list[str] = []
    for alike in by_reason.values():
        failure = alike[0].job.failure
        why = "" if failure is None else f": {'the run was cancelled' if isinstance(failure, Cancelled) else failure.summary}"
        subject = f"{pluralize(len(alike), 'domain')} {'was' if len(alike) == 1 else 'were'}"
        lines.append(f"{subject} not started ({names(alike)}){why}")
    return lines


def names(states: Sequence[DomainState]) -> str:
    """Name some domains, and count the rest."""
    rest = f" and {len(states) - NAMES:,} more" if len(states) > NAMES else ""
    return ", ".join(state.name for state in states[:NAMES]) + rest
