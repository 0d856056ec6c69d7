"""What real sockets and a whole run show of temporary errors: the faults of the table, and how a run ends after an outage."""

import math
from collections.abc import Callable

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from tests.action import Action
from tests.faults import BY_NAME, FAULTS, Nature, Row
from tests.integration.parts import api_of, at_once, finished_export
from tests.virtual_time import VirtualClock

RETRIED = {Nature.LOST, Nature.FOREIGN, Nature.MISSING_FIELD, Nature.TOO_LARGE, Nature.TOO_SHORT}
SLOW = {"no response (read timeout)", "one byte a second"}
BUSY = Fault(status=503, json={"error": "upstream down"}, headers={"X-Request-Id": "r-5"})
RUNNING = Fault(json={"status": "running", "progress": 57.9, "pageCount": 1234})


@pytest.mark.parametrize(
    "row", [row for row in FAULTS if isinstance(row.trouble, Fault) and row.nature in RETRIED and row.name not in SLOW], ids=str
)
def test_a_job_is_read_despite_a_temporary_error(platform: Simulator, row: Row) -> None:
    assert isinstance(row.trouble, Fault)
    platform.script("read_export", row.trouble)

    job = api_of(platform.base_url, outage_tolerance_seconds=60, jitter=at_once).read_export(finished_export(), deadline=math.inf)

    assert (job.status, platform.count("read_export")) == ("completed", 2)


@pytest.mark.parametrize(
    ("operation", "name"),
    [("read_export", "429 Too Many Requests"), ("read_export", "half a body"), ("make_bundle", "409 Conflict")],
)
def test_a_run_continues_after_a_temporary_error(action: Action, platform: Simulator, operation: Operation, name: str) -> None:
    fault = BY_NAME[name].trouble
    assert isinstance(fault, Fault)
    platform.script(operation, fault)
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)

    ended = action.run(platform, job_id="export-finished", outage_tolerance="1m")

    assert (ended.exit_code, ended.commands, ended.stderr) == (0, [], ""), ended.stdout
    assert platform.count(operation) == 2
    assert ended.outputs["bundleUrl"]


@pytest.mark.parametrize("operation", ["read_export", "make_bundle"])
def test_a_job_that_this_run_started_may_be_unknown_at_first(action: Action, platform: Simulator, operation: Operation) -> None:
    platform.script(operation, Fault(status=404), Fault(status=404))

    ended = action.export(platform, outage_tolerance="30s")

    assert (ended.exit_code, platform.count(operation)) == (0, 3)


@pytest.mark.parametrize("operation", ["read_export", "make_bundle"])
def test_a_job_that_this_run_started_and_that_stays_unknown_is_not_found(
    action: Action, platform: Simulator, operation: Operation
) -> None:
    action.clock = VirtualClock(real_rate=1.0)
    platform.script_forever(operation, Fault(status=404, headers={"X-Request-Id": "r-4"}))

    ended = action.export(platform, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason, ended.outputs["jobId"] != "") == (1, "not-found", True)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"timeout": "1m", "outage_tolerance": "1h"}, "timeout"),
        ({"timeout": "1h", "outage_tolerance": "1m"}, "unavailable"),
    ],
)
def test_retry_after_is_not_obeyed_beyond_the_time_limits(
    action: Action, platform: Simulator, inputs: dict[str, str], reason: str
) -> None:
    platform.script_forever("read_export", Fault(status=503, headers={"Retry-After": "3600"}))
    action.clock = VirtualClock(real_rate=1.0)

    ended = action.run(platform, job_id="export-finished", **inputs)

    assert (ended.exit_code, ended.reason, platform.count("read_export")) == (1, reason, 2)
    assert "status" not in ended.outputs


def test_a_recovery_at_the_last_attempt_is_a_success(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(status=503, headers={"Retry-After": "3600"}))
    action.clock = VirtualClock(real_rate=1.0)

    ended = action.run(platform, job_id="export-finished", timeout="1m", outage_tolerance="1h")

    assert (ended.exit_code, ended.outputs["status"]) == (0, "completed")


@pytest.mark.parametrize(("fault", "status"), [(BUSY, None), (Fault(cut="before_response"), "running")])
def test_a_timeout_in_an_outage_has_the_last_state(action: Action, platform: Simulator, fault: Fault, status: str | None) -> None:
    platform.script_forever("read_export", fault, after=[RUNNING] if status else [])
    action.clock = VirtualClock(real_rate=1.0)

    ended = action.run(platform, job_id="export-finished", timeout="1m", outage_tolerance="1h")

    assert (ended.reason, ended.outputs.get("status")) == ("timeout", status)


def test_the_last_poll_decides(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(json={"status": "running"}))
    action.clock = VirtualClock(real_rate=1.0)

    # the second poll is due after the deadline, so it is the last
    ended = action.run(platform, job_id="export-finished", timeout="1m", poll_interval="1h", max_poll_interval="1h")

    assert (ended.exit_code, platform.count("read_export")) == (0, 2)


def test_a_job_that_takes_too_long_can_be_collected_later(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(export_seconds=3600, queue_share=0.5)

    ended = action.export(platform, timeout="150ms")

    assert (ended.reason, ended.outputs["status"]) == ("timeout", "queued")
    assert ended.outputs["jobId"] in ended.error


@pytest.mark.parametrize(("operation", "status"), [("start_export", 307), ("read_export", 301), ("make_bundle", 308)])
def test_a_redirect_is_not_followed(
    action: Action, make_platform: Callable[..., Simulator], operation: Operation, status: int
) -> None:
    platform, elsewhere = make_platform(export_seconds=0), make_platform()
    target = elsewhere.base_url.removeprefix("http://")
    location = f"http://user:secret-word@{target}/v1/elsewhere?token=secret-word#secret-word"
    platform.script(operation, Fault(status=status, headers={"Location": location}))

    ended = action.export(platform)

    assert (ended.exit_code, ended.reason, platform.count(operation)) == (1, "bad-response", 1)
    assert "secret-word" not in ended.stdout + ended.summary
    assert elsewhere.requests == []


def test_no_cookie_is_kept(action: Action, platform: Simulator) -> None:
    cookie = Fault(headers={"Set-Cookie": "session=abc; Path=/"})
    platform.script("start_export", cookie)
    platform.script("read_export", cookie, cookie)

    ended = action.export(platform)

    assert ended.exit_code == 0
    assert not any("Cookie" in request.headers for request in platform.requests)
