"""The summary of jobs, as it is written and as GitHub reads it."""

from dataclasses import replace

from docs_platform_action.errors import JobFailed, Rejected
from docs_platform_action.job import Job
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES, MIN_SUMMARY_BYTES, summary_of
from tests.page.gfm import Element, page_of
from tests.page.samples import cancelled, failed, good, view


def page(*jobs: Job, seconds: float = 253.0, max_bytes: int = MAX_SUMMARY_BYTES, run_url: str = "") -> str:
    return summary_of(jobs, replace(view(), run_url=run_url), duration_seconds=seconds, max_bytes=max_bytes)


def parsed(*jobs: Job, max_bytes: int = MAX_SUMMARY_BYTES, run_url: str = "") -> Element:
    return page_of(page(*jobs, max_bytes=max_bytes, run_url=run_url))


def exported(**changes: object) -> Job:
    """Return a good export of which no bundle was fetched, and no phase took any time."""
    return good(**{"downloaded": None, "phases": [], **changes})  # type: ignore[arg-type]


def note_in(summary: str) -> str:
    """Return the line that says what a summary leaves out."""
    return next((line for line in summary.splitlines() if line.startswith("Shortened:")), "")


def many() -> list[Job]:
    """Return forty jobs. Two failed, with a long message from the server, and one was cancelled."""
    said = ("said " * 100,)
    jobs = [good(f"d{number}.example.com") for number in range(37)]
    jobs[20:20] = [
        cancelled("c.example.com"),
        failed("f1.example.com", failure=JobFailed("an example of an error", details=said)),
    ]
    return [*jobs, failed("f2.example.com", failure=Rejected("no", details=said))]


def ever_shorter(*jobs: Job) -> dict[int, str]:
    """Return the page by its `max_bytes`, from its full size down to the smallest."""
    sizes = range(len(page(*jobs).encode()), MIN_SUMMARY_BYTES, -512)
    return {max_bytes: page(*jobs, max_bytes=max_bytes) for max_bytes in sizes}
