"""How long a call is retried, what is announced, and whether a start may have been processed."""

import contextlib
import socket
from typing import Any, Final

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.faults import Operation
from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    NoRoom,
    StartUnconfirmed,
)
from docs_platform_action.http.attempts import LAST_ATTEMPT_SECONDS, MIN_ATTEMPT_SECONDS
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.platform.sending import UNKNOWN_HOST_SECONDS
from tests.keys import ADMIN_KEY
from tests.unit.platform.talk import DOMAIN, READ, START, Talk, export_job, job_for
from tests.virtual_platform import Trouble

DOWN: Final = Fault(status=503)
BUSY: Final = Fault(status=503, headers={"Retry-After": "1"})
REFUSED: Final = ConnectionRefusedError()
UNKNOWN: Final = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_request_carries_the_key_and_asks_for_json() -> None:
    talk = Talk()

    talk.call()

    assert talk.sent[0].headers["Authorization"] == f"Bearer {ADMIN_KEY}"
    assert talk.sent[0].headers["Accept"] == "application/json"


@pytest.mark.parametrize("operation", [START, READ])
def test_the_end_of_each_request_is_announced_with_its_status_or_its_error(operation: Any) -> None:
    limit = Fault(status=503, headers={"Retry-After": "1", "X-Request-Id": "r-1"})
    answer = Fault(json={"jobId": "se_1", "status": "running"}, headers={"X-Request-Id": "r-2"})
    talk = Talk(REFUSED, limit, answer)

    result = talk.call(operation)
    before = talk.events.names.count("request_ended")
    if operation == START:
        talk.platform.announce(result)

    ended = talk.events.of("request_ended")
    assert [(outcome, request_id) for _, outcome, _, request_id in ended] == [
        ("api.example.com refused the connection", None),
        ("503", "r-1"),
        ("200", "r-2"),
    ]
    # a start is announced once its id is written
    assert before == (2 if operation == START else 3)


class TestRetries:
    def test_pauses_grow_and_an_outage_and_its_end_are_announced_once(self) -> None:
        talk = Talk(DOWN, REFUSED, Fault(cut="in_body"), None)

        talk.call()

        assert talk.times == [0, 1, 3, 7]
        assert [retrying[2:4] for retrying in talk.events.of("retrying")] == [(300, 1)]
        assert [recovered[1] for recovered in talk.events.of("recovered")] == [7]

    def test_an_outage_without_time_to_retry_is_not_announced(self) -> None:
        talk = Talk(DOWN, None, tolerance=0.0, seconds=1.0)

        talk.call()

        assert talk.times == [0, 1]
        assert talk.events.of("retrying") == []
        assert talk.events.of("recovered") == []

    @pytest.mark.parametrize(
        ("asked", "times"),
        [("7", [0, 7]), ("0", [0, 1]), ("Mon, 04 May 2026 12:00:20 GMT", [0, 20])],
    )
    def test_a_pause_is_as_long_as_the_platform_asks_for(
        self, asked: str, times: list[float]
    ) -> None:
        talk = Talk(Fault(status=429, headers={"Retry-After": asked}), None)

        talk.call()

        assert talk.times == times

    @pytest.mark.parametrize(
        ("first", "seconds"), [((), UNKNOWN_HOST_SECONDS), ((DOWN,), 300), ((REFUSED,), 300)]
    )
    def test_a_host_that_does_not_exist_is_looked_up_for_30_s_unless_it_was_found_before(
        self, first: tuple[Trouble, ...], seconds: float
    ) -> None:
        talk = Talk(*first, UNKNOWN)

        assert talk.failure().failure_reason == "unavailable"
        assert talk.clock.elapsed == pytest.approx(seconds, abs=1)


def test_the_last_attempt_decides_and_an_attempt_has_the_remaining_time_but_a_minimum() -> None:
    talk = Talk(DOWN, DOWN, DOWN, None)

    assert talk.call(deadline=4).status
    limits = [sent.exchange.timeouts.total_seconds for sent in talk.sent]
    assert limits == pytest.approx([4, 3, MIN_ATTEMPT_SECONDS, LAST_ATTEMPT_SECONDS], abs=1.1)


class TestStarts:
    @pytest.mark.parametrize(
        ("trouble", "is_unconfirmed"),
        [
            (REFUSED, False),
            (UNKNOWN, False),
            (Fault(status=403), False),
            (Fault(status=302), False),
            (None, False),
            (Fault(status=503, headers={"Retry-After": "7"}), False),
            (Fault(status=503, headers={"Retry-After": "soon"}), True),
            (Fault(status=503), True),
            (Fault(status=408), True),
            (Fault(status=502), True),
            (Fault(status=204), True),
            (Fault(cut="before_response"), True),
            (Fault(json={"progress": 5}), True),
        ],
        ids=str,
    )
    def test_one_may_have_been_processed_unless_it_certainly_was_not(
        self, trouble: Trouble, is_unconfirmed: bool
    ) -> None:
        talk = Talk(trouble, tolerance=0.5, job=export_job())

        with contextlib.suppress(ActionError):
            talk.call(START)

        assert talk.job.is_start_unconfirmed == is_unconfirmed

    def test_an_unclear_failure_after_clear_ones_ends_it_and_it_has_all_its_time(self) -> None:
        talk = Talk(REFUSED, BUSY, Fault(cut="before_response"), None)

        with pytest.raises(StartUnconfirmed):
            talk.call(START)
        assert len(talk.sent) == 3
        assert {sent.exchange.timeouts.total_seconds for sent in talk.sent} == {60}

    @pytest.mark.parametrize(
        ("fault", "running", "asked_seconds"),
        [
            (Fault(status=409, json={"error": "no", "jobId": "se_7"}), "se_7", 0),
            (Fault(status=409, json={"error": {"jobId": "se_7"}}), "se_7", 0),
            (Fault(status=409, json={"jobId": "x" * 200}), "x" * 200, 0),
            (Fault(status=409, json={"jobId": "x" * 201}), None, 0),
            (Fault(status=409, json={"jobId": " "}), None, 0),
            (Fault(status=409, headers={"Retry-After": "7"}), None, 7),
            (Fault(status=409, body=""), None, 0),
            (Fault(status=429, json={"error": "no", "jobId": "se_7"}), None, 0),
            (Fault(status=429, headers={"Retry-After": "1800"}), None, 1800),
            (Fault(status=429, body="<html></html>"), None, 0),
        ],
        ids=str,
    )
    def test_a_lack_of_room_ends_the_attempt_which_was_not_processed(
        self, fault: Fault, running: str | None, asked_seconds: float
    ) -> None:
        talk = Talk(fault, job=export_job())

        with pytest.raises(NoRoom) as caught:
            talk.call(START)

        refusal = caught.value
        assert refusal.status == fault.status
        assert refusal.running_job_id == running
        assert refusal.retry_after_seconds == asked_seconds
        assert len(talk.sent) == 1
        assert not talk.job.is_start_unconfirmed

    def test_a_web_page_with_409_is_no_answer_of_the_api(self) -> None:
        talk = Talk(Fault(status=409, body="<html></html>"))

        assert talk.failure(START).failure_reason == "rejected"

    def test_a_lack_of_room_after_an_outage_ends_it(self) -> None:
        talk = Talk(REFUSED, REFUSED, Fault(status=429))

        with pytest.raises(NoRoom):
            talk.call(START)

        assert [recovered[1] for recovered in talk.events.of("recovered")] == [3]

    def test_a_pause_that_the_platform_asks_for_holds_back_other_starts_too(self) -> None:
        talk = Talk(Fault(status=503, headers={"Retry-After": "7"}), None)
        other = Job(kind=Export(), domain="other.example.com")

        def start_other() -> None:
            talk.clock.sleep(2.0)
            talk.platform.start_export(other, {})

        talk.clock.run(lambda: talk.call(START), start_other)

        assert talk.times == pytest.approx([0, 7, 7.1])


@pytest.mark.parametrize(
    ("operation", "status"),
    [(READ, 403), (READ, 404), (READ, 503), (START, 403), (START, 503), (START, 409)],
)
def test_a_failure_has_the_id_of_its_last_request(operation: Operation, status: int) -> None:
    fault = Fault(status=status, json={"error": "no"}, headers={"X-Request-Id": "r-1"})
    talk = Talk(fault, tolerance=0.0, job=job_for(operation))

    with pytest.raises((ActionError, NoRoom)) as caught:
        talk.call(operation)

    failure: Any = caught.value
    assert failure.request_id == "r-1"


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (Fault(status=429, json={"error": "no"}), "unavailable"),
        (Fault(status=429, body="<html></html>"), "forbidden"),
    ],
    ids=["the API's own", "a web page"],
)
def test_after_a_lack_of_room_in_json_a_web_page_is_not_the_api(
    refusal: Fault, reason: str
) -> None:
    talk = Talk(refusal, Fault(status=403, body="<html></html>"), tolerance=0.0)
    with pytest.raises(NoRoom):
        talk.call(START)

    assert talk.failure(READ).failure_reason == reason


class TestUnconfirmedStarts:
    """`Job.is_start_unconfirmed`, as the main thread sees it while another one sends the start."""

    def test_a_start_is_unconfirmed_while_its_request_is_under_way_and_not_between_two(
        self,
    ) -> None:
        talk = Talk(BUSY, None, seconds=2.0, job=export_job())
        seen: list[tuple[float, bool]] = []
        talk.clock.call_every(
            1.0, lambda: seen.append((talk.clock.elapsed, talk.job.is_start_unconfirmed))
        )

        talk.call(START)

        assert talk.times == [0, 3]
        assert seen == [(1, True), (2, True), (3, False), (4, True), (5, True)]
        assert not talk.job.is_start_unconfirmed

    def test_a_start_is_not_unconfirmed_while_it_has_no_connection(self) -> None:
        talk = Talk(TimeoutError(), None, job=export_job())
        seen: list[bool] = []
        talk.clock.call_every(1.0, lambda: seen.append(talk.job.is_start_unconfirmed))

        talk.call(START)

        assert seen
        assert not any(seen)

    def test_the_id_is_recorded_before_the_attempt_is_cleared(self) -> None:
        ids_when_cleared: list[str | None] = []

        class WatchedJob(Job):
            def __setattr__(self, name: str, value: object) -> None:
                if name == "start_attempt" and value is None and self.__dict__.get(name):
                    ids_when_cleared.append(self.job_id)
                super().__setattr__(name, value)

        talk = Talk(job=WatchedJob(kind=Export(), domain=DOMAIN))

        talk.call(START)

        assert ids_when_cleared == [talk.job.job_id]
        assert talk.job.job_id

    @pytest.mark.parametrize(
        ("trouble", "is_unconfirmed"),
        [(None, True), (Fault(status=403), True), (TimeoutError(), False)],
        ids=["in the exchange", "before a refusal arrives", "before there is a connection"],
    )
    def test_an_abort_in_the_middle_leaves_it_as_it_is_then(
        self, trouble: Trouble, is_unconfirmed: bool
    ) -> None:
        talk = Talk(trouble, seconds=2.0, job=export_job())

        def start() -> None:
            with pytest.raises(Cancelled):
                talk.call(START)

        def abort() -> None:
            talk.clock.sleep(1.0)
            talk.clock.cancel()

        talk.clock.run(start, abort)

        assert talk.times == [0]
        assert talk.job.is_start_unconfirmed == is_unconfirmed

    def test_a_reading_leaves_no_attempt(self) -> None:
        talk = Talk(DOWN, tolerance=0.0)

        talk.failure(READ)

        assert not talk.job.is_start_unconfirmed
