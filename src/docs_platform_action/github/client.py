"""GitHub's REST API: reads of one repository."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from ..clock import Clock
from ..errors import GITHUB_DOWN, GITHUB_PERMISSIONS, GitHubUnavailable, NotDeployed
from ..events import Events
from ..http.api_client import ApiClient, ApiResponse
from ..http.faults import NetworkError, format_status
from ..http.reasons import read_error
from ..http.retry import LAST_ATTEMPT_SECONDS, TEMPORARY_STATUSES, TransientError, http_date
from ..http.transport import Request, Timeouts
from ..http.trust import UnusableServerError
from ..job import Job

T = TypeVar("T")

LIMIT_SECONDS: Final = (
    60.0  # to wait if GitHub does not say how long (source: its documentation of rate limits)
)


@dataclass(frozen=True, kw_only=True)
class GitHubClient:
    """Reads a repository such as `octo/docs`. Every read is tried once; a `deadline` is on the clock's `monotonic`."""

    client: ApiClient
    repository: str
    clock: Clock
    events: Events

    def get(self, job: Job, path: str, kind: type[T], *, deadline: float) -> T:
        """Return the JSON at a path of the repository. Raises `GitHubUnavailable` for a temporary error, and `NotDeployed`."""
        request, began = (
            Request(method="GET", url=f"/repos/{self.repository}{path}"),
            self.clock.monotonic(),
        )
        if (
            began >= deadline + LAST_ATTEMPT_SECONDS
        ):  # a pass after the deadline ends within two attempts
            raise GitHubUnavailable("there was no time for all requests", **GITHUB_DOWN)
        try:
            response = self.client.send(
                request, Timeouts().within(max(deadline - began, LAST_ATTEMPT_SECONDS))
            )
        except UnusableServerError as error:
            raise error.failure(
                NotDeployed, f"GitHub's API at {self.client.host}", "GITHUB_API_URL"
            ) from error
        except (NetworkError, TransientError) as error:
            advice = (
                error.advice
                if isinstance(error, TransientError)
                else error.advice_for("GITHUB_API_URL")
            )
            raise GitHubUnavailable(error.message, **(advice or GITHUB_DOWN)) from error
        status, said, milliseconds = (
            response.status,
            read_error(response.body) or "",
            (self.clock.monotonic() - began) * 1000,
        )
        target, request_id = f"GET {request.url}", response.request_id
        self.events.request_ended(
            job, target, outcome=str(status), milliseconds=milliseconds, request_id=request_id
        )
        if status == 200 and isinstance(response.body, kind):
            return response.body
        returned, details = f"GitHub returned {format_status(status)}", self.client.quote(said)
        limit_seconds = _limit_seconds(response, said, self.clock.now())
        if limit_seconds is not None or status == 200 or status in TEMPORARY_STATUSES:
            problem = " without the expected JSON" if status == 200 else ""
            failure = GitHubUnavailable(f"{returned}{problem}", details=details, **GITHUB_DOWN)
            failure.retry_after_seconds = limit_seconds or 0.0
            raise failure
        is_refused = status in {401, 403, 404}
        refusal = (
            "does not know the commit"
            if status == 404 and path.startswith("/compare/")
            else "refused the token"
        )
        raise NotDeployed(
            f"GitHub {refusal} ({status})" if is_refused else returned,
            details=(f"The request was {target}.", *details),
            request_id=request_id,
            **(GITHUB_PERMISSIONS if is_refused else GITHUB_DOWN),
        )


def _limit_seconds(response: ApiResponse, said: str, now: datetime) -> float | None:
    """Return how long a rate limit lasts, or `None` if a 403 is about a permission (source: GitHub's documentation of limits)."""
    if response.retry_after_seconds is not None or response.status not in {403, 429}:
        return response.retry_after_seconds
    headers = response.headers
    if headers.get("X-RateLimit-Remaining") == "0" and re.fullmatch(
        "[0-9]{1,12}", reset := headers.get("X-RateLimit-Reset", "")
    ):
        return max(int(reset) - (http_date(headers.get("Date", "")) or now).timestamp(), 0.0)
    return LIMIT_SECONDS if response.status == 429 or "rate limit" in said.lower() else None
