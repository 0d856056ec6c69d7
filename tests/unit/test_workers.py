"""What is made or counted once stays with one worker, and what takes longest is begun first."""

import re
from pathlib import Path

import pytest

from tests.workers import LONGEST, TOGETHER, turn_of, unit_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", [*TOGETHER, *LONGEST])
def test_what_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("counting", [r"\bsoaked\(\)", r"\bkilled_runs\(\)", r"\bmatrix: Ran\b"])
def test_what_takes_minutes_to_count_is_counted_for_one_file(counting: str) -> None:
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
def test_a_worker_takes_a_file_or_what_goes_with_it(nodeid: str, unit: str) -> None:
    assert unit_of(nodeid) == unit


def test_what_takes_minutes_is_begun_before_what_takes_seconds() -> None:
    nodeids = ["tests/unit/test_clock.py::a", "tests/fuzz/test_zip.py::b", "tests/reliability/test_soak.py::c"]

    assert sorted(nodeids, key=turn_of) == nodeids[::-1]
