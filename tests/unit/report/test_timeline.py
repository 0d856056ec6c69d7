"""What the timeline shows, and what it omits.

`tests/docs` reads it with Mermaid, `tests/wording/runs.md` has whole ones.
"""

from collections.abc import Sequence

import pytest

from docs_platform_action.job import BUNDLE, QUEUE, RUN, Job
from docs_platform_action.models import Phase
from docs_platform_action.report.timeline import timeline_of
from tests.unit.report.test_summary import NOW, cancelled, failed, good, phases
from tests.virtual_time import NOON


def timeline(*jobs: Job) -> str:
    return timeline_of(jobs, now=NOON, monotonic=NOW)


def lines_with(text: str, word: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if word in line]


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [Phase(name=RUN, began_at=NOW - 5, ended_at=NOW - 4.001)],
        [Phase(name=RUN, began_at=NOW - 5, ended_at=NOW - 6)],
    ],
)
def test_there_is_none_if_no_phase_took_a_second(steps: Sequence[Phase]) -> None:
    assert timeline(good(phases=[*steps]), good(phases=[])) == ""


def test_only_the_last_phase_of_a_failed_job_is_red() -> None:
    steps = phases(NOW - 30, **{QUEUE: 10.0, RUN: 10.0, BUNDLE: 10.0})

    chart = timeline(failed(phases=steps), cancelled(phases=steps))

    assert lines_with(chart, ":crit") == [
        "failed after 10 s :crit, 2026-05-04T11:59:50.000, 2026-05-04T12:00:00.000"
    ]


def test_of_many_jobs_the_failed_and_the_longest_are_drawn_in_their_order() -> None:
    jobs = [good(f"d{number}.example.com", run=100.0 + number) for number in range(50)]
    jobs[2:2] = [failed("failed.example.com"), cancelled("cancelled.example.com")]

    chart = timeline(*jobs)

    sections = [line.removeprefix("section ") for line in lines_with(chart, "section ")]
    assert sections == [
        "failed.example.com",
        "cancelled.example.com",
        *(f"d{number}.example.com" for number in range(12, 50)),
    ]
    assert "shows 40 of 52 sites" in chart


@pytest.mark.parametrize(
    ("domain", "label"),
    [
        ("docs.example.com:8443", "docs.example.com 8443"),
        (f"{'x' * 60}.com", f"{'x' * 50}…"),
        (f"{'x' * 46}.com", f"{'x' * 46}.com"),
    ],
)
def test_a_label_is_the_domain(domain: str, label: str) -> None:
    assert lines_with(timeline(good(domain)), "section ") == [f"section {label}"]


@pytest.mark.parametrize(
    ("span", "axis"),
    [
        (2.9, ["axisFormat %H:%M:%S.%L"]),
        (3, ["axisFormat %H:%M:%S", "tickInterval 1second"]),
        (3600, ["axisFormat %H:%M", "tickInterval 10minute"]),
        (57_601, ["axisFormat %m-%d %H:%M", "tickInterval 3hour"]),
        (90 * 86_400, ["axisFormat %m-%d", "tickInterval 1week"]),
    ],
)
def test_the_axis_has_ticks_at_round_times_that_fit_the_span(span: float, axis: list[str]) -> None:
    chart = timeline(good(phases=phases(NOW - span, **{RUN: span})))

    assert [*lines_with(chart, "axisFormat"), *lines_with(chart, "tickInterval")] == axis
