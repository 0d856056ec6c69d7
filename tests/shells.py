"""Reads the file of `OUTPUT_ENV_FILE` as the next step does: with a shell that sources it."""

import subprocess
from pathlib import Path
from typing import Final

from admin_api_simulator.runner import MINIMAL_PATH

SHELLS: Final = ("dash", "bash")
"""Shells that are `/bin/sh` on common machines."""


def source(file: Path, shell: str = "sh") -> dict[str, str]:
    """Return the variables that a program gets from a shell which has sourced the file; errors and unset variables end it."""
    script = '. "$1"; exec env -0'
    done = subprocess.run(
        [shell, "-euc", script, shell, str(file)],
        env={"PATH": MINIMAL_PATH},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode(errors="replace")
    variables = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
    return {
        name: text
        for name, text in variables.items()
        if name not in {"PATH", "PWD", "OLDPWD", "SHLVL", "_"}
    }
