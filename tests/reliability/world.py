"""A platform and its storage, byte for byte, behind host names that resolve to the server which a cell of the fault matrix needs.

Everything uses real sockets and real TLS. Only the resolver is replaced: it decides whether a name has an address, and which
server ("door") that address leads to.
"""

import contextlib
import io
import json
import random
import re
import socket
import ssl
import struct
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import trustme

from tests.archives import KINDS, Site
from tests.faults import Operation
from tests.integration.raw import RawServer, read_request
from tests.ports import refusing_port, unresponsive_port

KEY: Final = "adm:k3y%2B+\"<&>'\\/=|`_*~[]();,$x"
"""An admin key with characters that encodings escape."""

SIGNATURE: Final = "s1gn4ture-of-the-link-2c9e"
"""The secret part of a bundle's link, which only outputs and the values file may contain."""

DOMAIN: Final = "docs.example.com"
PROJECT: Final = "prj_1"
JOB: Final = "se_3f9a2c1b"
PULL_REQUEST: Final = "https://git.example.com/docs/pull/7"
EXPIRES_AT: Final = "2099-05-04T15:04:00Z"
ETAG: Final = '"9b1c-e07a"'
PIECE_BYTES: Final = 64 * 1024

Address = tuple[Any, Any, int, str, tuple[str, int]]


class Door(Enum):
    """The server that a name resolves to. The bad ones have the name of their fault."""

    GOOD = "the server"
    REFUSED = "connection refused"
    FULL = "connect timeout"
    CUT = "TLS handshake cut"
    UNTRUSTED = "certificate not trusted"
    EXPIRED = "certificate expired"
    MISNAMED = "certificate of another host"
    NOWHERE = "name not resolved"


SITE: Final = Site(
    files={
        "index.html": b"<h1>Docs</h1>",
        "assets/search.bin": random.Random(7).randbytes(300_000),  # noqa: S311  # incompressible content, not a secret
    }
)
ARCHIVE: Final = KINDS["tar.gz"](SITE)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A request for which a fault is played: its connection, and the response that it would get otherwise."""

    connection: socket.socket
    asked: str
    host: str
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_json(self) -> bool:
        """Whether the request goes to the API."""
        return self.headers["Content-Type"] == "application/json"

    @property
    def good(self) -> bytes:
        """The complete response without a fault."""
        return self.head() + self.body

    def head(self, status: int | None = None, **changed: str | None) -> bytes:
        """Return the response's head, with another status or changed headers (`Content_Type=…`, None removes one)."""
        headers: dict[str, str | None] = {"Content-Length": str(len(self.body)), **self.headers}
        headers |= {name.replace("_", "-"): text for name, text in changed.items()}
        return head_of(status or self.status, {name: text for name, text in headers.items() if text is not None})

    def reset(self) -> None:
        """End the connection with a reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


Play = Callable[[Turn], None]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A received request: its host, operation and bytes, and the response's status, if any."""

    host: str
    operation: Operation | None
    content: bytes
    status: int | None
    retry_after: bool = False


@dataclass
class Scene:
    """The platform of one cell: the operation with the fault, how often it is played (None: forever), and the run's progress."""

    number: int
    operation: Operation
    door: Door
    play: Play | None
    turns: int | None
    seen: list[Seen] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    played: int = 0
    started: bool = False
    reads: int = 0
    links: int = 0
    broken: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def api_host(self) -> str:
        return f"api-{self.number}.example.test"

    @property
    def storage_host(self) -> str:
        return f"storage-{self.number}.example.test"

    @property
    def link(self) -> str:
        """The latest link of the bundle."""
        return f"https://{self.storage_host}/exports/{JOB}/bundle.tar.gz?made={self.links}&X-Signature={SIGNATURE}"

    def operation_of_connection(self, host: str) -> Operation | None:
        """Return the operation of a new connection; None for a job's first poll, which always succeeds."""
        if host != self.api_host:
            return Operation.MIDDLE if self.broken else Operation.FIRST_BYTE
        if self.operation is Operation.READ_AGENT:
            return Operation.READ_AGENT if self.reads == 1 else None
        if not self.started:
            return Operation.START
        return (None, Operation.READ_EXPORT, Operation.BUNDLE)[min(self.reads, 2)]

    def operation_of_request(self, asked: str, host: str) -> Operation | None:
        """Return the operation of a request; None for a job's first poll, which always succeeds."""
        if host != self.api_host:
            return Operation.MIDDLE if self.broken else Operation.FIRST_BYTE
        if asked.startswith("POST"):
            return Operation.BUNDLE if "/bundle " in asked else Operation.START
        if self.reads == 0:
            return None
        return Operation.READ_AGENT if "/agent/" in asked else Operation.READ_EXPORT

    def take_turn(self, operation: Operation | None) -> bool:
        """Count and return whether the fault is to be played for an operation."""
        with self.lock:
            if operation is not self.operation or (self.turns is not None and self.played >= self.turns):
                return False
            self.played += 1
            return True


class World:
    """The servers of any number of scenes. Leaving `with` closes them.

    `other_authorities` is a file with an unused authority, in place of the public ones.
    """

    def __init__(self) -> None:
        self._authority = trustme.CA()
        self._scenes: dict[int, Scene] = {}
        self._stack = contextlib.ExitStack()
        self._ports: dict[Door, int] = {}
        self._resolve = socket.getaddrinfo
        self.other_authorities = Path()

    @property
    def authority_pem(self) -> bytes:
        """The certificate of the trusted authority."""
        return bytes(self._authority.cert_pem.bytes())

    def __enter__(self) -> Self:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="world-")))
        self.other_authorities = folder / "others.pem"
        self.other_authorities.write_bytes(trustme.CA().cert_pem.bytes())
        yesterday = datetime.now(UTC) - timedelta(days=1)
        contexts = {
            Door.GOOD: _tls(self._authority),
            Door.UNTRUSTED: _tls(trustme.CA()),
            Door.EXPIRED: _tls(self._authority, until=yesterday),
            Door.MISNAMED: _tls(self._authority, "other.example.net"),
        }
        for door, context in contexts.items():
            self._ports[door] = self._stack.enter_context(RawServer(self._serve, tls=context)).port
        self._ports[Door.CUT] = self._stack.enter_context(RawServer(_cut_handshake)).port
        _, self._ports[Door.REFUSED] = self._stack.enter_context(refusing_port())
        _, self._ports[Door.FULL] = self._stack.enter_context(unresponsive_port())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._stack.close()

    def add(self, scene: Scene) -> None:
        """Register a scene, so that its names resolve."""
        self._scenes[scene.number] = scene

    def resolve(self, host: str, port: int, *args: Any, **options: Any) -> list[Address]:
        """Replace `socket.getaddrinfo`."""
        scene = self._scene_of(host)
        if scene is None:
            return self._resolve(host, port, *args, **options)  # type: ignore[return-value]  # the same tuples
        scene.hosts.append(host)
        fails = scene.door is not Door.GOOD and scene.take_turn(scene.operation_of_connection(host))
        door = scene.door if fails else Door.GOOD
        if door is Door.NOWHERE:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", self._ports[door]))]

    def _scene_of(self, host: object) -> Scene | None:
        found = re.fullmatch(r"[a-z]+-([0-9]+)\.example\.test", host) if isinstance(host, str) else None
        return self._scenes[int(found[1])] if found else None

    def _serve(self, connection: socket.socket) -> None:
        while content := read_request(connection):
            asked, *lines = content.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
            headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
            scene = self._scene_of(headers["host"])
            assert scene is not None
            if not _Exchange(scene, connection, asked, headers, content).respond():
                return


class _Exchange:
    """One request, and its response or the scene's fault."""

    def __init__(self, scene: Scene, connection: socket.socket, asked: str, headers: dict[str, str], content: bytes) -> None:
        self._scene = scene
        self._connection = connection
        self._asked = asked
        self._headers = headers
        self._content = content
        self._host = headers["host"]

    def respond(self) -> bool:
        """Respond, and return whether the connection is kept."""
        scene = self._scene
        operation = scene.operation_of_request(self._asked, self._host)
        fails = scene.play is not None and scene.take_turn(operation)
        status, headers, body = self._answer()
        turn = Turn(connection=self._connection, asked=self._asked, host=self._host, status=status, headers=headers, body=body)
        if fails:
            assert scene.play is not None
            self._play(turn, scene.play, operation)
            return False
        self._see(operation, status)
        if scene.operation is Operation.MIDDLE and not scene.broken and operation is Operation.FIRST_BYTE:
            scene.broken = True
            self._connection.sendall(turn.head() + body[: len(body) // 2])
            turn.reset()
            return False
        self._advance(operation)
        keeps = scene.door is Door.GOOD and self._host == scene.api_host
        self._connection.sendall(turn.head(Connection="keep-alive" if keeps else "close") + body)
        return keeps

    def _play(self, turn: Turn, play: Play, operation: Operation | None) -> None:
        recording = _RecordingConnection(self._connection)
        try:
            play(
                Turn(
                    connection=recording,  # type: ignore[arg-type]  # has the methods of a socket that faults use
                    asked=turn.asked,
                    host=turn.host,
                    status=turn.status,
                    headers=turn.headers,
                    body=turn.body,
                )
            )
        finally:
            self._see(operation, recording.status, retry_after=recording.has_retry_after)

    def _see(self, operation: Operation | None, status: int | None, *, retry_after: bool = False) -> None:
        seen = Seen(host=self._host, operation=operation, content=self._content, status=status, retry_after=retry_after)
        self._scene.seen.append(seen)

    def _advance(self, operation: Operation | None) -> None:
        """Record the progress of the run after a complete response."""
        if operation is Operation.START:
            self._scene.started = True
        elif self._asked.startswith("GET") and self._host == self._scene.api_host:
            self._scene.reads += 1

    def _answer(self) -> tuple[int, dict[str, str], bytes]:
        if self._host != self._scene.api_host:
            return self._file_or_range()
        return 200, {"Content-Type": "application/json"}, json.dumps(self._json_body()).encode()

    def _json_body(self) -> dict[str, object]:
        first = self._scene.reads == 0
        if "/agent/" in self._asked:
            source = {"repository": "https://git.example.com/docs", "ref": "main"}
            link = None if first else PULL_REQUEST
            return {"id": JOB, "status": "active" if first else "completed", "source": source, "prLink": link}
        if self._asked.split(" ")[1].endswith("/bundle"):
            self._scene.links += 1
            return {"bundleUrl": self._scene.link, "expiresAt": EXPIRES_AT}
        if self._asked.startswith("POST"):
            return {"jobId": JOB, "status": "queued"}
        return {"status": "running" if first else "completed", "progress": 40 if first else 100, "pageCount": 5 if first else 12}

    def _file_or_range(self) -> tuple[int, dict[str, str], bytes]:
        """Return the response of an object storage that supports ranges."""
        headers = {"Content-Type": "application/gzip", "ETag": ETAG}
        wanted = re.fullmatch(r"bytes=([0-9]+)-", self._headers.get("range", ""))
        if wanted is None or self._headers.get("if-range") != ETAG:
            return 200, headers, ARCHIVE
        begin, size = int(wanted[1]), len(ARCHIVE)
        if begin >= size:
            return 416, {**headers, "Content-Range": f"bytes */{size}"}, b""
        return 206, {**headers, "Content-Range": f"bytes {begin}-{size - 1}/{size}"}, ARCHIVE[begin:]


class _RecordingConnection:
    """A connection that records the status sent on it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sent = io.BytesIO()

    @property
    def status(self) -> int | None:
        """The last status that was sent, after any interim ones."""
        found = re.findall(rb"^HTTP/1\.1 ([0-9]{3})", self._sent.getvalue(), re.MULTILINE)
        return int(found[-1]) if found else None

    @property
    def has_retry_after(self) -> bool:
        """Whether a valid `Retry-After` was sent."""
        return re.search(rb"^Retry-After: ([0-9]+|.* GMT)\r", self._sent.getvalue(), re.MULTILINE) is not None

    def sendall(self, content: bytes) -> None:
        if self._sent.tell() < PIECE_BYTES:
            self._sent.write(content[:PIECE_BYTES])
        self._connection.sendall(content)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def head_of(status: int, headers: dict[str, str]) -> bytes:
    """Return the head of a response."""
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {text}" for name, text in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")


def _tls(authority: trustme.CA, name: str = "*.example.test", *, until: datetime | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    since = until - timedelta(days=1) if until is not None else None
    authority.issue_cert(name, not_before=since, not_after=until).configure_cert(context)
    return context


def _cut_handshake(connection: socket.socket) -> None:
    connection.recv(16)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
