"""A lookup ends in time, whatever the name servers do, and is shared while it hangs."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from docs_platform_action.clock import Clock
from docs_platform_action.http.connection import Exchange, InFlight
from docs_platform_action.http.resolver import MAX_THREADS, ResolutionTimeout, Resolver
from tests.unit.http.test_connection import wait_until

HOST = "api.example.test"
FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", 443))]
HOUR = 3600.0


class NameServer:
    """Stands in for `getaddrinfo`: holds back its answers until `respond`, and records the questions."""

    def __init__(self) -> None:
        self.questions: list[tuple[Any, ...]] = []
        self.threads: list[threading.Thread] = []
        self.error: Exception | None = None
        self._may_respond = threading.Event()

    def respond(self, error: Exception | None = None) -> None:
        self.error = error
        self._may_respond.set()

    def __call__(self, *question: Any) -> Any:
        self.questions.append(question[:2])
        self.threads.append(threading.current_thread())
        assert self._may_respond.wait(60)
        if self.error is not None:
            raise self.error
        return FOUND


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    name_server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", name_server)
    yield name_server
    name_server.respond()
    for thread in {*name_server.threads} - {threading.current_thread()}:
        thread.join(60)


def resolve(resolver: Resolver, *, host: str = HOST, port: int = 443, seconds: float = HOUR) -> Any:
    return resolver.resolve(host, port, seconds, Exchange(host=host, clock=Clock(), resolver=resolver))


def test_the_addresses_of_a_name_are_found(name_server: NameServer) -> None:
    name_server.respond()

    assert resolve(Resolver()) == FOUND
    assert name_server.questions == [(HOST, 443)]


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.1", "::1", "fe80::1%eth0"])
def test_an_ip_address_needs_no_thread(name_server: NameServer, address: str) -> None:
    name_server.respond()

    assert resolve(Resolver(), host=address) == FOUND
    assert name_server.threads == [threading.current_thread()]


def test_silent_name_servers_end_a_lookup_after_its_time(name_server: NameServer) -> None:
    with pytest.raises(ResolutionTimeout):
        resolve(Resolver(), seconds=0.01)

    assert name_server.threads[0].daemon  # it keeps no process from ending


def test_a_lookup_takes_no_longer_than_its_exchange_without_a_watchdog(name_server: NameServer) -> None:
    resolver = Resolver()

    with pytest.raises(ResolutionTimeout):
        resolver.resolve(HOST, 443, HOUR, Exchange(host=HOST, clock=Clock(), resolver=resolver, ends_at=0.0))

    assert name_server.questions == [(HOST, 443)]


def test_the_watchdog_ends_a_lookup(name_server: NameServer) -> None:
    resolver, in_flight = Resolver(), InFlight(Clock())
    exchange = Exchange(host=HOST, clock=Clock(), resolver=resolver)

    with ThreadPoolExecutor(1) as pool, in_flight.watch(exchange, HOUR):
        lookup = pool.submit(resolver.resolve, HOST, 443, HOUR, exchange)
        wait_until(lambda: len(name_server.questions) == 1)
        in_flight.extend(exchange, 0)

        with pytest.raises(ResolutionTimeout):
            lookup.result(60)


def test_an_abort_ends_a_lookup_at_once(name_server: NameServer) -> None:
    resolver = Resolver()
    exchanges = [Exchange(host=HOST, clock=Clock(), resolver=resolver) for _ in range(3)]

    with ThreadPoolExecutor(3) as pool:
        lookups = [pool.submit(resolver.resolve, HOST, 443, HOUR, exchange) for exchange in exchanges]
        wait_until(lambda: len(name_server.questions) == 1)
        for exchange in exchanges:
            exchange.abort()

        for lookup in lookups:
            with pytest.raises(ResolutionTimeout):
                lookup.result(60)


def in_threads(pool: ThreadPoolExecutor, resolver: Resolver, count: int) -> list[Future[Any]]:
    return [pool.submit(resolve, resolver) for _ in range(count)]


class TestSharing:
    def test_all_that_wait_for_a_name_share_a_lookup(self, name_server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
        waiting = []

        class Counted(threading.Condition):
            def wait(self, timeout: float | None = None) -> bool:
                waiting.append(timeout)
                return super().wait(timeout)

        with monkeypatch.context() as patch:
            patch.setattr(threading, "Condition", Counted)
            resolver = Resolver()
        with ThreadPoolExecutor(20) as pool:
            lookups = in_threads(pool, resolver, 20)
            wait_until(lambda: len(waiting) == 20)
            name_server.respond()

            assert [lookup.result(60) for lookup in lookups] == [FOUND] * 20
        assert name_server.questions == [(HOST, 443)]

    def test_an_attempt_after_one_that_waited_in_vain_asks_again(
        self, name_server: NameServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        resolver = Resolver()
        with pytest.raises(ResolutionTimeout):
            resolve(resolver, seconds=0.001)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: FOUND)

        assert resolve(resolver) == FOUND
        name_server.respond(socket.gaierror(socket.EAI_AGAIN, "try again"))
        name_server.threads[0].join(60)
        assert resolve(resolver) == FOUND

    def test_the_threads_for_a_name_are_few(self, name_server: NameServer) -> None:
        resolver = Resolver()

        for _ in range(10):
            with pytest.raises(ResolutionTimeout):
                resolve(resolver, seconds=0.001)

        assert len(name_server.questions) == MAX_THREADS

    def test_without_another_thread_it_waits_for_the_first(
        self, name_server: NameServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        resolver = Resolver()
        with pytest.raises(ResolutionTimeout):
            resolve(resolver, seconds=0.001)
        monkeypatch.setattr(threading.Thread, "start", refuse)

        with pytest.raises(ResolutionTimeout):
            resolve(resolver, seconds=0.001)

        assert name_server.questions == [(HOST, 443)]

    def test_a_later_attempt_gets_the_answer_of_a_lookup_that_hung(
        self, name_server: NameServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        resolver = Resolver()
        with pytest.raises(ResolutionTimeout):
            resolve(resolver, seconds=0.001)
        another = NameServer()
        monkeypatch.setattr(socket, "getaddrinfo", another)

        with ThreadPoolExecutor(1) as pool:
            lookup = pool.submit(resolve, resolver)
            wait_until(lambda: len(another.questions) == 1)
            name_server.respond()

            assert lookup.result(60) == FOUND
        another.respond(socket.gaierror(socket.EAI_AGAIN, "try again"))
        another.threads[0].join(60)

    def test_a_name_is_looked_up_again_after_an_answer(self, name_server: NameServer) -> None:
        resolver = Resolver()
        name_server.respond(socket.gaierror(socket.EAI_AGAIN, "try again"))
        with pytest.raises(socket.gaierror):
            resolve(resolver)
        name_server.respond()

        assert [resolve(resolver), resolve(resolver)] == [FOUND, FOUND]
        assert len(name_server.questions) == 3

    def test_other_names_and_ports_do_not_wait_for_it(self, name_server: NameServer) -> None:
        resolver = Resolver()

        for host, port in ((HOST, 443), (HOST, 80), ("other.example.test", 443)):
            with pytest.raises(ResolutionTimeout):
                resolve(resolver, host=host, port=port, seconds=0.01)

        assert name_server.questions == [(HOST, 443), (HOST, 80), ("other.example.test", 443)]


class TestErrors:
    @pytest.mark.parametrize("code", [socket.EAI_NONAME, socket.EAI_NODATA, socket.EAI_AGAIN, socket.EAI_FAIL])
    def test_all_that_ask_get_the_error(self, name_server: NameServer, code: int) -> None:
        resolver = Resolver()

        with ThreadPoolExecutor(3) as pool:
            lookups = in_threads(pool, resolver, 3)
            wait_until(lambda: len(name_server.questions) == 1)
            name_server.respond(socket.gaierror(code, "text"))

            assert [lookup.exception(60) for lookup in lookups] == [name_server.error] * 3

    def test_a_name_that_cannot_be_a_name_does_not_exist(self, name_server: NameServer) -> None:
        name_server.respond(UnicodeError("label empty or too long"))

        with pytest.raises(socket.gaierror) as caught:
            resolve(Resolver())

        assert caught.value.errno == socket.EAI_NONAME

    def test_an_unexpected_error_reaches_the_caller(self, name_server: NameServer) -> None:
        name_server.respond(MemoryError())

        with pytest.raises(MemoryError):
            resolve(Resolver())


@pytest.mark.parametrize("error", [None, socket.gaierror(socket.EAI_NONAME, "unknown")])
def test_without_a_thread_the_caller_looks_the_name_up(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = Resolver()
    name_server.respond(error)
    monkeypatch.setattr(threading.Thread, "start", refuse)

    results: list[Callable[[], Any]] = [lambda: resolve(resolver)] * 2
    for result in results:
        if error is None:
            assert result() == FOUND
        else:
            with pytest.raises(socket.gaierror):
                result()
    assert name_server.threads == [threading.current_thread()] * 2
