"""GitHub's REST API: reads of one repository."""

import re
from collections.abc import Mapping
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

# to wait if GitHub does not say how long (source: its documentation of rate limits)
LIMIT_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class GitHubClient:
    """Reads a repository such as `octo/docs`.

    Every read is tried once. A `deadline` is on the clock's `monotonic`.
    """

    client: ApiClient
    repository: str
    clock: Clock
    events: Events

    def get(self, job: Job, path: str, kind: type[T], *, deadline: float) -> T:
        """Return the JSON at a path of the repository.

        Raises `GitHubUnavailable` for a temporary error, and `NotDeployed` for any other one.
        """
        request = Request(method="GET", url=f"/repos/{self.repository}{path}")
        response = self._send(job, request, deadline)
        if response.status == 200 and isinstance(response.body, kind):
            return response.body
        said = read_error(response.body) or ""
        limit_seconds = _limit_seconds(response, said, self.clock.now())
        is_temporary = response.status == 200 or response.status in TEMPORARY_STATUSES
        if limit_seconds is not None or is_temporary:
            raise self._unavailable(response, said, limit_seconds or 0.0)
        is_comparison = path.startswith("/compare/")
        raise self._refusal(request, response, said, is_comparison=is_comparison)

    def _send(self, job: Job, request: Request, deadline: float) -> ApiResponse:
        began = self.clock.monotonic()
        # a request may take this long after the deadline, and none begins later than that
        if began >= deadline + LAST_ATTEMPT_SECONDS:
            raise GitHubUnavailable("there was no time for all requests", **GITHUB_DOWN)
        timeouts = Timeouts().within(max(deadline - began, LAST_ATTEMPT_SECONDS))
        try:
            response = self.client.send(request, timeouts)
        except UnusableServerError as error:
            server = f"GitHub's API at {self.client.host}"
            raise error.failure(NotDeployed, server, "GITHUB_API_URL") from error
        except NetworkError as error:
            advice = error.advice_for("GITHUB_API_URL") or GITHUB_DOWN
            raise GitHubUnavailable(error.message, **advice) from error
        except TransientError as error:
            raise GitHubUnavailable(error.message, **error.advice) from error
        self.events.request_ended(
            job,
            f"{request.method} {request.url}",
            outcome=str(response.status),
            milliseconds=(self.clock.monotonic() - began) * 1000,
            request_id=response.request_id,
        )
        return response

    def _unavailable(
        self, response: ApiResponse, said: str, pause_seconds: float
    ) -> GitHubUnavailable:
        summary = f"GitHub returned {format_status(response.status)}"
        if response.status == 200:
            summary += " without the expected JSON"
        failure = GitHubUnavailable(summary, details=self.client.quote(said), **GITHUB_DOWN)
        failure.retry_after_seconds = pause_seconds
        return failure

    def _refusal(
        self, request: Request, response: ApiResponse, said: str, *, is_comparison: bool
    ) -> NotDeployed:
        status = response.status
        advice = GITHUB_PERMISSIONS
        if status == 404 and is_comparison:
            summary = f"GitHub does not know the commit ({status})"
        elif status in {401, 403, 404}:
            summary = f"GitHub refused the token ({status})"
        else:
            summary = f"GitHub returned {format_status(status)}"
            advice = GITHUB_DOWN
        return NotDeployed(
            summary,
            details=(
                f"The request was {request.method} {request.url}.",
                *self.client.quote(said),
            ),
            request_id=response.request_id,
            **advice,
        )


def _limit_seconds(response: ApiResponse, said: str, now: datetime) -> float | None:
    """Return how long a rate limit lasts, or `None` if the response is not about one.

    A 403 may also be about a permission (source: GitHub's documentation of limits).
    """
    if response.retry_after_seconds is not None:
        return response.retry_after_seconds
    if response.status not in {403, 429}:
        return None
    seconds = _seconds_until_reset(response.headers, now)
    if seconds is not None:
        return seconds
    is_limit = response.status == 429 or "rate limit" in said.lower()
    return LIMIT_SECONDS if is_limit else None


def _seconds_until_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how long no request remains, or `None` if some do or it is unknown."""
    reset = headers.get("X-RateLimit-Reset", "")
    if headers.get("X-RateLimit-Remaining") != "0" or not re.fullmatch("[0-9]{1,12}", reset):
        return None
    date = http_date(headers.get("Date", "")) or now  # this machine's clock may be wrong
    return max(int(reset) - date.timestamp(), 0.0)
