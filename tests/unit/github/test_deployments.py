"""Which deployments count, which are asked for again, and what GitHub's responses mean."""

from collections.abc import Mapping
from typing import Any, Final
from unittest.mock import MagicMock

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.faults import Operation
from admin_api_simulator.github import COMMIT, CREATOR, NEWER, OLDER, REPOSITORY
from admin_api_simulator.simulator import DEFAULT_TOKEN
from docs_platform_action.errors import GITHUB_DOWN, NO_THREADS, GitHubUnavailable, NotDeployed
from docs_platform_action.github.client import GitHubClient
from docs_platform_action.github.deployments import Deployments, read_deployment, with_status
from docs_platform_action.http.api_client import ApiClient
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.retry import TransientError
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import Deployment
from tests.unit.fakes import NONE, RecordedEvents, http_client
from tests.virtual_platform import GITHUB_URL, Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

PREVIEW: Final = {"environment": "preview", "is_transient": True}
OTHER: Final = {"creator": "github-actions[bot]"}
STUCK: Final = 10**6  # seconds


class Repository:
    """A repository's deployments on the simulated GitHub, and the requests for them.

    Requests are `asked` without their common beginning.
    """

    def __init__(
        self,
        *,
        creator: str = CREATOR,
        environment: str | None = None,
        proxies: Mapping[str, str] = NONE,
    ) -> None:
        self.clock = VirtualClock()
        self.job = Job(kind=Export())
        self.asked: list[str] = []
        platform = VirtualPlatform(self.clock, trouble=self._record)
        self.simulator = platform.simulator
        self.github = platform.simulator.github
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

    def _record(self, request: Sent) -> None:
        _, _, path = request.target.partition("docs/")
        self.asked.append(path)

    def read(self) -> list[Deployment]:
        self.asked.clear()
        return self.deployments.read(self.job, deadline=self.clock.monotonic())

    @property
    def live(self) -> str | None:
        for deployment in self.read():
            if deployment.state == Deployment.LIVE:
                return deployment.commit
        return None

    def contains_commit(self, deployment: Deployment) -> bool:
        deadline = self.clock.monotonic()
        return self.deployments.contains_commit(self.job, deployment, deadline=deadline)


@pytest.mark.parametrize(
    ("made", "live"),
    [
        ([], None),
        ([(OLDER, {}), (COMMIT, {})], COMMIT),
        ([(COMMIT, {}), (OLDER, {})], OLDER),  # rolled back
        ([(OLDER, {}), (COMMIT, {"seconds": STUCK})], OLDER),
        ([(OLDER, {}), (COMMIT, {"ends_as": "failure"})], OLDER),
        ([(OLDER, {}), (COMMIT, {"ends_as": "error"})], OLDER),
        ([(OLDER, {}), (COMMIT, {"ends_as": "inactive"})], OLDER),
        ([(COMMIT, {"seconds": STUCK})], None),
        ([(OLDER, {}), (COMMIT, {**OTHER, "environment": "github-pages"})], OLDER),
        # GitHub makes those before it in its environment inactive
        ([(OLDER, {}), (COMMIT, OTHER)], None),
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

    assert repository.contains_commit(live) == contains
    assert repository.contains_commit(live) == contains
    comparisons = [path for path in repository.asked if path.startswith("compare/")]
    assert len(comparisons) == (0 if commit == COMMIT else 1)


def test_states_are_read_down_to_the_live_deployment_and_of_the_wanted_commit() -> None:
    repository = Repository()
    for commit in (OLDER, COMMIT, OLDER, NEWER):
        repository.github.add(commit)

    repository.read()

    assert repository.asked == [
        "deployments?per_page=30&page=1",
        "deployments/4/statuses?per_page=1",  # the live one
        "deployments/2/statuses?per_page=1",  # the commit's
    ]


def test_what_has_ended_is_not_asked_for_again() -> None:
    repository = Repository()
    for ends_as in ("success", "failure", "error"):
        repository.github.add(OLDER, ends_as=ends_as)
    repository.github.add(NEWER, seconds=STUCK)
    repository.read()

    repository.read()

    assert repository.asked == [
        "deployments?per_page=30&page=1",
        "deployments/4/statuses?per_page=1",  # the one under way
        "deployments/1/statuses?per_page=1",  # the live one
    ]


def test_the_list_is_read_down_to_a_known_deployment_and_three_pages_at_most() -> None:
    repository = Repository(environment="a b&c")
    for _ in range(95):
        repository.github.add(OLDER, environment="a b&c", **OTHER)

    repository.read()
    assert repository.asked == [
        "deployments?per_page=30&page=1&environment=a%20b%26c",
        "deployments?per_page=30&page=2&environment=a%20b%26c",
        "deployments?per_page=30&page=3&environment=a%20b%26c",
    ]

    repository.github.add(COMMIT, environment="a b&c")
    assert repository.live == COMMIT
    assert repository.asked == [
        "deployments?per_page=30&page=1&environment=a%20b%26c",
        "deployments/96/statuses?per_page=1",
    ]


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


# 90 s after noon
LIMIT: Final = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1777896090"}


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        ({"status": 429}, 60),
        ({"status": 403, "headers": {"Retry-After": "7"}}, 7),
        ({"status": 403, "headers": LIMIT}, 90),
        ({"status": 429, "headers": LIMIT}, 90),
        ({"status": 429, "headers": {**LIMIT, "Date": "Mon, 04 May 2026 12:01:00 GMT"}}, 30),
        ({"status": 429, "headers": {**LIMIT, "X-RateLimit-Reset": "9" * 400}}, 60),
        ({"status": 403, "json": {"message": "You have exceeded a secondary rate limit."}}, 60),
        ({"status": 408}, 0),
        ({"status": 500}, 0),
        ({"status": 502}, 0),
        ({"status": 503}, 0),
        ({"status": 200, "json": {}}, 0),
        ({"status": 200, "json": "text"}, 0),
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


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (TransientError("no more threads", advice=NO_THREADS), NO_THREADS["remedy"]),
        (NetworkError("lost", maybe_processed=True), GITHUB_DOWN["remedy"]),
        (
            NetworkError("no TLS", maybe_processed=False, is_without_tls=True),
            "Correct the host and port in GITHUB_API_URL.",
        ),
    ],
)
def test_a_request_without_a_response_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch, error: NetworkError | TransientError, remedy: str
) -> None:
    repository = Repository()
    monkeypatch.setattr(ApiClient, "send", MagicMock(side_effect=error))

    with pytest.raises(GitHubUnavailable, match=error.message) as caught:
        repository.read()

    assert caught.value.remedy == remedy


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
    # these headers are in each of GitHub's responses
    limits = {"X-RateLimit-Remaining": "990", "X-RateLimit-Reset": "1777896090"}
    fault = Fault(status=status, headers=limits, json={"message": "Not accessible"})
    repository.simulator.script(operation, fault)

    with pytest.raises(NotDeployed) as caught:
        repository.contains_commit(repository.read()[0])

    assert not isinstance(caught.value, GitHubUnavailable)
    is_unknown_commit = operation == "compare_commits" and status == 404
    refuses_token = status in {401, 403, 404} and not is_unknown_commit
    assert ("refused the token" in caught.value.summary) == refuses_token
    assert ("does not know the commit" in caught.value.summary) == is_unknown_commit
    assert "Not accessible" in caught.value.details[-1]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=403, body=""),
        Fault(status=403, headers={**LIMIT, "X-RateLimit-Remaining": "1"}),
        Fault(status=404, headers=LIMIT),
    ],
    ids=str,
)
def test_a_refusal_that_is_not_about_a_limit_is_final(fault: Fault) -> None:
    repository = Repository()
    repository.simulator.script("list_deployments", fault)

    with pytest.raises(NotDeployed, match="refused the token") as caught:
        repository.read()

    assert not isinstance(caught.value, GitHubUnavailable)


def test_a_proxy_that_cannot_be_used_is_final() -> None:
    with pytest.raises(NotDeployed) as caught:
        Repository(proxies={"https": "socks5://proxy.example.com"}).read()

    assert "SOCKS" in caught.value.cause


def test_the_state_of_a_deployment_is_explained_by_the_first_usable_address() -> None:
    deployment = read_deployment({"id": 1, "sha": COMMIT}, "https://github.example.com/demo/docs")
    assert deployment is not None
    status = {
        "state": "in_progress",
        "log_url": "javascript:alert(1)",
        "target_url": "https://deploy.example.com/1",
        "environment_url": "https://docs.example.com/",
    }

    current = with_status(deployment, status)

    assert current.state == "in_progress"
    assert current.link == "https://deploy.example.com/1"


def test_a_deployment_without_a_status_is_pending() -> None:
    deployment = read_deployment({"id": 1, "sha": COMMIT}, "https://github.example.com/demo/docs")
    assert deployment is not None

    current = with_status(deployment, None)

    assert current.state == "pending"
    assert current.link is None
