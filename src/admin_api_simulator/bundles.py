"""The bundles of finished export jobs, as objects in the storage."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from admin_api_simulator.jobs import ExportJob, JobStore
from admin_api_simulator.site import ArchiveKind, build_archive, site_files

CONTENT_TYPES: Mapping[str, str] = {"tar.gz": "application/gzip", "zip": "application/zip"}
PREFIX = "/exports/"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """One archive; `path` is the raw path of its object, `etag` with its quotes."""

    path: str
    file_name: str
    content: bytes
    content_type: str
    etag: str


class BundleShelf:
    """Packs each job's bundle once and finds it again by its path."""

    def __init__(self, *, jobs: JobStore, archive: ArchiveKind, asset_bytes: int) -> None:
        self._jobs = jobs
        self._archive: ArchiveKind = archive
        self._asset_bytes = asset_bytes
        self._packed: dict[str, Bundle] = {}
        self._deleted: set[str] = set()

    def pack(self, job: ExportJob) -> Bundle:
        """Return the bundle of a job; packing again brings a deleted one back."""
        self._deleted.discard(job.id)
        if job.id not in self._packed:
            self._packed[job.id] = self._make(job)
        return self._packed[job.id]

    def find(self, path: str) -> Bundle | None:
        """Return the bundle whose object has this raw path."""
        job_id = unquote(path.removeprefix(PREFIX).rpartition("/")[0])
        bundle = self._packed.get(job_id)
        return bundle if bundle is not None and bundle.path == path and job_id not in self._deleted else None

    def put(self, job_id: str, content: bytes) -> None:
        """Put other bytes in the place of a job's bundle; raises KeyError for an unknown job."""
        job = self._jobs.export(job_id)
        if job is None:
            raise KeyError(job_id)
        self._packed[job_id] = self._wrap(job, content)

    def delete(self, job_id: str) -> None:
        """Take the object away until the next bundle request."""
        self._deleted.add(job_id)

    def _make(self, job: ExportJob) -> Bundle:
        if job.bundle is not None:
            return self._wrap(job, job.bundle)
        files = site_files(domain=job.domain, pages=job.pages, asset_bytes=self._asset_bytes)
        return self._wrap(job, build_archive(files, self._archive))

    def _wrap(self, job: ExportJob, content: bytes) -> Bundle:
        file_name = f"bundle.{self._archive}"
        return Bundle(
            path=f"{PREFIX}{quote(job.id, safe='')}/{file_name}",
            file_name=file_name,
            content=content,
            content_type=CONTENT_TYPES[self._archive],
            # As of an upload in parts: no MD5 of the whole.
            etag=f'"{hashlib.sha256(content).hexdigest()[:32]}-2"',
        )
