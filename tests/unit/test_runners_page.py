"""Each row of docs/runners.md says how it is known, its links lead somewhere, and its workflows are valid."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docs_platform_action.inputs.settings import INPUTS
from tests.page.gfm import Element, page_of

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "runners.md"
PAGE = page_of(FILE.read_text("utf-8"))
SNIPPETS = [block.text for block in PAGE.all("pre") if block.attributes.get("lang") == "yaml"]
WORKFLOWS = [snippet for snippet in SNIPPETS if "\njobs:" in snippet]


def rows() -> list[list[Element]]:
    """Return the cells of each row, without the headings."""
    (table,) = PAGE.all("table")
    return [row.all("td") for row in table.all("tr")[1:]]


def links(within: Element) -> list[str]:
    return [link.attributes["href"] or "" for link in within.all("a")]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0].text)
def test_a_row_says_that_it_was_tried_or_links_to_its_source(row: list[Element]) -> None:
    environment, advice, evidence = row

    assert environment.text
    assert advice.text
    kinds = re.findall(r"(?:^|\. )(Tried|Read)\b", evidence.text)
    assert kinds, "starts with Tried or Read"
    if "Read" in kinds:
        assert any(link.startswith("https://") for link in links(evidence)), "what was read is linked"


def test_links_within_the_page_lead_to_a_heading() -> None:
    anchors = {re.sub(r"[^\w\- ]", "", heading.text.lower()).replace(" ", "-") for heading in PAGE.all("h2")}

    internal = [link.removeprefix("#") for link in links(PAGE) if link.startswith("#")]
    assert len(internal) > 5
    assert set(internal) <= anchors


def test_linked_files_of_the_tests_exist() -> None:
    files = {link for link in links(PAGE) if link.startswith("../tests/")}

    assert files
    assert [file for file in files if not (FILE.parent / file).is_file()] == []


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_snippet_is_yaml(snippet: str) -> None:
    assert yaml.safe_load(snippet)


def test_workflows_are_valid(tmp_path: Path) -> None:
    assert len(WORKFLOWS) > 2
    files = [tmp_path / f"{number}.yml" for number in range(len(WORKFLOWS))]
    for file, workflow in zip(files, WORKFLOWS, strict=True):
        file.write_text(workflow)

    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_workflows_use_inputs_that_exist(workflow: str) -> None:
    steps = [step for job in yaml.safe_load(workflow)["jobs"].values() for step in job["steps"] if "uses" in step]

    assert steps
    assert {name for step in steps for name in step["with"]} <= {known.name for known in INPUTS}
