"""Which failures have an annotation and a stack trace, in which order. `tests/wording/runs.md` has the annotations."""

import io
from collections.abc import Sequence
from typing import Any

import pytest

from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    InternalError,
    NotFound,
    Rejected,
    TimedOut,
    Unauthorized,
    internal_error,
)
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob, ExportJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.failures import MAX_DETAILED_FAILURES, annotate_failures, how_to_collect

NO = Rejected("no")


def failed(*errors: ActionError | None) -> list[Job]:
    return [Job(mode="export", domain=f"d{number}.example", began_at=0.0, failure=error) for number, error in enumerate(errors)]


class Annotations(Console):
    """Records the title and the lines of each annotation."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), in_workflow=True, debugging=False)
        self.shown: list[tuple[str, list[str]]] = []

    def error(self, lines: Sequence[str], *, title: str) -> None:
        self.shown.append((title, [*lines]))


def annotations_of(jobs: list[Job]) -> list[tuple[str, list[str]]]:
    console = Annotations()
    annotate_failures(console, jobs)
    return console.shown


class TestTraces:
    @pytest.mark.parametrize("debugging", [True, False])
    def test_that_of_a_bug_is_shown_once_for_debugging(self, debugging: bool) -> None:
        try:
            len(5)  # type: ignore[arg-type]
        except TypeError as bug:
            error = internal_error(bug)
        stream = io.StringIO()

        annotate_failures(Console(stream, in_workflow=True, debugging=debugging), failed(error, error, None))

        assert error.details[0].startswith("TypeError at test_failures.py, line ")
        assert stream.getvalue().count("::debug::Traceback") == debugging

    def test_another_internal_error_has_none(self) -> None:
        stream = io.StringIO()

        annotate_failures(Console(stream, in_workflow=True, debugging=True), failed(InternalError("no")))

        assert "::debug::" not in stream.getvalue()


class TestAnnotations:
    @pytest.mark.parametrize(
        ("errors", "count", "rest"),
        [
            ([None, None], 0, None),
            ([NO] * MAX_DETAILED_FAILURES, MAX_DETAILED_FAILURES, None),
            ([NO] * (MAX_DETAILED_FAILURES + 1), MAX_DETAILED_FAILURES + 1, "1 rejected."),
            ([NO] * 10 + [Unauthorized("no")] * 12 + [TimedOut("no")] * 8, 10, "12 unauthorized, 8 timeout, 1 rejected."),
        ],
    )
    def test_there_are_at_most_ten_and_the_last_counts_the_rest(
        self, errors: list[ActionError | None], count: int, rest: str | None
    ) -> None:
        shown = annotations_of(failed(*errors))

        assert len(shown) == count
        assert rest is None or shown[-1][1][1] == rest

    def test_those_that_really_failed_come_first_in_their_order(self) -> None:
        jobs = failed(Cancelled("cancelled"), NO, Cancelled("cancelled"), TimedOut("slow"))

        assert [lines[0].split()[2] for _, lines in annotations_of(jobs)] == [f"d{number}.example:" for number in (1, 3, 0, 2)]

    def test_a_title_has_no_foreign_text(self) -> None:
        failure = Rejected("FOREIGN", request_id="FOREIGN")
        reading = ExportJob(status="FOREIGN", error="FOREIGN")
        job = Job(mode="export", domain="FOREIGN", job_id="FOREIGN", reading=reading, began_at=0.0, failure=failure)

        assert not any("FOREIGN" in title for title, _ in annotations_of([job] * 11))


AGENT = {"mode": "agent", "project_id": "prj_1"}


@pytest.mark.parametrize(
    ("known", "error", "can_be_collected"),
    [
        ({"started_at": 1.0}, NO, True),
        ({"started_at": 1.0, "job_id": None}, NO, False),
        ({}, NO, False),
        ({"reading": ExportJob(status="running")}, NO, True),
        ({"reading": ExportJob(status="polishing")}, NO, True),
        ({"reading": ExportJob(status="completed")}, NO, True),
        ({"reading": ExportJob(status="completed")}, NotFound("no"), False),
        ({"reading": ExportJob(status="failed"), "started_at": 1.0}, NO, False),
        ({**AGENT, "reading": AgentJob(status="active")}, NO, True),
        ({**AGENT, "reading": AgentJob(status="completed")}, NO, False),
    ],
)
def test_a_failure_names_the_inputs_of_a_later_run_if_one_can_collect_the_job(
    known: dict[str, Any], error: ActionError, can_be_collected: bool
) -> None:
    job = Job(**{"mode": "export", "job_id": "se_1", **known})

    assert (job.inputs_to_collect in how_to_collect(job, error)) is can_be_collected
