"""Which deployments count, which are asked for again, and what GitHub's responses mean."""

from collections.abc import Mapping
from typing import Any, Final
from unittest.mock import MagicMock

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.faults import Operation
from admin_api_simulator.github import COMMIT, CREATOR, NEWER, OLDER, REPOSITORY
from admin_api_simulator.simulator import DEFAULT_TOKEN
from docs_platform_action.errors import NO_THREADS, GitHubUnavailable, NotDeployed
from docs_platform_action.github.client import GitHubClient
from docs_platform_action.github.deployments import Deployments
from docs_platform_action.http.api_client import ApiClient
from docs_platform_action.http.retry import TransientError
from docs_platform_action.job import Job
from docs_platform_action.models import Deployment
from tests.unit.fakes import NONE, RecordedEvents, http_client
from tests.virtual_platform import GITHUB_URL, VirtualPlatform
from tests.virtual_time import VirtualClock

PREVIEW: Final = {"environment": "preview", "is_transient": True}
OTHER: Final = {"creator": "github-actions[bot]"}
STUCK: Final = 10**6  # seconds


class Repository:
    """A repository's deployments on the simulated GitHub, and the requests for them without their common beginning."""

    def __init__(
        self,
        *,
        creator: str = CREATOR,
        environment: str | None = None,
        proxies: Mapping[str, str] = NONE,
    ) -> None:
        self.clock, self.job, self.asked = VirtualClock(), Job(mode="export"), list[str]()
        platform = VirtualPlatform(
            self.clock, trouble=lambda sent: self.asked.append(sent.target.partition("docs/")[2])
        )
        self.simulator, self.github = platform.simulator, platform.simulator.github
        client = ApiClient(
            http_client(platform, clock=self.clock, proxies=proxies),
            base_url=GITHUB_URL,
            key=DEFAULT_TOKEN,
        )
        self.deployments = Deployments(
            GitHubClient(
                client=client, repository=REPOSITORY, clock=self.clock, events=RecordedEvents()
            ),
            commit=COMMIT,
            creator=creator,
            environment=environment,
            repository_url="https://github.example.com/demo/docs",
        )

    def read(self) -> list[Deployment]:
        self.asked.clear()
        return self.deployments.read(self.job, deadline=self.clock.monotonic())

    @property
    def live(self) -> str | None:
        return next((found.commit for found in self.read() if found.state == Deployment.LIVE), None)


@pytest.mark.parametrize(
    ("made", "live"),
    [
        ([], None),
        ([(OLDER, {}), (COMMIT, {})], COMMIT),
        ([(COMMIT, {}), (OLDER, {})], OLDER),  # rolled back
        ([(OLDER, {}), (COMMIT, {"seconds": STUCK})], OLDER),
        *(
            ([(OLDER, {}), (COMMIT, {"ends_as": state})], OLDER)
            for state in ("failure", "error", "inactive")
        ),
        ([(COMMIT, {"seconds": STUCK})], None),
        ([(OLDER, {}), (COMMIT, {**OTHER, "environment": "github-pages"})], OLDER),
        (
            [(OLDER, {}), (COMMIT, OTHER)],
            None,
        ),  # GitHub makes those before it in its environment inactive
        ([(OLDER, {}), (COMMIT, PREVIEW)], OLDER),
        ([(OLDER, {"environment": "production"}), (COMMIT, {"environment": "production"})], COMMIT),
    ],
)
def test_the_newest_success_of_the_account_is_live(
    made: list[tuple[str, dict[str, Any]]], live: str | None
) -> None:
    repository = Repository(creator=CREATOR.upper())
    for commit, options in made:
        repository.github.add(commit, **options)

    assert repository.live == live


def test_a_named_environment_counts_even_if_it_is_transient_and_no_other_one() -> None:
    repository = Repository(environment="preview")
    repository.github.add(COMMIT, **PREVIEW)
    repository.github.add(NEWER)

    assert repository.live == COMMIT


def test_without_a_name_several_environments_are_refused_and_named() -> None:
    repository = Repository()
    repository.github.add(COMMIT, environment="preview")
    repository.github.add(NEWER)

    with pytest.raises(NotDeployed) as caught:
        repository.read()

    assert "docs and preview" in caught.value.details[0]


@pytest.mark.parametrize(("commit", "contains"), [(COMMIT, True), (NEWER, True), (OLDER, False)])
def test_a_newer_commit_contains_the_wanted_one_and_is_compared_once(
    commit: str, contains: bool
) -> None:
    repository = Repository()
    repository.github.add(commit)
    (live,) = repository.read()

    found = [
        repository.deployments.contains_commit(
            repository.job, live, deadline=repository.clock.monotonic()
        )
        for _ in range(2)
    ]

    assert found == [contains, contains]
    assert len([path for path in repository.asked if path.startswith("compare/")]) == (
        commit != COMMIT
    )


def test_what_has_ended_is_not_asked_for_again() -> None:
    repository = Repository()
    for ends_as in ("success", "failure", "error"):
        repository.github.add(OLDER, ends_as=ends_as)
    repository.github.add(NEWER, seconds=STUCK)
    repository.read()

    repository.read()

    statuses = [
        f"deployments/{number}/statuses?per_page=1" for number in (4, 1)
    ]  # the one under way, and the live one
    assert repository.asked == ["deployments?per_page=30&page=1", *statuses]


def test_the_list_is_read_down_to_a_known_deployment_and_three_pages_at_most() -> None:
    repository = Repository(environment="a b&c")
    for _ in range(95):
        repository.github.add(OLDER, environment="a b&c", **OTHER)
    pages = [f"deployments?per_page=30&page={page}&environment=a%20b%26c" for page in (1, 2, 3)]

    repository.read()
    assert repository.asked == pages

    repository.github.add(COMMIT, environment="a b&c")
    assert repository.live == COMMIT
    assert repository.asked == [pages[0], "deployments/96/statuses?per_page=1"]


def test_the_accounts_that_deploy_are_known_with_their_environments() -> None:
    repository = Repository(environment="docs")
    for environment in ("github-pages", "production", "production"):
        repository.github.add(COMMIT, environment=environment, **OTHER)

    found = repository.deployments.environments_by_creator(
        repository.job, deadline=repository.clock.monotonic()
    )

    assert found == {"github-actions[bot]": {"github-pages", "production"}}


@pytest.mark.parametrize(
    "row",
    [None, [], {"id": "1", "sha": COMMIT}, {"id": 1}, {"id": 1, "sha": COMMIT, "creator": None}],
)
def test_a_deployment_without_what_counts_is_left_out(row: object) -> None:
    repository = Repository()
    repository.simulator.override("list_deployments", [row])

    assert repository.read() == []


LIMIT: Final = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1777896090"}  # 90 s after noon


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        ({"status": 429}, 60),
        ({"status": 403, "headers": {"Retry-After": "7"}}, 7),
        ({"status": 403, "headers": LIMIT}, 90),
        ({"status": 429, "headers": LIMIT}, 90),
        ({"status": 429, "headers": {**LIMIT, "X-RateLimit-Reset": "9" * 400}}, 60),
        ({"status": 403, "json": {"message": "You have exceeded a secondary rate limit."}}, 60),
        *(({"status": status}, 0) for status in (408, 500, 502, 503)),
        *(({"status": 200, "json": value}, 0) for value in ({}, "text")),
        ({"status": 200, "body": "<!doctype html>"}, 0),
        ({"cut": "before_response"}, 0),
    ],
)
def test_a_temporary_error_says_how_long_to_wait(fault: Mapping[str, Any], seconds: float) -> None:
    repository = Repository()
    repository.simulator.script("list_deployments", Fault(**fault))

    with pytest.raises(GitHubUnavailable) as caught:
        repository.read()

    assert caught.value.retry_after_seconds == pytest.approx(seconds, abs=1)
    assert repository.read() == []


def test_a_machine_without_threads_may_have_some_later(monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository()
    error = TransientError("This machine allows no more threads", advice=NO_THREADS)
    monkeypatch.setattr(ApiClient, "send", MagicMock(side_effect=error))

    with pytest.raises(GitHubUnavailable, match="no more threads"):
        repository.read()


def test_after_its_deadline_a_pass_sends_no_more_requests() -> None:
    repository = Repository()

    with pytest.raises(GitHubUnavailable):
        repository.deployments.read(repository.job, deadline=repository.clock.monotonic() - 10)

    assert repository.asked == []


@pytest.mark.parametrize("operation", ["list_deployments", "read_deployment", "compare_commits"])
@pytest.mark.parametrize("status", [401, 403, 404, 301, 422])
def test_any_other_error_is_final(operation: Operation, status: int) -> None:
    repository = Repository()
    repository.github.add(NEWER)
    reset = {
        "X-RateLimit-Remaining": "990",
        "X-RateLimit-Reset": "1777896090",
    }  # as in each of GitHub's responses
    repository.simulator.script(
        operation, Fault(status=status, headers=reset, json={"message": "Not accessible"})
    )

    with pytest.raises(NotDeployed) as caught:
        repository.deployments.contains_commit(
            repository.job, repository.read()[0], deadline=repository.clock.monotonic()
        )

    assert not isinstance(caught.value, GitHubUnavailable)
    is_unknown = (operation, status) == ("compare_commits", 404)
    assert ("refused the token" in caught.value.summary) == (
        status in {401, 403, 404} and not is_unknown
    )
    assert "Not accessible" in caught.value.details[-1]


def test_a_proxy_that_cannot_be_used_is_final() -> None:
    with pytest.raises(NotDeployed) as caught:
        Repository(proxies={"https": "socks5://proxy.example.com"}).read()

    assert "SOCKS" in caught.value.cause
