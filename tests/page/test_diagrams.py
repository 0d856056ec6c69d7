"""Mermaid parses the timeline as intended: sections, phases, times, and nothing from foreign text."""

from datetime import timedelta
from typing import Any

import pytest

from docs_platform_action.job import QUEUE, RUN, Phase
from docs_platform_action.report.summary import summary_of
from tests.page.diagrams import read_diagrams
from tests.page.gfm import page_of
from tests.page.samples import NOW, cancelled, failed, good, phases, view
from tests.virtual_time import NOON

HOSTILE = [
    "a:b",
    "a\n    injected :crit, 2026-01-01, 1d",
    "%%{init: {'theme': 'dark'}}%%",
    "a %% comment",
    "a # b ; c",
    "```\n</pre><script>",
    "section x",
    "title",
    "click task1 call alert()",
    "constructor",
    "__proto__",
    "---",
    "gantt",
    "#8203;",
    "<b>bold</b>",
    "\N{RIGHT-TO-LEFT OVERRIDE}moc.elpmaxe",
    "bücher.example",
    "\N{PILE OF POO}",
    "x" * 500,
    "docs.example.com:8443",
]

SPANS = (1, 2.9, 3, 7, 59, 61, 600, 3599, 4000, 50_000, 86_400, 3 * 86_400, 35 * 86_400)

PAGES = {
    "one": [good()],
    "three": [good(), failed(), cancelled()],
    "twelve": [*(good(f"d{number}.example.com", began_at=NOW - 400 + 9 * number) for number in range(11)), failed()],
    "many": [good(f"d{number}.example.com", run=60.0 + number) for number in range(1000)],
    "hostile": [good(None, job_id=text) for text in HOSTILE],
    "alike": [good(), good(), good("docs.example.com 2")],
    "flapping": [
        good(
            "x" * 200 + str(number),
            phases=phases(NOW - 2000, **{f"{name}{lap}": 9.0 for lap in range(90) for name in ("run", "q")}),
        )
        for number in range(60)
    ],
    "running": [good(phases=[*phases(NOW - 30, **{QUEUE: 10.0}), Phase(name=RUN, began_at=NOW - 20)])],
    **{f"span {span}": [good(phases=phases(NOW - span, **{RUN: span}))] for span in SPANS},
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    pages = {name: page_of(summary_of(records, view(), duration_seconds=1)) for name, records in PAGES.items()}
    return {name: page.diagrams()[0] for name, page in pages.items()}


@pytest.fixture(scope="module")
def read(texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    return dict(zip(texts, read_diagrams([*texts.values()]), strict=True))


@pytest.mark.parametrize("name", PAGES)
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
    tasks = [(task["section"][:3], task["name"], task["tags"], task["began"], task["ended"]) for task in read["three"]["tasks"]]
    assert tasks == [
        ("doc", "queue 2 s", ["done"], f"{day}11:55:47.000", f"{day}11:55:49.000"),
        ("doc", "run 4 min", [], f"{day}11:55:49.000", f"{day}11:59:49.000"),
        ("doc", "bundle 0.5 s", ["done"], f"{day}11:59:49.000", f"{day}11:59:49.500"),
        ("doc", "download 9 s", ["done"], f"{day}11:59:49.500", f"{day}11:59:58.500"),
        ("doc", "unpack 1.5 s", ["done"], f"{day}11:59:58.500", f"{day}12:00:00.000"),
        ("api", "queue 12 s", ["done"], f"{day}11:57:08.000", f"{day}11:57:20.000"),
        ("api", "run 40 s", ["crit"], f"{day}11:57:20.000", f"{day}11:58:00.000"),
        ("sdk", "queue 12 s", ["done"], f"{day}11:57:08.000", f"{day}11:57:20.000"),
        ("sdk", "run 3 min", [], f"{day}11:57:20.000", f"{day}12:00:00.000"),
    ]


def test_a_running_phase_ends_now(read: dict[str, dict[str, Any]]) -> None:
    task = read["running"]["tasks"][-1]

    assert (task["name"], task["began"], task["ended"]) == ("run 20 s", "2026-05-04T11:59:40.000", "2026-05-04T12:00:00.000")


def test_few_jobs_have_a_line_a_phase_and_many_one_a_job(read: dict[str, dict[str, Any]]) -> None:
    assert not read["three"]["compact"]
    assert read["twelve"]["compact"]


def test_a_bar_too_short_for_its_name_has_an_invisible_one(read: dict[str, dict[str, Any]]) -> None:
    names = [task["name"] for task in read["twelve"]["tasks"] if task["section"] == "d0.example.com"]

    assert names[1] == "run 4 min"
    assert {*names[:1], *names[2:]} == {"\N{LATIN SMALL LIGATURE FL}°°8203¶ß"}  # Mermaid's own writing of an entity


def test_of_very_many_the_longest_are_shown(read: dict[str, dict[str, Any]]) -> None:
    assert read["many"]["sections"] == [f"d{number}.example.com" for number in range(960, 1000)]


def test_hostile_names_are_sections_and_nothing_else(read: dict[str, dict[str, Any]]) -> None:
    hostile = read["hostile"]
    assert len(hostile["sections"]) == len(HOSTILE)
    assert len(hostile["tasks"]) == 5 * len(HOSTILE)
    assert {tag for task in hostile["tasks"] for tag in task["tags"]} == {"done"}
    assert hostile["title"] == "Timeline of 2026-05-04, times in UTC"
    assert max(map(len, hostile["sections"])) == 40
    assert "job constructor" in hostile["sections"]
    assert "bücher.example" in hostile["sections"]
    assert "docs.example.com 8443" in hostile["sections"]


def test_jobs_of_one_name_stay_apart(read: dict[str, dict[str, Any]]) -> None:
    assert read["alike"]["sections"] == ["docs.example.com", "docs.example.com 2", "docs.example.com 2 2"]
    assert len(read["alike"]["tasks"]) == 15


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
