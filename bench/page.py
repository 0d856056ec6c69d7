"""Runs every measurement, and replaces its section of docs/evidence/performance.md: `python bench/page.py`.

Each measurement is a separate program that writes one section. A missed goal is reported in the section; any other failure leaves
the page unchanged. `python bench/page.py scale.py` runs only scale.py. `--smallest` checks that the programs still work, with a
few rounds, files and domains, and changes nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "evidence" / "performance.md"
PLOT: Final = PAGE.with_name("schedules.svg")
MEASUREMENTS: Final = ("schedules.py", "bundle.py", "plan.py", "scale.py", "startup.py")

MISSED: Final = 3  # the exit code if a goal is missed
LACKING: Final = os.EX_UNAVAILABLE  # and if the machine lacks a program


def main() -> int:
    """Run all measurements or those that are named, and rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the measurements to run, such as scale.py; all by default")
    parser.add_argument("--smallest", action="store_true", help="only check that the measurements work; goals do not count")
    options = parser.parse_args()
    if unknown := {*options.names} - {*MEASUREMENTS}:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    page, missed = PAGE.read_text(encoding="utf-8"), []
    for name in options.names or MEASUREMENTS:
        section, is_missed = run(name, smallest=options.smallest)
        page = replace_section(page, section)
        missed += [name] if is_missed else []
    if options.smallest:
        return 0
    PAGE.write_text(page, encoding="utf-8")
    sys.stderr.write(f"{PAGE.name} is written. Goals missed: {', '.join(missed) or 'none'}.\n")
    return MISSED if missed else 0


def run(name: str, *, smallest: bool) -> tuple[str, bool]:
    """Run a measurement, and return its section and whether a goal is missed. Exits if it fails."""
    sys.stderr.write(f"{name} …\n")
    with tempfile.TemporaryDirectory() as folder:
        command: list[str | Path] = [sys.executable, "-m", f"bench.{name.removesuffix('.py')}"]
        command += ["--smallest"] if smallest else []
        command += ["--plot", Path(folder, PLOT.name) if smallest else PLOT] if name == "schedules.py" else []
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  # programs of this folder
    if done.returncode == LACKING:
        raise SystemExit(LACKING)  # the program has reported what is missing
    if done.returncode not in {0, MISSED} or not done.stdout.startswith("## "):
        raise SystemExit(f"{name} ended with {done.returncode} and without a section; {PAGE.name} is unchanged")
    return done.stdout, done.returncode == MISSED


def replace_section(page: str, section: str) -> str:
    """Return the page with a new version of the section that has the same title."""
    title = section.partition("\n")[0]
    before, found, after = page.partition(f"\n{title}\n")
    if not found:
        raise SystemExit(f"{PAGE.name} has no section `{title}`")
    _, heading, rest = after.partition("\n## ")
    return f"{before}\n{section}{heading}{rest}"


if __name__ == "__main__":
    sys.exit(main())
