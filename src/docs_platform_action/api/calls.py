"""Calls to the API: which status means what, and which calls are retried."""

import http
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from urllib.parse import urlsplit

from ..clock import Clock, DeadlinePassed
from ..errors import (
    ActionError,
    Advice,
    BadResponse,
    Forbidden,
    NotFound,
    Rejected,
    StartUnconfirmed,
    Unauthorized,
    Unavailable,
)
from ..http.circuit_breaker import CircuitBreaker
from ..http.client import Bounds
from ..http.faults import SOCKS, NetworkError, SocksProxyError, UntrustedError
from ..http.request import Request
from ..http.retry import (
    PROXY,
    SHORTEST_ATTEMPT_SECONDS,
    TEMPORARY_STATUSES,
    RetryState,
    TemporaryError,
    full_jitter,
    read_retry_after,
    retry,
)
from ..models import API, reports_missing_endpoint
from ..text import seconds
from .client import ApiClient, ApiResponse

if TYPE_CHECKING:
    from ..events import Events
    from ..job import Job

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One operation of the API.

    `about` says what a 404 does not find, and `named_by` which inputs name it. `read` makes the
    result from the response's JSON object, and raises `ValueError` if the object breaks the contract. Such a response may come
    from a gateway and is retried, unless `contract_is_final`. `temporary_until` maps statuses that are normally final to the
    moment on the clock's `monotonic` until which they are retried. A call that is not `repeatable` is never sent again once the
    platform may have processed it, which its `request` knows. While one of `other_jobs` is under way, a 429 is
    not an outage: the platform takes the call once such a job has ended.
    """

    job: "Job"
    request: Request
    about: str
    named_by: str
    read: Callable[[Mapping[str, object]], T]
    repeatable: bool = True
    contract_is_final: bool = False
    temporary_until: Mapping[int, float] = field(default_factory=dict)
    other_jobs: Sequence["Job"] = ()
    bounds: Bounds = field(default_factory=Bounds)


class Caller:
    """Makes calls to the API, and retries them for as long as `outage-tolerance` allows."""

    def __init__(
        self,
        *,
        client: ApiClient,
        breaker: CircuitBreaker,
        clock: Clock,
        outage_tolerance_seconds: float,
        events: "Events",
        jitter: Callable[[float], float] = full_jitter,
    ) -> None:
        self._client = client
        self._breaker = breaker
        self._clock = clock
        self._tolerance = outage_tolerance_seconds
        self._events = events
        self._jitter = jitter

    @property
    def host(self) -> str:
        """The API's host, with its port."""
        return self._client.host

    def send(self, call: Call[T], *, deadline: float | None = None) -> T:
        """Make a call and return its result.

        One last attempt follows when `deadline` is reached, on the clock's `monotonic`. Raises the `ActionError` for the
        response, `Unavailable` if temporary errors last too long, `DeadlinePassed` if they last until the deadline,
        `StartUnconfirmed` if a call that must not be repeated may have been processed, and `Cancelled`.
        """
        state = RetryState(
            clock=self._clock, tolerance_seconds=self._tolerance, server=API, deadline=deadline, breaker=self._breaker
        )

        def attempt() -> T:
            try:
                with self._breaker.request(state):
                    return self._attempt(call, state)
            except TemporaryError as error:
                if error.maybe_processed and not call.repeatable:
                    raise self._unconfirmed(error) from error
                raise

        try:
            return retry(attempt, state, job=call.job, events=self._events, jitter=self._jitter)
        except TemporaryError as error:
            raise self._unavailable(error, state) from error

    def _attempt(self, call: Call[T], state: RetryState) -> T:
        bounds = call.bounds.within(state.begin_attempt())
        answer: ApiResponse | None = None
        try:
            answer = self._take_answer(call, bounds)
            result = self._judge(call, answer)
        except TemporaryError as error:
            call.request.maybe_processed = error.maybe_processed
            raise
        except UntrustedError as error:
            raise self._untrusted(error) from error
        except SocksProxyError as error:
            happened = f"the API at {self.host} cannot be reached through a SOCKS proxy"
            raise Unavailable(happened, cause=SOCKS.cause, remedy=SOCKS.remedy) from error
        except ActionError:
            # a final answer but 2xx says that nothing was processed; after a cancel there is none
            if answer is not None and not 200 <= answer.status < 300:
                call.request.maybe_processed = False
            raise
        call.request.maybe_processed = False
        return result

    def _take_answer(self, call: Call[T], bounds: Bounds) -> ApiResponse:
        began = self._clock.monotonic()
        try:
            try:
                return self._exchange(call, bounds, fresh=not call.repeatable)
            except NetworkError as error:
                if not (error.stale and call.repeatable):
                    raise
            # nobody's trouble: the server had put the connection away
            left = bounds.total_seconds - (self._clock.monotonic() - began)
            return self._exchange(call, bounds.within(max(SHORTEST_ATTEMPT_SECONDS, left)), fresh=True)
        except NetworkError as error:
            advice = PROXY if error.proxied else _NETWORK if error.sent else _UNREACHED
            raise TemporaryError(error.what, maybe_processed=error.sent, advice=advice) from error

    def _exchange(self, call: Call[T], bounds: Bounds, *, fresh: bool) -> ApiResponse:
        began = self._clock.monotonic()
        outcome, request_id = "ended without an answer", None
        try:
            answer = self._client.send(call.request, bounds, fresh=fresh)
            outcome, request_id = str(answer.status), answer.request_id
        except NetworkError as error:
            outcome = error.what
            raise
        finally:
            milliseconds = (self._clock.monotonic() - began) * 1000
            self._events.request_ended(
                call.job,
                f"{call.request.method} {call.request.url}",
                outcome=outcome,
                milliseconds=milliseconds,
                request_id=request_id,
            )
        return answer

    def _judge(self, call: Call[T], answer: ApiResponse) -> T:
        if 200 <= answer.status < 300:
            return self._read(call, answer)
        if 300 <= answer.status < 400:
            raise self._redirected(answer)
        retry_for_seconds = math.inf
        normally_final = 400 <= answer.status < 500 and answer.status not in TEMPORARY_STATUSES
        if normally_final:
            retry_for_seconds = call.temporary_until.get(answer.status, -math.inf) - self._clock.monotonic()
            if retry_for_seconds <= 0:
                raise self._refused(call, answer)
        # besides 5xx: a 1xx that http.client takes for a response, and statuses that no standard knows
        retry_after = read_retry_after(answer.headers, self._clock.now())
        raise TemporaryError(
            f"The API answered {_phrase(answer.status)}",
            maybe_processed=not (answer.status == 429 or (answer.status == 503 and retry_after is not None)),
            advice={404: _UNSETTLED, 409: _UNREADY, 429: _TOO_MANY}.get(answer.status, _NETWORK),
            retry_after_seconds=retry_after,
            retry_for_seconds=retry_for_seconds,
            at_capacity=answer.status == 429 and any(job.is_under_way for job in call.other_jobs),
            not_ready=normally_final,
            said=answer.said,
            request_id=answer.request_id,
        )

    def _read(self, call: Call[T], answer: ApiResponse) -> T:
        is_api = isinstance(answer.body, dict)
        try:
            if isinstance(answer.body, dict):
                return call.read(answer.body)
            problem = f"it is no JSON object ({_content_type(answer)}, {answer.size} bytes)"
        except ValueError as error:
            problem = str(error)
        what = f"The API answered {answer.status}, but {problem}"
        if not call.repeatable or (call.contract_is_final and is_api):
            doubt = (
                () if call.repeatable else ("It may have started a job all the same: look in the dashboard before the next run.",)
            )
            raise BadResponse(
                f"the API's answer to {call.request.method} {call.request.url} cannot be used",
                facts=(f"{what}.", *doubt),
                request_id=answer.request_id,
            )
        raise TemporaryError(what, advice=_FOREIGN, request_id=answer.request_id)

    def _refused(self, call: Call[T], answer: ApiResponse) -> ActionError:
        no_endpoint = answer.status in {404, 405} and not call.job.api_responded and reports_missing_endpoint(answer.body)
        if no_endpoint and not call.repeatable:
            return self._wrong_base_url(call, answer)
        kind, happened = {
            401: (Unauthorized, "the platform refused the admin key (401)"),
            403: (Forbidden, "the platform does not allow this (403)"),
            404: (NotFound, f"the platform does not know {call.about} (404)"),
        }.get(answer.status, (Rejected, f"the platform rejected the request, {_phrase(answer.status)}"))
        remedy = f"Compare {call.named_by} and `base-url` with the dashboard." if kind is NotFound else None
        cause = _WRONG_BASE_URL if kind is NotFound and no_endpoint else None
        return kind(happened, facts=self._quote(answer.said), cause=cause, remedy=remedy, request_id=answer.request_id)

    def _wrong_base_url(self, call: Call[T], answer: ApiResponse) -> ActionError:
        kind = NotFound if answer.status == 404 else Rejected
        base_url = self._client.base_url
        return kind(
            f"`base-url` is probably wrong: {base_url} has no static-export endpoint ({answer.status})",
            facts=self._quote(answer.said)
            or (f"The response is not the API's JSON ({_content_type(answer)}, {answer.size} bytes).",),
            cause="The address is mistyped, its path prefix is missing or wrong, or it is the dashboard's and not the API's.",
            remedy=f"Look up the API's address in the platform's documentation: the request went to {base_url}{call.request.url}."
            f" If `base-url` is right, compare {call.named_by} with the dashboard.",
            request_id=answer.request_id,
        )

    def _redirected(self, answer: ApiResponse) -> BadResponse:
        location = answer.headers.get("Location", "")
        try:
            target = urlsplit(location)
            host = target.netloc.rpartition("@")[2] or self.host
            path = target.path if target.path.startswith("/") else ""
        except ValueError:
            host, path = "an address that cannot be read", ""
        if not location:
            return BadResponse(f"the API answered {_phrase(answer.status)}, a redirect to nowhere", request_id=answer.request_id)
        return BadResponse(
            f"the API redirects to {host}{path} ({answer.status})",
            facts=("The redirect was not followed: the admin key goes to the address in `base-url` alone.",),
            cause="`base-url` is not the API's own address, or a login page or gateway stands in front of it.",
            remedy="Set `base-url` to the address that the API answers at without a redirect.",
            request_id=answer.request_id,
        )

    def _untrusted(self, error: UntrustedError) -> Unavailable:
        whose = f"the proxy for {self.host}" if error.proxied else self.host
        advice = error.advice("API", "`base-url`")
        return Unavailable(
            f"the certificate of {whose} is not trusted",
            facts=(f"TLS said: {error.reason.rstrip('.')}.",),
            cause=advice.cause,
            remedy=advice.remedy,
        )

    def _unconfirmed(self, error: TemporaryError) -> StartUnconfirmed:
        return StartUnconfirmed(
            "it is unknown whether the platform started it",
            facts=(f"{error.what}.", *self._quote(error.said)),
            request_id=error.request_id,
        )

    def _unavailable(self, error: TemporaryError, state: RetryState) -> Unavailable | DeadlinePassed:
        failing_since = state.failing_since
        alone = not error.not_ready and failing_since is not None and self._breaker.has_answered_since(failing_since)
        advice = _ALONE if alone else error.advice
        unavailable = Unavailable(
            f"the API at {self.host} {'kept failing for this job alone' if alone else 'stayed unavailable'}",
            facts=(
                f"No good answer came for {seconds(state.outage_seconds())}. The last try: {error.what}.",
                *self._quote(error.said),
            ),
            cause=advice.cause,
            remedy=advice.remedy,
            request_id=error.request_id,
        )
        if state.deadline is not None and self._clock.monotonic() >= state.deadline:
            return DeadlinePassed(unavailable)
        return unavailable

    def _quote(self, said: str | None) -> tuple[str, ...]:
        return (f'The API at {self.host} said: "{said}"',) if said else ()


_NETWORK: Final = Advice(
    cause="The platform, or the network between it and this runner, is down or overloaded.",
    remedy="Look at the platform's status page and run the workflow again, or give it longer with `outage-tolerance`.",
)
_UNREACHED: Final = Advice(
    cause="The host or port in `base-url` is mistyped, or the platform or the network between it and this runner is down.",
    remedy="Check `base-url` and the platform's status page, and run the workflow again.",
)
_TOO_MANY: Final = Advice(
    cause="The platform takes fewer requests, or runs fewer jobs at once, than this organisation's workflows ask for.",
    remedy="Lower `max-parallel`, raise `poll-interval`, or give it longer with `outage-tolerance`.",
)
_ALONE: Final = Advice(
    cause="The API answered others meanwhile, so something about this domain or job makes it fail.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
_UNSETTLED: Final = Advice(
    cause="The platform does not show the job yet that it has just started.",
    remedy="Give it longer with `outage-tolerance`, or collect it in a later run.",
)
_UNREADY: Final = Advice(
    cause="The platform has not finished the export's bundle, though it reports the export as completed.",
    remedy="Give it longer with `outage-tolerance`, or collect it in a later run.",
)
_FOREIGN: Final = Advice(
    cause="Something else than the API answers at `base-url`: a login page, a gateway, or the API at another path.",
    remedy="Check `base-url`; open it in a browser to see what answers there.",
)


_WRONG_BASE_URL: Final = (
    "`base-url` is probably wrong: this is not how the API reports an unknown job. If it is right, the id is mistyped, "
    "or the job was removed or belongs to another organization."
)


def _content_type(answer: ApiResponse) -> str:
    return answer.headers.get("Content-Type", "no content type").split(";")[0]


def _phrase(status: int) -> str:
    try:
        return f"{status} ({http.HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return str(status)
