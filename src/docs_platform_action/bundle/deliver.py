"""Deliver a finished bundle: download the archive, unpack the site and write the Helm values, as the settings ask."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from ..archive.formats import START_BYTES
from ..archive.reading import ArchiveFile
from ..archive.tar import begins_tar
from ..archive.unpack import Unpacked, unpack
from ..context import Context
from ..errors import (
    DENIED_CAUSE,
    DENIED_REMEDY,
    ActionError,
    Advice,
    Cancelled,
    DownloadFailed,
    InternalError,
    TooFewPages,
    Unavailable,
)
from ..events import Events
from ..inputs.settings import DeliverySettings, OutputPath
from ..job import BUNDLE, DOWNLOAD, MIN_LINK_SECONDS, UNPACK, Job
from ..models import Bundle, Downloaded
from ..ownership import Owner, owner_of
from ..text import as_sentence, format_seconds, pluralize
from .disk_space import DISK_FULL, DiskTooSmall, existing_folder
from .download import Download
from .overlap import OverlappedUnpack
from .staging import Staged, staged

_CANNOT_SAVE: Final = "the bundle cannot be saved"
_DISK_FULL_CODES: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

# the paths were usable before the run (source: rename(2) and open(2))
_INTERFERENCE: Final = {
    errno.ENOTEMPTY: "{} is no longer empty: something else wrote there during the run.",
    errno.EEXIST: "{}, or a folder above it, exists already: something else created it during the run.",
    errno.EISDIR: "{} is now a folder: something else created it during the run.",
    errno.ENOTDIR: "{}, or a folder above it, is now a file: something else created it during the run.",
    errno.ENOENT: "The temporary files of {} were removed during the run by something else.",
    errno.ESTALE: "The temporary files of {} were replaced during the run by something else.",
}
_SHARED_PATH: Final = Advice(
    cause="Another process on the runner, or an earlier step that still runs, uses the same path. Its files were not changed.",
    remedy="Use a path that nothing else writes to, and run the workflow again.",
)
_FAULTY: Final = Advice(
    cause="The runner's disk is faulty, or another process is using it.", remedy="Fix the runner and run the workflow again."
)


def deliver(job: Job, settings: DeliverySettings, context: Context) -> None:
    """Deliver the bundle of a job that has a link. Raises `ActionError`; what was delivered before it is kept."""
    _Delivery(job, settings, context).run()


def renew_link(job: Job, settings: DeliverySettings, context: Context) -> bool:
    """Replace the link of a job, also in its values file, and return whether that succeeded. Raises `Cancelled`."""
    return _Delivery(job, settings, context).renew_link()


def keep_link(job: Job, error: ActionError, context: Context) -> None:
    """Warn that a link that expires soon is kept, because of an error."""
    remedy = f"A later run with `job-id: {job.job_id}` makes a new one." if isinstance(error, Unavailable) else error.remedy
    lines = [
        f"{job.title}: the bundle link has expired or is about to, and could not be replaced.",
        as_sentence(error.summary[:1].upper() + error.summary[1:]),
        *error.details,
        f"The old link is kept. {remedy}",
    ]
    context.events.warning(job, lines)


@dataclass(frozen=True, kw_only=True)
class _DownloadedArchive:
    file: Staged
    downloaded: Downloaded
    overlap: OverlappedUnpack | None  # if there is a site to unpack


@dataclass
class _Delivery:
    job: Job
    settings: DeliverySettings
    context: Context
    owners: dict[Path, Owner | None] = field(default_factory=dict)  # by root

    def run(self) -> None:
        try:
            if self.settings.bundle is not None or self.settings.site is not None:
                with ExitStack() as stack:
                    archive = self._deliver_archive(stack)
                    if self.settings.site is not None and archive.overlap is not None:
                        self._deliver_site(self.settings.site, archive.file, archive.overlap)
            if self.job.link_seconds(self.context.clock.now()) < MIN_LINK_SECONDS:
                self.job.start_phase(BUNDLE, self.context.clock.monotonic())
                self.renew_link()
            if self.settings.values is not None:
                self._write_values(self.settings.values)
        finally:
            self._warn_of_chown_error()

    def renew_link(self) -> bool:
        job, events, old = self.job, self.context.events, self.job.bundle
        remaining = job.link_seconds(self.context.clock.now())
        expires = f"expires in {format_seconds(remaining)}" if remaining > 0 else "has expired"
        events.link_expired(job, f"The bundle link {expires}")
        try:
            job.bundle = self.context.api.make_bundle(job)
            events.link_renewed(job)
            if job.values_file is not None and self.settings.values is not None:
                self._write_values(self.settings.values)
        except Cancelled:
            raise
        except ActionError as error:
            job.bundle = old
            keep_link(job, error, self.context)
            return False
        return True

    def _owner(self, target: OutputPath) -> Owner | None:
        return self.owners.setdefault(target.root, owner_of(target.root))

    def _warn_of_chown_error(self) -> None:
        errors = [owner.chown_error for owner in self.owners.values() if owner is not None and owner.chown_error]
        if errors:
            lines = [
                "The action's files could not be given to the workspace's owner.",
                f"The file system reported: {errors[0]}.",
                "Later steps can read them, but may not be able to change or delete them.",
            ]
            self.context.events.warning(self.job, lines)

    def _deliver_archive(self, stack: ExitStack) -> _DownloadedArchive:
        """Download the archive. With `min_pages` it is published later, after the pages are counted."""
        target = self.settings.bundle
        with _disk_errors_as(DownloadFailed, _CANNOT_SAVE, target):
            if target is None:
                archive = self._download_to_scratch(stack)
            else:
                archive = self._download(target.path, self._owner(target), stack)
                if self.settings.min_pages is None:
                    self._publish_archive(archive.file, target)
            self.job.downloaded = archive.downloaded
            self.context.events.downloaded(self.job)
            self._warn_of_changed_compression(archive)
        return archive

    def _download_to_scratch(self, stack: ExitStack) -> _DownloadedArchive:
        """Download an archive that is not kept: to the runner's temporary folder, or beside the site if it does not fit there."""
        site, scratch = self.settings.site, self.settings.scratch
        assert site is not None  # noqa: S101  # an archive that is not kept is for a site; this tells the type checker
        if scratch is not None:
            try:
                with ExitStack() as attempt:
                    archive = self._download(scratch / "bundle", None, attempt)
                    stack.push(attempt.pop_all())
                    return archive
            except (DiskTooSmall, OSError) as error:
                is_full = error.folder == scratch if isinstance(error, DiskTooSmall) else error.errno in _DISK_FULL_CODES
                if not is_full or scratch.stat().st_dev == existing_folder(site.path.parent).stat().st_dev:
                    raise
                self.context.events.download_moved(self.job)
        # with an owner, because the site may be published in folders that are made for the archive
        return self._download(site.path.parent / "bundle", self._owner(site), stack)

    def _download(self, target: Path, owner: Owner | None, stack: ExitStack) -> _DownloadedArchive:
        site, context = self.settings.site, self.context
        archive = stack.enter_context(staged(target, owner, context.cleanups))
        folders, overlap = [archive.path.parent], None
        if site is not None:
            folders.append(site.path.parent)
            overlap = stack.enter_context(OverlappedUnpack(archive.descriptor, site.path, self._owner(site), context))
            context = replace(context, events=Events(context.events, overlap))
        self.job.start_phase(DOWNLOAD, context.clock.monotonic())
        self.context.events.downloading(self.job)
        with archive.open() as file:
            download = Download(self.job, file, context, folders)
            return _DownloadedArchive(file=archive, downloaded=download.run(), overlap=overlap)

    def _warn_of_changed_compression(self, archive: _DownloadedArchive) -> None:
        lines, target = [], self.settings.bundle
        is_tar = begins_tar(os.pread(archive.file.descriptor, START_BYTES, 0))
        if is_tar and target is not None and target.name.lower().endswith((".gz", ".tgz")):
            lines.append(f"{target.name} is an uncompressed tar archive, although its name says gzip.")
        if archive.downloaded.was_transcoded:
            lines += [
                "The storage, or something between it and this runner, changed the bundle's compression.",
                "`bundleSize` and `bundleSha256` describe the received bytes, not the stored ones.",
            ]
        if lines:
            self.context.events.warning(self.job, lines)

    def _deliver_site(self, site: OutputPath, archive: Staged, overlap: OverlappedUnpack) -> None:
        self.job.start_phase(UNPACK, self.context.clock.monotonic())
        self.context.events.unpacking(self.job)
        with _disk_errors_as(InternalError, f"the site cannot be written to {site.name}", site), ExitStack() as stack:
            staged_site, unpacked = overlap.result(self.job) or self._unpack(archive, site, stack)
            self._check_pages(unpacked)
            self.context.clock.cancellation.check()
            if self.settings.bundle is not None and self.settings.min_pages is not None:
                self._publish_archive(archive, self.settings.bundle)
                self.context.events.archive_saved(self.job)
            staged_site.publish()
        self.job.site_path, self.job.site_files = site.name, unpacked.files
        self.context.events.unpacked(self.job)

    def _unpack(self, archive: Staged, site: OutputPath, stack: ExitStack) -> tuple[Staged, Unpacked]:
        owner = self._owner(site)
        staged_site = stack.enter_context(staged(site.path, owner, self.context.cleanups, is_folder=True))
        on_progress = partial(self.context.events.unpack_progressed, self.job)
        file = ArchiveFile(archive.descriptor, os.fstat(archive.descriptor).st_size, self.context.clock.cancellation)
        return staged_site, unpack(file, staged_site.path, on_progress=on_progress, owner=owner)

    def _check_pages(self, unpacked: Unpacked) -> None:
        # the export has checked the API's page count already, and removed `min_pages` if there was one
        if self.settings.min_pages is not None and unpacked.html_files < self.settings.min_pages:
            html_files = pluralize(unpacked.html_files, "`.html` file")
            raise TooFewPages(
                f"the bundle has {html_files}, fewer than the {self.settings.min_pages:,} pages that `min-pages` asks for",
                details=("The API reported no valid `pageCount`, so the `.html` files in the bundle were counted.",),
            )

    def _publish_archive(self, archive: Staged, target: OutputPath) -> None:
        self.context.clock.cancellation.check()
        with _disk_errors_as(DownloadFailed, _CANNOT_SAVE, target):
            archive.publish()
        self.job.bundle_path = target.name

    def _write_values(self, target: OutputPath) -> None:
        from .helm_values import values_text  # imports a YAML library, which few runs need

        job, bundle = self.job, self.job.bundle
        assert bundle is not None  # noqa: S101  # there is a link by now; this tells the type checker
        text = values_text(bundle_url=bundle.url, version=self.settings.version, comment=_values_comment(job, bundle))
        with (
            _disk_errors_as(InternalError, f"the Helm values file cannot be written to {target.name}", target),
            staged(target.path, self._owner(target), self.context.cleanups) as file,
        ):
            with file.open() as stream:
                stream.write(text.encode())
            self.context.clock.cancellation.check()
            file.publish()
        job.values_file = target.name
        self.context.events.values_written(job)


def _values_comment(job: Job, bundle: Bundle) -> tuple[str, str]:
    domain = f" of {job.domain}" if job.domain is not None else ""
    expires = f"{bundle.expires:%Y-%m-%d %H:%M:%S} UTC" if bundle.expires is not None else bundle.expires_at
    validity = f" The link is valid until {expires}." if expires is not None else ""
    return f"Static export{domain}, job {job.job_id}.{validity}", f"To get a new link, run the action with job-id: {job.job_id}"


@contextmanager
def _disk_errors_as(failure: type[ActionError], summary: str, target: OutputPath | None) -> Iterator[None]:
    """Raise an `OSError` as a failure that says what happened. Without a target, the archive is not kept."""
    try:
        yield
    except OSError as error:
        code = error.errno or 0
        details = [f"The system reported: {error.strerror or type(error).__name__}."]
        if code in _INTERFERENCE:
            advice = _SHARED_PATH
            details.insert(0, _INTERFERENCE[code].format(f"`{target.name}`" if target is not None else "the bundle"))
        elif code in {*_DISK_FULL_CODES, errno.EFBIG}:
            advice = DISK_FULL
        elif isinstance(error, PermissionError):
            advice = Advice(cause=DENIED_CAUSE, remedy=DENIED_REMEDY)
        else:
            advice = _FAULTY
        raise failure(summary, details=tuple(details), **advice) from error
