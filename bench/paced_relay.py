"""Simulates a network with limited bandwidth in front of a server."""

import socket
import threading
import time
from contextlib import suppress
from typing import Final, Self

BLOCK_BYTES: Final = 64 * 1024


class PacedRelay:
    """Forwards connections to a port of this machine, and its responses at a limited rate. Use it as a context manager.

    The `Host` header of requests becomes that of the server, because links are signed for it.
    """

    def __init__(self, port: int, *, bytes_a_second: float) -> None:
        self._target = ("127.0.0.1", port)
        self._bytes_a_second = bytes_a_second
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            asking = threading.Thread(target=self._send_requests, args=(client, server), daemon=True)
            asking.start()
            self._send_responses(server, client)
            with suppress(OSError):  # the other side may have closed
                client.shutdown(socket.SHUT_RDWR)
            asking.join()

    def _send_requests(self, client: socket.socket, server: socket.socket) -> None:
        own, other = (f"127.0.0.1:{port}".encode() for port in (self.port, self._target[1]))
        with suppress(OSError):  # either side may close at any time
            while block := client.recv(BLOCK_BYTES):
                server.sendall(block.replace(b"\r\nHost: " + own, b"\r\nHost: " + other))
            server.shutdown(socket.SHUT_WR)

    def _send_responses(self, server: socket.socket, client: socket.socket) -> None:
        began, sent = time.monotonic(), 0
        with suppress(OSError):  # either side may close at any time
            while block := server.recv(BLOCK_BYTES):
                client.sendall(block)
                sent += len(block)
                time.sleep(max(began + sent / self._bytes_a_second - time.monotonic(), 0.0))
