"""A server whose every byte a test decides, for behavior that no HTTP server has."""

import contextlib
import re
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Handler = Callable[[socket.socket], None]


class RawServer:
    """Listens on a loopback port and calls `handle` with each connection in a new thread.

    Leaving `with` shuts down every connection, so a waiting handler reads the end of the stream.
    """

    def __init__(self, handle: Handler, *, tls: ssl.SSLContext | None = None) -> None:
        self._handle = handle
        self._tls = tls
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.base_url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._lock = threading.Lock()
        self._closing = False

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        with self._lock:
            return len(self._connections)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        with self._lock:
            self._closing = True
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                self._connections.append(connection)
                if self._closing:
                    connection.shutdown(socket.SHUT_RDWR)
                thread = threading.Thread(target=self._serve, args=(connection, len(self._connections) - 1))
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        client_errors = contextlib.suppress(ConnectionError, BrokenPipeError, ssl.SSLError, TimeoutError)
        with contextlib.closing(connection), client_errors:
            if self._tls is None:
                self._handle(connection)
                return
            with self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False) as secured:
                with self._lock:
                    self._connections[number] = secured
                    if self._closing:
                        return
                secured.do_handshake()
                self._handle(secured)
                with contextlib.suppress(ValueError, OSError):  # the handler may have ended the connection
                    secured.settimeout(0)  # only to send close_notify, not to wait for the client's
                    secured.unwrap()


def read_request(connection: socket.socket) -> bytes:
    """Return a request, or the part before the end of the stream; empty at the end of the stream."""
    request = b""
    while _is_incomplete(request) and (more := connection.recv(65536)):
        request += more
    return request


def _is_incomplete(request: bytes) -> bool:
    head, blank_line, body = request.partition(b"\r\n\r\n")
    length = re.search(rb"(?mi)^content-length: *([0-9]+)", head)
    return not blank_line or (length is not None and len(body) < int(length[1]))


def hold(connection: socket.socket) -> None:
    """Read until the client or the server ends the connection, and never respond."""
    while connection.recv(65536):
        pass


def tunnel(client: socket.socket, *, to: int) -> None:
    """Act as an HTTP proxy that forwards every CONNECT to one port of this machine."""
    assert read_request(client).startswith(b"CONNECT ")
    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    with socket.create_connection(("127.0.0.1", to)) as server:
        back = threading.Thread(target=_forward, args=(server, client))
        back.start()
        _forward(client, server)
        back.join()


def _forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
