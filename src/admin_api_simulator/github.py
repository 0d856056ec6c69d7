"""GitHub's API, as far as it says what the platform serves.

These are deployments, their statuses, and comparisons of commits.

Source: GitHub's documentation of its REST API: deployments, deployment statuses, and "compare two
commits".
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
OLDER = "1" * 40
COMMIT = "2" * 40
NEWER = "3" * 40
COMMITS = (OLDER, COMMIT, NEWER)
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
    """A deployment.

    It begins at a monotonic time, is in progress for `seconds`, and ends in a state.
    """

    id: int
    commit: str
    began: float
    created_at: datetime
    seconds: float
    ends_as: State
    creator: str
    environment: str
    is_transient: bool
    reporter: str

    @property
    def ended(self) -> float:
        """The monotonic time at which the deployment ends."""
        return self.began + self.seconds


class GitHub:
    """Responds to the requests to GitHub's port.

    The demo's repositories begin to deploy at their first request.
    `commits` are the history of every repository, the oldest first.
    """

    def __init__(
        self, *, clock: Clock, token: str, deploy_seconds: float, commits: Sequence[str] = COMMITS
    ) -> None:
        self._clock = clock
        self._token = token
        self._deploy_seconds = deploy_seconds
        self._commits = list(commits)
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
        reporter: str | None = None,
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
            reporter=reporter or creator,
        )
        self._deployments.setdefault(repository, []).append(deployment)

    def remove(self, deployment_id: int, *, repository: str = REPOSITORY) -> None:
        """Remove a deployment, as a workflow that cleans up does."""
        kept = [one for one in self._deployments[repository] if one.id != deployment_id]
        self._deployments[repository] = kept

    def operation_of(self, method: str, path: str) -> str:
        """Return the operation of a request, or `unknown`."""
        operation, _ = _routed(method, path)
        return operation

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
        operation, segments = _routed(request.method, request.path)
        if operation == "unknown":
            return _error(404, "Not Found")
        owner, name, *rest = segments
        repository = f"{owner}/{name}"
        query = {key: values[0] for key, values in parse_qs(request.query).items()}
        if operation == "compare_commits":
            is_demo = repository in DEMO_REPOSITORIES
            return self._compare(rest[0], page=int(query.get("page", "1")), is_demo=is_demo)
        visible = self._visible(repository)
        if operation == "read_deployment":
            return self._read_deployment(rest[0], visible)
        return _deployments_page(visible, query)

    def _read_deployment(self, deployment_id: str, visible: Sequence[Deployment]) -> Response:
        for deployment in visible:
            if str(deployment.id) == deployment_id:
                return json_response(self._statuses(deployment, visible))
        return _error(404, "Not Found")

    def _visible(self, repository: str) -> list[Deployment]:
        """Return the deployments that have begun, the newest first."""
        if repository in DEMO_REPOSITORIES and repository not in self._deployments:
            self._begin_demo(repository)
        now = self._clock.monotonic()
        newest_first = reversed(self._deployments.get(repository, []))
        return [deployment for deployment in newest_first if deployment.began <= now]

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
        if repository == "demo/older":
            return
        commit = NEWER if repository == "demo/replaced" else COMMIT
        ends_as: State = "failure" if repository == "demo/failed" else "success"
        self.add(commit, repository=repository, seconds=self._deploy_seconds, ends_as=ends_as)

    def _statuses(
        self, deployment: Deployment, visible: Sequence[Deployment]
    ) -> list[Mapping[str, object]]:
        """Return the latest status."""
        page = f"https://dashboard.example.com/deployments/{deployment.id}"
        return [
            {
                "state": self._state(deployment, visible),
                "creator": {"login": deployment.reporter, "type": "Bot"},
                "log_url": page,
                "target_url": page,
                "environment_url": "",
                "description": "",
            }
        ]

    def _state(self, deployment: Deployment, visible: Sequence[Deployment]) -> str:
        if self._clock.monotonic() < deployment.ended:
            return "in_progress"
        if deployment.ends_as == "success" and self._is_replaced(deployment, visible):
            return "inactive"
        return deployment.ends_as

    def _is_replaced(self, deployment: Deployment, visible: Sequence[Deployment]) -> bool:
        """Return whether a newer deployment of the same environment has succeeded."""
        if deployment.environment == PRODUCTION:
            return False
        now = self._clock.monotonic()
        for other in visible:
            if other is deployment:
                return False
            has_succeeded = other.ends_as == "success" and now >= other.ended
            if has_succeeded and other.environment == deployment.environment:
                return True
        return False

    def _compare(self, base_and_head: str, *, page: int, is_demo: bool) -> Response:
        base, _, head = base_and_head.partition("...")
        if is_demo and base not in self._commits:
            base = COMMIT  # in the demo, any commit is the merged one
        if base not in self._commits or head not in self._commits:
            return _error(404, "Not Found")
        ahead = self._commits.index(head) - self._commits.index(base)
        if ahead == 0:
            status = "identical"
        elif ahead > 0:
            status = "ahead"
        else:
            status = "behind"
        fields: dict[str, object] = {
            "status": status,
            "ahead_by": max(ahead, 0),
            "behind_by": max(-ahead, 0),
            "commits": [],
        }
        if page == 1:
            fields["files"] = [{"filename": "index.md", "patch": PATCH}]
        return json_response(fields)


def _routed(method: str, path: str) -> tuple[str, list[str]]:
    """Return the operation of a request, or `unknown`, and the segments in its path."""
    for route in ROUTES:
        segments = route.match(path)
        if route.method == method and segments is not None:
            return route.operation, segments
    return "unknown", []


def _deployments_page(visible: Sequence[Deployment], query: Mapping[str, str]) -> Response:
    wanted = visible
    if "environment" in query:
        environment = query["environment"]
        wanted = [deployment for deployment in wanted if deployment.environment == environment]
    if "sha" in query:
        wanted = [deployment for deployment in wanted if deployment.commit == query["sha"]]
    size = int(query.get("per_page", "30"))
    page = int(query.get("page", "1"))
    first = (page - 1) * size
    return json_response([_as_json(deployment) for deployment in wanted[first : first + size]])


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
