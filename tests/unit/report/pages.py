"""The summary of jobs, as it is written and as GitHub reads it."""

from dataclasses import replace

from docs_platform_action.job import Job
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES, summary_of
from tests.page.gfm import Element, page_of
from tests.page.samples import good, view


def page(*jobs: Job, seconds: float = 253.0, max_bytes: int = MAX_SUMMARY_BYTES, run_url: str = "") -> str:
    return summary_of(jobs, replace(view(), run_url=run_url), duration_seconds=seconds, max_bytes=max_bytes)


def parsed(*jobs: Job, max_bytes: int = MAX_SUMMARY_BYTES, run_url: str = "") -> Element:
    return page_of(page(*jobs, max_bytes=max_bytes, run_url=run_url))


def exported(**changes: object) -> Job:
    """Return a good export of which no bundle was fetched, and no phase took any time."""
    return good(**{"downloaded": None, "phases": [], **changes})  # type: ignore[arg-type]
