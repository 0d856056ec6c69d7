"""Runs the action in virtual time with fixed dates, and returns the job summaries that the pictures show."""

import functools
import io
import json
import re
import struct
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter

from admin_api_simulator.runner import runner_environment
from admin_api_simulator.site import build_archive, site_files
from docs_platform_action import main
from docs_platform_action.http.connection import AbortableRequest
from tests.keys import ADMIN_KEY
from tests.unit.fakes import http_response
from tests.virtual_run import SideBySide, default_inputs, in_virtual_time
from tests.virtual_time import VirtualClock

API_URL: Final = "https://api.example.com"
STORAGE_HOST: Final = "exports.example-storage.com"
REQUEST_SECONDS: Final = 0.12
IDLE_SECONDS: Final = 5.0

GITHUB: Final = {
    "GITHUB_SERVER_URL": "https://github.com",
    "GITHUB_REPOSITORY": "acme/docs",
    "GITHUB_RUN_ID": "17316954721",
}

_PATH: Final = re.compile(
    r"/v1/static-export/jobs(?:/(?P<export>[^/]+)(?P<bundle>/bundle)?)?|/v2/agent/(?P<project>[^/]+)/job/(?P<agent>[^/]+)"
)


@dataclass(frozen=True, kw_only=True)
class Export:
    """An export at the platform. It fails if it has an `error`."""

    domain: str
    job_id: str
    queue_seconds: float
    seconds: float
    pages: int
    media_bytes: int = 0
    download_seconds: float = 0.0
    error: str | None = None

    def state(self, age: float) -> Mapping[str, object]:
        """Return the job's JSON at an age in seconds."""
        if age < self.queue_seconds:
            return {"status": "queued"}
        share = min((age - self.queue_seconds) / (self.seconds - self.queue_seconds), 1.0)
        state = {"status": "running", "progress": int(100 * share), "pageCount": int(self.pages * share)}
        if share < 1.0:
            return state
        if self.error is not None:
            return state | {"status": "failed", "progress": 57, "error": self.error}
        return state | {"status": "completed"}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A run of the action: its inputs, and the exports that it starts."""

    inputs: Mapping[str, str]
    exports: tuple[Export, ...] = ()

    @property
    def mode(self) -> str:
        """Return `export` or `agent`."""
        return self.inputs.get("mode", "export")


DOCS: Final = Export(
    domain="docs.example.com",
    job_id="se_3f9a2c1b",
    queue_seconds=4,
    seconds=251,
    pages=412,
    media_bytes=37 * 1024**2,
    download_seconds=2.3,
)

SCENES: Final[Mapping[str, Scene]] = {
    "success": Scene(
        inputs={"domain": DOCS.domain, "site-path": "site", "bundle-path": "bundle.tar.gz"},
        exports=(DOCS,),
    ),
    "failure": Scene(
        inputs={"domain": DOCS.domain, "site-path": "site"},
        exports=(
            Export(
                domain=DOCS.domain,
                job_id="se_91d4e07a",
                queue_seconds=4,
                seconds=143,
                pages=231,
                error="Page /guides/authentication: the component <Tabs> could not be rendered.",
            ),
        ),
    ),
    "several": Scene(
        inputs={
            "domain": "docs.example.com\ndevelopers.example.com\npartners.example.com\n",
            "site-path": "sites/{domain}",
        },
        exports=(
            DOCS,
            Export(
                domain="developers.example.com",
                job_id="se_c07be512",
                queue_seconds=6,
                seconds=95,
                pages=148,
                error="Page /reference/webhooks: the OpenAPI file could not be read.",
            ),
            Export(
                domain="partners.example.com",
                job_id="se_5e8810fa",
                queue_seconds=11,
                seconds=72,
                pages=96,
                media_bytes=3 * 1024**2,
                download_seconds=1.1,
            ),
        ),
    ),
    "agent": Scene(
        inputs={"mode": "agent", "project-id": "prj_acme_docs", "job-id": "aj_7d41b6e3", "require-pr": "true"},
    ),
}
"""The scenes by the names of their pictures."""

AGENT_SECONDS: Final = 204.0
AGENT_JOB: Final = {
    "source": {"repository": "https://github.com/acme/docs", "ref": "main"},
    "model": "writer-2",
    "createdAt": "2026-05-04T11:59:41Z",
    "archivedAt": None,
}


def summary_of(scene: Scene) -> str:
    """Run the action and return the Markdown of its job summary."""
    clock = VirtualClock()
    inputs = {**default_inputs(), "base-url": API_URL, "admin-key": ADMIN_KEY, **scene.inputs}
    with (
        tempfile.TemporaryDirectory(prefix="pictures-") as temporary,
        in_virtual_time(_Platform(scene.exports, clock), clock, seed=1, thread=clock.Thread),
    ):
        folder = Path(temporary)
        workspace = folder / "workspace"
        workspace.mkdir()
        environ = runner_environment(inputs=inputs, folder=folder, workspace=workspace, debug=False)
        main.run(environ | GITHUB, io.StringIO(), SideBySide(clock, idle_seconds=IDLE_SECONDS), clock=clock)
        return (folder / "summary").read_text(encoding="utf-8")


class _Platform(BaseAdapter):
    """The transport adapter: responds as the API and as the storage of bundles."""

    def __init__(self, exports: tuple[Export, ...], clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._exports = {export.job_id: export for export in exports}
        self._started_at: dict[str, float] = {}

    def close(self) -> None:
        """Do nothing."""

    def send(self, request: requests.PreparedRequest, *_args: Any, **_options: Any) -> requests.Response:
        """Respond to a request after some virtual time."""
        cast("AbortableRequest", request).mark_connected()
        self._clock.sleep(REQUEST_SECONDS)
        if urlsplit(request.url).hostname == STORAGE_HOST:
            return self._download(self._exports[request.path_url.split("/")[1]])
        found = _PATH.fullmatch(request.path_url)
        if found is None:
            raise ValueError(f"not an operation of the API: {request.path_url}")
        if found["agent"]:
            return _json(200, self._agent_job(found["agent"]))
        if found["export"] is None:
            return self._start(json.loads(request.body or b"")["domain"])
        if found["bundle"]:
            return self._link(found["export"])
        age = self._clock.elapsed - self._started_at[found["export"]]
        return _json(200, self._exports[found["export"]].state(age))

    def _start(self, domain: str) -> requests.Response:
        job_id = next(export.job_id for export in self._exports.values() if export.domain == domain)
        self._started_at[job_id] = self._clock.elapsed
        return _json(202, {"jobId": job_id, "status": "queued"})

    def _link(self, job_id: str) -> requests.Response:
        url = f"https://{STORAGE_HOST}/{job_id}/bundle.tar.gz?X-Signature=3c6e0b8a9c15224a8228b9a98ca1531d"
        return _json(200, {"bundleUrl": url, "expiresAt": _timestamp(self._clock.now() + timedelta(hours=1))})

    def _download(self, export: Export) -> requests.Response:
        self._clock.sleep(export.download_seconds)
        bundle = _bundle(export.domain, export.pages, export.media_bytes)
        return http_response(200, bundle, {"Content-Length": str(len(bundle)), "ETag": f'"{export.job_id}"'})

    def _agent_job(self, job_id: str) -> Mapping[str, object]:
        if self._clock.elapsed < AGENT_SECONDS:
            return {"id": job_id, "status": "active", **AGENT_JOB}
        return {"id": job_id, "status": "completed", "prLink": "https://github.com/acme/docs/pull/128", **AGENT_JOB}


def _json(status: int, body: Mapping[str, object]) -> requests.Response:
    return http_response(status, json.dumps(body).encode(), {"X-Request-Id": "7f3a91c2"})


def _timestamp(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


@functools.cache
def _bundle(domain: str, pages: int, media_bytes: int) -> bytes:
    """Return a site's archive as uncompressed gzip: the bytes that zlib returns, and their SHA-256, depend on its version."""
    archive = build_archive(site_files(domain=domain, pages=pages, asset_bytes=media_bytes), "tar")
    blocks = [archive[start : start + 0xFFFF] for start in range(0, len(archive), 0xFFFF)]
    stored = (
        struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks, start=1)
    )
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    return b"".join([head, *stored, struct.pack("<II", zlib.crc32(archive), len(archive))])
