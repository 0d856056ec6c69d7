"""How faults change responses, and the order of turns."""

import pytest

from admin_api_simulator.faults import Fault, FaultScript
from admin_api_simulator.responses import Response, json_response

NORMAL = json_response({"status": "running"}, status=200, headers={"X-Request-Id": "1"})


@pytest.mark.parametrize(
    ("fault", "runs"),
    [
        (Fault(), True),
        (Fault(delay_seconds=1), True),
        (Fault(cut="in_body"), True),
        (Fault(headers={"A": "b"}), True),
        (Fault(stall_after_bytes=0), True),
        (Fault(framing="close"), True),
        (Fault(status=500), False),
        (Fault(body=""), False),
        (Fault(json={}), False),
        (Fault(raw=b""), False),
        (Fault(cut="before_response"), False),
        (Fault(cut="before_response", processed=True), True),
        (Fault(status=500, processed=True), True),
    ],
)
def test_an_operation_runs_unless_the_fault_stands_in_for_it(fault: Fault, runs: bool) -> None:
    assert fault.runs_operation is runs


def test_a_fault_without_a_response_of_its_own_leaves_the_normal_one() -> None:
    shaped = Fault(drip_seconds=1, headers={"content-TYPE": "text/html"}).apply(NORMAL)

    assert (shaped.status, shaped.body) == (200, NORMAL.body)
    assert dict(shaped.headers) == {"X-Request-Id": "1", "content-TYPE": "text/html"}


def test_an_error_status_gets_the_apis_error_object() -> None:
    assert Fault(status=503).apply(None).body == b'{"error": "Service Unavailable"}'
    assert Fault(status=599, reason="Odd").apply(None).body == b'{"error": "Odd"}'
    assert Fault(status=302).apply(None).body == b""


def test_a_response_has_its_length_and_closes_unless_headers_say_otherwise() -> None:
    assert Response(status=299, body=b"ab").head_bytes() == b"HTTP/1.1 299 \r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    assert Response(headers={"content-length": "9", "connection": "x"}).head_bytes() == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: x\r\n\r\n"
    )


def test_a_response_may_have_no_length() -> None:
    response = Response(status=299, body=b"ab")

    assert response.head_bytes("chunked") == b"HTTP/1.1 299 \r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert response.head_bytes("close") == b"HTTP/1.1 299 \r\nConnection: close\r\n\r\n"


def test_parts_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="use one of them"):
        Fault(cut="in_body", stall_after_bytes=1)
    with pytest.raises(ValueError, match="raw cannot be combined"):
        Fault(raw=b"x", stall_after_bytes=1)
    with pytest.raises(ValueError, match="raw cannot be combined"):
        Fault(raw=b"x", framing="close")


def test_a_new_plan_takes_the_place_of_the_old_one() -> None:
    one, two, three = Fault(status=501), Fault(status=502), Fault(status=503)
    script = FaultScript()

    script.plan("download", [one, one], then=one)
    first = script.next_turn("download")
    script.plan("download", [None, two], then=three)
    rest = [script.next_turn("download") for _ in range(4)]

    assert [first, *rest] == [one, None, two, three, three]
    assert script.next_turn("read_export") is None


def test_a_domains_own_turns_come_before_those_for_all() -> None:
    own, general = Fault(status=501), Fault(status=502)
    script = FaultScript()
    script.plan("download", [None, own], domain="a.example.com")
    script.plan("download", [general, None, general])

    turns = [script.next_turn("download", domain) for domain in ("A.Example.com", "b.example.com", "a.example.com")]
    rest = [script.next_turn("download", domain) for domain in ("a.example.com", "a.example.com", None)]

    assert turns == [None, general, own]
    assert rest == [None, general, None]
    assert script.next_turn("make_bundle", "a.example.com") is None


def test_a_domains_fault_forever_leaves_those_for_all_to_the_others() -> None:
    own, general = Fault(status=501), Fault(status=502)
    script = FaultScript()
    script.plan("read_export", [general])
    script.plan("read_export", [None], then=own, domain="a.example.com")

    assert [script.next_turn("read_export", "a.example.com") for _ in range(3)] == [None, own, own]
    assert script.next_turn("read_export", "b.example.com") == general

    script.plan("read_export", [], domain="a.example.com")
    assert script.next_turn("read_export", "a.example.com") is None


def test_an_agent_job_has_no_domain_to_plan_for() -> None:
    with pytest.raises(ValueError, match="has no domain; use one of download, make_bundle, read_export, start_export"):
        FaultScript().plan("read_agent_job", [None], domain="a.example.com")
