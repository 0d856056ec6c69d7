"""Exports that exist already: what is done in which order, and what ends them."""

from typing import Any, Final

import pytest

from docs_platform_action.errors import ActionError, JobFailed, TooFewPages
from docs_platform_action.inputs.settings import (
    CollectSettings,
    DeliverySettings,
    PublicationSettings,
    SiteSettings,
)
from docs_platform_action.job import Job
from docs_platform_action.jobs import collect
from docs_platform_action.models import BundleLink, ExportJob
from tests.unit.fakes import RecordedEvents, context
from tests.unit.jobs.steps import PLATFORM, WAITING, run_steps
from tests.virtual_time import VirtualClock

DELIVERY: Final = DeliverySettings(
    publication=PublicationSettings(min_pages=10), mask_bundle_url=True
)
SETTINGS: Final = CollectSettings(
    platform=PLATFORM,
    job_id="se_1",
    site=SiteSettings(domain="docs.example.com", delivery=DELIVERY),
    waiting=WAITING,
)


class Run:
    """The steps of a job with this reading. All that happens is in one list."""

    outage_tolerance_seconds = 300.0

    def __init__(self, reading: ExportJob) -> None:
        self.reading = reading
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        (self.task,) = collect.batch(SETTINGS).tasks
        outputs: Any = self
        self.parts = context(self.clock, self.events, platform=self, outputs=outputs)

    def run(self) -> Job:
        return run_steps(self.task, self.parts)

    def write_job_id(self, job: Job) -> None:
        self.events.seen.append(("write_job_id", job))

    def read_export(self, job: Job, deadline: float) -> ExportJob:
        self.events.seen.append(("read", job, deadline))
        return self.reading

    def make_link(self, job: Job) -> BundleLink:
        self.events.seen.append(("make_link", job))
        return BundleLink(url="https://s.example.com/b")

    def export_failure(self, job: Job) -> JobFailed:
        assert job.reading is self.reading
        return JobFailed(f"failed with {self.reading.error}")


def test_a_job_is_known_before_it_is_read_and_delivered() -> None:
    run = Run(ExportJob(status="completed", page_count=10))

    job = run.run()

    assert run.events.names == [
        "write_job_id",
        "job_known",
        "read",
        "status_read",
        "make_link",
        "link_made",
    ]
    assert job.job_id == "se_1"
    assert job.domain == "docs.example.com"
    assert job.masks_bundle_url


@pytest.mark.parametrize(
    ("reading", "kind", "words"),
    [
        (ExportJob(status="failed", error="no disk"), JobFailed, "no disk"),
        (ExportJob(status="completed", page_count=9), TooFewPages, "9 pages"),
        (ExportJob(status="completed"), TooFewPages, "unknown"),
    ],
)
def test_one_that_has_failed_or_has_too_few_pages_is_not_delivered(
    reading: ExportJob, kind: type[ActionError], words: str
) -> None:
    run = Run(reading)

    with pytest.raises(kind, match=words):
        run.run()

    assert run.events.names == ["write_job_id", "job_known", "read", "status_read"]
