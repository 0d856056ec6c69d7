"""Runs the programs that a release needs."""

import os
import subprocess
from collections.abc import Mapping


class ReleaseError(Exception):
    """A release cannot continue. The message says what to do."""


def run(*command: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a program and return its output.

    Raises ReleaseError with the program's own message if it fails.
    """
    variables = {**os.environ, **(env or {})}
    done = subprocess.run(
        command,
        input=stdin,
        env=variables,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise ReleaseError(f"{command[0]} {command[1]} failed: {done.stderr.strip()}")
    return done.stdout


def git(*arguments: str, stdin: str | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run git and return its output without spaces around it."""
    return run("git", *arguments, stdin=stdin, env=env).strip()
