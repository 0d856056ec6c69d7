"""Checks that a machine has what a measurement needs. The exit code is `EX_UNAVAILABLE` of sysexits(3)."""

import os
import shutil
import subprocess
import sys
from typing import NoReturn


def need_programs(*programs: str) -> None:
    """Exit if a program is missing."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        exit_without(", ".join(missing))


def need_engine() -> None:
    """Exit if no container engine responds."""
    need_programs("docker")
    asked = subprocess.run(["docker", "version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S607  # on PATH
    if asked.returncode != 0:
        problem = asked.stderr.strip().rstrip(".?")
        exit_without(f"a container engine: {problem}")


def exit_without(what: str) -> NoReturn:
    """Say what the measurement needs, and exit with a code that differs from that of an error."""
    sys.stderr.write(f"This needs {what}.\n")
    raise SystemExit(os.EX_UNAVAILABLE)
