"""The annotations of failures: their order and their number, and who can collect a failed job."""

from typing import Any

import pytest

from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    InvalidInput,
    JobFailed,
    NotFound,
    TimedOut,
    internal_error,
)
from docs_platform_action.job import Job
from docs_platform_action.jobs.agent import Agent
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import AgentJob, ExportJob
from docs_platform_action.report.failures import (
    MAX_DETAILED_FAILURES,
    annotate_failures,
    failure_lines,
    failure_paragraphs,
    how_to_collect,
)
from docs_platform_action.report.markup import Markup
from tests.commands import commands_in
from tests.unit.report.test_console import Log

RUNNING = ExportJob(status="running")


def failed(failure: ActionError | None, **known: Any) -> Job:
    return Job(kind=Export(), began_at=1.0, failure=failure, **known)


class TestAnnotations:
    def test_there_is_one_for_each_failure_with_cancelled_jobs_last(self) -> None:
        log = Log()
        jobs = [failed(Cancelled("cancelled")), failed(TimedOut("late")), failed(None)]

        annotate_failures(log.console, jobs)

        assert [command.properties for command in commands_in(log.text)] == [
            {"title": "Static export failed: timeout"},
            {"title": "Static export cancelled"},
        ]

    def test_those_beyond_the_runners_limit_are_counted_in_one_more(self) -> None:
        log = Log()
        jobs = [failed(TimedOut("late")) for _ in range(MAX_DETAILED_FAILURES + 3)]

        annotate_failures(log.console, jobs)

        commands = commands_in(log.text)
        assert len(commands) == MAX_DETAILED_FAILURES + 1
        assert commands[-1].properties == {"title": "More failures"}
        assert "3 timeout." in commands[-1].value

    def test_up_to_the_runners_limit_none_is_counted(self) -> None:
        log = Log()
        jobs = [failed(TimedOut("late")) for _ in range(MAX_DETAILED_FAILURES)]

        annotate_failures(log.console, jobs)

        assert len(commands_in(log.text)) == MAX_DETAILED_FAILURES

    def test_the_trace_of_a_bug_that_several_jobs_met_is_written_once(self) -> None:
        log = Log(debugging=True)
        failure = internal_error(KeyError("x"))

        annotate_failures(log.console, [failed(failure), failed(failure), failed(JobFailed("x"))])

        assert log.text.count("::debug::KeyError:") == 1


def test_lines_that_are_not_known_are_left_out() -> None:
    full = JobFailed("x", details=("a", "b"), cause="c", remedy="d", request_id="e")

    assert failure_lines(failed(full, domain="a.example"), full) == [
        "Export of a.example: x",
        "a",
        "b",
        "c",
        "d",
        "Request ID e.",
    ]
    assert failure_lines(failed(JobFailed("x")), JobFailed("x")) == ["Static export: x"]


@pytest.mark.parametrize(
    ("error", "known", "expected"),
    [
        (JobFailed("it failed"), {}, ["**What happened:** It failed."]),
        (
            JobFailed("it failed", details=("a", "b")),
            {"subject": "All 2 sites"},
            ["**What happened:** All 2 sites: it failed. a. b."],
        ),
        (
            InvalidInput("two inputs are invalid", details=("a", "b"), remedy=""),
            {},
            ["**What happened:** Two inputs are invalid.\n- a.\n- b."],
        ),
        (
            JobFailed("it failed", cause="c", remedy="d", request_id="e"),
            {"collecting_hint": "Collect.", "reason": "Reason."},
            [
                "**What happened:** It failed.",
                "**Likely cause:** c",
                "**What to do:** d Collect.",
                "Reason. Request ID e.",
            ],
        ),
    ],
)
def test_an_explanation_has_a_paragraph_for_what_is_known(
    error: ActionError, known: dict[str, str], expected: list[str]
) -> None:
    assert failure_paragraphs(error, Markup(Log().console), **known) == expected


@pytest.mark.parametrize(
    ("known", "error", "expected"),
    [
        ({"job_id": None, "reading": RUNNING}, TimedOut("x"), ""),
        ({"reading": RUNNING}, InvalidInput("x"), ""),
        ({"reading": RUNNING}, NotFound("x"), ""),
        ({"reading": None}, TimedOut("x"), ""),
        ({"reading": ExportJob(status="failed")}, JobFailed("x"), ""),
        ({"reading": None, "started_at": 1.0}, TimedOut("x"), "Job 1 continues"),
        ({"reading": RUNNING}, TimedOut("x"), "Job 1 continues"),
        ({"reading": ExportJob(status="completed")}, TimedOut("x"), "Job 1 is completed"),
        ({"reading": ExportJob(status="odd")}, TimedOut("x"), "If the job is still running, coll"),
        (
            {"kind": Agent(), "reading": AgentJob(status="odd")},
            TimedOut("x"),
            "If the job is still running, wait for",
        ),
        ({"kind": Agent(), "reading": AgentJob(status="completed")}, TimedOut("x"), ""),
    ],
)
def test_a_job_that_continues_or_has_completed_can_be_collected(
    known: dict[str, Any], error: ActionError, expected: str
) -> None:
    job = Job(**{"kind": Export(), "job_id": "1", **known})

    hint = how_to_collect(job, error)

    assert hint.startswith(expected)
    assert bool(hint) == bool(expected)


def test_a_job_that_can_be_collected_is_named_as_asked() -> None:
    job = Job(kind=Export(), job_id="1", reading=RUNNING)

    hint = how_to_collect(job, TimedOut("x"), subject="The job")

    assert hint.startswith("The job continues")
