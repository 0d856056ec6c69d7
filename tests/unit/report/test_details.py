"""What the summary says of one job, and of many that failed alike."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from docs_platform_action.errors import Cancelled, InternalError, InvalidBundle, InvalidInput, Rejected, TimedOut, Unauthorized
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob, Bundle
from tests.page.gfm import page_of
from tests.page.samples import URL, cancelled, failed, good, refused, unavailable
from tests.unit.fakes import NOON
from tests.unit.jobs.test_runner import Jobs
from tests.unit.report.pages import exported, page, parsed


class TestOneExport:
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
            "| Bundle link | on storage.example.com, works until 2026-05-04 13:00 UTC, in 60 min |\n"
        )

    def test_the_timeline_follows_the_table(self) -> None:
        told = page(good())

        assert told.startswith(page(good(phases=[])))
        assert told[len(page(good(phases=[]))) :].startswith("\n```mermaid\n")
        assert told.endswith("\n```\n")

    def test_one_that_nobody_waited_for_is_started_and_can_be_collected(self) -> None:
        assert page(exported(status="queued", page_count=None, bundle=None)) == (
            "### Export of docs.example.com: started\n"
            "\n"
            "| | |\n"
            "| --- | --- |\n"
            "| Domain | docs.example.com |\n"
            "| Job | se\\_1 |\n"
            "| Status | queued |\n"
            "| Duration | 4:13 |\n"
            "\n"
            "Collect it in a later step or run with `job-id: se_1`.\n"
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
            (
                Bundle(url=URL, expires_at="x", expires=NOON + timedelta(days=1)),
                "on storage.example.com, works until 2026-05-05 12:00 UTC, in 24 h",
            ),
            (Bundle(url=URL, expires_at="in an hour"), "on storage.example.com, works until in an hour"),
            (Bundle(url=URL, expires_at="e" * 99), f"on storage.example.com, works until {'e' * 60}…"),
            (Bundle(url=URL), "on storage.example.com"),
            (Bundle(url="https://user:pa55word@storage.example.com:8443/a"), "on storage.example.com"),
        ],
    )
    def test_an_expiry_is_told_as_far_as_it_is_known(self, bundle: Bundle, cell: str) -> None:
        assert f"| Bundle link | {cell} |\n" in page(exported(bundle=bundle))

    def test_what_is_unknown_has_no_row(self) -> None:
        told = page(Job(mode="export", domain="docs.example.com"))

        assert [line.split(" | ")[0] for line in told.splitlines()[4:]] == ["| Domain", "| Duration"]


class TestDelivered:
    ARCHIVE: Mapping[str, object] = {"downloaded": good().downloaded, "bundle_path": "out/b.tar.gz"}
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
        job = Job(mode="agent", project_id="prj", job_id="aj")
        job.note_agent_job(
            AgentJob(
                status="completed",
                pr_link="https://git.example.com/docs/pull/7",
                repository="docs",
                ref="main",
                model="m-1",
            )
        )

        assert page(job) == (
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
        job = Job(mode="agent", project_id="prj", job_id="aj")
        job.note_agent_job(AgentJob(status=status))

        assert ("| Pull request | none |" in page(job)) is row


class TestFailure:
    def test_it_comes_first_and_tells_the_same_facts_as_the_annotation(self) -> None:
        failure = Unauthorized("the platform refused the admin key (401)", facts=("The API said no.",), request_id="7f3a")

        told = page(exported(status=None, page_count=None, failure=failure, started_at=None))

        assert told == (
            "### Export of docs.example.com: failed\n"
            "\n"
            "**Export of docs.example.com: the platform refused the admin key \\(401\\)**\n"
            "\n"
            "- The API said no.\n"
            "- The key is mistyped, expired, or belongs to another organisation.\n"
            "- Check the secret that `admin-key` reads. If it is right, create a new key on the dashboard's API keys page, "
            "store it in that secret, and run the workflow again.\n"
            "- Request id 7f3a.\n"
            "\n"
            "| | |\n"
            "| --- | --- |\n"
            "| Domain | docs.example.com |\n"
            "| Job | se\\_1 |\n"
            "| Duration | 4:13 |\n"
            "| Failure reason | `unauthorized` |\n"
        )

    def test_one_without_a_word_more_has_no_list(self) -> None:
        bare = Unauthorized("no", cause="", remedy="")

        told = parsed(exported(failure=bare, status=None, started_at=None))

        assert [element.text for element in told.all("strong")] == ["Export of docs.example.com: no"]
        assert told.all("li") == []

    def test_it_shows_no_link(self) -> None:
        assert "Bundle link" not in page(exported(failure=Unauthorized("no")))

    def test_a_cancel_is_no_failure(self) -> None:
        assert "### Export of docs.example.com: cancelled\n" in page(exported(failure=Cancelled("cancelled after 0:38")))

    def test_invalid_input_is_told_without_a_job(self) -> None:
        told = page(Job(mode=None, failure=InvalidInput("`domain` is missing")))

        assert told.startswith("### Static export: failed\n\n**`domain` is missing**\n")

    def test_names_of_inputs_are_code_and_their_values_are_not(self) -> None:
        facts = ("`domain`: 'a `wait` *b*' is no bare host name; write `c`.", "`site-path`: holds `{domain}`, see `job-id`.")
        error = InvalidInput("2 invalid inputs: `domain`, `site-path`", facts=facts)

        told = parsed(Job(mode=None, failure=error))

        assert told.all("strong")[0].text == "2 invalid inputs: domain, site-path"
        items = told.all("li")
        assert items[0].text == "domain: 'a `wait` *b*' is no bare host name; write `c`."
        assert [[code.text for code in item.all("code")] for item in items] == [
            ["domain"],
            ["site-path", "job-id"],
            ["with:"],
        ]
        assert told.all("em") == []


class TestManyAlike:
    """Failures of one and the same cause are told once."""

    def test_a_key_refused_for_all_is_told_above_the_table_and_in_one_block(self) -> None:
        told = page(*refused(30))

        assert told.startswith(
            "### Static export of 30 domains: 1 failed, 29 not started\n"
            "\n"
            "The step took 4:13 and ended at 2026-05-04 12:00 UTC.\n"
            "\n"
            "**All 30 domains: the platform refused the admin key \\(401\\).** "
            'The API at platform.example.com said: "invalid token". '
            "The key is mistyped, expired, or belongs to another organisation. "
            "Check the secret that `admin-key` reads. If it is right, create a new key on the dashboard's API keys page, "
            "store it in that secret, and run the workflow again. Request id 7f3a. "
            "The details of d0.example.com, the first, stand for all of them.\n"
            "\n"
            "| Domain | Result | Time | What happened |\n"
            "| --- | --- | ---: | --- |\n"
            "| d0.example.com | **failed** | 0:01 | `unauthorized` |\n"
            "| d1.example.com | not started |  | `unauthorized` |\n"
        )
        assert [block.all("summary")[0].text for block in page_of(told).all("details")] == ["d0.example.com: failed"]

    def test_what_one_refusal_makes_of_the_others_has_the_cause_of_the_first(self) -> None:
        def refuse(_job: Job, _on_job_known: object) -> None:
            raise Unauthorized("no", facts=("The API said no.",))

        jobs = Jobs(refuse, refuse, refuse)
        jobs.run()

        assert "\n**All 3 domains: no.** The API said no. " in page(*jobs.jobs)

    def test_in_an_outage_each_row_tells_how_to_collect_its_job(self) -> None:
        jobs = [failed(f"d{n}.example.com", failure=unavailable(300 + n), job_id=f"se_{n}", status="queued") for n in range(3)]

        told = parsed(*jobs, good())

        paragraph = told.all("p")[1].text
        assert paragraph.startswith("3 of 4 domains: the API at platform.example.com stayed unavailable. No good answer")
        assert "se_0" not in paragraph
        assert [row[-1] for row in told.tables()[0][1:-1]] == [
            f"unavailable: goes on at the platform; collect it in a later run with job-id: se_{n}." for n in range(3)
        ]
        assert len(told.all("details")) == 2

    @pytest.mark.parametrize(
        "jobs",
        [
            refused(2),
            [failed(failure=Rejected("no", facts=(f"The API said {number}.",))) for number in range(3)],
            [failed(failure=Rejected("no", remedy=f"Look at job {number}.")) for number in range(3)],
            [failed(failure=Rejected("no", cause=f"Cause {number}.")) for number in range(3)],
            [failed(failure=Rejected(f"no {number}")) for number in range(3)],
            [failed(failure=kind("no", cause="", remedy="")) for kind in (Rejected, InternalError, Unauthorized)],
            [failed(failure=TimedOut("still going on"), status="running") for _ in range(3)],
            [cancelled() for _ in range(3)],
            [good() for _ in range(3)],
        ],
    )
    def test_few_and_those_that_differ_are_told_each_for_itself(self, jobs: Sequence[Job]) -> None:
        told = parsed(*jobs)

        assert [element.text for element in told.all("strong") if " domains: " in element.text] == []
        assert len(told.all("details")) == len(jobs)

    def test_of_several_causes_that_of_the_most_is_told(self) -> None:
        other = [failed(f"r{number}.example.com", failure=Rejected("no")) for number in range(3)]

        told = page(*other, *refused(4))

        assert "\n\n**4 of 7 domains: the platform refused" in told
        assert told.count("| `rejected`: no.") == 3
