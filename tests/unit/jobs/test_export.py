"""Export mode: start or attach, wait, make the link."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from docs_platform_action.api.admin_api import DeadlineExceeded
from docs_platform_action.bundle import deliver as bundle_deliver
from docs_platform_action.context import Context
from docs_platform_action.errors import (
    ActionError,
    BadResponse,
    JobFailed,
    NotFound,
    StartUnconfirmed,
    TimedOut,
    TooFewPages,
    Unavailable,
)
from docs_platform_action.inputs.settings import DeliverySettings, ExportSettings, OutputPath, WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import export_site
from docs_platform_action.models import Bundle, ExportJob, StartedExport
from docs_platform_action.report.failures import how_to_collect
from tests.unit.fakes import HOST, FakeApiClient, RecordedEvents, context
from tests.virtual_time import NOON, VirtualClock

BUNDLE = Bundle(
    url="https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc",
    expires_at="2026-05-04T13:00:00Z",
    expires=NOON + timedelta(hours=1),
)
QUEUED = ExportJob(status="queued")
RUNNING = ExportJob(status="running", progress=12.0)
COMPLETED = ExportJob(status="completed", page_count=412)


class FakeApi:
    """Returns these readings, the last one repeatedly, and records each event in order."""

    def __init__(
        self,
        *readings: ExportJob | Exception,
        started: StartedExport | Exception | None = None,
        bundle: Bundle | Exception = BUNDLE,
    ) -> None:
        self.client = FakeApiClient(VirtualClock())
        self.readings = list(readings)
        self.bundle = bundle
        self.events = RecordedEvents()
        self.options: Mapping[str, object] | None = None
        self._started = started or StartedExport(job_id="se_1", status="queued")

    def start_export(self, job: Job, options: Mapping[str, object]) -> StartedExport:
        self.events.seen.append(("start", job))
        self.options = options
        return _return_or_raise(self._started)

    def read_export(self, job: Job, *, deadline: float) -> ExportJob:
        del deadline
        self.events.seen.append(("read", job))
        return _return_or_raise(self.readings.pop(0) if len(self.readings) > 1 else self.readings[0])

    def make_bundle(self, job: Job) -> Bundle:
        self.events.seen.append(("bundle", job))
        return _return_or_raise(self.bundle)


def _return_or_raise(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


class Run:
    """One export with a fake API and a fake clock."""

    def __init__(self, api: FakeApi, **changes: Any) -> None:
        self.api = api
        self.clock = VirtualClock()
        self.settings = ExportSettings(
            **{
                "waiting": WaitSettings(timeout_seconds=600, shortest_pause_seconds=1, longest_pause_seconds=1),
                "domain": "docs.example.com",
                "job_id": None,
                "wait": True,
                "start_options": {},
                **changes,
            }
        )
        self.job = Job(mode="export", domain=self.settings.domain, job_id=self.settings.job_id)
        self.delivered: list[tuple[Bundle | None, DeliverySettings]] = []

    def __call__(self) -> None:
        with patch.object(bundle_deliver, "deliver", self._deliver):
            export_site(self.job, self.settings, context(self.clock, self.api.events, api=self.api))

    def _deliver(self, job: Job, settings: DeliverySettings, _context: Context) -> None:
        self.delivered.append((job.bundle, settings))

    def failure(self) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self()
        return caught.value


class TestStarting:
    def test_the_job_is_announced_before_its_first_reading(self) -> None:
        run = Run(FakeApi(QUEUED, COMPLETED))

        run()

        assert run.api.events.names == [
            "start",
            "job_known",
            "polling",
            "read",
            "status_read",
            "read",
            "status_read",
            "bundle",
            "link_made",
        ]

    def test_the_options_are_sent(self) -> None:
        run = Run(FakeApi(COMPLETED), start_options={"version": "v2"})

        run()

        assert run.api.options == {"version": "v2"}

    def test_the_job_knows_when_this_run_started_it(self) -> None:
        run = Run(FakeApi(COMPLETED))

        run()

        assert run.job.started_at == 5000.0

    def test_without_waiting_the_job_is_only_started_and_announced(self) -> None:
        run = Run(FakeApi(), wait=False)

        run()

        assert run.api.events.names == ["start", "job_known", "not_waiting"]
        assert (run.job.job_id, run.job.status, run.job.bundle) == ("se_1", "queued", None)

    def test_a_failed_start_leaves_no_job(self) -> None:
        run = Run(FakeApi(started=StartUnconfirmed("it is unknown")))

        assert isinstance(run.failure(), StartUnconfirmed)
        assert run.job.job_id is None
        assert run.api.events.names == ["start"]


class TestAttaching:
    def test_the_job_is_announced_before_its_first_reading_and_none_is_started(self) -> None:
        run = Run(FakeApi(COMPLETED), job_id="se_9")

        run()

        assert run.api.events.names == ["job_known", "polling", "read", "status_read", "bundle", "link_made"]
        assert not run.job.was_started_here


class TestPhases:
    @pytest.mark.parametrize(
        ("readings", "phases"),
        [
            ([QUEUED, QUEUED, RUNNING, COMPLETED], [("queue", 0, 3), ("run", 3, 4), ("bundle", 4, None)]),
            ([RUNNING, COMPLETED], [("run", 0, 2), ("bundle", 2, None)]),
            ([ExportJob(status="preparing"), COMPLETED], [("run", 0, 2), ("bundle", 2, None)]),
            ([QUEUED, QUEUED, COMPLETED], [("queue", 0, 2), ("run", 2, 3), ("bundle", 3, None)]),
            ([COMPLETED], [("run", 0, 1), ("bundle", 1, None)]),
        ],
    )
    def test_each_begins_with_its_first_reading_or_the_last_reading_before(
        self, readings: list[ExportJob], phases: list[tuple[str, float, float | None]]
    ) -> None:
        run = Run(FakeApi(*readings))
        run()

        began = run.job.phases[0].began_at
        phases_seen = [
            (one.name, one.began_at - began, None if one.ended_at is None else one.ended_at - began) for one in run.job.phases
        ]
        assert phases_seen == phases


class TestEnds:
    def test_a_completed_job_has_its_bundle(self) -> None:
        run = Run(FakeApi(COMPLETED))

        run()

        assert (run.job.status, run.job.page_count, run.job.bundle) == ("completed", 412, BUNDLE)

    def test_a_failed_job_is_a_failure_with_the_platforms_text(self) -> None:
        error = Run(FakeApi(ExportJob(status="failed", error="page /a does not render"))).failure()

        assert isinstance(error, JobFailed)
        assert error.details == (f'The API at {HOST} said: "page /a does not render"',)
        assert "se_1" in error.remedy

    def test_a_failed_job_without_a_text_says_so(self) -> None:
        error = Run(FakeApi(ExportJob(status="failed"))).failure()

        assert (error.details, error.cause) == ((), "The API gave no reason.")

    def test_no_bundle_is_requested_for_a_failed_job(self) -> None:
        run = Run(FakeApi(ExportJob(status="failed")))

        run.failure()

        assert run.api.events.names[-1] == "status_read"

    def test_a_job_that_runs_past_the_timeout_is_reported_with_its_progress(self) -> None:
        run = Run(FakeApi(ExportJob(status="running", progress=83.4, page_count=1412)))

        error = run.failure()

        assert isinstance(error, TimedOut)
        assert error.summary == "still running after 10:00"
        assert error.details == ("It was last seen at 83 %, 1,412 pages.",)
        assert run.clock.elapsed == pytest.approx(600)

    def test_an_invalid_bundle_leaves_the_job_completed(self) -> None:
        run = Run(FakeApi(COMPLETED, bundle=BadResponse("it cannot be used")))

        assert isinstance(run.failure(), BadResponse)
        assert (run.job.status, run.job.bundle) == ("completed", None)

    def test_readings_before_an_outage_stay_known(self) -> None:
        run = Run(FakeApi(ExportJob(status="running", progress=12, page_count=48), Unavailable("it broke")))

        assert isinstance(run.failure(), Unavailable)
        assert (run.job.status, run.job.progress, run.job.pages_so_far) == ("running", 12, 48)


class TestMinPages:
    SITE = OutputPath(path=Path("/w/site"), root=Path("/w"), name="site")

    def test_an_export_with_enough_pages_is_delivered_without_another_count(self) -> None:
        run = Run(FakeApi(COMPLETED), delivery=DeliverySettings(site=self.SITE, min_pages=412))

        run()

        assert run.delivered == [(BUNDLE, DeliverySettings(site=self.SITE))]

    def test_an_export_with_fewer_pages_fails_before_its_link_is_made(self) -> None:
        run = Run(FakeApi(COMPLETED), delivery=DeliverySettings(site=self.SITE, min_pages=413))

        error = run.failure()

        assert isinstance(error, TooFewPages)
        assert error.summary == "the export has 412 pages, fewer than the 413 that `min-pages` asks for"
        assert "Nothing was published." in error.cause
        assert (run.api.events.names[-1], run.job.bundle, run.delivered) == ("status_read", None, [])
        assert how_to_collect(run.job, error) == (
            "Job se_1 is completed. A run with `job-id: se_1` makes its bundle link without exporting again."
        )

    @pytest.mark.parametrize(("earlier", "facts"), [(500, 2), (None, 1)])
    def test_a_count_from_before_the_end_is_not_used(self, earlier: int | None, facts: int) -> None:
        run = Run(
            FakeApi(ExportJob(status="running", page_count=earlier), ExportJob(status="completed")),
            delivery=DeliverySettings(min_pages=10),
        )

        error = run.failure()

        assert error.summary == "the number of its pages is unknown, and `min-pages` is set"
        assert len(error.details) == facts
        assert "`site-path`" in error.remedy
        assert (run.job.bundle, run.delivered) == (None, [])

    def test_without_a_count_of_the_api_the_bundles_pages_are_counted(self) -> None:
        asked = DeliverySettings(site=self.SITE, min_pages=10)
        run = Run(FakeApi(ExportJob(status="completed")), delivery=asked)

        run()

        assert run.delivered == [(BUNDLE, asked)]


class TestDelivering:
    def test_the_bundle_is_delivered_with_the_settings(self) -> None:
        asked = DeliverySettings(version="2024-06-01")
        run = Run(FakeApi(COMPLETED), delivery=asked)

        run()

        assert run.delivered == [(BUNDLE, asked)]

    def test_one_that_cannot_be_made_is_not_handed_on(self) -> None:
        run = Run(FakeApi(COMPLETED, bundle=BadResponse("it cannot be used")))

        run.failure()

        assert run.delivered == []


class TestLost:
    GONE = NotFound("the platform does not know the job se_1 (404)", details=("It said no.",), request_id="r-1")

    def test_a_lost_job_of_this_run_says_so(self) -> None:
        error = Run(FakeApi(self.GONE)).failure()

        assert isinstance(error, NotFound)
        assert error.summary == "the platform no longer knows the job that it started as se_1 (404)"
        assert error.cause == "It was removed, or the platform lost it."
        assert "collect it with `job-id: se_1`" in error.remedy
        assert (error.details, error.request_id) == (("It said no.",), "r-1")

    def test_a_job_of_another_run_is_not_found(self) -> None:
        error = Run(FakeApi(self.GONE), job_id="se_1").failure()

        assert error is self.GONE
        assert error.__cause__ is None


class TestTimeout:
    def test_a_wait_that_ends_in_an_outage_reports_both(self) -> None:
        run = Run(FakeApi(QUEUED, DeadlineExceeded(f"the API at {HOST} remained unavailable")))

        error = run.failure()

        assert isinstance(error, TimedOut)
        assert error.details == ("It was last seen as 'queued'.", f"At the end the API at {HOST} remained unavailable.")
