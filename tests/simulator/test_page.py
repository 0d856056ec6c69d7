"""The pages about the simulator agree with the simulator."""

import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.cli import DEFAULT_PORT, command, parser
from admin_api_simulator.faults import OPERATIONS
from admin_api_simulator.scenario import parse_scenario

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "simulator-reference.md").read_text(encoding="utf-8")
SCENARIOS = re.findall(r"```json\n(.*?)```", REFERENCE, re.DOTALL)


def section(title: str) -> str:
    """Return a section of the reference."""
    return re.split(r"^## ", REFERENCE.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(markdown: str) -> set[str]:
    """Return the words in code of the first cell of each row."""
    cells = re.findall(r"^\| (.*?) \|", markdown, re.MULTILINE)
    return {word for cell in cells for code in re.findall(r"`(.*?)`", cell) for word in code.split()[:1]}


def options() -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]+", parser().format_help())) - {"--help"}


@pytest.mark.parametrize("example", SCENARIOS)
def test_a_scenario_on_the_page_is_a_good_one(example: str) -> None:
    assert {operation for operation, _ in parse_scenario(example)} < set(OPERATIONS)


@pytest.mark.parametrize(
    "option", sorted(set(re.findall(r"(?<=[`\s])--[a-z][a-z-]+", PAGE + REFERENCE)) - {"--fail", "--silent"})
)
def test_every_option_on_the_page_is_one_of_the_programs(option: str) -> None:
    foreign = {"--network", "--show-error", "--output", "--help"}  # act's, curl's, and everybody's

    assert option in foreign or option in parser().format_help()


def test_the_table_has_every_option_of_the_program() -> None:
    assert {name for name in first_cells(section("Options")) if name.startswith("-")} == options()


def test_the_table_has_every_key_of_a_turn() -> None:
    named = {"cut_after_bytes"}  # with `cut`

    assert first_cells(section("Scenario files")) | named == {field.name for field in fields(Fault)}


def test_every_operation_is_on_the_page() -> None:
    assert [operation for operation in OPERATIONS if f"`{operation}`" not in REFERENCE] == []


def test_the_command_on_the_page_is_the_one_that_the_program_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv-demo" / "bin" / "python"))
    with Simulator() as platform:
        printed = command(platform).replace(platform.base_url, f"http://127.0.0.1:{DEFAULT_PORT}")

    assert f"\n$ {printed}\n" in PAGE


@pytest.mark.parametrize("member", sorted(set(re.findall(r"\bplatform\.([a-z_]+)", REFERENCE))))
def test_everything_that_tests_can_use_exists(member: str) -> None:
    assert member == "key" or hasattr(Simulator, member)
