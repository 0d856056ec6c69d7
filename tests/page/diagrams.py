"""Parses diagrams with GitHub's own library, Mermaid from npm, in one Node process for many of them."""

import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.engine import skip_or_fail

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
        skip_or_fail("Tests of diagrams need Node, which `make installed` puts into the virtual environment.")
    if not (FOLDER.parent / "node_modules" / "mermaid").exists():
        skip_or_fail("Tests of diagrams need Mermaid, which `make installed` puts into tests/node_modules.")
    return found
