"""The faults that tests play: one table for the unit tests and the scenarios."""

import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from admin_api_simulator import Fault

JSON: Final[Mapping[str, str]] = {"Content-Type": "application/json"}
HTML: Final[Mapping[str, str]] = {"Content-Type": "text/html"}


class Operation(Enum):
    """The request that a fault affects; the value is the heading of its column."""

    START = "start"
    READ_EXPORT = "read export"
    READ_AGENT = "read agent job"
    BUNDLE = "bundle"
    FIRST_BYTE = "download, first byte"
    MIDDLE = "download, middle"

    @property
    def is_download(self) -> bool:
        """Whether the request goes to the storage."""
        return self in {Operation.FIRST_BYTE, Operation.MIDDLE}


class Nature(Enum):
    """The meaning of a fault for the client, which determines the expected result together with the operation."""

    UNREACHED = auto()
    UNTRUSTED = auto()
    LOST = auto()
    HARMLESS = auto()
    TOO_SHORT = auto()
    REDIRECT = auto()
    ODD_REDIRECT = auto()
    REFUSED = auto()
    NOT_PROCESSED = auto()
    RETRY_AFTER_TOO_LONG = auto()
    FOREIGN = auto()
    LOGIN_PAGE = auto()
    BLOCKED = auto()
    TOO_LARGE = auto()
    MISSING_FIELD = auto()
    UNUSABLE_FIELD = auto()


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """A fault. `trouble` is an error of the connection, or what the simulator does instead of its normal response.

    `change` makes the body out of the normal JSON.
    """

    name: str
    nature: Nature
    trouble: OSError | Fault | None = None
    change: Callable[[str], bytes] | None = None

    @property
    def status(self) -> int | None:
        """The status of the response, if the fault is a status."""
        return self.trouble.status if isinstance(self.trouble, Fault) else None

    def trouble_in(self, normal: str) -> OSError | Fault | None:
        """Return what happens to a request whose normal response is this JSON."""
        return self.trouble if self.change is None else Fault(body=self.change(normal), headers=JSON)

    def __str__(self) -> str:
        return self.name


def _untrusted(code: int, reason: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, reason
    return error


_CONNECTION: Final[dict[str, tuple[Nature, OSError]]] = {
    "connection refused": (Nature.UNREACHED, ConnectionRefusedError()),
    "name not resolved": (Nature.UNREACHED, socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
    "connect timeout": (Nature.UNREACHED, TimeoutError()),
    "TLS handshake cut": (Nature.UNREACHED, ssl.SSLEOFError()),
    "certificate not trusted": (Nature.UNTRUSTED, _untrusted(18, "self-signed certificate")),
    "certificate expired": (Nature.UNTRUSTED, _untrusted(10, "certificate has expired")),
    "certificate of another host": (Nature.UNTRUSTED, _untrusted(62, "hostname mismatch")),
}

_RESPONSE: Final[dict[str, tuple[Nature, Fault]]] = {
    "no response (read timeout)": (Nature.LOST, Fault(delay_seconds=3600.0)),
    "empty response": (Nature.LOST, Fault(cut="before_response", processed=True)),
    "half a header": (Nature.LOST, Fault(cut="in_headers")),
    "half a body": (Nature.LOST, Fault(cut="in_body")),
    "not HTTP": (Nature.LOST, Fault(raw=b"SSH-2.0-server\r\n")),
    "endless header": (Nature.LOST, Fault(raw=b"HTTP/1.1 200 OK\r\n" + b"X-More: and more\r\n" * 10_000)),
    "one byte a second": (Nature.LOST, Fault(drip_seconds=1.0)),
    "`Content-Length` too long": (Nature.LOST, Fault(headers={"Content-Length": "2000000"})),
    "`Content-Length` too short": (Nature.TOO_SHORT, Fault(headers={"Content-Length": "20"})),
    "chunk of negative size": (Nature.LOST, Fault(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}")),
    "invalid gzip": (Nature.LOST, Fault(headers={"Content-Encoding": "gzip"})),
    "endless 1xx": (Nature.LOST, Fault(raw=b"HTTP/1.1 102 Processing\r\n\r\n" * 1000)),
}

_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
_FINAL: Final = (400, 401, 403, 404, 409, 410, 413, 422)
_TEMPORARY: Final = (408, 425, 500, 501, 503, 504, 599)

_RETRY_AFTER: Final[dict[str, tuple[Nature, Nature, Mapping[str, str]]]] = {  # after 429, and after 503
    "seconds": (Nature.NOT_PROCESSED, Nature.NOT_PROCESSED, {"Retry-After": "7"}),
    "date": (
        Nature.NOT_PROCESSED,
        Nature.NOT_PROCESSED,
        {"Retry-After": "Mon, 04 May 2026 12:00:07 GMT", "Date": "Mon, 04 May 2026 12:00:00 GMT"},
    ),
    "negative": (Nature.NOT_PROCESSED, Nature.LOST, {"Retry-After": "-7"}),
    "garbage": (Nature.NOT_PROCESSED, Nature.LOST, {"Retry-After": "soon"}),
    "huge": (Nature.RETRY_AFTER_TOO_LONG, Nature.RETRY_AFTER_TOO_LONG, {"Retry-After": "999999999"}),
}

_BODIES: Final[dict[str, tuple[Nature, Fault | Callable[[str], bytes]]]] = {
    "HTML": (Nature.LOGIN_PAGE, Fault(body="<!doctype html><title>Log in</title>", headers=HTML)),
    "Brotli": (Nature.FOREIGN, Fault(body=b"\x1b\x10\x00\x00\x24\x81\x82", headers={**JSON, "Content-Encoding": "br"})),
    "nothing": (Nature.FOREIGN, Fault(body="")),
    "truncated JSON": (Nature.FOREIGN, Fault(body='{"status": "compl', headers=JSON)),
    "JSON array": (Nature.FOREIGN, Fault(json=[{"status": "completed"}])),
    "2 MiB": (Nature.TOO_LARGE, Fault(body='{"status": "completed"'.ljust(2**21) + "}", headers=JSON)),
    "deep nesting": (Nature.FOREIGN, Fault(body=f'{{"deep": {"[" * 100_000}{"]" * 100_000}}}', headers=JSON)),
    "UTF-16": (Nature.FOREIGN, Fault(body='{"status": "completed"}'.encode("utf-16"), headers=JSON)),
    "duplicate keys": (Nature.HARMLESS, lambda text: f'{{"status": 7, "jobId": 7, "bundleUrl": 7, {text[1:]}'.encode()),
    "NaN": (Nature.HARMLESS, lambda text: f'{text[:-1]}, "progress": NaN, "load": -Infinity}}'.encode()),
    "byte order mark": (Nature.HARMLESS, lambda text: text.encode("utf-8-sig")),
    "Latin-1": (Nature.HARMLESS, lambda text: f'{text[:-1]}, "note": "d\u00e9j\u00e0 vu"}}'.encode("latin-1")),
    "a missing field": (Nature.MISSING_FIELD, Fault(json={"progress": 5})),
    "a field of another type": (Nature.MISSING_FIELD, Fault(json={"status": 7, "jobId": [7], "bundleUrl": 7})),
    "lone surrogate": (
        Nature.UNUSABLE_FIELD,
        Fault(body=r'{"status": "x\ud800", "jobId": "x\ud800", "bundleUrl": "https://x\ud800"}', headers=JSON),
    ),
}


def _statuses() -> list[Row]:
    natures = dict.fromkeys(_FINAL, Nature.REFUSED) | dict.fromkeys(_TEMPORARY, Nature.LOST) | {429: Nature.NOT_PROCESSED}
    rows = {str(status): (natures[status], _status(status)) for status in sorted(natures)}
    rows["502, HTML"] = (Nature.LOST, Fault(status=502, body="<html><h1>502 Bad Gateway</h1></html>", headers=HTML))
    rows["403, HTML"] = (Nature.BLOCKED, Fault(status=403, body="<html><h1>Attention</h1></html>", headers=HTML))
    for kind, (after_429, after_503, headers) in _RETRY_AFTER.items():
        for status, nature in ((429, after_429), (503, after_503)):
            rows[f"{status}, `Retry-After`: {kind}"] = (nature, _status(status, **headers))
    rows["204"] = (Nature.FOREIGN, Fault(status=204))
    rows["101"] = (Nature.LOST, Fault(raw=b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"))
    rows["999"] = (Nature.LOST, Fault(raw=b"HTTP/1.1 999 Who Knows\r\nContent-Length: 0\r\n\r\n"))
    return [Row(name=name, nature=nature, trouble=fault) for name, (nature, fault) in sorted(rows.items())]


def _status(status: int, **headers: str) -> Fault:
    return Fault(status=status, headers={"X-Request-Id": f"req-{status}", **headers})


FAULTS: Final[tuple[Row, ...]] = (
    *(Row(name=name, nature=nature, trouble=error) for name, (nature, error) in _CONNECTION.items()),
    *(Row(name=name, nature=nature, trouble=fault) for name, (nature, fault) in _RESPONSE.items()),
    *(
        Row(
            name=f"{status}, {name}",
            nature=Nature.REDIRECT if status in _FOLLOWED else Nature.ODD_REDIRECT,
            trouble=Fault(status=status, headers={"Location": location}),
        )
        for status in range(301, 309)
        for name, location in {"same host": "/elsewhere", "other host": "https://elsewhere.example.com/x"}.items()
    ),
    *_statuses(),
    *(
        Row(name=f"200 with {name}", nature=nature, trouble=how)
        if isinstance(how, Fault)
        else Row(name=f"200 with {name}", nature=nature, change=how)
        for name, (nature, how) in _BODIES.items()
    ),
)
