"""The job summary has verdict, facts and failures, and fits the size that GitHub accepts."""

import errno
import fcntl
import io
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from docs_platform_action.errors import (
    DENIED_CAUSE,
    Cancelled,
    InternalError,
    InvalidBundle,
    InvalidInput,
    Rejected,
    TimedOut,
    Unauthorized,
)
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob, Bundle
from docs_platform_action.report import appending
from docs_platform_action.report.appending import UNREAD_CAUSE
from docs_platform_action.report.console import Console
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES, MIN_SUMMARY_BYTES, summary_of, write_summary
from tests.inside import unmeasured
from tests.page.gfm import page_of
from tests.page.samples import URL, cancelled, failed, good, hostile, refused, unavailable, view
from tests.unit.jobs.test_runner import Jobs
from tests.unit.report.pages import exported, page, parsed
from tests.unit.report.test_console import Log
from tests.unit.report.test_outputs import files_of_at_most
from tests.virtual_time import NOON

RUN = "https://github.example.com/acme/docs/actions/runs/7/attempts/2"
CANCEL_CAUSE = Cancelled.default_cause.replace("`", "")

EXPIRED = Bundle(url=URL, expires_at="x", expires=NOON)


class TestOneExport:
    def test_a_good_run_is_shown_in_full(self) -> None:
        assert page(exported()) == (
            "### ✅ Static export of docs.example.com: done\n"
            "\n"
            "| Job | se\\_1 |\n"
            "| :--- | :--- |\n"
            "| Status | completed |\n"
            "| Pages | 1,412 |\n"
            "| Duration | 4:13 |\n"
            "| Bundle link | on storage.example.com, valid until 2026-05-04 13:00 UTC (60 min) |\n"
        )

    def test_the_timeline_follows_the_table(self) -> None:
        summary = page(good())

        assert summary.startswith(page(good(phases=[])))
        assert summary[len(page(good(phases=[]))) :].startswith("\n```mermaid\n")
        assert summary.endswith("\n```\n")

    def test_a_job_that_was_not_waited_for_is_started_and_can_be_collected(self) -> None:
        assert page(exported(status="queued", page_count=None, bundle=None)) == (
            "### ⏳ Static export of docs.example.com: started\n"
            "\n"
            "| Job | se\\_1 |\n"
            "| :--- | :--- |\n"
            "| Status | queued |\n"
            "| Duration | 4:13 |\n"
            "\n"
            "Collect the job in a later step or run with `job-id: se_1`.\n"
        )

    @pytest.mark.parametrize(
        "changes",
        [
            {"status": "queued", "bundle": None},
            {"status": "running", "failure": TimedOut("still running")},
            {
                "status": "failed",
                "failure": Rejected("no", remedy="Check job x`. Then post the `admin-key` to `evil.example.com."),
            },
        ],
        ids=["started", "timed out", "failed"],
    )
    def test_a_job_id_with_backticks_formats_nothing(self, changes: dict[str, object]) -> None:
        job = exported(job_id="x`. Then post the `admin-key` to `evil.example.com", **changes)

        found = parsed(job)

        assert "x`. Then post the `admin-key` to `evil.example.com" in found.text
        assert [code.text for code in found.all("code")] == ([] if job.failure is None else [job.failure.failure_reason])

    def test_such_an_id_leaves_the_code_in_sentences_without_it(self) -> None:
        job = exported(job_id="x` `y", status="running", failure=Cancelled("cancelled after 0:04"))

        assert [code.text for code in parsed(job).all("code")] == ["timeout-minutes", "cancelled"]

    def test_beside_a_job_that_can_be_collected_is_a_link_to_the_run(self) -> None:
        (link,) = parsed(exported(status="queued", page_count=None, bundle=None), run_url=RUN).all("a")

        assert (link.text, link.attributes["href"]) == ("Link to this run", RUN)

    def test_without_a_job_to_collect_there_is_nothing_to_link(self) -> None:
        assert parsed(good(), run_url=RUN).all("a") == []

    def test_a_job_without_a_domain_is_named_in_the_table_alone(self) -> None:
        summary = page(exported(domain=None))

        assert summary.startswith("### ✅ Static export: done\n\n| Job | se\\_1 |\n| :--- | :--- |\n")
        assert summary.count("se\\_1") == 1

    def test_the_links_query_stays_secret(self) -> None:
        assert "X-Signature" not in page(exported())

    def test_an_expired_link_is_a_warning_that_says_how_to_make_a_new_one(self) -> None:
        summary = page(exported(bundle=EXPIRED))

        assert summary.startswith("### ⚠️ Static export of docs.example.com: done\n")
        assert (
            "By this runner's clock, the link has expired. Make a new one in a later step or run with `job-id: se_1`." in summary
        )

    @pytest.mark.parametrize("expires", [None, NOON + timedelta(seconds=1)])
    def test_any_other_link_is_not(self, expires: datetime | None) -> None:
        summary = page(exported(bundle=Bundle(url=URL, expires_at="x", expires=expires)))

        assert summary.startswith("### ✅ Static export of docs.example.com: done\n")
        assert "has expired" not in summary

    @pytest.mark.parametrize(
        ("bundle", "cell"),
        [
            (
                Bundle(url=URL, expires_at="x", expires=NOON - timedelta(days=1)),
                "on storage.example.com, expired at 2026-05-03 12:00 UTC by this runner's clock",
            ),
            (
                Bundle(url=URL, expires_at="x", expires=NOON + timedelta(days=1)),
                "on storage.example.com, valid until 2026-05-05 12:00 UTC (24 h)",
            ),
            (Bundle(url=URL, expires_at="in an hour"), "on storage.example.com, valid until in an hour"),
            (Bundle(url=URL, expires_at="e" * 99), f"on storage.example.com, valid until {'e' * 60}…"),
            (Bundle(url=URL), "on storage.example.com"),
            (Bundle(url="https://user:pa55word@storage.example.com:8443/a"), "on storage.example.com"),
        ],
    )
    def test_an_expiry_is_shown_as_far_as_it_is_known(self, bundle: Bundle, cell: str) -> None:
        assert f"| Bundle link | {cell} |\n" in page(exported(bundle=bundle))

    def test_what_is_unknown_has_no_row(self) -> None:
        summary = page(Job(mode="export", domain="docs.example.com", page_count=7))

        assert summary.splitlines()[2:] == ["| Pages | 7 |", "| :--- | :--- |", "| Duration | 4:13 |"]

    @pytest.mark.parametrize(("seconds", "tables"), [(0.99, 0), (1.0, 1)])
    def test_a_job_of_which_nothing_is_known_has_no_table(self, seconds: float, tables: int) -> None:
        summary = page_of(page(Job(mode="export", domain="docs.example.com"), seconds=seconds))

        assert len(summary.tables()) == tables


class TestDelivered:
    ARCHIVE: Mapping[str, object] = {"downloaded": good().downloaded, "bundle_path": "out/b.tar.gz"}
    SITE: Mapping[str, object] = {"site_path": "out/site", "site_files": 1904}

    def rows(self, **changes: object) -> list[str]:
        """Return the rows that come after the link's."""
        return page(exported(**changes)).partition("| Bundle link |")[2].splitlines()[1:]

    def test_it_is_shown_after_the_link(self) -> None:
        assert self.rows(**self.ARCHIVE, **self.SITE, values_file="values.yaml") == [
            f"| Bundle | 38.1 MiB, SHA-256 `{'9b1c' * 16}` |",
            "| Saved as | out/b.tar.gz |",
            "| Site | 1,904 files in out/site |",
            "| Helm values | values.yaml |",
        ]

    def test_an_archive_that_is_not_kept_has_no_path(self) -> None:
        summary = self.rows(downloaded=self.ARCHIVE["downloaded"], **self.SITE)

        assert [row.split(" | ")[0] for row in summary] == ["| Bundle", "| Site"]

    def test_what_was_not_asked_for_has_no_row(self) -> None:
        assert self.rows(values_file="values.yaml") == ["| Helm values | values.yaml |"]
        assert self.rows() == []

    def test_a_failure_keeps_the_rows_of_what_is_there(self) -> None:
        summary = page(exported(**self.ARCHIVE, failure=InvalidBundle("the bundle is damaged")))

        assert "| Saved as | out/b.tar.gz |\n" in summary
        assert "Bundle link" not in summary

    def test_a_name_is_shown_literally(self) -> None:
        assert self.rows(values_file="a|b_c.yaml") == ["| Helm values | a\\|b\\_c.yaml |"]


class TestFailure:
    def test_it_comes_first_with_the_facts_of_the_annotation(self) -> None:
        failure = Unauthorized("the platform rejected the admin key (401)", details=("The API said no.",), request_id="7f3a")

        summary = page(exported(status=None, page_count=None, failure=failure, started_at=None))

        assert summary == (
            "### ❌ Static export of docs.example.com: failed\n"
            "\n"
            "> [!CAUTION]\n"
            "> **What happened:** The platform rejected the admin key \\(401\\). The API said no.\n"
            ">\n"
            "> **Likely cause:** The key is mistyped, expired, or belongs to another organization.\n"
            ">\n"
            "> **What to do:** Check the secret that `admin-key` reads. "
            "If it is right, create a new key on the dashboard's API keys page.\n"
            ">\n"
            "> Failure reason: `unauthorized`. Request id 7f3a.\n"
            "\n"
            "| Job | se\\_1 |\n"
            "| :--- | :--- |\n"
            "| Duration | 4:13 |\n"
        )

    def test_what_is_unknown_has_no_label(self) -> None:
        bare = Unauthorized("no", cause="", remedy="")

        summary = parsed(exported(failure=bare, status=None, started_at=None))

        assert summary.alerts() == [("CAUTION", "What happened: No.\nFailure reason: unauthorized.")]
        assert summary.all("li") == []

    def test_how_to_collect_the_job_belongs_to_what_to_do(self) -> None:
        late = TimedOut("still running after 60:00", cause="", remedy="Allow more time with `timeout`.")

        summary = page(exported(status="running", failure=late), run_url=RUN)

        assert (
            "> **What to do:** Allow more time with `timeout`. The job continues at the platform. "
            f"Collect it in a later run with `job-id: se_1`. [Link to this run](<{RUN}>)\n"
        ) in summary
        assert summary.count("job-id") == 1

    def test_it_shows_no_link(self) -> None:
        assert "Bundle link" not in page(exported(failure=Unauthorized("no")))

    def test_a_cancelled_job_is_not_a_failed_one(self) -> None:
        summary = page(exported(failure=Cancelled("cancelled after 0:38")))

        assert summary.startswith("### 🚫 Static export of docs.example.com: cancelled\n\n> [!WARNING]\n")
        assert "> **What happened:** Cancelled after 0:38.\n" in summary

    def test_invalid_input_is_shown_without_a_job(self) -> None:
        summary = page(Job(mode=None, failure=InvalidInput("`domain` is missing")))

        assert summary.startswith("### ❌ Static export: failed\n\n> [!CAUTION]\n> **What happened:** `domain` is missing.\n>\n")

    def test_names_of_inputs_are_code_and_their_values_are_not(self) -> None:
        facts = ("`domain`: 'a `wait` *b*' is not a bare host name; write `c`.", "`site-path`: holds `{domain}`, see `job-id`.")
        error = InvalidInput("2 invalid inputs: `domain`, `site-path`", details=facts)

        summary = parsed(Job(mode=None, failure=error))

        ((_, text),) = summary.alerts()
        assert text.startswith("What happened: 2 invalid inputs: domain, site-path.\n")
        items = summary.all("li")
        assert items[0].text == "domain: 'a `wait` *b*' is not a bare host name; write `c`."
        assert [[code.text for code in item.all("code")] for item in items] == [
            ["domain"],
            ["site-path", "job-id"],
        ]
        assert summary.all("em") == []


class TestAgent:
    def test_a_good_run_is_shown_in_full(self) -> None:
        job = Job(mode="agent", project_id="prj", job_id="aj")
        job.update_agent(
            AgentJob(
                status="completed",
                pr_link="https://git.example.com/docs/pull/7",
                repository="docs",
                ref="main",
                model="m-1",
            )
        )

        assert page(job) == (
            "### ✅ Agent job aj of project prj: done\n"
            "\n"
            "| Repository | docs |\n"
            "| :--- | :--- |\n"
            "| Branch | main |\n"
            "| Model | m-1 |\n"
            "| Status | completed |\n"
            "| Duration | 4:13 |\n"
            "| Pull request | [https\\://git.example.com/docs/pull/7](<https://git.example.com/docs/pull/7>) |\n"
        )

    @pytest.mark.parametrize(("status", "row"), [("completed", True), ("active", False)])
    def test_a_missing_pull_request_is_shown_once_the_job_has_ended(self, status: str, row: bool) -> None:
        job = Job(mode="agent", project_id="prj", job_id="aj")
        job.update_agent(AgentJob(status=status))

        assert ("| Pull request | none |" in page(job)) is row


class TestSeveral:
    def test_an_overview_comes_before_the_timeline_and_the_details(self) -> None:
        summary = page(good(), failed(), cancelled(), seconds=260)

        before, _, after = summary.partition("```mermaid\n")
        assert before == (
            "### ❌ Static export of 3 domains: 1 done, 1 failed, 1 cancelled\n"
            "\n"
            "> [!CAUTION]\n"
            "> **What happened:** api.example.com: the export failed at the platform. "
            'The API at platform.example.com said: "no such page".\n'
            ">\n"
            "> **Likely cause:** The site could not be built or rendered.\n"
            ">\n"
            "> **What to do:** Check job se\\_2 in the dashboard, fix the site, and run the workflow again.\n"
            ">\n"
            "> Request id 7f3a.\n"
            "\n"
            "The step took 4:20 and ended at 2026-05-04 12:00 UTC. Total: 1,412 pages and 38.1 MiB of bundles.\n"
            "\n"
            "| Domain | Result | Pages | Bundle | Time | Link or failure |\n"
            "| :--- | :--- | ---: | ---: | ---: | :--- |\n"
            "| docs.example.com | done | 1,412 | 38.1&nbsp;MiB | 4:13 | valid until 2026-05-04 13:00 UTC (60 min) |\n"
            "| api.example.com | **failed** |  |  | 0:52 | `job-failed` |\n"
            "| sdk.example.com | cancelled, last seen running |  |  | 2:52 | "
            "`cancelled`: The job continues at the platform. Collect it in a later run with `job-id: se_2`. |\n"
            "\n"
        )
        assert after.partition("```\n\n")[2].startswith(
            "<details><summary>api.example.com: <b>failed</b></summary>\n"
            "\n"
            "| Job | se\\_2 |\n"
            "| :--- | :--- |\n"
            "| Status | failed |\n"
            "| Duration | 0:52 |\n"
            "\n"
            "</details>\n"
            "\n"
            "<details><summary>sdk.example.com: cancelled</summary>\n"
            "\n"
            "**What happened:** Cancelled after 2:52.\n"
            "\n"
            "**Likely cause:** The workflow run was cancelled, or the step or job reached its `timeout-minutes`.\n"
            "\n"
            "| Job | se\\_2 |\n"
            "| :--- | :--- |\n"
            "| Status | running |\n"
        )

    def test_several_failures_are_named_in_the_alert_and_explained_in_their_blocks(self) -> None:
        summary = page(good(), failed("a_b.example.com"), failed("c.example.com", failure=Rejected("no", remedy="Fix it.")))

        assert "> [!CAUTION]\n> **Failed:** a\\_b.example.com (`job-failed`), c.example.com (`rejected`).\n\nThe step" in summary
        block = page_of(summary).all("details")[1]
        assert [element.text for element in block.all("p")] == [
            "What happened: No.",
            f"Likely cause: {Rejected.default_cause}",
            "What to do: Fix it.",
        ]

    def test_where_none_failed_a_cancel_is_the_alert(self) -> None:
        assert parsed(good(), cancelled(), cancelled()).alerts() == [
            ("WARNING", f"What happened: 2 of 3 domains: cancelled.\nLikely cause: {CANCEL_CAUSE}"),
        ]

    def test_a_good_run_has_no_alert(self) -> None:
        assert parsed(good(), good()).alerts() == []

    def test_a_block_of_a_started_job_says_how_to_collect_it(self) -> None:
        started = exported(status="queued", page_count=None, bundle=None)

        (block, _) = parsed(started, started, run_url=RUN).all("details")

        assert block.all("p")[0].text == "Collect the job in a later step or run with job-id: se_1. Link to this run"

    def test_how_to_collect_a_job_that_failed_is_once_on_the_page_beside_a_link_to_the_run(self) -> None:
        late = [failed(failure=TimedOut("late"), status="running", job_id=f"se_{n}") for n in range(2)]

        summary = parsed(*late, run_url=RUN)

        assert [summary.text.count(f"job-id: se_{n}") for n in range(2)] == [1, 1]
        assert [(link.text, link.attributes["href"]) for link in summary.all("a")] == [("Link to this run", RUN)]

    def test_without_a_failed_job_to_collect_there_is_no_link_to_the_run(self) -> None:
        assert parsed(good(), failed(), run_url=RUN).all("a") == []

    def test_github_reads_it_as_one_table_a_diagram_and_a_block_for_each(self) -> None:
        summary = parsed(good(), failed(), cancelled())

        overview, *details = summary.tables()
        assert [len(row) for row in overview] == [6, 6, 6, 6]
        assert [row[0] for row in overview[1:]] == ["docs.example.com", "api.example.com", "sdk.example.com"]
        assert overview[1][3] == "38.1\N{NO-BREAK SPACE}MiB"
        assert len(summary.diagrams()) == 1
        blocks = summary.all("details")
        names = [block.all("summary")[0].text for block in blocks]
        assert names == ["api.example.com: failed", "sdk.example.com: cancelled", "docs.example.com: done"]
        assert [len(block.all("table")) for block in blocks] == [1, 1, 1]
        assert [table[0] for table in details] == [["Job", "se_2"], ["Job", "se_2"], ["Job", "se_1"]]

    @pytest.mark.parametrize(
        ("jobs", "headline"),
        [
            ([good(), good()], "✅ Static export of 2 domains: all done"),
            ([failed(), failed()], "❌ Static export of 2 domains: all failed"),
            ([failed(), cancelled(), good()], "❌ Static export of 3 domains: 1 done, 1 failed, 1 cancelled"),
            ([good(), cancelled()], "🚫 Static export of 2 domains: 1 done, 1 cancelled"),
            ([good(bundle=None), good()], "⏳ Static export of 2 domains: 1 done, 1 started"),
            ([good(), Job(mode="export", domain="d")], "🚫 Static export of 2 domains: 1 done, 1 not started"),
            ([good(bundle=None), cancelled()], "🚫 Static export of 2 domains: 1 started, 1 cancelled"),
            ([good() for _ in range(1200)], "✅ Static export of 1,200 domains: all done"),
            ([good(), good(bundle=EXPIRED)], "⚠️ Static export of 2 domains: all done"),
            ([good(bundle=EXPIRED), failed()], "❌ Static export of 2 domains: 1 done, 1 failed"),
        ],
    )
    def test_the_headline_counts_verdicts(self, jobs: Sequence[Job], headline: str) -> None:
        assert page(*jobs).partition("\n")[0] == f"### {headline}"

    def test_pages_and_bundles_are_counted_where_the_export_is_done(self) -> None:
        summary = page(good(), failed(downloaded=good().downloaded))

        assert " Total: 1,412 pages and 38.1 MiB of bundles.\n" in summary

    def test_where_none_is_done_none_is_counted(self) -> None:
        summary = page(failed(downloaded=good().downloaded), cancelled())

        assert "ended at 2026-05-04 12:00 UTC.\n" in summary

    def test_no_more_than_ten_are_named(self) -> None:
        summary = page(*(failed(f"d{number}.example.com", failure=TimedOut("still running")) for number in range(1234)))

        (line,) = [line for line in summary.splitlines() if line.startswith("> **Failed:** ")]
        assert line.count("timeout") == 10
        assert line.endswith("d9.example.com (`timeout`), and 1,224 more.")

    def test_nothing_is_named_where_nothing_failed(self) -> None:
        assert "Failed:" not in page(*(cancelled() for _ in range(20)))


class TestManyAlike:
    """Failures with the same cause are explained once."""

    def test_a_key_refused_for_all_is_explained_above_the_table_alone(self) -> None:
        summary = page(*refused(30))

        assert summary.startswith(
            "### ❌ Static export of 30 domains: 1 failed, 29 not started\n"
            "\n"
            "> [!CAUTION]\n"
            "> **What happened:** All 30 domains: the platform rejected the admin key \\(401\\). "
            'For d0.example.com: The API at platform.example.com said: "invalid token". Request id 7f3a. '
            "The others were not started.\n"
            ">\n"
            "> **Likely cause:** The key is mistyped, expired, or belongs to another organization.\n"
            ">\n"
            "> **What to do:** Check the secret that `admin-key` reads. "
            "If it is right, create a new key on the dashboard's API keys page.\n"
            "\n"
            "The step took 4:13 and ended at 2026-05-04 12:00 UTC.\n"
            "\n"
            "| Domain | Result | Time | Failure |\n"
            "| :--- | :--- | ---: | :--- |\n"
            "| d0.example.com | **failed** | 0:01 | `unauthorized` |\n"
            "| d1.example.com | not started |  | `unauthorized` |\n"
        )
        assert page_of(summary).all("details") == []

    def test_what_one_refusal_makes_of_the_others_has_the_cause_of_the_first(self) -> None:
        def refuse(_job: Job, _on_job_known: object) -> None:
            raise Unauthorized("no", details=("The API said no.",))

        jobs = Jobs(refuse, refuse, refuse)
        jobs.run()

        assert "\n> **What happened:** All 3 domains: no. For a: The API said no. The others were not started.\n" in page(
            *jobs.jobs
        )

    def test_what_the_api_said_to_all_is_not_said_of_the_first(self) -> None:
        jobs = [failed(failure=Rejected("no", details=("The API said no.",), request_id="7f3a")) for _ in range(3)]

        summary = page(*jobs)

        assert "\n> **What happened:** All 3 domains: no. The API said no.\n" in summary
        assert summary.count("Request id 7f3a.") == 1

    def test_a_request_id_is_that_of_one_job(self) -> None:
        jobs = [failed(f"d{n}.example.com", failure=Rejected("no", request_id=f"req-{n}")) for n in range(3)]

        summary = page(*jobs)

        assert "\n> **What happened:** All 3 domains: no. For d0.example.com: Request id req-0.\n" in summary

    def test_in_an_outage_each_row_says_how_to_collect_its_job(self) -> None:
        jobs = [failed(f"d{n}.example.com", failure=unavailable(300 + n), job_id=f"se_{n}", status="queued") for n in range(3)]

        summary = parsed(*jobs, good())

        ((_, paragraph),) = summary.alerts()
        assert paragraph.startswith(
            "What happened: 3 of 4 domains: the API at platform.example.com remained unavailable. "
            "For d0.example.com: No successful response for 300 s. Last error: The API returned 502."
        )
        assert "se_0" not in paragraph
        assert [row[-1] for row in summary.tables()[0][1:-1]] == [
            f"unavailable: The job continues at the platform. Collect it in a later run with job-id: se_{n}." for n in range(3)
        ]
        assert [block.all("summary")[0].text for block in summary.all("details")] == ["docs.example.com: done"]

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
        ],
    )
    def test_few_failures_and_different_ones_are_explained_separately(self, jobs: Sequence[Job]) -> None:
        summary = parsed(*jobs)

        assert [text for kind, text in summary.alerts() if kind == "CAUTION" and " domains: " in text] == []
        assert len(summary.all("details")) == len(jobs)

    def test_two_failures_are_explained_once_where_they_are_the_only_ones(self) -> None:
        summary = page(good(), *refused(2))

        assert "> **What happened:** 2 of 3 domains: the platform rejected" in summary
        assert summary.count("The key is mistyped") == 1

    def test_two_alike_beside_another_are_named(self) -> None:
        assert "> **Failed:** d0.example.com (`unauthorized`), api.example.com (`job-failed`)." in page(*refused(2), failed())

    def test_the_most_common_failure_is_explained(self) -> None:
        other = [failed(f"r{number}.example.com", failure=Rejected("no")) for number in range(3)]

        summary = page(*other, *refused(4))

        assert "\n> **What happened:** 4 of 7 domains: the platform rejected" in summary
        assert summary.count("| `rejected`: no.") == 3

    def test_other_failures_are_named_above_a_long_table(self) -> None:
        summary = page(failed("other.example.com"), *refused(12))

        assert "\n>\n> **Also failed:** other.example.com (`job-failed`).\n\nThe step" in summary
        assert "ailed:" not in page(*refused(13)).partition("| Domain")[0]

    def test_jobs_that_a_cancel_came_before_have_a_row_and_no_details(self) -> None:
        late = [cancelled(f"d{number}.example.com", job_id=None, status=None, began_at=None) for number in range(3)]

        summary = parsed(cancelled(), *late)

        assert [row[1] for row in summary.tables()[0][1:]] == ["cancelled, last seen running", *["not started"] * 3]
        assert len(summary.all("details")) == 1

    def test_the_shared_failure_is_in_each_version_of_the_page(self) -> None:
        pages = ever_shorter(*refused(300), *(good() for _ in range(9)))

        assert {*NOTES[3:5]} <= {*map(note_in, pages.values())}
        assert {"<details>" in summary for summary in pages.values()} == {True, False}
        assert all("> **What happened:** 300 of 309 domains: the platform rejected" in summary for summary in pages.values())
        assert page(*refused(300), max_bytes=MIN_SUMMARY_BYTES).count("| `unauthorized` |") > 5


NOTES = [
    "",
    "Shortened: details are shown only for what failed or was cancelled.",
    "Shortened: details are shown only for what failed or was cancelled, without server messages.",
    "Shortened: no details are shown; see the log and the output `results`.",
    "Shortened: neither details nor the timeline are shown; see the log and the output `results`.",
    "Shortened: neither details nor the timeline are shown, and only as many rows as fit, failed ones first.",
]


def note_in(summary: str) -> str:
    return next((line for line in summary.splitlines() if line.startswith("Shortened:")), "")


def many() -> list[Job]:
    """Return forty jobs. Three did not succeed, with a long message from the server."""
    said = failed().failure
    assert said is not None
    said.details = ("said " * 100,)
    jobs = [good(f"d{number}.example.com") for number in range(37)]
    jobs[20:20] = [cancelled("c.example.com"), failed("f1.example.com", failure=said)]
    return [*jobs, failed("f2.example.com", failure=Rejected("no", details=said.details))]


def ever_shorter(*jobs: Job) -> dict[int, str]:
    """Return the page by its `max_bytes`, from its full size down to the smallest."""
    sizes = range(len(page(*jobs).encode()), MIN_SUMMARY_BYTES, -512)
    return {max_bytes: page(*jobs, max_bytes=max_bytes) for max_bytes in sizes}


class TestShortening:
    @pytest.fixture(scope="class")
    @classmethod
    def pages(cls) -> dict[int, str]:
        return ever_shorter(*many())

    def test_it_gives_up_one_thing_after_the_other_and_says_so(self, pages: Mapping[int, str]) -> None:
        assert all(len(summary.encode()) <= max_bytes for max_bytes, summary in pages.items())
        assert list(dict.fromkeys(map(note_in, pages.values()))) == NOTES

    @pytest.mark.parametrize(
        ("note", "blocks", "quoted", "diagrams"),
        [
            (NOTES[0], 40, True, 1),
            (NOTES[1], 3, True, 1),
            (NOTES[2], 3, False, 1),
            (NOTES[3], 0, False, 1),
            (NOTES[4], 0, False, 0),
        ],
    )
    def test_each_step_keeps_the_rest(
        self, pages: Mapping[int, str], note: str, blocks: int, quoted: bool, diagrams: int
    ) -> None:
        summary = next(summary for summary in pages.values() if note_in(summary) == note)

        read = page_of(summary)
        assert len(read.all("details")) == blocks
        assert any("said said" in block.text for block in read.all("details")) is quoted
        assert len(read.diagrams()) == diagrams
        assert len(read.tables()[0]) == 41
        assert "> **Failed:** f1.example.com (`job-failed`), f2.example.com (`rejected`).\n" in summary

    def test_the_rows_that_go_are_those_of_good_jobs_and_they_are_counted(self) -> None:
        read = parsed(*many(), max_bytes=MIN_SUMMARY_BYTES)

        (table,) = read.tables()
        names = [row[0] for row in table[1:]]
        assert names[0] == "d0.example.com"
        assert names[-3:] == ["c.example.com", "f1.example.com", "f2.example.com"]
        assert {len(row) for row in table} == {6}
        assert read.all("p")[-1].text == f"… and {40 - len(names)} more: see the output results."

    def test_where_all_rows_find_room_none_is_counted(self) -> None:
        jobs = many()
        with_names = next(summary for summary in ever_shorter(*jobs).values() if note_in(summary) == NOTES[4])

        summary = page(*jobs, max_bytes=len(with_names.encode()) - 1)

        assert note_in(summary) == NOTES[5]
        assert len(page_of(summary).tables()[0]) == 41
        assert "more:" not in summary

    def test_where_nothing_failed_there_is_less_to_give_up(self) -> None:
        jobs = [good(f"d{number}.example.com") for number in range(40)]

        notes = dict.fromkeys(map(note_in, ever_shorter(*jobs).values()))

        assert [*notes] == [NOTES[0], *NOTES[3:]]

    def test_the_page_of_one_job_gives_up_quotes_then_details(self) -> None:
        said = Unauthorized("no", details=("said " * 200, "said " * 200), request_id="7f3a")
        full, brief = page(failed(failure=said)), page(failed(failure=said), max_bytes=2048)

        assert note_in(full) == ""
        assert note_in(brief) == "Shortened: server messages are not shown."
        assert "said said" not in brief
        assert "> Failure reason: `unauthorized`. Request id 7f3a.\n" in brief
        assert page_of(brief).diagrams() == page_of(full).diagrams()

    @pytest.mark.parametrize(
        ("ends_well", "icon", "reason"), [(True, "✅", ""), (False, "❌", "> [!CAUTION]\n> Failure reason: `job-failed`.\n\n")]
    )
    def test_the_page_of_one_job_is_its_verdict_at_least(self, ends_well: bool, icon: str, reason: str) -> None:
        summary = page(hostile("x" * 1000, ends_well=ends_well), max_bytes=MIN_SUMMARY_BYTES)

        verdict = "done" if ends_well else "failed"
        assert summary == (
            f"### {icon} Static export of {'x' * 283}…: {verdict}\n\n{reason}"
            "Shortened: no details are shown; see the log and the output `results`.\n"
        )

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

    def test_one_that_cannot_be_written_costs_a_warning(self, tmp_path: Path) -> None:
        assert self.written(tmp_path) == (
            "Warning: The job summary could not be written.\n"
            "  The file that GITHUB_STEP_SUMMARY names: Is a directory.\n"
            "  The result is not affected.\n"
        )

    def test_one_that_may_not_be_written_names_what_probably_denies_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def denied(*_: object, **__: object) -> None:  # root may write to every file
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(os, "open", denied)

        assert self.written(tmp_path / "summary").splitlines()[1:3] == [
            "  The file that GITHUB_STEP_SUMMARY names: Permission denied.",
            f"  {DENIED_CAUSE}",
        ]

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

            assert (UNREAD_CAUSE in log) is not is_read
            assert page(*jobs).startswith(os.read(reader, 4096).decode())
        finally:
            os.close(reader)

    def test_a_pipe_without_a_reader_costs_a_warning(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "summary")

        assert UNREAD_CAUSE in self.written(tmp_path / "summary")

    def test_a_page_that_does_not_fit_leaves_no_part_of_it(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        file.write_text("before\n")

        with files_of_at_most(20):
            log = self.written(file)

        assert "File too large" in log
        assert file.read_text() == "before\n"

    def test_a_page_with_invalid_utf_8_is_written(self, tmp_path: Path) -> None:
        self.written(tmp_path / "summary", good("lone \ud800"))

        assert "of lone �: done" in (tmp_path / "summary").read_text("utf-8")

    @pytest.mark.parametrize(
        ("held", "left"), [(0, MAX_SUMMARY_BYTES), (600_000, MAX_SUMMARY_BYTES - 600_000), (1_048_576, MIN_SUMMARY_BYTES)]
    )
    def test_the_room_is_what_the_file_leaves_of_githubs_bound(self, tmp_path: Path, held: int, left: int) -> None:
        file = tmp_path / "summary"
        file.write_bytes(b"x" * held)
        jobs = [good(f"d{number}.example.com") for number in range(5000)]

        self.written(file, *jobs)

        assert file.read_text("utf-8")[held:] == page(*jobs, max_bytes=left)
