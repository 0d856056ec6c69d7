"""Export mode: start or attach, wait, make the link, and what becomes known on the way."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from docs_platform_action.api.admin_api import AdminApi
from docs_platform_action.clock import DeadlinePassed
from docs_platform_action.errors import (
    ActionError,
    BadResponse,
    Cancelled,
    JobFailed,
    NotFound,
    StartUnconfirmed,
    TimedOut,
    TooFewPages,
    Unavailable,
)
from docs_platform_action.inputs.paths import Place
from docs_platform_action.inputs.settings import ApiSettings, DeliverySettings, ExportSettings, WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import KNOWN_STATUSES, export_site
from docs_platform_action.models import Bundle, ExportJob, StartedExport
from docs_platform_action.report.failures import how_to_collect
from tests.unit.fakes import BASE_URL, HOST, NOON, FakeClock, Log, words

BUNDLE = Bundle(
    url="https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc",
    expires_at="2026-05-04T13:00:00Z",
    expires=NOON + timedelta(hours=1),
)
QUEUED = ExportJob(status="queued")
RUNNING = ExportJob(status="running", progress=12.0)
COMPLETED = ExportJob(status="completed", page_count=412)


def nobody_else() -> bool:
    return False


class FakeApi:
    """Answers with what it was made of, and writes down what happens in its order. The last reading repeats."""

    host = HOST

    def __init__(
        self,
        *readings: ExportJob | Exception,
        started: StartedExport | Exception | None = None,
        bundle: Bundle | Exception = BUNDLE,
        doubts: tuple[bool, ...] = (True, False),
    ) -> None:
        self.readings = list(readings)
        self.doubts = doubts
        self._started = started or StartedExport(job_id="se_1", status="queued")
        self.bundle = bundle
        self.events: list[str] = []
        self.started_with: tuple[str, Mapping[str, object]] | None = None
        self.started_at: set[float | None] = set()

    def start_export(
        self,
        domain: str,
        options: Mapping[str, object],
        *,
        on_doubt: Callable[[bool], None],
        waits_for_room: Callable[[], bool],
    ) -> StartedExport:
        assert waits_for_room is nobody_else
        self.events.append("start")
        for in_doubt in self.doubts:
            on_doubt(in_doubt)
        self.started_with = (domain, options)
        return _give(self._started)

    def read_export(self, job_id: str, *, deadline: float, started_at: float | None = None) -> ExportJob:
        del deadline
        self.events.append(f"read {job_id}")
        self.started_at.add(started_at)
        return _give(self.readings.pop(0) if len(self.readings) > 1 else self.readings[0])

    def make_bundle(self, job_id: str, *, started_at: float | None = None) -> Bundle:
        self.events.append(f"bundle {job_id}")
        self.started_at.add(started_at)
        return _give(self.bundle)


def _give(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


class Run:
    """One export with a fake API, in virtual time."""

    def __init__(self, api: FakeApi, **changes: Any) -> None:
        self.api = api
        self.clock = FakeClock()
        self.settings = ExportSettings(
            **{
                "api": ApiSettings(base_url=BASE_URL, admin_key="k", outage_tolerance_seconds=300),
                "waiting": WaitSettings(timeout_seconds=600, shortest_pause_seconds=1, longest_pause_seconds=1),
                "domain": "docs.example.com",
                "job_id": None,
                "wait": True,
                "start_options": {},
                **changes,
            }
        )
        self.record = Job(mode="export", domain=self.settings.domain, job_id=self.settings.job_id)
        self.log = Log(self.record, self.clock, *KNOWN_STATUSES)
        self.delivered: list[tuple[Bundle, DeliverySettings]] = []
        self.renew: Callable[[], Bundle]

    def __call__(self) -> None:
        export_site(
            self.settings,
            api=cast(AdminApi, self.api),
            clock=self.clock,
            record=self.record,
            log=self.log,
            on_job_known=lambda job_id: self.api.events.append(f"told {job_id}"),
            waits_for_room=nobody_else,
            keep_out=lambda bundle: self.api.events.append(f"kept out {bundle.url}"),
            mask=lambda url: self.api.events.append(f"masked {url}"),
            deliver=self.deliver,
        )

    def deliver(self, bundle: Bundle, renew: Callable[[], Bundle], settings: DeliverySettings) -> None:
        self.delivered.append((bundle, settings))
        self.renew = renew

    def failure(self) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self()
        return caught.value


class TestStarting:
    def test_the_job_is_told_before_it_is_first_read(self) -> None:
        run = Run(FakeApi(QUEUED, COMPLETED))

        run()

        assert run.api.events == ["start", "told se_1", "read se_1", "read se_1", "bundle se_1", f"kept out {BUNDLE.url}"]

    def test_domain_and_options_are_asked_for(self) -> None:
        run = Run(FakeApi(COMPLETED), start_options={"version": "v2"})

        run()

        assert run.api.started_with == ("docs.example.com", {"version": "v2"})

    def test_reads_and_the_bundle_request_know_when_this_run_started_the_job(self) -> None:
        run = Run(FakeApi(COMPLETED))

        run()

        assert run.api.started_at == {5000.0}

    def test_without_waiting_the_job_is_started_and_told_alone(self) -> None:
        run = Run(FakeApi(), wait=False)

        run()

        assert run.api.events == ["start", "told se_1"]
        assert (run.record.job_id, run.record.status, run.record.bundle) == ("se_1", "queued", None)
        assert "wait: false" in run.log.lines[-1]

    def test_a_failed_start_leaves_no_job(self) -> None:
        run = Run(FakeApi(started=StartUnconfirmed("it is unknown")))

        assert isinstance(run.failure(), StartUnconfirmed)
        assert run.record.job_id is None
        assert run.api.events == ["start"]

    def test_a_cancelled_start_stays_one_that_may_have_been_made(self) -> None:
        run = Run(FakeApi(started=Cancelled("cancelled"), doubts=(True,)))

        run.failure()

        assert run.record.start_in_doubt

    def test_one_that_was_cancelled_between_two_tries_was_not_made(self) -> None:
        run = Run(FakeApi(started=Cancelled("cancelled"), doubts=(True, False)))

        run.failure()

        assert not run.record.start_in_doubt

    def test_an_answered_start_is_over(self) -> None:
        run = Run(FakeApi(QUEUED, Unavailable("it broke")))

        run.failure()

        assert not run.record.start_in_doubt
        assert run.record.started


class TestAttaching:
    def test_the_job_is_told_before_it_is_first_read_and_none_is_started(self) -> None:
        run = Run(FakeApi(COMPLETED), job_id="se_9")

        run()

        assert run.api.events == ["told se_9", "read se_9", "bundle se_9", f"kept out {BUNDLE.url}"]
        assert run.api.started_at == {None}
        assert not run.record.started

    @pytest.mark.parametrize(
        ("domain", "title"), [("docs.example.com", "Static export of docs.example.com"), (None, "Static export")]
    )
    def test_a_domain_is_its_label(self, domain: str | None, title: str) -> None:
        run = Run(FakeApi(COMPLETED), job_id="se_9", domain=domain)

        run()

        assert run.log.lines[:2] == [title, "  Attaching to job se_9."]


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
    def test_each_begins_when_it_was_first_seen_or_last_not_seen(
        self, readings: list[ExportJob], phases: list[tuple[str, float, float | None]]
    ) -> None:
        run = Run(FakeApi(*readings))
        run()

        began = run.record.phases[0].began
        told = [(one.name, one.began - began, None if one.ended is None else one.ended - began) for one in run.record.phases]
        assert told == phases


class TestLog:
    def test_a_good_run_reads_as_a_story(self) -> None:
        running = ExportJob(status="running", progress=57.2, page_count=231)
        run = Run(FakeApi(QUEUED, QUEUED, running, running, COMPLETED))

        run()

        assert words(run.log.lines) == [
            "Static export of docs.example.com",
            "Job se_1 started. To attach to it later: job-id: se_1",
            "queued 0:01",
            "running 57 % 231 pages 0:03",
            "completed 412 pages 0:05",
            "Bundle link ready: storage.example.com/se_1/bundle.tar.gz, works until 13:00 UTC (60 min)",
        ]


class TestEnds:
    def test_a_completed_job_brings_its_bundle(self) -> None:
        run = Run(FakeApi(COMPLETED))

        run()

        assert (run.record.status, run.record.page_count, run.record.bundle) == ("completed", 412, BUNDLE)

    def test_a_failed_job_is_a_failure_with_the_platforms_own_words(self) -> None:
        error = Run(FakeApi(ExportJob(status="failed", error="page /a does not render"))).failure()

        assert isinstance(error, JobFailed)
        assert error.facts == (f'The API at {HOST} said: "page /a does not render"',)
        assert "se_1" in error.way_out

    def test_a_failed_job_without_words_says_that_there_are_none(self) -> None:
        error = Run(FakeApi(ExportJob(status="failed"))).failure()

        assert (error.facts, error.because) == ((), "The API gave no reason.")

    def test_no_bundle_is_made_of_a_failed_job(self) -> None:
        run = Run(FakeApi(ExportJob(status="failed")))

        run.failure()

        assert run.api.events[-1] == "read se_1"

    def test_a_job_that_goes_on_past_the_timeout_is_told_with_how_far_it_came(self) -> None:
        run = Run(FakeApi(ExportJob(status="running", progress=83.4, page_count=1412)))

        error = run.failure()

        assert isinstance(error, TimedOut)
        assert error.happened == "still going on after 10:00"
        assert error.facts == ("It was last seen at 83 %, 1,412 pages.",)
        assert run.clock.elapsed == pytest.approx(600)

    def test_a_bundle_that_cannot_be_used_leaves_the_job_completed(self) -> None:
        run = Run(FakeApi(COMPLETED, bundle=BadResponse("it cannot be used")))

        assert isinstance(run.failure(), BadResponse)
        assert (run.record.status, run.record.bundle) == ("completed", None)

    def test_what_was_read_before_an_outage_stays_known(self) -> None:
        run = Run(FakeApi(ExportJob(status="running", progress=12, page_count=48), Unavailable("it broke")))

        assert isinstance(run.failure(), Unavailable)
        assert (run.record.status, run.record.progress, run.record.page_count) == ("running", 12, 48)


class TestMinPages:
    SITE = Place(path=Path("/w/site"), root=Path("/w"), name="site")

    def test_an_export_with_as_many_pages_is_delivered_and_needs_no_further_count(self) -> None:
        run = Run(FakeApi(COMPLETED), delivery=DeliverySettings(site=self.SITE, min_pages=412))

        run()

        assert run.delivered == [(BUNDLE, DeliverySettings(site=self.SITE))]

    def test_one_with_fewer_fails_before_its_link_is_made(self) -> None:
        run = Run(FakeApi(COMPLETED), delivery=DeliverySettings(site=self.SITE, min_pages=413))

        error = run.failure()

        assert isinstance(error, TooFewPages)
        assert error.happened == "it has 412 pages, fewer than the 413 that `min-pages` asks for"
        assert "Nothing was published." in error.because
        assert (run.api.events[-1], run.record.bundle, run.delivered) == ("read se_1", None, [])
        assert how_to_collect(run.record, error) == (
            "Job se_1 is completed; a run with `job-id: se_1` makes its bundle link without exporting again."
        )

    def test_a_count_from_before_the_end_does_not_count(self) -> None:
        run = Run(
            FakeApi(ExportJob(status="running", page_count=500), ExportJob(status="completed")),
            delivery=DeliverySettings(min_pages=10),
        )

        error = run.failure()

        assert error.happened == "the number of its pages is unknown, and `min-pages` is set"
        assert "`site-path`" in error.way_out
        assert (run.record.bundle, run.delivered) == (None, [])

    def test_without_a_count_of_the_api_the_bundle_is_counted(self) -> None:
        asked = DeliverySettings(site=self.SITE, min_pages=10)
        run = Run(FakeApi(ExportJob(status="completed")), delivery=asked)

        run()

        assert run.delivered == [(BUNDLE, asked)]


class TestDelivering:
    def test_the_bundle_is_handed_on_with_what_the_inputs_ask(self) -> None:
        asked = DeliverySettings(version="2024-06-01")
        run = Run(FakeApi(COMPLETED), delivery=asked)

        run()

        assert run.delivered == [(BUNDLE, asked)]

    def test_a_fresh_link_is_made_through_the_api_and_takes_the_place_of_the_first(self) -> None:
        run = Run(FakeApi(COMPLETED))
        run()
        fresh = Bundle(url="https://storage.example.com/fresh")
        run.api.bundle = fresh

        assert run.renew() is run.record.bundle is fresh
        assert run.api.events[-2:] == ["bundle se_1", f"kept out {fresh.url}"]

    def test_no_link_is_masked_unless_that_is_asked_for(self) -> None:
        run = Run(FakeApi(COMPLETED))

        run()

        assert not any("masked" in told for told in (*run.api.events, *run.log.lines))

    def test_a_link_to_be_masked_is_so_before_the_log_tells_once_what_that_means(self) -> None:
        run = Run(FakeApi(COMPLETED), delivery=DeliverySettings(mask_bundle_url=True))

        run()
        run.renew()

        assert run.api.events[-6:] == ["bundle se_1", f"kept out {BUNDLE.url}", f"masked {BUNDLE.url}"] * 2
        (told,) = [line for line in run.log.lines if "masked" in line]
        assert "from job outputs" in told
        assert "`jobId`" in told

    def test_one_that_cannot_be_made_is_not_handed_on(self) -> None:
        run = Run(FakeApi(COMPLETED, bundle=BadResponse("it cannot be used")))

        run.failure()

        assert run.delivered == []


class TestLost:
    GONE = NotFound("the platform does not know the job se_1 (404)", facts=("It said no.",), request_id="r-1")

    def test_a_job_that_this_run_started_and_nobody_knows_says_so(self) -> None:
        error = Run(FakeApi(self.GONE)).failure()

        assert isinstance(error, NotFound)
        assert error.happened == "the platform no longer knows the job that it started as se_1 (404)"
        assert error.because == "It was removed, or the platform lost it."
        assert "collect it with `job-id: se_1`" in error.way_out
        assert (error.facts, error.request_id) == (("It said no.",), "r-1")

    def test_one_that_it_attached_to_was_never_known(self) -> None:
        error = Run(FakeApi(self.GONE), job_id="se_1").failure()

        assert error is self.GONE
        assert error.__cause__ is None


class TestTimeout:
    def test_a_wait_that_ends_in_an_outage_tells_of_both(self) -> None:
        run = Run(FakeApi(QUEUED, DeadlinePassed(Unavailable(f"the API at {HOST} stayed unavailable"))))

        error = run.failure()

        assert isinstance(error, TimedOut)
        assert error.facts == ("It was last seen as 'queued'.", f"At the end the API at {HOST} stayed unavailable.")
