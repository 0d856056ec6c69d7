"""What the measurements share: their options, the check for programs, and their section."""

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import Final, NoReturn

WIDTH: Final = 130

MISSED: Final = 3  # the exit code if a goal is missed
LACKING: Final = os.EX_UNAVAILABLE  # and if the machine lacks a program


def options_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that all measurements have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="only check that this works; the figures mean nothing",
    )
    return parser


def need_programs(*programs: str) -> None:
    """Exit if a program is missing."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        exit_without(", ".join(missing))


def exit_without(what: str) -> NoReturn:
    """Report what the measurement needs, and exit."""
    sys.stderr.write(f"This needs {what}.\n")
    raise SystemExit(LACKING)


def table(head: str, rows: Iterable[str]) -> str:
    """Return a Markdown table of rows whose cells are separated by ` | `."""
    return "\n".join(
        f"| {row} |" for row in (head, " | ".join(["---"] * len(head.split(" | "))), *rows)
    )


def write_section(*parts: str, missed: list[str]) -> int:
    """Write headings, paragraphs, images and tables, and the missed goals. Return the exit code."""
    goals = f"Goals missed: {'; '.join(missed)}." if missed else "Each goal is met."
    for part in (*parts, goals):
        is_paragraph = not part.startswith(("#", "!", "|"))
        lines = (
            textwrap.wrap(" ".join(part.split()), WIDTH, break_on_hyphens=False)
            if is_paragraph
            else [part]
        )
        sys.stdout.write("\n".join(lines) + ("\n" if part is goals else "\n\n"))
    return MISSED if missed else 0
