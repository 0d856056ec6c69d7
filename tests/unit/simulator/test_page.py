"""The page about the simulator agrees with the simulator."""

import re
from pathlib import Path

import pytest

from admin_api_simulator import Simulator
from admin_api_simulator.cli import banner, parser
from admin_api_simulator.faults import OPERATIONS
from admin_api_simulator.scenario import parse_scenario

PAGE = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("example", re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
def test_a_scenario_on_the_page_is_a_good_one(example: str) -> None:
    assert set(parse_scenario(example).turns) < set(OPERATIONS)


def test_the_page_shows_a_scenario_for_some_domains() -> None:
    assert any(parse_scenario(example).domains for example in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.parametrize("option", sorted(set(re.findall(r"(?<=[`\s])--[a-z][a-z-]+", PAGE)) - {"--fail", "--silent"}))
def test_every_option_on_the_page_is_one_of_the_programs(option: str) -> None:
    foreign = {"--network", "--show-error", "--output", "--help"}  # act's, curl's, and everybody's

    assert option in foreign or option in parser().format_help()


def test_every_option_of_the_program_is_on_the_page() -> None:
    options = set(re.findall(r"--[a-z][a-z-]+", parser().format_help())) - {"--help"}

    assert [option for option in sorted(options) if f"{option} " not in PAGE and f"{option}`" not in PAGE] == []


def test_every_name_that_the_program_prints_is_on_the_page() -> None:
    with Simulator() as platform:
        names = re.findall(r"^  ([a-z][\w.-]+)", banner(platform), re.MULTILINE)

    assert len(names) >= 10
    assert [name for name in names if f"{name}`" not in PAGE] == []
