"""The page of evidence says what this run of the tests counted, and names tests that there are."""

import ast
from pathlib import Path

import pytest

from tests.reliability.cell import Ran
from tests.reliability.findings import FINDINGS, Finding
from tests.reliability.killing import killed_runs
from tests.reliability.page import FILE, Evidence, page
from tests.reliability.soak import soaked

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_it_says_what_this_run_counted(matrix: Ran) -> None:
    written = page(Evidence(matrix=matrix, soak=soaked(), killed=killed_runs()))

    assert FILE.read_text(encoding="utf-8") == written, f"{FILE.name} is not what was counted: run `make reliability`"


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.what[:60])
def test_the_test_of_each_finding_is_there(finding: Finding) -> None:
    file, *names = finding.test.split("::")
    found: list[ast.stmt] = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    for name in names:
        (node,) = (node for node in found if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name)
        found = node.body
    assert names
