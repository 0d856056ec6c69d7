"""Reads the file of `OUTPUT_ENV_FILE` as the next step does: with a shell that sources it."""

import subprocess
from pathlib import Path
from typing import Final

from admin_api_simulator.runner import MINIMAL_PATH

SHELLS: Final = ("dash", "bash")
"""Shells that are `/bin/sh` on common machines."""
SET_BY_SHELLS: Final = ("PATH", "PWD", "OLDPWD", "SHLVL", "_")


def source(file: Path, shell: str = "sh") -> dict[str, str]:
    """Return the variables that a program gets from a shell which has sourced the file.

    Errors and unset variables end the shell.
    """
    script = '. "$1"; exec env -0'
    done = subprocess.run(
        [shell, "-euc", script, shell, str(file)],
        env={"PATH": MINIMAL_PATH},
        capture_output=True,
        timeout=60,
        check=False,
    )
    errors = done.stderr.decode(errors="replace")
    assert done.returncode == 0, errors
    assert errors == ""

    variables = {}
    for entry in done.stdout.decode().split("\0"):
        if not entry:
            continue
        name, text = entry.split("=", 1)
        if name not in SET_BY_SHELLS:
            variables[name] = text
    return variables
