"""Runs the action in virtual time with fixed dates, for the job summaries in the pictures."""

import hashlib
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from admin_api_simulator import ExportPlan
from admin_api_simulator.github import CREATOR
from admin_api_simulator.jobs import DOCS_PROJECT
from admin_api_simulator.simulator import DEFAULT_TOKEN
from admin_api_simulator.site import UNCHANGED, SiteChange, build_archive, site_files
from tests.action import run_virtually
from tests.virtual_platform import Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

STORAGE_URL: Final = "https://exports.example-storage.com"
REQUEST_SECONDS: Final = 0.12
IDLE_SECONDS: Final = 5.0
GZIP_HEADER: Final = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
MAX_BLOCK_BYTES: Final = 0xFFFF
"""The maximum size of a block that is stored without compression."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A run of the action.

    - `inputs`: its inputs. `exports`: the exports that it starts, by domain.
    - `deploy_seconds`, `download_seconds`: how long a deployment and a download take.
    - `published`: the export whose manifest the run finds at `published.manifest`.
    """

    inputs: Mapping[str, str]
    exports: Mapping[str, ExportPlan] = field(default_factory=dict)
    deploy_seconds: float = 0.0
    download_seconds: float = 0.0
    published: ExportPlan | None = None


def bundle_of(
    domain: str, *, pages: int, media_bytes: int, change: SiteChange = UNCHANGED, build_id: str = ""
) -> bytes:
    """Return a site's archive as uncompressed gzip (RFC 1951, section 3.2.4, and RFC 1952).

    The bytes that zlib would return, and their SHA-256, depend on its version.
    """
    files = site_files(
        domain=domain, pages=pages, asset_bytes=media_bytes, change=change, build_id=build_id
    )
    archive = build_archive(files, "tar")
    parts = [GZIP_HEADER]
    for start in range(0, len(archive), MAX_BLOCK_BYTES):
        block = archive[start : start + MAX_BLOCK_BYTES]
        is_last = start + MAX_BLOCK_BYTES >= len(archive)
        parts.append(struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF))
        parts.append(block)
    parts.append(struct.pack("<II", zlib.crc32(archive), len(archive)))
    return b"".join(parts)


COMMIT: Final = "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c"
DOMAIN: Final = "docs.example.com"
DOCS: Final = ExportPlan(
    job_id="se_3f9a2c1b",
    queue_seconds=4,
    seconds=251,
    pages=412,
    bundle=bundle_of(DOMAIN, pages=412, media_bytes=37 * 1024**2),
)
CHANGE: Final = SiteChange(added=3, changed=12, removed=1)

SCENES: Final[Mapping[str, Scene]] = {
    "success": Scene(
        inputs={
            "project-id": f"{DOMAIN}: {DOCS_PROJECT}",
            "site-path": "site",
            "bundle-path": "bundle.tar.gz",
            "commit": COMMIT,
            "github-token": DEFAULT_TOKEN,
            "deployment-creator": CREATOR,
        },
        exports={DOMAIN: DOCS},
        deploy_seconds=96.0,
        download_seconds=2.3,
    ),
    "failure": Scene(
        inputs={"project-id": f"{DOMAIN}: {DOCS_PROJECT}", "site-path": "site"},
        exports={
            DOMAIN: ExportPlan(
                job_id="se_91d4e07a",
                queue_seconds=4,
                seconds=143,
                pages=231,
                error="Page /guides/authentication: the component <Tabs> could not be rendered.",
            ),
        },
    ),
    "several": Scene(
        inputs={
            "project-id": (
                f"{DOMAIN}: docs\n"
                "developers.example.com: developers\n"
                "partners.example.com: partners\n"
            ),
            "site-path": "sites/{domain}",
        },
        exports={
            DOMAIN: DOCS,
            "developers.example.com": ExportPlan(
                job_id="se_c07be512",
                queue_seconds=6,
                seconds=95,
                pages=148,
                error="Page /reference/webhooks: the OpenAPI file could not be read.",
            ),
            "partners.example.com": ExportPlan(
                job_id="se_5e8810fa",
                queue_seconds=11,
                seconds=72,
                pages=96,
                bundle=bundle_of("partners.example.com", pages=96, media_bytes=3 * 1024**2),
            ),
        },
        download_seconds=1.7,
    ),
    "plan": Scene(
        inputs={
            "domain": DOMAIN,
            "site-path": "site",
            "manifest-path": "new.manifest",
            "compare-with": "published.manifest",
            "max-removed": "10%",
        },
        exports={
            DOMAIN: replace(
                DOCS,
                change=CHANGE,
                bundle=bundle_of(
                    DOMAIN, pages=412, media_bytes=37 * 1024**2, change=CHANGE, build_id="3f9a2c1b"
                ),
            )
        },
        download_seconds=2.3,
        published=replace(
            DOCS, bundle=bundle_of(DOMAIN, pages=412, media_bytes=37 * 1024**2, build_id="91d4e07a")
        ),
    ),
}
"""The scenes by the names of their pictures."""


def summary_of(scene: Scene) -> str:
    """Run the action and return the Markdown of its job summary."""
    files: dict[str, bytes] = {}
    if scene.published is not None:
        files["published.manifest"] = manifest_of(scene.published)

    def request_seconds(request: Sent) -> float:
        if STORAGE_URL in request.url:
            return REQUEST_SECONDS + scene.download_seconds
        return REQUEST_SECONDS

    platform = VirtualPlatform(VirtualClock(), storage_url=STORAGE_URL, seconds=request_seconds)
    platform.simulator.github.add(COMMIT, seconds=scene.deploy_seconds)
    for domain, plan in scene.exports.items():
        platform.simulator.plan_export(domain, plan)
    return run_virtually(platform, scene.inputs, idle_seconds=IDLE_SECONDS, files=files).summary


def manifest_of(plan: ExportPlan) -> bytes:
    """Run the action and return the manifest that it writes for an export."""
    platform = VirtualPlatform(VirtualClock())
    platform.simulator.plan_export(DOMAIN, plan)
    inputs = {"domain": DOMAIN, "site-path": "site", "manifest-path": "new.manifest"}
    return run_virtually(platform, inputs).left["new.manifest"]


def digest_line(name: str) -> str:
    """Return the line of summaries.sha256 about a picture.

    It has the SHA-256 of the job summary that the picture shows, and its name.
    """
    summary = summary_of(SCENES[name])
    return f"{hashlib.sha256(summary.encode()).hexdigest()}  {name}\n"
