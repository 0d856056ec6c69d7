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
from urllib.parse import urljoin

import requests

from tests.engine import skip_or_fail

START_SECONDS = 30.0
LOG_NAME = "registry.log"


def need_registry_tools() -> None:
    """Skip if `docker-registry` or `skopeo` is missing, or fail if an engine is required."""
    programs = ("docker-registry", "skopeo")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        skip_or_fail(
            f"A local registry needs {' and '.join(missing)}. "
            "Debian and Ubuntu have packages of the same names."
        )


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[str]:
    """Serve a registry from a folder, and return its host and port.

    Engines accept http from a loopback address.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(folder / "images")}},
        "http": {"addr": "127.0.0.1:0"},
    }
    settings_file = folder / "registry.yml"
    settings_file.write_text(json.dumps(settings))  # JSON is YAML
    log = folder / LOG_NAME
    with log.open("wb") as stream:
        process = subprocess.Popen(
            ["docker-registry", "serve", settings_file],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not (found := re.search(r"listening on (127\.0\.0\.1:\d+)", log.read_text())):
            has_time = process.poll() is None and time.monotonic() < deadline
            assert has_time, f"the registry did not start:\n{log.read_text()}"
            time.sleep(0.05)
        yield found[1]
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)


def served_requests(folder: Path) -> list[str]:
    """Return the successful requests to the registry that is served from a folder.

    For example, `GET /v2/owner/name/manifests/1.0.0`.
    """
    return re.findall(r'"([A-Z]+ /v2/\S*) HTTP/1\.1" 20', (folder / LOG_NAME).read_text())


def manifest(image: str) -> tuple[str, dict[str, Any]]:
    """Return the digest and the manifest or index of an image in a registry."""
    raw = _raw_manifest(image)
    return _digest(raw), json.loads(raw)


def descriptor(image: str) -> dict[str, Any]:
    """Return what an index says about the manifest of an image in a registry."""
    raw = _raw_manifest(image)
    return _described(raw, json.loads(raw)["mediaType"])


def add_blob(repository: str, content: bytes, media_type: str) -> dict[str, Any]:
    """Upload a blob to a repository such as `127.0.0.1:5000/owner/name`; return its descriptor."""
    upload = requests.post(f"{_api(repository)}/blobs/uploads/", timeout=60)
    upload.raise_for_status()
    location = urljoin(upload.url, upload.headers["Location"])
    digest = _digest(content)
    response = requests.put(location, params={"digest": digest}, data=content, timeout=60)
    response.raise_for_status()
    return _described(content, media_type)


def add_manifest(
    repository: str, manifest: dict[str, Any], tag: str | None = None
) -> dict[str, Any]:
    """Upload a manifest or an index, and return its descriptor.

    Without a tag it has only its digest.
    """
    content = json.dumps(manifest).encode()
    media_type = manifest["mediaType"]
    address = f"{_api(repository)}/manifests/{tag or _digest(content)}"
    headers = {"Content-Type": media_type}
    response = requests.put(address, data=content, headers=headers, timeout=60)
    response.raise_for_status()
    return _described(content, media_type)


def _raw_manifest(image: str) -> bytes:
    return subprocess.check_output(
        ["skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{image}"], timeout=60
    )


def _described(content: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "size": len(content), "digest": _digest(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _api(repository: str) -> str:
    host, _, name = repository.partition("/")
    return f"http://{host}/v2/{name}"
