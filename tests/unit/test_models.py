"""The values that parts of the action pass on, and what they say about themselves."""

import pytest

from docs_platform_action.models import AgentJob, Deployment


def test_an_agent_job_has_ended_unless_it_is_active_or_unknown() -> None:
    statuses = (*AgentJob.KNOWN_STATUSES, "odd")

    ended = [status for status in statuses if AgentJob(status=status).has_ended]

    assert ended == ["completed", "archived", "failed"]


@pytest.mark.parametrize(
    ("state", "description"),
    [
        ("failure", "has failed"),
        ("error", "has failed"),
        ("inactive", "has been replaced"),
        ("success", "has been replaced"),
        ("in_progress", "is in progress"),
    ],
)
def test_a_deployment_that_is_not_live_says_why(state: str, description: str) -> None:
    deployment = Deployment(
        id=1,
        commit="9f8e7d6c",
        commit_url="https://github.example.com/octo/docs/commit/9f8e7d6c",
        creator="platform[bot]",
        environment="docs",
        is_transient=False,
        state=state,
    )

    assert deployment.description == description
