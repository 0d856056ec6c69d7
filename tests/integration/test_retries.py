"""What real sockets and a whole run show of temporary errors: the faults of the table, and how a run ends after an outage."""

import math
from collections.abc import Callable

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from tests.action import Action
from tests.faults import BY_NAME, FAULTS, Nature, Row
from tests.integration.parts import api_of, at_once, finished_export

RETRIED = {Nature.LOST, Nature.FOREIGN, Nature.MISSING_FIELD, Nature.TOO_LARGE, Nature.TOO_SHORT}
SLOW = {"no response (read timeout)", "one byte a second"}


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

    ended = action.run(platform, mode="collect", job_id="export-finished", outage_tolerance="1m")

    assert (ended.exit_code, ended.commands, ended.stderr) == (0, [], ""), ended.stdout
    assert platform.count(operation) == 2
    assert ended.outputs["bundleUrl"]


@pytest.mark.parametrize("operation", ["read_export", "make_bundle"])
def test_a_job_that_this_run_started_may_be_unknown_at_first(action: Action, platform: Simulator, operation: Operation) -> None:
    platform.script(operation, Fault(status=404), Fault(status=404))

    ended = action.export(platform, outage_tolerance="30s")

    assert (ended.exit_code, platform.count(operation)) == (0, 3)


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
