"""Servers that hang, never end or cut what they send, over real sockets.

Every run ends, and takes no part for the whole.
"""

import functools
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from admin_api_simulator import Simulator
from tests.action import Action
from tests.archives import KINDS, SMALL_SITE
from tests.folders import read_tree
from tests.raw import RawServer, hold, read_request
from tests.virtual_time import VirtualClock

Handler = Callable[[socket.socket], None]

COLLECT: Final = {"mode": "collect", "job_id": "export-finished"}
ONCE: Final = {"outage_tolerance": "1ms"}
OK: Final = b"HTTP/1.1 200 OK\r\n"
ENDLESS: Final = 10**9
WAIT_SECONDS: Final = 60.0
MAX_SENT: Final = 32 * 1024 * 1024
"""Bytes that sockets and queues may hold beside the mebibyte that is read."""


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a minute of the action's clock pass in a fraction of a second.

    No request then gets a response in time.
    """
    monkeypatch.setattr("tests.action.VirtualClock", lambda **_: VirtualClock(real_rate=500.0))


def wait_for_exchanges() -> None:
    """Wait until the threads of exchanges that were given up have ended."""
    for thread in threading.enumerate():
        if thread.name == "exchange":
            thread.join(WAIT_SECONDS)
            assert not thread.is_alive()


def sending(
    head: bytes, then: bytes, *, pause_seconds: float = 0.0, sent: list[int] | None = None
) -> Handler:
    """Return a handler that sends `head`, and then `then` again and again."""

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head)
        while True:
            connection.sendall(then)
            time.sleep(pause_seconds)
            if sent is not None:
                sent.append(len(then))

    return handle


slowly = functools.partial(sending, pause_seconds=0.01)
CHUNKED: Final = b"Transfer-Encoding: chunked\r\n\r\n"
HANGING: Final[dict[str, Handler]] = {
    "no response": hold,
    "half a status line": slowly(b"HTTP/1.1 2", b""),
    "an endless header": slowly(OK + b"X-Filler: ", b"x"),
    "half a body": slowly(OK + b"Content-Length: 9\r\n\r\n{", b""),
    "a slow body": slowly(OK + b"Content-Length: %d\r\n\r\n" % ENDLESS, b" "),
    "a slow body without a length": slowly(OK + b"\r\n", b" "),
    "slow chunks": slowly(OK + CHUNKED, b"1\r\nx\r\n"),
    "a slow end of chunks": slowly(OK + CHUNKED + b"2\r\n{}\r\n0\r\n", b"X-A: b\r\n"),
}
SLOW_ERROR: Final = slowly(b"HTTP/1.1 403 Forbidden\r\n\r\n", b"x")
HANGING_STORAGES: Final = (
    HANGING["an endless header"],
    HANGING["half a body"],
    HANGING["slow chunks"],
    SLOW_ERROR,
)


class TestHanging:
    @pytest.mark.usefixtures("fast")
    @pytest.mark.parametrize("name", HANGING)
    def test_an_api_that_does_not_end_its_responses_is_unavailable(
        self, action: Action, name: str
    ) -> None:
        with RawServer(HANGING[name]) as server:
            ended = action.run(server.base_url, **COLLECT, outage_tolerance="1m")

        assert ended.end == (1, "unavailable"), ended.stdout
        assert server.connections > 1

    @pytest.mark.parametrize("handle", HANGING_STORAGES)
    def test_a_storage_that_does_not_end_its_responses_fails_the_download(
        self, action: Action, platform: Simulator, handle: Handler
    ) -> None:
        action.constants = {
            "bundle.storage.IDLE_SECONDS": 0.15,
            "bundle.storage.HEAD_SECONDS": 0.15,
            "bundle.stream.SLOW_SECONDS": 0.15,
            "http.attempts.MIN_ATTEMPT_SECONDS": 0.15,
        }

        with RawServer(handle) as storage:
            platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle"})
            ended = action.run(platform, **COLLECT, bundle_path="bundle", outage_tolerance="300ms")

        assert ended.end == (1, "download-failed"), ended.stdout
        assert read_tree(action.workspace) == {}

    @pytest.mark.usefixtures("fast")
    def test_what_was_given_up_leaves_no_thread_and_no_connection(self, action: Action) -> None:
        before = open_descriptors()

        with RawServer(HANGING["a slow body"]) as server:
            action.run(server.base_url, **COLLECT, outage_tolerance="1m")
            wait_for_exchanges()  # a byte that arrives ends them

        assert open_descriptors() <= before


def open_descriptors() -> int:
    """Return the number of files and sockets that this process has open."""
    return len([*Path("/proc/self/fd").iterdir()])


PIECE: Final = b" " * 65536
GZIP: Final = b"Content-Encoding: gzip\r\n\r\n"
FLOODS: Final = {
    "a body": (OK + b"Content-Length: %d\r\n\r\n" % ENDLESS, PIECE),
    "a body without a length": (OK + b"\r\n", PIECE),
    "chunks": (OK + CHUNKED, b"10000\r\n" + PIECE + b"\r\n"),
    "an error": (b"HTTP/1.1 403 Forbidden\r\n\r\n", b"x" * 65536),
    "a gzip header": (OK + GZIP + b"\x1f\x8b\x08\x08\0\0\0\0\0\0", b"x" * 65536),
    "empty gzip": (OK + GZIP + b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"\0\0\0\xff\xff" * 10_000),
}
"""The head of each response, and what follows it again and again."""


class TestTooLarge:
    @pytest.mark.parametrize("name", FLOODS)
    def test_of_an_endless_response_little_is_read(self, action: Action, name: str) -> None:
        head, then = FLOODS[name]
        sent: list[int] = []

        with RawServer(sending(head, then, sent=sent)) as server:
            ended = action.run(server.base_url, **COLLECT, **ONCE)
            read = sum(sent)

        reason = "forbidden" if name == "an error" else "unavailable"
        assert ended.end == (1, reason), ended.stdout
        assert read < MAX_SENT * server.connections


JSON: Final = b'{"status": "failed"}'
JSON_IN_A_CHUNK: Final = b"14\r\n" + JSON + b"\r\n0\r\n\r\n"


def responding(response: bytes) -> Handler:
    """Return a handler that sends the same response to each request."""

    def handle(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(response)

    return handle


class TestWithoutALength:
    @pytest.mark.parametrize("framing", [b"\r\n" + JSON, CHUNKED + JSON_IN_A_CHUNK])
    def test_a_body_without_a_length_is_used_once_it_is_complete(
        self, action: Action, framing: bytes
    ) -> None:
        with RawServer(responding(OK + framing)) as server:
            ended = action.run(server.base_url, **COLLECT, **ONCE)

        assert ended.end == (1, "job-failed")

    @pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
    def test_an_archive_without_a_length_is_complete_only_with_its_end(
        self, action: Action, platform: Simulator, kind: str
    ) -> None:
        archive = KINDS[kind](SMALL_SITE)
        half = archive[: len(archive) // 2]

        with RawServer(responding(OK + b"\r\n" + half)) as storage:
            platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle"})
            ended = action.run(platform, **COLLECT, **ONCE, site_path="site")

        assert ended.end == (1, "invalid-bundle")
        assert read_tree(action.workspace) == {}
