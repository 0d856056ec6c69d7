"""Sites are exported in parallel, after the first one's job is known. In virtual time."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import accumulate
from string import ascii_lowercase
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock, patch

import pytest

from docs_platform_action.api.room import Room
from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    Forbidden,
    JobFailed,
    NoRoom,
    Unauthorized,
    Unavailable,
    UnknownHost,
)
from docs_platform_action.inputs.settings import (
    ExportSettings,
    PlatformSettings,
    SiteSettings,
    WaitSettings,
)
from docs_platform_action.inputs.table import Mode
from docs_platform_action.job import BUNDLE, DOWNLOAD, UNPACK, Job
from docs_platform_action.jobs import export_runner
from docs_platform_action.jobs.export import Export
from docs_platform_action.jobs.export_runner import START_GRACE_SECONDS, ExportRunner
from docs_platform_action.jobs.runner import CLEANUP_GRACE_SECONDS
from docs_platform_action.models import BundleLink, ExportJob
from docs_platform_action.signals import ABORT_GRACE_SECONDS
from tests.keys import ADMIN_KEY
from tests.unit.fakes import context
from tests.virtual_time import NOON, VirtualClock

PLATFORM = PlatformSettings(
    base_url="https://api.example.com",
    admin_key=ADMIN_KEY,
    outage_tolerance_seconds=300.0,
)
WAITING = WaitSettings(timeout_seconds=600, poll_interval_seconds=1, max_poll_interval_seconds=1)
NONE: Mapping[str, Any] = {}
DELIVERED = ["job_known", "read", "status_read", "bundle", "link_made"]


class Run:
    """Exports of the domains a, b, c …, each completed at its first reading.

    That is a second after its start. Whatever happens, such as `read a`, takes `seconds` and
    raises `errors`; a new link is valid for `links` seconds.
    """

    def __init__(
        self,
        count: int,
        max_parallel: int = 10,
        *,
        wait: bool = True,
        seconds: Any = NONE,
        errors: Any = NONE,
    ) -> None:
        self.clock = VirtualClock()
        self.seconds = seconds
        self.errors = errors
        self.links: dict[str, float | None] = {}
        self.happened: list[str] = []
        domains = ascii_lowercase[:count]
        settings = ExportSettings(
            platform=PLATFORM,
            sites=tuple(SiteSettings(domain=domain) for domain in domains),
            start_timeout_seconds=60.0,
            start_options={},
            wait=wait,
            waiting=WAITING,
            max_parallel=max_parallel,
            commit=None,
        )
        self.jobs = [Job(kind=Export(), domain=domain) for domain in domains]
        self.room = Room(self.clock, start_timeout_seconds=60.0)
        parts = context(self.clock, self, api=self, outputs=cast(Any, self))
        self.runner = ExportRunner(self.jobs, settings, parts)

    def run(self, *, signal_at: float = 1e9) -> list[str | None]:
        """Run the jobs until they end or a signal comes, and return their failure reasons."""

        def interrupt() -> None:
            self.clock.sleep(signal_at)
            self.runner.stop()
            self.clock.cancel()

        with patch.object(export_runner, "threading", SimpleNamespace(Thread=self.clock.Thread)):
            self.clock.run(self.runner.run, interrupt)
        return [_reason_of(job) for job in self.jobs]

    def trace(self, *events: str) -> list[str]:
        return [each for each in self.happened if each.split()[0] in events]

    def start_export(self, job: Job, _options: object) -> Job:
        try:
            self._happen("start", job)
        except NoRoom as refusal:
            self.room.refuse(job, refusal)
            raise
        job.record_start(f"se_{job.domain}", "queued", self.clock.monotonic())
        return job  # what `announce` gets

    def read_export(self, job: Job, **_: float) -> ExportJob:
        self._happen("read", job)
        return ExportJob(status="completed")

    def make_link(self, job: Job) -> BundleLink:
        name = self._happen("bundle" if job.link is None else "renew", job)
        seconds = self.links.get(name, 3600)
        if seconds is None:
            return BundleLink(url=name)
        return BundleLink(url=name, expires=self.clock.now() + timedelta(seconds=seconds))

    def is_start_unconfirmed(self, job: Job) -> bool:
        return job.job_id == "unconfirmed"

    def __getattr__(self, event: str) -> Callable[..., str]:
        return lambda job, *_: self._happen(event, job)

    def _happen(self, what: str, job: Job) -> str:
        name = f"{what} {job.domain}"
        self.happened.append(name)
        self.clock.sleep(self.seconds.get(name, 0))
        if name in self.errors:
            raise self.errors[name]
        return name


def _reason_of(job: Job) -> str | None:
    return None if job.failure is None else job.failure.failure_reason


@pytest.mark.parametrize(
    ("given", "reason", "events"),
    [
        ({}, None, ["start", "write_job_id", "announce", *DELIVERED]),
        ({"wait": False}, None, ["start", "write_job_id", "announce", "job_known", "noted"]),
        (
            {"errors": {"write_job_id a": OSError("the disk is full")}},
            "internal-error",
            ["start", "write_job_id"],
        ),
    ],
)
def test_a_job_is_known_before_it_is_read(
    given: Any, reason: str | None, events: list[str]
) -> None:
    run = Run(1, **given)

    assert run.run() == [reason]
    assert run.happened == [f"{event} a" for event in ("job_begun", *events, "job_ended")]
    assert run.jobs[0].job_id == "se_a"
    assert {phase.ended_at for phase in run.jobs[0].phases} <= {run.jobs[0].ended_at}


@pytest.mark.parametrize(("max_parallel", "together"), [(1, 1), (3, 3), (6, 6), (100, 6)])
def test_the_first_is_alone_until_it_is_known_then_max_parallel_run(
    max_parallel: int, together: int
) -> None:
    run = Run(6, max_parallel, seconds={"start a": 5})

    assert run.run() == [None] * 6
    assert run.trace("job_begun", "job_known")[:3] == ["job_begun a", "job_known a", "job_begun b"]
    changes = [1 if "begun" in each else -1 for each in run.trace("job_begun", "job_ended")]
    assert max(accumulate(changes)) == together


@pytest.mark.parametrize("kind", [Unauthorized, Forbidden, UnknownHost])
def test_if_the_key_or_the_host_is_refused_the_others_fail_without_a_request(
    kind: type[ActionError],
) -> None:
    error = kind(
        "refused", details=("It said so.",), cause="Why.", remedy="What to do.", request_id="r-1"
    )
    run = Run(3, errors={"start a": error})

    assert run.run() == [kind.failure_reason] * 3
    assert run.happened == ["job_begun a", "start a", "job_ended a", "job_ended b", "job_ended c"]
    failure = vars(run.jobs[2].failure)
    assert {**failure, "details": failure["details"][:-1]} == vars(error)
    assert [job.duration_seconds(1e9) for job in run.jobs] == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "error", "reasons"),
    [
        ("start a", JobFailed("failed"), ["job-failed", None, None]),
        ("read a", Unauthorized("refused"), ["unauthorized", None, None]),
        ("bundle b", ZeroDivisionError("a bug"), [None, "internal-error", None]),
    ],
)
def test_any_other_failure_leaves_the_others_alone(
    name: str, error: Exception, reasons: list[str | None]
) -> None:
    assert Run(3, 1, errors={name: error}).run() == reasons


def test_a_site_that_is_busy_shows_that_the_key_is_accepted() -> None:
    class Once(dict[str, Exception]):
        def __getitem__(self, name: str) -> Exception:
            return self.pop(name)

    errors = Once({"start a": NoRoom(status=NoRoom.BUSY), "start b": Unauthorized("refused")})
    run = Run(3, errors=errors)

    assert run.run() == [None, "unauthorized", None]
    assert run.trace("start") == ["start a", "start b", "start c", "start a"]


def test_the_link_of_a_single_site_is_not_renewed_again_at_the_end() -> None:
    run = Run(1, errors={"renew a": Unavailable("it is down")})
    run.links = {"bundle a": 30}

    assert run.run() == [None]
    assert run.trace("renew") == ["renew a"]


def test_if_no_thread_can_be_started_the_existing_ones_run_all_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Run(3)
    monkeypatch.setattr(Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))

    run.runner.run()

    assert run.trace("job_ended") == ["job_ended a", "job_ended b", "job_ended c"]


@pytest.mark.parametrize(
    ("job_id", "phase", "seconds"),
    [
        ("unconfirmed", BUNDLE, (START_GRACE_SECONDS, ABORT_GRACE_SECONDS)),
        ("se_b", DOWNLOAD, (0.0, CLEANUP_GRACE_SECONDS)),
        ("unconfirmed", UNPACK, (START_GRACE_SECONDS, CLEANUP_GRACE_SECONDS)),
    ],
)
def test_a_start_gets_time_for_its_response_and_a_delivery_to_clean_up(
    job_id: str, phase: str, seconds: Any
) -> None:
    run = Run(2)
    run.jobs[1].job_id = job_id
    run.jobs[1].start_phase(phase, 0.0)

    assert (run.runner.stop(), run.runner.abort()) == seconds
    assert run.clock.cancellation.is_aborted
    with pytest.raises(Cancelled):
        run.clock.sleep(0)


@pytest.mark.parametrize("error", [None, JobFailed("failed")])
def test_the_end_of_a_job_does_not_replace_a_recorded_cancel(error: Exception | None) -> None:
    run = Run(1, wait=False)
    ends = []
    (job,) = run.jobs

    def cancel(*_: object) -> None:
        run.runner.stop()
        run.runner.cancel_unfinished("SIGTERM")
        ends.append((job.failure, job.ended_at))
        run.clock.advance(5)  # the job's thread outlasts the cancel
        if error is not None:
            raise error

    with patch.object(run, "noted", cancel, create=True):
        run.runner.run()

    assert ends == [(job.failure, job.ended_at)]
    assert (isinstance(job.failure, Cancelled), run.trace("job_ended")) == (True, [])


def run_with_links(
    *links: float | None, max_parallel: int = 10, seconds: Any = NONE, errors: Any = NONE
) -> Run:
    """Return a run of jobs with links valid for so long after second 1.

    One more job fails at second 100, with a link.
    """
    last = f"read {ascii_lowercase[len(links)]}"
    run = Run(
        len(links) + 1,
        max_parallel,
        seconds={last: 99, **seconds},
        errors={last: JobFailed("failed"), **errors},
    )
    for job, valid in zip(run.jobs, links, strict=False):
        run.links[f"bundle {job.domain}"] = valid
    run.jobs[-1].link = BundleLink(url="of the failed job", expires=NOON)
    return run


@pytest.mark.parametrize(
    ("links", "seconds", "renewed"),
    [
        ([158.9, 159, None], {}, ["renew a"]),
        # the second expires during the first renewal
        ([100, 250, 400], {"renew a": 100}, ["renew a", "renew b"]),
    ],
)
def test_links_about_to_expire_are_renewed_after_the_last_job(
    links: Any, seconds: Any, renewed: list[str]
) -> None:
    run = run_with_links(*links, seconds=seconds)

    assert run.run() == [None, None, None, "job-failed"]
    assert run.trace("job_ended", "renew")[3:] == ["job_ended d", *renewed]
    assert [job.link.url for job in run.jobs if job.link][: len(renewed)] == renewed


def test_after_three_renewals_that_fail_in_a_row_the_other_links_are_kept_without_a_request() -> (
    None
):
    errors = {f"renew {domain}": Unavailable("it is down") for domain in "abdefgh"}
    run = run_with_links(*[100] * 8, max_parallel=1, errors=errors)

    assert run.run() == [*[None] * 8, "job-failed"]
    assert run.trace("renew") == [f"renew {domain}" for domain in "abcdef"]
    assert run.trace("warning") == [f"warning {domain}" for domain in "abdefgh"]


def test_new_links_that_live_no_longer_are_not_asked_for_again() -> None:
    run = run_with_links(100, 100)
    run.jobs[0].has_short_link = True
    run.links["renew b"] = 59

    assert run.run() == [None, None, "job-failed"]
    assert run.trace("renew") == ["renew b"]
    assert run.trace("warning") == ["warning b"]


def test_a_signal_leaves_the_jobs_without_a_new_link_unfinished() -> None:
    run = run_with_links(100, 100, 100, 3600, seconds={"renew b": 10, "renew c": 20})

    with pytest.raises(Cancelled):
        run.run(signal_at=105)
    assert [job.domain for job in run.runner.unfinished] == ["b", "c"]
    assert len(run.trace("renew")) == 2
