"""One operation of the API made well: repeated where that is safe, for as long as it may take, its failures told apart."""

import http
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

import backoff

from .clock import Clock, DeadlinePassed, slept_on
from .errors import (
    ActionError,
    BadResponse,
    Forbidden,
    NotFound,
    Rejected,
    StartUnconfirmed,
    Unauthorized,
    Unavailable,
)
from .exchange import Answer, Bounds, Exchanger, NetworkError, UntrustedError

T = TypeVar("T")

LONGEST_PAUSE_SECONDS: Final = 30.0
SHORTEST_TRY_SECONDS: Final = 2.0
"""What a try may take at least, however little time is left."""

LAST_TRY_SECONDS: Final = 10.0
"""What the one try may take that starts when the time is up."""

_TEMPORARY: Final = frozenset({408, 425, 429, *range(500, 600)})


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One operation of the API.

    `path` is sent byte for byte; `about` names what a 404 does not find. `read` makes the answer's JSON object into what the
    caller wants, and raises `ValueError` when it breaks the contract; `contract_is_final` says that such an answer is the last
    word, where it would otherwise be taken for a gateway's and tried again. `worth_waiting` tells for how many seconds more a
    status is temporary that is not so by itself. A call that is not `repeatable` is never sent again once the platform may have
    seen it; `on_doubt` hears whether that is in doubt.
    """

    method: str
    path: str
    about: str
    read: Callable[[Mapping[str, object]], T]
    body: Mapping[str, object] | None = None
    repeatable: bool = True
    contract_is_final: bool = False
    worth_waiting: Callable[[int], float] = field(default=lambda _status: 0.0)
    on_doubt: Callable[[bool], None] = field(default=lambda _in_doubt: None)
    bounds: Bounds = field(default_factory=Bounds)


class Listener(Protocol):
    """Who wants to know how the talk with the API goes."""

    def trouble(self, what: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Hear of the first failed try of a call: how long tries may go on, and when the next one comes."""
        ...

    def recovered(self, after_seconds: float) -> None:
        """Hear that a call succeeded after trouble."""
        ...

    def exchanged(self, method: str, path: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        """Hear of the end of one request, in a status or in a fault."""
        ...


class Transport:
    """Carries out calls, through temporary failures for as long as `outage-tolerance` allows."""

    def __init__(
        self,
        *,
        exchanger: Exchanger,
        clock: Clock,
        outage_tolerance_seconds: float,
        listener: Listener,
        jitter: Callable[[float], float] = backoff.full_jitter,
    ) -> None:
        self._exchanger = exchanger
        self._clock = clock
        self._tolerance = outage_tolerance_seconds
        self._listener = listener
        self._jitter = jitter

    @property
    def host(self) -> str:
        """The API's host, with its port."""
        return self._exchanger.host

    def send(self, call: Call[T], *, deadline: float | None = None) -> T:
        """Carry out a call.

        `deadline` is on the clock's `monotonic`; when it is reached, one last try decides. Raises the `ActionError` that the
        answer stands for, `Unavailable` when temporary failures last, `DeadlinePassed` when they last to the deadline,
        `StartUnconfirmed` when a call that must not be repeated may have been processed, and `Cancelled`.
        """
        outage = _Outage(clock=self._clock, tolerance_seconds=self._tolerance, deadline=deadline)

        @backoff.on_exception(
            slept_on(self._clock, lambda: self._pauses(outage)),
            _TemporaryError,
            giveup=lambda error: isinstance(error, _TemporaryError) and error.sent and not call.repeatable,
            jitter=None,
            logger=None,
        )
        def attempt() -> T:
            return self._try_once(call, outage)

        try:
            result: T = attempt()
        except _TemporaryError as error:
            raise self._given_up(call, error, outage) from error
        if outage.began is not None and outage.told:
            self._listener.recovered(self._clock.monotonic() - outage.began)
        return result

    def _pauses(self, outage: "_Outage") -> Generator[float, "_TemporaryError", None]:
        ceilings = backoff.expo(base=2, factor=1, max_value=LONGEST_PAUSE_SECONDS)
        next(ceilings)
        error = yield 0.0
        while True:
            outage.begin()
            left = min(outage.left_seconds(), error.worth_seconds)
            if outage.last_try:
                return
            pause = min(max(self._jitter(next(ceilings)), error.retry_after_seconds or 0.0), max(left, 0.0))
            if not outage.told and left > 0:
                outage.told = True
                self._listener.trouble(error.what, budget_seconds=left, pause_seconds=pause)
            error = yield pause

    def _try_once(self, call: Call[T], outage: "_Outage") -> T:
        left = outage.begin_try()
        bounds = call.bounds.within(LAST_TRY_SECONDS if outage.last_try else max(SHORTEST_TRY_SECONDS, left))
        answer: Answer | None = None
        try:
            answer = self._take_answer(call, bounds)
            result = self._judge(call, answer)
        except _TemporaryError as error:
            call.on_doubt(error.sent and not call.repeatable)
            raise
        except UntrustedError as error:
            raise self._untrusted(error) from error
        except ActionError:
            # a final answer but 2xx says that nothing was processed; after a cancel there is none
            if answer is not None and not 200 <= answer.status < 300:
                call.on_doubt(False)  # noqa: FBT003  # a callback with one thing to say
            raise
        call.on_doubt(False)  # noqa: FBT003  # as above
        return result

    def _take_answer(self, call: Call[T], bounds: Bounds) -> Answer:
        began = self._clock.monotonic()
        try:
            try:
                return self._exchange(call, bounds, fresh=not call.repeatable)
            except NetworkError as error:
                if not (error.stale and call.repeatable):
                    raise
            # nobody's trouble: the server had put the connection away
            left = bounds.total_seconds - (self._clock.monotonic() - began)
            return self._exchange(call, bounds.within(max(SHORTEST_TRY_SECONDS, left)), fresh=True)
        except NetworkError as error:
            advice = _PROXY if error.proxied else _NETWORK if error.sent else _UNREACHED
            raise _TemporaryError(error.what, sent=error.sent, advice=advice) from error

    def _exchange(self, call: Call[T], bounds: Bounds, *, fresh: bool) -> Answer:
        began = self._clock.monotonic()
        outcome, request_id = "ended without an answer", None
        try:
            answer = self._exchanger.exchange(
                call.method,
                call.path,
                call.body,
                bounds,
                fresh=fresh,
                on_connected=lambda: call.on_doubt(not call.repeatable),
            )
            outcome, request_id = str(answer.status), answer.request_id
        except NetworkError as error:
            outcome = error.what
            raise
        finally:
            milliseconds = (self._clock.monotonic() - began) * 1000
            self._listener.exchanged(call.method, call.path, outcome=outcome, milliseconds=milliseconds, request_id=request_id)
        return answer

    def _judge(self, call: Call[T], answer: Answer) -> T:
        if 200 <= answer.status < 300:
            return self._read(call, answer)
        if 300 <= answer.status < 400:
            raise self._redirected(answer)
        worth_seconds = float("inf") if answer.status in _TEMPORARY else call.worth_waiting(answer.status)
        if 400 <= answer.status < 500 and worth_seconds <= 0:
            raise self._refused(call, answer)
        # here too: 1xx that http.client took for an answer, and what no standard knows
        retry_after = read_retry_after(answer.headers, self._clock.now())
        raise _TemporaryError(
            f"The API answered {_phrase(answer.status)}",
            sent=not (answer.status == 429 or (answer.status == 503 and retry_after is not None)),
            advice={404: _UNSETTLED, 409: _UNREADY, 429: _TOO_MANY}.get(answer.status, _NETWORK),
            retry_after_seconds=retry_after,
            worth_seconds=worth_seconds if 400 <= answer.status < 500 else float("inf"),
            said=answer.said,
            request_id=answer.request_id,
        )

    def _read(self, call: Call[T], answer: Answer) -> T:
        is_api = isinstance(answer.body, dict)
        try:
            if isinstance(answer.body, dict):
                return call.read(answer.body)
            kind = answer.headers.get("Content-Type", "no content type").split(";")[0]
            problem = f"it is no JSON object ({kind}, {answer.size} bytes)"
        except ValueError as error:
            problem = str(error)
        what = f"The API answered {answer.status}, but {problem}"
        if not call.repeatable or (call.contract_is_final and is_api):
            doubt = (
                () if call.repeatable else ("It may have started a job all the same: look in the dashboard before the next run.",)
            )
            raise BadResponse(
                f"the API's answer to {call.method} {call.path} cannot be used",
                facts=(f"{what}.", *doubt),
                request_id=answer.request_id,
            )
        raise _TemporaryError(what, sent=True, advice=_FOREIGN, request_id=answer.request_id)

    def _refused(self, call: Call[T], answer: Answer) -> ActionError:
        kind, happened = {
            401: (Unauthorized, "the platform refused the admin key (401)"),
            403: (Forbidden, "the platform does not allow this (403)"),
            404: (NotFound, f"the platform does not know {call.about} (404)"),
        }.get(answer.status, (Rejected, f"the platform rejected the request, {_phrase(answer.status)}"))
        return kind(happened, facts=self._quote(answer.said), request_id=answer.request_id)

    def _redirected(self, answer: Answer) -> BadResponse:
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
        return Unavailable(
            f"the certificate of {self.host} is not trusted",
            facts=(f"TLS said: {error.reason}.",),
            cause="The API uses a certificate of a private authority, an expired one, or one for another host name.",
            remedy="Pass the authority's certificate (PEM) with `ca-bundle`, or correct `base-url`.",
        )

    def _given_up(self, call: Call[T], error: "_TemporaryError", outage: "_Outage") -> ActionError | DeadlinePassed:
        said = self._quote(error.said)
        if error.sent and not call.repeatable:
            return StartUnconfirmed(
                "it is unknown whether the platform started it", facts=(f"{error.what}.", *said), request_id=error.request_id
            )
        unavailable = Unavailable(
            f"the API at {self.host} stayed unavailable",
            facts=(f"No good answer came for {_seconds(outage.lasted_seconds())}. The last try: {error.what}.", *said),
            cause=error.advice.cause,
            remedy=error.advice.remedy,
            request_id=error.request_id,
        )
        if outage.deadline is not None and self._clock.monotonic() >= outage.deadline:
            return DeadlinePassed(unavailable)
        return unavailable

    def _quote(self, said: str | None) -> tuple[str, ...]:
        return (f'The API at {self.host} said: "{said}"',) if said else ()


@dataclass(frozen=True, kw_only=True)
class _Advice:
    """What is likely behind a temporary failure that lasts, and what to do about it."""

    cause: str
    remedy: str


_NETWORK: Final = _Advice(
    cause="The platform, or the network between it and this runner, is down or overloaded.",
    remedy="Look at the platform's status page and run the workflow again, or give it longer with `outage-tolerance`.",
)
_UNREACHED: Final = _Advice(
    cause="The host or port in `base-url` is mistyped, or the platform or the network between it and this runner is down.",
    remedy="Check `base-url` and the platform's status page, and run the workflow again.",
)
_PROXY: Final = _Advice(
    cause="The proxy that the environment names, in HTTPS_PROXY or the like, is down, or does not serve this host.",
    remedy="Correct the proxy's address, or except the host with NO_PROXY.",
)
_TOO_MANY: Final = _Advice(
    cause="The platform asks for fewer requests than this organisation's workflows send.",
    remedy="Raise `poll-interval`, run fewer jobs side by side, or give it longer with `outage-tolerance`.",
)
_UNSETTLED: Final = _Advice(
    cause="The platform does not show the job yet that it has just started.",
    remedy="Give it longer with `outage-tolerance`, or collect it in a later run.",
)
_UNREADY: Final = _Advice(
    cause="The platform has not finished the export's bundle, though it reports the export as completed.",
    remedy="Give it longer with `outage-tolerance`, or collect it in a later run.",
)
_FOREIGN: Final = _Advice(
    cause="Something else than the API answers at `base-url`: a login page, a gateway, or the API at another path.",
    remedy="Check `base-url`; open it in a browser to see what answers there.",
)


class _TemporaryError(Exception):
    """A try failed in a way that may pass.

    `sent` tells whether the platform may have acted on it, `worth_seconds` for how long yet it is worth trying again.
    """

    def __init__(
        self,
        what: str,
        *,
        sent: bool,
        advice: _Advice,
        retry_after_seconds: float | None = None,
        worth_seconds: float = float("inf"),
        said: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.sent = sent
        self.advice = advice
        self.retry_after_seconds = retry_after_seconds
        self.worth_seconds = worth_seconds
        self.said = said
        self.request_id = request_id


@dataclass(kw_only=True)
class _Outage:
    """The stretch of a call in which no good answer came.

    `began` is when the first try failed, and `last_good` when that try began; the former is what `outage-tolerance` counts from,
    the latter what people are told. `last_try` holds for the one try that begins when the time is up.
    """

    clock: Clock
    tolerance_seconds: float
    deadline: float | None
    last_good: float | None = None
    began: float | None = None
    told: bool = False
    last_try: bool = False

    def begin_try(self) -> float:
        """Take note that a try begins; tell how many seconds are left."""
        if self.last_good is None:
            self.last_good = self.clock.monotonic()
        left = self.left_seconds()
        self.last_try = left <= 0
        return left

    def begin(self) -> None:
        """Take note that a try failed."""
        if self.began is None:
            self.began = self.clock.monotonic()

    def left_seconds(self) -> float:
        """Tell how long tries may go on from now."""
        ends = [self.deadline] if self.deadline is not None else []
        if self.began is not None:
            ends.append(self.began + self.tolerance_seconds)
        return min(ends) - self.clock.monotonic() if ends else float("inf")

    def lasted_seconds(self) -> float:
        """Tell how long it has been going on."""
        return self.clock.monotonic() - self.last_good if self.last_good is not None else 0.0


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read a `Retry-After`, in whole seconds or as a date (RFC 9110, section 10.2.3); `None` when there is no sensible one.

    A date is measured against the answer's own `Date`, so that this machine's clock does not matter.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    until, since = _http_date(value), _http_date(headers.get("Date", "")) or now
    return max((until - since).total_seconds(), 0.0) if until is not None else None


def _http_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _phrase(status: int) -> str:
    try:
        return f"{status} ({http.HTTPStatus(status).phrase.lower()})"
    except ValueError:
        return str(status)
