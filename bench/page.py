"""Runs every measurement, and rewrites docs/evidence/performance.md from what they write: `python bench/page.py`.

Each is a program of its own that writes one section. One that ends with 3 has missed a goal: its section says so, and stands on
the page all the same. Any other end leaves the page as it was. Ends with 3, too, when a goal was missed.
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
"""In the order of the page."""

MISSED: Final = 3

INTRODUCTION: Final = """\
# Performance

What the action costs its users and the platform. `make bench` measured all of this in one go and wrote this page; each section is
one program in [bench](../../bench/README.md), which runs alone too. Seconds depend on the machine, so figures are counts, or
ratios within one run; where a goal is in milliseconds or bytes, so is its figure, with a ratio beside it. What does not depend on
the machine is held by every `make test`: requests and delay in virtual time, what is imported before the first request, what a
step of many domains asks for and, where there is a container engine, the size of the image.
"""


def main() -> int:
    """Measure, and write the page."""
    sections, missed = [INTRODUCTION], []
    for name, *arguments in MEASUREMENTS:
        sys.stderr.write(f"{name} …\n")
        command = [sys.executable, HERE / name, *arguments]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  # programs of this folder
        if run.returncode not in {0, MISSED} or not run.stdout.startswith("## "):
            raise SystemExit(f"{name} ended with {run.returncode} and without a section; {PAGE.name} is left as it was")
        sections.append(run.stdout)
        missed += [name] if run.returncode == MISSED else []
    PAGE.write_text("\n".join(sections), encoding="utf-8")
    sys.stderr.write(f"{PAGE.name} is written. Goals missed: {', '.join(missed) or 'none'}.\n")
    return MISSED if missed else 0


if __name__ == "__main__":
    sys.exit(main())
