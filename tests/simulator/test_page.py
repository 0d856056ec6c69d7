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
REFERENCE = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
SCENARIOS = re.findall(r"```json\n(.*?)```", REFERENCE, re.DOTALL)


def section(title: str) -> str:
    """Return a section of the reference."""
    _, _, following = REFERENCE.partition(f"\n## {title}\n")
    return re.split(r"^## ", following, maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(markdown: str) -> set[str]:
    """Return the words in code of the first cell of each row."""
    words = set()
    for cell in re.findall(r"^\| (.*?) \|", markdown, re.MULTILINE):
        for code in re.findall(r"`(.+?)`", cell):
            words.add(code.split()[0])
    return words


def options() -> set[str]:
    return set(re.findall(r"--[a-z][a-z-]+", parser().format_help())) - {"--help"}


def test_the_scenarios_on_the_page_are_good_ones() -> None:
    for example in SCENARIOS:
        operations = {operation for operation, _ in parse_scenario(example)}
        assert operations < set(OPERATIONS)


def test_the_tables_have_every_option_of_the_program_every_key_of_a_turn_and_every_operation() -> (
    None
):
    named = {"cut_after_bytes"}  # with `cut`

    assert {name for name in first_cells(section("Options")) if name.startswith("-")} == options()
    assert first_cells(section("Scenario files")) | named == {field.name for field in fields(Fault)}
    assert [operation for operation in OPERATIONS if f"`{operation}`" not in REFERENCE] == []


def test_the_command_on_the_page_is_the_one_that_the_program_prints(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "executable", str(ROOT / ".venv-demo" / "bin" / "python"))
    with Simulator() as platform:
        printed = command(platform).replace(platform.base_url, f"http://127.0.0.1:{DEFAULT_PORT}")

    assert f"\n$ {printed}\n" in PAGE
