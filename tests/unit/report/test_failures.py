"""The facts of a failure, one per line."""

import io
from collections.abc import Sequence

import pytest

from docs_platform_action.errors import (
    ActionError,
    BadResponse,
    Cancelled,
    Forbidden,
    InternalError,
    InvalidInput,
    JobFailed,
    NotFound,
    Rejected,
    TimedOut,
    Unauthorized,
    Unavailable,
    internal_error,
)
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.failures import MAX_DETAILED_FAILURES, annotate_failures, failure_lines, write_traces


def running_job(**changes: object) -> Job:
    known = {
        "mode": "export",
        "domain": "docs.example.com",
        "job_id": "se_1",
        "status": "running",
        "started_at": 0.0,
        "began_at": 0.0,
    }
    return Job(**{**known, **changes})  # type: ignore[arg-type]


def test_it_tells_what_happened_why_what_to_do_and_how_to_find_it_again() -> None:
    error = Unauthorized("the platform rejected the admin key (401)", details=('The API said: "no".',), request_id="7f3a91c2")

    assert failure_lines(running_job(), error) == [
        "Export of docs.example.com: the platform rejected the admin key (401)",
        'The API said: "no".',
        Unauthorized.default_cause,
        Unauthorized.default_remedy,
        "Job se_1 continues at the platform. Collect it in a later run with `job-id: se_1`.",
        "Request id 7f3a91c2.",
    ]


def test_what_is_not_known_leaves_no_line() -> None:
    assert failure_lines(running_job(status="failed"), JobFailed("it broke")) == ["Export of docs.example.com: it broke"]


def test_a_mistake_in_the_inputs_names_no_job() -> None:
    error = InvalidInput("2 invalid inputs: `a`, `b`", details=("`a`: no.", "`b`: no."))

    assert failure_lines(Job(mode="export"), error) == [
        "2 invalid inputs: `a`, `b`",
        "`a`: no.",
        "`b`: no.",
        InvalidInput.default_remedy,
    ]


@pytest.mark.parametrize("error", [TimedOut("slow"), Cancelled("cancelled"), Unauthorized("no"), Rejected("no")])
def test_a_job_that_continues_can_be_collected(error: ActionError) -> None:
    assert "`job-id: se_1`" in "\n".join(failure_lines(running_job(), error))


@pytest.mark.parametrize(("status", "error"), [("failed", JobFailed("it broke")), ("running", NotFound("gone"))])
def test_a_job_that_does_not_continue_cannot_be_collected(status: str, error: ActionError) -> None:
    assert "`job-id: se_1`" not in "\n".join(failure_lines(running_job(status=status), error))


def test_a_job_that_this_run_never_saw_is_not_promised() -> None:
    lines = failure_lines(running_job(started_at=None, status=None), Unauthorized("no"))

    assert not any("continues" in line for line in lines)


def test_a_job_that_the_platform_no_longer_knows_makes_no_link() -> None:
    lines = failure_lines(running_job(status="completed"), NotFound("the platform does not know the job se_1 (404)"))

    assert not any("makes its bundle link" in line for line in lines)


@pytest.mark.parametrize("error", [Cancelled("cancelled"), Rejected("no"), InternalError("it broke")])
def test_an_agent_job_that_has_ended_does_not_go_on(error: ActionError) -> None:
    ended = running_job(mode="agent", project_id="p", status="completed", agent_job=AgentJob(status="completed"))

    lines = failure_lines(ended, error)

    assert "`job-id" not in "\n".join(lines)


def test_without_a_job_there_is_nothing_to_collect() -> None:
    assert not any("continues" in line for line in failure_lines(running_job(job_id=None), TimedOut("slow")))


@pytest.mark.parametrize(
    "error",
    [
        Cancelled("cancelled"),
        Rejected("no"),
        BadResponse("no link"),
        Unavailable("down"),
        Forbidden("no"),
        InternalError("it broke"),
    ],
)
@pytest.mark.parametrize("started", [True, False])
def test_a_completed_export_needs_its_link_alone(error: ActionError, started: bool) -> None:
    lines = failure_lines(running_job(status="completed", started_at=0.0 if started else None), error)

    assert "Job se_1 is completed. A run with `job-id: se_1` makes its bundle link without exporting again." in lines


class TestTraces:
    def raised(self) -> Exception:
        try:
            len(5)  # type: ignore[arg-type]
        except TypeError as error:
            return error

    @pytest.mark.parametrize("debugging", [True, False])
    def test_a_bug_says_where_it_is_and_its_trace_is_for_debugging(self, debugging: bool) -> None:
        stream = io.StringIO()
        error = internal_error(self.raised())

        write_traces(Console(stream, in_workflow=True, debugging=debugging), failed(error, error, None))

        assert error.summary == "the action itself failed"
        assert error.details[0].startswith("TypeError at test_failures.py, line ")
        assert stream.getvalue().count("::debug::Traceback") == debugging

    def test_one_that_was_never_raised_has_no_place(self) -> None:
        assert internal_error(TypeError("unexpected")).details[0].startswith("TypeError at unknown, docs-platform-action ")

    def test_another_internal_error_has_no_trace(self) -> None:
        stream = io.StringIO()

        write_traces(Console(stream, in_workflow=True, debugging=True), failed(InternalError("the file cannot be written")))

        assert stream.getvalue() == ""


def failed(*errors: ActionError | None) -> list[Job]:
    return [running_job(domain=f"d{number}.example", failure=error) for number, error in enumerate(errors)]


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


def first_lines(jobs: list[Job]) -> list[str]:
    return [lines[0] for _, lines in annotations_of(jobs)]


class TestTitles:
    @pytest.mark.parametrize(
        ("job", "error", "title"),
        [
            (running_job(), Unauthorized("no"), "Static export failed: unauthorized"),
            (running_job(began_at=None), Unauthorized("no"), "Static export not started: unauthorized"),
            (running_job(mode="agent", project_id="p"), TimedOut("slow"), "Agent job failed: timeout"),
            (running_job(), Cancelled("cancelled after 0:38"), "Static export cancelled"),
            (running_job(began_at=None), Cancelled("cancelled before it started"), "Static export cancelled"),
            (Job(mode=None), InvalidInput("Invalid input `mode`: no"), "Static export failed: invalid-input"),
        ],
    )
    def test_a_title_is_how_it_ended_and_why(self, job: Job, error: ActionError, title: str) -> None:
        job.failure = error

        assert [title for title, _ in annotations_of([job])] == [title]

    def test_it_holds_no_foreign_text(self) -> None:
        job = running_job(domain="FOREIGN", job_id="FOREIGN", status="FOREIGN", failure=Rejected("FOREIGN", request_id="FOREIGN"))

        assert not any("FOREIGN" in title for title, _ in annotations_of([job] * 11))


class TestManyFailures:
    def test_none_is_none(self) -> None:
        assert annotations_of(failed(None, None)) == []

    def test_nine_need_no_more(self) -> None:
        assert len(annotations_of(failed(*[Rejected("no")] * MAX_DETAILED_FAILURES))) == 9

    def test_the_rest_is_counted_by_reason(self) -> None:
        jobs = failed(*[Rejected("no")] * 10, *[Unauthorized("no")] * 12, *[TimedOut("slow")] * 8)

        shown = annotations_of(jobs)

        assert len(shown) == 10
        assert shown[-1] == (
            "More failures",
            [
                "21 more exports did not succeed",
                "12 unauthorized, 8 timeout, 1 rejected.",
                "The job summary and the output `results` list each of them.",
            ],
        )

    def test_those_that_really_failed_come_first_in_their_order(self) -> None:
        jobs = failed(Cancelled("cancelled"), Rejected("no"), Cancelled("cancelled"), TimedOut("slow"))

        assert first_lines(jobs) == [
            "Export of d1.example: no",
            "Export of d3.example: slow",
            "Export of d0.example: cancelled",
            "Export of d2.example: cancelled",
        ]

    @pytest.mark.parametrize(
        ("rest", "line"),
        [
            ([Rejected("no")], "1 more export did not succeed"),
            ([Rejected("no"), Cancelled("cancelled")], "2 more exports did not succeed"),
            ([Rejected("no")] * 991, "991 more exports did not succeed"),
        ],
    )
    def test_its_first_line_is_enough_by_itself(self, rest: list[ActionError], line: str) -> None:
        assert first_lines(failed(*[Rejected("no")] * MAX_DETAILED_FAILURES, *rest))[-1] == line
