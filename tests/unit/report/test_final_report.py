"""The end of the log, and the summary."""

import io
from pathlib import Path

from docs_platform_action.errors import JobFailed, Rejected, TimedOut
from docs_platform_action.job import Job
from docs_platform_action.report.console import Console
from docs_platform_action.report.final_report import write_final_report
from docs_platform_action.report.outputs import MAX_JOB_OUTPUT_BYTES
from docs_platform_action.report.view import View
from tests.unit.fakes import NOON


def report(*jobs: Job, summary_file: Path | None, results: str = "[]") -> str:
    stream = io.StringIO()
    console = Console(stream, in_workflow=True, debugging=False)
    view = View(console=console, now=NOON, monotonic=5000.0)
    write_final_report(jobs, view, results=results, duration_seconds=7.0, summary_file=summary_file)
    return stream.getvalue()


def test_a_failure_is_an_annotation_and_in_the_summary(tmp_path: Path) -> None:
    job = Job(mode="export", domain="docs.example.com", began_at=5000.0, failure=JobFailed("the export failed at the platform"))

    log = report(job, summary_file=tmp_path / "summary")

    assert log.startswith(
        "::error title=Static export failed%3A job-failed::Export of docs.example.com: the export failed at the platform"
    )
    assert "**What happened:** The export failed at the platform." in (tmp_path / "summary").read_text()


def test_without_a_summary_file_only_the_log_is_written() -> None:
    job = Job(mode="export", domain="docs.example.com", began_at=5000.0)

    assert report(job, summary_file=None) == ""


def test_results_that_are_too_large_for_a_job_are_warned_of(tmp_path: Path) -> None:
    log = report(
        Job(mode="export", began_at=5000.0), summary_file=tmp_path / "summary", results="x" * (MAX_JOB_OUTPUT_BYTES // 2 + 1)
    )

    assert "::warning::The output `results` is too large for a job output" in log


class TestManyFailures:
    def test_each_has_its_annotation(self, tmp_path: Path) -> None:
        failures = (Rejected("no"), None, TimedOut("slow"))
        jobs = [
            Job(mode="export", domain=f"d{number}.example", began_at=1.0, failure=failure)
            for number, failure in enumerate(failures)
        ]

        log = report(*jobs, summary_file=tmp_path / "summary")

        first, second = log.splitlines()
        assert first.startswith("::error title=Static export failed%3A rejected::Export of d0.example: no%0A")
        assert second.startswith("::error title=Static export failed%3A timeout::Export of d2.example: slow")
