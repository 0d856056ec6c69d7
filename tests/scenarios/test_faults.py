"""Every fault at every request, once, three times and forever.

The run ends as the interface says.
"""

import itertools
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

import pytest

from admin_api_simulator import ExportPlan, Fault
from tests.action import run_virtually
from tests.archives import KINDS, SMALL_SITE
from tests.ended import Ended
from tests.forms import BY_DOMAIN, BY_PROJECT, FORMS, by_project
from tests.virtual_platform import API_URL, STORAGE_URL, Sent, Trouble, VirtualPlatform
from tests.virtual_time import VirtualClock

# thousands of runs of lines that other tests reach, which coverage would slow down
pytestmark = pytest.mark.no_cover

JSON: Final[Mapping[str, str]] = {"Content-Type": "application/json"}
HTML: Final[Mapping[str, str]] = {"Content-Type": "text/html"}


class Operation(Enum):
    """The request that a fault affects; the value is the heading of its column."""

    START = "start"
    READ_EXPORT = "read export"
    READ_AGENT = "read agent job"
    BUNDLE = "bundle"
    LINK = "link of a completed job"
    FIRST_BYTE = "download, first byte"
    MIDDLE = "download, middle"

    @property
    def is_download(self) -> bool:
        """Whether the request goes to the storage."""
        return self in {Operation.FIRST_BYTE, Operation.MIDDLE}


class Nature(Enum):
    """The meaning of a fault for the client.

    Together with the operation, it determines the expected result.
    """

    UNREACHED = auto()
    UNTRUSTED = auto()
    LOST = auto()
    HARMLESS = auto()
    TOO_SHORT = auto()
    REDIRECT = auto()
    REFUSED = auto()
    NOT_PROCESSED = auto()
    RETRY_AFTER_TOO_LONG = auto()
    FOREIGN = auto()
    LOGIN_PAGE = auto()
    BLOCKED = auto()
    MISSING_FIELD = auto()
    UNUSABLE_FIELD = auto()


How = OSError | Fault | Callable[[str], bytes]
"""What a fault does.

It is an error of the connection, what the simulator does instead of its normal response, or what
makes a body of the normal JSON.
"""


def untrusted(code: int, reason: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    error.verify_message = reason
    return error


def status(number: int, **headers: str) -> Fault:
    return Fault(status=number, headers={"X-Request-Id": f"req-{number}", **headers})


def statuses(*numbers: int) -> dict[str, Fault]:
    return {str(number): status(number) for number in numbers}


def with_retry_after(number: int, *texts: str) -> dict[str, Fault]:
    faults = {}
    for text in texts:
        faults[f"{number}, `Retry-After`: {text}"] = status(number, **{"Retry-After": text})
    return faults


def redirects() -> dict[str, Fault]:
    faults = {}
    for number in (301, 302, 303, 307, 308):
        for name, address in ADDRESSES.items():
            faults[f"{number}, {name}"] = Fault(status=number, headers={"Location": address})
    return faults


ADDRESSES: Final = {"same host": "/elsewhere", "other host": "https://elsewhere.example.com/x"}
DATED: Final = {
    "Retry-After": "Mon, 04 May 2026 12:00:07 GMT",
    "Date": "Mon, 04 May 2026 12:00:00 GMT",
}
HUGE: Final = {"Retry-After": "999999999"}

FAULTS: Final[Mapping[Nature, Mapping[str, How]]] = {
    Nature.UNREACHED: {
        "connection refused": ConnectionRefusedError(),
        "name not resolved": socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        "connect timeout": TimeoutError(),
        "TLS handshake cut": ssl.SSLEOFError(),
    },
    Nature.UNTRUSTED: {
        "certificate not trusted": untrusted(18, "self-signed certificate"),
        "certificate expired": untrusted(10, "certificate has expired"),
        "certificate of another host": untrusted(62, "hostname mismatch"),
    },
    Nature.LOST: {
        "no response (read timeout)": Fault(delay_seconds=3600.0),
        "empty response": Fault(cut="before_response", processed=True),
        "half a header": Fault(cut="in_headers"),
        "half a body": Fault(cut="in_body"),
        "not HTTP": Fault(raw=b"SSH-2.0-server\r\n"),
        "endless header": Fault(raw=b"HTTP/1.1 200 OK\r\n" + b"X-More: and more\r\n" * 10_000),
        "one byte a second": Fault(drip_seconds=1.0),
        "`Content-Length` too long": Fault(headers={"Content-Length": "2000000"}),
        "chunk of negative size": Fault(
            raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}"
        ),
        "invalid gzip": Fault(headers={"Content-Encoding": "gzip"}),
        "endless 1xx": Fault(raw=b"HTTP/1.1 102 Processing\r\n\r\n" * 1000),
        "101": Fault(raw=b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
        "999": Fault(raw=b"HTTP/1.1 999 Who Knows\r\nContent-Length: 0\r\n\r\n"),
        **statuses(408, 425, 500, 501, 503, 504, 599),
        **with_retry_after(503, "-7", "soon"),
        "502, HTML": Fault(status=502, body="<html><h1>502 Bad Gateway</h1></html>", headers=HTML),
    },
    Nature.TOO_SHORT: {"`Content-Length` too short": Fault(headers={"Content-Length": "20"})},
    Nature.REDIRECT: redirects(),
    Nature.REFUSED: statuses(400, 401, 403, 404, 409, 410, 413, 422),
    Nature.BLOCKED: {
        "403, HTML": Fault(status=403, body="<html><h1>Attention</h1></html>", headers=HTML)
    },
    Nature.NOT_PROCESSED: {
        "429": status(429),
        **with_retry_after(429, "7", "-7", "soon"),
        **with_retry_after(503, "7"),
        "429, `Retry-After`: a date": status(429, **DATED),
        "503, `Retry-After`: a date": status(503, **DATED),
    },
    Nature.RETRY_AFTER_TOO_LONG: {
        "429, `Retry-After`: huge": status(429, **HUGE),
        "503, `Retry-After`: huge": status(503, **HUGE),
    },
    Nature.LOGIN_PAGE: {
        "200 with HTML": Fault(body="<!doctype html><title>Log in</title>", headers=HTML)
    },
    Nature.FOREIGN: {
        **statuses(300, 304, 305, 306),
        "204": Fault(status=204),
        "200 with Brotli": Fault(
            body=b"\x1b\x10\x00\x00\x24\x81\x82", headers={**JSON, "Content-Encoding": "br"}
        ),
        "200 with nothing": Fault(body=""),
        "200 with truncated JSON": Fault(body='{"status": "compl', headers=JSON),
        "200 with JSON array": Fault(json=[{"status": "completed"}]),
        "200 with 2 MiB": Fault(body='{"status": "completed"'.ljust(2**21) + "}", headers=JSON),
        "200 with deep nesting": Fault(
            body=f'{{"deep": {"[" * 100_000}{"]" * 100_000}}}', headers=JSON
        ),
        "200 with UTF-16": Fault(body='{"status": "completed"}'.encode("utf-16"), headers=JSON),
    },
    Nature.HARMLESS: {
        "200 with duplicate keys": lambda text: (
            f'{{"status": 7, "jobId": 7, "bundleUrl": 7, {text[1:]}'.encode()
        ),
        "200 with NaN": lambda text: f'{text[:-1]}, "progress": NaN, "load": -Infinity}}'.encode(),
        "200 with byte order mark": lambda text: text.encode("utf-8-sig"),
        "200 with Latin-1": lambda text: f'{text[:-1]}, "note": "d\u00e9j\u00e0 vu"}}'.encode(
            "latin-1"
        ),
    },
    Nature.MISSING_FIELD: {
        "200 with a missing field": Fault(json={"progress": 5}),
        "200 with a field of another type": Fault(json={"status": 7, "jobId": [7], "bundleUrl": 7}),
    },
    Nature.UNUSABLE_FIELD: {
        "200 with lone surrogate": Fault(
            body=r'{"status": "x\ud800", "jobId": "x\ud800", "bundleUrl": "https://x\ud800"}',
            headers=JSON,
        ),
    },
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A fault with its meaning."""

    name: str
    nature: Nature
    how: How

    @property
    def status(self) -> int | None:
        """The status of the response, if the fault is a status."""
        return self.how.status if isinstance(self.how, Fault) else None

    def trouble_in(self, normal: str) -> OSError | Fault:
        """Return what happens to a request whose normal response is this JSON."""
        if isinstance(self.how, OSError | Fault):
            return self.how
        return Fault(body=self.how(normal), headers=JSON, processed=True)

    def __str__(self) -> str:
        return self.name


def all_rows() -> list[Row]:
    rows: list[Row] = []
    for nature, faults in FAULTS.items():
        rows += [Row(name=name, nature=nature, how=how) for name, how in faults.items()]
    return rows


ROWS: Final = all_rows()

OK: Final = "ok"
ARCHIVE: Final = KINDS["tar.gz"](SMALL_SITE) + bytes(40_000)  # gzip ignores zeros at the end
MIDDLE: Final = 600
"""The bytes after which the storage cuts the first response.

A fault then meets the request for the rest.
"""

TIMES: Final = (1, 3, None)
"""How often a fault occurs; None is forever."""

MAX_PLAYED: Final = 3
"""How often a fault occurs among refusals for lack of room."""

API_REASONS: Final = {401: "unauthorized", 403: "forbidden", 404: "not-found"}
MAX_SECONDS: Final = 45 * 60.0
"""The longest run on its own clock: `timeout` and an outage."""

MAX_REQUESTS: Final = 400
"""Half an hour of polling, or an outage with its attempts."""


def final(reason: str) -> tuple[str, str, str]:
    return reason, reason, reason


def temporary(reason: str) -> tuple[str, str, str]:
    return OK, OK, reason


def expected(row: Row, operation: Operation) -> tuple[str, str, str]:
    """Return how runs end in which a fault occurs once, three times and forever.

    Each end is `OK` or a `failureReason`.
    """
    if operation.is_download:
        return at_the_storage(row, operation)
    return at_the_api(row, operation)


AT_THE_API: Final = {
    Nature.UNTRUSTED: final("unavailable"),  # waiting does not fix a certificate
    Nature.HARMLESS: final(OK),
    Nature.REDIRECT: final("bad-response"),  # the key is not sent to another address
    # one last attempt at the end of `outage-tolerance` or, of a start, of `start-timeout`
    Nature.RETRY_AFTER_TOO_LONG: (OK, "unavailable", "unavailable"),
}


def at_the_api(row: Row, operation: Operation) -> tuple[str, str, str]:
    is_start = operation is Operation.START
    nature = row.nature
    is_first = operation in {Operation.START, Operation.READ_AGENT}
    if nature in AT_THE_API:
        return AT_THE_API[nature]
    if nature is Nature.LOGIN_PAGE and is_first:
        # before the API's first successful response, `base-url` is wrong
        return final("bad-response")
    if is_start and row.status == 409:
        # another export of the site is running
        return temporary("rejected")
    if nature is Nature.REFUSED or (nature is Nature.BLOCKED and is_first):
        return refused(row, operation)
    if nature in {Nature.MISSING_FIELD, Nature.UNUSABLE_FIELD}:
        if operation in {Operation.START, Operation.BUNDLE}:
            return final("bad-response")
        if nature is Nature.MISSING_FIELD:
            return temporary("unavailable")
        # a completed job gets its link within 30 s
        if operation is Operation.LINK:
            return temporary("bad-response")
        # an unknown status is that of a job that runs
        return temporary("timeout")
    if is_start and nature not in {Nature.UNREACHED, Nature.NOT_PROCESSED}:
        # the platform may have started the export
        return final("start-unconfirmed")
    return temporary("unavailable")


def refused(row: Row, operation: Operation) -> tuple[str, str, str]:
    if row.status == 404 and operation is not Operation.START:
        # a new job may be unknown for 30 s
        return temporary("not-found")
    if row.status == 409 and operation is Operation.BUNDLE:
        # the platform is still packing
        return temporary("unavailable")
    return final(API_REASONS.get(row.status or 0, "rejected"))


def at_the_storage(row: Row, operation: Operation) -> tuple[str, str, str]:
    nature = row.nature
    is_first = operation is Operation.FIRST_BYTE
    if nature is Nature.UNTRUSTED:
        return final("download-failed")
    if row.name == "invalid gzip":
        return final(OK)
    if row.name == "`Content-Length` too long" and not is_first:
        # the length of the first response decides
        return final(OK)
    if nature is Nature.TOO_SHORT and is_first:
        # only the storage knows the length: the archive's checksums detect the error
        return final("invalid-bundle")
    if nature is Nature.RETRY_AFTER_TOO_LONG:
        return OK, "download-failed", "download-failed"
    if nature in {Nature.REFUSED, Nature.BLOCKED} and row.status not in {400, 401, 403, 404, 410}:
        if is_first:
            return final("download-failed")
        # the storage may refuse only the range, so the download starts over once
        return OK, "download-failed", "download-failed"
    return temporary("download-failed")


LINK: Final = f'"bundleUrl": "{STORAGE_URL}/b", "expiresAt": "2026-05-04T15:04:00Z"'
PULL_REQUEST: Final = '"prLink": "https://git.example.com/docs/pull/7"'
NORMAL: Final = {
    Operation.START: '{"jobId": "se_1", "status": "queued"}',
    Operation.READ_EXPORT: f'{{"status": "completed", {LINK}}}',
    Operation.READ_AGENT: f'{{"status": "completed", {PULL_REQUEST}}}',
    Operation.BUNDLE: f"{{{LINK}}}",
    Operation.LINK: f'{{"status": "completed", {LINK}}}',
    Operation.FIRST_BYTE: "",
    Operation.MIDDLE: "",
}
"""The JSON of the normal responses, which some faults change."""


class Played:
    """Plays a fault at an operation, so many times."""

    def __init__(self, row: Row, operation: Operation, times: int | None) -> None:
        self._row = row
        self._operation = operation
        self._times = times
        self._has_cut = False
        self._reads = 0
        self.starts: list[Trouble] = []
        self.count = 0

    def __call__(self, sent: Sent) -> Trouble:
        operation = operation_of(sent)
        trouble = self._trouble(operation)
        if operation is Operation.START:
            self.starts.append(trouble)
        return trouble

    def _trouble(self, operation: Operation) -> Trouble:
        if operation is Operation.READ_EXPORT and self._operation is Operation.LINK:
            self._reads += 1
            if self._reads > 1:  # the first one has shown that the job is completed
                operation = Operation.LINK
        if operation is Operation.FIRST_BYTE and self._operation is Operation.MIDDLE:
            operation = Operation.MIDDLE
            if not self._has_cut:
                self._has_cut = True
                return Fault(cut="in_body", cut_after_bytes=MIDDLE)
        if operation is not self._operation or self.count == self._times:
            return None
        self.count += 1
        return self._row.trouble_in(NORMAL[operation])


def operation_of(sent: Sent) -> Operation:
    if not sent.url.startswith(API_URL):
        return Operation.FIRST_BYTE
    if sent.method == "POST":
        return Operation.BUNDLE if sent.target.endswith("/bundle") else Operation.START
    return Operation.READ_AGENT if "/agent/" in sent.target else Operation.READ_EXPORT


def run_with(
    played: Played, operation: Operation, times: int | None, form: str
) -> tuple[Ended, VirtualPlatform]:
    platform = VirtualPlatform(
        VirtualClock(), trouble=played, job_ids=["se_1", "se_2"], export_seconds=5, pages=12
    )
    plan = ExportPlan(job_id="se_1", seconds=5, bundle=ARCHIVE)
    if operation is Operation.LINK:
        plan = replace(plan, seconds=0, link_delay_seconds=5)
    platform.simulator.plan_export("docs.example.com", plan)
    if operation in {Operation.READ_EXPORT, Operation.BUNDLE, Operation.LINK}:
        platform.simulator.script_forever("download", Fault(body=ARCHIVE))
    tolerance = "1m" if times is None else "20m"
    inputs = {"timeout": "30m", "outage-tolerance": tolerance, "start-timeout": "20m"}
    if operation is Operation.READ_AGENT:
        inputs |= {"mode": "agent", "project-id": "demo-project", "job-id": "agent-pull-request"}
    else:
        inputs |= {
            "domain": "docs.example.com",
            "bundle-path": "b.tar.gz",
            "site-path": "site",
            "values-file": "v.yaml",
        }
    if form == BY_PROJECT:
        inputs = by_project(inputs)
    return run_virtually(platform, inputs), platform


DELIVERED: Final = {"bundleUrl", "bundlePath", "bundleSha256", "sitePath", "valuesFile"}
OF_THE_RUNNER: Final = {"home", "temp", "env", "path", "state"}


def check(ended: Ended, end: str, operation: Operation, played: Played) -> None:
    """Check what holds for every run, whatever its end."""
    is_ok = end == OK
    assert ended.exit_code == (0 if is_ok else 1), ended.stdout
    assert len(ended.errors) == ended.exit_code
    assert (ended.result["failureReason"] or OK) == end
    assert "Traceback" not in ended.stdout
    assert ended.summary
    assert played.count > 0, "the fault was not played"
    if is_ok or operation is not Operation.START:
        assert ended.outputs["jobId"]
    check_delivery(ended, end, operation)
    check_starts(played)


def check_delivery(ended: Ended, end: str, operation: Operation) -> None:
    files = {path.split("/")[0] for path in ended.left} - OF_THE_RUNNER
    delivered = DELIVERED & {*ended.outputs}
    if end == OK and operation is not Operation.READ_AGENT:
        assert files == {"b.tar.gz", "site", "v.yaml"}
        assert delivered == DELIVERED
        return
    # an invalid archive is kept for inspection
    assert files == ({"b.tar.gz"} if end == "invalid-bundle" else set())
    assert "bundleUrl" not in delivered


def check_starts(played: Played) -> None:
    """Check that at most one start may have been processed."""
    assert len([start for start in played.starts if maybe_processed(start)]) <= 1


def maybe_processed(trouble: Trouble) -> bool:
    """Return whether the platform may have processed a start that had this trouble."""
    if isinstance(trouble, OSError):
        return False
    return trouble is None or not is_refused(trouble)


def is_refused(fault: Fault) -> bool:
    if fault.status in {409, 429}:
        return True
    return fault.status == 503 and "Retry-After" in fault.headers


class PlayedWithoutRoom(Played):
    """Plays a fault at the start, with refusals for lack of room before, between and after."""

    def __init__(self, row: Row, times: int) -> None:
        super().__init__(row, Operation.START, times)
        self._refusals = itertools.cycle([status(409), None, status(429), None])
        self.refused = 0

    def _trouble(self, operation: Operation) -> Trouble:
        if operation is Operation.START:
            refusal = next(self._refusals)
            if refusal is not None:
                self.refused += 1
                return refusal
        return super()._trouble(operation)


ONLY_BY_PROJECT: Final = {Operation.LINK}
NOT_BY_PROJECT: Final = {Operation.READ_AGENT, Operation.BUNDLE}
REQUESTS_BY_DOMAIN: Final = [
    (BY_DOMAIN, operation) for operation in Operation if operation not in ONLY_BY_PROJECT
]
REQUESTS_BY_PROJECT: Final = [
    (BY_PROJECT, operation) for operation in Operation if operation not in NOT_BY_PROJECT
]


def id_of(parameter: str | Operation) -> str:
    return parameter.value if isinstance(parameter, Operation) else parameter


@pytest.mark.parametrize(
    ("form", "operation"), [*REQUESTS_BY_DOMAIN, *REQUESTS_BY_PROJECT], ids=id_of
)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_run_ends_as_the_interface_says(row: Row, operation: Operation, form: str) -> None:
    for times, end in zip(TIMES, expected(row, operation), strict=True):
        played = Played(row, operation, times)

        ended, platform = run_with(played, operation, times, form)

        assert (ended.reason or OK) == end, f"{times} times\n{ended.stdout}"
        check(ended, end, operation, played)
        assert platform.clock.elapsed < MAX_SECONDS
        assert len(platform.simulator.requests) < MAX_REQUESTS


SHORT: Final = [row for row in ROWS if row.nature is not Nature.RETRY_AFTER_TOO_LONG]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("row", SHORT, ids=str)
def test_no_start_is_sent_again_that_may_have_been_processed_whatever_had_no_room(
    row: Row, form: str
) -> None:
    end = expected(row, Operation.START)[0]  # a wait for room is not an outage
    if row.nature is Nature.LOGIN_PAGE:
        end = "start-unconfirmed"  # the API has answered before: it is not a wrong `base-url`
    played = PlayedWithoutRoom(row, MAX_PLAYED)

    ended, _ = run_with(played, Operation.START, None, form)

    assert (ended.reason or OK) == end, ended.stdout
    check(ended, end, Operation.START, played)
    is_repeated = row.nature in {Nature.UNREACHED, Nature.NOT_PROCESSED} or row.status == 409
    assert played.refused == (4 if is_repeated else 1)
