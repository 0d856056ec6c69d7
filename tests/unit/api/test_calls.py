"""A call is retried where that is safe, and each failure gets its own error."""

import contextlib
import http.client
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.api.admin_api import AdminApi, DeadlineExceeded
from docs_platform_action.api.calls import Call
from docs_platform_action.api.client import ApiClient, ApiResponse
from docs_platform_action.errors import (
    ActionError,
    BadResponse,
    Cancelled,
    Forbidden,
    NotFound,
    Rejected,
    StartUnconfirmed,
    Unauthorized,
    Unavailable,
    UnknownHost,
)
from docs_platform_action.http.circuit_breaker import CircuitBreaker
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.faults import NetworkError, UntrustedCertificateError
from docs_platform_action.http.retry import LAST_ATTEMPT_SECONDS, MAX_PAUSE_SECONDS, MIN_ATTEMPT_SECONDS
from docs_platform_action.job import Job
from docs_platform_action.models import API, EXPORT
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, HOST, FakeAdapter, FakeApiClient, RecordedEvents, Step, answer, http_client
from tests.virtual_time import NOON, VirtualClock


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request to the platform: its start and end in seconds since the clock's start, and its result."""

    method: str
    path: str
    began: float
    ended: float
    got: ApiResponse | Exception


Reply = tuple[float, ApiResponse | Exception]
"""Seconds until the response, and the response or error."""


class VirtualPlatform(ApiClient):
    """Responds with `reply(method, path, time)`; a response that takes longer than the caller's timeouts is a network error."""

    def __init__(self, clock: VirtualClock, reply: Callable[[str, str, float], Reply]) -> None:
        super().__init__(http_client(FakeAdapter()), base_url=BASE_URL, key="k")
        self._clock = clock
        self._reply = reply
        self.under_way = 0
        self.requests: list[Seen] = []

    def send(self, request: Request, timeouts: Timeouts, *, new_connection: bool = False) -> ApiResponse:  # noqa: ARG002  # every connection is new
        began = self._clock.elapsed
        takes, got = self._reply(request.method, request.url, began)
        longest = min(timeouts.total_seconds, timeouts.idle_seconds)
        if takes > longest:
            takes, got = (
                longest,
                NetworkError(f"api.example.com took longer than {longest:.3g} s to respond", maybe_processed=True),
            )
        request.maybe_processed = True
        self.under_way += 1
        try:
            self._clock.sleep(takes)
        finally:
            self.under_way -= 1
            ended = self._clock.elapsed
            self.requests.append(Seen(method=request.method, path=request.url, began=began, ended=ended, got=got))
        if isinstance(got, Exception):
            raise got
        return got

    def begun(self, path: str | None = None) -> list[float]:
        """Return the sorted start times of the requests to one path, or of all requests."""
        return sorted(round(request.began, 6) for request in self.requests if path in {request.path, None})


GOOD = answer(200, {"status": "running"})
RESET = NetworkError(f"The connection to {HOST} was lost before the response was complete", maybe_processed=True)
REFUSED = NetworkError(f"{HOST} refused the connection", maybe_processed=False)
UNKNOWN_HOST = NetworkError(f"The name of {HOST} does not exist", maybe_processed=False, is_unresolved=True, is_unknown_host=True)


def read_status(body: Mapping[str, object]) -> str:
    if "status" not in body:
        raise ValueError("`status` is missing")
    return str(body["status"])


def call(
    job: Job, method: str = "GET", path: str = "/v1/x", body: Mapping[str, object] | None = None, **changes: Any
) -> Call[str]:
    request = Request(method=method, url=path, body=body)
    return Call(job=job, **{"request": request, "read": read_status, **changes})


class Announced(RecordedEvents):
    """The events of each job."""

    def retries(self, job: Job) -> list[tuple[str, float, float]]:
        """Return the errors that were retried, for how long, and the first pause."""
        return [tuple(rest) for _, _, server, *rest in self._about(job, "retrying") if server == API]

    def recoveries(self, job: Job) -> list[float]:
        return [after for _, _, server, after in self._about(job, "recovered") if server == API]

    def requests(self, job: Job) -> list[tuple[str, str, str | None]]:
        return [(request, outcome, request_id) for _, _, request, outcome, _, request_id in self._about(job, "request_ended")]

    def _about(self, job: Job, name: str) -> list[tuple[Any, ...]]:
        return [event for event in self.seen if event[0] == name and event[1] is job]


class Talk:
    """An API with scripted responses. Without `jitter`, each pause has its maximum length."""

    def __init__(
        self,
        *script: Step,
        tolerance: float = 300.0,
        seconds: float = 0.0,
        jitter: Callable[[float], float] = lambda ceiling: ceiling,
    ) -> None:
        self.clock = VirtualClock()
        self.job = Job(mode=EXPORT, domain="docs.example.com", job_id="se_1")
        self.events = Announced()
        self.client = FakeApiClient(self.clock, *script, seconds=seconds)
        self.api = AdminApi(
            client=self.client,
            breaker=CircuitBreaker(self.clock),
            clock=self.clock,
            outage_tolerance_seconds=tolerance,
            events=self.events,
            jobs=[],
            jitter=jitter,
        )

    @property
    def times(self) -> list[float]:
        return [sent.at for sent in self.client.sent]

    @property
    def retries(self) -> list[tuple[str, float, float]]:
        return self.events.retries(self.job)

    @property
    def recoveries(self) -> list[float]:
        return self.events.recoveries(self.job)

    @property
    def requests(self) -> list[tuple[str, str, str | None]]:
        return self.events.requests(self.job)

    def read(self, *, deadline: float | None = None, **changes: Any) -> str:
        """Make a call. The deadline is in seconds from now."""
        at = math.inf if deadline is None else self.clock.monotonic() + deadline
        return self.api.send(call(self.job, deadline=at, **changes))

    def start(self, **changes: Any) -> str:
        return self.read(method="POST", path="/v1/static-export/jobs", body={"domain": "d"}, idempotent=False, **changes)

    def failure(self, act: Callable[[], str] | None = None) -> ActionError:
        with pytest.raises(ActionError) as caught:
            (act or self.read)()
        return caught.value

    def outage(self, deadline: float) -> DeadlineExceeded:
        """Read until the deadline; return the error."""
        with pytest.raises(DeadlineExceeded) as caught:
            self.read(deadline=deadline)
        return caught.value


class TestSuccess:
    @pytest.mark.parametrize("status", [200, 201, 202, 299])
    def test_any_2xx_is_read(self, status: int) -> None:
        assert Talk(answer(status, {"status": "queued"})).read() == "queued"

    def test_it_is_requested_once_and_no_retry_is_announced(self) -> None:
        talk = Talk(GOOD)

        talk.read(body={"a": 1})

        assert [(sent.method, sent.path, sent.body) for sent in talk.client.sent] == [("GET", "/v1/x", {"a": 1})]
        assert (talk.retries, talk.recoveries) == ([], [])

    def test_every_request_is_announced_with_outcome_and_request_id(self) -> None:
        talk = Talk(answer(502, request_id="r-1"), REFUSED, answer(200, {"status": "x"}, request_id="r-2"))

        talk.read()

        assert talk.requests == [
            ("GET /v1/x", "502", "r-1"),
            ("GET /v1/x", f"{HOST} refused the connection", None),
            ("GET /v1/x", "200", "r-2"),
        ]


class TestFinalErrors:
    @pytest.mark.parametrize(
        ("status", "kind", "summary"),
        [
            (400, Rejected, "the platform rejected the request, 400 (bad request)"),
            (401, Unauthorized, "the platform rejected the admin key (401)"),
            (402, Rejected, "the platform rejected the request, 402 (payment required)"),
            (403, Forbidden, "the platform does not allow this (403)"),
            (404, NotFound, "the platform does not know {resource} (404)"),
            (405, Rejected, "the platform rejected the request, 405 (method not allowed)"),
            (409, Rejected, "the platform rejected the request, 409 (conflict)"),
            (410, Rejected, "the platform rejected the request, 410 (gone)"),
            (422, Rejected, None),
            (451, Rejected, None),
            (499, Rejected, "the platform rejected the request, 499"),
        ],
    )
    @pytest.mark.parametrize("idempotent", [True, False])
    def test_any_other_4xx_fails_at_once(
        self, status: int, kind: type[ActionError], summary: str | None, idempotent: bool
    ) -> None:
        talk = Talk(answer(status, {"error": "no"}))

        error = talk.failure(lambda: talk.read(idempotent=idempotent))

        assert type(error) is kind
        resource = "the job se_1" if idempotent else "the domain docs.example.com"
        assert summary is None or error.summary == summary.format(resource=resource)
        assert len(talk.client.sent) == 1

    def test_the_error_has_the_apis_text_and_the_request_id(self) -> None:
        error = Talk(answer(400, {"error": "unknown domain"}, request_id="r-1")).failure()

        assert error.details == (f'The API at {HOST} said: "unknown domain"',)
        assert error.request_id == "r-1"

    def test_without_a_text_nothing_is_quoted(self) -> None:
        assert Talk(answer(401, None)).failure().details == ()


class TestWrongBaseUrl:
    NO_ENDPOINT = answer(404, {"error": "no such endpoint"}, request_id="r-1")
    PAGE = answer(404, None, headers={"Content-Type": "text/html; charset=utf-8"})

    @pytest.mark.parametrize(
        ("refusal", "kind", "fact"),
        [
            (NO_ENDPOINT, NotFound, f'The API at {HOST} said: "no such endpoint"'),
            (PAGE, NotFound, "The response is not the API's JSON (text/html, 4 bytes)."),
            (answer(405, None), Rejected, "The response is not the API's JSON (no content type, 4 bytes)."),
        ],
        ids=["no endpoint", "page", "method"],
    )
    def test_a_start_request_that_reached_no_api_names_base_url_first(
        self, refusal: ApiResponse, kind: type[ActionError], fact: str
    ) -> None:
        talk = Talk(refusal)

        error = talk.failure(talk.start)

        assert type(error) is kind
        assert error.summary == (f"`base-url` is probably wrong: https://{HOST} has no static-export endpoint ({refusal.status})")
        assert error.details == (fact,)
        assert f"https://{HOST}/v1/static-export/jobs" in error.remedy
        assert error.request_id == refusal.request_id

    @pytest.mark.parametrize("refusal", [NO_ENDPOINT, PAGE], ids=["no endpoint", "page"])
    def test_the_first_read_of_a_job_names_it_as_the_likely_cause(self, refusal: ApiResponse) -> None:
        error = Talk(refusal).failure()

        assert isinstance(error, NotFound)
        assert error.summary == "the platform does not know the job se_1 (404)"
        assert error.cause.startswith("`base-url` is probably wrong: ")

    @pytest.mark.parametrize("known", [{"status": "running"}, {"started_at": 7.0}], ids=["read", "started"])
    def test_base_url_is_not_the_cause_once_the_api_has_responded(self, known: Mapping[str, Any]) -> None:
        talk = Talk(self.PAGE)
        talk.job = Job(mode=EXPORT, job_id="se_1", **known)

        assert talk.failure().cause == NotFound.default_cause

    def test_base_url_is_not_the_cause_if_the_api_does_not_know_the_name(self) -> None:
        talk = Talk(answer(404, {"error": "not found"}))

        assert talk.failure(talk.start).summary == "the platform does not know the domain docs.example.com (404)"
        assert talk.failure().cause == NotFound.default_cause


class TestRedirects:
    @pytest.mark.parametrize(
        ("location", "named"),
        [
            ("https://login.example.com/sso?token=s3cr3t", "login.example.com/sso"),
            ("https://user:s3cr3t@login.example.com:8443/sso#s3cr3t", "login.example.com:8443/sso"),
            ("https://login.example.com", "login.example.com"),
            ("//login.example.com/sso", "login.example.com/sso"),
            ("/elsewhere?s3cr3t", f"{HOST}/elsewhere"),
            ("?s3cr3t", HOST),
            ("elsewhere", HOST),
            ("https://[s3cr3t", "an address that cannot be read"),
        ],
    )
    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    def test_one_is_never_followed_and_names_host_and_path_alone(self, status: int, location: str, named: str) -> None:
        talk = Talk(answer(status, None, headers={"Location": location}))

        error = talk.failure()

        assert isinstance(error, BadResponse)
        assert error.summary == f"the API redirects to {named} ({status})"
        assert "s3cr3t" not in repr([error.summary, *error.details, error.cause, error.remedy])
        assert len(talk.client.sent) == 1

    @pytest.mark.parametrize("headers", [{}, {"Location": ""}])
    def test_a_redirect_without_a_target_is_a_bad_response(self, headers: dict[str, str]) -> None:
        error = Talk(answer(304, None, headers=headers, request_id="r-1")).failure()

        assert isinstance(error, BadResponse)
        assert error.summary == "the API returned 304 (not modified), a redirect without a target"
        assert (error.cause, error.remedy, error.request_id) == (BadResponse.default_cause, BadResponse.default_remedy, "r-1")


class TestCertificates:
    @pytest.mark.parametrize("idempotent", [True, False])
    def test_an_untrusted_certificate_fails_at_once_and_names_ca_bundle(self, idempotent: bool) -> None:
        talk = Talk(UntrustedCertificateError("self-signed certificate"))

        error = talk.failure(lambda: talk.read(idempotent=idempotent))

        assert isinstance(error, Unavailable)
        assert error.details == ("TLS reported: self-signed certificate.",)
        assert "`ca-bundle`" in error.remedy
        assert len(talk.client.sent) == 1


TEMPORARY = [
    pytest.param(answer(status, {"error": "busy"}), id=str(status)) for status in (408, 425, 429, 500, 501, 502, 503, 504, 599)
] + [
    pytest.param(RESET, id="reset"),
    pytest.param(REFUSED, id="refused"),
    pytest.param(answer(101, None), id="odd-1xx"),
    pytest.param(answer(700, None), id="odd-7xx"),
    pytest.param(answer(200, None), id="no-json"),
    pytest.param(answer(200, ["x"]), id="no-object"),
    pytest.param(answer(200, {"x": 1}), id="no-status"),
    pytest.param(answer(204, None), id="no-content"),
]


class TestTemporaryFailures:
    @pytest.mark.parametrize("bad", TEMPORARY)
    def test_a_read_is_retried_until_it_succeeds(self, bad: Step) -> None:
        talk = Talk(bad, bad, GOOD)

        assert talk.read() == "running"
        assert len(talk.client.sent) == 3

    @pytest.mark.parametrize("bad", TEMPORARY)
    def test_it_fails_at_the_end_of_the_tolerance(self, bad: Step) -> None:
        talk = Talk(bad, tolerance=100)

        error = talk.failure()

        assert isinstance(error, Unavailable)
        assert error.summary == f"the API at {HOST} remained unavailable"
        assert error.details[0].startswith("No successful response for 100 s. Last error: ")
        assert talk.times[-1] == 100

    @pytest.mark.parametrize("first", [answer(404), answer(429), answer(503), answer(200, None)])
    def test_an_address_that_has_responded_is_not_mistyped(self, first: Step) -> None:
        talk = Talk(first, REFUSED)
        with contextlib.suppress(NotFound, Unavailable):
            talk.read()

        error = talk.failure()

        assert "is down or overloaded" in error.cause

    @pytest.mark.parametrize(("headers", "asked"), [({}, ()), ({"Retry-After": "108000"}, ("30 h",))])
    def test_a_start_that_is_refused_says_so_and_for_how_long(self, headers: dict[str, str], asked: tuple[str, ...]) -> None:
        talk = Talk(answer(429, {"error": "the quota is used up"}, headers=headers))

        error = talk.failure(talk.start)

        assert isinstance(error, Unavailable)
        assert error.summary == f"the API at {HOST} kept refusing to start the export"
        assert error.details[1:] == (
            *(f"The platform asked to wait for {time} before the next attempt." for time in asked),
            f'The API at {HOST} said: "the quota is used up"',
        )
        assert "a quota is used up" in error.cause

    @pytest.mark.parametrize(
        ("bad", "cause", "remedy"),
        [
            (REFUSED, "The host or port in `base-url` is mistyped", "Check `base-url` and the platform's status page"),
            (RESET, "is down or overloaded", "`outage-tolerance`"),
            (answer(503), "is down or overloaded", "`outage-tolerance`"),
            (NetworkError("x", maybe_processed=False, is_proxy_error=True), "The proxy set in the environment", "NO_PROXY"),
            (NetworkError("x", maybe_processed=True, is_proxy_error=True), "The proxy set in the environment", "NO_PROXY"),
            (answer(429), "send more requests or start more jobs than the platform allows", "`poll-interval`"),
            (answer(409), "has not finished the export's bundle", "`outage-tolerance`"),
            (answer(404), "has just started the job, but does not know it yet", "`outage-tolerance`"),
            (answer(200, None), "Something other than the API responds at `base-url`", "`base-url`"),
            (answer(200, {"x": 1}), "Something other than the API responds at `base-url`", "`base-url`"),
        ],
        ids=["unreached", "network", "5xx", "proxy", "proxy-seen", "429", "409", "404", "no-json", "no-contract"],
    )
    def test_cause_and_remedy_match_the_error(self, bad: Step, cause: str, remedy: str) -> None:
        talk = Talk(bad, tolerance=100)

        error = talk.failure(lambda: talk.read(temporary_until={404: math.inf, 409: math.inf}))

        assert isinstance(error, Unavailable)
        assert cause in error.cause
        assert remedy in error.remedy

    @pytest.mark.parametrize(("seconds", "reported"), [(20.0, "140 s"), (1.0, "102 s"), (0.4, "101 s"), (0.0, "100 s")])
    def test_an_outage_begins_with_the_first_failed_attempt(self, seconds: float, reported: str) -> None:
        talk = Talk(answer(502), tolerance=100, seconds=seconds, jitter=lambda _: 100)

        assert talk.failure().details[0].startswith(f"No successful response for {reported}. ")

    @pytest.mark.parametrize(("tolerance", "reported"), [(0.25, "0.2 s"), (0.75, "0.8 s"), (1, "1 s")])
    def test_a_short_outage_has_a_decimal(self, tolerance: float, reported: str) -> None:
        talk = Talk(answer(502), tolerance=tolerance)

        assert talk.failure().details[0].startswith(f"No successful response for {reported}. ")

    def test_pauses_grow_exponentially_up_to_a_limit(self) -> None:
        talk = Talk(answer(500), tolerance=100)

        talk.failure()

        assert talk.clock.pauses == [1, 2, 4, 8, 16, 30, 30, 9]

    def test_each_pause_is_jittered(self) -> None:
        ceilings: list[float] = []
        talk = Talk(answer(500), answer(500), GOOD, jitter=lambda ceiling: ceilings.append(ceiling) or 0.25)

        talk.read()

        assert (ceilings, talk.clock.pauses) == ([1, 2], [0.25, 0.25])

    def test_an_outage_is_announced_once_with_what_happens_next(self) -> None:
        talk = Talk(answer(502), answer(503), RESET, GOOD)

        talk.read()

        assert talk.retries == [("The API returned 502 (bad gateway)", 300, 1)]

    def test_a_recovery_is_announced_once_with_its_duration(self) -> None:
        talk = Talk(answer(502), answer(503), RESET, GOOD)

        talk.read()
        talk.read()

        assert talk.recoveries == [7]

    def test_the_tolerance_starts_again_after_a_success(self) -> None:
        talk = Talk(answer(502), answer(502), GOOD, answer(502), answer(502), GOOD, tolerance=4, jitter=lambda _: 2)

        assert [talk.read(), talk.read()] == ["running", "running"]
        assert len(talk.retries) == len(talk.recoveries) == 2

    def test_the_last_error_is_reported(self) -> None:
        talk = Talk(answer(502), answer(500, {"error": "disk full"}, request_id="r-9"), tolerance=1)

        error = talk.failure()

        assert error.details == (
            "No successful response for 1 s. Last error: The API returned 500 (internal server error).",
            f'The API at {HOST} said: "disk full"',
        )
        assert error.request_id == "r-9"

    def test_a_final_error_after_temporary_ones_is_final(self) -> None:
        talk = Talk(answer(502), answer(401))

        assert isinstance(talk.failure(), Unauthorized)
        assert len(talk.client.sent) == 2

    def test_further_statuses_are_temporary_while_the_call_says_so(self) -> None:
        talk = Talk(answer(404))

        error = talk.failure(lambda: talk.read(temporary_until={404: talk.clock.monotonic() + 5}))

        assert isinstance(error, NotFound)
        assert talk.times == [0, 1, 3, 5]
        assert talk.retries == [("The API returned 404 (not found)", 5, 1)]

    def test_no_pause_is_longer_than_such_a_status_is_retried(self) -> None:
        talk = Talk(answer(404, headers={"Retry-After": "600"}), jitter=lambda _: 100)

        talk.failure(lambda: talk.read(temporary_until={404: talk.clock.monotonic() + 30}))

        assert talk.times == [0, 30]
        assert talk.retries == [("The API returned 404 (not found)", 30, 30)]

    def test_a_cancel_during_a_pause_ends_it(self) -> None:
        talk = Talk(answer(502))

        def cancel() -> None:
            raise Cancelled("cancelled")

        talk.clock.on_sleep = cancel

        assert isinstance(talk.failure(), Cancelled)

    def test_a_cancel_during_a_request_ends_it(self) -> None:
        talk = Talk(Cancelled("cancelled"))

        assert isinstance(talk.failure(), Cancelled)
        assert talk.requests == [("GET /v1/x", "ended without a response", None)]


class TestUnknownHost:
    @pytest.mark.parametrize(("tolerance", "seconds"), [(300.0, 30.0), (5.0, 5.0)])
    def test_before_any_response_it_is_retried_for_a_short_time(self, tolerance: float, seconds: float) -> None:
        talk = Talk(UNKNOWN_HOST, tolerance=tolerance)

        error = talk.failure()

        assert (type(error), error.failure_reason, talk.times[-1]) == (UnknownHost, "unavailable", seconds)
        assert talk.retries == [(UNKNOWN_HOST.message, seconds, 1)]
        assert "`base-url`" in error.cause

    def test_a_start_is_retried_for_as_long(self) -> None:
        talk = Talk(UNKNOWN_HOST)

        assert isinstance(talk.failure(talk.start), Unavailable)
        assert talk.times[-1] == 30

    def test_it_may_succeed_meanwhile(self) -> None:
        talk = Talk(UNKNOWN_HOST, UNKNOWN_HOST, GOOD)

        assert talk.read() == "running"

    @pytest.mark.parametrize("first", [GOOD, answer(404), answer(502), answer(200, None), REFUSED, RESET])
    def test_a_host_that_was_found_before_is_in_an_outage(self, first: Step) -> None:
        talk = Talk(first, UNKNOWN_HOST)
        with contextlib.suppress(NotFound, Unavailable):
            talk.read()

        talk.failure()

        assert talk.times[-1] >= 300

    def test_one_whose_name_servers_did_not_answer_first_was_not_found(self) -> None:
        unresolved = NetworkError(f"The name of {HOST} could not be resolved", maybe_processed=False, is_unresolved=True)
        talk = Talk(unresolved, UNKNOWN_HOST)

        assert isinstance(talk.failure(), UnknownHost)
        assert talk.times[-1] == 30

    def test_other_errors_are_retried_for_longer(self) -> None:
        talk = Talk(*[UNKNOWN_HOST] * 3, REFUSED)

        talk.failure()

        assert talk.times[-1] == 300

    def test_a_deadline_comes_first(self) -> None:
        talk = Talk(UNKNOWN_HOST)

        talk.outage(deadline=6)

        assert talk.times[-1] == 6


class TestDeadline:
    def test_the_last_attempt_is_at_the_deadline(self) -> None:
        talk = Talk(answer(502))

        talk.outage(deadline=10)

        assert talk.times == [0, 1, 3, 7, 10]

    def test_the_last_error_is_reported(self) -> None:
        talk = Talk(answer(502), answer(500, {"error": "disk full"}, request_id="r-9"))

        outage = talk.outage(deadline=1)

        assert outage.summary == f"the API at {HOST} remained unavailable"
        assert outage.details == (
            "No successful response for 1 s. Last error: The API returned 500 (internal server error).",
            f'The API at {HOST} said: "disk full"',
        )
        assert "down or overloaded" in outage.cause
        assert outage.request_id == "r-9"

    def test_the_last_attempt_decides(self) -> None:
        talk = Talk(answer(502), answer(502), GOOD)

        assert talk.read(deadline=2) == "running"

    def test_a_failure_at_the_deadline_is_not_retried(self) -> None:
        talk = Talk(answer(502))

        talk.outage(deadline=0)

        assert talk.times == [0]
        assert talk.retries == []

    @pytest.mark.parametrize("overdue", [0, -0.001, -5])
    def test_an_untrusted_certificate_is_reported_as_such(self, overdue: float) -> None:
        talk = Talk(UntrustedCertificateError("self-signed certificate"))

        error = talk.failure(lambda: talk.read(deadline=overdue))

        assert isinstance(error, Unavailable)
        assert "`ca-bundle`" in error.remedy

    @pytest.mark.parametrize("refusal", [answer(401), answer(404), answer(301)])
    def test_a_final_error_is_reported_as_such(self, refusal: Step) -> None:
        talk = Talk(refusal)

        assert not isinstance(talk.failure(lambda: talk.read(deadline=-1)), Unavailable)

    @pytest.mark.parametrize("last", [GOOD, answer(502)], ids=["good", "bad"])
    def test_an_attempt_that_crosses_the_deadline_is_followed_by_exactly_one(self, last: Step) -> None:
        talk = Talk(answer(502), last, seconds=8)

        if last is GOOD:
            assert talk.read(deadline=5) == "running"
        else:
            talk.outage(deadline=5)

        assert talk.times == [0, 8]
        assert talk.clock.pauses == []
        assert (talk.retries, talk.recoveries) == ([], [])

    def test_an_attempt_that_crosses_the_end_of_the_tolerance_is_followed_by_one(self) -> None:
        talk = Talk(answer(502), tolerance=5, seconds=4.5)

        error = talk.failure()

        assert isinstance(error, Unavailable)
        assert talk.times == [0, 5.5, 10]

    def test_the_earlier_of_tolerance_and_deadline_applies(self) -> None:
        talk = Talk(answer(502), tolerance=5)

        talk.failure(lambda: talk.read(deadline=1000))

        assert talk.times[-1] == 5
        assert talk.retries[0][1] == 5

    def test_an_attempt_gets_the_remaining_time_but_a_minimum(self) -> None:
        talk = Talk(answer(502), jitter=lambda _: 39)

        talk.outage(deadline=40)

        assert talk.times == [0, 39, 40]
        assert [sent.timeouts.total_seconds for sent in talk.client.sent] == [40, MIN_ATTEMPT_SECONDS, LAST_ATTEMPT_SECONDS]

    def test_the_end_of_the_tolerance_limits_it_too(self) -> None:
        talk = Talk(answer(502), tolerance=40, jitter=lambda _: 39)

        talk.failure()

        assert [sent.timeouts.total_seconds for sent in talk.client.sent] == [60, MIN_ATTEMPT_SECONDS, LAST_ATTEMPT_SECONDS]

    def test_without_a_deadline_the_calls_own_timeouts_apply(self) -> None:
        talk = Talk(GOOD)

        talk.read(timeouts=Timeouts(idle_seconds=300, total_seconds=300))

        assert talk.client.sent[0].timeouts.total_seconds == 300


class TestStartRequest:
    @pytest.mark.parametrize(
        "bad",
        [REFUSED, answer(429), answer(429, headers={"Retry-After": "2"}), answer(503, headers={"Retry-After": "2"})],
        ids=["never-connected", "429", "429-later", "503-later"],
    )
    def test_it_is_retried_if_it_certainly_was_not_processed(self, bad: Step) -> None:
        talk = Talk(bad, GOOD)

        assert talk.start() == "running"
        assert len(talk.client.sent) == 2

    @pytest.mark.parametrize(
        "bad",
        [RESET, answer(503), answer(503, headers={"Retry-After": "soon"})]
        + [answer(status, {"error": "busy"}) for status in (408, 425, 500, 502, 504)],
        ids=["reset", "503", "503-garbled", "408", "425", "500", "502", "504"],
    )
    def test_it_is_sent_exactly_once_otherwise(self, bad: Step) -> None:
        talk = Talk(bad)

        error = talk.failure(talk.start)

        assert isinstance(error, StartUnconfirmed)
        assert len(talk.client.sent) == 1
        assert talk.clock.pauses == []

    def test_an_unclear_failure_after_clear_ones_ends_it_too(self) -> None:
        talk = Talk(REFUSED, answer(429), answer(502, {"error": "busy"}, request_id="r-1"), GOOD)

        error = talk.failure(talk.start)

        assert isinstance(error, StartUnconfirmed)
        assert error.details == ("The API returned 502 (bad gateway).", f'The API at {HOST} said: "busy"')
        assert error.request_id == "r-1"

    def test_a_start_that_never_reached_the_platform_is_unavailable(self) -> None:
        talk = Talk(REFUSED, tolerance=10)

        assert isinstance(talk.failure(talk.start), Unavailable)

    def test_every_attempt_has_a_new_connection(self) -> None:
        talk = Talk(REFUSED, answer(429), GOOD)

        talk.start()

        assert [sent.new_connection for sent in talk.client.sent] == [True, True, True]

    @pytest.mark.parametrize(
        ("steps", "maybe_processed"),
        [
            ([REFUSED], False),
            ([UntrustedCertificateError("self-signed certificate")], False),
            ([RESET], True),
            ([Cancelled("cancelled")], True),
            ([answer(403)], False),
            ([answer(502)], True),
            ([answer(408)], True),
            ([answer(200, None)], True),
            ([answer(301)], False),
            ([answer(429), REFUSED], False),
            ([answer(429), Cancelled("cancelled")], True),
            ([answer(429), GOOD], False),
        ],
        ids=[
            "refused",
            "untrusted",
            "reset",
            "cancelled",
            "403",
            "502",
            "408",
            "no-job",
            "301",
            "429-refused",
            "429-cancelled",
            "good",
        ],
    )
    def test_it_may_have_been_processed_unless_it_certainly_was_not(self, steps: Sequence[Step], maybe_processed: bool) -> None:
        talk = Talk(*steps, tolerance=1)
        request = Request(method="POST", url="/v1/static-export/jobs")

        with contextlib.suppress(ActionError):
            talk.read(request=request, idempotent=False)

        assert request.maybe_processed is maybe_processed

    def test_a_start_on_a_closed_connection_is_not_sent_again(self) -> None:
        talk = Talk(NetworkError("x", maybe_processed=True, is_stale=True))

        assert isinstance(talk.failure(talk.start), StartUnconfirmed)
        assert len(talk.client.sent) == 1

    @pytest.mark.parametrize("body", [None, [], {"x": 1}])
    def test_an_invalid_2xx_is_a_bad_response_and_may_have_started_it(self, body: object) -> None:
        talk = Talk(answer(200, body, headers={"Content-Type": "text/html; charset=utf-8"}, request_id="r-1"))

        error = talk.failure(talk.start)

        assert isinstance(error, BadResponse)
        assert error.summary == "the API's response to POST /v1/static-export/jobs is invalid"
        assert "Check the dashboard" in error.details[1]
        assert error.request_id == "r-1"
        assert len(talk.client.sent) == 1

    def test_one_with_the_key_is_a_bad_response_and_may_have_started_it(self) -> None:
        talk = Talk(answer(200, {"jobId": f"se_{ADMIN_KEY}", "status": "queued"}))

        error = talk.failure(talk.start)

        assert isinstance(error, BadResponse)
        assert error.details == (
            "The API returned 200, but `jobId` contains the admin key.",
            "The platform may have started a job anyway. Check the dashboard before the next run.",
        )
        assert "replace the key" in error.remedy
        assert len(talk.client.sent) == 1

    def test_a_final_error_is_reported(self) -> None:
        talk = Talk(answer(403))

        assert isinstance(talk.failure(talk.start), Forbidden)


STALE = NetworkError(f"The connection to {HOST} was lost before the response was complete", maybe_processed=True, is_stale=True)


class TestKeptConnections:
    def test_a_call_uses_a_kept_connection(self) -> None:
        talk = Talk(GOOD)

        talk.read()

        assert not talk.client.sent[0].new_connection

    def test_a_kept_connection_that_the_server_closed_is_not_an_outage(self) -> None:
        talk = Talk(STALE, GOOD)

        assert talk.read() == "running"
        assert [sent.new_connection for sent in talk.client.sent] == [False, True]
        assert (talk.clock.pauses, talk.retries, talk.recoveries) == ([], [], [])

    def test_both_of_its_requests_are_announced(self) -> None:
        talk = Talk(STALE, GOOD)

        talk.read()

        assert [outcome for _, outcome, _ in talk.requests] == [STALE.message, "200"]

    def test_a_failure_on_the_new_connection_is_an_outage(self) -> None:
        talk = Talk(STALE, RESET, GOOD)

        assert talk.read() == "running"
        assert talk.retries == [(RESET.message, 300, 1)]

    def test_a_server_that_closes_every_connection_is_retried_with_pauses(self) -> None:
        talk = Talk(STALE, tolerance=3)

        assert isinstance(talk.failure(), Unavailable)
        assert talk.times == [0, 0, 1, 1, 3, 3]

    def test_both_attempts_together_get_the_time_of_one(self) -> None:
        talk = Talk(STALE, GOOD, seconds=25)

        talk.read(deadline=40)

        assert [sent.timeouts.total_seconds for sent in talk.client.sent] == [40, 15]

    def test_the_second_attempt_gets_a_minimum(self) -> None:
        talk = Talk(STALE, GOOD, seconds=59.5)

        talk.read()

        assert [sent.timeouts.total_seconds for sent in talk.client.sent] == [60, MIN_ATTEMPT_SECONDS]

    def test_a_cancel_between_them_ends_it(self) -> None:
        talk = Talk(STALE, Cancelled("cancelled"))

        assert isinstance(talk.failure(), Cancelled)


class TestInvalidObject:
    def test_an_invalid_object_is_a_bad_response(self) -> None:
        talk = Talk(answer(200, {"x": 1}))

        error = talk.failure(lambda: talk.read(retry_invalid_object=False))

        assert isinstance(error, BadResponse)
        assert error.details == ("The API returned 200, but `status` is missing.",)

    @pytest.mark.parametrize("name", ["jobId", "bundleUrl", "prLink"])
    def test_one_with_the_key_where_it_cannot_be_hidden_is_a_bad_response(self, name: str) -> None:
        talk = Talk(answer(200, {"status": "running", name: f"https://x.example/{ADMIN_KEY.upper()}"}), GOOD)

        error = talk.failure()

        assert isinstance(error, BadResponse)
        assert error.details == (f"The API returned 200, but `{name}` contains the admin key.",)

    @pytest.mark.parametrize("body", [{"jobId": [ADMIN_KEY]}, {"prLink": ADMIN_KEY[1:]}, {"bundleUrl": None}])
    def test_part_of_the_key_or_another_type_does_not_fail_it(self, body: dict[str, object]) -> None:
        assert Talk(answer(200, {"status": "running", **body})).read() == "running"

    def test_a_gateways_page_is_temporary(self) -> None:
        talk = Talk(answer(200, None, headers={"Content-Type": "text/html"}), GOOD)

        assert talk.read(retry_invalid_object=False) == "running"
        assert talk.retries[0][0] == "The API returned 200, but the response is not a JSON object (text/html, 4 bytes)"


BROTLI = ApiResponse(
    status=200,
    headers={"Content-Type": "application/json", "Content-Encoding": "br"},
    body=None,
    size=34,
    request_id=None,
    unknown_coding="br",
)


class TestUnknownCoding:
    def test_it_is_named_and_temporary(self) -> None:
        talk = Talk(BROTLI)

        error = talk.failure(talk.read)

        named = "The API returned 200, but the response is not a JSON object (application/json, 34 bytes, Content-Encoding br)"
        assert isinstance(error, Unavailable)
        assert talk.retries[0][0] == named
        assert "compresses the API's responses" in error.cause

    def test_it_is_named_in_the_response_to_a_start(self) -> None:
        talk = Talk(BROTLI)

        error = talk.failure(talk.start)

        assert isinstance(error, BadResponse)
        assert "Content-Encoding br" in error.details[0]
        assert "compresses the API's responses" in error.cause

    def test_a_body_that_can_be_read_anyway_is_read(self) -> None:
        talk = Talk(replace(BROTLI, body={"status": "running"}))

        assert talk.read() == "running"

    def test_a_status_does_not_need_a_body(self) -> None:
        assert isinstance(Talk(replace(BROTLI, status=401)).failure(), Unauthorized)

    def test_it_is_named_with_a_wrong_base_url(self) -> None:
        talk = Talk(replace(BROTLI, status=404))

        error = talk.failure(talk.start)

        assert isinstance(error, NotFound)
        assert error.details == ("The response is not the API's JSON (application/json, 34 bytes, Content-Encoding br).",)


class TestRetryAfter:
    def test_seconds_are_obeyed(self) -> None:
        talk = Talk(answer(429, headers={"Retry-After": "40"}), GOOD)

        talk.read()

        assert talk.clock.pauses == [40]

    def test_a_date_is_obeyed(self) -> None:
        date = format_datetime(NOON + timedelta(seconds=50), usegmt=True)
        talk = Talk(answer(503, headers={"Retry-After": date}), GOOD)

        talk.read()

        assert talk.clock.pauses == [50]

    def test_a_shorter_one_does_not_shorten_the_backoff(self) -> None:
        talk = Talk(answer(503, headers={"Retry-After": "0"}), GOOD)

        talk.read()

        assert talk.clock.pauses == [1]

    @pytest.mark.parametrize("asked", ["61", "99999", format_datetime(NOON + timedelta(days=400), usegmt=True)])
    def test_it_is_not_obeyed_past_the_deadline(self, asked: str) -> None:
        talk = Talk(answer(503, headers={"Retry-After": asked}))

        talk.outage(deadline=60)

        assert talk.times == [0, 60]

    def test_it_is_not_obeyed_past_the_tolerance(self) -> None:
        talk = Talk(answer(503, headers={"Retry-After": "99999"}), tolerance=60)

        talk.failure()

        assert talk.times == [0, 60]


class TestAnyOutage:
    @given(
        st.lists(st.sampled_from([answer(500), answer(429, headers={"Retry-After": "77"}), RESET, REFUSED]), max_size=30),
        st.floats(1, 600),
        st.floats(0.01, 900),
        st.floats(0, 20),
        st.floats(0.1, 1),
    )
    def test_tries_end_in_time_and_are_not_pressed(
        self, script: list[Any], tolerance: float, deadline: float, seconds: float, jitter: float
    ) -> None:
        talk = Talk(*script, answer(502), tolerance=tolerance, seconds=seconds, jitter=lambda ceiling: ceiling * jitter)

        with pytest.raises((DeadlineExceeded, Unavailable)):
            talk.read(deadline=deadline)

        end = min(deadline, seconds + tolerance)
        assert talk.times[-1] <= end + seconds + 1e-6
        assert talk.times[-1] >= end - 1e-6
        assert len([at for at in talk.times if at > end + 1e-6]) <= 1
        assert talk.clock.elapsed >= end - 1e-6
        assert all(pause <= max(MAX_PAUSE_SECONDS + 1, 77) for pause in talk.clock.pauses)
        assert len(talk.retries) <= 1


@pytest.fixture(autouse=True, scope="module")
def _window_of_a_second() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("docs_platform_action.http.rate_limit.WINDOW_SECONDS", 1.0)
        yield


class Crowd:
    """Jobs that share one API, each in its own thread."""

    def __init__(
        self, reply: Callable[[str, str, float], Reply], *, tolerance: float = 300.0, others: Sequence[Job] = ()
    ) -> None:
        self.others = others
        self.clock = VirtualClock()
        self.platform = VirtualPlatform(self.clock, reply)
        self.breaker = CircuitBreaker(self.clock)
        self.events = Announced()
        self.jobs: dict[str, Job] = {}
        self.ended: dict[str, tuple[float, Exception | None]] = {}
        self.api = AdminApi(
            client=self.platform,
            breaker=self.breaker,
            clock=self.clock,
            outage_tolerance_seconds=tolerance,
            events=self.events,
            jobs=self.others,
            jitter=lambda ceiling: ceiling,
        )

    def job(
        self, name: str, *, at: float = 0.0, reads: int = 1, rest: float = 10.0, deadline: float | None = None, **changes: Any
    ) -> Callable[[], None]:
        """Make a job with `reads` readings and pauses of `rest` seconds. The deadline is in seconds from its start."""
        job = self.jobs[name] = Job(mode=EXPORT, domain=name)

        def read() -> None:
            self.clock.sleep(at)
            until = math.inf if deadline is None else self.clock.monotonic() + deadline
            error: Exception | None = None
            try:
                for number in range(reads):
                    if number > 0:
                        self.clock.sleep(rest)
                    self.api.send(call(job, path=f"/v1/{name}", deadline=until, **changes))
            except (ActionError, DeadlineExceeded) as caught:
                error = caught
            self.ended[name] = (round(self.clock.elapsed, 3), error)

        return read

    def failure(self, name: str) -> ActionError:
        error = self.ended[name][1]
        assert isinstance(error, ActionError)
        return error

    def announced(self, name: str) -> tuple[int, int]:
        """Return how many outages and how many recoveries were announced for a job."""
        return len(self.events.retries(self.jobs[name])), len(self.events.recoveries(self.jobs[name]))

    def begun(self, name: str) -> list[float]:
        return [round(at, 3) for at in self.platform.begun(f"/v1/{name}")]


def down(until: float, bad: ApiResponse | Exception = RESET) -> Callable[[str, str, float], Reply]:
    """Make a platform that fails until a time. Each response takes 0.1 s."""
    return lambda _method, _path, at: (0.1, bad if at < until else GOOD)


def all_but(name: str, bad: ApiResponse | Exception) -> Callable[[str, str, float], Reply]:
    """Make a platform that fails for one job only."""
    return lambda _method, path, _at: (0.1, bad if path.endswith(name) else GOOD)


class TestManyJobs:
    def test_an_outage_that_one_job_detects_applies_to_all(self) -> None:
        crowd = Crowd(down(5))

        crowd.clock.run(crowd.job("first"), *(crowd.job(name, at=0.5) for name in ("second", "third")))

        # the pauses are 1, 2 and 4 s, and another job sends the request after each
        assert crowd.platform.begun() == pytest.approx([0, 1.1, 3.2, 7.3, 7.4, 7.4], abs=0.3)
        assert crowd.begun("second")[0] == pytest.approx(1.1, abs=1e-4)
        assert crowd.begun("third")[0] == pytest.approx(3.2, abs=1e-4)
        assert [error for _, error in crowd.ended.values()] == [None] * 3

    def test_each_affected_job_announces_its_start_and_end_once(self) -> None:
        crowd = Crowd(down(5))

        crowd.clock.run(crowd.job("first"), *(crowd.job(name, at=0.5) for name in ("second", "third", "fourth")))

        assert {name: crowd.announced(name) for name in crowd.jobs} == {
            "first": (1, 1),
            "second": (1, 1),
            "third": (1, 1),
            "fourth": (0, 0),
        }

    def test_the_jobs_share_one_tolerance(self) -> None:
        crowd = Crowd(down(10**6), tolerance=100)

        crowd.clock.run(*(crowd.job(name, at=at) for name, at in (("first", 0), ("second", 50), ("third", 99))))

        for name in crowd.jobs:
            assert isinstance(crowd.failure(name), Unavailable)
            assert crowd.ended[name][0] == pytest.approx(100.2, abs=0.11)
            assert crowd.failure(name).details[0].startswith("No successful response for 100 s. Last error: ")

    def test_jobs_that_start_after_the_tolerance_get_one_attempt_each(self) -> None:
        crowd = Crowd(down(10**6), tolerance=100)

        crowd.clock.run(crowd.job("first"), *(crowd.job(f"late {number}", at=400) for number in range(25)))

        for number in range(25):
            assert crowd.begun(f"late {number}") == [400 + number // 10]
            assert isinstance(crowd.failure(f"late {number}"), Unavailable)
            assert crowd.ended[f"late {number}"][0] == pytest.approx(400.1 + number // 10, abs=1e-3)
            assert crowd.announced(f"late {number}") == (0, 0)

    def test_if_that_attempt_succeeds_the_outage_is_over_for_all(self) -> None:
        crowd = Crowd(down(200, answer(503, headers={"Retry-After": "999999999"})), tolerance=100)

        crowd.clock.run(crowd.job("first"), crowd.job("late", at=400), crowd.job("later", at=401, reads=3))

        assert isinstance(crowd.failure("first"), Unavailable)
        assert crowd.ended["late"] == (400.1, None)
        assert crowd.ended["later"] == (421.3, None)

    def test_once_another_job_gets_a_response_only_the_jobs_own_failures_count(self) -> None:
        down_until = {"/v1/first": 90, "/v1/later": 230}
        crowd = Crowd(lambda _method, path, at: (0.1, RESET if at < down_until[path] else GOOD), tolerance=200)

        crowd.clock.run(crowd.job("first"), crowd.job("later", at=40))

        assert crowd.begun("later")[0] == pytest.approx(61, abs=2)
        assert {name: error for name, (_, error) in crowd.ended.items()} == {"first": None, "later": None}

    def test_no_job_waits_longer_for_its_turn_because_others_fail_again(self) -> None:
        patient = answer(429, headers={"Retry-After": "3600"})
        crowd = Crowd(all_but("bad", patient), tolerance=60)
        good = [crowd.job(f"good {number}", at=number, reads=4) for number in range(3)]

        crowd.clock.run(crowd.job("bad"), *good)

        for number in range(3):
            begun = crowd.begun(f"good {number}")
            assert begun[0] <= number + 60 + 1
            assert all(later - first <= 10 + 60 + 1 for first, later in itertools.pairwise(begun))

    def test_one_error_after_a_long_wait_for_a_turn_is_retried(self) -> None:
        def reply(_method: str, path: str, _at: float) -> Reply:
            if path.endswith("bad"):
                return 0.1, answer(429, headers={"Retry-After": "3600"})
            return 0.1, answer(502) if len(crowd.begun("good")) == 2 else GOOD

        crowd = Crowd(reply, tolerance=60)

        crowd.clock.run(crowd.job("good", reads=5, rest=20.0), crowd.job("bad", at=0.05))

        assert crowd.ended["good"][1] is None

    def test_a_failure_without_a_response_does_not_end_an_outage(self) -> None:
        untrusted = UntrustedCertificateError("self-signed certificate", code=18)

        def reply(_method: str, path: str, _at: float) -> Reply:
            return 0.1, untrusted if path.endswith("untrusted") else answer(502)

        crowd = Crowd(reply, tolerance=60)

        crowd.clock.run(crowd.job("down"), crowd.job("untrusted", at=30))

        assert crowd.failure("down").summary == f"the API at {HOST} remained unavailable"
        assert isinstance(crowd.failure("untrusted"), Unavailable)

    def test_a_job_that_fails_alone_says_so(self) -> None:
        crowd = Crowd(all_but("bad", answer(500)), tolerance=60)

        crowd.clock.run(crowd.job("good", reads=20), crowd.job("bad"))

        failure = crowd.failure("bad")
        assert failure.summary == "the API at api.example.com kept failing for this job only"
        assert failure.cause.startswith("Requests for other jobs succeeded meanwhile")

    @pytest.mark.parametrize("headers", [{}, {"Retry-After": "7"}])
    def test_a_platform_at_capacity_is_retried_while_other_jobs_run(self, headers: dict[str, str]) -> None:
        def no_room_yet(_method: str, path: str, at: float) -> Reply:
            return 0.1, answer(429, headers=headers) if path.endswith("one more") and at < 500 else GOOD

        crowd = Crowd(no_room_yet, tolerance=60, others=[Job(mode=EXPORT), Job(mode=EXPORT, job_id="se_2")])

        crowd.clock.run(crowd.job("at work", reads=40, rest=15.0), crowd.job("one more", idempotent=False))

        assert crowd.ended["one more"][1] is None
        assert 500 <= crowd.ended["one more"][0] < 540
        assert crowd.ended["at work"][0] < 39 * 15 + 40  # it does not block the other job like an outage

    def test_failures_of_the_other_jobs_do_not_end_that(self) -> None:
        def no_room_yet(_method: str, path: str, at: float) -> Reply:
            bad = answer(429) if path.endswith("one more") else answer(503)
            return 0.1, bad if at < 500 else GOOD

        crowd = Crowd(no_room_yet, tolerance=60, others=[Job(mode=EXPORT, job_id="se_2")])

        crowd.clock.run(crowd.job("at work"), crowd.job("one more", idempotent=False))

        assert isinstance(crowd.failure("at work"), Unavailable)
        assert crowd.ended["one more"][1] is None

    def test_once_no_other_job_runs_the_tolerance_applies(self) -> None:
        other = Job(mode=EXPORT, job_id="se_2")
        replies = (0.1, answer(429)), (0.1, GOOD)
        crowd = Crowd(lambda _method, path, _at: replies[path.endswith("at work")], tolerance=60, others=[other])

        def ends() -> None:
            crowd.clock.sleep(100)
            other.ended_at = 100.0

        crowd.clock.run(
            crowd.job("at work", reads=11),
            crowd.job("one more", idempotent=False),
            ends,
        )

        ended_at, error = crowd.ended["one more"]
        assert isinstance(error, Unavailable)
        assert 130 < ended_at < 200

    def test_a_job_with_only_errors_fails_alone_and_hardly_slows_the_others(self) -> None:
        crowd = Crowd(all_but("bad", answer(500)))
        good = [crowd.job(f"good {number}", reads=40) for number in range(9)]

        crowd.clock.run(*good, crowd.job("bad"))

        assert isinstance(crowd.failure("bad"), Unavailable)
        assert crowd.ended["bad"][0] == pytest.approx(300.2, abs=1.5)
        for number in range(9):
            ended, error = crowd.ended[f"good {number}"]
            assert error is None
            assert ended <= (39 * 10 + 40 * 0.1) * 1.06
            assert crowd.announced(f"good {number}") == (0, 0)

    @pytest.mark.parametrize("others", [0, 1, 30])
    def test_a_retry_after_is_requested_once_and_obeyed_by_all(self, others: int) -> None:
        crowd = Crowd(down(40, answer(429, headers={"Retry-After": "40"})))

        crowd.clock.run(crowd.job("first"), *(crowd.job(f"other {number}", at=0.2) for number in range(others)))

        assert len([at for at in crowd.platform.begun() if at < 40.1]) == 1
        assert all(error is None for _, error in crowd.ended.values())
        assert max(ended for ended, _ in crowd.ended.values()) <= 40.2 + others / 10 + 1

    @pytest.mark.parametrize("status", [404, 409])
    def test_a_job_that_is_not_ready_is_not_an_outage(self, status: int) -> None:
        crowd = Crowd(all_but("unready", answer(status, headers={"Retry-After": "7"})))
        unready = crowd.job("unready", temporary_until={status: crowd.clock.monotonic() + 20})

        crowd.clock.run(unready, *(crowd.job(f"good {number}", reads=100, rest=0.4) for number in range(3)))

        assert crowd.begun("unready")[:3] == pytest.approx([0, 7.1, 14.2])
        assert [crowd.ended[f"good {number}"] for number in range(3)] == [(49.6, None)] * 3
        assert crowd.breaker.failing_since(is_start=False) == math.inf

    def test_a_deadline_applies_while_others_retry(self) -> None:
        crowd = Crowd(lambda _method, path, _at: (25, RESET) if path.endswith("first") else (0.1, answer(502)))

        crowd.clock.run(crowd.job("first"), crowd.job("timed", at=30, deadline=7.5), crowd.job("timed too", at=25.5, deadline=1))

        assert crowd.begun("timed") == [37.5]
        assert isinstance(crowd.ended["timed"][1], DeadlineExceeded)
        assert isinstance(crowd.ended["timed too"][1], DeadlineExceeded)
        assert crowd.begun("timed too") == pytest.approx([26, 26.5], abs=1e-4)

    def test_a_deadline_in_the_queue_is_followed_by_one_last_attempt(self) -> None:
        crowd = Crowd(down(0))
        many = [crowd.job(f"other {number:02}") for number in range(60)]

        crowd.clock.run(*many, crowd.job("timed", at=0.5, deadline=2.2))

        assert crowd.begun("timed") == [3]
        assert crowd.ended["timed"][1] is None

    def test_a_start_that_fails_finally_makes_no_other_job_retry_sooner(self) -> None:
        crowd = Crowd(down(10**6, answer(502)), tolerance=60)

        crowd.clock.run(*(crowd.job(f"{number}", at=number, idempotent=False) for number in range(30)))

        assert all(isinstance(crowd.failure(f"{number}"), StartUnconfirmed) for number in range(30))
        assert len([at for at in crowd.platform.begun() if at < 60]) <= 7

    def test_a_cancel_ends_all_waiting_jobs(self) -> None:
        crowd = Crowd(down(10**6, answer(429, headers={"Retry-After": "500"})))

        def cancel() -> None:
            crowd.clock.sleep(9)
            crowd.clock.cancel()

        crowd.clock.run(*(crowd.job(f"{number}") for number in range(40)), cancel)

        assert all(ended == 9 and isinstance(error, Cancelled) for ended, error in crowd.ended.values())

    def test_a_thousand_jobs_load_it_no_more_than_ten(self) -> None:
        crowd = Crowd(lambda _method, _path, at: (0.2, answer(503) if 30 <= at < 60 else GOOD))
        jobs = [crowd.job(f"{number}", reads=5) for number in range(1000)]

        def works(first: int) -> None:
            for number in range(first, 1000, 50):
                jobs[number]()

        crowd.clock.run(*(lambda first=first: works(first) for first in range(50)))

        begun = sorted(request.began for request in crowd.platform.requests)
        assert all(error is None for _, error in crowd.ended.values())
        assert all(later >= first + 1 - 1e-9 for first, later in zip(begun, begun[10:], strict=False))
        # ten were in flight when the outage began; then one was sent after each pause of 1, 2, 4, 8 and 16 s
        assert len([request for request in crowd.platform.requests if request.got is not GOOD]) <= 10 + 5


def test_phrases_of_unknown_statuses_are_left_out() -> None:
    assert 599 not in http.client.responses
    assert Talk(answer(599), tolerance=1).failure().details[0].endswith("The API returned 599.")
