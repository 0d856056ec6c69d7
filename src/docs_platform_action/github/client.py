"""GitHub's REST API: reads of one repository."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeVar
from urllib.parse import urlsplit

from requests.models import REDIRECT_STATI

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
_EXPIRED: Final = Advice(
    cause="The token is mistyped, or has expired.",
    remedy="Pass `github.token`.",
)
_PERMISSIONS: Final = (
    "Pass `github.token`, "
    "and give the job the permissions `contents: read` and `deployments: read`."
)
_RENAMED: Final = Advice(
    cause="The repository was renamed or transferred after this workflow run began.",
    remedy="Start a new run of the workflow: it gets the repository's new name.",
)
_IN_FRONT: Final = Advice(
    cause="A proxy or gateway between this runner and GitHub responded.",
    remedy="Allow this runner to reach GitHub's API at GITHUB_API_URL.",
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
        request = self._request(path)
        return self._read(request, self._send(job, request, deadline), kind)

    def find(self, job: Job, path: str, kind: type[T], *, deadline: float) -> T | None:
        """Return what `get` does, or `None` if the repository has no such object (404).

        To be called only after another path of the repository was read: a repository that the
        token cannot read answers 404 as well.
        """
        request = self._request(path)
        response = self._send(job, request, deadline)
        if response.status == 404 and not response.is_web_page:
            return None
        return self._read(request, response, kind)

    def _request(self, path: str) -> Request:
        return Request(method="GET", url=f"/repos/{self.repository}{path}")

    def _read(self, request: Request, response: JsonResponse, kind: type[T]) -> T:
        if response.status == 200 and isinstance(response.body, kind):
            return response.body
        limit_seconds = _limit_seconds(response, self.clock.now())
        if limit_seconds is not None or _is_temporary(response.status):
            raise _transient_error(response, limit_seconds or 0.0)
        raise _refusal(request, response)

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


def _is_temporary(status: int) -> bool:
    """Return whether another attempt may help: also after what no request has asked for."""
    is_unexpected = status < 400 and status not in REDIRECT_STATI
    return is_unexpected or status in TEMPORARY_STATUSES


def _refusal(request: Request, response: JsonResponse) -> NotDeployed:
    status = response.status
    # source: GitHub's documentation of its REST API, "Follow redirects"
    if status in REDIRECT_STATI:
        summary = f"the repository has another name now ({status})"
        advice = _RENAMED
    elif response.is_web_page:
        summary = f"GitHub's API was not reached: {format_status(status)} and a web page came"
        advice = _IN_FRONT
    elif status == 401:
        summary = "GitHub refused the token (401)"
        advice = _EXPIRED
    elif status in {403, 404}:
        summary = f"GitHub refused the token ({status})"
        advice = Advice(cause=_missing_permission(request), remedy=_PERMISSIONS)
    else:
        summary = f"GitHub returned {format_status(status)}"
        advice = DOWN
    return NotDeployed(
        summary,
        details=(f"The request was {request.method} {request.url}.", *response.quotes),
        request_id=response.request_id,
        **advice,
    )


def _missing_permission(request: Request) -> str:
    if "/compare/" in request.url:
        return "The token cannot read the repository's commits."
    return "The token cannot read the repository's deployments."


def _limit_seconds(response: JsonResponse, now: datetime) -> float | None:
    """Return how long a rate limit lasts, or `None` if the response is not about one.

    A 403 may also be about a permission (source: GitHub's documentation of limits). A secondary
    limit says so only in words, which older servers call abuse detection.
    """
    is_maybe_limit = response.status == 403 or response.status in TEMPORARY_STATUSES
    if not is_maybe_limit:
        return None
    if response.retry_after_seconds is not None:
        return response.retry_after_seconds
    if response.status not in {403, 429}:
        return None
    if response.headers.get("X-RateLimit-Remaining") == "0":
        return _seconds_until_reset(response.headers, now)
    said = (read_error(response.body) or "").lower()
    is_limit = response.status == 429 or "rate limit" in said or "abuse" in said
    return LIMIT_SECONDS if is_limit else None


def _seconds_until_reset(headers: Mapping[str, str], now: datetime) -> float:
    """Return when requests remain again, in seconds from now."""
    reset = headers.get("X-RateLimit-Reset", "")
    if not re.fullmatch("[0-9]{1,12}", reset):
        return LIMIT_SECONDS
    date = http_date(headers.get("Date", "")) or now  # this machine's clock may be wrong
    return max(int(reset) - date.timestamp(), 0.0)
