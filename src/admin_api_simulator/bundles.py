"""The bundles of finished exports, as objects in the storage."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from admin_api_simulator.content import Content, FilePart, whole_file
from admin_api_simulator.jobs import ExportJob, JobStore
from admin_api_simulator.site import MODIFIED_AT, ArchiveKind, build_archive, site_files

CONTENT_TYPES: Mapping[ArchiveKind, str] = {
    "tar.gz": "application/gzip",
    "tar": "application/x-tar",
    "tar.bz2": "application/x-bzip2",
    "tar.xz": "application/x-xz",
    "zip": "application/zip",
}
PREFIX = "/exports/"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """One archive. `path` is raw, `etag` includes its quotes, `modified_at` is in seconds since 1970."""

    path: str
    file_name: str
    content: Content
    content_type: str
    etag: str
    modified_at: int


class BundleStore:
    """Packs each job's bundle once, and finds it by its path."""

    def __init__(self, *, jobs: JobStore, archive: ArchiveKind, asset_bytes: int) -> None:
        self._jobs = jobs
        self._archive: ArchiveKind = archive
        self._file_name = f"bundle.{archive}"
        self._asset_bytes = asset_bytes
        self._packed: dict[str, Bundle] = {}
        self._replaced: Counter[str] = Counter()

    def pack(self, job: ExportJob) -> Bundle:
        """Return the bundle of a job."""
        if job.id not in self._packed:
            self._packed[job.id] = self._make(job)
        return self._packed[job.id]

    def find(self, path: str) -> Bundle | None:
        """Return the bundle with this raw path."""
        return next((bundle for bundle in list(self._packed.values()) if bundle.path == path), None)

    def job_at(self, path: str) -> ExportJob | None:
        """Return the job whose bundles have raw paths like this one."""
        segment = path.removeprefix(PREFIX).partition("/")[0] if path.startswith(PREFIX) else ""
        return self._jobs.export(unquote(segment))

    def put(self, job_id: str, content: Content) -> None:
        """Replace the content of a job's bundle. Raises KeyError for an unknown job."""
        job = self._job(job_id)
        self._replaced[job_id] += 1
        self._packed[job_id] = self._wrap(job, content)

    def put_file(self, job_id: str, path: Path) -> None:
        """Replace a job's bundle by a file. Raises KeyError for an unknown job, OSError for a missing file."""
        self.put(job_id, whole_file(path))

    def _path(self, job: ExportJob) -> str:
        return f"{PREFIX}{quote(job.id, safe='')}/{self._file_name}"

    def _job(self, job_id: str) -> ExportJob:
        job = self._jobs.export(job_id)
        if job is None:
            raise KeyError(job_id)
        return job

    def _make(self, job: ExportJob) -> Bundle:
        if job.bundle is not None:
            return self._wrap(job, job.bundle)
        files = site_files(domain=job.domain, pages=job.pages, asset_bytes=self._asset_bytes)
        return self._wrap(job, build_archive(files, self._archive))

    def _wrap(self, job: ExportJob, content: Content) -> Bundle:
        return Bundle(
            path=self._path(job),
            file_name=self._file_name,
            content=content,
            content_type=CONTENT_TYPES[self._archive],
            etag=f'"{_digest(content)}-2"',  # as after a multipart upload: not an MD5
            modified_at=MODIFIED_AT + self._replaced[job.id],
        )


def _digest(content: Content) -> str:
    """Return a digest that changes with the content; a large file would take long to read, so its size and time count."""
    if isinstance(content, FilePart):
        status = content.path.stat()
        content = f"{content.path.absolute()} {status.st_size} {status.st_mtime_ns}".encode()
    return hashlib.sha256(content).hexdigest()[:32]
