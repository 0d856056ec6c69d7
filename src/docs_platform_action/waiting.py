"""Waiting for a job: the schedule, the deadline, the last read."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import backoff

from .clock import Clock, DeadlinePassed, slept_on


class Job(Protocol):
    """A job as far as waiting cares."""

    @property
    def status(self) -> str:
        """What the API calls its state."""
        ...

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        ...


J = TypeVar("J", bound=Job)


@dataclass(frozen=True, kw_only=True)
class Reading(Generic[J]):
    """A job as it was read, so many seconds after the wait began. No reading comes after the `last`."""

    job: J
    elapsed_seconds: float
    last: bool


Schedule = Callable[[], Generator[float, Reading[J], None]]
"""Makes a generator that, primed with one `next`, receives each reading and yields the seconds to the next."""

PATIENCE: Final = 1 / 20
"""The share of the time that a job has been in its state by which the next reading may come late."""


def growing_pauses(*, shortest_seconds: float, longest_seconds: float) -> Schedule[J]:
    """Pause for a share of the time that the job has been in its state, within bounds.

    So the pause grows as the state lasts, shrinks when it changes, and the end of a job is seen within a twentieth of the time
    that it took, whether that was a minute or an hour.
    """

    def pauses() -> Generator[float, Reading[J], None]:
        reading = yield 0.0
        status, since_seconds = reading.job.status, 0.0
        while True:
            if reading.job.status != status:
                status, since_seconds = reading.job.status, reading.elapsed_seconds
            share = (reading.elapsed_seconds - since_seconds) * PATIENCE
            reading = yield min(max(share, shortest_seconds), longest_seconds)

    return pauses


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
    decides. Raises `DeadlinePassed`, and whatever `read` raises.
    """
    began = clock.monotonic()
    deadline = began + timeout_seconds

    def pauses() -> Generator[float, Reading[J], None]:
        scheduled = schedule()
        next(scheduled)
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

    reading: Reading[J] = take_reading()
    if not reading.job.ended:
        raise DeadlinePassed
    return reading.job
