"""Which commit the platform serves: that of the newest successful deployment that it has reported to GitHub."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from ..addresses import is_web_address
from ..errors import NotDeployed
from ..http.fields import read_text
from ..job import Job
from ..models import Deployment
from .client import GitHubClient

PER_PAGE: Final = 30
MAX_PAGES: Final = 3


class Deployments:
    """Reads deployments by one account, and remembers what cannot change. Another thread needs a copy of its own.

    Every method raises what `GitHubClient.get` does.
    """

    def __init__(
        self,
        client: GitHubClient,
        *,
        commit: str,
        creator: str,
        environment: str | None,
        repository_url: str,
    ) -> None:
        self.commit, self.creator, self.environment = commit, creator, environment
        self.page = f"{repository_url}/deployments"
        self._client, self._repository_url = client, repository_url
        self._listed: dict[int, Deployment] = {}  # the newest first
        self._contains = {commit: True}

    def read(self, job: Job, *, deadline: float) -> list[Deployment]:
        """Return the deployments, the newest first, with the states down to the first live one, and those of the commit.

        Raises `NotDeployed` also if they are in several environments, so that it is unknown which one is exported.
        """
        self._list_new(job, deadline)
        counted = [deployment for deployment in self._listed.values() if self._counts(deployment)]
        environments = {deployment.environment for deployment in counted}
        if self.environment is None and len(environments) > 1:
            raise NotDeployed(
                f"the deployments of {self.creator} are in {len(environments)} environments",
                details=(f"They are {' and '.join(sorted(environments))}.",),
                remedy="Set `deployment-environment` to the environment of the site that is exported.",
            )
        read: list[Deployment] = []
        for deployment in counted:
            is_needed = (
                not any(newer.state == Deployment.LIVE for newer in read)
                or deployment.commit == self.commit
            )
            read.append(self._with_state(job, deployment, deadline) if is_needed else deployment)
        return read

    def contains_commit(self, job: Job, deployment: Deployment, *, deadline: float) -> bool:
        """Return whether a deployment's commit is the wanted one, or was made after it."""
        if deployment.commit not in self._contains:
            # only the first page has the files, which can be megabytes (source: GitHub's documentation of comparisons)
            path = f"/compare/{self.commit}...{deployment.commit}?per_page=1&page=2"
            comparison = self._client.get(job, path, dict, deadline=deadline)
            self._contains[deployment.commit] = comparison.get("status") in {"ahead", "identical"}
        return self._contains[deployment.commit]

    def environments_by_creator(self, job: Job, *, deadline: float) -> Mapping[str, set[str]]:
        """Return who has deployed lately, and to which environments."""
        found: dict[str, set[str]] = {}
        for deployment in self._page(job, "", deadline):
            found.setdefault(deployment.creator, set()).add(deployment.environment)
        return found

    def _counts(self, deployment: Deployment) -> bool:
        is_transient = deployment.is_transient and self.environment is None
        return deployment.creator.lower() == self.creator.lower() and not is_transient

    def _list_new(self, job: Job, deadline: float) -> None:
        """Read the list down to a known deployment."""
        environment = f"&environment={quote(self.environment, safe='')}" if self.environment else ""
        new: dict[int, Deployment] = {}
        for page in range(1, MAX_PAGES + 1):
            found = self._page(job, f"&page={page}{environment}", deadline)
            new |= {
                deployment.id: deployment
                for deployment in found
                if deployment.id not in self._listed
            }
            if len(found) < PER_PAGE or any(deployment.id in self._listed for deployment in found):
                break
        self._listed = new | self._listed

    def _page(self, job: Job, query: str, deadline: float) -> list[Deployment]:
        rows = self._client.get(
            job, f"/deployments?per_page={PER_PAGE}{query}", list, deadline=deadline
        )
        return [
            found
            for row in rows
            if (found := read_deployment(row, self._repository_url)) is not None
        ]

    def _with_state(self, job: Job, deployment: Deployment, deadline: float) -> Deployment:
        if deployment.state not in Deployment.OVER:
            statuses = self._client.get(
                job, f"/deployments/{deployment.id}/statuses?per_page=1", list, deadline=deadline
            )
            deployment = self._listed[deployment.id] = with_status(
                deployment, statuses[0] if statuses else None
            )
        return deployment


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
    link = None
    for name in ("log_url", "target_url", "environment_url"):
        address = read_text(row, name)
        if address is not None and is_web_address(address):
            link = address
            break
    return replace(deployment, state=read_text(row, "state") or deployment.state, link=link)
