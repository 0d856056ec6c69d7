"""The job summary tells verdict, facts and failure, and shows foreign text literally."""

import io
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from docs_platform_action.delivery.download import Downloaded
from docs_platform_action.errors import Cancelled, InvalidBundle, Unauthorized
from docs_platform_action.model import AgentJob, Bundle
from docs_platform_action.record import JobRecord
from docs_platform_action.report.console import Console
from docs_platform_action.report.summary import summary_of, write_summary
from docs_platform_action.report.text import clean
from tests.keys import ADMIN_KEY
from tests.unit.fakes import NOON
from tests.unit.report.test_console import Log

URL = "https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc"


def page(record: JobRecord, *, seconds: float = 253.0) -> str:
    return summary_of(record, safe=clean, duration_seconds=seconds, now=NOON)


def rendered(markdown: str) -> str:
    return MarkdownIt("gfm-like", {"linkify": False}).render(markdown)


def exported(**changes: object) -> JobRecord:
    known = {
        "mode": "export",
        "domain": "docs.example.com",
        "job_id": "se_1",
        "status": "completed",
        "page_count": 1412,
        "bundle": Bundle(url=URL, expires_at="2026-05-04T13:00:00Z", expires=NOON + timedelta(hours=1)),
    }
    return JobRecord(**{**known, **changes})  # type: ignore[arg-type]


class TestExport:
    def test_a_good_run_is_told_in_full(self) -> None:
        assert page(exported()) == (
            "### Export of docs.example.com: done\n"
            "\n"
            "| | |\n"
            "| --- | --- |\n"
            "| Domain | docs.example.com |\n"
            "| Job | se\\_1 |\n"
            "| Status | completed |\n"
            "| Pages | 1,412 |\n"
            "| Duration | 4:13 |\n"
            "| Bundle link | on storage.example.com, works until 13:00 UTC (60 min) |\n"
        )

    def test_one_that_nobody_waited_for_is_started_and_can_be_collected(self) -> None:
        assert page(exported(status="queued", page_count=None, bundle=None, started=True)) == (
            "### Export of docs.example.com: started\n"
            "\n"
            "| | |\n"
            "| --- | --- |\n"
            "| Domain | docs.example.com |\n"
            "| Job | se\\_1 |\n"
            "| Status | queued |\n"
            "| Duration | 4:13 |\n"
            "\n"
            "Collect it in a later step or run with \\`job-id: se\\_1\\`.\n"
        )

    def test_the_links_query_stays_secret(self) -> None:
        assert "X-Signature" not in page(exported())

    @pytest.mark.parametrize(
        ("bundle", "cell"),
        [
            (
                Bundle(url=URL, expires_at="x", expires=NOON - timedelta(days=1)),
                "on storage.example.com, expired at 2026-05-03 12:00 UTC by this runner's clock",
            ),
            (Bundle(url=URL, expires_at="in an hour"), "on storage.example.com, works until in an hour"),
            (Bundle(url=URL), "on storage.example.com"),
        ],
    )
    def test_an_expiry_is_told_as_far_as_it_is_known(self, bundle: Bundle, cell: str) -> None:
        assert f"| Bundle link | {cell} |\n" in page(exported(bundle=bundle))

    def test_what_is_unknown_has_no_row(self) -> None:
        told = page(JobRecord(mode="export", domain="docs.example.com"))

        assert [line.split(" | ")[0] for line in told.splitlines()[4:]] == ["| Domain", "| Duration"]


class TestDelivered:
    ARCHIVE: Mapping[str, object] = {"downloaded": Downloaded(size=40_000_000, sha256="9b1c" * 16), "bundle_path": "out/b.tar.gz"}
    SITE: Mapping[str, object] = {"site_path": "out/site", "site_files": 1904}

    def rows(self, **changes: object) -> list[str]:
        """Give the rows that come after the link's."""
        return page(exported(**changes)).partition("| Bundle link |")[2].splitlines()[1:]

    def test_all_of_it_is_told_after_the_link(self) -> None:
        assert self.rows(**self.ARCHIVE, **self.SITE, values_file="values.yaml") == [
            f"| Bundle | 38.1 MiB, SHA-256 `{'9b1c' * 16}` |",
            "| Saved as | out/b.tar.gz |",
            "| Site | 1,904 files in out/site |",
            "| Helm values | values.yaml |",
        ]

    def test_an_archive_that_nobody_keeps_is_saved_nowhere(self) -> None:
        told = self.rows(downloaded=self.ARCHIVE["downloaded"], **self.SITE)

        assert [row.split(" | ")[0] for row in told] == ["| Bundle", "| Site"]

    def test_what_was_not_asked_for_has_no_row(self) -> None:
        assert self.rows(values_file="values.yaml") == ["| Helm values | values.yaml |"]
        assert self.rows() == []

    def test_a_failure_keeps_the_rows_of_what_is_there(self) -> None:
        told = page(exported(**self.ARCHIVE, failure=InvalidBundle("the bundle is damaged")))

        assert "| Saved as | out/b.tar.gz |\n" in told
        assert "Bundle link" not in told

    def test_a_name_is_shown_literally(self) -> None:
        assert self.rows(values_file="a|b_c.yaml") == ["| Helm values | a\\|b\\_c.yaml |"]


class TestAgent:
    def test_a_good_run_is_told_in_full(self) -> None:
        record = JobRecord(mode="agent", project_id="prj", job_id="aj")
        record.note_agent_job(
            AgentJob(
                status="completed",
                pr_link="https://git.example.com/docs/pull/7",
                repository="docs",
                ref="main",
                model="m-1",
            )
        )

        assert page(record) == (
            "### Agent job aj of project prj: done\n"
            "\n"
            "| | |\n"
            "| --- | --- |\n"
            "| Repository | docs |\n"
            "| Branch | main |\n"
            "| Model | m-1 |\n"
            "| Project | prj |\n"
            "| Job | aj |\n"
            "| Status | completed |\n"
            "| Duration | 4:13 |\n"
            "| Pull request | [https\\://git.example.com/docs/pull/7](<https://git.example.com/docs/pull/7>) |\n"
        )

    @pytest.mark.parametrize(("status", "row"), [("completed", True), ("active", False)])
    def test_no_pull_request_is_told_once_the_job_has_ended(self, status: str, row: bool) -> None:
        record = JobRecord(mode="agent", project_id="prj", job_id="aj")
        record.note_agent_job(AgentJob(status=status))

        assert ("| Pull request | none |" in page(record)) is row


class TestFailure:
    def test_it_tells_the_same_facts_as_the_annotation(self) -> None:
        failure = Unauthorized("the platform refused the admin key (401)", facts=("The API said no.",), request_id="7f3a")

        told = page(exported(status=None, page_count=None, failure=failure))

        assert "### Export of docs.example.com: failed\n" in told
        assert "| Failure reason | `unauthorized` |\n" in told
        assert "<strong>Export of docs.example.com: the platform refused the admin key (401)</strong>" in rendered(told)
        items = [line for line in told.splitlines() if line.startswith("- ")]
        assert items[0] == "- The API said no."
        assert items[1] == "- The key is mistyped, expired, or belongs to another organisation."
        assert items[-1] == "- Request id 7f3a."

    def test_it_shows_no_link(self) -> None:
        assert "Bundle link" not in page(exported(failure=Unauthorized("no")))

    def test_a_cancel_is_no_failure(self) -> None:
        assert "### Export of docs.example.com: cancelled\n" in page(exported(failure=Cancelled("cancelled after 0:38")))


class TestForeignText:
    @given(st.one_of(st.text(min_size=1), st.text("|<>[]()`*_\n&:#-", min_size=1, max_size=12)))
    def test_it_breaks_nothing(self, text: str) -> None:
        record = exported(domain=text, job_id=text, status=text, failure=Unauthorized(text, facts=(text,), request_id=text))

        html = rendered(page(record))

        assert html.count("<table>") == html.count("<ul>") == html.count("<strong>") == html.count("<h3>") == 1
        assert html.count("<tr>") <= 7
        assert "<a " not in html
        assert "<em>" not in html

    @given(st.text("|<>[]()`*_&:#-/?ab", max_size=12))
    def test_a_link_leads_where_it_says(self, tail: str) -> None:
        record = JobRecord(mode="agent", project_id="prj", job_id="aj")
        record.note_agent_job(AgentJob(status="completed", pr_link=f"https://git.example.com/{tail}"))

        html = rendered(page(record))

        assert html.count('<a href="https://git.example.com/') == html.count("<a ") == 1

    def test_a_secret_is_taken_out_before_it_is_escaped(self) -> None:
        log = Log()
        log.console.mask(ADMIN_KEY)

        told = summary_of(exported(status=f"x {ADMIN_KEY}"), safe=log.console.safe, duration_seconds=1, now=NOON)

        assert "| Status | x \\*\\*\\* |" in told


class TestWriting:
    def test_the_page_is_appended(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        file.write_text("before\n")

        write_summary("### ü\n", file, Log().console)

        assert file.read_text("utf-8") == "before\n### ü\n"

    def test_without_a_file_nothing_happens(self) -> None:
        log = Log()

        write_summary("### x\n", None, log.console)

        assert log.text == ""

    def test_one_that_cannot_be_written_costs_a_warning(self, tmp_path: Path) -> None:
        log = Log(in_workflow=False)

        write_summary("### x\n", tmp_path, log.console)

        assert log.text == (
            "Warning: The job summary could not be written.\n"
            "  The file that GITHUB_STEP_SUMMARY names: Is a directory.\n"
            "  The run goes on.\n"
        )

    def test_a_page_that_utf_8_cannot_hold_is_written_all_the_same(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        console = Console(io.StringIO(), in_workflow=True, debugging=False)

        write_summary("lone \ud800\n", file, console)

        assert file.read_text("utf-8") == "lone ?\n"
