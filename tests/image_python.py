"""Finds a Python of the image's version.

The tests run on it if the development environment has another version.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def image_version() -> str:
    """Return the version of the image's Python, such as 3.13."""
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    (version,) = set(re.findall(r"(?m)^FROM python:(\d+\.\d+)", dockerfile))
    return str(version)


def find_image_python() -> str | None:
    """Return an interpreter of the image's version.

    It is the running one, one on PATH, or one from pyenv.
    """
    version = image_version()
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [sys.executable, f"python{version}"]
    candidates += [str(path) for path in sorted(pyenv.glob(f"versions/{version}*/bin/python"))]
    for candidate in candidates:
        if _version_of(candidate) == version:
            return candidate
    return None


def _version_of(python: str) -> str | None:
    """Return an interpreter's version.

    Returns `None` if it does not start or cannot make a virtual environment.
    """
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    command = [python, "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


if __name__ == "__main__":
    found = find_image_python()
    if found is not None and found != sys.executable:
        sys.stdout.write(found)
