"""A run that waits until the platform serves a commit."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Fault, Simulator
from admin_api_simulator.github import COMMIT, CREATOR, NEWER, OLDER, GitHub
from docs_platform_action.job import DEPLOYMENT
from tests.action import Action
from tests.ended import Ended
from tests.forms import BOTH_FORMS
from tests.keys import ADMIN_KEY
from tests.virtual_platform import API_URL, GITHUB_URL, STORAGE_URL, Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

pytestmark = BOTH_FORMS

TOKEN: Final = "ghs_t0ken-of-the-run"
WAITING: Final = {
    "domain": "docs.example.com",
    "commit": COMMIT,
    "github_token": TOKEN,
    "deployment_creator": CREATOR,
}
STUCK: Final = 10**6  # seconds


def platform_of(*made: tuple[str, Mapping[str, Any]], **options: Any) -> VirtualPlatform:
    platform = VirtualPlatform(VirtualClock(), token=TOKEN, **{"export_seconds": 60.0, **options})
    for commit, known in made:
        platform.simulator.github.add(commit, **known)
    return platform


@pytest.mark.parametrize(
    ("made", "deployed", "seconds"),
    [
        ([(COMMIT, {})], COMMIT, 0),
        ([(OLDER, {}), (COMMIT, {"seconds": 120})], COMMIT, 120),
        ([(OLDER, {}), (COMMIT, {"in_seconds": 60, "seconds": 60})], COMMIT, 120),
        # another one replaced it
        (
            [
                (OLDER, {}),
                (COMMIT, {"seconds": 30, "ends_as": "inactive"}),
                (NEWER, {"in_seconds": 20, "seconds": 60}),
            ],
            NEWER,
            80,
        ),
        # the failed one is deployed again
        (
            [
                (OLDER, {}),
                (COMMIT, {"seconds": 30, "ends_as": "failure"}),
                (COMMIT, {"in_seconds": 25, "seconds": 60}),
            ],
            COMMIT,
            85,
        ),
    ],
)
def test_the_export_begins_once_the_commit_is_live(
    action: Action, made: list[tuple[str, dict[str, Any]]], deployed: str, seconds: float
) -> None:
    platform = platform_of(*made)
    began = platform.clock.monotonic()

    ended = action.run(platform, **WAITING)

    (start,) = platform.simulator.requests_of("start_export")
    assert 0 <= start.at - began - seconds < 12  # a read every 10 s, and the requests
    assert ended.outputs["deployedCommit"] == ended.result["deployedCommit"] == deployed
    assert ended.outputs["status"] == "completed"
    assert f"[{deployed[:7]}](<https://github.com/demo/docs/commit/{deployed}>)" in ended.summary


def test_what_is_live_at_the_start_is_an_output_of_a_run_that_fails_later(action: Action) -> None:
    platform = platform_of((COMMIT, {}))
    platform.simulator.script_forever("read_export", Fault(status=404))

    ended = action.run(platform, **WAITING)

    assert ended.reason == "not-found"
    assert ended.outputs["deployedCommit"] == COMMIT


def test_deployments_that_a_workflow_cleans_up_do_not_end_the_wait(action: Action) -> None:
    platform = platform_of((OLDER, {}), (COMMIT, {"seconds": 60}))
    # the list still has the first one, and the next has no common ancestor
    platform.simulator.script("read_deployment", None, Fault(status=404))
    platform.simulator.script("compare_commits", Fault(status=404))

    ended = action.run(platform, **WAITING)

    assert ended.outputs["deployedCommit"] == COMMIT


@pytest.mark.parametrize(
    ("made", "input_that_counts"),
    [
        ({"is_transient": True}, "`deployment-environment` to docs"),
        ({"creator": "octocat", "reporter": CREATOR}, "`deployment-creator` to octocat"),
        # of which Markdown would read the brackets
        ({"creator": "other[bot]"}, "`deployment-creator` to other[bot]"),
    ],
)
def test_a_deployment_that_does_not_count_is_named_in_log_and_error(
    action: Action, made: dict[str, Any], input_that_counts: str
) -> None:
    platform = platform_of((COMMIT, made))

    ended = action.run(platform, **WAITING, commit_timeout="1m")

    assert "it does not count, because it is" in ended.log
    assert "it does not count, because it is" in ended.error
    assert input_that_counts in ended.error
    shown = input_that_counts.replace("[", r"\[").replace("]", r"\]")
    assert f"set {shown}." in ended.summary


@pytest.mark.parametrize(
    ("made", "inputs", "seconds"),
    [
        ([], {}, 1200),
        ([(OLDER, {})], {"commit_timeout": "5m"}, 300),
        ([(COMMIT, {}), (OLDER, {})], {"commit_timeout": "5m"}, 300),
        ([(COMMIT, {"seconds": STUCK})], {"commit_timeout": "95s"}, 95),
        ([(COMMIT, {"creator": "github-actions[bot]"})], {"commit_timeout": "1m"}, 60),
        # what ends at once
        ([(OLDER, {}), (COMMIT, {"seconds": 30, "ends_as": "failure"})], {}, 30),
        ([(NEWER, {"seconds": STUCK}), (COMMIT, {"ends_as": "error"})], {}, 0),
        ([(COMMIT, {"ends_as": "failure"}), (OLDER, {})], {}, 0),
        ([(COMMIT, {}), (NEWER, {"environment": "preview"})], {}, 0),
        ([(COMMIT, {})], {"github_token": "another"}, 0),
    ],
)
def test_without_the_commit_nothing_is_exported(
    action: Action, made: list[tuple[str, dict[str, Any]]], inputs: dict[str, str], seconds: float
) -> None:
    platform = platform_of(*made)

    ended = action.run(platform, **{**WAITING, **inputs})

    assert ended.reason == "not-deployed"
    assert 0 <= int(ended.outputs["durationSeconds"]) - seconds < 12
    assert "deployedCommit" not in ended.outputs
    assert platform.simulator.count("start_export") == 0


FAULTS: Final[dict[str, Fault]] = {
    "a limit": Fault(
        status=403,
        headers={"Retry-After": "40"},
        json={"message": "You have exceeded a secondary rate limit."},
    ),
    "an outage": Fault(status=502),
    "a lost connection": Fault(cut="before_response"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("operation", ["list_deployments", "read_deployment", "compare_commits"])
def test_a_temporary_error_of_github_is_waited_out(
    action: Action, operation: Any, fault: Fault
) -> None:
    platform = platform_of((NEWER, {}))
    platform.simulator.script(operation, *[fault] * 4)

    ended = action.run(platform, **WAITING)

    assert ended.outputs["deployedCommit"] == NEWER
    lines = ended.log.splitlines()
    assert len([line for line in lines if "Retrying" in line]) == 1
    assert len([line for line in lines if "responding again" in line]) == 1


def test_one_that_lasts_ends_with_the_time_for_the_commit(action: Action) -> None:
    platform = platform_of((COMMIT, {}))
    platform.simulator.script_forever("list_deployments", FAULTS["an outage"])

    ended = action.run(platform, **WAITING, commit_timeout="2m")

    assert ended.reason == "not-deployed"
    assert "502" in ended.error
    assert platform.simulator.count("list_deployments") == 13


class TestTheSecondRead:
    @staticmethod
    def run(
        action: Action, plan: Callable[[Simulator, GitHub], object], **inputs: str
    ) -> tuple[Ended, VirtualPlatform]:
        platform = platform_of((COMMIT, {}), (NEWER, {"seconds": 30}))
        plan(platform.simulator, platform.simulator.github)
        return action.run(platform, **{**WAITING, **inputs}), platform

    def test_names_what_was_deployed_during_the_export(self, action: Action) -> None:
        ended, _ = self.run(action, lambda _simulator, _github: None)

        assert ended.outputs["deployedCommit"] == COMMIT
        assert f"{COMMIT[:7]} or {NEWER[:7]}." in ended.log
        assert f"/commit/{COMMIT}" in ended.summary
        assert f"/commit/{NEWER}" in ended.summary

    @pytest.mark.parametrize("status", [403, 502])
    def test_says_that_it_failed(self, action: Action, status: int) -> None:
        def plan(simulator: Simulator, _github: GitHub) -> None:
            simulator.script("list_deployments", None, Fault(status=status))

        ended, platform = self.run(action, plan)

        assert ended.exit_code == 0
        assert platform.simulator.count("list_deployments") == 2
        assert NEWER[:7] not in ended.log + ended.summary
        assert "unknown whether the platform deployed another commit" in ended.log
        assert "or a later one (GitHub could not be read" in ended.summary

    def test_is_not_made_without_waiting(self, action: Action) -> None:
        ended, platform = self.run(action, lambda _simulator, _github: None, wait="false")

        assert ended.exit_code == 0
        assert platform.simulator.count("list_deployments") == 1


def test_each_secret_goes_to_its_own_server_and_is_masked(action: Action) -> None:
    sent: list[Sent] = []
    platform = VirtualPlatform(VirtualClock(), token=TOKEN, trouble=sent.append)
    action.debug = True
    platform.simulator.github.add(NEWER)

    ended = action.run(platform, **WAITING, site_path="site")

    secrets = set()
    for request in sent:
        server = request.url.removesuffix(request.target)
        secrets.add((server, request.headers.get("Authorization")))
    assert secrets == {
        (API_URL, f"Bearer {ADMIN_KEY}"),
        (GITHUB_URL.removesuffix("/api/v3"), f"Bearer {TOKEN}"),
        (STORAGE_URL, None),
    }
    mask = f"::add-mask::{TOKEN}\n"
    assert mask in ended.stdout
    assert TOKEN not in ended.stdout.replace(mask, "")
    assert TOKEN not in ended.summary
    assert TOKEN not in json.dumps(ended.outputs)


def test_a_token_that_github_echoes_is_hidden(action: Action) -> None:
    platform = platform_of()
    echo = Fault(status=403, json={"message": f"{TOKEN} may not read"})
    platform.simulator.script_forever("list_deployments", echo)

    ended = action.run(platform, **WAITING)

    assert ended.reason == "not-deployed"
    assert "*** may not read" in ended.error
    assert TOKEN not in ended.error + ended.summary + ended.outputs["results"]


def test_the_wait_is_a_phase_of_its_own(action: Action) -> None:
    platform = platform_of((OLDER, {}), (COMMIT, {"seconds": 100}))
    platform.simulator.plan_export("docs.example.com", ExportPlan(seconds=60.0, queue_seconds=30.0))

    ended = action.run(platform, **WAITING)

    assert f": {DEPLOYMENT} 1:4" in ended.summary
    assert "queued 0:3" in ended.summary
