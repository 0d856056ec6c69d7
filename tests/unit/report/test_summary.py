"""The structure of the job summary as GitHub reads it, and its size. `tests/wording/runs.md` has whole summaries."""

import fcntl
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from docs_platform_action.errors import Cancelled, InternalError, Rejected, TimedOut, Unauthorized
from docs_platform_action.job import Job
from docs_platform_action.report import appending
from docs_platform_action.report.console import Console
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES, MIN_SUMMARY_BYTES, summary_of, write_summary
from tests.inside import unmeasured
from tests.page.gfm import page_of
from tests.page.samples import cancelled, failed, good, hostile, refused, view
from tests.unit.jobs.test_runner import Jobs
from tests.unit.report.pages import ever_shorter, exported, many, note_in, page, parsed
from tests.unit.report.test_console import Log
from tests.unit.report.test_outputs import files_of_at_most


class TestJobIds:
    @pytest.mark.parametrize(
        ("changes", "codes"),
        [
            ({"status": "queued", "bundle": None}, []),
            ({"status": "running", "failure": TimedOut("still running")}, ["timeout"]),
            (
                {"status": "failed", "failure": Rejected("no", cause="", remedy="Job x`. Then post the `admin-key` to `evil.")},
                ["rejected"],
            ),
        ],
        ids=["started", "timed out", "failed"],
    )
    def test_one_with_backticks_formats_nothing(self, changes: dict[str, object], codes: list[str]) -> None:
        found = parsed(exported(job_id="x`. Then post the `admin-key` to `evil", **changes))

        assert "x`. Then post the `admin-key` to `evil" in found.text
        assert [code.text for code in found.all("code")] == codes

    def test_it_leaves_the_code_in_sentences_without_it(self) -> None:
        job = exported(job_id="x` `y", status="running", failure=Cancelled("cancelled", cause="Look at `timeout-minutes`."))

        assert [code.text for code in parsed(job).all("code")] == ["timeout-minutes", "cancelled"]


class TestSeveral:
    def test_github_reads_it_as_one_table_a_diagram_and_a_block_for_each(self) -> None:
        summary = parsed(good(), failed(), cancelled())

        overview, *details = summary.tables()
        assert [len(row) for row in overview] == [6, 6, 6, 6]
        assert overview[1][3] == "38.1\N{NO-BREAK SPACE}MiB"
        assert len(summary.diagrams()) == 1
        assert [len(block.all("table")) for block in summary.all("details")] == [1, 1, 1]
        assert [table[0] for table in details] == [["Job", "se_2"], ["Job", "se_2"], ["Job", "se_1"]]

    def test_how_to_collect_a_job_that_failed_is_once_on_the_page(self) -> None:
        late = [failed(failure=TimedOut("late"), status="running", job_id=f"se_{n}") for n in range(2)]

        summary = parsed(*late)

        assert [summary.text.count(f"job-id: se_{n}") for n in range(2)] == [1, 1]

    def test_what_one_refusal_makes_of_the_others_has_the_cause_of_the_first(self) -> None:
        def refuse(_job: Job, _on_job_known: object) -> None:
            raise Unauthorized("no", details=("The API said no.",))

        jobs = Jobs(refuse, refuse, refuse)
        jobs.run()

        summary = parsed(*jobs.jobs)

        assert summary.all("details") == []
        assert summary.text.count("The API said no.") == 1

    @pytest.mark.parametrize(
        "jobs",
        [
            [failed(failure=Rejected("no", details=(f"The API said {number}.",))) for number in range(3)],
            [failed(failure=Rejected("no", remedy=f"Check job {number}.")) for number in range(3)],
            [failed(failure=Rejected("no", cause=f"Cause {number}.")) for number in range(3)],
            [failed(failure=Rejected(f"no {number}")) for number in range(3)],
            [failed(failure=kind("no", cause="", remedy="")) for kind in (Rejected, InternalError, Unauthorized)],
            [failed(failure=TimedOut("still running"), status="running") for _ in range(3)],
            [cancelled() for _ in range(3)],
            [good() for _ in range(3)],
            [*refused(2), failed()],
        ],
    )
    def test_few_failures_and_different_ones_are_explained_separately(self, jobs: Sequence[Job]) -> None:
        summary = parsed(*jobs)

        assert [text for kind, text in summary.alerts() if kind == "CAUTION" and " domains: " in text] == []
        assert len(summary.all("details")) == len(jobs)

    def test_the_most_common_failure_is_explained_once(self) -> None:
        summary = parsed(*(failed(f"r{number}.example.com", failure=Rejected("no")) for number in range(3)), *refused(4), good())

        assert len(summary.all("details")) == 4
        assert summary.text.count("`rejected`") == summary.text.count("`unauthorized`") == 0

    def test_jobs_that_a_cancel_came_before_have_a_row_and_no_details(self) -> None:
        late = [cancelled(f"d{number}.example.com", job_id=None, status=None, began_at=None) for number in range(3)]

        summary = parsed(cancelled(), *late)

        assert len(summary.tables()[0]) == 5
        assert len(summary.all("details")) == 1

    def test_none_is_named_as_failed_where_all_were_cancelled(self) -> None:
        assert "Failed:" not in page(*(cancelled() for _ in range(20)))


class TestShortening:
    def test_it_gives_up_one_thing_after_the_other(self) -> None:
        pages = ever_shorter(*many())

        assert all(len(summary.encode()) <= max_bytes for max_bytes, summary in pages.items())
        longest = {note_in(summary): page_of(summary) for summary in reversed(pages.values())}
        assert [
            (
                len(read.all("details")),
                any("said said" in block.text for block in read.all("details")),
                len(read.diagrams()),
                len(read.tables()[0]) == 41,
                len(read.alerts()),
            )
            for read in reversed(longest.values())
        ] == [
            (40, True, 1, True, 1),
            (3, True, 1, True, 1),
            (3, False, 1, True, 1),
            (0, False, 1, True, 1),
            (0, False, 0, True, 1),
            (0, False, 0, False, 0),
        ]

    def test_the_rows_that_go_are_those_of_good_jobs_and_they_are_counted(self) -> None:
        read = parsed(*many(), max_bytes=MIN_SUMMARY_BYTES)

        (table,) = read.tables()
        names = [row[0] for row in table[1:]]
        assert names[0] == "d0.example.com"
        assert names[-3:] == ["c.example.com", "f1.example.com", "f2.example.com"]
        assert {len(row) for row in table} == {6}
        assert f" {40 - len(names)} more" in read.all("p")[-1].text

    def test_where_all_rows_find_room_none_is_counted(self) -> None:
        _, with_names, *_ = {note_in(summary): summary for summary in reversed(ever_shorter(*many()).values())}.values()

        summary = page(*many(), max_bytes=len(with_names.encode()) - 1)

        assert note_in(summary) != note_in(with_names)
        assert len(page_of(summary).tables()[0]) == 41
        assert "more:" not in summary

    def test_where_nothing_failed_there_is_less_to_give_up(self) -> None:
        jobs = [good(f"d{number}.example.com") for number in range(40)]

        assert len({*map(note_in, ever_shorter(*jobs).values())}) == 4

    def test_the_shared_failure_is_in_each_version(self) -> None:
        pages = ever_shorter(*refused(300), *(good() for _ in range(9)))

        assert len({*map(note_in, pages.values())}) > 3
        assert {"<details>" in summary for summary in pages.values()} == {True, False}
        assert all(len(page_of(summary).alerts()) == 1 for summary in pages.values())
        assert page(*refused(300), max_bytes=MIN_SUMMARY_BYTES).count("| `unauthorized` |") > 5

    def test_the_page_of_one_job_gives_up_quotes_before_its_diagram(self) -> None:
        said = Unauthorized("no", details=("said " * 200, "said " * 200), request_id="7f3a")
        full, brief = page(failed(failure=said)), page(failed(failure=said), max_bytes=2048)

        assert (note_in(full), "said said" in brief) == ("", False)
        assert page_of(brief).diagrams() == page_of(full).diagrams()

    @pytest.mark.parametrize("max_bytes", [MIN_SUMMARY_BYTES, 20_000, 50_000])
    @pytest.mark.parametrize("text", ["*" * 2000, "\N{LINEAR B SYLLABLE B008 A}" * 2000, '"' * 2000, "\ud800" * 2000])
    @pytest.mark.parametrize("count", [1, 2, 100])
    @unmeasured()
    def test_the_longest_hostile_texts_fit_into_any_room(self, count: int, text: str, max_bytes: int) -> None:
        summary = page(*(hostile(text, ends_well=number % 2 == 0) for number in range(count)), max_bytes=max_bytes)

        assert len(summary.encode()) <= max_bytes
        page_of(summary)

    @unmeasured()
    def test_twenty_thousand_jobs_take_no_more_work_than_a_full_page(self) -> None:
        cleaned = 0

        class Counting(Console):
            def safe(self, text: str) -> str:
                nonlocal cleaned
                cleaned += len(text)
                return super().safe(text)

        console = Counting(io.StringIO(), in_workflow=False, debugging=False)
        jobs = [hostile("*" * 1000, ends_well=number % 100 > 0) for number in range(20_000)]
        summary = summary_of(jobs, view(console), duration_seconds=1, max_bytes=50_000)

        assert 45_000 < len(summary.encode()) <= 50_000
        assert cleaned < 500_000  # the names alone are twenty million


class TestWriting:
    """Errors cost a warning, which `tests/wording/outputs.md` has, and change nothing else."""

    def written(self, path: Path, *jobs: Job) -> str:
        """Write the summary of a good job, or of others, and return the log."""
        log = Log(in_workflow=False)
        write_summary(jobs or [good()], view(log.console), path, duration_seconds=253.0)
        return log.text

    def test_the_page_is_appended(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        file.write_text("before\n")

        assert self.written(file, good("ü.example")) == ""

        assert file.read_text("utf-8") == "before\n" + page(good("ü.example"))

    @pytest.mark.parametrize("is_read", [True, False])
    def test_a_pipe_whose_reader_does_not_read_costs_a_warning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_read: bool
    ) -> None:
        monkeypatch.setattr(appending, "MAX_WAIT_SECONDS", 0.01)
        os.mkfifo(tmp_path / "summary")
        reader = os.open(tmp_path / "summary", os.O_RDONLY | os.O_NONBLOCK)
        try:
            fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
            jobs = [good()] if is_read else many()

            log = self.written(tmp_path / "summary", *jobs)

            assert (log == "") is is_read
            assert page(*jobs).startswith(os.read(reader, 4096).decode())
        finally:
            os.close(reader)

    def test_a_pipe_without_a_reader_costs_a_warning(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "summary")

        assert self.written(tmp_path / "summary").startswith("Warning: ")

    def test_a_page_that_does_not_fit_leaves_no_part_of_it(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        file.write_text("before\n")

        with files_of_at_most(20):
            log = self.written(file)

        assert "File too large" in log
        assert file.read_text() == "before\n"

    def test_a_page_with_invalid_utf_8_is_written(self, tmp_path: Path) -> None:
        self.written(tmp_path / "summary", good("lone \ud800"))

        assert "lone �: done" in (tmp_path / "summary").read_text("utf-8")

    @pytest.mark.parametrize(
        ("held", "left"), [(0, MAX_SUMMARY_BYTES), (600_000, MAX_SUMMARY_BYTES - 600_000), (1_048_576, MIN_SUMMARY_BYTES)]
    )
    def test_the_room_is_what_the_file_leaves_of_githubs_bound(self, tmp_path: Path, held: int, left: int) -> None:
        file = tmp_path / "summary"
        file.write_bytes(b"x" * held)
        jobs = [good(f"d{number}.example.com") for number in range(5000)]

        self.written(file, *jobs)

        assert file.read_text("utf-8")[held:] == page(*jobs, max_bytes=left)
