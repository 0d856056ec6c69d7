"""Waiting for a job: its readings on a schedule, the deadline, the last read."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import backoff

from ..clock import Clock, DeadlinePassed, slept_on


class Pollable(Protocol):
    """A job as far as waiting cares."""

    @property
    def status(self) -> str:
        """What the API calls its state."""
        ...

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        ...

    @property
    def percent_done(self) -> float | None:
        """How far it has come, 0 to 100, if it tells."""
        ...


J = TypeVar("J", bound=Pollable)


@dataclass(frozen=True, kw_only=True)
class Reading(Generic[J]):
    """A job as it was read, so many seconds after the wait began. No reading comes after the `last`."""

    job: J
    elapsed_seconds: float
    last: bool


Schedule = Callable[[], Generator[float, Reading[J], None]]
"""Makes a generator: its first `next` gives the seconds to the first reading; then it gets each, and yields those to the next."""


def wait_for_end(
    read: Callable[[float], J],
    *,
    schedule: Schedule[J],
    timeout_seconds: float,
    clock: Clock,
    on_reading: Callable[[Reading[J]], None],
) -> J:
    """Read a job until it has ended, and give its last reading.

    `read` gets the deadline on the clock's `monotonic`; `on_reading` sees every reading. When the time is up, one last read
    decides. Raises `DeadlinePassed`, whatever `read` raises, and `Cancelled` when the clock does.
    """
    began = clock.monotonic()
    deadline = began + timeout_seconds
    scheduled = schedule()

    def pauses() -> Generator[float, Reading[J], None]:
        reading = yield 0.0
        while True:
            reading = yield min(scheduled.send(reading), deadline - clock.monotonic())

    @backoff.on_predicate(
        slept_on(clock, pauses),
        predicate=lambda reading: not (reading.job.ended or reading.last),
        jitter=None,
        logger=None,
    )
    def take_reading() -> Reading[J]:
        last = clock.monotonic() >= deadline
        job = read(deadline)
        reading = Reading(job=job, elapsed_seconds=clock.monotonic() - began, last=last)
        on_reading(reading)
        return reading

    clock.sleep(min(next(scheduled), timeout_seconds))
    reading: Reading[J] = take_reading()
    if not reading.job.ended:
        raise DeadlinePassed
    return reading.job
