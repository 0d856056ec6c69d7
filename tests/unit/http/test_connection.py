"""A guard ends the exchange that it watches over, whichever stage that is in."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
import trustme

from docs_platform_action.errors import Cancelled
from docs_platform_action.http.connection import MAX_CONNECTIONS, Guard, InFlight, trusting
from docs_platform_action.inputs.validators import MAX_PARALLEL


def test_an_expired_guard_shuts_down_what_it_holds() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.adopt(ours)

    guard.expire()

    with ours, theirs:
        assert theirs.recv(1) == b""
    guard.release()


def test_a_connection_that_comes_too_late_is_shut_down_at_once() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.expire()

    guard.adopt(ours)

    with ours, theirs:
        assert theirs.recv(1) == b""
    guard.release()


def test_a_released_guard_leaves_the_connection_as_it_is() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.adopt(ours)

    guard.release()
    guard.expire()

    with ours, theirs:
        ours.sendall(b"x")
        assert theirs.recv(1) == b"x"


def test_a_connection_that_is_gone_already_is_no_trouble() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.adopt(ours)
    theirs.close()
    ours.shutdown(socket.SHUT_RDWR)

    guard.expire()

    assert guard.is_expired
    guard.release()
    ours.close()


def soon(condition: Callable[[], bool]) -> None:
    """Wait until something is so, which is a matter of milliseconds."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


class Watched:
    """An exchange that is watched, and the other end of its connection."""

    def __init__(self) -> None:
        self.guard = Guard()
        self.ours, self.theirs = socket.socketpair()
        self.guard.adopt(self.ours)
        self.theirs.settimeout(60)

    def __enter__(self) -> "Watched":
        return self

    def __exit__(self, *_: object) -> None:
        self.guard.release()
        self.ours.close()
        self.theirs.close()


class TestExchanges:
    def test_an_abort_ends_all_that_are_under_way(self) -> None:
        in_flight = InFlight()

        with Watched() as one, Watched() as other, in_flight.watch(one.guard, 60), in_flight.watch(other.guard, 60):
            in_flight.abort()

            assert one.theirs.recv(1) == other.theirs.recv(1) == b""
            assert (one.guard.is_expired, other.guard.is_expired, in_flight.cancelled) == (True, True, True)

    def test_a_stop_lets_them_come_to_their_end(self) -> None:
        in_flight = InFlight()

        with Watched() as watched, in_flight.watch(watched.guard, 60):
            in_flight.stop()

            watched.ours.sendall(b"x")
            assert watched.theirs.recv(1) == b"x"
            assert (watched.guard.is_expired, in_flight.cancelled) == (False, False)

    def test_those_that_end_in_time_do_not_wake_the_watcher(self, monkeypatch: pytest.MonkeyPatch) -> None:
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
            in_flight = InFlight()
        with in_flight.kept_watched():
            with in_flight.watch(Guard(), 60):
                assert is_asleep.wait(60)
            for _ in range(3):
                with in_flight.watch(Guard(), 60):
                    pass
            assert notified == []

    @pytest.mark.parametrize("end", [InFlight.stop, InFlight.abort])
    def test_none_begins_after_either(self, end: Callable[[InFlight], None]) -> None:
        in_flight = InFlight()
        end(in_flight)

        with pytest.raises(Cancelled), in_flight.watch(Guard(), 60):
            pytest.fail("the exchange has begun")

    def test_one_that_is_over_is_ended_no_more(self) -> None:
        in_flight, guard = InFlight(), Guard()
        with in_flight.watch(guard, 60):
            pass

        in_flight.abort()

        assert not guard.is_expired

    def test_one_that_is_over_lets_go_of_its_connection_which_stays_as_it_is(self) -> None:
        in_flight = InFlight()

        with Watched() as watched:
            with pytest.raises(LookupError), in_flight.watch(watched.guard, 60):
                raise LookupError
            watched.guard.expire()

            watched.ours.sendall(b"x")
            assert watched.theirs.recv(1) == b"x"


class TestBounds:
    @pytest.fixture(autouse=True)
    def _no_watcher_is_left_from_another_test(self) -> None:
        soon(lambda: watchers() == [])

    def test_what_takes_too_long_is_shut_down(self) -> None:
        in_flight = InFlight()

        with Watched() as watched, in_flight.watch(watched.guard, 0.01):
            assert watched.theirs.recv(1) == b""

        assert watched.guard.is_expired

    def test_no_time_is_none(self) -> None:
        with Watched() as watched, InFlight().watch(watched.guard, 0):
            assert watched.theirs.recv(1) == b""

    def test_each_has_a_bound_of_its_own(self) -> None:
        in_flight = InFlight()

        with Watched() as slow, Watched() as quick, in_flight.watch(slow.guard, 60), in_flight.watch(quick.guard, 0.01):
            assert quick.theirs.recv(1) == b""
            assert (quick.guard.is_expired, slow.guard.is_expired) == (True, False)

    def test_one_can_be_extended(self, monkeypatch: pytest.MonkeyPatch) -> None:
        in_flight, now = InFlight(), 0.0
        monkeypatch.setattr("docs_platform_action.http.connection.time", SimpleNamespace(monotonic=lambda: now))

        with Watched() as first, Watched() as second, in_flight.watch(first.guard, 0.05):
            in_flight.extend(first.guard, 60)
            now = 1.0  # the first bound is over
            with in_flight.watch(second.guard, 0):
                assert second.theirs.recv(1) == b""

            assert not first.guard.is_expired

    def test_one_can_be_brought_forward(self) -> None:
        in_flight = InFlight()

        with Watched() as watched, in_flight.watch(watched.guard, 60):
            soon(lambda: len(watchers()) == 1)
            in_flight.extend(watched.guard, 0.01)

            assert watched.theirs.recv(1) == b""

    def test_any_number_need_one_thread(self) -> None:
        in_flight = InFlight()

        with ExitStack() as stack:
            for _ in range(50):
                stack.enter_context(in_flight.watch(Guard(), 60))

            (watcher,) = watchers()
            assert watcher.daemon  # it keeps no process from ending

        soon(lambda: watchers() == [])

    @pytest.mark.parametrize("error", [None, LookupError()])
    def test_the_thread_of_a_run_is_kept_from_its_first_exchange_to_its_end(self, error: Exception | None) -> None:
        in_flight = InFlight()

        with contextlib.suppress(LookupError), in_flight.kept_watched():
            assert watchers() == []
            for _ in range(3):
                with in_flight.watch(Guard(), 60):
                    pass
            (watcher,) = watchers()
            with Watched() as watched, in_flight.watch(watched.guard, 0.01):
                assert watched.theirs.recv(1) == b""
            assert watchers() == [watcher]
            if error is not None:
                raise error

        soon(lambda: watchers() == [])

    def test_without_a_thread_the_exchange_goes_on_and_the_next_one_tries_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        in_flight, begun = InFlight(), []
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with in_flight.watch(Guard(), 0):
                begun.append(watchers())

        with Watched() as watched, in_flight.watch(watched.guard, 0.01):
            assert watched.theirs.recv(1) == b""
        assert begun == [[]]


def watchers() -> list[threading.Thread]:
    """Return the threads that end in_flight."""
    return [thread for thread in threading.enumerate() if thread.name == "watcher"]


def test_further_authorities_are_trusted_beside_the_public_ones() -> None:
    authority = trustme.CA().cert_pem.bytes().decode()

    context = trusting(authority)

    assert len(context.get_ca_certs()) == len(trusting(None).get_ca_certs()) + 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize("authority", [None, trustme.CA().cert_pem.bytes().decode()])
def test_what_is_verified_is_the_same_on_every_python(authority: str | None) -> None:
    context = trusting(authority)

    assert context.verify_flags == ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_tls_1_2_is_the_least_however_python_was_built() -> None:
    assert trusting(None).minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_text_without_certificates_is_not_taken() -> None:
    with pytest.raises(ssl.SSLError):
        trusting("garbage")


def test_each_job_that_may_run_at_the_same_time_can_keep_a_connection() -> None:
    assert MAX_CONNECTIONS >= MAX_PARALLEL
