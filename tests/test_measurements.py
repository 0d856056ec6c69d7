"""Every measurement of `make bench` runs in its smallest form, and prints its section."""

import os
import subprocess
import sys

import pytest
from bench.__main__ import MEASUREMENTS

from tests.engine import ROOT, skip_or_fail

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_a_measurement_runs_in_its_smallest_form(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--smallest", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    reason = " ".join(done.stderr.split())
    if done.returncode == os.EX_UNAVAILABLE:
        skip_or_fail(reason)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## ")
    assert "\nEach goal is met." in done.stdout or "\nGoals missed: " in done.stdout
