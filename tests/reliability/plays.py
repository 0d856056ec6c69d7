"""Plays the faults of `tests/faults.py` on the wire."""

import contextlib
import json
import time
from dataclasses import replace
from typing import Final

from admin_api_simulator import Fault
from admin_api_simulator.content import pieces
from admin_api_simulator.responses import Response
from admin_api_simulator.wire import sent_parts
from tests.faults import FAULTS, Row
from tests.integration.raw import cut, hold
from tests.reliability.world import KEY, PIECE_BYTES, Door, Play, Turn, head_of

SCALE: Final = 15.0
"""The factor by which timeouts are shortened: 30 s without a byte are 2 s here."""

IDLE_SECONDS: Final = 5.0
"""How long a server keeps an idle connection."""


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


def _endless_body(turn: Turn) -> None:
    # begins like gzip, because a download is aborted if it does not begin like an archive
    turn.connection.sendall(turn.head(200, Content_Length=None, Content_Range=None) + b"\x1f\x8b\x08")
    while True:
        turn.connection.sendall(b"x" * PIECE_BYTES)


def _cut_without_length(turn: Turn) -> None:
    """End a body without a length in the middle, and the connection without TLS's own end."""
    turn.connection.sendall(turn.head(Content_Length=None) + turn.body[: len(turn.body) // 2])
    cut(turn.connection)


def _two_responses(turn: Turn) -> None:
    other = b'{"status": "failed", "error": "another job"}'
    turn.connection.sendall(turn.good + head_of(200, {"Content-Length": str(len(other))}) + other)


def _interim(turn: Turn) -> None:
    turn.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3 + turn.good)


_RAW: Final[dict[str, Play]] = {
    "reset before the response": _reset,
    "reset in the response": _reset_in_answer,
    "reset after the response": _reset_after_answer,
    "endless body": _endless_body,
    "cut without a length": _cut_without_length,
    "two responses": _two_responses,
    "1xx before the response": _interim,
}


def _simulated(row: Row) -> Play:
    """Return a play of the bytes that the simulator would send. An error echoes the key."""

    def play(turn: Turn) -> None:
        fault = row.trouble_in(turn.body.decode() if turn.is_json else json.dumps({"status": "completed"}))
        assert isinstance(fault, Fault)
        if fault.delay_seconds:
            hold(turn.connection)
            return
        if fault.body is None and (fault.status or 200) >= 400:
            xml = f"<Error><Code>No</Code><Message>{fault.status}</Message></Error>"
            error = json.dumps({"error": f"no: Authorization: Bearer {KEY}"})
            fault = replace(
                fault, body=error if turn.is_json else xml, headers={"Content-Type": "application/json", **fault.headers}
            )
        elif location := fault.headers.get("Location"):
            elsewhere = f"elsewhere-{turn.host.rpartition('-')[2]}"
            fault = replace(fault, headers={"Location": location.replace("elsewhere.example.com", elsewhere)})
        response = fault.apply(Response(status=turn.status, headers=turn.headers, body=turn.body))
        for part in sent_parts(response, fault):
            for piece in pieces(part, piece_bytes=1 if fault.drip_seconds else PIECE_BYTES):
                turn.connection.sendall(piece)
                time.sleep(fault.drip_seconds / SCALE)

    return play


def door_of(row: Row) -> Door:
    """Return the server that a fault needs."""
    return Door(row.name) if isinstance(row.trouble, OSError) else Door.GOOD


PLAYS: Final = {row.name: _RAW.get(row.name) or _simulated(row) for row in FAULTS if door_of(row) is Door.GOOD}
"""What each fault does with a request."""
