"""A body that is cut is never taken for a complete one."""

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import trustme

from docs_platform_action.api.client import ApiClient
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Request, Timeouts, Transport
from docs_platform_action.http.trust import create_ssl_context
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, cut, read_request

End = Callable[[socket.socket], None]

OK = b"HTTP/1.1 200 OK\r\n"
BODY = b'{"number": 7}'
CHUNKS = b"d\r\n" + BODY + b"\r\n0\r\n\r\n"


def close(_connection: socket.socket) -> None:
    """Let the server end the connection as the protocol asks."""


@dataclass(frozen=True, kw_only=True)
class Wire:
    """Plain HTTP, or TLS with a certificate that the client trusts."""

    server_context: ssl.SSLContext | None
    client_context: ssl.SSLContext

    @contextlib.contextmanager
    def client(self, answer: bytes, end: End) -> Iterator[ApiClient]:
        """Yield a client of a server that sends `answer`, and ends the connection."""

        def handle(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(answer)
            end(connection)

        with RawServer(handle, tls=self.server_context) as server:
            yield api_client_to(server.base_url, transport=Transport(self.client_context))


def encrypted(version: ssl.TLSVersion) -> Wire:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    context.minimum_version = context.maximum_version = version
    return Wire(server_context=context, client_context=create_ssl_context(authority.cert_pem.bytes().decode()))


WIRES: dict[str, Callable[[], Wire]] = {
    "http": lambda: Wire(server_context=None, client_context=create_ssl_context(None)),
    "TLS 1.2": lambda: encrypted(ssl.TLSVersion.TLSv1_2),
    "TLS 1.3": lambda: encrypted(ssl.TLSVersion.TLSv1_3),
}


@pytest.fixture(scope="module", params=WIRES)
def wire(request: pytest.FixtureRequest) -> Wire:
    return WIRES[request.param]()


@pytest.mark.parametrize("end", [close, cut])
@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 14\r\n\r\n" + BODY,
        OK + b"Content-Length: 14\r\n\r\n",
        *(OK + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS[:count] for count in (0, 1, 9, len(CHUNKS) - 5)),
    ],
    ids=["13 of 14 bytes", "none of 14 bytes", "no chunk", "half a size", "half a chunk", "no last chunk"],
)
def test_a_body_that_is_cut_is_an_error(wire: Wire, answer: bytes, end: End) -> None:
    with wire.client(answer, end) as client, pytest.raises(NetworkError) as caught:
        client.send(Request(method="GET", url="/v1/job"), Timeouts())

    assert caught.value.maybe_processed


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("framing", [b"\r\n" + BODY, b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS[:-2]])
def test_a_body_without_an_end_whose_tls_connection_is_cut_is_an_error(version: ssl.TLSVersion, framing: bytes) -> None:
    with encrypted(version).client(OK + framing, cut) as client, pytest.raises(NetworkError) as caught:
        client.send(Request(method="GET", url="/v1/job"), Timeouts())

    assert caught.value.maybe_processed


@pytest.mark.parametrize(
    "framing",
    [
        b"\r\n" + BODY,
        b"Content-Length: 13\r\n\r\n" + BODY,
        b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    ],
    ids=["end of the connection", "length", "chunks"],
)
def test_a_whole_body_is_read(wire: Wire, framing: bytes) -> None:
    with wire.client(OK + framing, close) as client:
        response = client.send(Request(method="GET", url="/v1/job"), Timeouts())

    assert response.body == {"number": 7}
