"""The table of targets matches the tests."""

import re
from pathlib import Path

from tests.fuzz import EXAMPLES


def test_each_target_has_one_test() -> None:
    sources = "".join(file.read_text("utf-8") for file in sorted(Path(__file__).parent.glob("test_*.py")))

    assert sorted(re.findall(r'^@fuzz\(\s*"([^"]+)"', sources, flags=re.MULTILINE)) == sorted(EXAMPLES)
