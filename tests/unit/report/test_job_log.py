"""The log of a job: a line when something changes, one per outage, and a heartbeat in between."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from docs_platform_action.errors import JobFailed
from docs_platform_action.job import Job
from docs_platform_action.jobs.progress import DisplayedEstimate
from docs_platform_action.models import API, STORAGE, AgentJob, Bundle, Downloaded, ExportJob
from docs_platform_action.report.job_log import LINE_SECONDS, MAX_STATUSES, MIN_REPORTED_OUTAGE_SECONDS, STALL_SECONDS
from tests.unit.fakes import Log, words
from tests.virtual_time import NOON, VirtualClock

MIB = 1024 * 1024
LONG_SECRET = "0123456789abcdef" * 4


class LoggedJob:
    """A job and its log."""

    def __init__(self, *, in_workflow: bool = True, debugging: bool = False, **known: Any) -> None:
        self.clock = VirtualClock()
        self.job = Job(**{"mode": "export", "domain": "docs.example.com", "job_id": "se_1", **known})
        self.estimate = self.job.estimate = DisplayedEstimate()
        self.log = Log(self.job, self.clock, in_workflow=in_workflow, debugging=debugging)

    def read(self, status: str, progress: float | None = None, pages: int | None = None) -> None:
        reading = ExportJob(status=status, progress=progress, page_count=pages)
        self.job.update_export(reading, self.clock.monotonic())
        now, queued = self.clock.monotonic(), status == ExportJob.QUEUED
        self.estimate.update(now, progress, self.job.pages_so_far, queued=queued, ended=reading.has_ended)
        self.log.status_read(self.job)

    def retry(self, server: str = API, error: str = "The API returned 502 (bad gateway)", seconds: float = 4) -> None:
        self.log.retrying(self.job, server, error, budget_seconds=300, pause_seconds=seconds)

    def recover(self, after_seconds: float, server: str = API) -> None:
        self.log.recovered(self.job, server, after_seconds=after_seconds)

    def heartbeat(self, after_seconds: float = 60) -> str:
        """Call the heartbeat after a silence; return the last line."""
        self.clock.advance(after_seconds)
        self.log.heartbeat()
        return self.log.lines[-1]

    def receive(self, count: int, size: int | None = None, *, after_seconds: float = 0) -> None:
        self.clock.advance(after_seconds)
        self.log.download_progressed(self.job, count, size)

    def downloaded(self, size: int = 1024, sha256: str = "0123456789", path: str | None = None) -> str:
        self.job.downloaded, self.job.bundle_path = Downloaded(size=size, sha256=sha256), path
        self.log.downloaded(self.job)
        return self.log.lines[-1]

    @property
    def shown(self) -> list[str]:
        return words(self.log.lines)


class TestBeginning:
    @pytest.mark.parametrize(
        ("known", "title"),
        [
            ({}, "Static export of docs.example.com"),
            ({"domain": None}, "Static export"),
            ({"mode": "agent", "domain": None, "project_id": "prj_1", "job_id": "aj_1"}, "Agent job aj_1 of project prj_1"),
        ],
    )
    def test_the_title_names_the_job(self, known: dict[str, str | None], title: str) -> None:
        job = LoggedJob(**known)

        job.log.job_begun(job.job)

        assert job.log.lines == [title]

    @pytest.mark.parametrize(
        ("known", "shown"),
        [
            ({"started_at": 1.0}, ["  Job se_1 started (attach to it later with job-id: se_1)"]),
            ({}, ["  Attaching to job se_1."]),
            ({"mode": "agent"}, []),
        ],
    )
    def test_the_log_says_whether_the_job_was_started_or_attached_to(self, known: dict[str, Any], shown: list[str]) -> None:
        job = LoggedJob(**known)

        job.log.job_known(job.job)

        assert job.log.lines == shown

    def test_a_job_that_is_not_waited_for_is_logged(self) -> None:
        job = LoggedJob()

        job.log.not_waiting(job.job)

        assert job.log.lines == ["  Not waiting for the job, because `wait` is `false`."]


class TestEnd:
    @pytest.mark.parametrize(
        ("status", "link", "shown"),
        [
            ("completed", "https://git.example.com/7", "  Pull request: https://git.example.com/7"),
            ("archived", "https://git.example.com/7", "  Pull request: https://git.example.com/7"),
            ("completed", None, "  No pull request."),
        ],
    )
    def test_an_agent_job_logs_its_pull_request(self, status: str, link: str | None, shown: str) -> None:
        job = LoggedJob(mode="agent", agent_job=AgentJob(status=status, pr_link=link))

        job.log.job_ended(job.job)
        job.log.close()

        assert job.log.lines == [shown]

    @pytest.mark.parametrize("known", [{"mode": "agent", "failure": JobFailed("the agent failed")}, {}])
    def test_other_jobs_log_no_end(self, known: dict[str, Any]) -> None:
        job = LoggedJob(**known)

        job.log.job_ended(job.job)

        assert job.log.lines == []


class TestReadings:
    def test_a_line_shows_state_progress_pages_and_time_in_columns(self) -> None:
        job = LoggedJob()
        job.clock.advance(31)

        job.read("running", 12.4, 48)

        assert job.log.lines == ["  running     12 %     48 pages      0:31"]

    @pytest.mark.parametrize(
        ("pages", "text"), [(0, "0 pages"), (1, "1 page"), (231, "231 pages"), (1904, "1,904 pages"), (None, "")]
    )
    def test_numbers_carry_their_unit(self, pages: int | None, text: str) -> None:
        job = LoggedJob()

        job.read("running", None, pages)

        assert job.shown == [" ".join(f"running {text} 0:00".split())]

    def test_an_unchanged_reading_is_not_logged_again(self) -> None:
        job = LoggedJob()

        for _ in range(5):
            job.clock.advance(1)
            job.read("running", 12.0, 48)

        assert len(job.shown) == 1

    def test_a_change_of_less_than_a_percent_is_not_logged(self) -> None:
        job = LoggedJob()

        job.read("running", 12.1)
        job.read("running", 12.9)
        job.read("running", 13.0)

        assert job.shown == ["running 12 % 0:00", "running 13 % 0:00"]

    @pytest.mark.parametrize("change", [("failed", 12.0, 48), ("running", 13.0, 48), ("running", 12.0, 49)])
    def test_any_other_change_is_logged(self, change: tuple[str, float, int]) -> None:
        job = LoggedJob()

        job.read("running", 12.0, 48)
        job.read(*change)

        assert len(job.shown) == 2

    def test_a_completed_job_shows_no_percentage(self) -> None:
        job = LoggedJob()

        job.read("completed", 99.0, 412)

        assert job.shown == ["completed 412 pages 0:00"]

    def test_time_counts_from_the_beginning_of_the_wait(self) -> None:
        job = LoggedJob()
        job.clock.advance(100)
        job.log.polling(job.job)
        job.clock.advance(5)

        job.read("queued")

        assert job.shown == ["queued 0:05"]

    def test_of_many_unknown_statuses_a_few_are_explained_and_each_has_its_line(self) -> None:
        job = LoggedJob()

        for number in range(1000):
            job.read(f"step {number}")

        assert sum("unknown status" in line for line in job.log.lines) == MAX_STATUSES
        assert sum(line.startswith("  step ") for line in job.log.lines) == 1000

    @pytest.mark.parametrize("status", ["x" * 1000, f"{'x' * 40} {LONG_SECRET} {'y' * 900}"])
    def test_a_long_status_is_shortened_after_its_secrets_are_hidden(self, status: str) -> None:
        job = LoggedJob()
        job.log.link_redirected(job.job, f"https://s.example.com/b?X-Signature={LONG_SECRET}")

        job.read(status)

        assert all(len(line) < 130 for line in job.log.lines)
        assert "…" in job.log.lines[-1]
        assert not any(LONG_SECRET[:8] in line for line in job.log.lines)

    def test_an_unknown_status_is_explained_once(self) -> None:
        job = LoggedJob()

        job.read("polishing")
        job.read("queued")
        job.read("polishing")

        assert job.shown == [
            "The platform reports the unknown status 'polishing'; waiting continues.",
            "polishing 0:00",
            "queued 0:00",
            "polishing 0:00",
        ]

    def test_a_hostile_status_stays_a_word(self) -> None:
        job = LoggedJob()

        job.read("::error::x\n##[warning]y")

        assert all(not line.lstrip().startswith("::") and "##[" not in line for line in job.log.lines)


class TestEstimate:
    def test_it_is_at_the_end_of_the_line(self) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.advance(31)
        job.read("running", 12, 48)
        job.clock.advance(113)

        job.read("running", 57, 231)

        assert job.log.lines == [
            "  queued                             0:00",
            "  running     12 %     48 pages      0:31    about 3:50 left",
            "  running     57 %    231 pages      2:24    about 1:50 left",
        ]

    def test_a_heartbeat_has_a_new_estimate(self) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.advance(50)
        job.read("running", 50)
        job.clock.advance(60)

        job.log.heartbeat()

        assert job.shown[-1] == "running 50 % 1:50 about 1:50 left"

    def test_an_ended_job_has_no_estimate(self) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.advance(50)
        job.read("running", 50)

        job.read("failed", 50)

        assert job.shown[-1] == "failed 50 % 0:50"

    @pytest.mark.parametrize(
        ("rest", "text"),
        [
            (5, "0:05"),
            (7.4, "0:05"),
            (7.6, "0:10"),
            (57.6, "1:00"),
            (64.9, "1:00"),
            (65.1, "1:10"),
            (594, "9:50"),
            (596, "10:00"),
            (629, "10:00"),
            (631, "11:00"),
            (3871, "1:05:00"),
        ],
    )
    def test_it_is_rounded_by_its_length(self, rest: float, text: str) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.advance(rest)

        job.read("running", 50)

        assert job.shown[-1].endswith(f" about {text} left")


class TestStall:
    def stalled(self, seconds: float) -> LoggedJob:
        """Return a job that has been at 57 % for this long, read every 30 s."""
        job = LoggedJob()
        job.read("queued")
        job.clock.advance(240)
        job.read("running", 57, 231)
        for _ in range(int(seconds // 30)):
            job.clock.advance(30)
            job.read("running", 57, 231)
        return job

    def warnings(self, job: LoggedJob) -> list[str]:
        return [line for line in job.log.lines if line.startswith("::warning")]

    def test_the_log_warns_after_ten_minutes(self) -> None:
        job = self.stalled(STALL_SECONDS)

        (warning,) = self.warnings(job)
        assert warning.removeprefix("::warning::").split("%0A") == [
            "Export of docs.example.com: no progress for 10:00",
            "  It has been at 57 %25, 231 pages since 12:04 UTC.",
            "  The action keeps waiting until `timeout`.",
            "  Check job se_1 in the dashboard. To attach to it later, use `job-id: se_1`.",
        ]

    def test_the_log_does_not_warn_sooner(self) -> None:
        assert self.warnings(self.stalled(STALL_SECONDS - 30)) == []

    def test_the_log_warns_once(self) -> None:
        job = self.stalled(STALL_SECONDS * 2)
        job.read("running", 58, 231)
        for _ in range(30):
            job.clock.advance(30)
            job.read("running", 58, 231)

        assert len(self.warnings(job)) == 1

    def test_a_heartbeat_finds_it_between_two_readings(self) -> None:
        job = self.stalled(STALL_SECONDS - 30)
        job.clock.advance(30)

        job.log.heartbeat()

        assert len(self.warnings(job)) == 1
        assert job.shown[-1] == "running 57 % 231 pages 14:00"

    def test_there_is_no_warning_during_an_outage_of_the_api(self) -> None:
        job = self.stalled(60)
        job.retry()
        job.clock.advance(STALL_SECONDS)

        job.log.heartbeat()
        assert self.warnings(job) == []
        job.recover(STALL_SECONDS)
        job.read("running", 57, 231)

        assert "no progress for 11:00" in self.warnings(job)[0]

    def test_the_estimate_is_left_out_until_it_moves_again(self) -> None:
        job = self.stalled(STALL_SECONDS)
        job.clock.advance(55)
        job.log.heartbeat()
        assert "left" not in job.shown[-1]

        job.read("running", 58, 231)

        assert job.shown[-1].endswith("left")

    @pytest.mark.parametrize(
        ("progress", "pages", "state"),
        [(57, None, "57 %25"), (None, 231, "231 pages")],
    )
    def test_the_warning_names_the_reported_progress(self, progress: float | None, pages: int | None, state: str) -> None:
        job = LoggedJob()
        for _ in range(2):
            job.read("running", progress, pages)
            job.clock.advance(STALL_SECONDS)

        job.log.heartbeat()

        assert f"It has been at {state} since 12:00 UTC." in self.warnings(job)[0]

    def test_progress_that_is_no_longer_reported_is_not_named(self) -> None:
        job = LoggedJob()
        job.read("running", 57)
        job.clock.advance(STALL_SECONDS)

        job.read("running")

        assert "It has been at 'running' since 12:00 UTC." in self.warnings(job)[0]

    def test_a_queued_job_does_not_stall(self) -> None:
        job = LoggedJob()
        for _ in range(3):
            job.read("queued", 0, 0)
            job.clock.advance(STALL_SECONDS)

        job.log.heartbeat()

        assert self.warnings(job) == []

    def test_concurrent_heartbeats_warn_once(self) -> None:
        job = self.stalled(STALL_SECONDS - 30)
        job.clock.advance(30)
        barrier = threading.Barrier(4)

        def look() -> None:
            barrier.wait()
            job.log.heartbeat()

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(self.warnings(job)) == 1


class TestHeartbeat:
    def test_it_comes_after_silence(self) -> None:
        job = LoggedJob()
        job.read("running", 12.0)
        job.clock.advance(55)

        job.log.heartbeat()

        assert job.shown == ["running 12 % 0:00", "running 12 % 0:55"]

    def test_it_does_not_come_sooner(self) -> None:
        job = LoggedJob()
        job.read("running", 12.0)
        job.clock.advance(54)

        job.log.heartbeat()

        assert len(job.shown) == 1

    def test_any_line_breaks_the_silence(self) -> None:
        job = LoggedJob()
        job.clock.advance(50)
        job.log.values_written(job.job)
        job.clock.advance(50)

        job.log.heartbeat()

        assert len(job.shown) == 1

    def test_it_shows_an_outage_of_the_api(self) -> None:
        job = LoggedJob()
        job.read("running")
        job.retry()
        job.clock.advance(60)

        job.log.heartbeat()

        assert job.shown[-1] == "running 1:00 (no successful response from the API)"

    def test_it_no_longer_shows_an_outage_that_is_over(self) -> None:
        job = LoggedJob()
        job.read("running")
        job.retry()
        job.recover(38)
        job.clock.advance(60)

        job.log.heartbeat()

        assert job.shown[-1] == "running 1:00"

    @pytest.mark.parametrize(("job_id", "state"), [(None, "starting"), ("se_1", "waiting")])
    def test_before_the_first_reading_it_shows_the_state(self, job_id: str | None, state: str) -> None:
        job = LoggedJob()
        job.job.job_id = job_id
        job.clock.advance(60)

        job.log.heartbeat()

        assert job.shown == [f"{state} 1:00"]

    def test_without_an_estimate_it_shows_none(self) -> None:
        job = LoggedJob()
        job.job.estimate = None

        assert words([job.heartbeat()]) == ["waiting 1:00"]

    def test_during_a_download_it_shows_the_download(self) -> None:
        job = LoggedJob()
        job.read("completed", None, 412)
        job.log.downloading(job.job)

        assert words([job.heartbeat()]) == ["downloading 0 bytes 0 bytes/s 1:00"]

    def test_during_a_download_it_shows_an_outage_too(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.retry()

        assert words([job.heartbeat()]) == ["downloading 0 bytes 0 bytes/s 1:00 (no successful response from the API)"]

    def test_it_shows_the_progress_of_a_stalled_download(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.receive(40 * MIB, 400 * MIB, after_seconds=10)

        assert words([job.heartbeat()]) == ["downloading 10 % 40.0 MiB of 400.0 MiB 0 bytes/s 1:10"]
        assert len(job.shown) == 2

    def test_during_unpacking_it_shows_the_unpacking(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.log.unpacking(job.job)

        assert words([job.heartbeat()]) == ["unpacking 0 files, 0 bytes 1:00"]

    def test_it_shows_the_progress_of_stalled_unpacking(self) -> None:
        job = LoggedJob()
        job.log.unpacking(job.job)
        job.clock.advance(10)
        job.log.unpack_progressed(job.job, 7, 3000)

        assert job.heartbeat() == "  unpacking            7 files, 2.9 KiB      1:10"


class TestOutages:
    def test_an_outage_of_the_api_is_logged_with_the_next_attempt(self) -> None:
        job = LoggedJob()

        job.retry(seconds=12)
        job.recover(38.2)

        assert job.log.lines == [
            "  The API returned 502 (bad gateway). Retrying for up to 5:00, next attempt in 12 s.",
            "  The API is responding again after 0:38.",
        ]

    def test_an_outage_of_the_storage_is_logged_with_the_next_attempt(self) -> None:
        job = LoggedJob()

        job.retry(STORAGE, "The storage returned 503 after 1,024 bytes")

        assert job.log.lines == ["  The storage returned 503 after 1,024 bytes. Retrying for up to 5:00, next attempt in 4 s."]

    @pytest.mark.parametrize(
        ("lasted", "shown"),
        [
            (MIN_REPORTED_OUTAGE_SECONDS - 0.1, []),
            (MIN_REPORTED_OUTAGE_SECONDS, ["  The download resumed after 0:05."]),
        ],
    )
    def test_only_the_end_of_a_long_storage_outage_is_logged(self, lasted: float, shown: list[str]) -> None:
        job = LoggedJob()

        job.recover(lasted, STORAGE)

        assert job.log.lines == shown

    def test_connections_that_keep_breaking_are_logged_every_ten_seconds(self) -> None:
        job = LoggedJob()

        for _ in range(90):
            job.retry(STORAGE, "It broke off", 0.5)
            job.clock.advance(0.25)

        assert job.log.lines == ["  It broke off. Retrying for up to 5:00, next attempt in 0.5 s."] * 3


class TestLink:
    @pytest.mark.parametrize(
        ("bundle", "shown"),
        [
            (
                Bundle(url="https://s.example.com/se_1/b.tar.gz?X-Signature=abc", expires=NOON + timedelta(minutes=59)),
                "Bundle link ready: s.example.com/se_1/b.tar.gz, valid until 12:59 UTC (59 min)",
            ),
            (
                Bundle(url="https://s.example.com/b", expires=NOON + timedelta(days=2)),
                "Bundle link ready: s.example.com/b, valid until 2026-05-06 12:00 UTC (2 days)",
            ),
            (
                Bundle(url="https://s.example.com/b", expires=NOON - timedelta(minutes=1)),
                "Bundle link ready: s.example.com/b, expired at 11:59 UTC by this runner's clock",
            ),
            (
                Bundle(url="https://s.example.com/b", expires_at="soon"),
                "Bundle link ready: s.example.com/b",
            ),
        ],
    )
    def test_it_is_logged_without_its_query(self, bundle: Bundle, shown: str) -> None:
        job = LoggedJob(bundle=bundle)

        job.log.link_made(job.job)

        assert job.shown == [shown]

    SIGNED = Bundle(url="https://s.example.com/b?X-Signature=0123456789abcdef", expires_at="0123456789abcdef of May")

    def test_its_secrets_are_hidden_from_then_on(self) -> None:
        job = LoggedJob(bundle=replace(self.SIGNED, expires_at=None))
        job.log.link_made(job.job)

        job.log.warning(job.job, ["It said 0123456789abcdef"])

        assert job.log.lines[-1] == "::warning::It said …"

    def test_the_secrets_of_a_fresh_link_and_of_a_redirect_are_hidden_too(self) -> None:
        job = LoggedJob(bundle=self.SIGNED)
        job.log.link_renewed(job.job)
        job.log.link_redirected(job.job, "https://t.example.com/b?X-Signature=fedcba9876543210")

        job.log.warning(job.job, ["0123456789abcdef and fedcba9876543210"])

        assert job.log.lines == ["  New bundle link: s.example.com/b", "::warning::… and …"]

    @pytest.mark.parametrize(("expires", "shown"), [(NOON, "at 2026-05-04T12"), (None, "at …")])
    def test_of_a_link_that_repeats_when_it_expires_only_a_date_stays_visible(self, expires: datetime | None, shown: str) -> None:
        url = "https://s.example.com/b?X-Signature=2026-05-04T12"
        job = LoggedJob(bundle=Bundle(url=url, expires_at="2026-05-04T12", expires=expires))
        job.log.link_renewed(job.job)

        job.log.warning(job.job, ["at 2026-05-04T12"])

        assert job.log.lines[-1] == f"::warning::{shown}"

    def test_a_masked_link_is_masked_and_what_that_means_is_told(self) -> None:
        job = LoggedJob(bundle=self.SIGNED, masks_bundle_url=True)

        job.log.link_made(job.job)

        masking, ready, explanation = job.log.lines
        assert (masking, ready) == (f"::add-mask::{self.SIGNED.url}", "  Bundle link ready: s.example.com/b")
        assert explanation == (
            "  The link is masked, because `mask-bundle-url` is set: later steps of this job can read it, but GitHub drops job "
            "outputs that contain it, also `results`. Another job can make a new link with `job-id: se_1`."
        )

    @pytest.mark.parametrize(("masked", "shown"), [(True, [f"::add-mask::{SIGNED.url}"]), (False, [])])
    def test_so_is_a_fresh_one(self, masked: bool, shown: list[str]) -> None:
        job = LoggedJob(bundle=self.SIGNED, masks_bundle_url=masked)

        job.log.link_renewed(job.job)

        assert job.log.lines == [*shown, "  New bundle link: s.example.com/b"]

    def test_a_fresh_link_is_logged_with_its_expiry(self) -> None:
        job = LoggedJob(bundle=replace(self.SIGNED, expires=NOON + timedelta(hours=1)))

        job.log.link_renewed(job.job)

        assert job.shown == ["New bundle link: s.example.com/b, valid until 13:00 UTC (60 min)"]

    def test_outside_of_a_workflow_nothing_masks_it(self) -> None:
        job = LoggedJob(bundle=self.SIGNED, masks_bundle_url=True, in_workflow=False)

        job.log.link_made(job.job)

        assert job.shown == [
            "Bundle link ready: s.example.com/b",
            "Outside a workflow, `mask-bundle-url` hides the link only if OUTPUT_ENV_FILE is set.",
        ]

    def test_an_expired_link_is_logged_with_the_next_step(self) -> None:
        job = LoggedJob()

        job.log.link_expired(job.job, "The storage rejected the link with 403 (AccessDenied)")

        assert job.log.lines == ["  The storage rejected the link with 403 (AccessDenied). Making a new link."]


class TestDebugging:
    def test_requests_are_logged(self) -> None:
        job = LoggedJob(debugging=True)

        job.log.request_ended(job.job, "GET /v1/x", outcome="200", milliseconds=12.3, request_id="r-1")
        job.log.request_ended(job.job, "GET /v1/x", outcome="502", milliseconds=0.4, request_id=None)

        assert job.log.lines == ["::debug::GET /v1/x: 200, 12 ms, request id r-1", "::debug::GET /v1/x: 502, 0 ms"]

    def test_responses_of_the_storage_are_logged(self) -> None:
        job, address = LoggedJob(debugging=True), "https://s.example.com/b"

        job.log.storage_responded(job.job, address, status=206, requested="bytes=10-", request_id="r-1")
        job.log.storage_responded(job.job, address, status=503, requested=None, request_id=None)

        assert job.log.lines == [
            "::debug::GET s.example.com/b bytes=10-: 206, request id r-1",
            "::debug::GET s.example.com/b: 503",
        ]

    def test_without_debug_logging_they_are_not(self) -> None:
        job = LoggedJob()

        job.log.request_ended(job.job, "GET /v1/x", outcome="200", milliseconds=12.3, request_id="r-1")

        assert job.log.lines == []


class TestDownload:
    def test_a_small_bundle_is_logged_in_one_line(self) -> None:
        job = LoggedJob()
        job.clock.advance(100)
        job.log.downloading(job.job)
        job.receive(40 * MIB, 40 * MIB, after_seconds=1.9)

        job.downloaded(40 * MIB, "9b1c" + "0" * 56 + "e07a", "out/bundle.tar.gz")

        assert job.log.lines == ["  Downloaded 40.0 MiB to out/bundle.tar.gz in 1.9 s, SHA-256 9b1c…e07a"]

    def test_without_bundle_path_the_line_has_no_path(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.clock.advance(75)

        assert job.downloaded(512, "ab" * 32) == "  Downloaded 512 bytes in 75 s, SHA-256 abab…abab"

    def test_the_line_counts_connections(self) -> None:
        job = LoggedJob()
        for status in (200, 503, 206, 403, 206):
            job.log.storage_responded(job.job, "https://s.example.com/x", status=status, requested=None, request_id=None)

        assert job.downloaded() == "  Downloaded 1.0 KiB in under 0.1 s over 3 connections, SHA-256 0123…6789"

    def test_an_archive_that_is_saved_later_is_logged(self) -> None:
        job = LoggedJob(bundle_path="out/bundle.tar.gz")

        job.log.archive_saved(job.job)

        assert job.log.lines == ["  Saved the archive to out/bundle.tar.gz"]

    def test_the_progress_of_a_large_bundle_is_logged_every_ten_seconds(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)

        for second in range(1, 26):
            job.receive(second * 4 * MIB, 400 * MIB, after_seconds=1)

        assert job.log.lines == [
            "  downloading  10 %    40.0 MiB of 400.0 MiB      4.0 MiB/s      0:10",
            "  downloading  20 %    80.0 MiB of 400.0 MiB      4.0 MiB/s      0:20",
        ]

    def test_a_bundle_of_unknown_size_has_no_percentage(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)

        job.receive(2500, after_seconds=10)

        assert job.log.lines == ["  downloading                        2.4 KiB    250 bytes/s      0:10"]

    def test_the_rate_is_that_since_the_previous_line(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.receive(100 * MIB, 400 * MIB, after_seconds=10)

        job.receive(110 * MIB, 400 * MIB, after_seconds=20)

        assert job.log.lines[-1] == "  downloading  27 %   110.0 MiB of 400.0 MiB    512.0 KiB/s      0:30"

    def test_no_line_comes_before_ten_seconds(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)

        job.receive(1, 2, after_seconds=LINE_SECONDS - 0.1)

        assert job.log.lines == []

    def test_a_download_that_moves_to_the_workspace_counts_from_zero(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.receive(100 * MIB, after_seconds=10)
        job.log.download_moved(job.job)
        job.log.downloading(job.job)

        job.receive(10 * MIB, 10 * MIB, after_seconds=10)

        assert job.log.lines[1:] == [
            "  The bundle does not fit in the runner's temporary folder. Using the workspace's disk instead.",
            "  downloading 100 %     10.0 MiB of 10.0 MiB      1.0 MiB/s      0:10",
        ]

    def test_a_restarted_download_gives_the_reason_and_counts_from_zero(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.receive(100 * MIB, after_seconds=10)
        job.log.download_restarted(job.job, "the storage does not resume downloads")

        job.receive(20 * MIB, after_seconds=10)

        assert job.log.lines[1:] == [
            "  Restarting the download: the storage does not resume downloads.",
            "  downloading                       20.0 MiB      2.0 MiB/s      0:20",
        ]

    def test_a_rate_is_never_negative(self) -> None:
        job = LoggedJob()
        job.log.downloading(job.job)
        job.receive(100 * MIB, after_seconds=10)

        job.receive(20 * MIB, after_seconds=10)

        assert "0 bytes/s" in job.log.lines[-1]


class TestUnpacking:
    def test_a_small_site_is_logged_in_one_line(self) -> None:
        job = LoggedJob(site_files=1, site_path="out/site")
        job.log.unpacking(job.job)
        job.log.unpack_progressed(job.job, 1, 3)

        job.log.unpacked(job.job)

        assert job.log.lines == ["  Unpacked 1 file to out/site/"]

    def test_the_progress_of_a_large_site_is_logged_every_ten_seconds(self) -> None:
        job = LoggedJob(site_files=5000, site_path="site")
        job.clock.advance(1000)
        job.log.unpacking(job.job)

        for second in range(1, 26):
            job.clock.advance(1)
            job.log.unpack_progressed(job.job, second * 200, second * 4 * MIB)
        job.log.unpacked(job.job)

        assert job.log.lines == [
            "  unpacking        2,000 files, 40.0 MiB      0:10",
            "  unpacking        4,000 files, 80.0 MiB      0:20",
            "  Unpacked 5,000 files to site/",
        ]

    def test_a_hostile_name_stays_a_name(self) -> None:
        job = LoggedJob(site_files=2, site_path="a##[error]b")

        job.log.unpacked(job.job)

        assert job.log.lines == ["  Unpacked 2 files to a# #[error]b/"]


def test_the_values_file_is_logged_by_its_name() -> None:
    job = LoggedJob(values_file="deploy/values.yaml")

    job.log.values_written(job.job)

    assert job.log.lines == ["  Wrote the Helm values file deploy/values.yaml"]


def test_a_warning_is_an_annotation() -> None:
    job = LoggedJob()

    job.log.warning(job.job, ["It is odd", "Because."])

    assert job.log.lines == ["::warning::It is odd%0A  Because."]
