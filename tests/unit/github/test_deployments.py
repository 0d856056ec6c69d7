"""Which deployments count, which of them is live, and which are asked for again."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.faults import Operation
from admin_api_simulator.github import COMMIT, CREATOR, NEWER, OLDER
from docs_platform_action.errors import Cancelled, NotDeployed
from docs_platform_action.github.client import DOWN as ADVICE
from docs_platform_action.github.deployments import (
    MAX_STATES,
    READ_SECONDS,
    Deployments,
    read_deployment,
    with_status,
)
from docs_platform_action.http.attempts import LAST_ATTEMPT_SECONDS
from docs_platform_action.models import Deployment
from tests.unit.github.repository import Repository

PREVIEW: Final[Mapping[str, Any]] = {"environment": "preview", "is_transient": True}
OTHER: Final[Mapping[str, Any]] = {"creator": "github-actions[bot]"}
STUCK: Final = 10**6  # seconds
DOWN: Final = Fault(status=502)


def deployments_of(*states: str) -> Deployments:
    """Return deployments in these states, the newest first."""
    found = []
    for number, state in enumerate(states):
        found.append(
            Deployment(
                id=number,
                commit=f"commit of {state}",
                commit_url="",
                creator=CREATOR,
                environment="docs",
                is_transient=False,
                state=state,
                link=None,
            )
        )
    return Deployments(found=found, began_at=0.0)


def number_of(deployment: Deployment | None) -> int | None:
    return deployment.id if deployment is not None else None


@pytest.mark.parametrize(
    ("states", "live", "pending"),
    [
        ([], None, None),
        (["success"], 0, None),
        # the newest success is live, and nothing before it counts
        (["success", "success"], 0, None),
        (["success", "queued"], 0, None),
        (["queued", "success"], 1, 0),
        (["in_progress", "queued", "success"], 2, 0),
        # what has ended otherwise can neither be live nor become so
        (["failure", "success"], 1, None),
        (["error", "queued", "success"], 2, 1),
        (["inactive", "failure", "error"], None, None),
        (["inactive", "pending"], None, 1),
        # an unknown state may still become a success
        (["on its way"], None, 0),
    ],
)
def test_the_newest_success_is_live_and_the_newest_one_under_way_after_it_is_pending(
    states: list[str], live: int | None, pending: int | None
) -> None:
    deployments = deployments_of(*states)

    assert number_of(deployments.live) == live
    assert number_of(deployments.pending) == pending


def test_the_newest_deployment_of_a_commit_is_its_own() -> None:
    deployments = deployments_of("queued", "failure", "failure")

    assert number_of(deployments.of("commit of failure")) == 1
    assert deployments.of("another commit") is None


def test_of_two_deployments_the_one_that_is_listed_first_is_newer() -> None:
    deployments = deployments_of("queued", "failure")
    queued, failed = deployments.found

    assert deployments.is_newer(queued, failed)
    assert not deployments.is_newer(failed, queued)


@pytest.mark.parametrize(
    ("states", "is_any_inactive"),
    [([], False), (["queued", "success"], False), (["failure", "inactive"], True)],
)
def test_a_deployment_that_is_not_live_any_more_is_noticed(
    states: list[str], is_any_inactive: bool
) -> None:
    assert deployments_of(*states).is_any_inactive == is_any_inactive


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

    first = repository.read()
    asked = [*repository.asked]
    second = repository.read()

    assert first.is_commit_live == contains
    assert second.is_commit_live == contains
    comparisons = [path for path in asked if path.startswith("compare/")]
    assert len(comparisons) == (0 if commit == COMMIT else 1)
    assert not any(path.startswith("compare/") for path in repository.asked)


def test_states_are_read_down_to_the_live_deployment_and_of_the_wanted_commit() -> None:
    repository = Repository()
    for commit in (OLDER, COMMIT, OLDER, NEWER):
        repository.github.add(commit)

    repository.read()

    assert repository.asked == [
        "deployments?per_page=30&page=1",
        "deployments/2/statuses?per_page=1",  # the commit's
        "deployments/4/statuses?per_page=1",  # the live one
        f"compare/{COMMIT}...{NEWER}?per_page=1&page=2",
    ]


def test_what_was_replaced_is_not_asked_for_again_but_what_has_failed_is() -> None:
    repository = Repository()
    repository.github.add(COMMIT, ends_as="inactive")
    repository.github.add(OLDER)
    repository.github.add(NEWER, ends_as="failure")
    repository.read()

    repository.read()

    assert repository.asked == [
        "deployments?per_page=30&page=1",
        "deployments/3/statuses?per_page=1",  # the one that has failed
        "deployments/2/statuses?per_page=1",  # the live one
    ]


def test_a_deployment_that_fails_may_succeed_later_under_the_same_id() -> None:
    repository = Repository()
    repository.github.add(NEWER)
    failed = Fault(status=200, json=[{"state": "failure"}])
    repository.simulator.script("read_deployment", failed)
    assert repository.live is None

    assert repository.read().is_commit_live


def test_a_deployment_that_was_deleted_is_forgotten() -> None:
    repository = Repository()
    repository.github.add(COMMIT, environment="production")
    repository.github.add(OLDER, environment="production")
    assert repository.live == OLDER
    repository.github.remove(2)

    assert repository.live == COMMIT


def test_one_that_was_forgotten_but_is_still_listed_does_not_become_the_newest() -> None:
    repository = Repository()
    repository.github.add(COMMIT, environment="production")
    repository.github.add(OLDER, environment="production", seconds=STUCK)
    repository.simulator.script("read_deployment", Fault(status=404))  # of the commit's own
    repository.read()

    found = repository.read()

    assert [deployment.commit for deployment in found.found] == [OLDER, COMMIT]
    assert found.live is not None
    assert found.live.commit == COMMIT


def test_a_commit_without_a_common_ancestor_does_not_contain_the_wanted_one() -> None:
    repository = Repository()
    repository.github.add("9" * 40)  # GitHub answers 404 to its comparison

    found = repository.read()

    assert not found.is_commit_live
    assert not found.is_comparable


def test_at_most_ten_states_are_read_in_a_pass_and_all_in_the_end() -> None:
    repository = Repository()
    repository.github.add(COMMIT)
    for _ in range(25):
        repository.github.add(OLDER, seconds=STUCK)

    passes = [repository.read() for _ in range(3)]
    requests = len([path for path in repository.asked if "statuses" in path])

    # what is live is unknown while the state of a newer one is
    assert [found.is_commit_live for found in passes] == [False, False, True]
    assert passes[1].is_any_unread
    assert requests == MAX_STATES


def test_among_many_the_state_of_the_commit_s_own_is_read_each_time() -> None:
    repository = Repository()
    repository.github.add(COMMIT, seconds=STUCK)
    for _ in range(25):
        repository.github.add(OLDER, seconds=STUCK)
    repository.read()

    repository.read()

    assert "deployments/1/statuses?per_page=1" in repository.asked


@pytest.mark.parametrize(
    ("made", "environment", "reason", "remedy"),
    [
        (
            OTHER,
            None,
            "by github-actions[bot], not by",
            "`deployment-creator` to github-actions[bot]",
        ),
        ({"is_transient": True}, None, "transient", "`deployment-environment` to docs"),
        ({"environment": "preview"}, "docs", "in the environment preview", "preview"),
        (
            {"environment": "Docs"},
            "docs",
            "'d' in place of 'D'",
            "`deployment-environment` to Docs",
        ),
        (
            {"creator": CREATOR.replace("-", "\u2013")},
            None,
            "'-' in place of U+2013 (en dash)",
            "deployment-creator",
        ),
        (
            {"creator": "octocat", "reporter": CREATOR},
            None,
            "by octocat, not by docs-platform[bot], which has only reported its state",
            "`deployment-creator` to octocat",
        ),
    ],
)
@pytest.mark.parametrize("has_older", [False, True])
def test_a_deployment_of_the_commit_that_does_not_count_is_named_with_the_reason(
    made: Mapping[str, Any], environment: str | None, reason: str, remedy: str, has_older: bool
) -> None:
    repository = Repository(environment=environment)
    if has_older:
        repository.github.add(OLDER)
    repository.github.add(COMMIT, **made)

    found = repository.read()

    assert not found.is_commit_live
    assert found.uncounted is not None
    assert reason in found.uncounted.fact
    assert remedy in found.uncounted.remedy


def test_of_several_that_do_not_count_the_one_with_the_fewest_reasons_is_named() -> None:
    repository = Repository()
    repository.github.add(COMMIT, **PREVIEW)
    repository.github.add(COMMIT, **PREVIEW, creator="octocat")

    uncounted = repository.read().uncounted

    assert uncounted is not None
    assert uncounted.deployment.creator == CREATOR


def test_the_list_is_read_down_to_a_known_deployment_and_three_pages_at_most() -> None:
    repository = Repository(environment="a b&c")
    for _ in range(95):
        repository.github.add(OLDER, environment="a b&c", **OTHER)

    repository.read()
    assert repository.asked == [
        "deployments?per_page=30&page=1&environment=a%20b%26c",
        "deployments?per_page=30&page=2&environment=a%20b%26c",
        "deployments?per_page=30&page=3&environment=a%20b%26c",
        f"deployments?per_page=30&sha={COMMIT}",  # as it has none: whether it has one of others
        "deployments?per_page=30",  # as none counts: who has deployed, and to which environments
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

    assert repository.read().others == {"github-actions[bot]": {"github-pages", "production"}}


@pytest.mark.parametrize(
    "row",
    [None, [], {"id": "1", "sha": COMMIT}, {"id": 1}, {"id": 1, "sha": COMMIT, "creator": None}],
)
def test_a_deployment_without_what_counts_is_left_out(row: object) -> None:
    repository = Repository()
    rows: Any = [row]
    repository.simulator.override("list_deployments", rows)

    assert repository.read().found == []


class TestAttempts:
    """Reads that are tried again until the deadline."""

    def test_an_outage_is_announced_once_with_the_remaining_time(self) -> None:
        repository = Repository()
        repository.github.add(COMMIT)
        repository.simulator.script("list_deployments", DOWN, DOWN)

        found = repository.read(timeout_seconds=25)

        assert found.is_commit_live
        ((server, message, budget_seconds, pause_seconds),) = repository.events.of("retrying")
        assert (server, message) == ("GitHub", "GitHub returned 502 (bad gateway)")
        assert budget_seconds == pytest.approx(25, abs=0.2)
        assert pause_seconds == READ_SECONDS
        after_seconds = found.outage_seconds
        # since the first error: two pauses, and the three requests after it, of 0.1 s each
        assert after_seconds == pytest.approx(20.3, abs=0.01)

    def test_an_outage_that_begins_at_the_deadline_is_announced_too(self) -> None:
        repository = Repository()
        repository.simulator.script("list_deployments", DOWN)

        found = repository.read(timeout_seconds=0.05)  # a request takes longer

        assert len(repository.events.of("retrying")) == 1
        assert found.outage_seconds is not None

    def test_a_read_without_an_error_announces_none(self) -> None:
        repository = Repository()

        found = repository.read(timeout_seconds=25)

        assert repository.events.of("retrying") == []
        assert found.outage_seconds is None

    @pytest.mark.parametrize("operation", ["list_deployments", "read_deployment"])
    def test_all_is_read_again_after_an_error(self, operation: Operation) -> None:
        repository = Repository()
        repository.github.add(COMMIT)
        repository.simulator.script(operation, DOWN)
        began = repository.clock.monotonic()

        found = repository.read(timeout_seconds=25)

        assert found.is_commit_live
        # deployments are as old as the attempt that succeeded
        assert found.began_at - began == pytest.approx(READ_SECONDS, abs=0.5)

    @pytest.mark.parametrize(
        ("asked", "seconds"),
        [("5", 10), ("12", 12), ("99", 25)],
        ids=["shorter than usual", "longer", "longer than what is left"],
    )
    def test_github_is_not_read_before_the_time_that_it_asks_for(
        self, asked: str, seconds: float
    ) -> None:
        repository = Repository()
        fault = Fault(status=503, headers={"Retry-After": asked})
        repository.simulator.script("list_deployments", fault)
        began = repository.clock.monotonic()

        found = repository.read(timeout_seconds=25)

        assert found.began_at - began == pytest.approx(seconds, abs=0.2)

    def test_an_error_that_lasts_is_the_failure_at_the_deadline(self) -> None:
        repository = Repository()
        fault = Fault(status=502, json={"message": "no server"})
        repository.simulator.script_forever("list_deployments", fault)

        with pytest.raises(NotDeployed) as caught:
            repository.read(timeout_seconds=25)

        assert repository.clock.elapsed == pytest.approx(25, abs=0.2)
        assert len(repository.asked) == 4
        assert "could not be read for 0:25" in caught.value.summary
        last_error, said = caught.value.details
        assert last_error == "Last error: GitHub returned 502 (bad gateway)."
        assert "no server" in said
        assert (caught.value.cause, caught.value.remedy) == (ADVICE["cause"], ADVICE["remedy"])

    def test_a_cancelled_run_reads_nothing_again(self) -> None:
        repository = Repository()
        repository.simulator.script("list_deployments", DOWN)
        repository.clock.call_every(5.0, repository.clock.cancel)

        with pytest.raises(Cancelled):
            repository.read(timeout_seconds=25)

        assert len(repository.asked) == 1


def test_one_attempt_has_a_time_limit_and_is_not_repeated() -> None:
    repository = Repository()
    repository.simulator.script("list_deployments", DOWN)

    assert repository.reader.read_once(repository.job) is None

    assert len(repository.sent) == 1
    assert repository.sent[0].exchange.timeouts.total_seconds == LAST_ATTEMPT_SECONDS
    assert repository.events.of("retrying") == []


@pytest.mark.parametrize(
    ("operation", "status", "summary", "cause"),
    [
        ("list_deployments", 401, "refused the token", "expired"),
        ("list_deployments", 403, "refused the token", "deployments"),
        ("list_deployments", 404, "refused the token", "deployments"),
        ("list_deployments", 301, "has another name now", "renamed"),
        ("read_deployment", 403, "refused the token", "deployments"),
        ("read_deployment", 307, "has another name now", "renamed"),
        ("compare_commits", 403, "refused the token", "commits"),
        ("compare_commits", 422, "GitHub returned 422", ""),
    ],
)
def test_any_other_error_is_final(
    operation: Operation, status: int, summary: str, cause: str
) -> None:
    repository = Repository()
    repository.github.add(NEWER)
    # these headers are in each of GitHub's responses
    limits = {"X-RateLimit-Remaining": "990", "X-RateLimit-Reset": "1777896090"}
    fault = Fault(status=status, headers=limits, json={"message": "Not accessible"})
    repository.simulator.script(operation, fault)

    with pytest.raises(NotDeployed) as caught:
        repository.read(timeout_seconds=300)

    assert repository.clock.elapsed < READ_SECONDS  # there was one attempt
    assert summary in caught.value.summary
    assert cause in caught.value.cause
    assert "Not accessible" in caught.value.details[-1]


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
