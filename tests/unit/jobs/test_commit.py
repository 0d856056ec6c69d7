"""The wait for a commit: which deployments end it, and what is said of them."""

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from docs_platform_action.errors import Cancelled, NotDeployed
from docs_platform_action.github.deployments import Deployments
from docs_platform_action.github.uncounted import Uncounted, why_uncounted
from docs_platform_action.job import DEPLOYMENT, Job
from docs_platform_action.jobs.commit import note_later_deployment, wait_until_deployed
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import Deployment
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import BEGINNING, VirtualClock

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
    """Deployments of a repository, which are the same at each read."""

    commit = COMMIT
    creator = "docs-platform[bot]"
    page = PAGE
    timeout_seconds = 25.0

    def __init__(
        self,
        clock: VirtualClock,
        *deployments: Deployment,
        environment: str | None = None,
        others: Mapping[str, set[str]] | None = None,
        outage_seconds: float | None = None,
        uncounted: Uncounted | None = None,
        is_comparable: bool = True,
        is_down: bool = False,
    ) -> None:
        self.environment = environment
        self.reads: list[float] = []  # the deadlines
        self._clock = clock
        self._deployments = [*deployments]
        self._others = others or {}
        self._outage_seconds = outage_seconds
        self._uncounted = uncounted
        self._is_comparable = is_comparable
        self._is_down = is_down

    def read(self, _job: Job, *, deadline: float) -> Deployments:
        self.reads.append(deadline)
        return self._found()

    def read_once(self, _job: Job) -> Deployments | None:
        return None if self._is_down else self._found()

    def _found(self) -> Deployments:
        found = Deployments(
            found=self._deployments,
            began_at=self._clock.monotonic(),
            others=self._others,
            outage_seconds=self._outage_seconds,
            uncounted=self._uncounted,
            is_comparable=self._is_comparable,
        )
        live = found.live
        return replace(found, is_commit_live=live is not None and live.commit in {COMMIT, NEWER})


class Run:
    """A job that waits for the commit for 25 seconds."""

    def __init__(self, *deployments: Deployment, **options: Any) -> None:
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.job = Job(kind=Export(), domain="docs.example.com")
        self.github: Any = GitHub(self.clock, *deployments, **options)
        self.parts = context(self.clock, self.events)

    def wait(self) -> None:
        wait_until_deployed(self.job, self.github, self.parts)

    def failure(self) -> NotDeployed:
        with pytest.raises(NotDeployed) as caught:
            self.wait()
        return caught.value


@pytest.mark.parametrize("live", [COMMIT, NEWER])
def test_the_wait_ends_with_a_live_deployment_that_contains_the_commit(live: str) -> None:
    found = deployment(live, "success")
    run = Run(deployment(OTHER, "queued"), found, deployment(OLDER, "inactive"))

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
    run = Run(*newer, own)

    failure = run.failure()

    assert run.clock.elapsed == 0
    assert "https://build.example/7" in " ".join(failure.details)
    serves_older = any(found.state == "success" for found in newer)
    assert (OLDER[:7] in " ".join(failure.details)) == serves_older


@pytest.mark.parametrize("link", [None, "https://build.example/7"])
def test_its_page_is_named_if_it_has_one(link: str | None) -> None:
    run = Run(deployment(COMMIT, "failure", link=link))

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
    run = Run(*deployments)

    failure = run.failure()

    assert run.clock.elapsed == 25
    # at 0, 10, 20 and 25 s, and each read gives up at the same time
    assert run.github.reads == [BEGINNING + 25] * 4
    assert cause in failure.cause


@pytest.mark.parametrize(
    ("pending", "address"),
    [
        (deployment(COMMIT, "queued", link="https://build.example/8"), "https://build.example/8"),
        (deployment(COMMIT, "queued"), PAGE),
    ],
)
def test_where_to_look_is_the_page_of_what_is_under_way(pending: Deployment, address: str) -> None:
    assert address in Run(pending).failure().remedy


def test_the_commit_s_deployment_that_does_not_count_is_named_with_what_would_count_it() -> None:
    preview = replace(deployment(COMMIT, "success"), environment="preview", is_transient=True)
    run = Run(deployment(OLDER, "success"), uncounted=why_uncounted(preview, GitHub.creator, None))

    failure = run.failure()

    (fact,) = failure.details
    assert f"{COMMIT[:7]} has no deployment that counts." in fact
    assert fact.endswith("because it is transient, as GitHub calls it.")
    assert "`deployment-environment` to preview" in failure.remedy
    assert fact in [text for text, _ in run.events.of("noted")]


def test_while_a_newer_state_is_unread_a_success_is_not_called_replaced() -> None:
    run = Run(deployment(OTHER, "unread"), deployment(COMMIT, "success"))

    (fact,) = run.failure().details

    assert f"The deployment of {COMMIT[:7]} has succeeded" in fact
    assert "unknown what the platform serves" in fact


def test_commits_without_a_common_ancestor_are_waited_for_and_named() -> None:
    run = Run(deployment(OLDER, "success"), is_comparable=False)

    failure = run.failure()

    assert "no common ancestor" in failure.details[0]
    assert "rewritten" in failure.cause


def test_a_creator_that_has_only_previews_is_not_said_to_have_none() -> None:
    run = Run(others={GitHub.creator: {"preview (transient)"}, "octocat": {"docs"}})

    (fact,) = run.failure().details

    assert fact == (
        "GitHub has no deployment by docs-platform[bot] that counts yet. It has some in "
        "preview (transient). Other accounts have deployments: octocat (docs)."
    )


@pytest.mark.parametrize("environment", [None, "production"])
@pytest.mark.parametrize("others", [{}, {"octocat": {"github-pages", "docs"}}])
def test_without_deployments_it_is_said_whose_were_looked_for_and_which_there_are(
    environment: str | None,
    others: dict[str, set[str]],
) -> None:
    run = Run(environment=environment, others=others)

    (fact,) = run.failure().details

    assert ("in the environment production" in fact) == (environment is not None)
    assert ("octocat (docs, github-pages)" in fact) == bool(others)


@pytest.mark.parametrize(
    ("state", "events"),
    [("success", ["noted", "recovered"]), ("failure", [])],
    ids=["a state", "the end of the wait"],
)
def test_the_end_of_an_outage_is_announced_after_what_was_read(
    state: str, events: list[str]
) -> None:
    run = Run(deployment(COMMIT, state), outage_seconds=12.0)

    with contextlib.suppress(NotDeployed):
        run.wait()

    assert run.events.names == events
    assert run.events.of("recovered") == [("GitHub", 12.0)] * events.count("recovered")


@pytest.mark.parametrize(("live", "is_later"), [(COMMIT, False), (NEWER, True)])
def test_only_another_commit_at_the_end_is_recorded(live: str, is_later: bool) -> None:
    found = deployment(live, "success")
    run = Run(found)
    run.job.deployed = deployment(COMMIT, "success")

    note_later_deployment(run.job, run.github, run.parts)

    assert run.job.deployed_later == (found if is_later else None)
    assert len(run.events.of("noted")) == int(is_later)


@pytest.mark.parametrize("deployments", [[], [deployment(OLDER, "queued")]])
def test_without_a_live_deployment_at_the_end_nothing_is_recorded(
    deployments: list[Deployment],
) -> None:
    run = Run(*deployments)
    run.job.deployed = deployment(COMMIT, "success")

    note_later_deployment(run.job, run.github, run.parts)

    assert run.job.deployed_later is None
    assert run.events.of("noted") == []


def test_after_an_error_at_the_end_the_later_commit_is_unknown() -> None:
    run = Run(is_down=True)
    run.job.deployed = deployment(COMMIT, "success")

    note_later_deployment(run.job, run.github, run.parts)

    assert run.job.is_deployed_later_unknown
    ((text, _),) = run.events.of("noted")
    assert "unknown" in text


def test_without_a_deployment_at_the_start_none_is_looked_for_at_the_end() -> None:
    run = Run(deployment(COMMIT, "success"))

    note_later_deployment(run.job, run.github, run.parts)

    assert run.job.deployed_later is None
    assert run.events.seen == []


def test_a_job_that_waits_for_a_commit_is_in_that_phase_until_it_is_served() -> None:
    run = Run(deployment(COMMIT, "success"))

    run.wait()

    ((name, ended_at),) = [(phase.name, phase.ended_at) for phase in run.job.phases]
    assert name == DEPLOYMENT
    assert ended_at == BEGINNING


def test_a_cancelled_run_ends_the_wait() -> None:
    run = Run(deployment(COMMIT, "queued"))

    def wait() -> None:
        with pytest.raises(Cancelled):
            run.wait()

    def cancel() -> None:
        run.clock.sleep(15.0)
        run.clock.cancel()

    run.clock.run(wait, cancel)

    assert len(run.github.reads) == 2
    assert run.job.deployed is None
