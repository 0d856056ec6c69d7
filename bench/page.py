"""Runs every measurement, and rewrites docs/evidence/performance.md from their sections: `python bench/page.py`.

Each measurement is a separate program that writes one section. Exit code 3 means a missed goal, which its section reports; any
other failure leaves the page unchanged. Exits with 3 if a goal was missed, and with the program's exit code if the machine
lacks something (`needs.py`). `python bench/page.py scale.py` runs only the named programs, and replaces their sections.
`--smallest` checks within seconds that they still run and write their sections, and changes nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PAGE: Final = HERE.parent / "docs" / "evidence" / "performance.md"
PLOT: Final = PAGE.with_name("schedules.svg")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A program, its options, and those of its smallest form, which takes seconds; paths in these are in a temporary folder."""

    name: str
    options: tuple[str, ...] = ()
    smallest: tuple[str, ...] = ()


MEASUREMENTS: Final = (
    Measurement(name="schedules.py", options=("--plot", str(PLOT)), smallest=("--plot", PLOT.name, "--jobs", "10")),
    Measurement(name="startup.py", smallest=("--rounds", "1", "--starts", "1", "--imports", "1")),
    Measurement(name="bundle.py", smallest=("--rounds", "1", "--files", "20", "--mib", "1", "--other-sites", "1")),
    Measurement(name="scale.py", smallest=("--domains", "100", "--alone", "2", "--on-sockets", "3")),
)

MISSED: Final = 3
LACKING: Final = os.EX_UNAVAILABLE
"""The exit code for what a machine lacks (`needs.py`)."""

INTRODUCTION: Final = """\
# Performance

For reviewers: what the action costs its users and the platform, and how this was measured. [How it waits](../how-it-waits.md)
describes the schedule of the requests.

`make bench` measures everything and writes this page. Each section is the output of one run of a program in
[bench](../../bench/README.md). Seconds depend on the machine, so most figures are counts or ratios within one run. A goal in
milliseconds or bytes has its figure in that unit, and a ratio. With a container engine, `make test` also checks that the image
adds at most 8 MB to its base. [Measured once](../../bench/README.md#measured-once) has what is not measured again.
"""


def main() -> int:
    """Run all measurements or those that are named, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the measurements to run, such as scale.py; all by default")
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="only check, in seconds, that the measurements run: the page stays unchanged, and goals do not count",
    )
    options = parser.parse_args()
    if unknown := {*options.names} - {measurement.name for measurement in MEASUREMENTS}:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    chosen = [measurement for measurement in MEASUREMENTS if not options.names or measurement.name in options.names]
    sections, missed = [], []
    for measurement in chosen:
        section, is_missed = run_smallest(measurement) if options.smallest else run(measurement.name, *measurement.options)
        sections.append(section)
        missed += [measurement.name] if is_missed else []
    if options.names or options.smallest:
        page = PAGE.read_text(encoding="utf-8")
        for section in sections:
            page = replace_section(page, section)
    else:
        page = "\n".join([INTRODUCTION, *sections])
    if options.smallest:
        return 0
    PAGE.write_text(page, encoding="utf-8")
    sys.stderr.write(f"{PAGE.name} is written. Goals missed: {', '.join(missed) or 'none'}.\n")
    return MISSED if missed else 0


def run_smallest(measurement: Measurement) -> tuple[str, bool]:
    """Run the smallest form of a measurement in a temporary folder, and return its section and whether a goal is missed."""
    with tempfile.TemporaryDirectory(prefix="smallest-") as folder:
        return run(measurement.name, *measurement.smallest, folder=Path(folder))


def run(name: str, *arguments: str, folder: Path | None = None) -> tuple[str, bool]:
    """Run a measurement, and return its section and whether a goal is missed. Exits if it fails."""
    sys.stderr.write(f"{name} …\n")
    command = [sys.executable, HERE / name, *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603  # programs of this folder
    if done.returncode == LACKING:
        raise SystemExit(done.returncode)  # the program has said what it needs
    if done.returncode not in {0, MISSED} or not done.stdout.startswith("## "):
        raise SystemExit(f"{name} ended with {done.returncode} and without a section; {PAGE.name} is unchanged")
    return done.stdout, done.returncode == MISSED


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
