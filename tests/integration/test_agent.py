"""Agent mode: every way in which an agent job can end."""

import pytest

from admin_api_simulator import Fault, Simulator
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
    assert ended.log.splitlines()[0] == "Agent job agent-pull-request of project demo-project"
    assert ended.log.splitlines()[-1] == f"  Pull request: {link}"
    assert f"(<{link}>)" in ended.summary
    assert {**RESULT_OF_THE_DEMO_JOB, "prLink": link}.items() <= ended.result.items()
    assert ended.result["createdAt"]


def test_a_job_without_a_pull_request_succeeds(action: Action, platform: Simulator) -> None:
    ended = wait_for_agent(action, platform, "agent-no-change")

    assert (ended.exit_code, ended.commands) == (0, [])
    assert "prLink" not in ended.outputs
    assert ended.result["prLink"] is None
    assert "No pull request" in ended.log


@pytest.mark.parametrize(("job_id", "exit_code"), [("agent-no-change", 1), ("agent-pull-request", 0)])
def test_a_pull_request_can_be_required(action: Action, platform: Simulator, job_id: str, exit_code: int) -> None:
    ended = wait_for_agent(action, platform, job_id, require_pr="true")

    assert ended.exit_code == exit_code
    assert ended.reason == ("no-pull-request" if exit_code else None)
    assert ended.outputs["status"] == "completed"


def test_an_archived_job_succeeds_with_a_warning(action: Action, platform: Simulator) -> None:
    ended = wait_for_agent(action, platform, "agent-archived")

    assert (ended.exit_code, ended.errors, len(ended.warnings)) == (0, [], 1)
    assert "agent-archived of project demo-project was archived" in ended.warnings[0]
    assert ended.outputs["status"] == "archived"
    assert ended.result["archivedAt"]


def test_an_archived_job_keeps_its_pull_request(action: Action, platform: Simulator) -> None:
    link = "https://git.example.com/acme/docs/pull/7"
    platform.add_agent_job("put-aside", outcome="archived", prLink=link)

    ended = wait_for_agent(action, platform, "put-aside", require_pr="true")

    assert (ended.exit_code, ended.outputs["prLink"], len(ended.warnings)) == (0, link, 1)


def test_a_failed_job_fails_the_step(action: Action, platform: Simulator) -> None:
    ended = wait_for_agent(action, platform, "agent-failed")

    assert (ended.exit_code, ended.reason, ended.outputs["status"]) == (1, "job-failed", "failed")
    assert "prLink" not in ended.outputs


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "git.example.com/pull/1", "https://git.example.com/a b", "", 7, {"url": "https://x.example"}]
)
def test_a_link_that_is_not_a_web_address_counts_as_missing(action: Action, platform: Simulator, link: object) -> None:
    platform.add_agent_job("odd", seconds=0, prLink=link)

    ended = wait_for_agent(action, platform, "odd")

    assert (ended.exit_code, ended.result["prLink"]) == (0, None)
    assert "prLink" not in ended.outputs


def test_the_link_of_a_running_job_is_not_an_output(action: Action, platform: Simulator) -> None:
    platform.script_forever("read_agent_job", Fault(json={"status": "active", "prLink": "https://git.example.com/pull/1"}))

    ended = wait_for_agent(action, platform, "agent-pull-request", timeout="200ms")

    assert (ended.exit_code, ended.reason) == (1, "timeout")
    assert "prLink" not in ended.outputs


def test_the_ids_of_a_project_and_a_job_are_sent_unchanged(action: Action, platform: Simulator) -> None:
    platform.add_agent_job("j/../1 ü", project_id="team a/b%", seconds=0)

    ended = wait_for_agent(action, platform, "j/../1 ü", project_id="team a/b%")

    assert ended.exit_code == 0
    assert platform.requests[0].path == "/v2/agent/team%20a%2Fb%25/job/j%2F..%2F1%20%C3%BC"


def test_each_input_of_export_mode_causes_a_warning(action: Action, platform: Simulator) -> None:
    ended = wait_for_agent(action, platform, "agent-pull-request", domain="docs.example.com", wait="false")

    assert ended.exit_code == 0
    assert [name for warning in ended.warnings for name in ("domain", "wait") if f"`{name}`" in warning] == ["domain", "wait"]


OWN_UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


@pytest.mark.parametrize("other", ["agent-no-change", "Agent-Pull-Request", "agent-pull-request ", "agent%2Dpull%2Drequest", "7"])
def test_an_answer_about_another_job_is_a_bad_response(action: Action, platform: Simulator, other: str) -> None:
    platform.script("read_agent_job", Fault(json={"id": "agent-pull-request", "status": "active"}))
    platform.override("read_agent_job", lambda job: {**job, "id": other})

    ended = wait_for_agent(action, platform, "agent-pull-request", outage_tolerance="1h")

    assert (ended.exit_code, ended.reason, platform.count("read_agent_job")) == (1, "bad-response", 2)
    assert (ended.outputs["jobId"], ended.outputs["status"]) == ("agent-pull-request", "active")
    assert (ended.result["prLink"], ended.result["repository"]) == (None, None)
    assert "the API returned another job" in ended.error
    assert f"'{other}'" in ended.error
    assert "Request id req-" in ended.error


@pytest.mark.parametrize(
    ("job_id", "answered"),
    [
        *(("agent-pull-request", answered) for answered in (None, "", 7, ["agent-no-change"], {"id": "x"})),
        (OWN_UUID.upper(), OWN_UUID),  # RFC 9562, section 4: a UUID is the same in upper case
        ("j/../1 \u0065\u0301", "j/../1 \u0065\u0301"),
        ("x" * 3000, "x" * 3000),
    ],
)
def test_any_other_id_in_an_answer_is_that_of_the_job(action: Action, platform: Simulator, job_id: str, answered: object) -> None:
    platform.add_agent_job(job_id, seconds=0)
    platform.override("read_agent_job", lambda job: {**job, "id": answered})

    ended = wait_for_agent(action, platform, job_id)

    assert (ended.exit_code, ended.outputs["jobId"], ended.outputs["status"]) == (0, job_id, "completed")


def test_an_answer_without_an_id_is_that_of_the_job(action: Action, platform: Simulator) -> None:
    platform.override("read_agent_job", {"status": "completed"})

    assert wait_for_agent(action, platform, "agent-pull-request").exit_code == 0
