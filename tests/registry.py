"""A local image registry, and the tools that a release is rehearsed with."""

import contextlib
import hashlib
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.engine import skip_or_fail

START_SECONDS = 30.0


def need_registry_tools() -> None:
    """Skip if `docker-registry` or `skopeo` is missing, or fail if an engine is required."""
    if missing := [program for program in ("docker-registry", "skopeo") if shutil.which(program) is None]:
        skip_or_fail(f"A registry needs {' and '.join(missing)}, which Debian has as packages of that name.")


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Serve an empty registry from a folder, and return its host and port. Engines accept http from a loopback address."""
    settings = folder / "registry.yml"
    settings.write_text(
        json.dumps(  # JSON is YAML
            {
                "version": 0.1,
                "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
                "http": {"addr": "127.0.0.1:0"},
            }
        )
    )
    log = folder / "registry.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["docker-registry", "serve", str(settings)], stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
        )
    try:
        yield _wait_for_address(log, process)
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)


def manifest(image: str) -> tuple[str, dict[str, Any]]:
    """Return the digest and the manifest or index of an image in a registry."""
    done = subprocess.run(
        ["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{image}"], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return f"sha256:{hashlib.sha256(done.stdout).hexdigest()}", json.loads(done.stdout)


def _wait_for_address(log: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline = time.monotonic() + START_SECONDS
    while not (found := re.search(r"listening on (127\.0\.0\.1:\d+)", log.read_text())):
        assert process.poll() is None, f"the registry ended at its start:\n{log.read_text()}"
        assert time.monotonic() < deadline, f"the registry did not start within {START_SECONDS:g} s:\n{log.read_text()}"
        time.sleep(0.05)
    return found[1]
