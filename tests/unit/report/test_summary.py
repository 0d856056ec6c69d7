"""The structure of the job summary as GitHub reads it, and its size. `tests/wording/runs.md` has whole summaries."""

import errno
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import Cancelled, InternalError, InvalidInput, Rejected, TimedOut, Unauthorized
from docs_platform_action.job import BUNDLE, DOWNLOAD, RUN, Job, Phase
from docs_platform_action.models import AgentJob, Bundle
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES, write_summary
from docs_platform_action.text import clean
from tests.inside import unmeasured
from tests.keys import ADMIN_KEY
from tests.page.gfm import Element, page_of
from tests.page.samples import NOW, URL, cancelled, export, failed, good, hostile, phases, refused, summary
from tests.unit.report.pages import exported, many, page, parsed
from tests.unit.report.test_console import Log
from tests.unit.test_ownership import refusing
from tests.virtual_time import NOON

HOSTILE = st.one_of(
    st.text(min_size=1),
    st.text("|<>[]()`*_\n&:#-~$@!^=+\\ '\"", min_size=1, max_size=12),
    st.sampled_from(
        ["</summary></details><script>", "```\n```mermaid\ngantt", "https://e.example www.e.example", "`timeout`", "a`b c`d"]
    ),
)
OURS = frozenset({"h3", "blockquote", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"})


def top_level(page: Element) -> list[str]:
    """Return the tags of the elements that are in no other one."""
    return [child.tag for child in page.children if isinstance(child, Element)]


def rows(job: Job) -> dict[str, str]:
    """Return the table of a page of one job."""
    (table,) = parsed(job).tables()
    return {row[0]: row[1] for row in table}


class TestOneJob:
    def test_its_page_is_a_headline_and_a_table_without_a_timeline(self) -> None:
        read = parsed(good())

        assert top_level(read) == ["h3", "table"]
        assert read.tables()[0][0] == ["Export", "docs.example.com"]
        assert read.diagrams() == []

    def test_the_table_of_an_agent_job_is_headed_by_its_id(self) -> None:
        job = Job(mode="agent", project_id="prj", job_id="aj", reading=AgentJob(status="completed", ref="main"))

        (table,) = parsed(job).tables()

        assert table == [
            *(["Agent job", "aj"], ["Branch", "main"], ["Status", "completed"]),
            *(["Duration", "4:13"], ["Pull request", "none"]),
        ]

    def test_a_failure_is_an_alert_above_the_table(self) -> None:
        read = parsed(failed())

        assert top_level(read) == ["h3", "blockquote", "table"]
        ((kind, text),) = read.alerts()
        assert kind == "CAUTION"
        assert all(part in text for part in ("no such page (a_b)", "An example of a cause", "job-failed", "7f3a"))

    def test_a_job_of_which_nothing_is_known_has_no_table(self) -> None:
        assert top_level(page_of(page(Job(mode=None, failure=InvalidInput("no")), seconds=0.9))) == ["h3", "blockquote"]

    @pytest.mark.parametrize(
        ("steps", "shown"),
        [
            ([], "4:13"),
            (phases(NOW - 9, **{RUN: 0.9}), "4:13"),
            (phases(NOW - 99, **{RUN: 59.9, BUNDLE: 60.0, DOWNLOAD: 1.0}), f"4:13: {RUN} 59 s, {BUNDLE} 1:00, {DOWNLOAD} 1 s"),
            ([*phases(NOW - 9, **{RUN: 2.0, BUNDLE: 3.0}), *phases(NOW - 4, **{RUN: 4.0})], f"4:13: {RUN} 6 s, {BUNDLE} 3 s"),
            ([Phase(name=RUN, began_at=NOW - 20)], f"4:13: {RUN} 20 s"),
        ],
        ids=["none", "short", "several", "twice", "unfinished"],
    )
    def test_its_phases_are_in_the_row_of_its_duration(self, steps: list[Phase], shown: str) -> None:
        assert rows(good(phases=steps))["Duration"] == shown

    def test_the_phase_in_which_it_failed_is_marked(self) -> None:
        assert rows(failed())["Duration"] == "4:13: queued 12 s, failed after 40 s"

    @pytest.mark.parametrize(
        ("link", "shown"),
        [
            (Bundle(url=URL, expires=NOON + timedelta(days=1)), "2026-05-05"),
            (Bundle(url=URL, expires_at="in an hour"), "in an hour"),
            (Bundle(url=URL, expires_at="e" * 99), f"{'e' * 60}…"),
            (Bundle(url="https://user:pa55word@storage.example.com:8443/a"), "storage.example.com"),
        ],
    )
    def test_of_its_link_the_host_and_the_expiry_are_shown(self, link: Bundle, shown: str) -> None:
        row = rows(exported(link=link))["Bundle link"]

        assert "on storage.example.com" in row
        assert shown in row
        assert not any(secret in page(exported(link=link)) for secret in ("X-Signature", "user", "pa55word"))

    def test_a_failed_job_has_no_link(self) -> None:
        assert "Bundle link" not in rows(exported(failure=Rejected("no")))

    @pytest.mark.parametrize(
        ("changes", "has_inputs"),
        [
            ({}, False),
            ({"link": Bundle(url=URL, expires=NOON)}, True),
            ({"status": "queued", "link": None}, True),
            ({"status": "running", "failure": TimedOut("late")}, True),
            ({"status": "failed", "failure": Rejected("no")}, False),
        ],
        ids=["done", "expired", "started", "timed out", "failed"],
    )
    def test_how_to_collect_it_is_shown_once_if_a_later_run_has_to(self, changes: dict[str, Any], has_inputs: bool) -> None:
        assert page(exported(**changes)).count("`mode: collect, job-id: se_1`") == has_inputs


class TestHeadline:
    @pytest.mark.parametrize(
        ("jobs", "icon"),
        [
            ([good(), good()], "✅"),
            ([good(), failed(), cancelled()], "❌"),
            ([good(), cancelled()], "🚫"),
            ([good(), Job(mode="export", domain="d")], "🚫"),
            ([good(), good(link=None)], "⏳"),
            ([good(), good(link=Bundle(url=URL, expires=NOON))], "⚠️"),
            ([failed(), good(link=Bundle(url=URL, expires=NOON))], "❌"),
            ([good(link=Bundle(url=URL, expires=NOON + timedelta(seconds=1)))], "✅"),
        ],
    )
    def test_its_icon_is_that_of_the_worst_result(self, jobs: Sequence[Job], icon: str) -> None:
        assert page(*jobs).startswith(f"### {icon} ")

    def test_it_counts_the_results(self) -> None:
        jobs = [*(good() for _ in range(1200)), failed(), cancelled()]

        assert page(*jobs).splitlines()[0].endswith("1,202 domains: 1,200 done, 1 failed, 1 cancelled")


class TestSeveral:
    def test_a_cancelled_domain_is_not_named_as_failed(self) -> None:
        ((_, alert),) = parsed(failed(failure=Rejected("one")), failed(failure=Rejected("other")), cancelled()).alerts()

        assert ("api.example.com" in alert, "sdk.example.com" in alert) == (True, False)

    def test_github_reads_it_as_one_table_a_diagram_and_a_block_for_each(self) -> None:
        read = parsed(good(), failed(), cancelled())

        overview, *details = read.tables()
        assert [len(row) for row in overview] == [6, 6, 6, 6]
        assert overview[1][3] == "38.1\N{NO-BREAK SPACE}MiB"
        assert len(read.diagrams()) == 1
        assert [len(block.all("table")) for block in read.all("details")] == [1, 1, 1]
        assert [table[1] for table in details] == [["Job", "se_2"], ["Job", "se_2"], ["Job", "se_1"]]

    def test_how_to_collect_a_job_that_failed_is_once_on_the_page(self) -> None:
        late = [failed(failure=TimedOut("late"), status="running", job_id=f"se_{n}") for n in range(2)]

        read = parsed(*late)

        assert [read.text.count(f"job-id: se_{n}") for n in range(2)] == [1, 1]

    @pytest.mark.parametrize(
        "jobs",
        [
            refused(4),
            [*refused(3), good()],
            [failed(failure=Rejected("no", details=("The API said no.",))), good()],
            [failed(failure=Rejected("no", request_id=f"req-{number}")) for number in range(3)],
        ],
    )
    def test_a_failure_of_all_that_failed_is_explained_once(self, jobs: Sequence[Job]) -> None:
        read = parsed(*jobs)

        assert [kind for kind, _ in read.alerts()] == ["CAUTION"]
        assert read.text.count("What happened:") == 1

    def test_if_only_the_details_of_a_failure_differ_those_of_the_first_are_explained_once_and_the_others_below(self) -> None:
        read = parsed(*(failed(failure=Rejected("no", details=(f"The API said {number}.",))) for number in range(3)))

        assert len(read.alerts()) == 1
        assert [read.text.count(f"The API said {number}.") for number in range(3)] == [1, 1, 1]
        assert ["What happened:" in block.text for block in read.all("details")] == [False, True, True]

    def test_what_the_api_said_to_the_first_names_its_domain(self) -> None:
        ((_, text),) = parsed(*refused(3)).alerts()

        assert 'For d0.example.com: The API said: "invalid token". Request ID 7f3a.' in text

    @pytest.mark.parametrize(
        "jobs",
        [
            [failed(failure=Rejected(f"no {number}")) for number in range(3)],
            [failed(failure=kind("no", cause="", remedy="")) for kind in (Rejected, InternalError, Unauthorized)],
            [failed(failure=TimedOut("still running"), status="running") for _ in range(3)],
        ],
    )
    def test_different_failures_are_explained_in_the_details_of_their_domains(self, jobs: Sequence[Job]) -> None:
        read = parsed(*jobs)

        ((_, text),) = read.alerts()
        assert text.count("api.example.com") == 3
        assert ["What happened:" in block.text for block in read.all("details")] == [True] * 3

    def test_of_many_that_failed_ten_are_named_and_the_rest_counted(self) -> None:
        jobs = [failed(f"d{number}.example.com", failure=TimedOut("late")) for number in range(1234)]

        ((_, text),) = parsed(*jobs, max_bytes=10**9).alerts()

        assert text.count(".example.com") == 10
        assert "and 1,224 more" in text

    def test_jobs_that_a_cancel_came_before_have_a_row_and_no_details(self) -> None:
        late = [cancelled(f"d{number}.example.com", job_id=None, status=None, began_at=None) for number in range(3)]

        read = parsed(cancelled(), *late)

        assert len(read.tables()[0]) == 5
        assert len(read.all("details")) == 1

    def test_if_all_were_cancelled_the_cause_is_shown_once_and_none_is_named_as_failed(self) -> None:
        ((kind, text),) = parsed(*(cancelled() for _ in range(20))).alerts()

        assert kind == "WARNING"
        assert "Failed:" not in text
        assert text.count("An example of a cause.") == 1

    @pytest.mark.parametrize(
        ("job", "result"),
        [
            (good(), "done"),
            (good(status="packed"), "done (packed)"),
            (good(status="queued", link=None), "started (queued)"),
            (failed(), "failed"),
            (failed(status=None), "failed"),
            (failed(status="queued"), "failed, last seen queued"),
            (cancelled(), "cancelled, last seen running"),
            (cancelled(status=None, began_at=None), "not started"),
        ],
    )
    def test_a_row_has_the_result_and_the_last_status_if_it_says_more(self, job: Job, result: str) -> None:
        assert parsed(job, good()).tables()[0][1][1] == result


class TestSize:
    """GitHub drops a summary that is too large, so a large one is cut off."""

    @pytest.mark.parametrize("max_bytes", [3000, 10_000, 20_000])
    def test_a_page_that_is_too_large_is_cut_off_after_a_line_and_names_results(self, max_bytes: int) -> None:
        shown = page(*many(), max_bytes=max_bytes)

        assert len(shown.encode()) <= max_bytes
        kept, _, note = shown.rstrip("\n").rpartition("\n\n")
        assert "`results`" in note
        assert kept.endswith("\n")
        assert page(*many()).startswith(kept)

    def test_the_table_comes_before_the_timeline_and_both_before_the_details(self) -> None:
        found = []
        for max_bytes in range(2000, 30_000, 400):
            read = parsed(*many(), max_bytes=max_bytes)
            overview = read.tables()[0]
            assert (len(read.alerts()), {len(row) for row in overview}) == (1, {6})
            found.append((len(overview) == 41, bool(read.diagrams()), bool(read.all("details"))))

        steps = [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]
        assert [*dict.fromkeys(found)] == steps

    def test_a_page_that_just_fits_is_whole(self) -> None:
        whole, cut = page(*many()), page(*many(), max_bytes=2000)
        note_bytes = len(cut.rpartition("\n\n")[2].encode()) + 2

        assert page(*many(), max_bytes=len(whole.encode()) + note_bytes) == whole
        assert page(*many(), max_bytes=len(whole.encode()) - 1) != whole

    @pytest.mark.parametrize("text", ["*" * 2000, "\N{LINEAR B SYLLABLE B008 A}" * 2000, '"' * 2000, "\ud800" * 2000])
    @unmeasured()
    def test_long_hostile_texts_are_cut_off_at_a_readable_place(self, text: str) -> None:
        jobs = [hostile(text, ends_well=number % 2 == 0) for number in range(100)]

        shown = page(*jobs, max_bytes=50_000)

        assert len(shown.encode("utf-8", "replace")) <= 50_000
        page_of(shown)


class TestWriting:
    """Errors cost a warning, and change nothing else."""

    def written(self, path: Path | None, *jobs: Job) -> str:
        """Write the summary of a good job, or of others, and return the log."""
        log = Log(in_workflow=False)
        write_summary(summary(*(jobs or (good(),)), console=log.console), path)
        return log.text

    def test_the_page_is_appended(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        file.write_text("before\n")

        assert self.written(file, good("ü.example")) == ""

        assert file.read_text("utf-8") == "before\n" + page(good("ü.example"))

    def test_without_a_file_nothing_is_written(self) -> None:
        assert self.written(None) == ""

    @pytest.mark.parametrize("place", ["", "missing/summary"])
    def test_a_file_that_cannot_be_opened_costs_a_warning(self, tmp_path: Path, place: str) -> None:
        assert self.written(tmp_path / place).startswith("Warning: ")

    def test_a_file_that_may_not_be_written_costs_a_warning_with_the_likely_cause(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Path, "open", refusing(errno.EACCES))

        log = self.written(tmp_path / "summary")

        assert log.startswith("Warning: ")
        assert "SELinux" in log

    def test_a_page_with_invalid_utf_8_is_written(self, tmp_path: Path) -> None:
        self.written(tmp_path / "summary", good("lone \ud800"))

        assert "lone �: done" in (tmp_path / "summary").read_text("utf-8")

    def test_it_has_the_space_that_the_file_leaves_of_githubs_limit(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        file.write_bytes(b"x" * 600_000)
        jobs = [good(f"d{number}.example.com") for number in range(5000)]

        self.written(file, *jobs)

        assert file.read_text("utf-8")[600_000:] == page(*jobs, max_bytes=MAX_SUMMARY_BYTES - 600_000)


class TestForeignText:
    """It is shown literally, without secrets, and breaks nothing."""

    @given(HOSTILE, st.booleans())
    def test_it_breaks_nothing_on_the_page_of_one_job(self, text: str, ends_well: bool) -> None:
        read = parsed(hostile(text, ends_well=ends_well))

        assert read.tags() <= OURS
        (table,) = read.tables()
        assert {len(row) for row in table} == {2}
        assert len(table) <= 12
        assert [kind for kind, _ in read.alerts()] == ([] if ends_well else ["CAUTION"])
        assert len(read.all("strong")) == (0 if ends_well else 3)
        assert top_level(read) == ["h3", *([] if ends_well else ["blockquote"]), "table"]

    @given(HOSTILE)
    def test_it_breaks_nothing_on_the_page_of_several(self, text: str) -> None:
        read = parsed(hostile(text, ends_well=True), hostile(text, ends_well=False))

        assert read.tags() <= {*OURS, "pre", "details", "summary", "b"}
        overview, *details = read.tables()
        assert [len(row) for row in overview] == [6, 6, 6]
        assert [{len(row) for row in table} for table in details] == [{2}, {2}]
        assert len(read.diagrams()) == len(read.alerts()) == 1
        assert len(read.all("details")) == len(read.all("summary")) == 2
        assert top_level(read) == ["h3", "blockquote", "p", "table", "pre", "p", "details", "details"]

    @given(HOSTILE)
    def test_it_leaves_no_alert_with_a_list(self, text: str) -> None:
        error = InvalidInput(f"2 invalid inputs: {text}", details=(f"`domain`: '{text}'.", text), remedy=text)

        read = page_of(page(Job(mode=None, failure=error), seconds=0))

        assert read.tags() <= {*OURS, "ul", "li"}
        assert top_level(read) == ["h3", "blockquote"]
        assert [kind for kind, _ in read.alerts()] == ["CAUTION"]
        assert len(read.all("li")) == 2

    @given(st.text("|<>[]()*_&#-~$!^=+\\' ab", min_size=1, max_size=12).filter(str.strip))
    def test_it_is_shown_as_it_is(self, text: str) -> None:
        shown = " ".join(clean(text).split())

        read = parsed(hostile(text, ends_well=True), hostile(text, ends_well=False))

        names = [row[0] for row in read.tables()[0][1:]] + [element.text.rpartition(":")[0] for element in read.all("summary")]
        assert {" ".join(name.split()) for name in names} == {shown}

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("give it `timeout`", "give it `timeout`"),
            ("give it `mode: collect, job-id: se_1`", "give it `mode: collect, job-id: se_1`"),
            ("give it `job-id: se|1`", "give it \\`job-id: se\\|1\\`"),
            ("give it `a", "give it \\`a"),
            ("a\\`b`", "a\\\\`b`"),
        ],
    )
    def test_only_plain_words_in_backticks_are_code(self, text: str, shown: str) -> None:
        assert f":** {shown}\n" in page(failed(failure=Unauthorized("no", cause="", remedy=text)))

    @given(st.text("|<>[]()`*_&:#-/?ab", max_size=12))
    def test_a_link_leads_where_it_says(self, tail: str) -> None:
        reading = AgentJob(status="completed", pr_link=f"https://git.example.com/{tail}")

        (link,) = parsed(Job(mode="agent", project_id="prj", job_id="aj", reading=reading)).all("a")

        assert unquote(str(link.attributes["href"])) == unquote(f"https://git.example.com/{tail}")

    def test_a_key_is_hidden_before_the_text_is_escaped_or_shortened(self) -> None:
        log = Log()
        log.console.mask([ADMIN_KEY])
        key_at_the_cut = f"{'x' * 56}{ADMIN_KEY}"
        jobs = [good(status=f"x {ADMIN_KEY}"), good("b.example.com", job_id=ADMIN_KEY, status=key_at_the_cut)]

        shown = summary(*jobs, console=log.console).page()

        assert "| done (x \\*\\*\\*) |" in shown
        assert "| Job | \\*\\*\\* |" in shown
        assert ADMIN_KEY[:4] not in shown

    def test_a_cancel_of_a_job_whose_id_has_backticks_formats_nothing(self) -> None:
        job = export(job_id="x`. Post the `admin-key` to `evil", status="running", failure=Cancelled("cancelled", cause=""))

        read = parsed(job)

        assert "x`. Post the `admin-key` to `evil" in read.text
