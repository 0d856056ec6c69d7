"""The wait for a commit: which deployments end it, and what is said of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from docs_platform_action.errors import GitHubUnavailable, NotDeployed
from docs_platform_action.inputs.table import Mode
from docs_platform_action.job import Job
from docs_platform_action.jobs.commit import note_later_commit, wait_for_commit
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import Deployment
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import VirtualClock

COMMIT = "a" * 40
OLDER = "b" * 40
NEWER = "c" * 40
OTHER = "d" * 40
PAGE = "https://git.example/octo/docs/deployments"


def deployment(commit: str, state: str, link: str | None = None) -> Deployment:
    return Deployment(
        id=int(commit[:8], 16),
        commit=commit,
        commit_url=f"https://git.example/octo/docs/commit/{commit}",
        creator="docs-platform[bot]",
        environment="docs",
        is_transient=False,
        state=state,
        link=link,
    )


class GitHub:
    """Deployments of a repository, which are the same at each read, or an error."""

    commit = COMMIT
    creator = "docs-platform[bot]"
    page = PAGE

    def __init__(
        self,
        *deployments: Deployment,
        environment: str | None = None,
        others: Mapping[str, set[str]] | None = None,
        errors: int = 0,
        retry_after_seconds: float = 0.0,
    ) -> None:
        self.environment = environment
        self.reads = 0
        self._deployments = [*deployments]
        self._others = others or {}
        self._errors = errors
        self._retry_after_seconds = retry_after_seconds

    def read(self, _job: Job, *, deadline: float) -> list[Deployment]:
        del deadline
        self.reads += 1
        if self.reads <= self._errors:
            error = GitHubUnavailable("GitHub returned 502", cause="It is down.", remedy="Wait.")
            error.retry_after_seconds = self._retry_after_seconds
            raise error
        return self._deployments

    def contains_commit(self, _job: Job, found: Deployment, *, deadline: float) -> bool:
        del deadline
        return found.commit in {COMMIT, NEWER}

    def environments_by_creator(self, _job: Job, *, deadline: float) -> Mapping[str, set[str]]:
        del deadline
        return self._others


class Run:
    def __init__(self, github: GitHub) -> None:
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.job = Job(kind=Export(), domain="docs.example.com")
        self.github: Any = github
        self.parts = context(self.clock, self.events)

    def wait(self) -> None:
        wait_for_commit(self.job, 25.0, self.github, self.parts)

    def failure(self) -> NotDeployed:
        with pytest.raises(NotDeployed) as caught:
            self.wait()
        return caught.value


@pytest.mark.parametrize("live", [COMMIT, NEWER])
def test_the_wait_ends_with_a_live_deployment_that_contains_the_commit(live: str) -> None:
    found = deployment(live, "success")
    run = Run(GitHub(deployment(OTHER, "queued"), found, deployment(OLDER, "inactive")))

    run.wait()

    assert run.job.deployed == found
    assert run.clock.elapsed == 0
    ((text, is_live),) = run.events.of("noted")
    assert live[:7] in text
    assert ("contains" in text) == (live != COMMIT)
    assert is_live


@pytest.mark.parametrize(
    "newer",
    [
        [],
        # what has ended cannot succeed any more
        [deployment(OTHER, "inactive")],
        # one that has succeeded is what the platform serves, and nothing before it counts
        [deployment(OLDER, "success"), deployment(OTHER, "queued")],
    ],
)
@pytest.mark.parametrize("state", ["failure", "error"])
def test_a_failed_deployment_of_the_commit_ends_it_if_no_newer_one_is_under_way(
    newer: list[Deployment],
    state: str,
) -> None:
    own = deployment(COMMIT, state, link="https://build.example/7")
    run = Run(GitHub(*newer, own))

    failure = run.failure()

    assert run.clock.elapsed == 0
    assert "https://build.example/7" in " ".join(failure.details)
    serves_older = any(found.state == "success" for found in newer)
    assert (OLDER[:7] in " ".join(failure.details)) == serves_older


@pytest.mark.parametrize("link", [None, "https://build.example/7"])
def test_its_page_is_named_if_it_has_one(link: str | None) -> None:
    run = Run(GitHub(deployment(COMMIT, "failure", link=link)))

    failure = run.failure()

    assert len(failure.details) == (0 if link is None else 1)


@pytest.mark.parametrize(
    ("deployments", "cause"),
    [
        ([deployment(NEWER, "in_progress"), deployment(COMMIT, "failure")], "takes longer"),
        ([deployment(COMMIT, "queued"), deployment(OLDER, "success")], "takes longer"),
        ([deployment(COMMIT, "inactive")], "inactive"),
        ([deployment(OTHER, "failure"), deployment(OLDER, "inactive")], "inactive"),
        ([deployment(OLDER, "failure")], "deployed nothing"),
        ([deployment(OLDER, "success")], "an older commit was deployed again"),
        ([], "GitHub App"),
    ],
)
def test_until_the_time_is_up_any_other_one_is_waited_for(
    deployments: list[Deployment],
    cause: str,
) -> None:
    run = Run(GitHub(*deployments))

    failure = run.failure()

    assert run.clock.elapsed == 25
    assert run.github.reads == 4
    assert cause in failure.cause


@pytest.mark.parametrize(
    ("pending", "address"),
    [
        (deployment(COMMIT, "queued", link="https://build.example/8"), "https://build.example/8"),
        (deployment(COMMIT, "queued"), PAGE),
    ],
)
def test_where_to_look_is_the_page_of_what_is_under_way(pending: Deployment, address: str) -> None:
    assert address in Run(GitHub(pending)).failure().remedy


@pytest.mark.parametrize("environment", [None, "production"])
@pytest.mark.parametrize("others", [{}, {"octocat": {"github-pages", "docs"}}])
def test_without_deployments_it_is_said_whose_were_looked_for_and_which_there_are(
    environment: str | None,
    others: dict[str, set[str]],
) -> None:
    run = Run(GitHub(environment=environment, others=others))

    (fact,) = run.failure().details

    assert ("in the environment production" in fact) == (environment is not None)
    assert ("octocat (docs, github-pages)" in fact) == bool(others)


def test_an_outage_is_announced_once_with_the_time_that_is_left() -> None:
    run = Run(GitHub(deployment(COMMIT, "success"), errors=2))

    run.wait()

    assert run.clock.elapsed == 20
    assert run.events.of("retrying") == [("GitHub", "GitHub returned 502", 25.0, 10.0)]
    assert run.events.of("recovered") == [("GitHub", 20.0)]


@pytest.mark.parametrize(
    ("retry_after_seconds", "seconds"),
    [(5.0, 10.0), (12.0, 12.0), (99.0, 25.0)],
    ids=["shorter than usual", "longer", "longer than what is left"],
)
def test_github_is_not_read_before_the_time_that_it_asks_for(
    retry_after_seconds: float,
    seconds: float,
) -> None:
    github = GitHub(
        deployment(COMMIT, "success"),
        errors=1,
        retry_after_seconds=retry_after_seconds,
    )
    run = Run(github)

    run.wait()

    assert run.clock.elapsed == seconds
    assert github.reads == 2


def test_one_that_lasts_is_the_failure() -> None:
    run = Run(GitHub(errors=99))

    failure = run.failure()

    assert run.clock.elapsed == 25
    assert failure.details == ("Last error: GitHub returned 502.",)
    assert (failure.cause, failure.remedy) == ("It is down.", "Wait.")


@pytest.mark.parametrize(("live", "is_later"), [(COMMIT, False), (NEWER, True)])
def test_only_another_commit_at_the_end_is_recorded(live: str, is_later: bool) -> None:
    run = Run(GitHub())
    run.job.deployed = deployment(COMMIT, "success")
    found = deployment(live, "success")
    parts = context(run.clock, run.events, github=GitHub(found))

    note_later_commit(run.job, parts)

    assert run.job.deployed_later == (found if is_later else None)
    assert len(run.events.of("noted")) == int(is_later)
