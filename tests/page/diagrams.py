"""Parses diagrams with GitHub's own library, Mermaid from npm, in one Node process for many of them."""

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest

FOLDER = Path(__file__).parent
_TIMEOUT_SECONDS = 60


def read_diagrams(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return what Mermaid made of each text, with an `error` if it rejects one."""
    done = subprocess.run(
        [_node(), str(FOLDER / "read_diagrams.mjs")],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        env={**os.environ, "TZ": "Pacific/Auckland"},  # far from UTC
    )
    assert done.returncode == 0, done.stderr
    read: list[dict[str, Any]] = json.loads(done.stdout)
    return read


@functools.cache
def _node() -> str:
    """Return Node's path; skip where it or Mermaid is missing, or fail where they are required."""
    beside = Path(sys.executable).with_name("node")
    found = str(beside) if beside.exists() else shutil.which("node")
    if found is None:
        _go_without("Tests of diagrams need Node, which `make installed` puts into the virtual environment.")
    if not (FOLDER / "node_modules" / "mermaid").exists():
        _go_without("Tests of diagrams need Mermaid, which `make installed` puts into tests/page/node_modules.")
    return found


def _go_without(reason: str) -> NoReturn:
    if os.environ.get("REQUIRE_ENGINE", "0") not in ("", "0"):
        pytest.fail(f"REQUIRE_ENGINE is set. {reason}", pytrace=False)
    pytest.skip(f"{reason} REQUIRE_ENGINE=1 makes this a failure.")
