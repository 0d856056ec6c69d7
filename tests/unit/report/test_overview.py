"""The table of several jobs: its columns, and what a row says."""

from collections.abc import Mapping

import pytest

from docs_platform_action.errors import Cancelled, InvalidBundle, Rejected, TimedOut
from docs_platform_action.http.client import Request
from docs_platform_action.job import Job
from docs_platform_action.models import ExportJob
from tests.page.samples import NOW, cancelled, failed, good, unavailable
from tests.unit.report.pages import page, parsed


class TestSeveral:
    def test_what_is_unknown_for_all_has_no_column(self) -> None:
        started = [good(name, bundle=None, downloaded=None, page_count=None, status="queued") for name in ("a", "b")]

        shown = parsed(*started)

        assert shown.tables()[0] == [
            ["Domain", "Result", "Time"],
            ["a", "started (queued)", "4:13"],
            ["b", "started (queued)", "4:13"],
        ]
        assert "Total" not in shown.text

    def test_the_last_column_is_named_after_what_it_holds(self) -> None:
        assert parsed(good(), good()).tables()[0][0][-1] == "Link"
        assert parsed(failed(), failed()).tables()[0][0][-1] == "Failure"

    def test_a_size_is_that_of_the_downloaded_archive(self) -> None:
        shown = parsed(good(downloaded=None), good())

        assert [row[3] for row in shown.tables()[0][1:]] == ["", "38.1\N{NO-BREAK SPACE}MiB"]

    def test_a_job_that_was_not_begun_took_no_time(self) -> None:
        shown = parsed(good(), Job(mode="export", domain="late.example.com", began_at=None))

        assert shown.tables()[0][2] == ["late.example.com", "not started", "", "", "", ""]

    @pytest.mark.parametrize(
        ("job", "result"),
        [
            (failed(), "failed"),
            (failed(status=None), "failed"),
            (failed(status="queued"), "failed, last seen queued"),
            (failed(status=ExportJob.COMPLETED), "failed, last seen completed"),
            (cancelled(), "cancelled, last seen running"),
            (cancelled(job_id=None, status=None, began_at=None), "not started"),
            (good(status="packed"), "done (packed)"),
        ],
    )
    def test_the_result_says_as_what_a_job_was_last_seen(self, job: Job, result: str) -> None:
        assert parsed(job, good()).tables()[0][1][1] == result

    def test_a_running_job_is_timed_up_to_now(self) -> None:
        assert parsed(good(), good(ended_at=None)).tables()[0][2][4] == "4:13"


def cell(job: Job) -> str:
    """Return the Markdown of what the overview says of a failure."""
    others = [failed(failure=Rejected(f"other {number}")) for number in range(2)]  # so that the page explains none above
    return page(job, *others, good()).split(" |\n")[2].rpartition(" | ")[2]


class TestWhatHappened:
    """The overview's last cell."""

    CONTINUES = "The job continues at the platform. Collect it in a later run with `job-id: se_2`."

    def test_of_a_job_that_was_cancelled_it_is_how_to_collect_it(self) -> None:
        assert cell(failed(failure=Cancelled("c"), status="running")) == f"`cancelled`: {self.CONTINUES}"

    def test_of_a_job_that_continues_it_is_what_happened_and_how_to_collect_it(self) -> None:
        error = TimedOut("still running after 60:00", details=("It was last seen.",))

        assert cell(failed(failure=error, status="running")) == f"`timeout`: still running after 60:00. {self.CONTINUES}"

    def test_of_a_job_that_continues_in_an_outage_it_names_no_host(self) -> None:
        shown = cell(failed(failure=unavailable(303), status="queued"))

        assert shown == f"`unavailable`: the API remained unavailable. {self.CONTINUES}"

    def test_of_one_that_is_completed_it_is_how_to_get_the_bundle(self) -> None:
        assert cell(failed(failure=InvalidBundle("the bundle is damaged"), status=ExportJob.COMPLETED)) == (
            "`invalid-bundle`: the bundle is damaged. The job is completed. "
            "A run with `job-id: se_2` makes its bundle link without exporting again."
        )

    def test_of_one_that_no_run_can_collect_it_is_what_happened_alone(self) -> None:
        error = Rejected("no", details=("The API said no.",), cause="It is wrong.", remedy="Fix it.", request_id="7f3a")

        assert cell(failed(failure=error, job_id=None)) == "`rejected`: no."

    @pytest.mark.parametrize("known", [{"began_at": None, "job_id": "se_2"}, {"began_at": NOW - 1, "job_id": None}])
    def test_of_a_cancel_before_there_was_a_job_it_is_to_run_again(self, known: Mapping[str, object]) -> None:
        assert cell(cancelled(status=None, **known)) == "`cancelled`: not started. Run the workflow again."

    def test_of_a_cancel_while_it_was_being_started_the_details_say_where_to_look(self) -> None:
        error = Cancelled("cancelled after 0:01", details=("Check the dashboard.",))
        request = Request(method="POST", url="/v1/static-export/jobs", maybe_processed=True)
        job = failed(failure=error, job_id=None, status=None, start_request=request)

        assert cell(job) == "`cancelled`"
        assert "Check the dashboard." in parsed(job, good()).all("details")[0].text

    def test_of_a_cancel_of_which_nothing_is_known_it_is_the_reason(self) -> None:
        assert cell(cancelled(status=None, started_at=None)) == "`cancelled`"

    @pytest.mark.parametrize(
        ("summary", "shown"),
        [(f"no {'x' * 999}", f"no {'x' * 117}…"), ("word " * 99, f"{'word ' * 23}word…"), ("x" * 999, f"{'x' * 120}…")],
    )
    def test_a_long_text_is_cut(self, summary: str, shown: str) -> None:
        assert cell(failed(failure=Rejected(summary), job_id=None)) == f"`rejected`: {shown}"
