"""An exchange can be aborted, whichever stage it is in."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import pytest
import trustme

from docs_platform_action.clock import Clock
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.connection import MAX_CONNECTIONS, Exchange, InFlight, create_ssl_context
from docs_platform_action.inputs.validators import MAX_PARALLEL
from tests.virtual_time import VirtualClock


def test_an_aborted_exchange_shuts_its_connection_down() -> None:
    ours, theirs = socket.socketpair()
    exchange = Exchange(host="", clock=Clock())
    exchange.adopt(ours)

    exchange.abort()

    with ours, theirs:
        assert theirs.recv(1) == b""
    exchange.release()


def test_a_connection_that_comes_too_late_is_shut_down_at_once() -> None:
    ours, theirs = socket.socketpair()
    exchange = Exchange(host="", clock=Clock())
    exchange.abort()

    exchange.adopt(ours)

    with ours, theirs:
        assert theirs.recv(1) == b""
    exchange.release()


def test_a_released_exchange_leaves_the_connection_open() -> None:
    ours, theirs = socket.socketpair()
    exchange = Exchange(host="", clock=Clock())
    exchange.adopt(ours)

    exchange.release()
    exchange.abort()

    with ours, theirs:
        ours.sendall(b"x")
        assert theirs.recv(1) == b"x"


def test_an_abort_ignores_a_connection_that_is_closed_already() -> None:
    ours, theirs = socket.socketpair()
    exchange = Exchange(host="", clock=Clock())
    exchange.adopt(ours)
    theirs.close()
    ours.shutdown(socket.SHUT_RDWR)

    exchange.abort()

    assert exchange.is_aborted
    exchange.release()
    ours.close()


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


class Connected:
    """An exchange, and the other end of its connection."""

    def __init__(self) -> None:
        self.exchange = Exchange(host="", clock=Clock())
        self.ours, self.theirs = socket.socketpair()
        self.exchange.adopt(self.ours)
        self.theirs.settimeout(60)

    def __enter__(self) -> "Connected":
        return self

    def __exit__(self, *_: object) -> None:
        self.exchange.release()
        self.ours.close()
        self.theirs.close()


class TestInFlight:
    def test_an_abort_ends_all_that_are_under_way(self) -> None:
        in_flight = InFlight(Clock())

        with Connected() as one, Connected() as other, in_flight.watch(one.exchange, 60), in_flight.watch(other.exchange, 60):
            in_flight.abort()

            assert one.theirs.recv(1) == other.theirs.recv(1) == b""
            assert [exchange.is_aborted for exchange in (one.exchange, other.exchange)] == [True, True]
            assert [exchange.is_cancelled for exchange in (one.exchange, other.exchange)] == [True, True]

    def test_a_stop_lets_them_finish(self) -> None:
        in_flight = InFlight(Clock())

        with Connected() as connected, in_flight.watch(connected.exchange, 60):
            in_flight.stop()

            connected.ours.sendall(b"x")
            assert connected.theirs.recv(1) == b"x"
            assert (connected.exchange.is_aborted, connected.exchange.is_cancelled) == (False, False)

    def test_those_that_end_in_time_do_not_wake_the_watchdog(self, monkeypatch: pytest.MonkeyPatch) -> None:
        is_asleep, notified = threading.Event(), []

        class Counted(threading.Condition):
            def wait(self, timeout: float | None = None) -> bool:
                is_asleep.set()
                return super().wait(timeout)

            def notify(self, n: int = 1) -> None:
                notified.append(n)
                super().notify(n)

        with monkeypatch.context() as patch:
            patch.setattr(threading, "Condition", Counted)
            in_flight = InFlight(Clock())
        with in_flight.keep_watchdog():
            assert is_asleep.wait(60)
            is_asleep.clear()
            with in_flight.watch(Exchange(host="", clock=Clock()), 60):
                assert is_asleep.wait(60)  # until its end
            notified.clear()
            for _ in range(3):
                with in_flight.watch(Exchange(host="", clock=Clock()), 60):
                    pass
            assert notified == []

    @pytest.mark.parametrize("end", [InFlight.stop, InFlight.abort])
    def test_none_begins_after_either(self, end: Callable[[InFlight], None]) -> None:
        in_flight = InFlight(Clock())
        end(in_flight)

        with pytest.raises(Cancelled), in_flight.watch(Exchange(host="", clock=Clock()), 60):
            pytest.fail("the exchange has begun")

    def test_one_that_is_over_is_not_aborted(self) -> None:
        in_flight, exchange = InFlight(Clock()), Exchange(host="", clock=Clock())
        with in_flight.watch(exchange, 60):
            pass

        in_flight.abort()

        assert not exchange.is_aborted

    def test_one_that_is_over_leaves_its_connection_open(self) -> None:
        in_flight = InFlight(Clock())

        with Connected() as connected:
            with pytest.raises(LookupError), in_flight.watch(connected.exchange, 60):
                raise LookupError
            connected.exchange.abort()

            connected.ours.sendall(b"x")
            assert connected.theirs.recv(1) == b"x"


class TestTimeouts:
    @pytest.fixture(autouse=True)
    def _no_watchdog_is_left_from_another_test(self) -> None:
        wait_until(lambda: watchdogs() == [])

    def test_one_that_takes_too_long_is_aborted(self) -> None:
        in_flight = InFlight(Clock())

        with Connected() as connected, in_flight.watch(connected.exchange, 0.01):
            assert connected.theirs.recv(1) == b""

        assert connected.exchange.is_aborted

    def test_one_without_time_is_aborted(self) -> None:
        with Connected() as connected, InFlight(Clock()).watch(connected.exchange, 0):
            assert connected.theirs.recv(1) == b""

    def test_each_has_its_own_time_limit(self) -> None:
        in_flight = InFlight(Clock())

        with Connected() as slow, Connected() as quick, in_flight.watch(slow.exchange, 60), in_flight.watch(quick.exchange, 0.01):
            assert quick.theirs.recv(1) == b""
            assert (quick.exchange.is_aborted, slow.exchange.is_aborted) == (True, False)

    def test_one_can_be_extended(self) -> None:
        clock = VirtualClock()
        in_flight = InFlight(clock)

        with Connected() as first, Connected() as second, in_flight.watch(first.exchange, 0.05):
            in_flight.extend(first.exchange, 60)
            clock.advance(1)  # after the first time limit
            with in_flight.watch(second.exchange, 0):
                assert second.theirs.recv(1) == b""

            assert not first.exchange.is_aborted

    def test_one_can_be_brought_forward(self) -> None:
        in_flight = InFlight(Clock())

        with Connected() as connected, in_flight.watch(connected.exchange, 60):
            wait_until(lambda: len(watchdogs()) == 1)
            in_flight.extend(connected.exchange, 0.01)

            assert connected.theirs.recv(1) == b""

    def test_any_number_share_one_thread(self) -> None:
        in_flight = InFlight(Clock())

        with ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(in_flight.watch(Exchange(host="", clock=Clock()), 60))

            (watchdog,) = watchdogs()
            assert watchdog.daemon  # it keeps no process from ending

        wait_until(lambda: watchdogs() == [])

    @pytest.mark.parametrize("error", [None, LookupError()])
    def test_the_thread_of_a_run_is_kept_from_its_beginning_to_its_end(self, error: Exception | None) -> None:
        in_flight = InFlight(Clock())

        with contextlib.suppress(LookupError), in_flight.keep_watchdog():
            (watchdog,) = watchdogs()
            for _ in range(3):
                with in_flight.watch(Exchange(host="", clock=Clock()), 60):
                    pass
            with Connected() as connected, in_flight.watch(connected.exchange, 0.01):
                assert connected.theirs.recv(1) == b""
            assert watchdogs() == [watchdog]
            if error is not None:
                raise error

        wait_until(lambda: watchdogs() == [])

    def test_without_a_thread_the_exchange_continues_and_the_next_one_starts_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        in_flight, begun = InFlight(Clock()), []
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with in_flight.watch(Exchange(host="", clock=Clock()), 0):
                begun.append(watchdogs())

        with Connected() as connected, in_flight.watch(connected.exchange, 0.01):
            assert connected.theirs.recv(1) == b""
        assert begun == [[]]


def watchdogs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watchdog"]


def test_further_authorities_are_trusted_beside_the_public_ones() -> None:
    authority = trustme.CA().cert_pem.bytes().decode()

    context = create_ssl_context(authority)

    assert len(context.get_ca_certs()) == len(create_ssl_context(None).get_ca_certs()) + 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize("authority", [None, trustme.CA().cert_pem.bytes().decode()])
def test_what_is_verified_is_the_same_on_every_python(authority: str | None) -> None:
    context = create_ssl_context(authority)

    assert context.verify_flags == ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_tls_1_2_is_the_minimum_however_python_was_built() -> None:
    assert create_ssl_context(None).minimum_version is ssl.TLSVersion.TLSv1_2


def test_the_end_of_a_tls_connection_is_verified_whatever_openssl_is_configured_to(monkeypatch: pytest.MonkeyPatch) -> None:
    configured = ssl.create_default_context()
    configured.options |= ssl.OP_IGNORE_UNEXPECTED_EOF
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: configured)

    assert not create_ssl_context(None).options & ssl.OP_IGNORE_UNEXPECTED_EOF


def test_a_text_without_certificates_is_an_error() -> None:
    with pytest.raises(ssl.SSLError):
        create_ssl_context("garbage")


def test_each_job_that_may_run_at_the_same_time_can_keep_a_connection() -> None:
    assert MAX_CONNECTIONS >= MAX_PARALLEL
