"""Ports of this machine that accept no connection."""

import contextlib
import socket
from collections.abc import Iterator

Address = tuple[str, int]


@contextlib.contextmanager
def refusing_port(host: str = "127.0.0.1") -> Iterator[Address]:
    """Reserve a port that refuses connections; no other process gets it."""
    with socket.socket() as reserved:
        reserved.bind((host, 0))  # and not listening
        yield reserved.getsockname()


@contextlib.contextmanager
def unresponsive_port(host: str = "127.0.0.1") -> Iterator[Address]:
    """Listen on a port whose accept queue is full: further connection attempts get no answer."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind((host, 0))
        listening.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listening.getsockname())
        yield listening.getsockname()
