"""Runs every measurement, and rewrites docs/evidence/performance.md from their sections: `python bench/page.py`.

Each measurement is a separate program that writes one section. Exit code 3 means a missed goal, which its section reports; any
other failure leaves the page unchanged. Exits with 3 if a goal was missed.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parent / "docs" / "evidence" / "performance.md"
PLOT: Final = PAGE.with_name("schedules.svg")

MEASUREMENTS: Final = (
    ("schedules.py", "--plot", str(PLOT)),
    ("startup.py",),
    ("image.py",),
    ("bundle.py",),
    ("scale.py",),
)

MISSED: Final = 3

INTRODUCTION: Final = """\
# Performance

The costs of the action for its users and the platform. `make bench` measured everything in one run and wrote this page; each
section is the output of one program in [bench](../../bench/README.md). Seconds depend on the machine, so most figures are counts
or ratios within one run; a goal in milliseconds or bytes has its figure in that unit and a ratio. `make test` checks what does
not depend on the machine: requests and delays in virtual time, imports before the first request, requests of a step with many
domains and, with a container engine, the size of the image.
"""


def main() -> int:
    """Run all measurements, and write the page."""
    sections, missed = [INTRODUCTION], []
    for name, *arguments in MEASUREMENTS:
        sys.stderr.write(f"{name} …\n")
        command = [sys.executable, HERE / name, *arguments]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  # programs of this folder
        if run.returncode not in {0, MISSED} or not run.stdout.startswith("## "):
            raise SystemExit(f"{name} ended with {run.returncode} and without a section; {PAGE.name} is unchanged")
        sections.append(run.stdout)
        missed += [name] if run.returncode == MISSED else []
    PAGE.write_text("\n".join(sections), encoding="utf-8")
    sys.stderr.write(f"{PAGE.name} is written. Goals missed: {', '.join(missed) or 'none'}.\n")
    return MISSED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
