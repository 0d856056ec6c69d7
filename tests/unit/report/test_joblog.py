"""The log of a job: a line when something changes, trouble once, a sign of life in between."""

from datetime import timedelta

import pytest

from docs_platform_action.model import Bundle, ExportJob
from docs_platform_action.record import JobRecord
from tests.unit.fakes import NOON, FakeClock, Log, words


class Job:
    """A job and its log."""

    def __init__(self, *, debugging: bool = False) -> None:
        self.clock = FakeClock()
        self.record = JobRecord(mode="export", domain="docs.example.com", job_id="se_1")
        self.log = Log(self.record, self.clock, "queued", "running", "completed", "failed", debugging=debugging)

    def read(self, status: str, progress: float | None = None, pages: int | None = None) -> None:
        self.record.note_export(ExportJob(status=status, progress=progress, page_count=pages))
        self.log.reading()

    @property
    def told(self) -> list[str]:
        return words(self.log.lines)


class TestReadings:
    def test_a_line_shows_state_progress_pages_and_time_in_columns(self) -> None:
        job = Job()
        job.clock.pass_(31)

        job.read("running", 12.4, 48)

        assert job.log.lines == ["  running     12 %     48 pages      0:31"]

    @pytest.mark.parametrize(
        ("pages", "text"), [(0, "0 pages"), (1, "1 page"), (231, "231 pages"), (1904, "1,904 pages"), (None, "")]
    )
    def test_numbers_carry_their_unit(self, pages: int | None, text: str) -> None:
        job = Job()

        job.read("running", None, pages)

        assert job.told == [" ".join(f"running {text} 0:00".split())]

    def test_what_has_not_changed_is_not_told_again(self) -> None:
        job = Job()

        for _ in range(5):
            job.clock.pass_(1)
            job.read("running", 12.0, 48)

        assert len(job.told) == 1

    def test_a_change_of_less_than_a_percent_is_none(self) -> None:
        job = Job()

        job.read("running", 12.1)
        job.read("running", 12.9)
        job.read("running", 13.0)

        assert job.told == ["running 12 % 0:00", "running 13 % 0:00"]

    @pytest.mark.parametrize("change", [("failed", 12.0, 48), ("running", 13.0, 48), ("running", 12.0, 49)])
    def test_any_other_change_is_told(self, change: tuple[str, float, int]) -> None:
        job = Job()

        job.read("running", 12.0, 48)
        job.read(*change)

        assert len(job.told) == 2

    def test_a_completed_job_shows_no_percentage(self) -> None:
        job = Job()

        job.read("completed", 99.0, 412)

        assert job.told == ["completed 412 pages 0:00"]

    def test_time_counts_from_the_beginning_of_the_wait(self) -> None:
        job = Job()
        job.clock.pass_(100)
        job.log.waiting()
        job.clock.pass_(5)

        job.read("queued")

        assert job.told == ["queued 0:05"]

    def test_an_unknown_status_is_explained_once(self) -> None:
        job = Job()

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
        job = Job()

        job.read("::error::x\n##[warning]y")

        assert all(not line.lstrip().startswith("::") and "##[" not in line for line in job.log.lines)


class TestHeartbeat:
    def test_a_sign_of_life_comes_after_silence(self) -> None:
        job = Job()
        job.read("running", 12.0)
        job.clock.pass_(55)

        job.log.heartbeat(55)

        assert job.told == ["running 12 % 0:00", "running 12 % 0:55"]

    def test_none_comes_sooner(self) -> None:
        job = Job()
        job.read("running", 12.0)
        job.clock.pass_(54)

        job.log.heartbeat(55)

        assert len(job.told) == 1

    def test_any_line_breaks_the_silence(self) -> None:
        job = Job()
        job.clock.pass_(50)
        job.log.note("Something.")
        job.clock.pass_(50)

        job.log.heartbeat(55)

        assert job.told == ["Something."]

    def test_it_tells_that_the_api_gives_no_good_answer(self) -> None:
        job = Job()
        job.read("running")
        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=300, pause_seconds=4)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told[-1] == "running 1:00 (no good answer from the API)"

    def test_and_no_longer_once_it_does(self) -> None:
        job = Job()
        job.read("running")
        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=300, pause_seconds=4)
        job.log.recovered(38)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told[-1] == "running 1:00"

    @pytest.mark.parametrize(("job_id", "state"), [(None, "starting"), ("se_1", "waiting")])
    def test_before_the_first_reading_it_tells_what_is_waited_for(self, job_id: str | None, state: str) -> None:
        job = Job()
        job.record.job_id = job_id
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told == [f"{state} 1:00"]

    def test_what_the_job_is_busy_with_takes_the_place_of_its_state(self) -> None:
        job = Job()
        job.read("completed", None, 412)
        job.log.busy_with(lambda: "downloading")
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.log.lines[1:] == ["  downloading"]

    def test_and_trouble_stands_beside_it(self) -> None:
        job = Job()
        job.log.busy_with(lambda: "downloading")
        job.log.trouble("The API answered 502 (bad gateway)", budget_seconds=300, pause_seconds=4)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.log.lines[-1] == "  downloading    (no good answer from the API)"

    def test_once_it_is_busy_with_nothing_its_state_is_back(self) -> None:
        job = Job()
        job.read("completed", None, 412)
        job.log.busy_with(lambda: "downloading")
        job.log.busy_with(None)
        job.clock.pass_(60)

        job.log.heartbeat(55)

        assert job.told[-1] == "completed 412 pages 1:00"


class TestTrouble:
    def test_it_is_told_with_what_happens_next(self) -> None:
        job = Job()

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
        job = Job()

        job.log.bundle_ready(bundle)

        assert job.told == [told]

    def test_what_masking_it_means_is_told(self) -> None:
        job = Job()

        job.log.link_masked()

        (told,) = job.told
        assert told == (
            "The link is masked, as `mask-bundle-url` asks: later steps of this job can read `bundleUrl`, but GitHub drops it, "
            "and `results` with it, from job outputs. For another job pass `jobId` on, and make a fresh link there with `job-id`."
        )


class TestExchanges:
    def test_they_are_for_debugging(self) -> None:
        job = Job(debugging=True)

        job.log.exchanged("GET", "/v1/x", outcome="200", milliseconds=12.3, request_id="r-1")
        job.log.exchanged("GET", "/v1/x", outcome="502", milliseconds=0.4, request_id=None)

        assert job.log.lines == ["::debug::GET /v1/x: 200, 12 ms request id r-1", "::debug::GET /v1/x: 502, 0 ms"]

    def test_otherwise_they_are_silent(self) -> None:
        job = Job()

        job.log.exchanged("GET", "/v1/x", outcome="200", milliseconds=12.3, request_id="r-1")

        assert job.log.lines == []


def test_a_title_stands_out_and_notes_are_indented() -> None:
    job = Job()

    job.log.title("Static export of docs.example.com")
    job.log.note("Attaching to job se_1.")

    assert job.log.lines == ["Static export of docs.example.com", "  Attaching to job se_1."]
