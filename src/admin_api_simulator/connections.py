"""TCP connections, numbered over both ports in the order of their arrival."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from aiohttp import web

LONGEST_LINE_BYTES = 1 << 20

Port = Literal["api", "storage"]
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Connections:
    """Counts the connections of each port."""

    def __init__(self) -> None:
        self._ports: list[Port] = []

    def add(self, port: Port) -> int:
        """Count a connection; return its number, from 1."""
        self._ports.append(port)
        return len(self._ports)

    def count(self, port: Port) -> int:
        """Return the number of connections of a port."""
        return self._ports.count(port)


class CountingServer(web.Server):
    """The server of one port, which counts its connections."""

    def __init__(self, handler: Handler, *, port: Port, connections: Connections) -> None:
        super().__init__(handler, handler_cancellation=True)
        self._port: Port = port
        self._connections_of_ports = connections

    def __call__(self) -> web.RequestHandler:
        """Return the protocol of the next connection."""
        return _Connection(self)

    def add_connection(self) -> int:
        """Count a connection; return its number."""
        return self._connections_of_ports.add(self._port)


class _Connection(web.RequestHandler):
    """One connection. It has its number once it is established: with TLS, after the handshake."""

    number = 0

    def __init__(self, server: CountingServer) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # as aiohttp itself does
            max_line_size=LONGEST_LINE_BYTES,
            max_field_size=LONGEST_LINE_BYTES,
        )
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        self.number = self._server.add_connection()
        super().connection_made(transport)


def number_of(request: web.BaseRequest) -> int:
    """Return the number of a request's connection, 0 for one that was not counted."""
    return request.protocol.number if isinstance(request.protocol, _Connection) else 0
