"""docs/evidence/reliability.md describes the current tests, and names existing ones.

test_matrix.py, test_soak.py and test_killed.py compare the page with their own counts.
"""

import ast
from pathlib import Path

import pytest

from tests.reliability.findings import FINDINGS, Finding
from tests.reliability.page import NOT_COUNTED, Part, findings_part, fuzzing_part, hostile_texts_part

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", [hostile_texts_part(), fuzzing_part(), findings_part()], ids=lambda part: part.row[0])
def test_the_page_has_this_part(part: Part) -> None:
    assert part.is_on_the_page(), NOT_COUNTED


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.what[:60])
def test_the_test_of_each_finding_exists(finding: Finding) -> None:
    file, *names = finding.test.split("::")
    found: list[ast.stmt] = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    for name in names:
        (node,) = (node for node in found if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name)
        found = node.body
    assert names
