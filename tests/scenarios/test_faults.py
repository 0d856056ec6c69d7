"""Every fault at every request, once, three times and forever: the run ends as the interface says."""

import itertools
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Fault
from tests.action import run_virtually
from tests.archives import KINDS, SMALL_SITE
from tests.ended import Ended
from tests.forms import BY_DOMAIN, BY_PROJECT, FORMS, by_project
from tests.virtual_platform import API_URL, STORAGE_URL, Sent, Trouble, VirtualPlatform
from tests.virtual_time import VirtualClock

pytestmark = (
    pytest.mark.no_cover
)  # thousands of runs of lines that other tests reach, which coverage would slow down

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


Nature = Enum(
    "Nature",
    "UNREACHED UNTRUSTED LOST HARMLESS TOO_SHORT REDIRECT REFUSED NOT_PROCESSED RETRY_AFTER_TOO_LONG FOREIGN LOGIN_PAGE BLOCKED "
    "MISSING_FIELD UNUSABLE_FIELD",
)
"""The meaning of a fault for the client, which determines the expected result together with the operation."""

How = OSError | Fault | Callable[[str], bytes]
"""An error of the connection, what the simulator does instead of its normal response, or what makes a body of the normal JSON."""


def untrusted(code: int, reason: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, reason
    return error


def status(number: int, **headers: str) -> Fault:
    return Fault(status=number, headers={"X-Request-Id": f"req-{number}", **headers})


def location(number: int, address: str) -> Fault:
    return Fault(status=number, headers={"Location": address})


DATED: Final = {
    "Retry-After": "Mon, 04 May 2026 12:00:07 GMT",
    "Date": "Mon, 04 May 2026 12:00:00 GMT",
}
HUGE: Final = {"Retry-After": "999999999"}

FAULTS: Final[Mapping[Any, Mapping[str, How]]] = {
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
        **{str(number): status(number) for number in (408, 425, 500, 501, 503, 504, 599)},
        **{
            f"503, `Retry-After`: {text}": status(503, **{"Retry-After": text})
            for text in ("-7", "soon")
        },
        "502, HTML": Fault(status=502, body="<html><h1>502 Bad Gateway</h1></html>", headers=HTML),
    },
    Nature.TOO_SHORT: {"`Content-Length` too short": Fault(headers={"Content-Length": "20"})},
    Nature.REDIRECT: {
        f"{number}, {name}": location(number, address)
        for number in range(301, 309)
        for name, address in {
            "same host": "/elsewhere",
            "other host": "https://elsewhere.example.com/x",
        }.items()
    },
    Nature.REFUSED: {
        str(number): status(number) for number in (400, 401, 403, 404, 409, 410, 413, 422)
    },
    Nature.BLOCKED: {
        "403, HTML": Fault(status=403, body="<html><h1>Attention</h1></html>", headers=HTML)
    },
    Nature.NOT_PROCESSED: {
        "429": status(429),
        **{
            f"429, `Retry-After`: {text}": status(429, **{"Retry-After": text})
            for text in ("7", "-7", "soon")
        },
        "503, `Retry-After`: 7": status(503, **{"Retry-After": "7"}),
        **{f"{number}, `Retry-After`: a date": status(number, **DATED) for number in (429, 503)},
    },
    Nature.RETRY_AFTER_TOO_LONG: {
        f"{number}, `Retry-After`: huge": status(number, **HUGE) for number in (429, 503)
    },
    Nature.LOGIN_PAGE: {
        "200 with HTML": Fault(body="<!doctype html><title>Log in</title>", headers=HTML)
    },
    Nature.FOREIGN: {
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
    nature: Any
    how: How

    @property
    def status(self) -> int | None:
        """The status of the response, if the fault is a status."""
        return self.how.status if isinstance(self.how, Fault) else None

    def trouble_in(self, normal: str) -> OSError | Fault:
        """Return what happens to a request whose normal response is this JSON."""
        return (
            Fault(body=self.how(normal), headers=JSON, processed=True)
            if callable(self.how)
            else self.how
        )

    def __str__(self) -> str:
        return self.name


ROWS: Final = [
    Row(name=name, nature=nature, how=how)
    for nature, faults in FAULTS.items()
    for name, how in faults.items()
]

OK: Final = "ok"
ARCHIVE: Final = KINDS["tar.gz"](SMALL_SITE) + bytes(40_000)  # gzip ignores zeros at the end
MIDDLE: Final = 600
"""The bytes after which the storage cuts the first response, so that a fault meets the request for the rest."""

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
    """Return how runs end in which a fault occurs once, three times and forever: `OK` or a `failureReason`."""
    return at_the_storage(row, operation) if operation.is_download else at_the_api(row, operation)


AT_THE_API: Final = {
    Nature.UNTRUSTED: final("unavailable"),  # waiting does not fix a certificate
    Nature.HARMLESS: final(OK),
    Nature.REDIRECT: final("bad-response"),  # the key is not sent to another address
    # one last attempt at the end of `outage-tolerance` or, of a start, of `start-timeout`
    Nature.RETRY_AFTER_TOO_LONG: (OK, "unavailable", "unavailable"),
}


def at_the_api(row: Row, operation: Operation) -> tuple[str, str, str]:
    is_start, nature = operation is Operation.START, row.nature
    is_first = operation in {Operation.START, Operation.READ_AGENT}
    if nature in AT_THE_API:
        return AT_THE_API[nature]
    if nature is Nature.LOGIN_PAGE and is_first:
        return final(
            "bad-response"
        )  # before the API's first successful response, `base-url` is wrong
    if is_start and row.status == 409:
        return temporary("rejected")  # another export of the site is running
    if nature is Nature.REFUSED or (nature is Nature.BLOCKED and is_first):
        return refused(row, operation)
    if nature in {Nature.MISSING_FIELD, Nature.UNUSABLE_FIELD}:
        if operation in {Operation.START, Operation.BUNDLE}:
            return final("bad-response")
        if nature is Nature.MISSING_FIELD:
            return temporary("unavailable")
        # an unknown status is that of a job that runs; a completed job gets its link within 30 s
        return temporary("bad-response" if operation is Operation.LINK else "timeout")
    if is_start and nature not in {Nature.UNREACHED, Nature.NOT_PROCESSED}:
        return final("start-unconfirmed")  # the platform may have started the export
    return temporary("unavailable")


def refused(row: Row, operation: Operation) -> tuple[str, str, str]:
    if row.status == 404 and operation is not Operation.START:
        return temporary("not-found")  # a new job may be unknown for 30 s
    if row.status == 409 and operation is Operation.BUNDLE:
        return temporary("unavailable")  # the platform is still packing
    return final(API_REASONS.get(row.status or 0, "rejected"))


def at_the_storage(row: Row, operation: Operation) -> tuple[str, str, str]:
    nature, is_first = row.nature, operation is Operation.FIRST_BYTE
    if nature is Nature.UNTRUSTED:
        return final("download-failed")
    if row.name == "invalid gzip":
        return final(OK)
    if row.name == "`Content-Length` too long" and not is_first:
        return final(OK)  # the length of the first response decides
    if nature is Nature.TOO_SHORT and is_first:
        return final(
            "invalid-bundle"
        )  # only the storage knows the length: the archive's checksums detect the error
    if nature is Nature.RETRY_AFTER_TOO_LONG:
        return OK, "download-failed", "download-failed"
    if nature in {Nature.REFUSED, Nature.BLOCKED} and row.status not in {400, 401, 403, 404, 410}:
        # the storage may refuse only the range, so the download starts over once
        return final("download-failed") if is_first else (OK, "download-failed", "download-failed")
    return temporary("download-failed")


LINK: Final = f'"bundleUrl": "{STORAGE_URL}/b", "expiresAt": "2026-05-04T15:04:00Z"'
NORMAL: Final = {
    Operation.START: '{"jobId": "se_1", "status": "queued"}',
    Operation.READ_EXPORT: f'{{"status": "completed", {LINK}}}',
    Operation.READ_AGENT: '{"status": "completed", "prLink": "https://git.example.com/docs/pull/7"}',
    Operation.BUNDLE: f"{{{LINK}}}",
    Operation.LINK: f'{{"status": "completed", {LINK}}}',
    Operation.FIRST_BYTE: "",
    Operation.MIDDLE: "",
}
"""The JSON of the normal responses, which some faults change."""


class Played:
    """Plays a fault at an operation, so many times."""

    def __init__(self, row: Row, operation: Operation, times: int | None) -> None:
        self._row, self._operation, self._left = row, operation, times
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
        if operation is not self._operation or self._left == self.count:
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
    inputs = {
        "timeout": "30m",
        "outage-tolerance": "1m" if times is None else "20m",
        "start-timeout": "20m",
    }
    if operation is Operation.READ_AGENT:
        inputs |= {"mode": "agent", "project-id": "demo-project", "job-id": "agent-pull-request"}
    else:
        inputs |= {
            "domain": "docs.example.com",
            "bundle-path": "b.tar.gz",
            "site-path": "site",
            "values-file": "v.yaml",
        }
    return run_virtually(platform, by_project(inputs) if form == BY_PROJECT else inputs), platform


def check(ended: Ended, end: str, operation: Operation, played: Played) -> Iterator[str]:
    """Yield what is wrong with a run, whatever its end."""
    delivered = {"bundleUrl", "bundlePath", "bundleSha256", "sitePath", "valuesFile"} & {
        *ended.outputs
    }
    files = {path.split("/")[0] for path in ended.left if not path.startswith(("home", "temp"))} - {
        "env",
        "path",
        "state",
    }
    kept = {"b.tar.gz"} if end == "invalid-bundle" else set()  # for inspection
    is_export = operation is not Operation.READ_AGENT
    if ended.exit_code != (0 if end == OK else 1) or len(ended.errors) != ended.exit_code:
        yield f"exit code {ended.exit_code}, {len(ended.errors)} errors"
    if (ended.result["failureReason"] or OK) != end:
        yield "another reason in results"
    if files != ({"b.tar.gz", "site", "v.yaml"} if end == OK and is_export else kept):
        yield f"files {files}"
    if ("bundleUrl" in delivered, len(delivered) == 5) != (end == OK and is_export,) * 2:
        yield f"outputs {delivered}"
    if (operation is not Operation.START or end == OK) and not ended.outputs.get("jobId"):
        yield "no job ID"
    doubtful = [
        start for start in played.starts if isinstance(start, Fault) and not is_refused(start)
    ]
    if len(doubtful) + played.starts.count(None) > 1 + (
        end == OK and operation is Operation.START and not doubtful
    ):
        yield f"{len(played.starts)} starts"
    if "Traceback" in ended.stdout or not ended.summary or not played.count:
        yield "a stack trace, no summary, or no fault played"


def is_refused(fault: Fault) -> bool:
    return fault.status in {409, 429} or (fault.status == 503 and "Retry-After" in fault.headers)


class PlayedWithoutRoom(Played):
    """Plays a fault at the start, with refusals for lack of room before, between and after."""

    def __init__(self, row: Row, times: int) -> None:
        super().__init__(row, Operation.START, times)
        self._refusals = itertools.cycle([status(409), None, status(429), None])
        self.refused = 0

    def _trouble(self, operation: Operation) -> Trouble:
        if operation is Operation.START and self.refused < 2 * MAX_PLAYED:
            refusal = next(self._refusals)
            if refusal is not None:
                self.refused += 1
                return refusal
        return super()._trouble(operation)


REQUESTS: Final = [
    *((BY_DOMAIN, operation) for operation in Operation if operation is not Operation.LINK),
    *(
        (BY_PROJECT, operation)
        for operation in Operation
        if operation not in {Operation.READ_AGENT, Operation.BUNDLE}
    ),
]
"""The requests of a run with each form of the export API."""


@pytest.mark.parametrize(
    ("form", "operation"), REQUESTS, ids=lambda value: str(getattr(value, "value", value))
)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_run_ends_as_the_interface_says(row: Row, operation: Operation, form: str) -> None:
    for times, end in zip(TIMES, expected(row, operation), strict=True):
        played = Played(row, operation, times)

        ended, platform = run_with(played, operation, times, form)

        assert (ended.reason or OK, [*check(ended, end, operation, played)]) == (end, []), (
            f"{times} times\n{ended.stdout}"
        )
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

    assert (ended.reason or OK, [*check(ended, end, Operation.START, played)]) == (end, []), (
        ended.stdout
    )
    is_repeated = row.nature in {Nature.UNREACHED, Nature.NOT_PROCESSED} or row.status == 409
    assert played.refused == (4 if is_repeated else 1)
