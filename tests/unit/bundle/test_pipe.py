"""A cancel ends the wait for a reader that does not read."""

import threading
from collections.abc import Iterator

import pytest

from docs_platform_action.bundle.pipe import Pipe
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled


class CancelledLater(Cancellation):
    """Is cancelled at its twentieth check, and then lets the reader read."""

    def __init__(self) -> None:
        super().__init__()
        self.checks = 0
        self.is_over = threading.Event()

    def check(self) -> None:
        self.checks += 1
        if self.checks == 20:
            self.cancel()
            self.is_over.set()
        super().check()


@pytest.mark.parametrize("written", [100, 0], ids=["the pipe is full", "nothing is written"])
def test_a_cancel_ends_the_wait(monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    monkeypatch.setattr("docs_platform_action.bundle.pipe._CHECK_SECONDS", 0.001)
    cancellation = CancelledLater()

    def read(chunks: Iterator[bytes]) -> None:
        assert cancellation.is_over.wait(60)
        list(chunks)

    def send() -> None:
        with Pipe(read, cancellation) as pipe:
            for _ in range(written):
                pipe.write(b"chunk")
            pipe.wait()

    with pytest.raises(Cancelled):
        send()
