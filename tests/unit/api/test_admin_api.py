"""The four operations: what is sent, and how long it is retried."""

import contextlib
import socket
from typing import Any, Final

import pytest

from admin_api_simulator import Fault
from docs_platform_action.api.admin_api import UNKNOWN_HOST_SECONDS
from docs_platform_action.api.by_domain import BUNDLE_TIMEOUTS
from docs_platform_action.errors import ActionError, BadResponse, NoRoom, StartUnconfirmed
from docs_platform_action.http.retry import LAST_ATTEMPT_SECONDS, MIN_ATTEMPT_SECONDS
from docs_platform_action.job import Job
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.jobs.export import Export
from tests.unit.api.talk import AGENT, BUNDLE, DOMAIN, READ, START, Talk, agent_job, export_job
from tests.virtual_platform import Trouble

DOWN: Final = Fault(status=503)
BUSY: Final = Fault(status=503, headers={"Retry-After": "1"})
REFUSED: Final = ConnectionRefusedError()
UNKNOWN: Final = socket.gaierror(socket.EAI_NONAME, "Name or service not known")

SIGNATURE: Final = "0123456789"
LINK: Final = f"https://s.example.com/b?X-Amz-Signature={SIGNATURE}"


class TestRequests:
    @pytest.mark.parametrize(
        ("job_id", "segment"),
        [
            ("se_1", "se_1"),
            ("a/b", "a%2Fb"),
            ("..", "%2E%2E"),
            (".", "%2E"),
            ("a b?c#d%", "a%20b%3Fc%23d%25"),
            ("é", "%C3%A9"),
        ],
    )
    def test_an_id_is_one_segment_of_the_path(self, job_id: str, segment: str) -> None:
        agent = Talk(Fault(json={"status": "active"}), job=agent_job(job_id))
        agent.job.project_id = job_id
        agent.call(AGENT)
        body = {"status": "running", "bundleUrl": "https://s.example.com/b"}
        export = Talk(Fault(json=body), job=Job(kind=Collect(), job_id=job_id))
        export.call(READ)
        export.call(BUNDLE)

        assert agent.sent[0].target == f"/v2/agent/{segment}/job/{segment}"
        path = f"/v1/static-export/jobs/{segment}"
        assert [sent.target for sent in export.sent] == [path, f"{path}/bundle"]

    def test_a_bundle_is_posted_without_a_body_and_has_a_long_timeout(self) -> None:
        talk = Talk(Fault(json={"bundleUrl": LINK}))

        talk.call(BUNDLE)

        assert (talk.sent[0].method, talk.sent[0].body) == ("POST", None)
        assert talk.sent[0].exchange.timeouts.idle_seconds == BUNDLE_TIMEOUTS.idle_seconds

    def test_the_signature_of_a_new_link_is_hidden_from_then_on(self) -> None:
        talk = Talk(Fault(json={"bundleUrl": LINK}))

        talk.call(BUNDLE)

        assert talk.api.client.redactor.hide(SIGNATURE) == "…"

    def test_the_signature_of_a_link_in_a_reading_is_hidden_from_then_on(self) -> None:
        job = Job(kind=Collect(), project_id="docs", job_id="se_1")
        talk = Talk(Fault(json={"status": "completed", "bundleUrl": LINK}), job=job)

        talk.call(READ)

        assert talk.api.client.redactor.hide(SIGNATURE) == "…"

    def test_the_job_of_another_domain_is_refused_and_the_same_one_again_is_not(self) -> None:
        talk = Talk(Fault(json={"jobId": "se_1"}))
        other = Job(kind=Export(), domain="other.example.com")

        talk.call(START)
        talk.call(START)
        with pytest.raises(BadResponse, match=DOMAIN):
            talk.api.start_export(other, {})


@pytest.mark.parametrize("operation", [START, READ])
def test_the_end_of_each_request_is_announced_with_its_status_or_its_error(operation: Any) -> None:
    limit = Fault(status=503, headers={"Retry-After": "1", "X-Request-Id": "r-1"})
    answer = Fault(json={"jobId": "se_1", "status": "running"}, headers={"X-Request-Id": "r-2"})
    talk = Talk(REFUSED, limit, answer)

    result = talk.call(operation)
    before = talk.events.names.count("request_ended")
    if operation == START:
        talk.api.announce(result)

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

        assert talk.api.is_start_unconfirmed(talk.job) == is_unconfirmed

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
        assert not talk.api.is_start_unconfirmed(talk.job)

    def test_a_web_page_with_409_is_no_answer_of_the_api(self) -> None:
        talk = Talk(Fault(status=409, body="<html></html>"))

        assert talk.failure(START).failure_reason == "rejected"

    def test_a_lack_of_room_after_an_outage_ends_it(self) -> None:
        talk = Talk(REFUSED, REFUSED, Fault(status=429))

        with pytest.raises(NoRoom):
            talk.call(START)

        assert [recovered[1] for recovered in talk.events.of("recovered")] == [3]
