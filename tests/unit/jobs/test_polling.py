"""A job is read until it ends or its time is up."""

from typing import Any

import pytest

from docs_platform_action.errors import NotFound, TimedOut, Unavailable
from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.jobs.polling import poll
from docs_platform_action.models import ExportJob
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import BEGINNING, VirtualClock

SETTINGS = WaitSettings(timeout_seconds=10, poll_interval_seconds=4, max_poll_interval_seconds=4)
DOWN = Unavailable("it is down", request_id="r-1")
GONE = NotFound("it is gone", request_id="r-1")


class Platform:
    """An export with a status until a time; then it is completed, or cannot be read.

    Its deadline is after 10 s.
    """

    def __init__(
        self,
        status: str,
        until: float,
        then: str | Exception = "completed",
        *,
        read_seconds: float = 0.0,
        percent_per_second: float | None = None,
        reason: str | None = None,
    ) -> None:
        self._status = status
        self._until = until
        self._then = then
        self._read_seconds = read_seconds
        self._percent_per_second = percent_per_second
        self._reason = reason
        self._clock = VirtualClock()
        self.events = RecordedEvents()
        self.read_at: list[float] = []
        self.job = Job(kind=Export(), domain="docs.example.com", job_id="se_1")

    def read_export(self, _job: Job, deadline: float) -> ExportJob:
        assert deadline == BEGINNING + 10
        self.read_at.append(self._clock.elapsed)
        self._clock.advance(self._read_seconds)
        current = self._then if self._clock.elapsed >= self._until else self._status
        if isinstance(current, Exception):
            raise current
        progress = None
        if self._percent_per_second is not None:
            progress = self._percent_per_second * self._clock.elapsed
        return ExportJob(status=current, progress=progress, error=self._reason)

    def poll(self) -> Job:
        parts = context(self._clock, self.events, platform=self)
        poll(self.job, SETTINGS, parts, self.read_export)
        return self.job


@pytest.mark.parametrize(
    ("ends_at", "read_at"), [(0, [0]), (5, [0, 4, 8]), (8.1, [0, 4, 8, 10]), (10, [0, 4, 8, 10])]
)
def test_a_job_is_read_until_it_has_ended_and_each_reading_is_reported(
    ends_at: float, read_at: list[float]
) -> None:
    platform = Platform("running", ends_at)

    assert platform.poll().status == "completed"
    assert platform.read_at == read_at
    assert platform.events.names == ["status_read"] * len(read_at)


@pytest.mark.parametrize(("seconds", "read_at"), [(0, [0, 4, 8, 10]), (4, [0, 8, 12])])
@pytest.mark.parametrize(
    ("status", "is_known"), [("queued", True), ("running", True), ("of another kind", False)]
)
def test_the_last_reading_is_not_before_the_deadline(
    seconds: float, read_at: list[float], status: str, is_known: bool
) -> None:
    platform = Platform(status, 99, read_seconds=seconds)

    with pytest.raises(TimedOut) as caught:
        platform.poll()
    assert platform.read_at == read_at
    assert ("se_1" in caught.value.remedy) == (not is_known)


@pytest.mark.parametrize("then", ["completed", DOWN])
def test_a_job_that_does_not_end_shows_the_reason_of_its_last_reading(then: Any) -> None:
    with pytest.raises(TimedOut) as caught:
        Platform("paused", 10 if then is DOWN else 99, then, reason="no quota").poll()

    assert caught.value.details[1] == 'The API said: "no quota".'


@pytest.mark.parametrize(
    ("error", "after", "seconds", "kind"),
    [
        (GONE, 0, 0, NotFound),
        (GONE, 3, 0, NotFound),
        (GONE, 10, 0, NotFound),
        (GONE, 0, 50, NotFound),
        (DOWN, 0, 0, Unavailable),
        (DOWN, 8, 0, Unavailable),
        (DOWN, 0, 9, Unavailable),
        (DOWN, 10, 0, TimedOut),
        (DOWN, 0, 10, TimedOut),
        (DOWN, 9, 6, TimedOut),
        (DOWN, 0, 50, TimedOut),
    ],
)
def test_an_error_ends_the_wait_and_a_late_outage_is_a_timeout(
    error: Any, after: float, seconds: float, kind: Any
) -> None:
    with pytest.raises(kind) as caught:
        Platform("running", after, error, read_seconds=seconds).poll()
    assert error in (caught.value, caught.value.__cause__)
    assert caught.value.request_id == "r-1"


def test_the_expected_end_is_known_after_a_reading_until_the_job_has_ended() -> None:
    running = Platform("running", 99, percent_per_second=5)
    completed = Platform("running", 8, percent_per_second=5)

    with pytest.raises(TimedOut):
        running.poll()
    assert running.job.expected_end_at == pytest.approx(BEGINNING + 20)
    assert completed.poll().expected_end_at is None
