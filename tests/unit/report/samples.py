"""Ended jobs to show in a summary, and the summary as it is written and as GitHub reads it."""

import io
from dataclasses import fields
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any

from docs_platform_action.errors import ActionError, Cancelled, JobFailed
from docs_platform_action.job import BUNDLE, DOWNLOAD, QUEUE, RUN, UNPACK, Delivered, Job, Phase
from docs_platform_action.models import Bundle, Downloaded, ExportJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES, Summary
from tests.virtual_time import NOON

URL = "https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc"
LINK = Bundle(url=URL, expires_at="2026-05-04T13:00:00Z", expires=NOON + timedelta(hours=1))
NOW = 5000.0
"""Noon on the monotonic clock."""


def summary(*jobs: Job, console: Console | None = None) -> Summary:
    """Return the summary of a run that ended at noon."""
    console = console or Console(io.StringIO(), in_workflow=False, debugging=False)
    return Summary(jobs=jobs, console=console, now=NOON, monotonic=NOW, duration_seconds=253.0)


def page(*jobs: Job, max_bytes: int = MAX_SUMMARY_BYTES) -> str:
    return summary(*jobs).page(max_bytes)


def export(**known: Any) -> Job:
    """Return an export. The parts of its last reading and of what is delivered are given by their names."""
    status, pages = known.pop("status", None), known.pop("page_count", None)
    delivered = {part.name: known.pop(part.name) for part in fields(Delivered) if part.name in known}
    reading = ExportJob(status=status, page_count=pages) if status is not None else None
    return Job(mode="export", reading=reading, delivered=Delivered(**delivered), **known)


def phases(began: float, **seconds: float) -> list[Phase]:
    """Return consecutive phases."""
    times = pairwise(accumulate(seconds.values(), initial=began))
    return [Phase(name=name, began_at=begin, ended_at=end) for name, (begin, end) in zip(seconds, times, strict=True)]


def good(domain: str | None = "docs.example.com", *, began: float = NOW - 253, run: float = 240.0, **changes: Any) -> Job:
    """Return a job that delivered everything, 13 s after its run."""
    steps = phases(began, **{QUEUE: 2.0, RUN: run, BUNDLE: 0.5, DOWNLOAD: 9.0, UNPACK: 1.5})
    known: dict[str, Any] = {
        "domain": domain,
        "job_id": "se_1",
        "status": ExportJob.COMPLETED,
        "page_count": 1412,
        "link": LINK,
        "downloaded": Downloaded(size=40_000_000, sha256="9b1c" * 16),
        "started_at": 0.0,
        "began_at": began,
        "ended_at": steps[-1].ended_at,
        "phases": steps,
    }
    return export(**{**known, **changes})


def failed(domain: str = "api.example.com", *, failure: ActionError | None = None, **changes: Any) -> Job:
    """Return a job that failed at the platform after 52 s, two minutes before the end."""
    said = ('The API said: "no such page (a_b)".',)
    known: dict[str, Any] = {
        "domain": domain,
        "job_id": "se_2",
        "status": ExportJob.FAILED,
        "failure": failure or JobFailed("an error", details=said, cause="A cause.", remedy="Set `timeout`.", request_id="7f3a"),
        "started_at": 0.0,
        "began_at": NOW - 172,
        "ended_at": NOW - 120,
        "phases": phases(NOW - 172, **{QUEUE: 12.0, RUN: 40.0}),
    }
    return export(**{**known, **changes})


def cancelled(domain: str = "sdk.example.com", **changes: Any) -> Job:
    """Return a job that was cancelled while it ran."""
    known: dict[str, Any] = {"status": "running", "ended_at": NOW, "phases": phases(NOW - 172, **{QUEUE: 12.0, RUN: 160.0})}
    return failed(domain, failure=Cancelled("cancelled after 2:52", cause="A cause."), **{**known, **changes})
