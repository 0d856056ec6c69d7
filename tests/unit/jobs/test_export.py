"""Exports: what is done in which order, and what is asked for each site.

`test_runner.py` has how several run side by side, and the scenarios what comes of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from docs_platform_action.inputs.settings import (
    CommitSettings,
    DeliverySettings,
    ExportSettings,
    SiteSettings,
)
from docs_platform_action.job import Job
from docs_platform_action.jobs import export
from docs_platform_action.jobs.export import ExportWork
from docs_platform_action.models import BundleLink, Deployment, ExportJob
from tests.unit.fakes import RecordedEvents, context
from tests.unit.jobs.steps import PLATFORM, WAITING, run_steps
from tests.virtual_time import VirtualClock

COMMIT: Final = CommitSettings(
    commit="9f8e7d6c",
    commit_timeout_seconds=300.0,
    github_token="ghs_t0ken",
    deployment_creator="docs-platform[bot]",
    deployment_environment=None,
    github_api_url="https://git.example.com/api/v3",
    github_server_url="https://git.example.com",
    github_repository="octo/docs",
)
DEPLOYED: Final = Deployment(
    id=1,
    commit="9f8e7d6c",
    commit_url="https://git.example.com/octo/docs/commit/9f8e7d6c",
    creator="docs-platform[bot]",
    environment="docs",
    is_transient=False,
    state="success",
)
SETTINGS: Final = ExportSettings(
    platform=PLATFORM,
    sites=(SiteSettings(domain="a"),),
    start_timeout_seconds=60.0,
    start_options={"theme": "dark"},
    wait=True,
    waiting=WAITING,
    max_parallel=3,
    commit=None,
)
SEVERAL: Final = replace(
    SETTINGS,
    sites=(
        SiteSettings(domain="a", delivery=DeliverySettings(mask_bundle_url=True)),
        SiteSettings(domain="b", project_id="65"),
    ),
)


class Run:
    """The steps of the first site of an export, which completes at its first reading.

    The platform, the outputs and the events are recorded in one list.
    """

    outage_tolerance_seconds = 300.0

    def __init__(self, settings: ExportSettings, *, write_error: Exception | None = None) -> None:
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.write_error = write_error
        self.task = export.batch(settings).tasks[0]
        self.given: object = None
        outputs: Any = self
        self.parts = context(self.clock, self.events, platform=self, outputs=outputs)

    @property
    def happened(self) -> list[str]:
        return self.events.names

    def run(self) -> Job:
        self.task.job.began_at = self.clock.monotonic()
        return run_steps(self.task, self.parts)

    def start_export(self, job: Job, options: object) -> str:
        self.given = options
        self._happen("start", job)
        job.record_start("se_1", "queued", self.clock.monotonic())
        return "what is to be announced"

    def announce(self, answered: str) -> None:
        self._happen("announce", answered)

    def write_job_id(self, job: Job) -> None:
        self._happen("write_job_id", job)
        if self.write_error is not None:
            raise self.write_error

    def read_export(self, job: Job, deadline: float) -> ExportJob:
        self._happen("read", job)
        assert deadline > self.clock.monotonic()
        return ExportJob(status="completed")

    def make_link(self, job: Job) -> BundleLink:
        self._happen("make_link", job)
        return BundleLink(url="https://s.example.com/b")

    def _happen(self, what: str, about: object) -> None:
        self.events.seen.append((what, about))


@pytest.mark.parametrize(
    ("settings", "events"),
    [
        (
            SETTINGS,
            [
                "start",
                "write_job_id",
                "announce",
                "job_known",
                "read",
                "status_read",
                "make_link",
                "link_made",
            ],
        ),
        (
            replace(SETTINGS, wait=False),
            ["start", "write_job_id", "announce", "job_known", "noted"],
        ),
        (replace(SEVERAL, wait=False), ["start", "announce", "job_known", "noted"]),
    ],
    ids=["wait", "no wait", "of several"],
)
def test_the_id_of_a_single_job_is_written_before_anything_is_said_or_read(
    settings: ExportSettings, events: Sequence[str]
) -> None:
    run = Run(settings)

    job = run.run()

    assert run.happened == events
    assert ("announce", "what is to be announced") in run.events.seen
    assert run.given == {"theme": "dark"}
    assert job.job_id == "se_1"


def test_nothing_is_said_of_a_job_whose_id_cannot_be_written() -> None:
    run = Run(SETTINGS, write_error=OSError("the disk is full"))

    with pytest.raises(OSError, match="full"):
        run.run()

    assert run.happened == ["start", "write_job_id"]
    assert run.task.job.job_id == "se_1"


def test_there_is_a_task_for_each_site_in_their_order() -> None:
    batch = export.batch(SEVERAL)

    first, second = batch.jobs
    assert [(job.domain, job.project_id) for job in batch.jobs] == [("a", None), ("b", "65")]
    assert [job.masks_bundle_url for job in batch.jobs] == [True, False]
    assert batch.deliveries == {
        first: SEVERAL.sites[0].delivery,
        second: SEVERAL.sites[1].delivery,
    }
    assert batch.platform == PLATFORM
    assert batch.commit is None
    assert batch.start_timeout_seconds == 60
    assert batch.max_parallel == 3
    assert [task.settings.is_only_one for task in batch.tasks] == [False, False]


def test_the_link_of_a_single_site_is_not_renewed_again_at_the_end() -> None:
    assert export.batch(SETTINGS).deliveries == {}


def test_the_commit_is_that_of_the_settings() -> None:
    assert export.batch(replace(SETTINGS, commit=COMMIT)).commit == COMMIT


def test_the_commit_is_waited_for_again_before_each_attempt_to_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[tuple[Job, object]] = []

    def wait(job: Job, github: object, _context: object) -> None:
        waited.append((job, github))

    monkeypatch.setattr(export, "wait_until_deployed", wait)
    (task,) = export.batch(replace(SETTINGS, commit=COMMIT)).tasks
    parts = context(VirtualClock(), RecordedEvents(), github="GitHub")

    task.job.deployed = DEPLOYED  # by the first attempt
    export.wait_for_commit(task.job, task.settings, parts)

    assert waited == [(task.job, "GitHub")]


def test_without_a_commit_none_is_waited_for_and_none_noted() -> None:
    run = Run(SETTINGS)
    job = run.task.job
    work: ExportWork = run.task.settings

    export.wait_for_commit(job, work, run.parts)
    export.note_later_commit(job, work, run.parts)

    assert job.phases == []
    assert run.happened == []
