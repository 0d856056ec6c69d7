"""Agent mode on a platform without faults."""

import pytest

from admin_api_simulator import Simulator
from tests.action import Action
from tests.ended import Ended

RESULT_OF_THE_DEMO_JOB = {
    "mode": "agent",
    "projectId": "demo-project",
    "domain": None,
    "bundleUrl": None,
    "pageCount": None,
    "repository": "https://git.example.com/acme/docs",
    "ref": "main",
    "model": "simulated-model-1",
}


def wait_for_agent(action: Action, platform: Simulator, job_id: str, **inputs: str) -> Ended:
    return action.run(platform, mode="agent", **{"project_id": "demo-project", "job_id": job_id, **inputs})


def test_a_pull_request_is_an_output(action: Action, platform: Simulator) -> None:
    ended = wait_for_agent(action, platform, "agent-pull-request")

    assert (ended.exit_code, ended.stderr, ended.commands) == (0, "", [])
    assert ended.outputs.keys() == {"jobId", "status", "prLink", "durationSeconds", "results"}
    assert (ended.outputs["jobId"], ended.outputs["status"]) == ("agent-pull-request", "completed")
    link = ended.outputs["prLink"]
    assert f"(<{link}>)" in ended.summary
    assert {**RESULT_OF_THE_DEMO_JOB, "prLink": link}.items() <= ended.result.items()
    assert ended.result["createdAt"]


@pytest.mark.parametrize(
    ("job_id", "reason", "status", "warnings"),
    [
        ("agent-no-change", "no-pull-request", "completed", 0),
        ("agent-archived", "no-pull-request", "archived", 1),
        ("agent-failed", "job-failed", "failed", 0),
    ],
)
def test_a_job_without_a_required_pull_request_fails_the_step(
    action: Action, platform: Simulator, job_id: str, reason: str, status: str, warnings: int
) -> None:
    ended = wait_for_agent(action, platform, job_id, require_pr="true")

    assert (ended.exit_code, ended.reason, ended.outputs["status"]) == (1, reason, status)
    assert ("prLink" in ended.outputs, len(ended.warnings)) == (False, warnings)
