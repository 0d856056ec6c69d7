"""GitHub's API, as far as it says what the platform serves: deployments, their statuses, and comparisons of commits.

Source: GitHub's documentation of its REST API: deployments, deployment statuses, and "compare two commits".
"""

import hmac
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from urllib.parse import parse_qs

from admin_api_simulator.clock import Clock, as_timestamp
from admin_api_simulator.recording import RecordedRequest
from admin_api_simulator.responses import Response, json_response
from admin_api_simulator.routes import Route

State = Literal["success", "failure", "error", "inactive"]

CREATOR = "docs-platform[bot]"
ENVIRONMENT = "docs"
PRODUCTION = "production"  # whose earlier deployments stay successful
REPOSITORY = "demo/docs"
OLDER, COMMIT, NEWER = COMMITS = tuple(digit * 40 for digit in "123")
DEMO_REPOSITORIES = {
    "demo/deployed": "the commit's deployment succeeds",
    "demo/replaced": "a newer commit, which contains it, is deployed",
    "demo/failed": "the commit's deployment fails",
    "demo/older": "an older commit is deployed, and nothing else",
    "demo/none": "another account deploys, the platform does not",
}
PATCH = "+" * (2 << 20)  # a comparison's first page can be megabytes

ROUTES = (
    Route(operation="list_deployments", method="GET", path="/repos/{}/{}/deployments"),
    Route(operation="read_deployment", method="GET", path="/repos/{}/{}/deployments/{}/statuses"),
    Route(operation="compare_commits", method="GET", path="/repos/{}/{}/compare/{}"),
)


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A deployment that begins at a monotonic time, is in progress for `seconds`, and ends in a state."""

    id: int
    commit: str
    began: float
    created_at: datetime
    seconds: float
    ends_as: State
    creator: str
    environment: str
    is_transient: bool


class GitHub:
    """Responds to the requests to GitHub's port. The demo's repositories begin to deploy at their first request.

    `commits` are the history of every repository, the oldest first.
    """

    def __init__(
        self, *, clock: Clock, token: str, deploy_seconds: float, commits: Sequence[str] = COMMITS
    ) -> None:
        self._clock, self._token, self._deploy_seconds, self._commits = (
            clock,
            token,
            deploy_seconds,
            [*commits],
        )
        self._deployments: dict[str, list[Deployment]] = {}
        self._ids = itertools.count(1)
        self._request_numbers = itertools.count(1)

    def add(
        self,
        commit: str,
        *,
        repository: str = REPOSITORY,
        in_seconds: float = 0.0,
        seconds: float = 0.0,
        ends_as: State = "success",
        creator: str = CREATOR,
        environment: str = ENVIRONMENT,
        is_transient: bool = False,
    ) -> None:
        """Add a deployment that begins `in_seconds`. Add those that begin earlier first."""
        deployment = Deployment(
            id=next(self._ids),
            commit=commit,
            began=self._clock.monotonic() + in_seconds,
            created_at=self._clock.now(),
            seconds=seconds,
            ends_as=ends_as,
            creator=creator,
            environment=environment,
            is_transient=is_transient,
        )
        self._deployments.setdefault(repository, []).append(deployment)

    def operation_of(self, method: str, path: str) -> str:
        """Return the operation of a request, or `unknown`."""
        matches = (
            route.operation
            for route in ROUTES
            if route.method == method and route.match(path) is not None
        )
        return next(matches, "unknown")

    def domain_of(self, request: RecordedRequest) -> str | None:  # noqa: ARG002  # of all services
        """Return that the request is about no domain."""
        return None

    def respond(self, request: RecordedRequest) -> Response:
        """Run a request's operation, or reject it as GitHub does."""
        headers = {
            "X-GitHub-Request-Id": f"F00D:{next(self._request_numbers):04X}",
            "X-RateLimit-Remaining": "990",
            "X-RateLimit-Reset": str(int(self._clock.now().timestamp()) + 3600),
        }
        response = self._authorized(request)
        return replace(response, headers={**response.headers, **headers})

    def _authorized(self, request: RecordedRequest) -> Response:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token.encode()):
            return _error(401, "Bad credentials")
        if request.operation == "unknown":
            return _error(404, "Not Found")
        owner, name, *rest = next(
            ids for route in ROUTES if (ids := route.match(request.path)) is not None
        )
        query = {key: values[0] for key, values in parse_qs(request.query).items()}
        if request.operation == "compare_commits":
            is_demo = f"{owner}/{name}" in DEMO_REPOSITORIES
            return self._compare(rest[0], page=int(query.get("page", "1")), is_demo=is_demo)
        visible = self._visible(f"{owner}/{name}")
        if request.operation == "read_deployment":
            found = next(
                (deployment for deployment in visible if str(deployment.id) == rest[0]), None
            )
            return (
                _error(404, "Not Found")
                if found is None
                else json_response(self._statuses(found, visible))
            )
        wanted = [
            deployment
            for deployment in visible
            if query.get("environment") in {None, deployment.environment}
        ]
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        return json_response(
            [_as_json(deployment) for deployment in wanted[(page - 1) * size : page * size]]
        )

    def _visible(self, repository: str) -> list[Deployment]:
        """Return the deployments that have begun, the newest first."""
        if repository in DEMO_REPOSITORIES and repository not in self._deployments:
            self._begin_demo(repository)
        now = self._clock.monotonic()
        return [
            found for found in reversed(self._deployments.get(repository, [])) if found.began <= now
        ]

    def _begin_demo(self, repository: str) -> None:
        if repository == "demo/none":
            self.add(
                COMMIT,
                repository=repository,
                creator="github-actions[bot]",
                environment="github-pages",
            )
            return
        self.add(OLDER, repository=repository)
        if repository != "demo/older":
            commit = NEWER if repository == "demo/replaced" else COMMIT
            ends_as: State = "failure" if repository == "demo/failed" else "success"
            self.add(commit, repository=repository, seconds=self._deploy_seconds, ends_as=ends_as)

    def _statuses(
        self, deployment: Deployment, visible: Sequence[Deployment]
    ) -> list[Mapping[str, object]]:
        """Return the latest status, if there is one."""
        now = self._clock.monotonic()
        newer = itertools.takewhile(lambda other: other is not deployment, visible)
        is_replaced = deployment.environment != PRODUCTION and any(
            other.ends_as == "success"
            and other.environment == deployment.environment
            and now >= other.began + other.seconds
            for other in newer
        )
        state: str = "in_progress"
        if now >= deployment.began + deployment.seconds:
            state = (
                "inactive"
                if is_replaced and deployment.ends_as == "success"
                else deployment.ends_as
            )
        page = f"https://dashboard.example.com/deployments/{deployment.id}"
        return [
            {
                "state": state,
                "log_url": page,
                "target_url": page,
                "environment_url": "",
                "description": "",
            }
        ]

    def _compare(self, base_and_head: str, *, page: int, is_demo: bool) -> Response:
        base, _, head = base_and_head.partition("...")
        base = (
            COMMIT if is_demo and base not in self._commits else base
        )  # in the demo, any commit is the merged one
        if base not in self._commits or head not in self._commits:
            return _error(404, "Not Found")
        ahead = self._commits.index(head) - self._commits.index(base)
        status = "identical" if ahead == 0 else "ahead" if ahead > 0 else "behind"
        files = [{"filename": "index.md", "patch": PATCH}] if page == 1 else []
        counts = {"ahead_by": max(ahead, 0), "behind_by": max(-ahead, 0)}
        return json_response(
            {"status": status, **counts, "commits": [], **({"files": files} if files else {})}
        )


def _as_json(deployment: Deployment) -> Mapping[str, object]:
    return {
        "id": deployment.id,
        "sha": deployment.commit,
        "ref": deployment.commit,
        "task": "deploy",
        "environment": deployment.environment,
        "transient_environment": deployment.is_transient,
        "production_environment": deployment.environment == PRODUCTION,
        "creator": {"login": deployment.creator, "type": "Bot"},
        "created_at": as_timestamp(deployment.created_at),
        "payload": {},
    }


def _error(status: int, message: str) -> Response:
    return json_response(
        {"message": message, "documentation_url": "https://docs.github.com/rest"}, status=status
    )
