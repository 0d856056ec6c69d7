"""A pipe's reader gets the chunks in order, and an error of one side reaches the other."""

import threading
from collections.abc import Callable, Iterable, Iterator

import pytest

from docs_platform_action.bundle import pipe
from docs_platform_action.bundle.pipe import Pipe
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled, InternalError

CHUNKS = [b"%d" % number for number in range(100)]
"""More chunks than wait in a pipe."""

SECONDS = 30.0
"""How long a thread waits for another before the test fails."""

Reader = Callable[[Iterator[bytes]], None]


@pytest.fixture(autouse=True)
def _no_thread_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pipe, "_CHECK_SECONDS", 0.001)
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def send(read: Reader, chunks: Iterable[bytes | Exception], cancellation: Cancellation | None = None) -> None:
    """Write chunks to a reader, and wait for its end."""
    with Pipe(read, cancellation or Cancellation()) as writer:
        for chunk in chunks:
            writer.write(chunk)
        writer.wait()


def test_the_reader_gets_every_chunk_in_order_in_another_thread() -> None:
    read: list[object] = []

    send(lambda chunks: read.extend([threading.get_ident(), *chunks]), [*CHUNKS, b""])

    assert read.pop(0) != threading.get_ident()
    assert read == CHUNKS


@pytest.mark.parametrize("taken", [0, 1, 20])
def test_an_error_of_the_reader_is_raised_on_the_other_side_also_while_the_pipe_is_full(taken: int) -> None:
    error = LookupError("a bug")

    def read(chunks: Iterator[bytes]) -> None:
        for _ in range(taken):
            next(chunks)
        raise error

    with pytest.raises(LookupError) as caught:
        send(read, CHUNKS)

    assert caught.value is error


def test_a_written_error_is_raised_in_the_reader_after_what_comes_before_it() -> None:
    read: list[bytes] = []
    error = LookupError("damaged")

    with pytest.raises(LookupError) as caught:
        send(read.extend, [*CHUNKS, error])

    assert (caught.value, read) == (error, CHUNKS)


@pytest.mark.parametrize("written", [0, 1, 4])
def test_an_error_on_this_side_ends_the_reader_also_while_the_pipe_is_full(written: int) -> None:
    failing = threading.Event()

    def read_late(chunks: Iterator[bytes]) -> None:
        assert failing.wait(SECONDS)
        list(chunks)

    def fail() -> Iterator[bytes]:
        yield from CHUNKS[:written]
        failing.set()
        raise LookupError

    with pytest.raises(LookupError):
        send(read_late, fail())


class CancelledLater(Cancellation):
    """Is cancelled at its twentieth check."""

    checks = 0

    def __init__(self) -> None:
        super().__init__()
        self.is_cancelled = threading.Event()

    def check(self) -> None:
        self.checks += 1
        if self.checks == 20:
            self.cancel()
            self.is_cancelled.set()
        super().check()


@pytest.mark.parametrize("chunks", [CHUNKS, []], ids=["the pipe is full", "nothing is written"])
def test_a_cancel_ends_a_wait_for_the_reader(chunks: list[bytes]) -> None:
    cancellation = CancelledLater()

    def read_late(rest: Iterator[bytes]) -> None:
        assert cancellation.is_cancelled.wait(SECONDS)
        list(rest)

    with pytest.raises(Cancelled):
        send(read_late, chunks, cancellation)


def test_a_machine_that_allows_no_more_threads_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    with pytest.raises(InternalError):
        send(lambda _: None, CHUNKS)
