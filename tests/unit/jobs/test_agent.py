"""An agent job is waited for, and its pull request known."""

from typing import Any

import pytest

from docs_platform_action.errors import ActionError, JobFailed, NoPullRequest, NotFound, TimedOut, Unavailable
from docs_platform_action.models import AgentJob
from tests.unit.jobs.scripted import AGENT, Scripted

LINK = "https://git.example.com/docs/pull/7"
ACTIVE = AgentJob(status="active")


def agent(*readings: AgentJob | Exception, require_pr: bool = False) -> Scripted:
    return Scripted(*readings, settings=AGENT, require_pr=require_pr)


def ended(status: str, **known: Any) -> AgentJob:
    return AgentJob(status=status, **known)


@pytest.mark.parametrize(
    ("status", "link", "require_pr", "warnings"),
    [
        ("completed", LINK, False, 0),
        ("completed", LINK, True, 0),
        ("completed", None, False, 0),
        ("archived", LINK, False, 1),
        ("archived", LINK, True, 1),
        ("archived", None, False, 1),
    ],
)
def test_a_job_that_completed_or_was_archived_is_a_success(
    status: str, link: str | None, require_pr: bool, warnings: int
) -> None:
    scripted = agent(ACTIVE, ended(status, pr_link=link), require_pr=require_pr)

    job = scripted.run()

    assert (job.status, job.pr_link, len(scripted.events.of("warning"))) == (status, link, warnings)


@pytest.mark.parametrize(
    ("last", "require_pr", "kind", "status"),
    [
        (ended("completed"), True, NoPullRequest, "completed"),
        (ended("archived"), True, NoPullRequest, "archived"),
        (ended("failed", pr_link=LINK), False, JobFailed, "failed"),
        (ended("failed", unusable_pr_link="git.example.com/7"), True, JobFailed, "failed"),
        (ended("active", pr_link=LINK), False, TimedOut, "active"),
        (Unavailable("it is down"), False, Unavailable, "active"),
        (NotFound("it is gone"), False, NotFound, "active"),
    ],
)
def test_any_other_end_is_a_failure_without_a_pull_request(
    last: AgentJob | Exception, require_pr: bool, kind: type[ActionError], status: str
) -> None:
    scripted = agent(ACTIVE, last, require_pr=require_pr)

    assert type(scripted.failure()) is kind
    assert (scripted.job.status, scripted.job.pr_link) == (status, None)
    assert scripted.events.names[-1] == (
        "read" if isinstance(last, Exception) else "warning" if status == "archived" else "status_read"
    )


class TestUnusableLink:
    """The platform returned a `prLink` that is not a web address."""

    @pytest.mark.parametrize(("status", "warnings"), [("completed", 1), ("archived", 2)])
    def test_it_is_shown_in_a_warning(self, status: str, warnings: int) -> None:
        scripted = agent(ACTIVE, ended(status, unusable_pr_link="git.example.com/7"))

        job = scripted.run()

        shown = [lines for (lines,) in scripted.events.of("warning")]
        assert (job.pr_link, len(shown)) == (None, warnings)
        assert "'git.example.com/7'" in " ".join(shown[-1])

    @pytest.mark.parametrize("status", ["completed", "archived"])
    def test_a_job_that_requires_a_pull_request_fails_and_shows_it(self, status: str) -> None:
        failure = agent(ACTIVE, ended(status, unusable_pr_link="git.example.com/7"), require_pr=True).failure()

        assert isinstance(failure, NoPullRequest)
        assert "'git.example.com/7'" in failure.details[0]
