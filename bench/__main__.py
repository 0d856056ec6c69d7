"""Runs every measurement: `make bench`, or one: `python -m bench scale`.

Each is a separate program that prints its section.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from bench.common import MISSED

ROOT: Final = Path(__file__).parents[1]
PLOT: Final = ROOT / "docs" / "pictures" / "schedules.svg"
MEASUREMENTS: Final = ("schedules", "bundle", "plan", "scale", "quota", "startup")


def main() -> int:
    """Run all measurements or those that are named.

    Exits if one fails for another reason than a missed goal.
    """
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(MEASUREMENTS)}; all by default"
    )
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="only check that the measurements work; goals do not count",
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    goals_are_met = True
    for name in options.names or MEASUREMENTS:
        if is_missed(name, smallest=options.smallest):
            goals_are_met = False
    if goals_are_met or options.smallest:
        return 0
    return MISSED


def is_missed(name: str, *, smallest: bool) -> bool:
    """Run a measurement, which prints its section, and return whether a goal is missed.

    Exits if it fails.
    """
    sys.stderr.write(f"{name} …\n")
    command = [sys.executable, "-m", f"bench.{name}"]
    if smallest:
        command.append("--smallest")
    if name == "schedules":
        plot = os.devnull if smallest else str(PLOT)
        command += ["--plot", plot]
    # runs programs of this folder
    exit_code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603
    if exit_code not in {0, MISSED}:
        raise SystemExit(exit_code)
    return exit_code == MISSED


if __name__ == "__main__":
    sys.exit(main())
