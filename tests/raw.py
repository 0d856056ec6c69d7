"""A server whose every byte a test decides, for behavior that no HTTP server has."""

import contextlib
import re
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable
from typing import Any, Self

Handler = Callable[[socket.socket], None]


class RawServer(socketserver.ThreadingTCPServer):
    """Listens on a loopback port and calls `handle` with each connection in a new thread.

    Leaving `with` shuts down every connection, so a waiting handler reads the end of the stream.
    """

    request_queue_size = 100

    def __init__(self, handle: Handler, *, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.port: int = self.server_address[1]
        scheme = "http" if tls is None else "https"
        self.base_url = f"{scheme}://127.0.0.1:{self.port}"
        self._handle = handle
        self._tls = tls
        self._accepted: list[socket.socket] = []

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return len(self._accepted)

    def get_request(self) -> Any:
        connection, address = super().get_request()
        if self._tls is not None:
            # the first read makes the handshake, in the connection's own thread
            connection = self._tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        self._accepted.append(connection)
        return connection, address

    # the unused argument is in the base class's signature
    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        with contextlib.suppress(OSError):  # the client has gone, or does not trust the certificate
            self._handle(request)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.01,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        for connection in self._accepted:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()  # waits for the handlers


def read_request(connection: socket.socket) -> bytes:
    """Return a request, or the part of it before the end of the stream, which may be empty."""
    request = b""
    while not _is_complete(request):
        more = connection.recv(65536)
        if not more:
            break
        request += more
    return request


def _is_complete(request: bytes) -> bool:
    head, blank_line, body = request.partition(b"\r\n\r\n")
    if not blank_line:
        return False
    length = re.search(rb"(?mi)^content-length: *([0-9]+)", head)
    return length is None or len(body) >= int(length[1])


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
