"""The TCP connections that come in, numbered over both ports in the order in which they come."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from aiohttp import web

LONGEST_LINE_BYTES = 1 << 20

Port = Literal["api", "storage"]
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connections:
    """Keeps which port each connection came to."""

    def __init__(self) -> None:
        self._ports: list[Port] = []

    def came(self, port: Port) -> int:
        """Note a connection and return its number, from 1."""
        self._ports.append(port)
        return len(self._ports)

    def count(self, port: Port) -> int:
        """Return how many came to a port."""
        return self._ports.count(port)


class CountingServer(web.Server):
    """The HTTP library's server of one port, whose connections are noted."""

    def __init__(self, handler: Handler, *, port: Port, connections: Connections) -> None:
        super().__init__(handler, handler_cancellation=True)
        self._port: Port = port
        self._noted = connections

    def __call__(self) -> web.RequestHandler:
        """Return what serves the next connection."""
        return _Connection(self)

    def next_number(self) -> int:
        """Note a connection and return its number."""
        return self._noted.came(self._port)


class _Connection(web.RequestHandler):
    """One connection, and its number once it is there; with TLS that is after the handshake."""

    number = 0

    def __init__(self, server: CountingServer) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as the library itself does where nothing is to be logged
            max_line_size=LONGEST_LINE_BYTES,
            max_field_size=LONGEST_LINE_BYTES,
        )
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a number."""
        self.number = self._server.next_number()
        super().connection_made(transport)


def number_of(request: web.BaseRequest) -> int:
    """Return the number of the connection that a request came on, 0 where nobody counted it."""
    return request.protocol.number if isinstance(request.protocol, _Connection) else 0
