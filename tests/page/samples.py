"""Ended jobs to show in a summary: good, failed, cancelled, and one whose texts are all hostile."""

import io
from dataclasses import fields
from datetime import timedelta
from typing import Any

from docs_platform_action.errors import ActionError, Cancelled, JobFailed, Unauthorized, Unavailable
from docs_platform_action.job import BUNDLE, DOWNLOAD, QUEUE, RUN, UNPACK, Delivered, Job, Phase
from docs_platform_action.models import Bundle, Downloaded, ExportJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.summary import Summary
from tests.virtual_time import NOON

URL = "https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc"
LINK = Bundle(url=URL, expires_at="2026-05-04T13:00:00Z", expires=NOON + timedelta(hours=1))
NOW = 5000.0
"""Noon on the monotonic clock."""


def summary(*jobs: Job, console: Console | None = None, seconds: float = 253.0) -> Summary:
    """Return the summary of a run that ended at noon."""
    console = console or Console(io.StringIO(), in_workflow=False, debugging=False)
    return Summary(jobs=jobs, console=console, now=NOON, monotonic=NOW, duration_seconds=seconds)


def export(**known: Any) -> Job:
    """Return an export. The parts of its last reading and of what is delivered are given by their names."""
    status, pages = known.pop("status", None), known.pop("page_count", None)
    delivered = {part.name: known.pop(part.name) for part in fields(Delivered) if part.name in known}
    reading = ExportJob(status=status, page_count=pages) if status is not None else None
    return Job(mode="export", reading=reading, delivered=Delivered(**delivered), **known)


def phases(began: float, **seconds: float) -> list[Phase]:
    """Return consecutive phases."""
    found = []
    for name, length in seconds.items():
        found.append(Phase(name=name, began_at=began, ended_at=began + length))
        began += length
    return found


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
    error = failure or JobFailed(
        "an example of an error",
        details=('The API said: "no such page (a_b)".',),
        cause="An example of a cause.",
        remedy="An example of advice about job se_2 and `timeout`.",
        request_id="7f3a",
    )
    known: dict[str, Any] = {
        "domain": domain,
        "job_id": "se_2",
        "status": ExportJob.FAILED,
        "failure": error,
        "started_at": 0.0,
        "began_at": NOW - 172,
        "ended_at": NOW - 120,
        "phases": phases(NOW - 172, **{QUEUE: 12.0, RUN: 40.0}),
    }
    return export(**{**known, **changes})


def cancelled(domain: str = "sdk.example.com", **changes: Any) -> Job:
    """Return a job that was cancelled while it ran."""
    known: dict[str, Any] = {"status": "running", "ended_at": NOW, "phases": phases(NOW - 172, **{QUEUE: 12.0, RUN: 160.0})}
    return failed(domain, failure=Cancelled("cancelled after 2:52", cause="An example of a cause."), **{**known, **changes})


def refused(count: int) -> list[Job]:
    """Return jobs whose first one was refused for its key, so that the others were not begun."""

    def refusal(*more: str) -> Unauthorized:
        details = ('The API said: "invalid token"', *more)
        return Unauthorized("an example of an error", details=details, cause="A cause.", remedy="Advice.", request_id="7f3a")

    nothing: dict[str, Any] = {"job_id": None, "status": None, "page_count": None, "started_at": None, "phases": []}
    first = failed("d0.example.com", failure=refusal(), ended_at=NOW - 171, **nothing)
    others = [
        failed(f"d{number}.example.com", failure=refusal("An example of a reason."), began_at=None, **nothing)
        for number in range(1, count)
    ]
    return [first, *others]


def unavailable(lasted_seconds: int) -> Unavailable:
    """Return the failure of a job in an outage."""
    return Unavailable(
        "the API at platform.example.com is down",
        details=(f"It has been down for {lasted_seconds} s.",),
        cause="An example of a cause.",
        remedy="An example of advice.",
    )


def hostile(text: str, *, ends_well: bool) -> Job:
    """Return a job whose every foreign text is this one."""
    link = Bundle(url=URL, expires_at=text)
    paths = {"bundle_path": text, "site_path": text, "site_files": 1, "values_file": text, "project_id": text}
    texts: dict[str, Any] = {"job_id": text, "status": text, **paths}
    error = JobFailed(text, details=(text, text), cause=text, remedy=text, request_id=text)
    return good(text, link=link, **texts) if ends_well else failed(text, failure=error, **texts)
