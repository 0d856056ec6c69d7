"""What a run imports before its first request: all but the YAML library, which most runs do not need."""

import json
import subprocess
import sys
from pathlib import Path

ENTRYPOINT = str(Path(__file__).parents[2] / "entrypoint.py")

SCRIPT = """
import json, os, runpy, socket, sys

def connect(*_):
    print(json.dumps(sorted(sys.modules)))
    sys.stdout.flush()
    os._exit(0)

socket.socket.connect = connect
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Runs the action until its first connection."""


def test_the_yaml_library_is_not_imported_before_the_first_request(tmp_path: Path) -> None:
    environment = {
        "GITHUB_WORKSPACE": str(tmp_path),
        "INPUT_BASE-URL": "http://127.0.0.1:9",
        "INPUT_ADMIN-KEY": "key-of-the-test-of-imports",
        "INPUT_DOMAIN": "docs.example.com",
        "INPUT_VALUES-FILE": "values.yaml",
    }

    command = [sys.executable, "-c", SCRIPT, ENTRYPOINT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)

    imported = {*json.loads(done.stdout.splitlines()[-1])}
    assert "docs_platform_action.bundle.deliver" in imported, "the run reached its first request"
    assert "yaml" not in imported
