"""GitHub's REST API: reads of one repository."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar
from urllib.parse import urlsplit

from ..clock import Clock
from ..errors import Advice, NotDeployed
from ..events import Listener
from ..http.attempts import LAST_ATTEMPT_SECONDS, TEMPORARY_STATUSES, TransientError
from ..http.client import HttpClient
from ..http.faults import NetworkError, format_status
from ..http.headers import http_date
from ..http.json_response import JsonResponse, request_json
from ..http.reasons import read_error
from ..http.transport import Request, Timeouts
from ..http.trust import UnusableServerError
from ..job import Job

T = TypeVar("T")

# to wait if GitHub does not say how long (source: its documentation of rate limits)
LIMIT_SECONDS: Final = 60.0

DOWN: Final = Advice(
    cause=(
        "GitHub or the network is down, or the repository's workflows exceed GitHub's rate limit."
    ),
    remedy=(
        "Check GitHub's status page and run the workflow again, "
        "or allow more time with `commit-timeout`."
    ),
)
_PERMISSIONS: Final = Advice(
    cause=(
        "The token cannot read the repository's deployments or commits, "
        "or `commit` is not in this repository."
    ),
    remedy=(
        "Pass `github.token`, "
        "and give the job the permissions `contents: read` and `deployments: read`."
    ),
)


@dataclass(frozen=True, kw_only=True)
class GitHubClient:
    """Reads a repository such as `octo/docs`.

    Every read is tried once. A `deadline` is on the clock's `monotonic`.
    """

    client: HttpClient
    api_url: str
    token: str = field(repr=False)
    repository: str
    clock: Clock
    listener: Listener

    def get(self, job: Job, path: str, kind: type[T], *, deadline: float) -> T:
        """Return the JSON at a path of the repository.

        Raises `TransientError` for a temporary error, and `NotDeployed` for any other error.
        """
        request = Request(method="GET", url=f"/repos/{self.repository}{path}")
        response = self._send(job, request, deadline)
        if response.status == 200 and isinstance(response.body, kind):
            return response.body
        limit_seconds = _limit_seconds(response, self.clock.now())
        is_temporary = response.status == 200 or response.status in TEMPORARY_STATUSES
        if limit_seconds is not None or is_temporary:
            raise _transient_error(response, limit_seconds or 0.0)
        raise _refusal(request, response, is_comparison=path.startswith("/compare/"))

    def _send(self, job: Job, request: Request, deadline: float) -> JsonResponse:
        began = self.clock.monotonic()
        # a request may take this long after the deadline, and none begins later than that
        if began >= deadline + LAST_ATTEMPT_SECONDS:
            raise TransientError("there was no time for all requests", advice=DOWN)
        timeouts = Timeouts().within(max(deadline - began, LAST_ATTEMPT_SECONDS))
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        try:
            exchange = self.client.new_exchange(
                request, timeouts, headers=headers, base_url=self.api_url
            )
            response = request_json(self.client, exchange)
        except UnusableServerError as error:
            server = f"GitHub's API at {urlsplit(self.api_url).netloc}"
            raise error.failure(NotDeployed, server, "GITHUB_API_URL") from error
        except NetworkError as error:
            advice = error.advice_for("GITHUB_API_URL") or DOWN
            raise TransientError(error.message, advice=advice) from error
        self.listener.request_ended(
            job,
            f"{request.method} {request.url}",
            outcome=str(response.status),
            milliseconds=(self.clock.monotonic() - began) * 1000,
            request_id=response.request_id,
        )
        return response


def _transient_error(response: JsonResponse, retry_after_seconds: float) -> TransientError:
    message = f"GitHub returned {format_status(response.status)}"
    if response.status == 200:
        message += " without the expected JSON"
    return TransientError(
        message,
        advice=DOWN,
        details=response.quotes,
        retry_after_seconds=retry_after_seconds,
    )


def _refusal(request: Request, response: JsonResponse, *, is_comparison: bool) -> NotDeployed:
    status = response.status
    advice = _PERMISSIONS
    if status == 404 and is_comparison:
        summary = f"GitHub does not know the commit ({status})"
    elif status in {401, 403, 404}:
        summary = f"GitHub refused the token ({status})"
    else:
        summary = f"GitHub returned {format_status(status)}"
        advice = DOWN
    return NotDeployed(
        summary,
        details=(f"The request was {request.method} {request.url}.", *response.quotes),
        request_id=response.request_id,
        **advice,
    )


def _limit_seconds(response: JsonResponse, now: datetime) -> float | None:
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
    said = read_error(response.body) or ""
    is_limit = response.status == 429 or "rate limit" in said.lower()
    return LIMIT_SECONDS if is_limit else None


def _seconds_until_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how long no request remains, or `None` if some do or it is unknown."""
    reset = headers.get("X-RateLimit-Reset", "")
    if headers.get("X-RateLimit-Remaining") != "0" or not re.fullmatch("[0-9]{1,12}", reset):
        return None
    date = http_date(headers.get("Date", "")) or now  # this machine's clock may be wrong
    return max(int(reset) - date.timestamp(), 0.0)
