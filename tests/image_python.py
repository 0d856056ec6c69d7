"""Finds a Python of the image's version, to run the tests on it if the development environment has another."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def image_version() -> str:
    """Return the version of the image's Python, such as 3.13."""
    (version,) = {
        *re.findall(r"(?m)^FROM python:(\d+\.\d+)", (ROOT / "Dockerfile").read_text("utf-8"))
    }
    return str(version)


def find_image_python() -> str | None:
    """Return an interpreter of the image's version: the running one, one on PATH, or one from pyenv."""
    version = image_version()
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [
        sys.executable,
        f"python{version}",
        *map(str, sorted(pyenv.glob(f"versions/{version}*/bin/python"))),
    ]
    return next((candidate for candidate in candidates if _version_of(candidate) == version), None)


def _version_of(python: str) -> str | None:
    """Return an interpreter's version, or `None` if it does not start or cannot make a virtual environment."""
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


if __name__ == "__main__":
    found = find_image_python()
    sys.stdout.write(found if found is not None and found != sys.executable else "")
