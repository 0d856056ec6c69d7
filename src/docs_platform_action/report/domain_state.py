"""The state of one domain in the log of several exports, and how it is described there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ..errors import Cancelled
from ..job import DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from ..models import ExportJob
from ..text import format_bytes, format_clock, format_expiry, format_time, pluralize

RUNNING: Final = "running"
PENDING: Final = "pending"
STAGES: Final = (*VERDICTS, RUNNING, PENDING)
"""The stages of a domain, in the order in which they are counted."""

MAX_LISTED_DOMAINS: Final = 3
"""Domains that a line lists before it counts the rest."""


@dataclass(kw_only=True, eq=False)
class DomainState:
    """The state of one domain. `lines` is its own log, `status` the last one that was read."""

    job: Job
    stage: str = PENDING
    status: str | None = None
    unknown_statuses: set[str] = field(default_factory=set)
    shown_statuses: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The domain's name in the log."""
        return self.job.domain or self.job.subject


def describe_outcome(job: Job, now: datetime) -> str:
    """Return the result of a domain's job, or why it failed."""
    failure, bundle = job.failure, job.bundle
    if failure is not None:
        return failure.summary if isinstance(failure, Cancelled) else f"failed: {failure.failure_reason}, {failure.summary}"
    parts = []
    if job.page_count is not None:
        parts.append(pluralize(job.page_count, "page"))
    if job.downloaded is not None:
        parts.append(format_bytes(job.downloaded.size))
    if bundle is not None and bundle.expires is not None:
        valid_until = f"valid until {format_time(bundle.expires, now)}"  # shorter than `format_expiry`: a line has counts, too
        parts.append(f"link {valid_until if bundle.expires > now else format_expiry(bundle.expires, now)}")
    return f"{DONE}: {', '.join(parts)}" if parts else DONE


def describe_duration(state: DomainState, seconds: float) -> str:
    """Return how a domain's job ended, and after how long."""
    stage, failure = state.stage, state.job.failure
    if stage == NOT_STARTED:
        return stage
    elapsed = format_clock(seconds)
    if stage in {DONE, STARTED}:
        return f"{stage} in {elapsed}"
    reason = f" ({failure.failure_reason})" if stage == FAILED and failure is not None else ""
    return f"{'not ended' if stage == RUNNING else stage} after {elapsed}{reason}"


def describe_progress(state: DomainState) -> str:
    """Return the status and the progress of a domain's job."""
    status, progress = state.job.status, state.job.progress  # read once: another thread may change them
    percent = f" {int(progress)} %" if progress is not None and status != ExportJob.COMPLETED else ""
    return f"{state.name} {status or 'starting'}{percent}"


def describe_not_started(states: Iterable[DomainState]) -> list[str]:
    """Return a line for each reason why domains were not started."""
    by_reason: dict[str, list[DomainState]] = {}
    for state in states:
        failure = state.job.failure
        reason = f": {failure.summary}" if failure is not None else ""
        if isinstance(failure, Cancelled):
            reason = ": the run was cancelled"
        by_reason.setdefault(reason, []).append(state)
    return [f"{pluralize(len(group), 'domain')} not started ({list_names(group)}){reason}" for reason, group in by_reason.items()]


def list_names(states: Sequence[DomainState]) -> str:
    """Return the names of some domains, and the number of the rest."""
    rest = f" and {len(states) - MAX_LISTED_DOMAINS:,} more" if len(states) > MAX_LISTED_DOMAINS else ""
    return ", ".join(state.name for state in states[:MAX_LISTED_DOMAINS]) + rest
