"""The faults of the matrix, with the code that plays them and their meaning for the client."""

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from enum import Enum, auto
from typing import Final

from tests.integration.raw import cut, hold
from tests.reliability.world import KEY, PIECE_BYTES, Door, Play, Turn, head_of

SCALE: Final = 15.0
"""The factor by which timeouts are shortened: 30 s without a byte are 2 s here."""

IDLE_SECONDS: Final = 5.0
"""How long a server keeps an idle connection."""

LARGE_RESPONSE_BYTES: Final = 50_000_000


class Nature(Enum):
    """The meaning of a fault, which determines the expected result together with the operation."""

    UNREACHED = auto()
    UNTRUSTED = auto()
    LOST = auto()
    HARMLESS = auto()
    ENDLESS = auto()
    DRIPPING = auto()
    TOO_SHORT = auto()
    REDIRECT = auto()
    ODD_REDIRECT = auto()
    REFUSED = auto()
    NOT_PROCESSED = auto()
    RETRY_AFTER_TOO_LONG = auto()
    FOREIGN = auto()
    TOO_LARGE = auto()
    UNUSABLE_FIELD = auto()


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row of the matrix. `door` is for connection faults, `play` and often `status` for response faults."""

    name: str
    group: str
    nature: Nature
    door: Door = Door.GOOD
    play: Play | None = None
    status: int | None = None


def _at(door: Door, name: str, nature: Nature) -> Fault:
    return Fault(name=name, group="The connection", nature=nature, door=door)


def _never_answer(turn: Turn) -> None:
    hold(turn.connection)


def _reset(turn: Turn) -> None:
    turn.reset()


def _reset_in_answer(turn: Turn) -> None:
    turn.connection.sendall(turn.head() + turn.body[: len(turn.body) // 2])
    turn.reset()


def _reset_after_answer(turn: Turn) -> None:
    """Reset the connection when the client uses it again or closes it; an earlier reset could hit the response."""
    turn.connection.sendall(turn.good)
    with contextlib.suppress(OSError):
        turn.connection.settimeout(IDLE_SECONDS)
        turn.connection.recv(1)
    turn.reset()


def _send_nothing(_turn: Turn) -> None:
    """Close the connection normally."""


def _half_a_header(turn: Turn) -> None:
    head = turn.head()
    turn.connection.sendall(head[: head.index(b"Content-Type") + 6])


def _endless_header(turn: Turn) -> None:
    turn.connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        turn.connection.sendall(b"X-More: and more\r\n" * 100)


def _endless_body(turn: Turn) -> None:
    # begins like gzip, because a download is aborted if it does not begin like an archive
    turn.connection.sendall(turn.head(200, Content_Length=None, Content_Range=None) + b"\x1f\x8b\x08")
    while True:
        turn.connection.sendall(b"x" * PIECE_BYTES)


def _drip(turn: Turn) -> None:
    for number in range(len(turn.good)):
        turn.connection.sendall(turn.good[number : number + 1])
        time.sleep(1 / SCALE)


def _too_long(turn: Turn) -> None:
    turn.connection.sendall(turn.head(Content_Length=str(len(turn.body) + 1000)) + turn.body)


def _too_short(turn: Turn) -> None:
    turn.connection.sendall(turn.head(Content_Length=str(max(len(turn.body) - 10, 0))) + turn.body)


def _cut_without_length(turn: Turn) -> None:
    """End a body without a length in the middle, and the connection without TLS's own end."""
    turn.connection.sendall(turn.head(Content_Length=None) + turn.body[: len(turn.body) // 2])
    cut(turn.connection)


def _negative_chunk(turn: Turn) -> None:
    turn.connection.sendall(turn.head(Content_Length=None, Transfer_Encoding="chunked") + b"-1\r\n" + turn.body)


def _two_responses(turn: Turn) -> None:
    other = b'{"status": "failed", "error": "another job"}'
    turn.connection.sendall(turn.good + head_of(200, {"Content-Length": str(len(other))}) + other)


def _invalid_gzip(turn: Turn) -> None:
    turn.connection.sendall(turn.head(Content_Encoding="gzip") + turn.body)


def _interim(turn: Turn) -> None:
    turn.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + turn.good)


def _endless_interim(turn: Turn) -> None:
    while True:
        turn.connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)


def _redirect(status: int, *, elsewhere: bool) -> Play:
    def play(turn: Turn) -> None:
        host = f"elsewhere-{turn.host.rpartition('-')[2]}" if elsewhere else turn.host
        turn.answer(status, b"", Location=f"https://{host}{turn.asked.split(' ')[1]}")

    return play


def _status(status: int, **headers: str) -> Play:
    """Return a play that responds with a status, and an error that echoes the key."""

    def play(turn: Turn) -> None:
        error = f"no: Authorization: Bearer {KEY}"
        xml = f"<Error><Code>No</Code><Message>{status}</Message></Error>"
        body = json.dumps({"error": error}).encode() if turn.is_json else xml.encode()
        turn.answer(status, body, X_Request_Id=f"req-{status}", **headers)

    return play


def _bad_gateway(turn: Turn) -> None:
    turn.answer(502, b"<html><h1>502 Bad Gateway</h1></html>", Content_Type="text/html")


def _retry_after(status: int, value: Callable[[], str]) -> Play:
    return lambda turn: _status(status, Retry_After=value(), Date=formatdate(usegmt=True))(turn)


def _body(content: bytes, kind: str = "application/json") -> Play:
    return lambda turn: turn.answer(200, content, Content_Type=kind)


def _large(turn: Turn) -> None:
    head = turn.head(200, Content_Length=str(LARGE_RESPONSE_BYTES), Content_Type="application/json", Content_Range=None)
    turn.connection.sendall(head + b'{"status": "')
    for _ in range(LARGE_RESPONSE_BYTES // PIECE_BYTES):
        turn.connection.sendall(b" " * PIECE_BYTES)


def _changed(change: Callable[[str], bytes]) -> Play:
    """Return a play that responds with changed JSON, also in place of a bundle."""

    def play(turn: Turn) -> None:
        text = turn.body.decode() if turn.is_json else json.dumps({"status": "completed"})
        turn.answer(turn.status if turn.is_json else 200, change(text))

    return play


def _with_lone_surrogate(text: str) -> bytes:
    """Put half of a surrogate pair into the required field."""
    found: Mapping[str, object] = json.loads(text)
    name = next(name for name in ("bundleUrl", "jobId", "status") if name in found)
    return json.dumps({**found, name: f"{found[name]}\ud800"}).encode()


_RESPONSES: Final[dict[str, tuple[Nature, Play]]] = {
    "no response (read timeout)": (Nature.LOST, _never_answer),
    "reset before the response": (Nature.LOST, _reset),
    "reset in the response": (Nature.LOST, _reset_in_answer),
    "reset after the response": (Nature.HARMLESS, _reset_after_answer),
    "empty response": (Nature.LOST, _send_nothing),
    "half a header": (Nature.LOST, _half_a_header),
    "endless header": (Nature.LOST, _endless_header),
    "endless body": (Nature.ENDLESS, _endless_body),
    "one byte a second": (Nature.DRIPPING, _drip),
    "`Content-Length` too long": (Nature.LOST, _too_long),
    "`Content-Length` too short": (Nature.TOO_SHORT, _too_short),
    "cut without a length": (Nature.LOST, _cut_without_length),
    "chunk of negative size": (Nature.LOST, _negative_chunk),
    "two responses": (Nature.HARMLESS, _two_responses),
    "invalid gzip": (Nature.LOST, _invalid_gzip),
    "1xx before the response": (Nature.HARMLESS, _interim),
    "endless 1xx": (Nature.LOST, _endless_interim),
}

_RETRY_AFTER: Final[dict[str, Callable[[], str]]] = {
    "seconds": lambda: "7",
    "date": lambda: formatdate(time.time() + 7, usegmt=True),
    "negative": lambda: "-7",
    "garbage": lambda: "soon",
    "huge": lambda: "999999999",
}

_BODIES: Final[dict[str, tuple[Nature, Play]]] = {
    "HTML": (Nature.FOREIGN, _body(b"<!doctype html><title>Log in</title>", "text/html")),
    "Brotli": (Nature.FOREIGN, lambda turn: turn.answer(200, b"\x1b\x10\x00\x00\x24\x81\x82", Content_Encoding="br")),
    "truncated JSON": (Nature.FOREIGN, _changed(lambda text: text[:-8].encode())),
    "JSON array": (Nature.FOREIGN, _changed(lambda text: f"[{text}]".encode())),
    "50 MB": (Nature.TOO_LARGE, _large),
    "deep nesting": (Nature.FOREIGN, _changed(lambda text: f'{text[:-1]}, "deep": {"[" * 100_000}{"]" * 100_000}}}'.encode())),
    "duplicate keys": (Nature.HARMLESS, _changed(lambda text: f'{{"status": 7, "jobId": 7, "bundleUrl": 7, {text[1:]}'.encode())),
    "NaN": (Nature.HARMLESS, _changed(lambda text: f'{text[:-1]}, "progress": NaN, "load": -Infinity}}'.encode())),
    "lone surrogate": (Nature.UNUSABLE_FIELD, _changed(_with_lone_surrogate)),
    "byte order mark": (Nature.HARMLESS, _changed(lambda text: text.encode("utf-8-sig"))),
    "Latin-1": (Nature.HARMLESS, _changed(lambda text: f'{text[:-1]}, "note": "d\u00e9j\u00e0 vu"}}'.encode("latin-1"))),
}

_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
_PHRASES: Final = {  # from RFC 9110 and related RFCs; Python's phrases depend on its version
    301: "Moved Permanently",
    302: "Found",
    303: "See Other",
    304: "Not Modified",
    305: "Use Proxy",
    306: "",
    307: "Temporary Redirect",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    413: "Content Too Large",
    422: "Unprocessable Content",
    425: "Too Early",
    429: "Too Many Requests",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}
_TEMPORARY: Final = frozenset({408, 425, 500, 501, 503, 504})


def _phrase(status: int) -> str:
    return f"{status} {_PHRASES[status]}".strip()


def _statuses() -> list[Fault]:
    faults = [
        Fault(
            name=_phrase(status),
            group="Statuses",
            nature=Nature.LOST if status in _TEMPORARY else Nature.REFUSED,
            play=_status(status),
            status=status,
        )
        for status in (400, 401, 403, 404, 408, 409, 410, 413, 422, 425)
    ]
    faults.append(Fault(name=_phrase(429), group="Statuses", nature=Nature.NOT_PROCESSED, play=_status(429), status=429))
    for status in (429, 503):
        for kind, value in _RETRY_AFTER.items():
            nature = Nature.RETRY_AFTER_TOO_LONG if kind == "huge" else Nature.NOT_PROCESSED
            if status == 503 and kind in {"negative", "garbage"}:
                nature = Nature.LOST
            name = f"{_phrase(status)}, `Retry-After`: {kind}"
            faults.append(Fault(name=name, group="Statuses", nature=nature, play=_retry_after(status, value), status=status))
    plain = [
        Fault(name=_phrase(status), group="Statuses", nature=Nature.LOST, play=_status(status), status=status)
        for status in (500, 501, 503, 504)
    ]
    gateway = Fault(name=f"{_phrase(502)}, HTML", group="Statuses", nature=Nature.LOST, play=_bad_gateway, status=502)
    return [*faults, *plain[:2], gateway, *plain[2:]]


FAULTS: Final[tuple[Fault, ...]] = (
    _at(Door.REFUSED, "connection refused", Nature.UNREACHED),
    _at(Door.NOWHERE, "name not resolved", Nature.UNREACHED),
    _at(Door.FULL, "connect timeout", Nature.UNREACHED),
    _at(Door.CUT, "TLS handshake cut", Nature.UNREACHED),
    _at(Door.UNTRUSTED, "certificate not trusted", Nature.UNTRUSTED),
    _at(Door.EXPIRED, "certificate expired", Nature.UNTRUSTED),
    _at(Door.MISNAMED, "certificate of another host", Nature.UNTRUSTED),
    *(Fault(name=name, group="The response", nature=nature, play=play) for name, (nature, play) in _RESPONSES.items()),
    *(
        Fault(
            name=f"{_phrase(status)}, {'other' if elsewhere else 'same'} host",
            group="Redirects",
            nature=Nature.REDIRECT if status in _FOLLOWED else Nature.ODD_REDIRECT,
            play=_redirect(status, elsewhere=elsewhere),
            status=status,
        )
        for status in range(301, 309)
        for elsewhere in (False, True)
    ),
    *_statuses(),
    *(Fault(name=f"200 with {name}", group="Bodies", nature=nature, play=play) for name, (nature, play) in _BODIES.items()),
)
