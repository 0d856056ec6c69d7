"""Runs the commands of a rehearsal, and logs them for people."""

import logging
import os
import shlex
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

LOG = logging.getLogger("rehearsal")


def run(*command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout_seconds: float = 120) -> str:
    """Run a command, log it and its duration, and return its output. Raises AssertionError with the output if it fails."""
    # a git hook that runs the tests sets GIT_DIR, which is the wrong repository here
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**inherited, **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    LOG.info("$ %s    # %.1f s", shlex.join(command), time.monotonic() - started)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
