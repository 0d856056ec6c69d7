"""An export is started or collected, waited for, and its link made."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

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
from docs_platform_action.inputs.settings import DeliverySettings, Mode, OutputPath
from docs_platform_action.job import BUNDLE as BUNDLED
from docs_platform_action.job import QUEUE, RUN
from docs_platform_action.models import ExportJob
from tests.unit.jobs.scripted import BUNDLE, Scripted
from tests.virtual_time import BEGINNING

QUEUED = ExportJob(status="queued")
RUNNING = ExportJob(status="running", progress=12.0, page_count=48)
COMPLETED = ExportJob(status="completed", page_count=412)
UNCOUNTED = ExportJob(status="completed")
FAILED = ExportJob(status="failed")
UNUSABLE = BadResponse("it cannot be used")
GONE = NotFound("it is gone", details=("It said no.",), request_id="r-1")
Reading = ExportJob | Exception
READ = ["read", "status_read"]
COLLECT = {"mode": Mode.COLLECT, "job_id": "se_9"}


@pytest.mark.parametrize(
    ("changes", "events"),
    [
        ({}, ["start", *READ, *READ, "bundle", "link_made"]),
        (COLLECT, [*READ, *READ, "bundle", "link_made"]),
    ],
)
def test_an_export_is_started_read_until_it_has_ended_and_packed(changes: dict[str, Any], events: list[str]) -> None:
    scripted = Scripted(QUEUED, COMPLETED, **changes)

    scripted.run()

    assert scripted.events.names == events


@pytest.mark.parametrize(("options", "sent"), [({"version": "v2"}, {"version": "v2"}), (None, {})])
def test_a_job_of_this_run_has_what_the_start_request_returned(
    options: dict[str, object] | None, sent: dict[str, object]
) -> None:
    scripted = Scripted(wait=False, start_options=options)

    job = scripted.run()

    assert scripted.options == sent
    assert (job.job_id, job.status, job.started_at, job.link) == ("se_1", "queued", BEGINNING, None)


@pytest.mark.parametrize(
    ("readings", "phases"),
    [
        ([QUEUED, QUEUED, RUNNING, COMPLETED], [(QUEUE, 0, 3), (RUN, 3, 4), (BUNDLED, 4, None)]),
        ([RUNNING, COMPLETED], [(RUN, 0, 2), (BUNDLED, 2, None)]),
        ([ExportJob(status="preparing"), COMPLETED], [(RUN, 0, 2), (BUNDLED, 2, None)]),
        ([QUEUED, QUEUED, COMPLETED], [(QUEUE, 0, 2), (RUN, 2, 3), (BUNDLED, 3, None)]),
        ([COMPLETED], [(RUN, 0, 1), (BUNDLED, 1, None)]),
    ],
)
def test_a_phase_begins_with_its_first_reading_or_the_last_reading_before(
    readings: list[ExportJob], phases: list[tuple[str, float, float | None]]
) -> None:
    job = Scripted(*readings).run()

    began = job.phases[0].began_at
    seen = [(one.name, one.began_at - began, None if one.ended_at is None else one.ended_at - began) for one in job.phases]
    assert seen == phases


@pytest.mark.parametrize(
    ("readings", "changes", "kind", "known", "last"),
    [
        ([], {"started": StartUnconfirmed("it is unknown")}, StartUnconfirmed, (None, None, None), "start"),
        ([FAILED], {}, JobFailed, ("failed", None, None), "status_read"),
        ([RUNNING], {}, TimedOut, ("running", 12, 48), "status_read"),
        ([RUNNING, Unavailable("it broke")], {}, Unavailable, ("running", 12, 48), "read"),
        ([COMPLETED], {"bundle": UNUSABLE}, BadResponse, ("completed", None, 412), "bundle"),
    ],
)
def test_a_failure_ends_the_export_and_leaves_what_was_known_before(
    readings: list[Reading], changes: dict[str, Any], kind: type[ActionError], known: tuple[object, ...], last: str
) -> None:
    scripted = Scripted(*readings, **changes)

    error = scripted.failure()

    job = scripted.job
    assert (type(error), (job.status, job.progress, job.pages)) == (kind, known)
    assert (scripted.events.names[-1], job.link, scripted.delivered) == (last, None, [])


@pytest.mark.parametrize("readings", [[GONE], [COMPLETED]], ids=["job", "bundle"])
@pytest.mark.parametrize("known", [{}, COLLECT], ids=["started", "collected"])
def test_a_job_or_bundle_that_is_gone_is_the_apis_error(readings: list[Reading], known: dict[str, Any]) -> None:
    assert Scripted(*readings, bundle=GONE, **known).failure() is GONE


SITE = DeliverySettings(site_path=OutputPath(path=Path("/w/site"), root=Path("/w"), name="site"))


@pytest.mark.parametrize(
    ("last", "settings", "counted"),
    [
        (COMPLETED, DeliverySettings(export_version="2024-06-01"), None),
        (COMPLETED, replace(SITE, min_pages=412), None),
        (COMPLETED, DeliverySettings(min_pages=412), None),
        (UNCOUNTED, replace(SITE, min_pages=10), 10),
    ],
)
def test_the_bundle_is_delivered_and_its_pages_counted_only_if_the_api_has_no_count(
    last: ExportJob, settings: DeliverySettings, counted: int | None
) -> None:
    scripted = Scripted(last, delivery=settings)

    job = scripted.run()

    assert (job.status, job.page_count, job.link) == ("completed", last.page_count, BUNDLE)
    assert scripted.delivered == [(BUNDLE, replace(settings, min_pages=counted))]


@pytest.mark.parametrize(
    ("last", "settings"),
    [
        (COMPLETED, replace(SITE, min_pages=413)),
        (COMPLETED, DeliverySettings(min_pages=413)),
        (UNCOUNTED, DeliverySettings(min_pages=10)),
    ],
)
def test_an_export_with_too_few_pages_fails_before_its_link_is_made(last: ExportJob, settings: DeliverySettings) -> None:
    scripted = Scripted(ExportJob(status="running", page_count=500), last, delivery=settings)

    assert isinstance(scripted.failure(), TooFewPages)
    assert (scripted.events.names[-1], scripted.job.status, scripted.job.link) == ("status_read", "completed", None)
    assert scripted.delivered == []
