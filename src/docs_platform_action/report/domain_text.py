"""How the log of several exports describes the job of a domain."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from ..errors import Cancelled
from ..job import DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from ..text import format_bytes, format_clock, format_expiry, format_time, pluralize

MAX_LISTED_NAMES: Final = 3
"""Domains that a line lists before it counts the rest."""


def describe_outcome(job: Job, now: datetime) -> str:
    """Return the result of a job, or why it failed."""
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


def describe_duration(job: Job, stage: str, now: float) -> str:
    """Return how a job ended, and after how long."""
    if stage == NOT_STARTED:
        return stage
    elapsed = format_clock(job.duration_seconds(now))
    if stage in {DONE, STARTED}:
        return f"{stage} in {elapsed}"
    reason = f" ({job.failure.failure_reason})" if stage == FAILED and job.failure is not None else ""
    return f"{stage if stage in VERDICTS else 'not ended'} after {elapsed}{reason}"


def describe_unstarted(jobs: Iterable[Job]) -> list[str]:
    """Return a line for each reason why jobs were not started."""
    by_reason: dict[str, list[Job]] = {}
    for job in jobs:
        reason = f": {job.failure.summary}" if job.failure is not None else ""
        if isinstance(job.failure, Cancelled):
            reason = ": the run was cancelled"
        by_reason.setdefault(reason, []).append(job)
    return [f"{pluralize(len(group), 'domain')} not started ({list_names(group)}){reason}" for reason, group in by_reason.items()]


def list_names(jobs: Sequence[Job]) -> str:
    """Return the domains of some jobs, and the number of the rest."""
    rest = f" and {len(jobs) - MAX_LISTED_NAMES:,} more" if len(jobs) > MAX_LISTED_NAMES else ""
    return ", ".join(job.domain or "" for job in jobs[:MAX_LISTED_NAMES]) + rest
