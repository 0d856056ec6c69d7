"""One call of the API, and what each status means for it: a result, an error, or a reason to retry."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from urllib.parse import urlsplit

from ..clock import Clock
from ..errors import ActionError, Advice, BadResponse, Forbidden, NotFound, Rejected, Unauthorized
from ..http.client import Request, Timeouts
from ..http.faults import format_status
from ..http.retry import TEMPORARY_STATUSES, TransientError, read_retry_after
from ..models import AGENT, read_error, reports_missing_endpoint
from ..text import netloc_of
from .client import ApiClient, ApiResponse

if TYPE_CHECKING:
    from ..job import Job

T = TypeVar("T")

NETWORK: Final = Advice(
    cause="The platform, or the network between it and this runner, is down or overloaded.",
    remedy="Check the platform's status page and run the workflow again, or allow more time with `outage-tolerance`.",
)
_TOO_MANY: Final = Advice(
    cause="This organization's workflows send more requests or start more jobs than the platform allows, or a quota is used up.",
    remedy="Lower `max-parallel`, raise `poll-interval`, or allow more time with `outage-tolerance`. If a quota is used up, run "
    "the workflow again when it allows more exports.",
)
_UNKNOWN_YET: Final = Advice(
    cause="The platform has just started the job, but does not know it yet.",
    remedy="Allow more time with `outage-tolerance`.",
)
_NOT_PACKED: Final = Advice(
    cause="The platform has not finished the export's bundle, although it reports the export as completed.",
    remedy="Allow more time with `outage-tolerance`.",
)
_NOT_THE_API: Final = Advice(
    cause="Something other than the API responds at `base-url`: a login page, a gateway, or the API at another path.",
    remedy="Check `base-url`; open it in a browser to see what responds there.",
)
_ECHOED_KEY: Final = Advice(
    cause="The platform, or something in front of it, copies the admin key from the request into its response.",
    remedy="Report it to the platform, and replace the key: it may be wherever the platform writes such values.",
)
_BAD_RESPONSE: Final = Advice(cause=BadResponse.default_cause, remedy=BadResponse.default_remedy)
_UNKNOWN_CODING: Final = Advice(
    cause="A gateway or proxy compresses the API's responses in a way that the action does not accept.",
    remedy="Turn off this compression for the API, or restrict it to gzip.",
)
_WRONG_BASE_URL: Final = (
    "`base-url` is probably wrong: the API reports an unknown job in another way. If `base-url` is right, the id is mistyped, "
    "or the job was removed or belongs to another organization."
)


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One operation of the API. Times are on the clock's `monotonic`."""

    job: "Job"
    request: Request
    # raises `ValueError` if the response's JSON object is invalid, `BadResponse` if no retry can help
    read: Callable[[Mapping[str, object]], T]
    retry_invalid_object: bool = True  # it may come from a gateway
    idempotent: bool = True  # may be sent again even if the platform may have processed it
    temporary_until: Mapping[int, float] = field(default_factory=dict)  # until when to retry a status that is normally final
    timeouts: Timeouts = field(default_factory=Timeouts)
    deadline: float = math.inf  # when to make the last attempt


def read_result(call: Call[T], response: ApiResponse, client: ApiClient, clock: Clock) -> T:
    """Return the result of a call. Raises the `ActionError` of a final response, and `TransientError` for one to retry."""
    status = response.status
    if 200 <= status < 300:
        result = _read_success(call, response, client)
        call.request.maybe_processed = False  # it was, and the result is known
        return result
    is_normally_final = 300 <= status < 500 and status not in TEMPORARY_STATUSES
    # 5xx is temporary, but also 101 and statuses that no standard defines
    temporary_until = call.temporary_until.get(status, -math.inf) if is_normally_final else math.inf
    retry_after = read_retry_after(response.headers, clock.now())
    was_rejected = is_normally_final or status == 429 or (status == 503 and retry_after is not None)
    call.request.maybe_processed = not was_rejected
    if temporary_until <= clock.monotonic():
        raise _final_error(call, response, client)
    raise TransientError(
        f"The API returned {format_status(status)}",
        status=status,
        maybe_processed=not was_rejected,
        advice={404: _UNKNOWN_YET, 409: _NOT_PACKED, 429: _TOO_MANY}.get(status, NETWORK),
        retry_after_seconds=retry_after,
        retry_until=temporary_until,
        job_specific=is_normally_final,
        details=client.quote(read_error(response.body)),
        request_id=response.request_id,
    )


def _read_success(call: Call[T], response: ApiResponse, client: ApiClient) -> T:
    problem = f"the response is not a JSON object ({_describe_body(response)})"
    if isinstance(response.body, dict):
        if (name := client.field_with_key(response.body)) is not None:  # another attempt would get the same
            raise _invalid_response(call, response, f"`{name}` contains the admin key", _ECHOED_KEY)
        try:
            result = call.read(response.body)
        except ValueError as error:
            problem = str(error)
        except BadResponse as error:
            error.request_id = response.request_id
            raise
        else:
            if not call.idempotent:  # the start request
                client.show_job_id(response.body)
            return result
    advice = _UNKNOWN_CODING if response.unknown_coding and response.body is None else None
    if call.idempotent and (call.retry_invalid_object or not isinstance(response.body, dict)):
        message = f"The API returned {response.status}, but {problem}"
        raise TransientError(message, advice=advice or _NOT_THE_API, request_id=response.request_id)
    raise _invalid_response(call, response, problem, advice or _BAD_RESPONSE)


def _invalid_response(call: Call[T], response: ApiResponse, problem: str, advice: Advice) -> BadResponse:
    returned = f"The API returned {response.status}, but {problem}."
    may_have_started = "The platform may have started a job anyway. Check the dashboard before the next run."
    return BadResponse(
        f"the API's response to {call.request.method} {call.request.url} is invalid",
        details=(returned,) if call.idempotent else (returned, may_have_started),
        request_id=response.request_id,
        **advice,
    )


def _final_error(call: Call[T], response: ApiResponse, client: ApiClient) -> ActionError:
    status, job = response.status, call.job
    if status < 400:
        return _redirect_error(response, client)
    no_endpoint = status in {404, 405} and not job.api_responded and reports_missing_endpoint(response.body)
    if no_endpoint and not call.idempotent:
        return _wrong_base_url(call, response, client)
    resource, inputs = f"the job {job.job_id}", "`job-id`"
    if not call.idempotent:
        resource, inputs = f"the domain {job.domain}", "`domain`"
    elif job.mode == AGENT:
        resource, inputs = f"the project {job.project_id} or its job {job.job_id}", "`project-id`, `job-id`"
    error_class, summary = {
        401: (Unauthorized, "the platform rejected the admin key (401)"),
        403: (Forbidden, "the platform does not allow this (403)"),
        404: (NotFound, f"the platform does not know {resource} (404)"),
    }.get(status, (Rejected, f"the platform rejected the request, {format_status(status)}"))
    remedy = f"Compare {inputs} and `base-url` with the dashboard." if status == 404 else None
    cause = _WRONG_BASE_URL if status == 404 and no_endpoint else None
    details = client.quote(read_error(response.body))
    return error_class(summary, details=details, cause=cause, remedy=remedy, request_id=response.request_id)


def _wrong_base_url(call: Call[T], response: ApiResponse, client: ApiClient) -> ActionError:
    error_class = NotFound if response.status == 404 else Rejected
    return error_class(
        f"`base-url` is probably wrong: {client.base_url} has no static-export endpoint ({response.status})",
        details=client.quote(read_error(response.body)) or (f"The response is not the API's JSON ({_describe_body(response)}).",),
        cause="The address is mistyped, its path prefix is missing or wrong, or it is the dashboard's instead of the API's.",
        remedy="Look up the API's address in the platform's documentation. The request was sent to "
        f"{client.base_url}{call.request.url}. If `base-url` is right, compare `domain` with the dashboard.",
        request_id=response.request_id,
    )


def _redirect_error(response: ApiResponse, client: ApiClient) -> BadResponse:
    location = response.headers.get("Location", "")
    if not location:
        summary = f"the API returned {format_status(response.status)}, a redirect without a target"
        return BadResponse(summary, request_id=response.request_id)
    try:
        host, path = netloc_of(location) or client.host, urlsplit(location).path
        address = host + path if path.startswith("/") else host
    except ValueError:
        address = "an address that cannot be read"
    return BadResponse(
        f"the API redirects to {address} ({response.status})",
        details=("The redirect was not followed: the admin key is sent only to the address in `base-url`.",),
        cause="`base-url` is not the API's own address, or a login page or gateway stands in front of it.",
        remedy="Set `base-url` to the address that the API responds at without a redirect.",
        request_id=response.request_id,
    )


def _describe_body(response: ApiResponse) -> str:
    content_type = response.headers.get("Content-Type", "no content type").split(";")[0]
    coding = f", Content-Encoding {response.unknown_coding}" if response.unknown_coding else ""
    return f"{content_type}, {response.size} bytes{coding}"
