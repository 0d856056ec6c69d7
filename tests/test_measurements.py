"""Every measurement of `bench/page.py` runs in its smallest form, and writes a section that docs/evidence/performance.md has."""

import os
import subprocess
import sys

import pytest
from bench.page import MEASUREMENTS

from tests.engine import ROOT, skip_or_fail

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_measurement_runs_in_its_smallest_form(name: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "page.py", "--smallest", name], capture_output=True, text=True, check=False
    )

    reason = " ".join(done.stderr.split())
    if done.returncode == os.EX_UNAVAILABLE:
        skip_or_fail(reason)
    assert done.returncode == 0, done.stderr
