"""Pauses between tries, and what a server asks for."""

from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime

import pytest

from docs_platform_action.http.retry import (
    LAST_ATTEMPT_SECONDS,
    PROXY,
    RetryState,
    TransientError,
    full_jitter,
    read_retry_after,
    retry,
)
from docs_platform_action.job import Job
from docs_platform_action.models import EXPORT, STORAGE
from tests.unit.fakes import NOON, FakeClock, RecordedEvents


class TestRetryAfter:
    def test_a_date_is_measured_against_the_servers_own_clock(self) -> None:
        server = NOON - timedelta(hours=3)
        headers = {"Retry-After": format_datetime(server + timedelta(seconds=20), usegmt=True), "Date": format_datetime(server)}

        assert read_retry_after(headers, NOON) == 20

    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("0", 0), (" 7 ", 7), ("Mon, 04 May 2026 12:00:30 GMT", 30), ("Mon, 04 May 2026 11:00:00 GMT", 0)]
        + [(text, None) for text in ("", "-1", "1.5", "soon", "1e3", "٣", "9999999999", "Mon, 99 May 2026 12:00:30 GMT")],
    )
    def test_the_two_forms_are_read_and_nothing_else(self, text: str, seconds: float | None) -> None:
        assert read_retry_after({"Retry-After": text}, NOON) == seconds

    def test_without_one_there_is_none(self) -> None:
        assert read_retry_after({}, NOON) is None


@dataclass
class Others:
    """What all others know of a server, and the pauses that they were told of."""

    failing_since: float | None = None
    ceiling_seconds: float = 1.0
    held: list[float] = field(default_factory=list)

    def back_off(self, pause_seconds: float) -> None:
        self.held.append(pause_seconds)


class Alone:
    """A piece of work that fails until it has been tried so often; pauses are half as long as they may get."""

    def __init__(self, *, succeeds_at: int = 10**6, tolerance: float = 20.0, breaker: Others | None = None) -> None:
        self.clock = FakeClock()
        self.job = Job(mode=EXPORT)
        self.events = RecordedEvents()
        self.state = RetryState(
            job=self.job,
            events=self.events,
            clock=self.clock,
            tolerance_seconds=tolerance,
            server=STORAGE,
            jitter=lambda ceiling: ceiling / 2,
            breaker=breaker,
        )
        self.times: list[float] = []
        self.timeouts: list[float] = []
        self._succeeds_at = succeeds_at

    def attempt(self) -> str:
        self.times.append(self.clock.elapsed)
        self.timeouts.append(self.state.start_attempt())
        if len(self.times) < self._succeeds_at:
            raise TransientError("it is down", advice=PROXY)
        return "good"

    def carry_out(self) -> str:
        return retry(self.attempt, self.state)


class TestRetry:
    def test_pauses_grow_until_it_succeeds(self) -> None:
        work = Alone(succeeds_at=5)

        assert work.carry_out() == "good"
        assert work.times == [0, 0.5, 1.5, 3.5, 7.5]
        assert work.events.seen == [
            ("retrying", work.job, STORAGE, "it is down", 20, 0.5),
            ("recovered", work.job, STORAGE, 7.5),
        ]

    def test_it_ends_with_one_try_when_the_time_is_up(self) -> None:
        work = Alone(tolerance=5)

        with pytest.raises(TransientError):
            work.carry_out()

        assert work.times == [0, 0.5, 1.5, 3.5, 5]
        assert work.timeouts[-1] == LAST_ATTEMPT_SECONDS
        assert work.state.outage_seconds() == 5


def test_pauses_are_drawn_below_a_ceiling() -> None:
    assert all(0 <= full_jitter(3) <= 3 for _ in range(100))


class TestWithOthers:
    def test_they_are_told_of_each_pause(self) -> None:
        others = Others()

        Alone(succeeds_at=4, breaker=others).carry_out()

        assert others.held == [0.5, 1, 2]

    def test_what_they_have_seen_makes_the_pauses_longer(self) -> None:
        others = Others(ceiling_seconds=3)
        work = Alone(succeeds_at=5, breaker=others)

        work.carry_out()

        assert others.held == work.clock.pauses == [1.5, 1.5, 2, 4]

    def test_an_outage_is_as_old_as_they_know(self) -> None:
        others = Others()
        work = Alone(tolerance=20, breaker=others)
        others.failing_since = work.clock.monotonic() - 15

        with pytest.raises(TransientError):
            work.carry_out()

        assert work.times[-1] == 5
        assert work.events.of("retrying") == [(STORAGE, "it is down", 5, 0.5)]
        assert work.state.outage_seconds() == 20

    def test_one_that_came_to_its_end_before_leaves_one_try(self) -> None:
        others = Others()
        work = Alone(tolerance=20, breaker=others)
        others.failing_since = work.clock.monotonic() - 500

        with pytest.raises(TransientError):
            work.carry_out()

        assert (work.times, work.timeouts, work.events.seen, others.held) == ([0], [LAST_ATTEMPT_SECONDS], [], [])

    def test_its_own_is_no_younger_for_what_they_know(self) -> None:
        work = Alone(tolerance=20, breaker=Others())

        with pytest.raises(TransientError):
            work.carry_out()

        assert work.times[-1] == 20

    def test_before_the_first_try_nothing_has_lasted(self) -> None:
        assert Alone(breaker=Others()).state.outage_seconds() == 0
