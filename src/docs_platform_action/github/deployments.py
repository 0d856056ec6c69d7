"""Which commit the platform serves, by the deployments that it has reported to GitHub."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import quote

from ..addresses import is_web_address
from ..errors import NotDeployed
from ..http.attempts import Attempts, Pause, TransientError
from ..http.fields import read_text
from ..job import Job
from ..models import GITHUB, Deployment
from ..text import format_clock
from .client import GitHubClient

# between two reads, of some three requests each: a repository's token has 1,000 an hour
READ_SECONDS: Final = 10.0

PER_PAGE: Final = 30
MAX_PAGES: Final = 3


@dataclass(frozen=True, kw_only=True)
class Deployments:
    """What is known of the deployments by one account, the newest first.

    `began_at`, on the clock's `monotonic`, is when they began to be read. `others` says who has
    deployed lately to which environments, if the account has no deployments. `outage_seconds` is
    how long an outage lasted that ended with them.
    """

    found: Sequence[Deployment]
    began_at: float
    is_commit_live: bool = False
    others: Mapping[str, set[str]] = field(default_factory=dict)
    outage_seconds: float | None = None

    @property
    def live(self) -> Deployment | None:
        """What the platform serves: the newest deployment that has succeeded."""
        for deployment in self.found:
            if deployment.state == Deployment.LIVE:
                return deployment
        return None

    @property
    def pending(self) -> Deployment | None:
        """The newest deployment that may still succeed, unless a newer one has succeeded."""
        for deployment in self.found:
            if deployment.state == Deployment.LIVE:
                return None
            if deployment.state not in Deployment.OVER:
                return deployment
        return None

    @property
    def is_any_inactive(self) -> bool:
        """Whether a deployment has succeeded once, but is not live any more."""
        return any(deployment.state == Deployment.INACTIVE for deployment in self.found)

    def of(self, commit: str) -> Deployment | None:
        """Return the newest deployment of a commit."""
        for deployment in self.found:
            if deployment.commit == commit:
                return deployment
        return None

    def is_newer(self, one: Deployment, other: Deployment) -> bool:
        """Return whether one deployment is newer than another."""
        return self.found.index(one) < self.found.index(other)


class GitHub:
    """Reads deployments by one account, and remembers what cannot change.

    Another thread needs a copy of its own. A `deadline` is on the clock's `monotonic`.
    """

    def __init__(
        self,
        client: GitHubClient,
        *,
        commit: str,
        timeout_seconds: float,
        creator: str,
        environment: str | None,
        repository_url: str,
    ) -> None:
        self.commit = commit
        self.timeout_seconds = timeout_seconds
        self.creator = creator
        self.environment = environment
        self.page = f"{repository_url}/deployments"
        self._client = client
        self._clock = client.clock
        self._listener = client.listener
        self._repository_url = repository_url
        self._listed: dict[int, Deployment] = {}  # by id, the newest first
        self._contains = {commit: True}  # by a deployment's commit

    def read(self, job: Job, *, deadline: float) -> Deployments:
        """Return the deployments, and whether the live one contains the commit.

        What fails with a temporary error is read again until the deadline, at the end of
        `timeout_seconds`. The end of an outage is not announced yet. Raises `NotDeployed`.
        """
        attempts = Attempts(self._clock, deadline=deadline)
        for _ in attempts:
            try:
                deployments = self._read_all(job, deadline)
            except TransientError as error:
                pause = attempts.failed(error, pause_seconds=READ_SECONDS)
                self._announce_outage(job, error, pause)
            else:
                return replace(deployments, outage_seconds=self._outage_seconds(attempts))
        raise _unreadable_error(attempts.error, self.timeout_seconds) from attempts.error

    def live_now(self, job: Job) -> Deployment | None:
        """Return what the platform serves, or `None` if one attempt does not tell."""
        with contextlib.suppress(NotDeployed, TransientError):
            return self._read_once(job, deadline=self._clock.monotonic()).live
        return None

    def _read_all(self, job: Job, deadline: float) -> Deployments:
        deployments = self._read_once(job, deadline=deadline)
        live = deployments.live
        if live is not None and self._contains_commit(job, live, deadline):
            return replace(deployments, is_commit_live=True)
        if not deployments.found:
            return replace(deployments, others=self._environments_by_creator(job, deadline))
        return deployments

    def _read_once(self, job: Job, *, deadline: float) -> Deployments:
        """Return the deployments.

        States are read down to the first live deployment, and of all deployments of the commit.
        Raises what `GitHubClient.get` does, and `NotDeployed` also if they are in several
        environments, so that it is unknown which one is exported.
        """
        began_at = self._clock.monotonic()
        self._list_new(job, deadline)
        counted = [deployment for deployment in self._listed.values() if self._counts(deployment)]
        self._require_one_environment(counted)
        deployments = []
        is_live_known = False
        for deployment in counted:
            current = deployment
            if not is_live_known or deployment.commit == self.commit:
                current = self._with_current_state(job, deployment, deadline)
            if current.state == Deployment.LIVE:
                is_live_known = True
            deployments.append(current)
        return Deployments(found=deployments, began_at=began_at)

    def _announce_outage(self, job: Job, error: TransientError, pause: Pause | None) -> None:
        if pause is not None and pause.is_first:
            self._listener.retrying(
                job,
                GITHUB,
                error.message,
                budget_seconds=pause.budget_seconds,
                pause_seconds=pause.seconds,
            )

    def _outage_seconds(self, attempts: Attempts) -> float | None:
        if not attempts.has_failed:
            return None
        return self._clock.monotonic() - attempts.retry.failing_since

    def _contains_commit(self, job: Job, deployment: Deployment, deadline: float) -> bool:
        """Return whether a deployment's commit is the wanted one, or was made after it."""
        if deployment.commit not in self._contains:
            # only the first page has the files, which can be megabytes
            # (source: GitHub's documentation of comparisons)
            path = f"/compare/{self.commit}...{deployment.commit}?per_page=1&page=2"
            comparison = self._client.get(job, path, dict, deadline=deadline)
            self._contains[deployment.commit] = comparison.get("status") in {"ahead", "identical"}
        return self._contains[deployment.commit]

    def _environments_by_creator(self, job: Job, deadline: float) -> Mapping[str, set[str]]:
        """Return who has deployed lately, and to which environments."""
        found: dict[str, set[str]] = {}
        for deployment in self._read_page(job, "", deadline):
            found.setdefault(deployment.creator, set()).add(deployment.environment)
        return found

    def _counts(self, deployment: Deployment) -> bool:
        """Return whether a deployment is one of the platform's, and not a preview."""
        if deployment.creator.lower() != self.creator.lower():
            return False
        # a named environment counts even if it is transient
        return self.environment is not None or not deployment.is_transient

    def _require_one_environment(self, deployments: list[Deployment]) -> None:
        if self.environment is not None:
            return
        environments = {deployment.environment for deployment in deployments}
        if len(environments) > 1:
            names = " and ".join(sorted(environments))
            raise NotDeployed(
                f"the deployments of {self.creator} are in {len(environments)} environments",
                details=(f"They are {names}.",),
                remedy="Set `deployment-environment` to the environment of the site that is "
                "exported.",
            )

    def _list_new(self, job: Job, deadline: float) -> None:
        """Read the list down to a known deployment."""
        environment = ""
        if self.environment:
            environment = f"&environment={quote(self.environment, safe='')}"
        new: dict[int, Deployment] = {}
        for page in range(1, MAX_PAGES + 1):
            found = self._read_page(job, f"&page={page}{environment}", deadline)
            is_last = len(found) < PER_PAGE
            for deployment in found:
                if deployment.id in self._listed:
                    is_last = True
                else:
                    new[deployment.id] = deployment
            if is_last:
                break
        self._listed = new | self._listed

    def _read_page(self, job: Job, query: str, deadline: float) -> list[Deployment]:
        path = f"/deployments?per_page={PER_PAGE}{query}"
        deployments = []
        for row in self._client.get(job, path, list, deadline=deadline):
            deployment = read_deployment(row, self._repository_url)
            if deployment is not None:
                deployments.append(deployment)
        return deployments

    def _with_current_state(self, job: Job, deployment: Deployment, deadline: float) -> Deployment:
        if deployment.state in Deployment.OVER:
            return deployment
        path = f"/deployments/{deployment.id}/statuses?per_page=1"
        statuses = self._client.get(job, path, list, deadline=deadline)
        newest = statuses[0] if statuses else None
        current = with_status(deployment, newest)
        self._listed[deployment.id] = current
        return current


def read_deployment(row: object, repository_url: str) -> Deployment | None:
    """Read a row of the list of deployments, if it has an `id` and a `sha`."""
    if not isinstance(row, dict):
        return None
    number = row.get("id")
    commit = read_text(row, "sha")
    if not isinstance(number, int) or commit is None:
        return None
    creator = read_text(row.get("creator"), "login")
    return Deployment(
        id=number,
        commit=commit,
        commit_url=f"{repository_url}/commit/{commit}",
        creator=creator or "ghost",  # as GitHub shows deleted accounts
        environment=read_text(row, "environment") or "",
        is_transient=row.get("transient_environment") is True,
    )


def with_status(deployment: Deployment, row: object) -> Deployment:
    """Return a deployment with a status, which is a row of the list of its statuses."""
    state = read_text(row, "state") or deployment.state
    return replace(deployment, state=state, link=_explanation(row))


def _explanation(status: object) -> str | None:
    """Return the address of a page that explains a status, the best one if there are several."""
    for name in ("log_url", "target_url", "environment_url"):
        url = read_text(status, name)
        if url is not None and is_web_address(url):
            return url
    return None


def _unreadable_error(error: TransientError, timeout_seconds: float) -> NotDeployed:
    after = format_clock(timeout_seconds)
    return NotDeployed(
        f"GitHub's deployments could not be read for {after}",
        details=(f"Last error: {error.message}.", *error.details),
        **error.advice,
    )
