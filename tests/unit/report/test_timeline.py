"""What the timeline shows, and what it omits. `tests/page` reads it with Mermaid, `tests/wording/runs.md` has whole ones."""

import io
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.job import BUNDLE, QUEUE, RUN, Job, Phase
from docs_platform_action.report.console import Console
from docs_platform_action.report.timeline import timeline_of
from tests.page.samples import NOW, cancelled, failed, good, phases, view


def timeline(*jobs: Job) -> str:
    return timeline_of(jobs, view())


def lines_with(text: str, word: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if word in line]


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [Phase(name=RUN, began_at=NOW - 5, ended_at=NOW - 5)],
        [Phase(name=RUN, began_at=NOW - 5, ended_at=NOW - 4.9998)],
        [Phase(name=RUN, began_at=NOW - 5, ended_at=NOW - 4.001)],
        [Phase(name=RUN, began_at=NOW)],
        [Phase(name=RUN, began_at=NOW - 5, ended_at=NOW - 6)],
    ],
)
def test_there_is_none_where_no_phase_took_a_second(steps: Sequence[Phase]) -> None:
    assert timeline(good(phases=[*steps]), good(phases=[])) == ""


def test_a_phase_that_took_no_time_is_left_out() -> None:
    chart = timeline(good(phases=phases(NOW - 9, **{QUEUE: 0.0, RUN: 8.0, BUNDLE: 0.0001})))

    assert lines_with(chart, " :") == ["run 8 s :2026-05-04T11:59:51.000, 2026-05-04T11:59:59.000"]


def test_only_the_last_phase_is_the_one_that_failed_and_none_of_a_cancelled_job_is() -> None:
    lines = lines_with(timeline(failed(phases=phases(NOW - 30, **{QUEUE: 5.0, RUN: 5.0, BUNDLE: 5.0})), cancelled()), ":crit")

    assert [line.partition(" :")[0] for line in lines] == ["bundle 5 s"]


def test_of_a_job_with_many_phases_the_longest_are_drawn_in_their_order() -> None:
    lengths = [3.0, 1.0, 9.0, 4.0, 1.0, 5.0, 6.0, 7.0, 8.0, 2.0]

    chart = timeline(good(phases=phases(NOW - 60, **{f"p{place}": seconds for place, seconds in enumerate(lengths)})))

    assert re.findall(r"p\d (\d) s :", chart) == ["3", "9", "4", "5", "6", "7", "8", "2"]


def test_of_many_jobs_the_failed_and_the_longest_are_drawn_in_their_order() -> None:
    jobs = [good(f"d{number}.example.com", run=100.0 + number) for number in range(50)]
    jobs[2:2] = [failed("failed.example.com"), cancelled("cancelled.example.com")]

    chart = timeline(*jobs)

    sections = [line.removeprefix("section ") for line in lines_with(chart, "section ")]
    assert sections == ["failed.example.com", "cancelled.example.com", *(f"d{number}.example.com" for number in range(12, 50))]


@pytest.mark.parametrize(("count", "compact"), [(8, False), (9, True)])
def test_more_than_a_few_jobs_share_the_height_and_that_is_explained(count: int, compact: bool) -> None:
    chart = timeline(*(good() for _ in range(count)), good(phases=[]))

    assert ("displayMode: compact" in chart) is compact
    assert bool(chart.rpartition("```\n")[2]) is compact


def test_a_job_without_a_name_has_a_label() -> None:
    assert lines_with(timeline(good(None, job_id=None)), "section") == ["section job"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("docs.example.com", "docs.example.com"),
        ("docs.example.com:8443", "docs.example.com 8443"),
        ("localhost", "job localhost"),
        ("__proto__", "job __proto__"),
        ("se_1", "job se_1"),
        ("se-1", "se-1"),
        (f"{'x' * 41}.com", f"{'x' * 39}…"),
        (f"{'x' * 36}.com", f"{'x' * 36}.com"),
    ],
)
def test_a_label_is_a_host_name_or_says_that_it_is_a_job(name: str, label: str) -> None:
    assert lines_with(timeline(good(name)), "section") == [f"section {label}"]


def test_a_label_contains_no_secret() -> None:
    console = Console(io.StringIO(), in_workflow=False, debugging=False)
    console.mask(["key"])

    chart = timeline_of([good("key.example.com")], view(console))

    assert lines_with(chart, "section") == ["section .example.com"]


@given(st.lists(st.one_of(st.text(), st.text(":;#%{}`\n\"'<>-_ ", max_size=9)), min_size=1, max_size=12))
def test_labels_hold_no_syntax_and_stay_apart(names: list[str]) -> None:
    chart = timeline(*(good(None, job_id=name) for name in names))

    labels = [line.removeprefix("section ") for line in lines_with(chart, "section ")]
    assert len({*labels}) == len(labels) == len(names)
    assert all(re.fullmatch(r"[\w. …-]{1,43}", label) for label in labels)
    assert chart.count("```") == 2
    assert len(lines_with(chart, " :")) == 5 * len(names)


@pytest.mark.parametrize(
    ("span", "axis"),
    [
        (2.9, ["axisFormat %H:%M:%S.%L"]),
        (3, ["axisFormat %H:%M:%S", "tickInterval 1second"]),
        (300, ["axisFormat %H:%M", "tickInterval 1minute"]),
        (3600, ["axisFormat %H:%M", "tickInterval 10minute"]),
        (57_600, ["axisFormat %H:%M", "tickInterval 2hour"]),
        (57_601, ["axisFormat %m-%d %H:%M", "tickInterval 3hour"]),
        (8 * 86_400, ["axisFormat %m-%d", "tickInterval 1day"]),
        (90 * 86_400, ["axisFormat %m-%d", "tickInterval 1week"]),
    ],
)
def test_the_axis_is_as_fine_as_the_span_asks(span: float, axis: list[str]) -> None:
    chart = timeline(good(phases=phases(NOW - span, **{RUN: span})))

    assert [*lines_with(chart, "axisFormat"), *lines_with(chart, "tickInterval")] == axis
