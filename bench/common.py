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
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        exit_without(", ".join(missing))


def exit_without(what: str) -> NoReturn:
    """Report what the measurement needs, and exit."""
    sys.stderr.write(f"This needs {what}.\n")
    raise SystemExit(LACKING)


def table(head: str, rows: Iterable[str]) -> str:
    """Return a Markdown table of rows whose cells are separated by ` | `."""
    columns = len(head.split(" | "))
    rule = " | ".join(["---"] * columns)
    return "\n".join(f"| {row} |" for row in (head, rule, *rows))


def write_section(*parts: str, missed: list[str]) -> int:
    """Write headings, paragraphs, images and tables, and the missed goals. Return the exit code."""
    goals = "Each goal is met."
    if missed:
        goals = f"Goals missed: {'; '.join(missed)}."
    blocks = [wrapped(part) for part in (*parts, goals)]
    sys.stdout.write("\n\n".join(blocks) + "\n")
    return MISSED if missed else 0


def wrapped(part: str) -> str:
    """Wrap a paragraph; leave a heading, an image or a table as it is."""
    if part.startswith(("#", "!", "|")):
        return part
    text = " ".join(part.split())
    return "\n".join(textwrap.wrap(text, WIDTH, break_on_hyphens=False))
