"""Sends calls of the API until they succeed, and announces each request and each outage."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

from ..clock import Clock
from ..errors import ActionError, NoRoom, StartUnconfirmed, Unavailable, UnknownHost
from ..events import Listener
from ..http.attempts import Attempts, Pause, TransientError
from ..http.client import HttpClient
from ..http.faults import NetworkError
from ..http.json_response import JsonResponse, request_json
from ..http.pacing import Pacer
from ..http.trust import UnusableServerError
from ..job import Job
from ..models import API
from ..text import format_approx, format_seconds
from .advice import NETWORK, UNREACHABLE
from .answers import result_of
from .calls import Answer, Call
from .room import ANSWER_CHECK_SECONDS, Room, StartHeld

T = TypeVar("T")

# how long a name that does not exist is looked up again before it is probably mistyped
UNKNOWN_HOST_SECONDS: Final = 30.0
RECHECK_SECONDS: Final = 1.0  # how often a start that is held back checks until when


@dataclass(frozen=True, kw_only=True)
class Unannounced(Generic[T]):
    """The result of a call whose last request is still to be announced."""

    result: T
    call: Call[T]
    status: int
    request_id: str | None
    milliseconds: float
    outage_seconds: float | None = None  # of the announced outage that it ended


@dataclass(kw_only=True)
class Sender:
    """Sends calls to one API, for all jobs of a run. Safe to use from several threads."""

    client: HttpClient
    base_url: str
    key: str = field(repr=False)
    room: Room
    clock: Clock
    outage_tolerance_seconds: float
    listener: Listener
    jitter: Callable[[float], float] | None = None  # in place of full jitter

    def __post_init__(self) -> None:
        self.host = urlsplit(self.base_url).netloc
        self._headers = {"Authorization": f"Bearer {self.key}", "Accept": "application/json"}
        self._pacer = Pacer(self.clock)
        self._is_host_known = False  # its name exists, as far as errors say
        self._has_answered = False  # with a successful response
        self._accepted_methods: frozenset[str] = frozenset()  # of requests that succeeded

    def send(self, call: Call[T]) -> T:
        """Return the result of a call, which is tried again for up to `outage-tolerance`.

        Raises the `ActionError` that the response stands for, and `Unavailable` if errors last
        for that long, or until the call's deadline.
        """
        answered = self.send_unannounced(call)
        self.announce(answered)
        return answered.result

    def send_unannounced(self, call: Call[T]) -> Unannounced[T]:
        """Send a call until it succeeds, and announce all but the end of the last request.

        Also raises `NoRoom` and `StartHeld` for a start.
        """
        attempts = Attempts(
            self.clock,
            tolerance_seconds=self.outage_tolerance_seconds,
            deadline=call.deadline,
            is_idempotent=not call.is_start,
            jitter=self.jitter,
        )
        is_announced = False  # an outage, once there is time to retry
        for _ in attempts:
            try:
                self._wait_for_turn(call, attempts)
                answered = self._attempt(call, attempts)
            except TransientError as error:
                if call.is_start:
                    self._hold_starts(call.job, error)
                pause = attempts.failed(error)
                if pause is not None and pause.budget_seconds > 0 and not is_announced:
                    is_announced = True
                    self._announce_outage(call.job, error, pause)
            except (NoRoom, StartHeld):  # the API has answered this start, or another one
                if is_announced:
                    self._announce_recovery(call.job, attempts.elapsed_seconds)
                raise
            else:
                if is_announced:
                    return replace(answered, outage_seconds=attempts.elapsed_seconds)
                return answered
        raise self._failure(call, attempts) from attempts.error

    def announce(self, answered: Unannounced[T]) -> None:
        """Announce the end of a request, and of the outage before it."""
        call = answered.call
        outcome = str(answered.status)
        self._announce_request(call, outcome, answered.milliseconds, answered.request_id)
        if answered.outage_seconds is not None:
            self._announce_recovery(call.job, answered.outage_seconds)

    def _wait_for_turn(self, call: Call[T], attempts: Attempts) -> None:
        """Wait until a request may begin.

        Raises `StartHeld` if the platform has limited starts in the meantime.
        """
        if call.is_start:
            self._wait_while_held(call.job, attempts)
        self._pacer.wait_for_turn()
        if call.is_start:
            self._begin_start(call.job)

    def _wait_while_held(self, job: Job, attempts: Attempts) -> None:
        seconds = attempts.hold_seconds(self.room.held_until)
        while seconds > 0:
            self.room.end(job)
            # another job's start may be held back meanwhile, and this one with it
            self.clock.sleep(min(seconds, RECHECK_SECONDS))
            seconds = attempts.hold_seconds(self.room.held_until)
        attempts.begin()

    def _begin_start(self, job: Job) -> None:
        while not self.room.begin(job):
            if self.room.next_at(job) > self.clock.monotonic():
                raise StartHeld
            self.clock.sleep(ANSWER_CHECK_SECONDS)

    def _hold_starts(self, job: Job, error: TransientError) -> None:
        """Hold back this start and all others, if the platform asks for it."""
        self.room.end(job)
        self.room.hold(self.clock.monotonic() + error.retry_after_seconds)

    def _attempt(self, call: Call[T], attempts: Attempts) -> Unannounced[T]:
        """Send a request once. Announces only its failure."""
        began = self.clock.monotonic()
        response = self._request(call, attempts, began)
        self._is_host_known = True
        milliseconds = self._milliseconds_since(began)
        answer = Answer(
            call=call,
            response=response,
            base_url=self.base_url,
            is_api_known=self._has_answered,
            accepted_methods=self._accepted_methods,
        )
        try:
            result = result_of(answer, self.clock.monotonic())
        except (ActionError, NoRoom, TransientError) as error:
            if call.is_start and answer.is_unprocessed:
                call.job.start_attempt = None  # that of an accepted start is cleared with its id
            self._announce_request(call, str(response.status), milliseconds, response.request_id)
            error.request_id = response.request_id
            # a refusal in JSON shows that this is the API
            if isinstance(error, NoRoom) and isinstance(response.body, dict):
                self._has_answered = True
            raise
        self._has_answered = True
        self._accepted_methods |= {call.request.method}
        return Unannounced(
            result=result,
            call=call,
            status=response.status,
            request_id=response.request_id,
            milliseconds=milliseconds,
        )

    def _request(self, call: Call[T], attempts: Attempts, began: float) -> JsonResponse:
        timeouts = call.timeouts.within(attempts.time_limit_seconds)
        try:
            exchange = self.client.new_exchange(
                call.request, timeouts, headers=self._headers, base_url=self.base_url
            )
            if call.is_start:
                call.job.start_attempt = exchange
            return request_json(self.client, exchange)
        except UnusableServerError as error:
            outcome = "ended without a response"
            self._announce_request(call, outcome, self._milliseconds_since(began))
            server = f"the API at {self.host}"
            raise error.failure(Unavailable, server, "`base-url`") from error
        except NetworkError as error:
            self._announce_request(call, error.message, self._milliseconds_since(began))
            raise self._network_failure(error) from error

    def _network_failure(self, error: NetworkError) -> TransientError:
        """Return an error to retry, and learn from it whether the host's name exists."""
        is_probably_mistyped = error.is_unknown_host and not self._is_host_known
        if not error.is_unresolved:
            self._is_host_known = True
        was_reached = error.was_sent or self._has_answered
        usual_advice = NETWORK if was_reached else UNREACHABLE
        return TransientError(
            error.message,
            advice=error.advice_for("`base-url`") or usual_advice,
            is_unprocessed=not error.was_sent,
            tolerance_seconds=UNKNOWN_HOST_SECONDS if is_probably_mistyped else math.inf,
        )

    def _milliseconds_since(self, began: float) -> float:
        return (self.clock.monotonic() - began) * 1000

    def _announce_request(
        self,
        call: Call[T],
        outcome: str,
        milliseconds: float,
        request_id: str | None = None,
    ) -> None:
        self.listener.request_ended(
            call.job,
            f"{call.request.method} {call.request.url}",
            outcome=outcome,
            milliseconds=milliseconds,
            request_id=request_id,
        )

    def _announce_outage(self, job: Job, error: TransientError, pause: Pause) -> None:
        self.listener.retrying(
            job,
            API,
            error.message,
            budget_seconds=pause.budget_seconds,
            pause_seconds=pause.seconds,
        )

    def _announce_recovery(self, job: Job, after_seconds: float) -> None:
        self.listener.recovered(job, API, after_seconds=after_seconds)

    def _failure(self, call: Call[T], attempts: Attempts) -> ActionError:
        """Return the failure of a call that is not sent again."""
        error = attempts.error
        if error.final_error is not None:
            error.final_error.request_id = error.request_id
            return error.final_error
        if call.is_start and not error.is_unprocessed:
            return StartUnconfirmed(
                "it is unknown whether the platform started it",
                details=(f"{error.message}.", *error.details),
                request_id=error.request_id,
            )
        outage = format_seconds(attempts.elapsed_seconds)
        details = [f"No successful response for {outage}. Last error: {error.message}."]
        if error.retry_after_seconds > 0:
            pause = format_approx(error.retry_after_seconds)
            details.append(f"The platform asked to wait for {pause} before the next attempt.")
        is_unknown_host = error.tolerance_seconds < math.inf
        kind = UnknownHost if is_unknown_host else Unavailable
        return kind(
            f"the API at {self.host} remained unavailable",
            details=(*details, *error.details),
            request_id=error.request_id,
            **error.advice,
        )
