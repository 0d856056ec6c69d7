"""Agent mode: wait for the job and its pull request."""

from typing import Any

import pytest

from docs_platform_action.api.admin_api import DeadlineExceeded
from docs_platform_action.errors import ActionError, JobFailed, NoPullRequest, NotFound, TimedOut, Unavailable
from docs_platform_action.inputs.settings import AgentSettings, WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.agent import wait_for_agent
from docs_platform_action.models import AgentJob
from tests.unit.fakes import HOST, RecordedEvents, context
from tests.virtual_time import VirtualClock

LINK = "https://git.example.com/docs/pull/7"
ACTIVE = AgentJob(status="active")


class FakeApi:
    """Returns these readings, the last one repeatedly, and records each event in order."""

    def __init__(self, *readings: AgentJob | Exception) -> None:
        self.readings = list(readings)
        self.events = RecordedEvents()

    def read_agent_job(self, job: Job, *, deadline: float) -> AgentJob:
        del deadline
        self.events.seen.append(("read", job))
        reading = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if isinstance(reading, Exception):
            raise reading
        return reading


class Run:
    """One wait with a fake API and a fake clock."""

    def __init__(self, *readings: AgentJob | Exception, require_pr: bool = False) -> None:
        self.api = FakeApi(*readings)
        self.clock = VirtualClock()
        self.settings = AgentSettings(
            waiting=WaitSettings(timeout_seconds=600, shortest_pause_seconds=1, longest_pause_seconds=1),
            project_id="prj_1",
            job_id="aj_1",
            require_pr=require_pr,
        )
        self.job = Job(mode="agent", project_id="prj_1", job_id="aj_1")

    def __call__(self) -> None:
        wait_for_agent(self.job, self.settings, context(self.clock, self.api.events, api=self.api))

    def failure(self) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self()
        return caught.value


def ended(status: str, **known: Any) -> AgentJob:
    return AgentJob(status=status, **known)


def test_the_job_is_announced_before_its_first_reading() -> None:
    run = Run(ACTIVE, ended("completed"))

    run()

    assert run.api.events.names == ["job_known", "polling", "read", "status_read", "read", "status_read"]


def test_a_completed_job_has_its_pull_request() -> None:
    run = Run(ACTIVE, ended("completed", pr_link=LINK))

    run()

    assert run.job.pr_link == LINK
    assert run.api.events.of("warning") == []


def test_a_completed_job_without_a_pull_request_is_a_success() -> None:
    run = Run(ended("completed"))

    run()

    assert run.job.pr_link is None


def test_an_archived_job_is_a_success_with_a_warning() -> None:
    run = Run(ended("archived", pr_link=LINK))

    run()

    assert run.job.pr_link == LINK
    assert [lines[0] for (lines,) in run.api.events.of("warning")] == ["Agent job aj_1 of project prj_1 was archived"]


@pytest.mark.parametrize("status", ["completed", "archived"])
def test_a_missing_pull_request_is_a_failure_if_it_is_required(status: str) -> None:
    run = Run(ended(status), require_pr=True)

    error = run.failure()

    assert isinstance(error, NoPullRequest)
    assert "could not open a pull request, or was archived" in error.cause
    assert "`require-pr`" in error.remedy


@pytest.mark.parametrize("status", ["completed", "archived"])
def test_an_existing_required_pull_request_is_a_success(status: str) -> None:
    run = Run(ended(status, pr_link=LINK), require_pr=True)

    run()

    assert run.job.pr_link == LINK


def test_a_failed_job_is_a_failure_and_its_pull_request_is_ignored() -> None:
    run = Run(ended("failed", pr_link=LINK))

    assert isinstance(run.failure(), JobFailed)
    assert run.job.pr_link is None
    assert run.job.status == "failed"


def test_a_pull_request_of_a_running_job_is_ignored() -> None:
    run = Run(ended("active", pr_link=LINK))

    error = run.failure()

    assert isinstance(error, TimedOut)
    assert error.details == ("It was last seen as 'active'.",)
    assert run.job.pr_link is None


def test_an_outage_that_lasts_to_the_end_of_the_wait_is_reported() -> None:
    run = Run(ACTIVE, DeadlineExceeded(f"the API at {HOST} remained unavailable", cause="The moon."))

    error = run.failure()

    assert isinstance(error, TimedOut)
    assert error.details == ("It was last seen as 'active'.", f"At the end the API at {HOST} remained unavailable.")
    assert error.cause == "The moon."


def test_an_outage_before_the_end_is_unavailable() -> None:
    run = Run(ACTIVE, Unavailable(f"the API at {HOST} remained unavailable"))

    assert isinstance(run.failure(), Unavailable)


def test_an_unknown_job_is_a_failure_at_once() -> None:
    run = Run(NotFound("the platform does not know it (404)"))

    assert isinstance(run.failure(), NotFound)
    assert run.api.events.names[-1] == "read"
