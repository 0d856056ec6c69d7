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
from .uncounted import Uncounted, why_uncounted

# between two reads, of some three requests each: a repository's token has 1,000 an hour
READ_SECONDS: Final = 10.0

PER_PAGE: Final = 30
MAX_PAGES: Final = 3
MAX_STATES: Final = 10  # to read at once; a queue of deployments may be longer


@dataclass(frozen=True, kw_only=True)
class Deployments:
    """What is known of the deployments by one account, the newest first.

    `began_at`, on the clock's `monotonic`, is when they began to be read. `uncounted` is the
    commit's deployment if it is not one of them. `others` says who has deployed lately to which
    environments, if the account has no deployments. `outage_seconds` is how long an outage lasted
    that ended with them.
    """

    found: Sequence[Deployment]
    began_at: float
    is_commit_live: bool = False
    is_comparable: bool = True  # whether GitHub can compare the live commit with the wanted one
    uncounted: Uncounted | None = None
    others: Mapping[str, set[str]] = field(default_factory=dict)
    outage_seconds: float | None = None

    @property
    def live(self) -> Deployment | None:
        """What the platform serves: the newest deployment that has succeeded.

        It is unknown while the state of a newer one is.
        """
        for deployment in self.found:
            if deployment.state == Deployment.UNREAD:
                return None
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

    @property
    def is_any_unread(self) -> bool:
        """Whether the state of a deployment is unknown that may be the live one."""
        return self.live is None and any(one.state == Deployment.UNREAD for one in self.found)

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

    For one thread. A `deadline` is on the clock's `monotonic`.
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
        self._states_read = 0
        self._read_as: dict[int, int] = {}  # by id: which of the states that were read is its own
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

    def read_once(self, job: Job) -> Deployments | None:
        """Return the deployments, or `None` if one attempt does not succeed."""
        with contextlib.suppress(NotDeployed, TransientError):
            return self._read_counted(job, deadline=self._clock.monotonic())
        return None

    def _read_all(self, job: Job, deadline: float) -> Deployments:
        deployments = self._read_counted(job, deadline=deadline)
        live = deployments.live
        if live is not None:
            contains = self._contains_commit(job, live, deadline)
            if contains:
                return replace(deployments, is_commit_live=True)
            deployments = replace(deployments, is_comparable=contains is not None)
        if deployments.of(self.commit) is None:
            uncounted = self._find_uncounted(job, deadline)
            deployments = replace(deployments, uncounted=uncounted)
        if not deployments.found:
            return replace(deployments, others=self._environments_by_creator(job, deadline))
        return deployments

    def _read_counted(self, job: Job, *, deadline: float) -> Deployments:
        """Return the deployments.

        Raises what `GitHubClient.get` does, and `NotDeployed` also if they are in several
        environments, so that it is unknown which one is exported.
        """
        began_at = self._clock.monotonic()
        self._list_new(job, deadline)
        self._require_one_environment(self._counted)
        self._read_states(job, deadline)
        return Deployments(found=self._counted, began_at=began_at)

    @property
    def _counted(self) -> list[Deployment]:
        return [deployment for deployment in self._listed.values() if self._counts(deployment)]

    def _read_states(self, job: Job, deadline: float) -> None:
        """Read states down to the live deployment, and that of the commit.

        At most `MAX_STATES`: the commit's first, then those that were not read for the longest.
        """
        last = self._states_read + MAX_STATES
        own = Deployments(found=self._counted, began_at=0.0).of(self.commit)
        if own is not None:
            self._read_state(job, own, deadline)
        longest_ago_first = sorted(self._counted, key=self._last_read)
        for deployment in longest_ago_first:
            if self._states_read == last:
                return
            is_own = own is not None and deployment.id == own.id
            if not is_own and self._may_be_live(deployment):
                self._read_state(job, deployment, deadline)

    def _last_read(self, deployment: Deployment) -> int:
        return self._read_as.get(deployment.id, 0)

    def _may_be_live(self, deployment: Deployment) -> bool:
        """Return whether a deployment may be live: none that is newer is known to be."""
        if deployment.state == Deployment.INACTIVE:
            return False  # it was replaced, which does not change
        for newer in self._counted:
            if newer.id == deployment.id:
                return True
            if newer.state == Deployment.LIVE:
                return False
        return False

    def _read_state(self, job: Job, deployment: Deployment, deadline: float) -> None:
        """Read the state of a deployment, or forget a deployment that was deleted."""
        if deployment.state == Deployment.INACTIVE:
            return
        self._states_read += 1
        current = self._with_status(job, deployment, deadline)
        if current is None:
            del self._listed[deployment.id]
            return
        self._listed[deployment.id] = current
        self._read_as[deployment.id] = self._states_read

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

    def _contains_commit(self, job: Job, deployment: Deployment, deadline: float) -> bool | None:
        """Return whether a deployment's commit is the wanted one, or was made after it.

        `None` means that GitHub cannot compare them: they have no common ancestor, or GitHub does
        not know one of them.
        """
        if deployment.commit not in self._contains:
            # only the first page has the files, which can be megabytes
            # (source: GitHub's documentation of comparisons)
            path = f"/compare/{self.commit}...{deployment.commit}?per_page=1&page=2"
            comparison = self._client.find(job, path, dict, deadline=deadline)
            if comparison is None:
                return None  # not remembered: another server of GitHub may know the commit
            self._contains[deployment.commit] = comparison.get("status") in {"ahead", "identical"}
        return self._contains[deployment.commit]

    def _find_uncounted(self, job: Job, deadline: float) -> Uncounted | None:
        """Return the commit's deployment that does not count for the fewest reasons."""
        best: Uncounted | None = None
        for deployment in self._read_page(job, f"&sha={self.commit}", deadline):
            uncounted = why_uncounted(deployment, self.creator, self.environment)
            # it may have been made only now, and count
            if uncounted is None:
                return None
            if best is None or len(uncounted.reasons) < len(best.reasons):
                best = uncounted
        if best is None:
            return None
        current = self._with_status(job, best.deployment, deadline)
        if current is None:
            return None
        return why_uncounted(current, self.creator, self.environment)

    def _environments_by_creator(self, job: Job, deadline: float) -> Mapping[str, set[str]]:
        """Return who has deployed lately, and to which environments."""
        found: dict[str, set[str]] = {}
        for deployment in self._read_page(job, "", deadline):
            environment = deployment.environment
            if deployment.is_transient:
                environment += " (transient)"
            found.setdefault(deployment.creator, set()).add(environment)
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
        # one that was forgotten may be listed again, behind those that are known
        self._listed = dict(sorted({**new, **self._listed}.items(), reverse=True))

    def _read_page(self, job: Job, query: str, deadline: float) -> list[Deployment]:
        path = f"/deployments?per_page={PER_PAGE}{query}"
        deployments = []
        for row in self._client.get(job, path, list, deadline=deadline):
            deployment = read_deployment(row, self._repository_url)
            if deployment is not None:
                deployments.append(deployment)
        return deployments

    def _with_status(self, job: Job, deployment: Deployment, deadline: float) -> Deployment | None:
        """Return a deployment with its state, or `None` if it was deleted."""
        path = f"/deployments/{deployment.id}/statuses?per_page=1"
        statuses = self._client.find(job, path, list, deadline=deadline)
        if statuses is None:
            return None
        return with_status(deployment, statuses[0] if statuses else None)


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
    reporter = None
    if isinstance(row, dict):
        reporter = read_text(row.get("creator"), "login")
    return replace(
        deployment,
        state=read_text(row, "state") or Deployment.PENDING,
        link=_explanation(row),
        reporter=reporter,
    )


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
