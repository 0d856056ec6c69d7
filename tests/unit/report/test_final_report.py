"""The end of the log, and the summary."""

import io
from pathlib import Path
from typing import NoReturn

import pytest

from docs_platform_action.errors import JobFailed, Rejected, TimedOut
from docs_platform_action.job import Job
from docs_platform_action.report.console import Console
from docs_platform_action.report.final_report import write_final_report
from docs_platform_action.report.outputs import MAX_JOB_OUTPUT_BYTES
from docs_platform_action.report.view import View
from tests.virtual_time import NOON


def broken(*_: object, **__: object) -> NoReturn:
    raise KeyError("pages")


def report(*jobs: Job, summary_file: Path | None, results: str = "[]", debugging: bool = False) -> str:
    stream = io.StringIO()
    console = Console(stream, in_workflow=True, debugging=debugging)
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


class TestBugs:
    """A bug in one part of the report costs a warning, and no other part."""

    @pytest.fixture
    def jobs(self) -> list[Job]:
        return [Job(mode="export", domain=f"d{number}.example", began_at=1.0, failure=Rejected("no")) for number in range(3)]

    @pytest.mark.parametrize(
        ("function", "part"),
        [
            ("final_report.size_warning", "A warning"),
            ("final_report.write_traces", "A stack trace"),
            ("final_report.annotate_failures", "An error annotation"),
            ("summary.summary_of", "The job summary"),
        ],
    )
    def test_each_part_is_written_without_the_others(
        self, jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, part: str
    ) -> None:
        monkeypatch.setattr(f"docs_platform_action.report.{function}", broken)

        log = report(*jobs, summary_file=tmp_path / "summary")

        warning = f"::warning::{part} cannot be written (KeyError); outputs and exit code are not affected.%0A"
        assert [line.startswith(warning) for line in log.splitlines() if line.startswith("::warning::")] == [True]
        assert log.count("::error title=") == (0 if part == "An error annotation" else 3)
        assert bool((tmp_path / "summary").read_text()) is (part != "The job summary")
        assert "Traceback" not in log

    def test_an_annotation_costs_no_other(self, jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jobs[1], "failure", Rejected("no", details=(7,)))  # type: ignore[arg-type]

        log = report(*jobs, summary_file=tmp_path / "summary")

        errors = [line for line in log.splitlines() if line.startswith("::error ")]
        assert [line.partition("Export of ")[2][:2] for line in errors] == ["d0", "d2"]
        assert "::warning::An error annotation cannot be written (AttributeError)" in log

    def test_debug_logging_shows_where_it_is(self, jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.report.summary.summary_of", broken)

        log = report(*jobs, summary_file=tmp_path / "summary", debugging=True)

        assert "::debug::Traceback (most recent call last)" in log
        assert log.endswith("::debug::KeyError: 'pages'\n")
