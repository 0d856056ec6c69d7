"""What each status of the API means: a result, a failure, or a reason to retry."""

import http
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from urllib.parse import urlsplit

from ..clock import Clock
from ..errors import ActionError, Advice, BadResponse, Forbidden, NotFound, Rejected, Unauthorized
from ..http.client import Request, Timeouts
from ..http.retry import TEMPORARY_STATUSES, TransientError, read_retry_after
from ..models import reports_missing_endpoint
from .client import ApiClient, ApiResponse

if TYPE_CHECKING:
    from ..job import Job

T = TypeVar("T")

SETTLING_SECONDS: Final = 30.0
"""How long after its start a job may still be unknown to the servers that are asked for it."""

NETWORK: Final = Advice(
    cause="The platform, or the network between it and this runner, is down or overloaded.",
    remedy="Check the platform's status page and run the workflow again, or allow more time with `outage-tolerance`.",
)
_TOO_MANY: Final = Advice(
    cause="The platform accepts fewer requests, or runs fewer jobs at the same time, than this organization's workflows ask for.",
    remedy="Lower `max-parallel`, raise `poll-interval`, or allow more time with `outage-tolerance`.",
)
_UNSETTLED: Final = Advice(
    cause="The platform does not show the job that it has just started yet.",
    remedy="Allow more time with `outage-tolerance`, or collect it in a later run.",
)
_UNREADY: Final = Advice(
    cause="The platform has not finished the export's bundle, though it reports the export as completed.",
    remedy="Allow more time with `outage-tolerance`, or collect it in a later run.",
)
_FOREIGN: Final = Advice(
    cause="Something other than the API responds at `base-url`: a login page, a gateway, or the API at another path.",
    remedy="Check `base-url`; open it in a browser to see what responds there.",
)
_WRONG_BASE_URL: Final = (
    "`base-url` is probably wrong: this is not how the API reports an unknown job. If it is right, the id is mistyped, "
    "or the job was removed or belongs to another organization."
)


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One operation of the API.

    `about` says what a 404 does not find, and `named_by` which inputs name it. `read` makes the result from the response's JSON
    object, and raises `ValueError` if the object breaks the contract. Such a response may come from a gateway and is retried,
    unless `contract_is_final`. `temporary_until` maps statuses that are normally final to the moment until which they are
    retried; one last attempt follows when `deadline` is reached, both on the clock's `monotonic`. A call that is not `idempotent`
    is never sent again once the platform may have processed it, which its `request` knows. While one of `other_jobs` is under
    way, a 429 is not an outage: the platform takes the call once such a job has ended.
    """

    job: "Job"
    request: Request
    about: str
    named_by: str
    read: Callable[[Mapping[str, object]], T]
    idempotent: bool = True
    contract_is_final: bool = False
    temporary_until: Mapping[int, float] = field(default_factory=dict)
    other_jobs: Sequence["Job"] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)
    deadline: float = math.inf


def until_settled(job: "Job") -> dict[int, float]:
    """Return until when a 404 is temporary: for a while, if this run has started the job."""
    return {404: job.started_at + SETTLING_SECONDS} if job.started_at is not None else {}


def until_packed(job: "Job") -> dict[int, float]:
    """Return until when statuses are temporary for a bundle: the platform answers 409 while it packs it."""
    return {409: math.inf, **until_settled(job)}


def result_of(call: Call[T], response: ApiResponse, client: ApiClient, clock: Clock) -> T:
    """Return the result of a call from the response to it.

    Raises the `ActionError` for a final response, and `TransientError` for one that is to be retried.
    """
    if 200 <= response.status < 300:
        return _read(call, response)
    if 300 <= response.status < 400:
        raise _redirected(response, client)
    retry_for_seconds = math.inf
    normally_final = 400 <= response.status < 500 and response.status not in TEMPORARY_STATUSES
    if normally_final:
        retry_for_seconds = call.temporary_until.get(response.status, -math.inf) - clock.monotonic()
        if retry_for_seconds <= 0:
            raise _refused(call, response, client)
    # besides 5xx: 101, and statuses that no standard knows
    retry_after = read_retry_after(response.headers, clock.now())
    raise TransientError(
        f"The API returned {_phrase(response.status)}",
        maybe_processed=not (response.status == 429 or (response.status == 503 and retry_after is not None)),
        advice={404: _UNSETTLED, 409: _UNREADY, 429: _TOO_MANY}.get(response.status, NETWORK),
        retry_after_seconds=retry_after,
        retry_for_seconds=retry_for_seconds,
        at_capacity=response.status == 429 and any(job.is_under_way for job in call.other_jobs),
        job_specific=normally_final,
        error_text=response.error_text,
        request_id=response.request_id,
    )


def _read(call: Call[T], response: ApiResponse) -> T:
    if isinstance(response.body, dict):
        try:
            return call.read(response.body)
        except ValueError as error:
            problem = str(error)
    else:
        problem = f"it is not a JSON object ({_content_type(response)}, {response.size} bytes)"
    what = f"The API returned {response.status}, but {problem}"
    if not call.idempotent or (call.contract_is_final and isinstance(response.body, dict)):
        doubt = () if call.idempotent else ("It may have started a job anyway: check the dashboard before the next run.",)
        raise BadResponse(
            f"the API's response to {call.request.method} {call.request.url} cannot be used",
            details=(f"{what}.", *doubt),
            request_id=response.request_id,
        )
    raise TransientError(what, advice=_FOREIGN, request_id=response.request_id)


def _refused(call: Call[T], response: ApiResponse, client: ApiClient) -> ActionError:
    no_endpoint = response.status in {404, 405} and not call.job.api_responded and reports_missing_endpoint(response.body)
    if no_endpoint and not call.idempotent:
        return _wrong_base_url(call, response, client)
    kind, summary = {
        401: (Unauthorized, "the platform rejected the admin key (401)"),
        403: (Forbidden, "the platform does not allow this (403)"),
        404: (NotFound, f"the platform does not know {call.about} (404)"),
    }.get(response.status, (Rejected, f"the platform rejected the request, {_phrase(response.status)}"))
    remedy = f"Compare {call.named_by} and `base-url` with the dashboard." if kind is NotFound else None
    cause = _WRONG_BASE_URL if kind is NotFound and no_endpoint else None
    return kind(summary, details=client.quote(response.error_text), cause=cause, remedy=remedy, request_id=response.request_id)


def _wrong_base_url(call: Call[T], response: ApiResponse, client: ApiClient) -> ActionError:
    kind = NotFound if response.status == 404 else Rejected
    return kind(
        f"`base-url` is probably wrong: {client.base_url} has no static-export endpoint ({response.status})",
        details=client.quote(response.error_text)
        or (f"The response is not the API's JSON ({_content_type(response)}, {response.size} bytes).",),
        cause="The address is mistyped, its path prefix is missing or wrong, or it is the dashboard's instead of the API's.",
        remedy="Look up the API's address in the platform's documentation. The request went to "
        f"{client.base_url}{call.request.url}. If `base-url` is right, compare {call.named_by} with the dashboard.",
        request_id=response.request_id,
    )


def _redirected(response: ApiResponse, client: ApiClient) -> BadResponse:
    location = response.headers.get("Location", "")
    try:
        target = urlsplit(location)
        host = target.netloc.rpartition("@")[2] or client.host
        path = target.path if target.path.startswith("/") else ""
    except ValueError:
        host, path = "an address that cannot be read", ""
    if not location:
        return BadResponse(
            f"the API returned {_phrase(response.status)}, a redirect without a target", request_id=response.request_id
        )
    return BadResponse(
        f"the API redirects to {host}{path} ({response.status})",
        details=("The redirect was not followed: the admin key is sent only to the address in `base-url`.",),
        cause="`base-url` is not the API's own address, or a login page or gateway stands in front of it.",
        remedy="Set `base-url` to the address that the API responds at without a redirect.",
        request_id=response.request_id,
    )


def _content_type(response: ApiResponse) -> str:
    return response.headers.get("Content-Type", "no content type").split(";")[0]


def _phrase(status: int) -> str:
    try:
        return f"{status} ({http.HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return str(status)
