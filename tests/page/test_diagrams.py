"""Mermaid parses the timeline as intended: sections, phases, times, and nothing from foreign text."""

from datetime import timedelta
from typing import Any

import pytest

from docs_platform_action.job import QUEUE, RUN, Phase
from docs_platform_action.report.timeline import timeline_of
from tests.page.diagrams import read_diagrams
from tests.page.gfm import page_of
from tests.page.samples import NOW, cancelled, failed, good, phases
from tests.virtual_time import NOON

SPANS = (1, 2.9, 3, 7, 59, 61, 600, 3599, 4000, 50_000, 86_400, 3 * 86_400, 35 * 86_400)

LONG = "documentation-platform.customer-preview.staging-environment-{}.example.com"

RUNS = {
    "three": [good(), failed(), cancelled()],
    "twelve": [*(good(f"d{number}.example.com", began_at=NOW - 400 + 9 * number) for number in range(11)), failed()],
    "many": [good(f"d{number}.example.com", run=60.0 + number) for number in range(1000)],
    "ports": [good("docs.example.com:8443"), good("localhost:8080"), good("xn--bcher-kva.example"), good("1.example")],
    "long": [good(LONG.format(number)) for number in range(2)],
    "flapping": [
        good(
            f"{'x' * 200}{number}.example.com",
            phases=phases(NOW - 2000, **{f"{name}{lap}": 9.0 for lap in range(90) for name in ("run", "q")}),
        )
        for number in range(60)
    ],
    "running": [good(phases=[*phases(NOW - 30, **{QUEUE: 10.0}), Phase(name=RUN, began_at=NOW - 20)])],
    **{f"span {span}": [good(phases=phases(NOW - span, **{RUN: span}))] for span in SPANS},
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    charts = {name: timeline_of(jobs, now=NOON, monotonic=NOW) for name, jobs in RUNS.items()}
    return {name: page_of(chart).diagrams()[0] for name, chart in charts.items()}


@pytest.fixture(scope="module")
def read(texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    return dict(zip(texts, read_diagrams([*texts.values()]), strict=True))


@pytest.mark.parametrize("name", RUNS)
def test_every_diagram_is_drawn(texts: dict[str, str], read: dict[str, dict[str, Any]], name: str) -> None:
    assert "error" not in read[name], read[name]["error"]
    assert read[name]["type"] == "gantt"
    assert len(texts[name]) < read[name]["longestText"]


def test_what_is_not_a_diagram_is_an_error() -> None:
    results = read_diagrams(["gantt\n    nonsense", "gantt\n    section a\n    b :crit, 2026-05-04, 1d"])

    assert ["error" in result for result in results] == [True, False]


def test_a_job_is_a_section_with_its_phases_at_their_times(read: dict[str, dict[str, Any]]) -> None:
    day = "2026-05-04T"
    assert read["three"]["title"] == "Timeline of 2026-05-04, times in UTC"
    assert read["three"]["sections"] == ["docs.example.com", "api.example.com", "sdk.example.com"]
    assert [(task["section"][:3], task["tags"], task["began"], task["ended"]) for task in read["three"]["tasks"]] == [
        ("doc", ["done"], f"{day}11:55:47.000", f"{day}11:55:49.000"),
        ("doc", [], f"{day}11:55:49.000", f"{day}11:59:49.000"),
        ("doc", ["done"], f"{day}11:59:49.000", f"{day}11:59:49.500"),
        ("doc", ["done"], f"{day}11:59:49.500", f"{day}11:59:58.500"),
        ("doc", ["done"], f"{day}11:59:58.500", f"{day}12:00:00.000"),
        ("api", ["done"], f"{day}11:57:08.000", f"{day}11:57:20.000"),
        ("api", ["crit"], f"{day}11:57:20.000", f"{day}11:58:00.000"),
        ("sdk", ["done"], f"{day}11:57:08.000", f"{day}11:57:20.000"),
        ("sdk", [], f"{day}11:57:20.000", f"{day}12:00:00.000"),
    ]


def test_all_phases_of_a_job_are_on_one_line(read: dict[str, dict[str, Any]]) -> None:
    assert all(diagram["compact"] for diagram in read.values())


def test_a_running_phase_ends_now(read: dict[str, dict[str, Any]]) -> None:
    task = read["running"]["tasks"][-1]

    assert (task["name"], task["began"], task["ended"]) == (
        *("exported 20 s", "2026-05-04T11:59:40.000", "2026-05-04T12:00:00.000"),
    )


def test_a_bar_too_short_for_its_name_has_an_invisible_one(read: dict[str, dict[str, Any]]) -> None:
    names = [task["name"] for task in read["twelve"]["tasks"] if task["section"] == "d0.example.com"]

    assert names[1] == "exported 4 min"
    assert {*names[:1], *names[2:]} == {"\N{LATIN SMALL LIGATURE FL}°°8203¶ß"}  # Mermaid's own writing of an entity


def test_of_very_many_the_longest_are_shown(read: dict[str, dict[str, Any]]) -> None:
    assert read["many"]["sections"] == [f"d{number}.example.com" for number in range(960, 1000)]


def test_domains_with_ports_and_single_words_are_sections(read: dict[str, dict[str, Any]]) -> None:
    assert read["ports"]["sections"] == ["docs.example.com 8443", "localhost 8080", "xn--bcher-kva.example", "1.example"]
    assert len(read["ports"]["tasks"]) == 5 * 4


@pytest.mark.parametrize("span", SPANS)
def test_the_axis_has_few_ticks_with_different_labels(read: dict[str, dict[str, Any]], span: float) -> None:
    diagram = read[f"span {span}"]
    if diagram["tickInterval"] is None:
        assert span < 3
        return
    count, unit = next(
        (diagram["tickInterval"].removesuffix(unit), unit) for unit in UNITS if diagram["tickInterval"].endswith(unit)
    )
    step = timedelta(seconds=int(count) * UNITS[unit])
    assert 1 <= span / step.total_seconds() <= 8
    written = {(NOON + number * step).strftime(diagram["axisFormat"]) for number in range(5)}
    assert len(written) == 5


UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 7 * 86_400}
