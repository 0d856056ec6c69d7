"""The structure of the job summary as GitHub reads it, and its size.

`tests/wording/runs.md` has whole summaries.
"""

import io
from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

import pytest

from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    JobFailed,
    NoRoom,
    Rejected,
    TimedOut,
    TooManyRemoved,
)
from docs_platform_action.job import BUNDLE, DOWNLOAD, QUEUE, RUN, UNPACK, Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import (
    Archive,
    BundleLink,
    Delivered,
    Deployment,
    ExportJob,
    FileDigests,
    Manifest,
    Phase,
    RoomWait,
)
from docs_platform_action.report.console import Console
from docs_platform_action.report.summary import MAX_SUMMARY_BYTES, Summary, write_summary
from docs_platform_action.site.comparison import compare
from tests.commands import commands_in
from tests.gfm import alerts, diagrams, page_of, tables, text_of
from tests.unit.report.test_console import Log
from tests.virtual_time import NOON

URL = "https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc"
LINK = BundleLink(url=URL, expires_at="2026-05-04T13:00:00Z", expires=NOON + timedelta(hours=1))
NOW = 5000.0
"""Noon on the monotonic clock."""
WARNING = ["docs.example.com: the bundle has <b>no page", "Set `min-pages`."]
ROOM_WAIT = RoomWait(refusal=NoRoom(status=NoRoom.BUSY), refusals=3, since=NOW - 300)
DEPLOYMENT = Deployment(
    id=1,
    commit="9f8e7d6c5b4a",
    commit_url="https://git.example.com/commit/9f8e7d6c5b4a",
    creator="platform",
    environment="production",
    is_transient=False,
)


def summary(*jobs: Job, console: Console | None = None) -> Summary:
    """Return the summary of a run that ended at noon."""
    console = console or Console(io.StringIO(), in_workflow=False, debugging=False)
    return Summary(jobs=jobs, console=console, now=NOON, monotonic=NOW, duration_seconds=253.0)


def page(*jobs: Job, max_bytes: int = MAX_SUMMARY_BYTES) -> str:
    return summary(*jobs).page(max_bytes)


def export(**known: Any) -> Job:
    """Return an export.

    The parts of its last reading and of what is delivered are given by their names.
    """
    status = known.pop("status", None)
    page_count = known.pop("page_count", None)
    reading = None
    if status is not None:
        reading = ExportJob(status=status, page_count=page_count)
    delivered: dict[str, Any] = {}
    for part in fields(Delivered):
        if part.name in known:
            delivered[part.name] = known.pop(part.name)
    return Job(kind=Export(), reading=reading, delivered=Delivered(**delivered), **known)


def phases(began: float, **seconds: float) -> list[Phase]:
    """Return consecutive phases."""
    consecutive: list[Phase] = []
    for name, took in seconds.items():
        ended = began + took
        consecutive.append(Phase(name=name, began_at=began, ended_at=ended))
        began = ended
    return consecutive


def good(
    domain: str | None = "docs.example.com",
    *,
    began: float = NOW - 253,
    run: float = 240.0,
    **changes: Any,
) -> Job:
    """Return a job that delivered everything, 13 s after its run."""
    steps = phases(began, **{QUEUE: 2.0, RUN: run, BUNDLE: 0.5, DOWNLOAD: 9.0, UNPACK: 1.5})
    known: dict[str, Any] = {
        "domain": domain,
        "job_id": "se_1",
        "status": ExportJob.COMPLETED,
        "page_count": 1412,
        "link": LINK,
        "archive": Archive(size=40_000_000, sha256="9b1c" * 16),
        "started_at": 0.0,
        "began_at": began,
        "ended_at": steps[-1].ended_at,
        "phases": steps,
    }
    return export(**{**known, **changes})


def failed(
    domain: str = "api.example.com", *, failure: ActionError | None = None, **changes: Any
) -> Job:
    """Return a job that failed at the platform after 52 s, two minutes before the end."""
    job_failed = JobFailed(
        "an error",
        details=('The API said: "no such page (a_b)".',),
        cause="A cause.",
        remedy="Set `timeout`.",
        request_id="7f3a",
    )
    known: dict[str, Any] = {
        "domain": domain,
        "job_id": "se_2",
        "status": ExportJob.FAILED,
        "failure": failure or job_failed,
        "started_at": 0.0,
        "began_at": NOW - 172,
        "ended_at": NOW - 120,
        "phases": phases(NOW - 172, **{QUEUE: 12.0, RUN: 40.0}),
    }
    return export(**{**known, **changes})


def cancelled(domain: str = "sdk.example.com", **changes: Any) -> Job:
    """Return a job that was cancelled while it ran."""
    failure = Cancelled("cancelled after 2:52", cause="A cause.")
    known: dict[str, Any] = {
        "status": "running",
        "ended_at": NOW,
        "phases": phases(NOW - 172, **{QUEUE: 12.0, RUN: 160.0}),
    }
    return failed(domain, failure=failure, **{**known, **changes})


def parsed(*jobs: Job) -> Element:
    return page_of(page(*jobs))


def items_of(block: Element) -> list[str]:
    return [text_of(item).strip() for item in block.iter("li")]


def top_level(read: Element) -> list[str]:
    """Return the tags of the elements that are in no other one."""
    return [child.tag for child in read]


def rows(job: Job) -> dict[str, str]:
    """Return the table of a page of one job."""
    (table,) = tables(parsed(job))
    return {row[0]: row[1] for row in table}


class TestOneJob:
    def test_its_page_is_a_headline_and_a_table(self) -> None:
        read = parsed(good())

        assert top_level(read) == ["h3", "table"]
        assert diagrams(read) == []

    def test_a_failure_is_an_alert_between_them(self) -> None:
        read = parsed(failed())

        ((kind, text),) = alerts(read)
        assert top_level(read) == ["h3", "blockquote", "table"]
        assert kind == "CAUTION"
        for part in ("no such page (a_b)", "A cause.", "Set timeout.", "job-failed", "7f3a"):
            assert part in text

    def test_each_warning_is_an_alert_at_the_top(self) -> None:
        read = parsed(good(warnings=[WARNING, ["Another one"]]))

        assert top_level(read) == ["h3", "blockquote", "blockquote", "table"]
        shown = "docs.example.com: the bundle has <b>no page. Set min-pages."
        assert [kind for kind, _ in alerts(read)] == ["WARNING", "WARNING"]
        assert [text.strip() for _, text in alerts(read)] == [shown, "Another one."]

    def test_a_warning_stands_below_a_later_failure(self) -> None:
        read = parsed(failed(warnings=[WARNING]))

        assert [kind for kind, _ in alerts(read)] == ["CAUTION", "WARNING"]

    @pytest.mark.parametrize(
        ("steps", "shown"),
        [
            ([], "4:13"),
            (phases(NOW - 9, **{RUN: 0.9}), "4:13"),
            (
                phases(NOW - 99, **{RUN: 59.9, BUNDLE: 60.0, DOWNLOAD: 1.0}),
                f"4:13: {RUN} 0:59, {BUNDLE} 1:00, {DOWNLOAD} 0:01",
            ),
            (
                [*phases(NOW - 9, **{RUN: 2.0, BUNDLE: 3.0}), *phases(NOW - 4, **{RUN: 4.0})],
                f"4:13: {RUN} 0:06, {BUNDLE} 0:03",
            ),
            ([Phase(name=RUN, began_at=NOW - 20)], f"4:13: {RUN} 0:20"),
        ],
        ids=["none", "short", "several", "twice", "unfinished"],
    )
    def test_its_phases_are_in_the_row_of_its_duration(
        self, steps: list[Phase], shown: str
    ) -> None:
        assert rows(good(phases=steps, archive=None))["Duration"] == shown


@pytest.mark.parametrize(
    ("jobs", "icon"),
    [
        ([good(), good()], "✅"),
        ([good(), failed(), cancelled()], "❌"),
        ([good(), cancelled()], "🚫"),
        ([good(), Job(kind=Export(), domain="d")], "🚫"),
        ([good(), good(link=None)], "⏳"),
        ([good(), good(link=BundleLink(url=URL, expires=NOON))], "⚠️"),
        ([good(link=BundleLink(url=URL, expires=NOON + timedelta(seconds=1)))], "✅"),
        ([good(warnings=[WARNING])], "⚠️"),
        ([good(), good(warnings=[WARNING])], "⚠️"),
        ([good(warnings=[WARNING]), cancelled()], "🚫"),
        ([failed(warnings=[WARNING])], "❌"),
    ],
)
def test_the_headlines_icon_is_that_of_the_worst_result(jobs: Sequence[Job], icon: str) -> None:
    assert page(*jobs).startswith(f"### {icon} ")


class TestSeveral:
    def test_github_reads_it_as_one_table_a_diagram_and_a_block_for_each(self) -> None:
        read = parsed(good(), failed(), cancelled())

        overview, *details = tables(read)
        assert [len(row) for row in overview] == [6] * 4
        assert len(diagrams(read)) == 1
        assert [len([*block.iter("table")]) for block in read.iter("details")] == [1, 1, 1]
        assert [table[1] for table in details] == [
            ["Job", "se_2"],
            ["Job", "se_2"],
            ["Job", "se_1"],
        ]

    def test_warnings_are_counted_in_the_table_and_stand_in_the_details(self) -> None:
        read = parsed(good(warnings=[WARNING]), failed(warnings=[WARNING, WARNING]), good())

        assert alerts(read)[0][0] == "CAUTION"
        assert len(alerts(read)) == 1
        results = [row[1] for row in tables(read)[0][1:]]
        assert results == ["done, 1 warning", "failed, 2 warnings", "done"]
        shown = "Warning: docs.example.com: the bundle has <b>no page. Set min-pages."
        counts = [text_of(block).count(shown) for block in read.iter("details")]
        assert counts == [2, 1, 0]  # the failed one is first

    def test_one_failure_of_all_that_failed_is_explained_once(self) -> None:
        jobs = [failed(failure=Rejected("no", request_id=f"r-{number}")) for number in range(3)]

        read = parsed(*jobs, good())

        ((_, alert),) = alerts(read)
        assert "3 of 4 sites: no. For api.example.com: Request ID r-0." in alert
        assert text_of(read).count("What happened:") == 1
        assert [row[-1] for row in tables(read)[0][1:4]] == ["rejected"] * 3

    def test_what_differs_in_one_failure_is_shown_of_the_first_site(self) -> None:
        first = failed("a.example", failure=Rejected("no", details=("a",)))
        second = failed("b.example", failure=Rejected("no", details=("b",)))

        read = parsed(first, second)

        ((_, alert),) = alerts(read)
        assert "All 2 sites: no. For a.example: a." in alert
        details_of_first, details_of_second = read.iter("details")
        assert "What happened:" not in text_of(details_of_first)
        assert "What happened:" in text_of(details_of_second)

    def test_one_failure_without_differences_is_that_of_all_sites(self) -> None:
        read = parsed(*(failed(failure=Rejected("no", details=("a",))) for _ in range(2)), good())

        ((_, alert),) = alerts(read)
        assert "2 of 3 sites: no. a." in alert

    def test_the_only_failure_is_named_and_keeps_its_request_id(self) -> None:
        read = parsed(failed("a.example", failure=TimedOut("late", request_id="r-1")), good())

        ((_, alert),) = alerts(read)
        assert "a.example: late." in alert
        assert "Request ID r-1." in alert
        assert "For a.example" not in alert

    def test_a_cancel_is_an_alert_if_nothing_failed(self) -> None:
        ((kind, alert),) = alerts(parsed(good(), cancelled("a.example"), cancelled("b.example")))

        assert kind == "WARNING"
        assert "2 of 3 sites: cancelled." in alert
        assert "A cause." in alert

    def test_without_a_failure_there_is_no_alert(self) -> None:
        assert alerts(parsed(good(), good())) == []

    def test_different_failures_are_listed_and_each_is_explained_in_its_details(self) -> None:
        jobs = [failed(failure=Rejected(f"no {number}")) for number in range(3)]

        read = parsed(*jobs, cancelled())

        ((_, alert),) = alerts(read)
        assert alert.count("api.example.com") == 3
        assert "more" not in alert
        assert "sdk.example.com" not in alert
        for block in [*read.iter("details")][:3]:
            assert "What happened:" in text_of(block)

    def test_of_many_that_failed_ten_are_named_and_the_rest_counted(self) -> None:
        domains = [f"d{number}.example.com" for number in range(100)]
        jobs = [failed(domain, failure=TimedOut("late")) for domain in domains]

        ((_, text),) = alerts(parsed(*jobs))

        assert text.count(".example.com") == 10
        assert "and 90 more" in text

    def test_sites_without_a_manifest_are_named_before_they_are_compared(self) -> None:
        jobs = [failed("new_1.example.com", is_first_publication=True), cancelled(), good()]

        read = text_of(parsed(*jobs))

        named = "First publication (no manifest yet): new_1.example.com."
        assert f"{named} Compared with a manifest: 2 sites." in read
        assert "First publication" not in page(good(), failed())

    def test_of_many_without_a_manifest_ten_are_named_and_the_rest_counted(self) -> None:
        jobs = [good(f"d{number}.example.com", is_first_publication=True) for number in range(30)]

        assert "d9.example.com and 20 more. Compared with a manifest: 0 sites." in page(*jobs)

    @pytest.mark.parametrize(
        ("job", "result"),
        [
            (good(), "done"),
            (good(status="packed"), "done (packed)"),
            (good(status="queued", link=None), "started (queued)"),
            (failed(), "failed"),
            (failed(status="queued"), "failed, last seen queued"),
            (cancelled(), "cancelled, last seen running"),
            (cancelled(status=None, began_at=None), "not started"),
        ],
    )
    def test_a_row_has_the_result_and_the_last_status_if_it_says_more(
        self, job: Job, result: str
    ) -> None:
        assert tables(parsed(job, good()))[0][1][1] == result

    @pytest.mark.parametrize(
        ("known", "totals"),
        [
            ({}, " Total: 2,824 pages."),
            ({"page_count": None}, ""),
            ({"failure": TooManyRemoved("x")}, ""),
            ({"page_count": None, "room": ROOM_WAIT}, " Starts refused for lack of room: 6."),
            ({"page_count": None, "deployed": DEPLOYMENT}, " Commit: 9f8e7d6."),
        ],
        ids=["pages", "none", "failed", "room", "commit"],
    )
    def test_the_totals_are_those_of_all_sites_that_succeeded(
        self, known: dict[str, Any], totals: str
    ) -> None:
        text = text_of(parsed(good(**known), good(**known)))

        assert f"The step took 4:13 and ended at 2026-05-04 12:00 UTC.{totals}\n" in text

    @pytest.mark.parametrize(
        ("job", "cells"),
        [
            (good(), ["1,412", "38.1\xa0MiB", "4:13", "valid until 2026-05-04 13:00 UTC (60 min)"]),
            (good(page_count=None, archive=None, began_at=None, link=None), ["", "", "", ""]),
            (
                failed(failure=Rejected("the API at api.example.com returned 422")),
                ["", "", "0:52", "rejected: the API returned 422."],
            ),
            (
                failed(failure=Cancelled("cancelled", details=("Nothing was started.",))),
                ["", "", "0:52", "cancelled: Nothing was started."],
            ),
        ],
        ids=["all", "nothing", "failed", "cancelled"],
    )
    def test_a_row_has_what_is_known(self, job: Job, cells: list[str]) -> None:
        # different failures, so that the alert explains none
        others = [good(), failed(failure=TimedOut("late"))]

        overview, *_ = tables(parsed(job, *others))

        assert overview[1][2:] == cells

    def test_a_column_of_which_nothing_is_known_is_left_out(self) -> None:
        overview, *_ = tables(parsed(failed(), cancelled()))

        assert overview[0] == ["Site", "Result", "Bundle", "Time", "Link or failure"]
        assert [row[3] for row in overview] == ["Time", "0:52", "2:52"]

    def test_a_failure_that_the_alert_explains_has_no_details_without_a_job(self) -> None:
        unknown = failed(job_id=None)

        assert [*parsed(unknown, unknown).iter("details")] == []
        assert len([*parsed(unknown, failed(failure=TimedOut("x"))).iter("details")]) == 2
        assert len([*parsed(failed(), failed()).iter("details")]) == 2

    def test_a_job_that_was_not_started_has_no_details(self) -> None:
        (details,) = parsed(cancelled(began_at=None), good()).iter("details")

        assert "docs.example.com" in text_of(details)

    def test_the_details_of_a_started_job_say_how_to_collect_it(self) -> None:
        read = parsed(good(link=None), good(failure=TimedOut("late")))

        details_of_failed, details_of_started = read.iter("details")
        assert "with mode: collect" in text_of(details_of_started)
        assert "with mode: collect" not in text_of(details_of_failed)


HOSTILE = (
    "a`|</details><script>\n::error::x ##[error] [b](https://c.example) @octo %d "
    + "\U0001f642" * 300
    + ".html"
)


class TestChanges:
    """What a publication changes is a table, and lists of files that open on a click."""

    PAGE: ClassVar = FileDigests(content=bytes(32), text=bytes(32))
    CHANGED_PAGE: ClassVar = FileDigests(content=b"\1" * 32, text=b"\1" * 32)
    SCRIPT: ClassVar = FileDigests(content=bytes(32), text=None)
    CHANGED_SCRIPT: ClassVar = FileDigests(content=b"\1" * 32, text=None)

    OLD: ClassVar = {
        **dict.fromkeys([b"%d.html" % number for number in range(100)], PAGE),
        b"a.js": SCRIPT,
        b"b.js": SCRIPT,
    }
    NEW: ClassVar = {
        **dict([*OLD.items()][40:]),
        b"a.js": CHANGED_SCRIPT,
        b"new.html": PAGE,
        b"99.html": CHANGED_PAGE,
    }

    def test_of_one_site_they_follow_the_facts(self) -> None:
        changes, _ = compare(Manifest(files=self.OLD), Manifest(files=self.NEW))

        read = parsed(good(changes=changes))

        table, _ = tables(read)
        assert table == [
            ["", "added", "text changed", "otherwise changed", "removed", "unchanged"],
            ["Pages", "1", "1", "0", "40", "59"],
            ["Other files", "0", "", "1", "0", "1"],
        ]
        assert [text_of(block).split() for block in read.iter("details")][1:] == [
            ["Added:", "1", "page", "new.html"],
            ["Text", "changed:", "1", "page", "99.html"],
            ["Changed:", "1", "other", "file", "a.js"],
        ]
        assert [len([*block.iter("li")]) for block in read.iter("details")] == [40, 1, 1, 1]

    @pytest.mark.parametrize(
        ("changes_path", "rest"),
        [(None, "and 50 more"), ("changes.json", "and 50 more; changes-path lists all")],
    )
    def test_of_many_pages_fifty_are_listed_and_the_rest_counted(
        self, changes_path: str | None, rest: str
    ) -> None:
        changes, _ = compare(Manifest(), Manifest(files=self.OLD))

        pages, _ = parsed(good(changes=changes, changes_path=changes_path)).iter("details")

        assert len([*pages.iter("li")]) == 51
        assert items_of(pages)[-1] == rest

    def test_other_files_are_named_by_folder_and_the_rest_counted(self) -> None:
        names = [f"{name}.js" for name in "abcdefg"]
        names += [f"_next/[id]/{number}.js" for number in range(1006)]
        names += [f"other-{number:02}/a.css" for number in range(60)]
        files = {name.encode(): self.SCRIPT for name in names}
        changes, _ = compare(Manifest(), Manifest(files=files))

        (block,) = parsed(good(changes=changes)).iter("details")

        title, items = block[0].text, items_of(block)
        assert title == "Added: 1,073 other files"
        assert items[:6] == [*names[:5], "and 2 more in the site's top folder"]
        assert items[6:12] == [
            *[f"_next/[id]/{name}.js" for name in (0, 1, 10, 100, 1000)],
            "and 1,001 more in _next/[id]/",
        ]
        assert items[12:] == [*names[-60:-20], "and 20 more"]

    def test_of_several_sites_they_are_a_column_and_in_the_details_of_each(self) -> None:
        changes, _ = compare(Manifest(files=self.OLD), Manifest(files=self.NEW))

        read = parsed(
            good(changes=changes), failed(changes=changes, failure=TooManyRemoved("x")), cancelled()
        )

        overview, *details = tables(read)
        assert [row[3] for row in overview] == [
            "Changes",
            "+1 ~1 \N{MINUS SIGN}40",
            "+1 ~1 \N{MINUS SIGN}40",
            "",
        ]
        assert len(details) == 3 + 2
        assert len([*read.iter("details")]) == 3 + 2 * 4

    def test_hostile_names_stay_text_and_within_githubs_limit(self) -> None:
        old = {(HOSTILE % number).encode(): self.PAGE for number in range(100)}
        new = {b"index.html": self.PAGE}
        for number in range(6):
            folder = HOSTILE.removesuffix(".html") % number
            new |= {f"{folder}/{name}.js".encode(): self.SCRIPT for name in range(6)}
        changes, _ = compare(Manifest(files=old), Manifest(files=new))
        jobs = [good(f"d{number}.example.com", changes=changes) for number in range(10)]

        shown = page(*jobs)

        read = page_of(shown)
        assert len(shown.encode()) < MAX_SUMMARY_BYTES
        assert "Cut off here" not in shown
        assert not [*read.iter("script"), *read.iter("a")]
        assert len([*read.iter("details")]) == 10 * 4
        assert not commands_in(shown)


class TestSize:
    """GitHub drops a summary that is too large, so a large one is cut off."""

    JOBS = (
        *(good(f"d{number}.example.com") for number in range(37)),
        failed(failure=JobFailed("x", details=("said " * 100,))),
    )

    @pytest.mark.parametrize("max_bytes", [3000, 10_000, 20_000])
    def test_a_page_that_is_too_large_is_cut_off_after_a_line_and_names_results(
        self, max_bytes: int
    ) -> None:
        shown = page(*self.JOBS, max_bytes=max_bytes)

        kept, _, note = shown.rstrip("\n").rpartition("\n\n")
        assert len(shown.encode()) <= max_bytes
        assert "`results`" in note
        assert kept.endswith("\n")
        assert page(*self.JOBS).startswith(kept)

    def test_it_has_the_space_that_the_file_leaves_of_githubs_limit(self, tmp_path: Path) -> None:
        file = tmp_path / "summary"
        file.write_bytes(b"x" * 600_000)
        jobs = [good(f"d{number}.example.com") for number in range(5000)]

        write_summary(summary(*jobs), file)

        written = file.read_text("utf-8")[600_000:]
        assert written == page(*jobs, max_bytes=MAX_SUMMARY_BYTES - 600_000)


@pytest.mark.parametrize("place", ["", "missing/summary"])
def test_a_file_that_cannot_be_opened_costs_a_warning(tmp_path: Path, place: str) -> None:
    log = Log(in_workflow=False)

    write_summary(summary(good(), console=log.console), tmp_path / place)
    write_summary(summary(good()), None)

    assert log.text.startswith("Warning: ")
