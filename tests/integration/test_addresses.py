"""A host with several addresses is reached if one of them responds; otherwise the error names the tried addresses."""

import contextlib
import functools
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs_platform_action.errors import Cancelled
from docs_platform_action.http import connection
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.connection import Exchange, InFlight, open_socket
from docs_platform_action.http.faults import NetworkError
from tests.inside import run_inside
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, read_request
from tests.keys import ADMIN_KEY
from tests.ports import Address, refusing_port, unresponsive_port

HOST = "api.example.test"
UNUSABLE: Address = ("127.0.6.1", 1)
UNUSABLE_FAMILY = {"127.0.6.1": socket.AF_INET6}


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the addresses of the host, in order."""

    def resolve(*addresses: Address, families: dict[str, socket.AddressFamily] | None = None) -> None:
        def found(host: str, *_: Any) -> list[Any]:
            assert host == HOST
            return [
                ((families or {}).get(address[0], socket.AF_INET), socket.SOCK_STREAM, 6, "", address) for address in addresses
            ]

        monkeypatch.setattr(socket, "getaddrinfo", found)
        monkeypatch.setattr(connection, "NEXT_ADDRESS_SECONDS", 0.0, raising=False)

    return resolve


Resolve = Callable[..., None]


def answer(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def exchange(*, connect_seconds: float = 30.0, total_seconds: float = 60.0, in_flight: InFlight | None = None) -> int:
    """Send a request to the host, and return the response's status."""
    timeouts = Timeouts(connect_seconds=connect_seconds, total_seconds=total_seconds)
    return api_client_to(f"http://{HOST}", in_flight=in_flight).send(Request(method="GET", url="/v1/job"), timeouts).status


def failure(*, connect_seconds: float = 30.0, total_seconds: float = 60.0) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        exchange(connect_seconds=connect_seconds, total_seconds=total_seconds)
    assert not caught.value.maybe_processed
    return caught.value


def test_a_live_address_after_unresponsive_ones_is_reached(resolve: Resolve) -> None:
    with contextlib.ExitStack() as stack:
        addresses = [stack.enter_context(unresponsive_port(f"127.0.0.{number}")) for number in range(2, 10)]
        live = stack.enter_context(RawServer(answer))
        resolve(*addresses, ("127.0.0.1", live.port))

        assert exchange() == 200


def test_a_live_address_after_a_refusing_and_an_unusable_one_is_reached(resolve: Resolve) -> None:
    with refusing_port("127.0.0.2") as refused, RawServer(answer) as live:
        resolve(refused, UNUSABLE, ("127.0.0.1", live.port), families=UNUSABLE_FAMILY)

        assert exchange() == 200


def test_the_first_address_is_tried_alone_for_a_while(resolve: Resolve, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(answer) as first, RawServer(answer) as second:
        resolve(("127.0.0.1", first.port), ("127.0.0.1", second.port))
        monkeypatch.setattr(connection, "NEXT_ADDRESS_SECONDS", 3600)

        assert exchange() == 200
        assert (first.connections, second.connections) == (1, 0)


def test_the_first_connection_is_used_and_the_others_are_closed(resolve: Resolve) -> None:
    subject, begun = Exchange(host=HOST), []

    with unresponsive_port("127.0.0.2") as address, RawServer(answer) as live:
        resolve(address, ("127.0.0.1", live.port))
        begin = socket.socket.connect

        def connect(sock: socket.socket, address: Any) -> None:
            begun.append((sock, sock.fileno()))
            begin(sock, address)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket.socket, "connect", connect)
            sock = open_socket(HOST, 80, 30.0, (), subject)

        with sock:
            assert sock.getpeername() == ("127.0.0.1", live.port)
            assert sock.gettimeout() == 30.0
            (other, _), (_, taken) = begun
            assert (sock.fileno(), other.fileno()) == (taken, -1)
        assert subject.address_errors == {}
    subject.release()


def test_ipv6_and_ipv4_addresses_alternate(resolve: Resolve) -> None:
    # no connection succeeds: these are not IPv6 addresses, and the IPv4 ones refuse
    six = {f"127.0.6.{number}": socket.AF_INET6 for number in range(1, 4)}
    subject = Exchange(host=HOST)
    with refusing_port("127.0.0.2") as first, refusing_port("127.0.0.3") as second:
        resolve(*((address, 1) for address in six), first, second, families=six)

        with pytest.raises(OSError, match=r"."):
            open_socket(HOST, 80, 30.0, (), subject)

    subject.release()
    assert [*subject.address_errors] == ["127.0.6.1", "127.0.0.2", "127.0.6.2", "127.0.0.3", "127.0.6.3"]


def test_refused_connections_are_named(resolve: Resolve) -> None:
    with refusing_port("127.0.0.2") as first, refusing_port("127.0.0.3") as second:
        resolve(first, second)

        error = failure()

    refused = "connection refused"
    assert error.message == f"{HOST} refused the connection (tried 127.0.0.2: {refused}; 127.0.0.3: {refused})"


def test_unresponsive_addresses_are_named_after_the_connect_timeout(resolve: Resolve) -> None:
    with unresponsive_port("127.0.0.2") as first, unresponsive_port("127.0.0.3") as second:
        resolve(first, second)

        error = failure(connect_seconds=1.0)

    assert error.message == f"{HOST} could not be reached in time (tried 127.0.0.2: timed out; 127.0.0.3: timed out)"


def test_unresponsive_addresses_are_named_after_the_total_timeout(resolve: Resolve) -> None:
    with unresponsive_port("127.0.0.2") as first, unresponsive_port("127.0.0.3") as second:
        resolve(first, second)

        error = failure(total_seconds=2.0)

    assert error.message == f"{HOST} could not be reached in time (tried 127.0.0.2: timed out; 127.0.0.3: timed out)"


def test_the_errors_of_the_first_few_addresses_are_named(resolve: Resolve) -> None:
    with refusing_port("127.0.0.2") as refused, unresponsive_port("127.0.0.3") as address:
        others = [(f"127.0.0.{number}", refused[1]) for number in (4, 5)]
        resolve(refused, UNUSABLE, address, *others, families=UNUSABLE_FAMILY)

        error = failure(connect_seconds=1.0)

    assert error.message.startswith(f"Could not connect to {HOST} (tried 127.0.0.2: connection refused; 127.0.6.1: ")
    assert error.message.endswith("; 127.0.0.3: timed out; 2 more)")


def test_a_single_address_is_not_named(resolve: Resolve) -> None:
    with refusing_port("127.0.0.2") as refused:
        resolve(refused)

        assert failure().message == f"{HOST} refused the connection"


def test_a_name_without_an_address_is_reported(resolve: Resolve) -> None:
    resolve()

    assert failure().message == f"Could not connect to {HOST}"


def test_an_abort_ends_the_attempts(resolve: Resolve) -> None:
    in_flight, connecting, caught = InFlight(), threading.Event(), []

    def work() -> None:
        try:
            exchange(in_flight=in_flight)
        except Cancelled as error:
            caught.append(error)

    with unresponsive_port("127.0.0.2") as first, unresponsive_port("127.0.0.3") as second, pytest.MonkeyPatch.context() as patch:
        resolve(first, second)
        adopt = Exchange.adopt

        def noticed(exchange: Exchange, sock: socket.socket) -> None:
            adopt(exchange, sock)
            connecting.set()

        patch.setattr(Exchange, "adopt", noticed)
        thread = threading.Thread(target=work)
        thread.start()
        assert connecting.wait(60)
        in_flight.abort()
        thread.join(60)

    assert len(caught) == 1


@pytest.mark.parametrize("target", ["api", "storage"])
def test_a_failed_run_names_the_tried_addresses(
    resolve: Resolve, make_platform: Callable[..., Any], tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, real = make_platform(), socket.getaddrinfo
    platform.override("make_bundle", {"bundleUrl": f"https://{HOST}/bundle"})
    base_url = f"https://{HOST}" if target == "api" else platform.base_url
    inputs = {"base-url": base_url, "admin-key": ADMIN_KEY, "job-id": "export-finished", "bundle-path": "bundle"}

    with refusing_port("127.0.0.2") as first, refusing_port("127.0.0.3") as second:
        resolve(first, second)
        found = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", functools.partial(either, real, found))
        ended = run_inside({**inputs, "outage-tolerance": "1ms"}, workspace=tmp_path)

    assert ended.reason == {"api": "unavailable", "storage": "download-failed"}[target]
    assert f"{HOST} refused the connection (tried 127.0.0.2: connection refused; 127.0.0.3: connection refused)." in ended.error


def either(real: Callable[..., Any], found: Callable[..., Any], host: str, *others: Any, **options: Any) -> Any:
    return found(host) if host == HOST else real(host, *others, **options)
