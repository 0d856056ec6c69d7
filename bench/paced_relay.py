"""A network of so many bytes a second in front of a server: what loopback is not."""

import socket
import threading
import time
from contextlib import suppress
from typing import Final, Self

BLOCK_BYTES: Final = 64 * 1024


class PacedRelay:
    """Passes connections on to a port of this machine, and what that sends at a pace. Use it as a context.

    The server hears its own name in requests, because links are signed for it.
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
        with suppress(OSError):  # closed: the end
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            asking = threading.Thread(target=self._ask, args=(client, server), daemon=True)
            asking.start()
            self._answer(server, client)
            with suppress(OSError):  # the other side may have gone
                client.shutdown(socket.SHUT_RDWR)
            asking.join()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        own, other = (f"127.0.0.1:{port}".encode() for port in (self.port, self._target[1]))
        with suppress(OSError):  # either side may go at any time
            while block := client.recv(BLOCK_BYTES):
                server.sendall(block.replace(b"\r\nHost: " + own, b"\r\nHost: " + other))
            server.shutdown(socket.SHUT_WR)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        began, sent = time.monotonic(), 0
        with suppress(OSError):  # the same
            while block := server.recv(BLOCK_BYTES):
                client.sendall(block)
                sent += len(block)
                time.sleep(max(began + sent / self._bytes_a_second - time.monotonic(), 0.0))
