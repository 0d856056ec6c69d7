"""A host with several addresses is reached if one of them responds; otherwise the error names the tried addresses."""

import contextlib
import functools
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http import connection
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.connection import Exchange, InFlight, open_socket
from docs_platform_action.http.faults import NetworkError
from tests.action import Action
from tests.inside import run_inside
from tests.integration.parts import api_client_to
from tests.integration.raw import RawServer, read_request
from tests.keys import ADMIN_KEY
from tests.ports import Address, refusing_port, unresponsive_port
from tests.virtual_time import VirtualClock

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


def tried(message: str) -> list[str]:
    """Return what a message says about the tried addresses."""
    found = re.search(r"\(tried (.*?)\)", message)
    return found[1].split("; ") if found else []


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
    subject, begun = Exchange(host=HOST, clock=Clock()), []

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
    subject = Exchange(host=HOST, clock=Clock())
    with refusing_port("127.0.0.2") as first, refusing_port("127.0.0.3") as second:
        resolve(*((address, 1) for address in six), first, second, families=six)

        with pytest.raises(OSError, match=r"."):
            open_socket(HOST, 80, 30.0, (), subject)

    subject.release()
    assert [*subject.address_errors] == ["127.0.6.1", "127.0.0.2", "127.0.6.2", "127.0.0.3", "127.0.6.3"]


@pytest.mark.parametrize("limits", [{"connect_seconds": 1.0}, {"total_seconds": 2.0}], ids=str)
def test_unresponsive_addresses_are_named_after_a_timeout(resolve: Resolve, limits: dict[str, float]) -> None:
    with unresponsive_port("127.0.0.2") as first, unresponsive_port("127.0.0.3") as second:
        resolve(first, second)

        error = failure(**limits)

    assert tried(error.message) == ["127.0.0.2: timed out", "127.0.0.3: timed out"]


def test_while_one_address_is_unresponsive_the_errors_of_others_are_collected(resolve: Resolve) -> None:
    with refusing_port("127.0.0.2") as refused, unresponsive_port("127.0.0.3") as address:
        resolve(refused, UNUSABLE, address, ("127.0.0.4", refused[1]), families=UNUSABLE_FAMILY)

        error = failure(connect_seconds=1.0)

    refused_first, unusable, *others = tried(error.message)
    assert refused_first == "127.0.0.2: connection refused"
    assert unusable.startswith("127.0.6.1: ")
    assert others == ["127.0.0.3: timed out", "1 more"]


def test_an_abort_ends_the_attempts(resolve: Resolve) -> None:
    in_flight, connecting, caught = InFlight(Clock()), threading.Event(), []

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


class TestNames:
    """The lookup of a name counts to the time limits, and ends with them."""

    @pytest.fixture
    def silent(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
        """Look up names that begin with `silent` only at the end of the test, and return those names."""
        real, ended, asked = socket.getaddrinfo, threading.Event(), []

        def look_up(host: str, *others: Any, **options: Any) -> Any:
            if not host.startswith("silent"):
                return real(host, *others, **options)
            asked.append(host)
            assert ended.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        yield asked
        ended.set()

    @pytest.mark.usefixtures("silent")
    @pytest.mark.parametrize("limit", ["connect_seconds", "total_seconds"])
    def test_silent_name_servers_are_an_error_in_time(self, limit: str) -> None:
        timeouts = replace(Timeouts(connect_seconds=3600, total_seconds=3600), **{limit: 0.2})

        with pytest.raises(NetworkError) as caught:
            api_client_to("http://silent.example.test").send(Request(method="GET", url="/v1/job"), timeouts)

        assert "silent.example.test" in caught.value.message
        assert (caught.value.maybe_processed, caught.value.is_unknown_host) == (False, False)

    def test_a_cancel_ends_a_lookup(self, silent: list[str]) -> None:
        in_flight = InFlight(Clock())
        client = api_client_to("http://silent.example.test", in_flight=in_flight)
        hour = Timeouts(connect_seconds=3600, total_seconds=3600)

        with ThreadPoolExecutor(1) as pool:
            request = pool.submit(client.send, Request(method="GET", url="/v1/job"), hour)
            while not silent:
                time.sleep(0.001)
            in_flight.abort()

            with pytest.raises(Cancelled):
                request.result(60)

    def test_the_connect_timeout_includes_the_lookup(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = VirtualClock()

        def found_after_the_connect_timeout(*_: Any) -> list[Any]:
            clock.advance(31)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 9))]

        monkeypatch.setattr(socket, "getaddrinfo", found_after_the_connect_timeout)
        subject = Exchange(host=HOST, clock=clock)

        with pytest.raises(OSError, match=r".") as caught:
            open_socket(HOST, 80, 30.0, (), subject)
        assert type(caught.value) is OSError  # and not that a connection was refused
        subject.release()

    @pytest.mark.parametrize("target", ["api", "proxy", "storage"])
    def test_a_run_ends_although_the_name_servers_are_silent(
        self, silent: list[str], action: Action, monkeypatch: pytest.MonkeyPatch, make_platform: Callable[..., Any], target: str
    ) -> None:
        monkeypatch.setitem(Timeouts.__init__.__kwdefaults__, "connect_seconds", 0.2)
        platform = make_platform()
        platform.override("make_bundle", {"bundleUrl": "https://silent.example.test/bundle"})
        base_url = {"api": "https://silent.example.test", "proxy": "https://192.0.2.1"}.get(target, platform.base_url)
        env = {"HTTPS_PROXY": "http://silent-proxy.example.test:3128"} if target == "proxy" else {}
        inputs = {"job_id": "export-finished", "bundle_path": "bundle", "outage_tolerance": "1ms"}

        ended = action.run(base_url, env=env, **inputs)

        assert ended.reason == ("download-failed" if target == "storage" else "unavailable"), ended.stdout
        assert ("the proxy" if target == "proxy" else "silent.example.test") in ended.error
        assert len(silent) == 2  # the second attempt asks again

    @pytest.mark.parametrize("target", ["api", "proxy"])
    def test_a_run_says_that_a_name_does_not_exist(self, action: Action, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
        def unknown(*_: Any) -> Any:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        env = {"HTTPS_PROXY": "http://proxy.example.test:3128"} if target == "proxy" else {}

        ended = action.run("https://api.example.test", job_id="j", outage_tolerance="1ms", env=env)

        assert ended.reason == "unavailable"
        assert ("the proxy" if target == "proxy" else "api.example.test") in ended.error

    def test_a_mistyped_host_fails_all_domains_soon(self, action: Action, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(*_: Any) -> Any:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        action.set_constants(api__admin_api__UNKNOWN_HOST_SECONDS=0.1)
        domains = [f"docs-{number}.example.com" for number in range(30)]

        ended = action.run("https://api.example.test", domain="\n".join(domains), outage_tolerance="1h")

        results = json.loads(ended.outputs["results"])
        assert [row["failureReason"] for row in results] == ["unavailable"] * 30
        assert all("api.example.test" in row["message"] for row in results)


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
    assert tried(ended.error)[:2] == ["127.0.0.2: connection refused", "127.0.0.3: connection refused"]


def either(real: Callable[..., Any], found: Callable[..., Any], host: str, *others: Any, **options: Any) -> Any:
    return found(host) if host == HOST else real(host, *others, **options)
