"""A call is retried where that is safe, and for how long."""

import contextlib
import math
import socket
from datetime import timedelta
from email.utils import format_datetime
from typing import Final

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from admin_api_simulator import Fault
from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    NotFound,
    StartUnconfirmed,
    Unavailable,
    UnknownHost,
)
from docs_platform_action.http.pacing import GAP_SECONDS
from docs_platform_action.http.retry import LAST_ATTEMPT_SECONDS, MAX_PAUSE_SECONDS, MIN_ATTEMPT_SECONDS
from tests.faults import BY_NAME, FAULTS, Nature, Operation, Row
from tests.reliability.expected import OK, rule_for
from tests.unit.api.talk import Step, Talk, agent_job, started_job
from tests.virtual_platform import Sent, Trouble
from tests.virtual_time import NOON

NORMAL: Final = '{"status": "completed", "jobId": "se_1", "bundleUrl": "https://storage.example.com/b.tar.gz"}'
API_OPERATIONS: Final = [operation for operation in Operation if not operation.is_download]

REFUSED: Final = ConnectionRefusedError()
LOST: Final = Fault(cut="before_response")
UNKNOWN_HOST: Final = BY_NAME["name not resolved"].trouble
UNTRUSTED: Final = BY_NAME["certificate not trusted"].trouble
RUNNING: Final = Fault(json={"status": "running"})


def status(number: int, **headers: str) -> Fault:
    return Fault(status=number, headers={name.replace("_", "-"): text for name, text in headers.items()})


def cancelled(_sent: Sent) -> Trouble:
    raise Cancelled("cancelled")


class TestTheTable:
    """Each fault once and forever, without any pause for the server: which error, how many requests, and how long they wait."""

    @pytest.mark.parametrize("row", [row for row in FAULTS if row.trouble_in(NORMAL) is not None], ids=str)
    @pytest.mark.parametrize("operation", API_OPERATIONS, ids=lambda operation: operation.value)
    def test_each_fault_ends_as_the_interface_says(self, operation: Operation, row: Row) -> None:
        trouble, job = row.trouble_in(NORMAL), agent_job if operation is Operation.READ_AGENT else started_job
        once, forever = Talk(trouble, None, tolerance=1000, job=job()), Talk(trouble, tolerance=60, job=job())
        once.api.has_answered = forever.api.has_answered = operation is not Operation.START

        ends = [self.end(once, operation), self.end(forever, operation)]

        # a job whose status is unknown counts as running: what follows is up to the caller
        is_read_anyway = row.nature is Nature.UNUSABLE_FIELD and operation in {Operation.READ_EXPORT, Operation.READ_AGENT}
        first, _, last = (OK, OK, OK) if is_read_anyway else rule_for(row, operation).ends
        is_retried = (first, last != OK) == (OK, True)
        assert ends == [first, last]
        assert len(once.sent) == 1 + is_retried
        if not is_retried:
            assert len(forever.sent) == 1
        elif row.nature is Nature.RETRY_AFTER_TOO_LONG:
            assert (once.times, forever.times) == ([0, 1000], [0, 60])
        elif row.name in {"connect timeout", "no response (read timeout)", "one byte a second"}:
            assert forever.clock.elapsed >= 60
        elif row.name.endswith(("`Retry-After`: seconds", "`Retry-After`: date")):
            assert forever.times == [0, 7, 14, 21, 29, 45, 60]
        else:
            settling = row.status == 404 or row.name == "name not resolved"
            assert forever.times == ([0, 1, 3, 7, 15, 30] if settling else [0, 1, 3, 7, 15, 31, 60])

    @pytest.mark.parametrize("row", [row for row in FAULTS if row.trouble_in(NORMAL) is not None], ids=str)
    def test_a_start_may_have_been_processed_unless_it_certainly_was_not(self, row: Row) -> None:
        talk = Talk(row.trouble_in(NORMAL), tolerance=1)

        end = self.end(talk, Operation.START)

        is_redirect = row.group == "Redirects"
        assert talk.api.is_start_unconfirmed(talk.job) is (
            end == "start-unconfirmed" or (end == "bad-response" and not is_redirect)
        )

    @staticmethod
    def end(talk: Talk, operation: Operation) -> str:
        try:
            talk.call(operation)
        except ActionError as error:
            return error.failure_reason
        return OK


class TestSuccess:
    @pytest.mark.parametrize("number", [200, 201, 202, 299])
    def test_any_2xx_is_read_once_and_no_retry_is_announced(self, number: int) -> None:
        talk = Talk(Fault(status=number, json={"status": "queued"}))

        assert talk.read().status == "queued"
        assert (len(talk.sent), talk.retries, talk.recoveries) == (1, [], [])

    def test_every_request_is_announced_with_outcome_and_request_id(self) -> None:
        talk = Talk(status(502, X_Request_Id="r-1"), REFUSED, Fault(json={"status": "x"}, headers={"X-Request-Id": "r-2"}))

        talk.read()

        url = "GET /v1/static-export/jobs/export-finished"
        announced = talk.events.of("request_ended")
        assert [(request, request_id) for request, _, _, request_id in announced] == [(url, "r-1"), (url, None), (url, "r-2")]
        assert [outcome for _, outcome, *_ in announced][::2] == ["502", "200"]

    def test_a_request_is_announced_with_its_duration(self) -> None:
        talk = Talk(seconds=1.5)

        talk.read()

        assert [milliseconds for _, _, milliseconds, _ in talk.events.of("request_ended")] == [1500]


class TestTemporaryFailures:
    def test_each_pause_is_jittered(self) -> None:
        ceilings: list[float] = []
        talk = Talk(status(500), status(500), None, jitter=lambda ceiling: ceilings.append(ceiling) or 0.25)

        talk.read()

        assert (ceilings, talk.clock.pauses) == ([1, 2], [0.25, 0.25])

    def test_an_outage_and_its_end_are_announced_once(self) -> None:
        talk = Talk(status(502), status(503), LOST, None)

        talk.read()
        talk.read()

        assert (talk.retries, talk.recoveries) == ([(300, 1)], [7])

    def test_the_tolerance_starts_again_after_a_success(self) -> None:
        talk = Talk(status(502), status(502), None, status(502), status(502), None, tolerance=4, jitter=lambda _: 2)

        talk.read()
        talk.read()

        assert len(talk.retries) == len(talk.recoveries) == 2

    def test_the_request_id_of_the_last_error_is_reported(self) -> None:
        talk = Talk(status(502), Fault(status=500, headers={"X-Request-Id": "r-9"}), tolerance=1)

        assert talk.failure().request_id == "r-9"

    def test_a_proxy_that_fails_is_retried(self) -> None:
        trouble = requests.exceptions.ProxyError(OSError())

        assert Talk(trouble, None, proxies={"https": "http://proxy.example.com:3128"}).read().status == "completed"

    @pytest.mark.parametrize("step", [cancelled, status(502)], ids=["request", "pause"])
    def test_a_cancel_ends_it(self, step: Step) -> None:
        talk = Talk(step)

        def cancel() -> None:
            if talk.sent:
                raise Cancelled("cancelled")

        talk.clock.on_sleep = cancel

        assert isinstance(talk.failure(), Cancelled)
        assert len(talk.events.of("request_ended")) == 1


class TestUnknownHost:
    @pytest.mark.parametrize("operation", [Operation.READ_EXPORT, Operation.START])
    @pytest.mark.parametrize(("tolerance", "seconds"), [(300.0, 30.0), (5.0, 5.0)])
    def test_before_any_response_it_is_retried_for_a_short_time(
        self, operation: Operation, tolerance: float, seconds: float
    ) -> None:
        talk = Talk(UNKNOWN_HOST, tolerance=tolerance)

        error = talk.failure(operation)

        assert (type(error), talk.times[-1], talk.retries) == (UnknownHost, seconds, [(seconds, 1)])

    @pytest.mark.parametrize("first", [None, status(404), status(502), Fault(status=200), REFUSED, LOST])
    def test_a_host_that_was_found_before_is_in_an_outage(self, first: Step) -> None:
        talk = Talk(first, UNKNOWN_HOST)
        with contextlib.suppress(NotFound, Unavailable):
            talk.read()

        talk.failure()

        assert talk.times[-1] >= 300

    def test_one_whose_name_servers_did_not_answer_first_was_not_found(self) -> None:
        talk = Talk(socket.gaierror(socket.EAI_AGAIN, "no name server answers"), UNKNOWN_HOST)

        assert isinstance(talk.failure(), UnknownHost)
        assert talk.times[-1] == 30

    def test_other_errors_are_retried_for_longer(self) -> None:
        talk = Talk(*[UNKNOWN_HOST] * 3, REFUSED)

        talk.failure()

        assert talk.times[-1] == 300


class TestDeadline:
    @pytest.mark.parametrize(
        ("script", "deadline", "times"),
        [
            ([status(502)], 10, [0, 1, 3, 7, 10]),
            ([status(502)], 0, [0]),
            ([UNKNOWN_HOST], 6, [0, 1, 3, 6]),
            ([status(503, Retry_After="61")], 60, [0, 60]),
            ([status(503, Retry_After=format_datetime(NOON + timedelta(days=400), usegmt=True))], 60, [0, 60]),
        ],
    )
    def test_the_last_attempt_is_at_the_deadline(self, script: list[Step], deadline: float, times: list[float]) -> None:
        talk = Talk(*script)

        assert isinstance(talk.failure(deadline=deadline), Unavailable)
        assert talk.times == times
        assert len(talk.retries) == (deadline > 0)

    def test_the_last_attempt_decides(self) -> None:
        assert Talk(status(502), status(502), None).read(deadline=2).status == "completed"

    @pytest.mark.parametrize("last", [None, status(502)], ids=["good", "bad"])
    def test_an_attempt_that_crosses_the_deadline_is_followed_by_exactly_one(self, last: Step) -> None:
        talk = Talk(status(502), last, seconds=1.5)

        with contextlib.nullcontext() if last is None else pytest.raises(Unavailable):
            talk.read(deadline=1)

        assert (talk.times, talk.clock.pauses) == ([0, 1.5], [1.5, 1.5])  # those of the server
        assert (talk.retries, talk.recoveries) == ([], [])

    def test_an_attempt_that_crosses_the_end_of_the_tolerance_is_followed_by_one(self) -> None:
        talk = Talk(status(502), tolerance=5, seconds=1.9)

        assert type(talk.failure()) is Unavailable
        assert talk.times == [0, 2.9, 6.8, 8.7]

    def test_the_earlier_of_tolerance_and_deadline_applies(self) -> None:
        talk = Talk(status(502), tolerance=5)

        assert type(talk.failure(deadline=1000)) is Unavailable
        assert (talk.times[-1], talk.retries[0][0]) == (5, 5)

    @pytest.mark.parametrize(("deadline", "tolerance", "first"), [(40, 300, 40), (math.inf, 40, 60)])
    def test_an_attempt_gets_the_remaining_time_but_a_minimum(self, deadline: float, tolerance: float, first: float) -> None:
        talk = Talk(status(502), jitter=lambda _: 39, tolerance=tolerance)

        talk.failure(deadline=deadline)

        assert talk.times == [0, 39, 40]
        assert [sent.exchange.timeouts.total_seconds for sent in talk.sent] == [first, MIN_ATTEMPT_SECONDS, LAST_ATTEMPT_SECONDS]


class TestStartRequest:
    def test_the_only_one_that_may_be_processed_takes_its_time(self) -> None:
        talk = Talk(status(429), None, tolerance=2.5, seconds=3)

        assert talk.call(Operation.START).job_id
        assert [sent.exchange.timeouts.total_seconds for sent in talk.sent] == [60, 60]

    @pytest.mark.parametrize("bad", [LOST, status(502), BY_NAME["no response (read timeout)"].trouble])
    def test_an_unclear_failure_after_clear_ones_ends_it(self, bad: Trouble) -> None:
        talk = Talk(REFUSED, status(429), bad, None)

        assert isinstance(talk.failure(Operation.START), StartUnconfirmed)
        assert len(talk.sent) == 3

    def test_the_request_id_of_the_unclear_failure_is_reported(self) -> None:
        assert Talk(status(502, X_Request_Id="r-1")).failure(Operation.START).request_id == "r-1"

    @pytest.mark.parametrize(
        ("script", "maybe_processed"),
        [([cancelled], False), ([status(429), cancelled], False), ([status(429), REFUSED], False), ([status(429), None], False)],
    )
    def test_after_other_attempts_the_last_one_counts(self, script: list[Step], maybe_processed: bool) -> None:
        talk = Talk(*script, tolerance=1)

        with contextlib.suppress(ActionError):
            talk.call(Operation.START)

        assert talk.api.is_start_unconfirmed(talk.job) is maybe_processed


class TestRetryAfter:
    @pytest.mark.parametrize("asked", ["40", format_datetime(NOON + timedelta(seconds=40), usegmt=True)])
    def test_it_is_obeyed(self, asked: str) -> None:
        talk = Talk(status(429, Retry_After=asked), None)

        talk.read()

        assert talk.times == [0, 40]

    def test_a_shorter_one_does_not_shorten_the_backoff(self) -> None:
        talk = Talk(status(503, Retry_After="0"), None)

        talk.read()

        assert talk.clock.pauses == [1]


class TestAnyOutage:
    @given(
        st.lists(st.sampled_from([status(500), status(429, Retry_After="77"), LOST, REFUSED]), max_size=30),
        st.floats(1, 600),
        st.floats(0.01, 900),
        st.floats(0, 20),
        st.floats(0.1, 1),
    )
    def test_tries_end_in_time_and_are_not_pressed(
        self, script: list[Step], tolerance: float, deadline: float, seconds: float, jitter: float
    ) -> None:
        talk = Talk(*script, status(502), tolerance=tolerance, seconds=seconds, jitter=lambda ceiling: ceiling * jitter)

        with pytest.raises(Unavailable):
            talk.read(deadline=deadline)

        end = min(deadline, seconds + tolerance)
        assert end - 1e-5 <= talk.times[-1] <= end + seconds + GAP_SECONDS + 1e-5
        assert len([at for at in talk.times if at > end + GAP_SECONDS + 1e-5]) <= 1
        assert all(pause <= max(MAX_PAUSE_SECONDS + 1, 77) for pause in talk.clock.pauses)
        assert len(talk.retries) <= 1
