"""Temporary errors are retried within time limits and reported once; a redirect is not followed."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from _pytest.mark import ParameterSet

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from docs_platform_action.errors import Unavailable
from tests.action import Action
from tests.integration.parts import api_of, at_once, finished_export
from tests.virtual_time import VirtualClock

MIB = 1024 * 1024
TEMPORARY = {
    "408": Fault(status=408),
    "425": Fault(status=425),
    "429": Fault(status=429),
    "500": Fault(status=500),
    "502": Fault(status=502, body="<html>\r\n::error::bad gateway</html>", headers={"Content-Type": "text/html"}),
    "599": Fault(status=599, json=["no", "object"]),
    "cut before the answer": Fault(cut="before_response"),
    "cut in the headers": Fault(cut="in_headers"),
    "cut in the body": Fault(cut="in_body"),
    "truncated JSON": Fault(body='{"status": "compl', headers={"Content-Type": "application/json"}),
    "too many bytes announced": Fault(raw=b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"status": "completed"}'),
    "a page": Fault(body="<html>sign in</html>", headers={"Content-Type": "text/html"}),
    "an empty body": Fault(body=""),
    "no content": Fault(status=204),
    "JSON that is not an object": Fault(json=["completed"]),
    "deep JSON": Fault(body="[" * 200_000),
    "UTF-16": Fault(body=b"\xff\xfe{\0}\0"),
    "garbage": Fault(raw=b"SSH-2.0-server\r\n"),
    "broken chunks": Fault(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}"),
    "a coding that was not asked for": Fault(body=b"\x1f\x8b no gzip", headers={"Content-Encoding": "gzip"}),
    "too large": Fault(json={"status": "completed", "filler": "x" * MIB}),
    "too large without a length": Fault(raw=b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (MIB + 1)),
    "a status of no standard": Fault(raw=b"HTTP/1.1 999 Who Knows\r\nContent-Length: 0\r\n\r\n"),
}
BROKEN_READING = {
    "no status": Fault(json={"progress": 5}),
    "a status of another type": Fault(json={"status": 7}),
}
BUNDLE_NOT_READY = {"409": Fault(status=409, json={"error": "still running"})}


def cases(operation: Operation, faults: dict[str, Fault]) -> list[ParameterSet]:
    return [pytest.param(operation, fault, id=f"{operation}: {name}") for name, fault in faults.items()]


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        *cases("read_export", {name: TEMPORARY[name] for name in ("429", "502", "cut in the body", "garbage", "too large")}),
        *cases("make_bundle", BUNDLE_NOT_READY),
    ],
)
def test_a_temporary_error_is_reported_once_and_retried(
    action: Action, platform: Simulator, operation: Operation, fault: Fault
) -> None:
    platform.script(operation, fault)
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)

    ended = action.run(platform, job_id="export-finished", outage_tolerance="1m")

    assert (ended.exit_code, ended.commands, ended.stderr) == (0, [], ""), ended.stdout
    assert platform.count(operation) == 2
    assert ended.log.count("Retrying for up to 1:00, next ") == 1
    assert len(re.findall(r"The API is responding again after 0:[0-9]{2}\.", ended.log)) == 1
    assert ended.outputs["bundleUrl"]


@pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in (TEMPORARY | BROKEN_READING).items()])
def test_a_job_is_read_despite_a_temporary_error(platform: Simulator, fault: Fault) -> None:
    platform.script("read_export", fault)

    job = api_of(platform.base_url, outage_tolerance_seconds=60, jitter=at_once).read_export(finished_export(), deadline=math.inf)

    assert (job.status, platform.count("read_export")) == ("completed", 2)


@pytest.mark.parametrize(
    "fault",
    # JSON from the API would be final here
    [pytest.param(fault, id=name) for name, fault in (TEMPORARY | BUNDLE_NOT_READY).items() if name != "too large"],
)
def test_a_bundle_is_made_despite_a_temporary_error(platform: Simulator, fault: Fault) -> None:
    platform.script("make_bundle", fault)

    bundle = api_of(platform.base_url, outage_tolerance_seconds=60, jitter=at_once).make_bundle(finished_export())

    assert bundle.url.startswith(platform.storage_url)
    assert platform.count("make_bundle") == 2


def test_consecutive_errors_are_one_outage(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(status=502), Fault(cut="before_response"))

    ended = action.run(platform, job_id="export-finished", outage_tolerance="30s")

    assert (ended.exit_code, platform.count("read_export")) == (0, 3)
    assert ended.log.count("Retrying") == 1
    assert "The API returned 502 (bad gateway). Retrying for up to 0:30, next " in ended.log
    assert ended.log.count("The API is responding again after ") == 1


def test_a_successful_response_ends_an_outage(action: Action, platform: Simulator) -> None:
    down, running = Fault(status=503, headers={"Retry-After": "30"}), Fault(json={"status": "running"})
    platform.script("read_export", *[turn for _ in range(4) for turn in (down, running)])
    action.clock = VirtualClock(real_rate=1.0)

    # all outages together are longer than the tolerance, each alone is shorter
    ended = action.run(platform, job_id="export-finished", outage_tolerance="1m")

    assert ended.exit_code == 0
    assert ended.log.count("The API is responding again") == 4


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_obeyed(action: Action, platform: Simulator, form: str) -> None:
    # the resolution of dates is one second
    now = datetime(2030, 1, 1, tzinfo=UTC)
    dates = {"Retry-After": format_datetime(now + timedelta(seconds=1), usegmt=True), "Date": format_datetime(now, usegmt=True)}
    headers = {"Retry-After": "1"} if form == "seconds" else dates
    platform.script("read_export", Fault(status=429, headers=headers))

    ended = action.run(platform, job_id="export-finished", outage_tolerance="30s")

    first, second = [request.at for request in platform.requests if request.operation == "read_export"]
    assert ended.exit_code == 0
    assert second - first >= 1


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


def test_a_recovery_at_the_last_attempt_is_a_success(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(status=503, headers={"Retry-After": "3600"}))
    action.clock = VirtualClock(real_rate=1.0)

    ended = action.run(platform, job_id="export-finished", timeout="1m", outage_tolerance="1h")

    assert (ended.exit_code, ended.outputs["status"]) == (0, "completed")


LATE = Fault(status=503, delay_seconds=1.5, json={"error": "upstream down"}, headers={"X-Request-Id": "r-5"})
"""A response that arrives after a deadline of one second."""


def test_an_attempt_that_fails_after_the_deadline_is_followed_by_a_last_one(action: Action, platform: Simulator) -> None:
    platform.script("read_export", LATE)

    ended = action.run(platform, job_id="export-finished", timeout="1s", outage_tolerance="1h")

    assert (ended.exit_code, platform.count("read_export")) == (0, 2)
    assert "Retrying" not in ended.log


def test_only_the_last_attempt_starts_after_the_deadline(action: Action, platform: Simulator) -> None:
    platform.script_forever("read_export", Fault(status=503, json={"error": "still down"}), after=[LATE])

    ended = action.run(platform, job_id="export-finished", timeout="1s", outage_tolerance="1h")

    assert (ended.exit_code, ended.reason, platform.count("read_export")) == (1, "timeout", 2)
    assert '"still down"' in ended.error


def test_only_the_last_attempt_starts_after_the_tolerance(platform: Simulator) -> None:
    platform.script_forever("make_bundle", Fault(status=503, json={"error": "still down"}), after=[Fault(status=503), LATE])
    api = api_of(platform.base_url, outage_tolerance_seconds=1.0, jitter=at_once)

    with pytest.raises(Unavailable) as caught:
        api.make_bundle(finished_export())

    assert platform.count("make_bundle") == 3
    assert caught.value.details[-1].endswith('said: "still down"')


def test_a_job_that_was_never_read_is_reported_with_the_last_error(action: Action, platform: Simulator) -> None:
    platform.script_forever("read_export", Fault(status=503, json={"error": "upstream down"}, headers={"X-Request-Id": "r-5"}))

    ended = action.run(platform, job_id="export-finished", timeout="150ms", outage_tolerance="1h")

    assert (ended.reason, ended.outputs.get("status")) == ("timeout", None)
    title, *facts = [line.strip() for line in ended.error.splitlines()]
    assert title == "Export job export-finished: its status could not be read after 0:00"
    assert facts[0] == "No status request succeeded."
    assert facts[1].endswith(" remained unavailable.")
    assert "Last error: The API returned 503 (service unavailable)." in facts[2]
    assert facts[3].endswith('said: "upstream down"')
    assert facts[4].startswith("The platform, or the network between it and this runner, is down")
    # a longer timeout is not the first remedy
    assert "status page" in facts[5]
    assert facts[5].endswith("If the job is only slow, raise `timeout`.")


def test_a_job_that_was_read_before_the_outage_is_reported_with_its_last_state(action: Action, platform: Simulator) -> None:
    reading = Fault(json={"status": "running", "progress": 57.9, "pageCount": 1234})
    platform.script_forever("read_export", Fault(cut="before_response"), after=[reading])
    action.clock = VirtualClock(real_rate=1.0)

    ended = action.run(platform, job_id="export-finished", timeout="1m", outage_tolerance="1h")

    assert (ended.reason, ended.outputs["status"]) == ("timeout", "running")
    assert "Export job export-finished: still running after 1:00\n  It was last seen at 57 %, 1,234 pages.\n" in ended.error
    assert "was lost before the response was complete" in ended.error


def test_an_outage_begins_with_the_start_of_the_first_failed_attempt(action: Action, platform: Simulator) -> None:
    # almost all time passes in the first attempt
    platform.script_forever("read_export", Fault(status=503), after=[Fault(status=503, delay_seconds=0.3)])

    ended = action.run(platform, job_id="export-finished", outage_tolerance="1ms")

    assert re.search(r"No successful response for (0\.[3-9] s|[0-9.]+ s)\.", ended.error), ended.error


def test_the_last_poll_decides(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(json={"status": "running"}))
    action.clock = VirtualClock(real_rate=1.0)

    # the second poll is due after the deadline, so it is the last
    ended = action.run(platform, job_id="export-finished", timeout="1m", poll_interval="1h", max_poll_interval="1h")

    assert (ended.exit_code, platform.count("read_export")) == (0, 2)
    assert ended.outputs["bundleUrl"]


def test_a_timeout_explains_how_to_attach(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(export_seconds=3600, queue_share=0.5)

    ended = action.export(platform, timeout="150ms")

    job_id = ended.outputs["jobId"]
    assert (ended.reason, ended.outputs["status"]) == ("timeout", "queued")
    assert f"`job-id: {job_id}`" in ended.error
    assert "continues at the platform" in ended.error
    assert "`timeout`" in ended.error


@pytest.mark.parametrize("operation", ["read_export", "make_bundle"])
def test_a_job_that_this_run_started_may_be_unknown_at_first(action: Action, platform: Simulator, operation: Operation) -> None:
    platform.script(operation, Fault(status=404), Fault(status=404))

    ended = action.export(platform, outage_tolerance="30s")

    assert (ended.exit_code, ended.log.count("The API returned 404 (not found). Retrying")) == (0, 1)


def test_a_job_that_this_run_started_and_that_stays_unknown_is_lost(action: Action, platform: Simulator) -> None:
    action.clock = VirtualClock(real_rate=1.0)
    platform.script_forever("read_export", Fault(status=404, json={"error": "no such job"}, headers={"X-Request-Id": "r-4"}))

    ended = action.export(platform, outage_tolerance="1h")

    job_id = ended.outputs["jobId"]
    assert (ended.exit_code, ended.reason) == (1, "not-found")
    # the reported time is only the one in which a new job may be unknown
    assert re.search(r"The API returned 404 \(not found\)\. Retrying for up to 0:(30|[0-2][0-9]), next ", ended.log)
    title, *facts = ended.error.splitlines()
    assert title.endswith(f"the platform no longer knows the job that it started as {job_id} (404)")
    assert facts[0].endswith('said: "no such job"')
    assert f"`job-id: {job_id}`" in ended.error
    assert "continues at the platform" not in ended.error
    assert facts[-1] == "  Request id r-4."


def test_a_completed_job_whose_bundle_stays_unknown_is_not_called_lost(action: Action, platform: Simulator) -> None:
    action.clock = VirtualClock(real_rate=1.0)
    platform.script_forever("make_bundle", Fault(status=404, json={"error": "no such bundle"}))

    ended = action.export(platform, outage_tolerance="1h")

    assert (ended.exit_code, ended.reason) == (1, "not-found")
    assert ended.error.splitlines()[0].endswith("the export is completed, but the platform made no bundle link (404)")
    assert f"Run the action with `job-id: {ended.outputs['jobId']}` in a few minutes." in ended.error


def test_a_retry_after_does_not_exceed_the_time_for_an_unknown_job(action: Action, platform: Simulator) -> None:
    action.clock = VirtualClock(real_rate=1.0)
    platform.script_forever("read_export", Fault(status=404, headers={"Retry-After": "3600"}))

    ended = action.export(platform, outage_tolerance="2h")

    assert (ended.reason, platform.count("read_export")) == ("not-found", 2)


@pytest.mark.parametrize("operation", ["read_export", "make_bundle"])
def test_an_unknown_attached_job_fails_at_once(action: Action, platform: Simulator, operation: Operation) -> None:
    platform.script(operation, Fault(status=404))

    ended = action.run(platform, job_id="export-finished")

    assert (ended.reason, platform.count(operation)) == ("not-found", 1)


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        *(("start_export", 307), ("start_export", 302), ("read_export", 301), ("read_export", 308)),
        *(("make_bundle", 303), ("make_bundle", 308)),
    ],
)
def test_a_redirect_is_not_followed(
    action: Action, make_platform: Callable[..., Simulator], operation: Operation, status: int
) -> None:
    platform, elsewhere = make_platform(export_seconds=0), make_platform()
    target = elsewhere.base_url.removeprefix("http://")
    location = f"http://user:secret-word@{target}/v1/elsewhere?token=secret-word#secret-word"
    platform.script(operation, Fault(status=status, headers={"Location": location}))

    ended = action.export(platform)

    assert (ended.exit_code, ended.reason) == (1, "bad-response")
    assert f"the API redirects to {target}/v1/elsewhere ({status})\n" in ended.error
    assert "secret-word" not in ended.stdout + ended.summary
    assert elsewhere.requests == []
    assert platform.count(operation) == 1


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("/login?to=secret-word", "the API redirects to {host}/login (302)"),
        ("login", "the API redirects to {host} (302)"),
        ("//sso.example.com", "the API redirects to sso.example.com (302)"),
        ("http://:80", "the API redirects to :80 (302)"),
        ("https://[::1", "the API redirects to an address that cannot be read (302)"),
        ("", "the API returned 302 (found), a redirect without a target"),
        (None, "the API returned 302 (found), a redirect without a target"),
    ],
)
def test_any_location_is_a_redirect(action: Action, platform: Simulator, location: str | None, message: str) -> None:
    headers = b"" if location is None else f"Location: {location}\r\n".encode()
    platform.script("read_export", Fault(raw=b"HTTP/1.1 302 Found\r\n" + headers + b"Content-Length: 0\r\n\r\n"))

    ended = action.run(platform, job_id="export-finished")

    assert (ended.exit_code, ended.reason, platform.count("read_export")) == (1, "bad-response", 1)
    host = platform.base_url.removeprefix("http://")
    assert ended.error.splitlines()[0] == f"Export job export-finished: {message.format(host=host)}"
    assert "secret-word" not in ended.stdout + ended.summary


def test_no_cookie_is_kept(action: Action, platform: Simulator) -> None:
    cookie = Fault(headers={"Set-Cookie": "session=abc; Path=/"})
    platform.script("start_export", cookie)
    platform.script("read_export", cookie, cookie)

    ended = action.export(platform)

    assert ended.exit_code == 0
    assert not any("Cookie" in request.headers for request in platform.requests)


def test_reads_of_agent_jobs_are_retried_too(action: Action, platform: Simulator) -> None:
    platform.script("read_agent_job", Fault(status=502), None, Fault(cut="in_body"))
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.1)
    agent = {"mode": "agent", "project_id": "demo-project", "job_id": "agent-pull-request"}

    ended = action.run(platform, outage_tolerance="1m", **agent)

    assert (ended.exit_code, ended.log.count("The API is responding again")) == (0, 2)
