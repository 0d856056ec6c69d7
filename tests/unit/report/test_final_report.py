"""The end of the log, and the summary: a bug in one part costs a warning, and no other part."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from docs_platform_action.errors import ActionError, Rejected, TimedOut
from docs_platform_action.job import Job
from docs_platform_action.report import final_report
from docs_platform_action.report.console import Console
from docs_platform_action.report.outputs import MAX_JOB_OUTPUT_BYTES
from docs_platform_action.report.view import View
from tests.virtual_time import NOON

PARTS: Mapping[str, tuple[int, bool]] = {
    "final_report.size_warning": (3, True),
    "final_report.write_traces": (3, True),
    "final_report.annotate_failures": (0, True),
    "summary.summary_of": (3, False),
}
"""Functions that write a part of the report, and the annotations of three failures and the summary that are left without it."""


def broken(*_: object, **__: object) -> NoReturn:
    raise KeyError("pages")


def jobs(*failures: ActionError | None) -> list[Job]:
    return [Job(mode="export", domain=f"d{number}.example", began_at=1.0, failure=error) for number, error in enumerate(failures)]


@pytest.fixture
def report(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Return a function that reports jobs and returns the log and the summary."""

    def report(jobs: list[Job], *, results: str = "[]", debugging: bool = False, has_summary: bool = True) -> tuple[str, str]:
        stream, file = io.StringIO(), tmp_path / "summary"
        view = View(console=Console(stream, in_workflow=True, debugging=debugging), now=NOON, monotonic=5000.0)
        final_report.write_final_report(
            jobs, view, results=results, duration_seconds=7.0, summary_file=file if has_summary else None
        )
        return stream.getvalue(), file.read_text() if file.exists() else ""

    return report


Report = Callable[..., tuple[str, str]]


def test_each_failure_is_an_annotation_and_in_the_summary(report: Report) -> None:
    log, summary = report(jobs(Rejected("no"), None, TimedOut("slow")))

    assert [line.partition("%0A")[0].rpartition("::")[2] for line in log.splitlines()] == [
        "Export of d0.example: no",
        "Export of d2.example: slow",
    ]
    assert "`rejected`" in summary


def test_without_a_summary_file_only_the_log_is_written(report: Report) -> None:
    assert report(jobs(None), has_summary=False) == ("", "")


@pytest.mark.parametrize(("size", "count"), [(MAX_JOB_OUTPUT_BYTES // 2, 0), (MAX_JOB_OUTPUT_BYTES // 2 + 1, 1)])
def test_results_that_are_too_large_for_a_job_are_warned_of(report: Report, size: int, count: int) -> None:
    log, _ = report(jobs(None), results="x" * size)

    assert log.count("::warning::") == count


@pytest.mark.parametrize(("function", "left"), PARTS.items())
@pytest.mark.parametrize("debugging", [False, True])
def test_each_part_is_written_without_the_others(
    report: Report, monkeypatch: pytest.MonkeyPatch, function: str, left: tuple[int, bool], debugging: bool
) -> None:
    monkeypatch.setattr(f"docs_platform_action.report.{function}", broken)

    log, summary = report(jobs(*[Rejected("no")] * 3), debugging=debugging)

    assert log.count("::warning::") == 1
    assert (log.count("::error title="), bool(summary)) == left
    assert log.count("::debug::Traceback") == log.count("::debug::KeyError: 'pages'") == debugging


def test_a_bug_in_an_annotation_costs_no_other(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = jobs(*[Rejected("no")] * 3)
    monkeypatch.setattr(failed[1], "failure", Rejected("no", details=(7,)))  # type: ignore[arg-type]

    log, _ = report(failed)

    errors = [line for line in log.splitlines() if line.startswith("::error ")]
    assert [line.partition("Export of ")[2][:2] for line in errors] == ["d0", "d2"]
    assert log.count("::warning::") == 2  # the summary has the same details
