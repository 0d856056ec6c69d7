"""GitHub's API of deployments as the simulator stands in for it."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from admin_api_simulator import Simulator
from admin_api_simulator.github import COMMIT, DEMO_REPOSITORIES, NEWER, OLDER, REPOSITORY


@pytest.fixture
def platform() -> Iterator[Simulator]:
    with Simulator(deploy_seconds=0.0) as platform:
        yield platform


def get(
    platform: Simulator, path: str, *, repository: str = REPOSITORY, token: str | None = None
) -> requests.Response:
    headers = {"Authorization": f"Bearer {token or platform.token}"}
    return requests.get(
        f"{platform.github_url}/repos/{repository}{path}", headers=headers, timeout=10
    )


def states(platform: Simulator, repository: str = REPOSITORY) -> list[tuple[str, str]]:
    """Return commit and state of each deployment, the newest first."""
    deployments: list[dict[str, Any]] = get(platform, "/deployments", repository=repository).json()
    found = []
    for deployment in deployments:
        path = f"/deployments/{deployment['id']}/statuses?per_page=1"
        (status,) = get(platform, path, repository=repository).json()
        found.append((deployment["sha"][:1], status["state"]))
    return found


def test_a_success_makes_the_earlier_ones_of_its_environment_inactive_but_not_of_production(
    platform: Simulator,
) -> None:
    for environment in ("docs", "production"):
        for commit in (OLDER, COMMIT):
            platform.github.add(commit, environment=environment)
    platform.github.add(NEWER, environment="docs", seconds=3600)

    assert states(platform) == [
        ("3", "in_progress"),
        ("2", "success"),
        ("1", "success"),
        ("2", "success"),
        ("1", "inactive"),
    ]


def test_pages_and_environments_are_selected(platform: Simulator) -> None:
    for environment in ("docs", "preview", "docs"):
        platform.github.add(COMMIT, environment=environment)

    path = "/deployments?per_page=1&environment=docs"
    first = get(platform, f"{path}&page=1").json()
    second = get(platform, f"{path}&page=2").json()
    third = get(platform, f"{path}&page=3").json()

    assert [row["id"] for row in first] == [3]
    assert [row["id"] for row in second] == [1]
    assert third == []


def test_only_the_first_page_of_a_comparison_has_the_files(platform: Simulator) -> None:
    first = get(platform, f"/compare/{COMMIT}...{NEWER}?per_page=1&page=1")
    second = get(platform, f"/compare/{COMMIT}...{NEWER}?per_page=1&page=2")

    assert (first.json()["status"], second.json()["status"]) == ("ahead", "ahead")
    assert len(second.content) < 1024
    assert len(first.content) > 1024**2


def test_a_comparison_says_which_commit_contains_the_other(platform: Simulator) -> None:
    behind = get(platform, f"/compare/{COMMIT}...{OLDER}")
    identical = get(platform, f"/compare/{COMMIT}...{COMMIT}")
    unknown = get(platform, f"/compare/main...{NEWER}")
    in_the_demo = get(platform, f"/compare/main...{NEWER}", repository="demo/replaced")

    assert behind.json()["status"] == "behind"
    assert identical.json()["status"] == "identical"
    assert unknown.status_code == 404
    assert in_the_demo.json()["status"] == "ahead"


def test_another_token_or_address_is_refused_in_githubs_words(platform: Simulator) -> None:
    other_token = get(platform, "/deployments", token="another")
    other_deployment = get(platform, "/deployments/7/statuses")
    other_address = get(platform, "/pulls")

    assert other_token.json()["message"] == "Bad credentials"
    assert other_deployment.json()["message"] == "Not Found"
    assert other_address.json()["message"] == "Not Found"


def test_the_demo_repositories_deploy_what_their_names_say(platform: Simulator) -> None:
    assert {name: states(platform, name) for name in DEMO_REPOSITORIES} == {
        "demo/deployed": [("2", "success"), ("1", "inactive")],
        "demo/replaced": [("3", "success"), ("1", "inactive")],
        "demo/failed": [("2", "failure"), ("1", "success")],
        "demo/older": [("1", "success")],
        "demo/none": [("2", "success")],
    }
