"""Runs every measurement, and rewrites docs/evidence/performance.md from their sections: `python bench/page.py`.

Each measurement is a separate program that writes one section. Exit code 3 means a missed goal, which its section reports; any
other failure leaves the page unchanged. Exits with 3 if a goal was missed. `python bench/page.py image.py` runs only the named
programs, and replaces their sections.
"""

import argparse
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
    ("job_start.py",),
    ("bundle.py",),
    ("scale.py",),
)

MISSED: Final = 3

INTRODUCTION: Final = """\
# Performance

For reviewers: what the action costs its users and the platform, and how this was measured. [How it waits](../how-it-waits.md)
describes the schedule of the requests.

`make bench` measures everything and writes this page. Each section is the output of one run of a program in
[bench](../../bench/README.md). Seconds depend on the machine, so most figures are counts or ratios within one run. A goal in
milliseconds or bytes has its figure in that unit, and a ratio. `make test` checks what does not depend on the machine: requests
and delays in virtual time, imports before the first request, requests of a step with many domains and, with a container engine,
the size of the image.
"""


def main() -> int:
    """Run all measurements or those that are named, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the measurements to run, such as image.py; all by default")
    names = parser.parse_args().names
    if unknown := {*names} - {name for name, *_ in MEASUREMENTS}:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    sections, missed = [], []
    for name, *arguments in (measurement for measurement in MEASUREMENTS if not names or measurement[0] in names):
        sys.stderr.write(f"{name} …\n")
        command = [sys.executable, HERE / name, *arguments]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  # programs of this folder
        if run.returncode not in {0, MISSED} or not run.stdout.startswith("## "):
            raise SystemExit(f"{name} ended with {run.returncode} and without a section; {PAGE.name} is unchanged")
        sections.append(run.stdout)
        missed += [name] if run.returncode == MISSED else []
    if names:
        page = PAGE.read_text(encoding="utf-8")
        for section in sections:
            page = replace_section(page, section)
    else:
        page = "\n".join([INTRODUCTION, *sections])
    PAGE.write_text(page, encoding="utf-8")
    sys.stderr.write(f"{PAGE.name} is written. Goals missed: {', '.join(missed) or 'none'}.\n")
    return MISSED if missed else 0


def replace_section(page: str, section: str) -> str:
    """Return the page with a new version of the section that has the same title."""
    title = section.partition("\n")[0]
    before, found, after = page.partition(f"\n{title}\n")
    if not found:
        raise SystemExit(f"{PAGE.name} has no section `{title}`: run all measurements with `make bench`")
    _, heading, rest = after.partition("\n## ")
    return f"{before}\n{section}{heading}{rest}"


if __name__ == "__main__":
    sys.exit(main())
