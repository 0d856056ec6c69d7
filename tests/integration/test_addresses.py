"""A host with several addresses is reached if one of them can be, and its message says what was tried if none can."""

import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Iterator
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

HOST = "api.example.test"
OutputPath = tuple[str, int]
UNUSABLE: OutputPath = ("127.0.6.1", 1)
UNUSABLE_FAMILY = {"127.0.6.1": socket.AF_INET6}


@contextlib.contextmanager
def dead(address: str) -> Iterator[OutputPath]:
    """Return a place that answers nobody: its queue of connections to accept is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind((address, 0))
        listening.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening.getsockname()


@contextlib.contextmanager
def refusing(address: str) -> Iterator[OutputPath]:
    """Return a place that refuses connections: bound, so that nobody else gets the port, but not listening."""
    with socket.socket() as reserved:
        reserved.bind((address, 0))
        yield reserved.getsockname()


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have the host's name lead to places, in this order."""

    def resolve(*places: OutputPath, families: dict[str, socket.AddressFamily] | None = None) -> None:
        def found(host: str, *_: Any) -> list[Any]:
            assert host == HOST
            return [((families or {}).get(place[0], socket.AF_INET), socket.SOCK_STREAM, 6, "", place) for place in places]

        monkeypatch.setattr(socket, "getaddrinfo", found)
        monkeypatch.setattr(connection, "NEXT_ADDRESS_SECONDS", 0.0, raising=False)

    return resolve


Resolve = Callable[..., None]


def answer(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


def exchange(*, connect_seconds: float = 30.0, total_seconds: float = 60.0, in_flight: InFlight | None = None) -> int:
    """Make an exchange with the host, and give its status."""
    timeouts = Timeouts(connect_seconds=connect_seconds, total_seconds=total_seconds)
    return api_client_to(f"http://{HOST}", in_flight=in_flight).send(Request(method="GET", url="/v1/job"), timeouts).status


def failure(*, connect_seconds: float = 30.0, total_seconds: float = 60.0) -> NetworkError:
    with pytest.raises(NetworkError) as caught:
        exchange(connect_seconds=connect_seconds, total_seconds=total_seconds)
    assert not caught.value.maybe_processed
    return caught.value


def test_a_live_address_behind_dead_ones_is_reached(resolve: Resolve) -> None:
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(dead(f"127.0.0.{number}")) for number in range(2, 10)]
        live = stack.enter_context(RawServer(answer))
        resolve(*places, ("127.0.0.1", live.port))

        assert exchange() == 200


def test_a_live_address_behind_one_that_refuses_and_one_that_cannot_be_used_is_reached(resolve: Resolve) -> None:
    with refusing("127.0.0.2") as refused, RawServer(answer) as live:
        resolve(refused, UNUSABLE, ("127.0.0.1", live.port), families=UNUSABLE_FAMILY)

        assert exchange() == 200


def test_the_first_address_is_tried_alone_for_a_while(resolve: Resolve, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(answer) as first, RawServer(answer) as second:
        resolve(("127.0.0.1", first.port), ("127.0.0.1", second.port))
        monkeypatch.setattr(connection, "NEXT_ADDRESS_SECONDS", 3600)

        assert exchange() == 200
        assert (first.connections, second.connections) == (1, 0)


def test_whichever_answers_first_is_taken_and_the_others_are_closed(resolve: Resolve) -> None:
    subject, sockets = Exchange(host=HOST), []

    with dead("127.0.0.2") as place, RawServer(answer) as live:
        resolve(place, ("127.0.0.1", live.port))
        begin = socket.socket.connect

        def connect(sock: socket.socket, address: Any) -> None:
            sockets.append(sock)
            begin(sock, address)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket.socket, "connect", connect)
            sock = open_socket(HOST, 80, 30.0, (), subject)

        with sock:
            assert sock.getpeername() == ("127.0.0.1", live.port)
            assert sock.gettimeout() == 30.0
            assert [found.fileno() == -1 for found in sockets] == [True, False]
        assert subject.address_errors == {}
    subject.release()


def test_ipv6_and_ipv4_take_turns(resolve: Resolve) -> None:
    # nothing is connected to: these are no IPv6 addresses, and what is left of IPv4 refuses
    six = {f"127.0.6.{number}": socket.AF_INET6 for number in range(1, 4)}
    subject = Exchange(host=HOST)
    with refusing("127.0.0.2") as first, refusing("127.0.0.3") as second:
        resolve(*((address, 1) for address in six), first, second, families=six)

        with pytest.raises(OSError, match=r"."):
            open_socket(HOST, 80, 30.0, (), subject)

    subject.release()
    assert [*subject.address_errors] == ["127.0.6.1", "127.0.0.2", "127.0.6.2", "127.0.0.3", "127.0.6.3"]


def test_all_that_refuse_are_told_as_such(resolve: Resolve) -> None:
    with refusing("127.0.0.2") as first, refusing("127.0.0.3") as second:
        resolve(first, second)

        error = failure()

    refused = "connection refused"
    assert error.message == f"{HOST} refused the connection (tried 127.0.0.2: {refused}; 127.0.0.3: {refused})"


def test_all_that_are_dead_are_told_as_such_when_the_time_to_connect_is_up(resolve: Resolve) -> None:
    with dead("127.0.0.2") as first, dead("127.0.0.3") as second:
        resolve(first, second)

        error = failure(connect_seconds=1.0)

    assert error.message == f"{HOST} could not be reached in time (tried 127.0.0.2: timed out; 127.0.0.3: timed out)"


def test_so_are_they_when_the_time_for_the_whole_is_up(resolve: Resolve) -> None:
    with dead("127.0.0.2") as first, dead("127.0.0.3") as second:
        resolve(first, second)

        error = failure(total_seconds=2.0)

    assert error.message == f"{HOST} could not be reached in time (tried 127.0.0.2: timed out; 127.0.0.3: timed out)"


def test_what_each_failed_with_is_told_of_the_first_few(resolve: Resolve) -> None:
    with refusing("127.0.0.2") as refused, dead("127.0.0.3") as place:
        others = [(f"127.0.0.{number}", refused[1]) for number in (4, 5)]
        resolve(refused, UNUSABLE, place, *others, families=UNUSABLE_FAMILY)

        error = failure(connect_seconds=1.0)

    assert error.message.startswith(f"Could not connect to {HOST} (tried 127.0.0.2: connection refused; 127.0.6.1: ")
    assert error.message.endswith("; 127.0.0.3: timed out; 2 more)")


def test_one_address_alone_is_not_told(resolve: Resolve) -> None:
    with refusing("127.0.0.2") as refused:
        resolve(refused)

        assert failure().message == f"{HOST} refused the connection"


def test_a_name_without_an_address_is_told(resolve: Resolve) -> None:
    resolve()

    assert failure().message == f"Could not connect to {HOST}"


def test_an_abort_ends_the_tries(resolve: Resolve) -> None:
    in_flight, connecting, caught = InFlight(), threading.Event(), []

    def work() -> None:
        try:
            exchange(in_flight=in_flight)
        except Cancelled as error:
            caught.append(error)

    with dead("127.0.0.2") as first, dead("127.0.0.3") as second, pytest.MonkeyPatch.context() as patch:
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
def test_a_failed_run_says_what_was_tried(
    resolve: Resolve, make_platform: Callable[..., Any], tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform, real = make_platform(), socket.getaddrinfo
    platform.override("make_bundle", {"bundleUrl": f"https://{HOST}/bundle"})
    base_url = f"https://{HOST}" if target == "api" else platform.base_url
    inputs = {"base-url": base_url, "admin-key": ADMIN_KEY, "job-id": "export-finished", "bundle-path": "bundle"}

    with refusing("127.0.0.2") as first, refusing("127.0.0.3") as second:
        resolve(first, second)
        found = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", functools.partial(either, real, found))
        ended = run_inside({**inputs, "outage-tolerance": "1ms"}, workspace=tmp_path)

    assert ended.reason == {"api": "unavailable", "storage": "download-failed"}[target]
    assert f"{HOST} refused the connection (tried 127.0.0.2: connection refused; 127.0.0.3: connection refused)." in ended.error


def either(real: Callable[..., Any], found: Callable[..., Any], host: str, *others: Any, **options: Any) -> Any:
    return found(host) if host == HOST else real(host, *others, **options)
