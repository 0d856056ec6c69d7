"""The bundles of finished exports, as objects in the storage."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from admin_api_simulator.jobs import ExportJob, JobStore
from admin_api_simulator.site import MODIFIED_AT, ArchiveKind, build_archive, site_files

CONTENT_TYPES: Mapping[ArchiveKind, str] = {
    "tar.gz": "application/gzip",
    "tar": "application/x-tar",
    "zip": "application/zip",
}
PREFIX = "/exports/"


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """One archive.

    `path` is raw, `etag` includes its quotes, `modified_at` is in seconds since 1970.
    """

    path: str
    file_name: str
    content: bytes
    content_type: str
    etag: str
    modified_at: int


class BundleStore:
    """Packs each job's bundle once, in the format `archive`, and finds it by its path."""

    def __init__(
        self, *, jobs: JobStore, archive: ArchiveKind, asset_bytes: int, build_ids: bool
    ) -> None:
        self._jobs = jobs
        self.archive: ArchiveKind = archive
        self._file_name = f"bundle.{archive}"
        self._asset_bytes = asset_bytes
        self._build_ids = build_ids
        self._packed: dict[str, Bundle] = {}
        self._replaced: Counter[str] = Counter()

    def pack(self, job: ExportJob) -> Bundle:
        """Return the bundle of a job."""
        if job.id not in self._packed:
            content = job.bundle
            if content is None:
                content = build_archive(self._files(job), self.archive)
            self._packed[job.id] = self._wrap(job, content)
        return self._packed[job.id]

    def _files(self, job: ExportJob) -> dict[str, bytes]:
        build_id = ""
        if self._build_ids:
            build_id = hashlib.sha256(job.id.encode()).hexdigest()[:12]
        return site_files(
            domain=job.domain,
            pages=job.pages,
            asset_bytes=self._asset_bytes,
            change=job.change,
            build_id=build_id,
            base_path=job.base_path,
        )

    def find(self, path: str) -> Bundle | None:
        """Return the bundle with this raw path."""
        for bundle in list(self._packed.values()):
            if bundle.path == path:
                return bundle
        return None

    def job_at(self, path: str) -> ExportJob | None:
        """Return the job whose bundles have raw paths like this one."""
        if not path.startswith(PREFIX):
            return None
        segment = path.removeprefix(PREFIX).partition("/")[0]
        return self._jobs.export(unquote(segment))

    def put(self, job_id: str, content: bytes) -> None:
        """Replace the content of a job's bundle. Raises KeyError for an unknown job."""
        job = self._jobs.export(job_id)
        if job is None:
            raise KeyError(job_id)
        self._replaced[job_id] += 1
        self._packed[job_id] = self._wrap(job, content)

    def _wrap(self, job: ExportJob, content: bytes) -> Bundle:
        return Bundle(
            path=f"{PREFIX}{quote(job.id, safe='')}/{self._file_name}",
            file_name=self._file_name,
            content=content,
            content_type=CONTENT_TYPES[self.archive],
            # as after a multipart upload: not an MD5
            etag=f'"{hashlib.sha256(content).hexdigest()[:32]}-2"',
            modified_at=MODIFIED_AT + self._replaced[job.id],
        )
