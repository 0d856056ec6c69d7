"""When the log of a job has a line, and what is hidden in it.

`tests/wording/runs.md` has the lines.
"""

import io
from collections.abc import Callable
from typing import Any

import pytest

from docs_platform_action.errors import ActionError
from docs_platform_action.job import DEPLOYMENT, DOWNLOAD, RUN, UNPACK, VERIFICATION, Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import API, STORAGE, BundleLink, ExportJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.log import LINE_SECONDS, MAX_STATUSES, Log
from tests.virtual_time import BEGINNING, VirtualClock

MIB = 1024 * 1024


DOMAINS = ("a.example", "b.example", "c.example")


class LoggedJobs:
    """A run in a workflow, and what its log shows. `known` is known of every job."""

    def __init__(self, *domains: str, debugging: bool = False, **known: Any) -> None:
        self.clock = VirtualClock()
        self.stream = io.StringIO()
        console = Console(self.stream, in_workflow=True, debugging=debugging)
        self.jobs = [Job(kind=Export(), domain=domain, **known) for domain in domains or DOMAINS]
        self.log = Log(console, self.clock, self.jobs, max_parallel=100)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    @property
    def shown(self) -> list[str]:
        """The live lines, without the title."""
        live = []
        for line in self.lines[1:]:
            if line.startswith(("The log of", "::group::")):
                break
            live.append(" ".join(line.split()))
        return live

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def begin(self, *numbers: int) -> None:
        for number in numbers:
            self.jobs[number].began_at = self.clock.monotonic()
            self.log.job_begun(self.jobs[number])

    def start(self, number: int) -> None:
        job = self.jobs[number]
        job.job_id = "se_1"
        job.started_at = self.clock.monotonic()
        self.log.job_known(job)

    def read(
        self, number: int, status: str, progress: float | None = None, pages: int | None = None
    ) -> None:
        job = self.jobs[number]
        reading = ExportJob(status=status, progress=progress, page_count=pages)
        job.record(reading, polled_at=self.clock.monotonic())
        self.log.status_read(job)

    def end(self, number: int, failure: ActionError | None = None) -> None:
        job = self.jobs[number]
        job.failure = failure
        job.ended_at = self.clock.monotonic()
        self.log.job_ended(job)

    def warn(self, number: int, *lines: str) -> None:
        self.log.warning(self.jobs[number], lines)

    def retry(self, number: int, server: str = API) -> None:
        error = "An example of an error"
        self.log.retrying(self.jobs[number], server, error, budget_seconds=300, pause_seconds=4)

    def recover(self, number: int, after_seconds: float = 1.0, server: str = API) -> None:
        self.log.recovered(self.jobs[number], server, after_seconds=after_seconds)

    def heartbeat(self, after_seconds: float = 55) -> str:
        """Call the heartbeat after a silence; return what it shows."""
        self.clock.advance(after_seconds)
        before = len(self.shown)
        self.log.heartbeat()
        return " ".join(self.shown[before:])


SECRET = "0123456789abcdef" * 4
LINK = f"https://s.example.com/b?X-Signature={SECRET}"


def logged(**known: Any) -> LoggedJobs:
    """Return the log of one job that has begun."""
    return LoggedJobs("docs.example.com", **{"job_id": "se_1", "began_at": BEGINNING, **known})


def test_nothing_is_logged_after_the_end() -> None:
    job = logged(debugging=True)
    job.log.close()

    job.read(0, "running", 12, 48)
    job.log.warning(job.jobs[0], ["It is odd"])
    job.log.request_ended(job.jobs[0], "GET /x", outcome="200", milliseconds=1.0, request_id=None)
    job.heartbeat()

    assert job.lines == []


@pytest.mark.parametrize(
    "announce",
    [
        lambda log, job: log.link_made(job, BundleLink(url=LINK)),
        lambda log, job: log.storage_responded(
            job, LINK, status=200, requested=None, request_id=None
        ),
    ],
    ids=["link_made", "storage_responded"],
)
def test_a_link_is_shown_without_its_query(announce: Callable[[Log, Job], None]) -> None:
    job = logged(debugging=True)

    announce(job.log, job.jobs[0])

    assert "s.example.com/b" in job.stream.getvalue()
    assert "X-Signature" not in job.stream.getvalue()


@pytest.mark.parametrize(
    ("readings", "count"),
    [
        ([("running", 12.0, 48)] * 5, 1),
        ([("running", 12.1, 48), ("running", 12.9, 48)], 1),
        ([("running", 12.9, 48), ("running", 13.0, 48)], 2),
        ([("running", 12.0, 48), ("failed", 12.0, 48)], 2),
        ([("running", 12.0, 48), ("running", 12.0, 49)], 2),
        ([("polishing", None, None), ("queued", None, None), ("polishing", None, None)], 4),
        ([(f"step {number}", None, None) for number in range(1000)], 1000 + MAX_STATUSES),
    ],
    ids=[
        "same",
        "under a percent",
        "a percent",
        "status",
        "pages",
        "unknown status",
        "unknown statuses",
    ],
)
def test_each_change_of_a_reading_has_a_line_and_few_unknown_statuses_are_explained(
    readings: list[tuple[str, float | None, int | None]], count: int
) -> None:
    job = logged()

    for reading in readings:
        job.clock.advance(0.01)
        job.read(0, *reading)

    assert len(job.lines) == count


def test_the_reason_of_an_unknown_status_is_shown_once() -> None:
    job = logged()

    for _ in range(2):
        job.jobs[0].record(ExportJob(status="paused", error="no quota"))
        job.log.status_read(job.jobs[0])

    explained = [line for line in job.lines if "unknown status" in line]
    assert len(explained) == 1
    assert """unknown status 'paused' ("no quota"); waiting continues.""" in explained[0]


@pytest.mark.parametrize(
    ("domains", "line"),
    [
        (["a.example"], "::debug::GET /x: 200, 1 ms"),
        (["a.example", "b.example"], "::debug::a.example: GET /x: 200, 1 ms"),
    ],
    ids=["one", "several"],
)
def test_a_request_names_its_domain_if_there_are_several(domains: list[str], line: str) -> None:
    run = LoggedJobs(*domains, debugging=True)

    run.log.request_ended(run.jobs[0], "GET /x", outcome="200", milliseconds=1.0, request_id=None)

    assert run.lines == [line]


@pytest.mark.parametrize(
    ("job_id", "phase", "word"),
    [
        (None, RUN, "starting"),
        ("se_1", RUN, "waiting"),
        (None, DEPLOYMENT, "waiting"),
        (None, VERIFICATION, "verifying"),
    ],
)
def test_before_the_first_reading_the_heartbeat_says_what_the_run_does(
    job_id: str | None, phase: str, word: str
) -> None:
    job = logged(job_id=job_id)
    job.jobs[0].start_phase(phase, job.clock.monotonic())

    job.heartbeat()

    (line,) = job.lines
    assert line.split()[0] == word


def test_a_completed_job_has_no_percentage() -> None:
    job = logged()

    job.read(0, "completed", 100, 412)

    (line,) = job.lines
    assert "412 pages" in line
    assert "%" not in line


class TestStorage:
    def test_a_bundle_of_unknown_size_has_no_percentage(self) -> None:
        job = logged()
        job.jobs[0].start_phase(DOWNLOAD, job.clock.monotonic())
        job.wait(LINE_SECONDS)

        job.log.download_progressed(job.jobs[0], 4 * MIB, None)

        (line,) = job.lines
        assert "4.0 MiB" in line
        assert "%" not in line

    @pytest.mark.parametrize(("seconds", "count"), [(LINE_SECONDS - 1, 1), (LINE_SECONDS, 2)])
    def test_errors_in_quick_succession_have_one_line(self, seconds: float, count: int) -> None:
        job = logged()

        job.retry(0, STORAGE)
        job.wait(seconds)
        job.retry(0, STORAGE)

        assert len(job.lines) == count

    @pytest.mark.parametrize(
        ("requested", "request_id", "response"),
        [
            (None, None, "GET s.example.com/b: 206"),
            ("bytes=5-", None, "GET s.example.com/b bytes=5-: 206"),
            (None, "7f3a", "GET s.example.com/b: 206, request ID 7f3a"),
        ],
    )
    def test_a_response_is_logged_for_debugging_with_its_range_and_request_id(
        self, requested: str | None, request_id: str | None, response: str
    ) -> None:
        job = logged(debugging=True)

        job.log.storage_responded(
            job.jobs[0], LINK, status=206, requested=requested, request_id=request_id
        )

        assert job.lines == [f"::debug::{response}"]

    @pytest.mark.parametrize(
        ("phase", "event", "word"),
        [
            (DOWNLOAD, "download_progressed", "downloading"),
            (UNPACK, "unpack_progressed", "unpacking"),
        ],
    )
    def test_progress_is_logged_every_ten_seconds(self, phase: str, event: str, word: str) -> None:
        job = logged()
        job.clock.advance(1000)
        job.jobs[0].start_phase(phase, job.clock.monotonic())

        for second in range(1, int(2.5 * LINE_SECONDS) + 1):
            job.clock.advance(1)
            getattr(job.log, event)(job.jobs[0], second * 4 * MIB, 400 * MIB)

        assert [line.split()[0] for line in job.lines] == [word, word]
