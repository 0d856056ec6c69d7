"""The summary of jobs, as it is written and as GitHub reads it."""

from typing import Any

from docs_platform_action.errors import JobFailed, Rejected
from docs_platform_action.job import Job
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES
from tests.page.gfm import Element, page_of
from tests.page.samples import cancelled, failed, good, summary


def page(*jobs: Job, seconds: float = 253.0, max_bytes: int = MAX_SUMMARY_BYTES) -> str:
    return summary(*jobs, seconds=seconds).page(max_bytes)


def parsed(*jobs: Job, max_bytes: int = MAX_SUMMARY_BYTES) -> Element:
    return page_of(page(*jobs, max_bytes=max_bytes))


def exported(**changes: Any) -> Job:
    """Return a good export of which no bundle was fetched, and no phase took any time."""
    return good(**{"downloaded": None, "phases": [], **changes})


def many() -> list[Job]:
    """Return forty jobs. Two failed, with a long message from the server, and one was cancelled."""
    said = ("said " * 100,)
    jobs = [good(f"d{number}.example.com") for number in range(37)]
    jobs[20:20] = [
        cancelled("c.example.com"),
        failed("f1.example.com", failure=JobFailed("an example of an error", details=said)),
    ]
    return [*jobs, failed("f2.example.com", failure=Rejected("no", details=said))]
