"""The log of a job: a line when something changes, trouble once, a sign of life in between."""

import threading
from datetime import timedelta

import pytest

from docs_platform_action.job import Job
from docs_platform_action.models import Bundle, ExportJob
from docs_platform_action.report.job_log import STANDSTILL_SECONDS
from tests.unit.fakes import NOON, FakeClock, Log, words


class LoggedJob:
    """A job and its log."""

    def __init__(self, *, in_workflow: bool = True, debugging: bool = False) -> None:
        self.clock = FakeClock()
        self.record = Job(mode="export", domain="docs.example.com", job_id="se_1")
        known = ("queued", "running", "completed", "failed")
        self.log = Log(self.record, self.clock, *known, in_workflow=in_workflow, debugging=debugging)

    def read(self, status: str, progress: float | None = None, pages: int | None = None) -> None:
        self.record.note_export(ExportJob(status=status, progress=progress, page_count=pages))
        self.log.reading()

    @property
    def told(self) -> list[str]:
        return words(self.log.lines)


class TestReadings:
    def test_a_line_shows_state_progress_pages_and_time_in_columns(self) -> None:
        job = LoggedJob()
        job.clock.pass_(31)

        job.read("running", 12.4, 48)

        assert job.log.lines == ["  running     12 %     48 pages      0:31"]

    @pytest.mark.parametrize(
        ("pages", "text"), [(0, "0 pages"), (1, "1 page"), (231, "231 pages"), (1904, "1,904 pages"), (None, "")]
    )
    def test_numbers_carry_their_unit(self, pages: int | None, text: str) -> None:
        job = LoggedJob()

        job.read("running", None, pages)

        assert job.told == [" ".join(f"running {text} 0:00".split())]

    def test_what_has_not_changed_is_not_told_again(self) -> None:
        job = LoggedJob()

        for _ in range(5):
            job.clock.pass_(1)
            job.read("running", 12.0, 48)

        assert len(job.told) == 1

    def test_a_change_of_less_than_a_percent_is_none(self) -> None:
        job = LoggedJob()

        job.read("running", 12.1)
        job.read("running", 12.9)
        job.read("running", 13.0)

        assert job.told == ["running 12 % 0:00", "running 13 % 0:00"]

    @pytest.mark.parametrize("change", [("failed", 12.0, 48), ("running", 13.0, 48), ("running", 12.0, 49)])
    def test_any_other_change_is_told(self, change: tuple[str, float, int]) -> None:
        job = LoggedJob()

        job.read("running", 12.0, 48)
        job.read(*change)

        assert len(job.told) == 2

    def test_a_completed_job_shows_no_percentage(self) -> None:
        job = LoggedJob()

        job.read("completed", 99.0, 412)

        assert job.told == ["completed 412 pages 0:00"]

    def test_time_counts_from_the_beginning_of_the_wait(self) -> None:
        job = LoggedJob()
        job.clock.pass_(100)
        job.log.waiting()
        job.clock.pass_(5)

        job.read("queued")

        assert job.told == ["queued 0:05"]

    def test_an_unknown_status_is_explained_once(self) -> None:
        job = LoggedJob()

        job.read("polishing")
        job.read("queued")
        job.read("polishing")

        assert job.told == [
            "The platform reports the status 'polishing', which is not known here; waiting goes on.",
            "polishing 0:00",
            "queued 0:00",
            "polishing 0:00",
        ]

    def test_a_hostile_status_stays_a_word(self) -> None:
        job = LoggedJob()

        job.read("::error::x\n##[warning]y")

        assert all(not line.lstrip().startswith("::") and "##[" not in line for line in job.log.lines)


class TestEstimate:
    def test_it_stands_at_the_end_of_the_line(self) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.pass_(31)
        job.read("running", 12, 48)
        job.clock.pass_(113)

        job.read("running", 57, 231)

        assert job.log.lines == [
            "  queued                             0:00",
            "  running     12 %     48 pages      0:31    about 3:50 left",
            "  running     57 %    231 pages      2:24    about 1:50 left",
        ]

    def test_a_sign_of_life_has_it_too_and_it_has_grown(self) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.pass_(50)
        job.read("running", 50)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told[-1] == "running 50 % 1:50 about 1:50 left"

    def test_an_ended_job_has_none(self) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.pass_(50)
        job.read("running", 50)

        job.read("failed", 50)

        assert job.told[-1] == "failed 50 % 0:50"

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
    def test_it_is_as_fine_as_it_can_be(self, rest: float, text: str) -> None:
        job = LoggedJob()
        job.read("queued")
        job.clock.pass_(rest)

        job.read("running", 50)

        assert job.told[-1].endswith(f" about {text} left")


class TestStandstill:
    def standing(self, seconds: float) -> LoggedJob:
        """Give a job that has been at 57 % for so long, read every 30 s."""
        job = LoggedJob()
        job.read("queued")
        job.clock.pass_(240)
        job.read("running", 57, 231)
        for _ in range(int(seconds // 30)):
            job.clock.pass_(30)
            job.read("running", 57, 231)
        return job

    def warnings(self, job: LoggedJob) -> list[str]:
        return [line for line in job.log.lines if line.startswith("::warning")]

    def test_people_are_warned_after_ten_minutes(self) -> None:
        job = self.standing(STANDSTILL_SECONDS)

        (warning,) = self.warnings(job)
        assert warning.removeprefix("::warning title=Export of docs.example.com%3A no progress for 10%3A00::").split("%0A") == [
            "Export of docs.example.com: no progress for 10:00",
            "  It has stood at 57 %25, 231 pages since 12:04 UTC.",
            "  Waiting goes on until `timeout`.",
            "  Look at job se_1 in the dashboard. To attach to it later: `job-id: se_1`",
        ]

    def test_not_sooner(self) -> None:
        assert self.warnings(self.standing(STANDSTILL_SECONDS - 30)) == []

    def test_and_not_again(self) -> None:
        job = self.standing(STANDSTILL_SECONDS * 2)
        job.read("running", 58, 231)
        for _ in range(30):
            job.clock.pass_(30)
            job.read("running", 58, 231)

        assert len(self.warnings(job)) == 1

    def test_a_sign_of_life_finds_it_between_two_readings(self) -> None:
        job = self.standing(STANDSTILL_SECONDS - 30)
        job.clock.pass_(30)

        job.log.heartbeat(55)

        assert len(self.warnings(job)) == 1
        assert job.told[-1] == "running 57 % 231 pages 14:00"

    def test_nobody_knows_of_one_while_the_api_gives_no_good_answer(self) -> None:
        job = self.standing(60)
        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=1800, pause_seconds=4)
        job.clock.pass_(STANDSTILL_SECONDS)

        job.log.heartbeat(55)
        assert self.warnings(job) == []
        job.log.recovered(STANDSTILL_SECONDS)
        job.read("running", 57, 231)

        assert "no progress for 11:00" in self.warnings(job)[0]

    def test_the_estimate_is_left_out_until_it_moves_again(self) -> None:
        job = self.standing(STANDSTILL_SECONDS)
        job.clock.pass_(55)
        job.log.heartbeat(55)
        assert "left" not in job.told[-1]

        job.read("running", 58, 231)

        assert job.told[-1].endswith("left")

    @pytest.mark.parametrize(
        ("progress", "pages", "state"),
        [(57, None, "57 %25"), (None, 231, "231 pages")],
    )
    def test_what_was_reported_is_told(self, progress: float | None, pages: int | None, state: str) -> None:
        job = LoggedJob()
        for _ in range(2):
            job.read("running", progress, pages)
            job.clock.pass_(STANDSTILL_SECONDS)

        job.log.heartbeat(55)

        assert f"It has stood at {state} since 12:00 UTC." in self.warnings(job)[0]

    def test_what_is_not_reported_any_more_is_not_made_up(self) -> None:
        job = LoggedJob()
        job.read("running", 57)
        job.clock.pass_(STANDSTILL_SECONDS)

        job.read("running")

        assert "It has stood at 'running' since 12:00 UTC." in self.warnings(job)[0]

    def test_in_the_queue_nothing_has_to_move(self) -> None:
        job = LoggedJob()
        for _ in range(3):
            job.read("queued", 0, 0)
            job.clock.pass_(STANDSTILL_SECONDS)

        job.log.heartbeat(55)

        assert self.warnings(job) == []

    def test_two_threads_that_look_at_the_same_time_warn_once(self) -> None:
        job = self.standing(STANDSTILL_SECONDS - 30)
        job.clock.pass_(30)
        barrier = threading.Barrier(4)

        def look() -> None:
            barrier.wait()
            job.log.heartbeat(55)

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(self.warnings(job)) == 1


class TestHeartbeat:
    def test_a_sign_of_life_comes_after_silence(self) -> None:
        job = LoggedJob()
        job.read("running", 12.0)
        job.clock.pass_(55)

        job.log.heartbeat(55)

        assert job.told == ["running 12 % 0:00", "running 12 % 0:55"]

    def test_none_comes_sooner(self) -> None:
        job = LoggedJob()
        job.read("running", 12.0)
        job.clock.pass_(54)

        job.log.heartbeat(55)

        assert len(job.told) == 1

    def test_any_line_breaks_the_silence(self) -> None:
        job = LoggedJob()
        job.clock.pass_(50)
        job.log.note("Something.")
        job.clock.pass_(50)

        job.log.heartbeat(55)

        assert job.told == ["Something."]

    def test_it_tells_that_the_api_gives_no_good_answer(self) -> None:
        job = LoggedJob()
        job.read("running")
        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=300, pause_seconds=4)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told[-1] == "running 1:00 (no good answer from the API)"

    def test_and_no_longer_once_it_does(self) -> None:
        job = LoggedJob()
        job.read("running")
        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=300, pause_seconds=4)
        job.log.recovered(38)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told[-1] == "running 1:00"

    @pytest.mark.parametrize(("job_id", "state"), [(None, "starting"), ("se_1", "waiting")])
    def test_before_the_first_reading_it_tells_what_is_waited_for(self, job_id: str | None, state: str) -> None:
        job = LoggedJob()
        job.record.job_id = job_id
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told == [f"{state} 1:00"]

    def test_what_the_job_is_busy_with_takes_the_place_of_its_state(self) -> None:
        job = LoggedJob()
        job.read("completed", None, 412)
        job.log.busy_with(lambda: "downloading")
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.log.lines[1:] == ["  downloading"]

    def test_and_trouble_stands_beside_it(self) -> None:
        job = LoggedJob()
        job.log.busy_with(lambda: "downloading")
        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=300, pause_seconds=4)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.log.lines[-1] == "  downloading    (no good answer from the API)"

    def test_once_it_is_busy_with_nothing_its_state_is_back(self) -> None:
        job = LoggedJob()
        job.read("completed", None, 412)
        job.log.busy_with(lambda: "downloading")
        job.log.busy_with(None)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told[-1] == "completed 412 pages 1:00"


class TestTrouble:
    def test_it_is_told_with_what_happens_next(self) -> None:
        job = LoggedJob()

        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=300, pause_seconds=12)
        job.log.recovered(38.2)

        assert job.log.lines == [
            "  The API answered 502 (bad gateway). Trying again for up to 5:00, next in 12 s.",
            "  The API answers again after 0:38.",
        ]


class TestBundle:
    @pytest.mark.parametrize(
        ("bundle", "told"),
        [
            (
                Bundle(url="https://s.example.com/se_1/b.tar.gz?X-Signature=abc", expires=NOON + timedelta(minutes=59)),
                "Bundle link ready: s.example.com/se_1/b.tar.gz, works until 12:59 UTC (59 min)",
            ),
            (
                Bundle(url="https://s.example.com/b", expires=NOON + timedelta(days=2)),
                "Bundle link ready: s.example.com/b, works until 2026-05-06 12:00 UTC (2 days)",
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
    def test_the_link_is_told_without_what_opens_it(self, bundle: Bundle, told: str) -> None:
        job = LoggedJob()

        job.log.bundle_ready(bundle)

        assert job.told == [told]

    def test_what_masking_it_means_is_told(self) -> None:
        job = LoggedJob()

        job.log.link_masked()

        (told,) = job.told
        assert told == (
            "The link is masked, as `mask-bundle-url` asks: later steps of this job can read `bundleUrl`, but GitHub drops it, "
            "and `results` with it, from job outputs. For another job pass `jobId` on, and make a fresh link there with `job-id`."
        )

    def test_outside_of_a_workflow_nothing_masks_it(self) -> None:
        job = LoggedJob(in_workflow=False)

        job.log.link_masked()

        assert job.told == ["Outside of a workflow nothing masks the link, which is among the outputs below."]


class TestExchanges:
    def test_they_are_for_debugging(self) -> None:
        job = LoggedJob(debugging=True)

        job.log.exchanged("GET", "/v1/x", outcome="200", milliseconds=12.3, request_id="r-1")
        job.log.exchanged("GET", "/v1/x", outcome="502", milliseconds=0.4, request_id=None)

        assert job.log.lines == ["::debug::GET /v1/x: 200, 12 ms request id r-1", "::debug::GET /v1/x: 502, 0 ms"]

    def test_otherwise_they_are_silent(self) -> None:
        job = LoggedJob()

        job.log.exchanged("GET", "/v1/x", outcome="200", milliseconds=12.3, request_id="r-1")

        assert job.log.lines == []


def test_a_title_stands_out_and_notes_are_indented() -> None:
    job = LoggedJob()

    job.log.title("Static export of docs.example.com")
    job.log.note("Attaching to job se_1.")

    assert job.log.lines == ["Static export of docs.example.com", "  Attaching to job se_1."]


def test_a_warning_is_an_annotation() -> None:
    job = LoggedJob()

    job.log.warning(["It is odd", "Because."])

    assert job.log.lines == ["::warning title=It is odd::It is odd%0A  Because."]
