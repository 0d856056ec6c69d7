"""Tests that share an expensive object stay on one worker, and the longest tests start first."""

import re
from pathlib import Path

import pytest

from tests.workers import LONGEST, TOGETHER, priority_of, unit_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", [*TOGETHER, *LONGEST])
def test_named_folders_and_files_exist(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("counting", [r"\bsoaked\(\)", r"\bkilled_runs\(\)", r"\bmatrix: MatrixResult\b"])
def test_counts_that_take_minutes_are_used_in_one_file(counting: str) -> None:
    files = {file: file.read_text(encoding="utf-8") for file in (ROOT / "tests" / "reliability").glob("test_*.py")}

    assert len([file for file, text in files.items() if re.search(counting, text)]) == 1


@pytest.mark.parametrize(
    ("nodeid", "unit"),
    [
        ("tests/workflow/test_examples.py::TestUploadToS3::test_a", "act"),
        ("tests/workflow/test_workflows.py::TestExport::test_b", "act"),
        ("tests/container/test_image.py::test_c[pip]", "the image"),
        ("tests/unit/test_clock.py::TestClock::test_d[a::b]", "tests/unit/test_clock.py"),
        ("tests/reliability/test_injection.py::test_e", "tests/reliability/test_injection.py"),
    ],
)
def test_units_are_files_or_folders_that_share_an_object(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


def test_long_tests_start_before_short_ones() -> None:
    nodeids = ["tests/unit/test_clock.py::a", "tests/fuzz/test_zip.py::b", "tests/reliability/test_soak.py::c"]

    assert sorted(nodeids, key=priority_of) == nodeids[::-1]
