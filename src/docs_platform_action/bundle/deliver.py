"""Deliver a finished bundle: download the archive, unpack the site and write the Helm values, as far as the settings ask."""

import contextlib
import errno
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ..archive.formats import START_BYTES
from ..archive.reading import open_archive
from ..archive.tar import begins_tar
from ..archive.unpack import Unpacked, unpack
from ..context import Context
from ..errors import DENIED_CAUSE, DENIED_REMEDY, ActionError, DownloadFailed, InternalError, TooFewPages
from ..events import Events
from ..inputs.settings import DeliverySettings, OutputPath
from ..job import DOWNLOAD, UNPACK, Job
from ..models import Bundle, Downloaded
from ..ownership import Owner, owner_of
from ..text import pluralize
from .disk_space import DiskSpace, DiskTooSmall, existing_folder
from .download import Download
from .overlap import OverlappedUnpack
from .staging import Staged, staged

_UNSAVED: Final = "the bundle cannot be saved"
_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def deliver(job: Job, settings: DeliverySettings, context: Context) -> None:
    """Deliver the bundle of a job, which has a link to it.

    Raises the `ActionError` that it failed with. What was delivered before that stays, and is in the job.
    """
    _Delivery(job, settings, context).run()


@dataclass(frozen=True, kw_only=True)
class _Fetched:
    """A downloaded archive, and what unpacks the site meanwhile, if a site is wanted."""

    archive: Staged
    overlap: OverlappedUnpack | None
    downloaded: Downloaded


class _Delivery:
    """The delivery of one bundle."""

    def __init__(self, job: Job, settings: DeliverySettings, context: Context) -> None:
        self._job = job
        self._settings = settings
        self._context = context
        self._events = context.events
        self._owners: dict[Path, Owner | None] = {}

    def run(self) -> None:
        settings = self._settings
        try:
            if settings.bundle is not None or settings.site is not None:
                with ExitStack() as stack:
                    fetched = self._deliver_archive(stack)
                    if settings.site is not None and fetched.overlap is not None:
                        self._deliver_site(fetched.archive, settings.site, fetched.overlap)
            if settings.values is not None:
                self._write_values(settings.values)
        finally:
            self._warn_of_refused_owner()

    def _owner(self, place: OutputPath) -> Owner | None:
        return self._owners.setdefault(place.root, owner_of(place.root))

    def _warn_of_refused_owner(self) -> None:
        refused = next((owner.chown_error for owner in self._owners.values() if owner is not None and owner.chown_error), None)
        if refused is not None:
            self._events.warning(
                self._job,
                [
                    "The action's files could not be given to the workspace's owner.",
                    f"The file system reported: {refused}.",
                    "Later steps can read it, but may not be able to change or delete it.",
                ],
            )

    def _deliver_archive(self, stack: ExitStack) -> _Fetched:
        """Download the archive. With `min_pages` it is not published before the pages are counted."""
        place = self._settings.bundle
        with _disk_errors_as(DownloadFailed, _UNSAVED):
            if place is None:
                fetched = self._download_to_scratch(stack)
            else:
                fetched = self._download(place.path, self._owner(place), stack)
                if self._settings.min_pages is None:
                    self._context.clock.cancellation.check()
                    fetched.archive.publish()
                    self._job.bundle_path = place.name
            self._job.downloaded = fetched.downloaded
            self._events.downloaded(self._job)
            self._warn_of_changed_form(fetched)
        return fetched

    def _download_to_scratch(self, stack: ExitStack) -> _Fetched:
        """Download an archive that is not kept: to the runner's temporary folder, or beside the site if it does not fit there."""
        site, scratch = self._settings.site, self._settings.scratch
        assert site is not None  # noqa: S101  # an archive that is not kept is for a site; this tells the type checker
        if scratch is not None:
            try:
                with ExitStack() as attempt:
                    fetched = self._download(scratch / "bundle", None, attempt)
                    stack.push(attempt.pop_all())
                    return fetched
            except (DiskTooSmall, OSError) as error:
                is_full = error.folder == scratch if isinstance(error, DiskTooSmall) else error.errno in _DISK_FULL
                if not is_full or scratch.stat().st_dev == existing_folder(site.path.parent).stat().st_dev:
                    raise
                self._events.download_moved(self._job)
        # with an owner, because the folders that are made for the archive stay if the site is in them
        return self._download(site.path.parent / "bundle", self._owner(site), stack)

    def _download(self, target: Path, owner: Owner | None, stack: ExitStack) -> _Fetched:
        site, context = self._settings.site, self._context
        archive = stack.enter_context(staged(target, owner, context.cleanups))
        overlap = None
        if site is not None:
            overlap = stack.enter_context(OverlappedUnpack(archive.path, site.path, self._owner(site), context))
            context = replace(context, events=Events(context.events, overlap))
        space = DiskSpace(archive_folder=archive.path.parent, site_folder=site.path.parent if site is not None else None)
        self._job.start_phase(DOWNLOAD, context.clock.monotonic())
        self._events.downloading(self._job)
        with archive.path.open("r+b") as file:
            download = Download(self._job, file, context, disk_space=space, masked=self._settings.mask_bundle_url)
            return _Fetched(archive=archive, overlap=overlap, downloaded=download.run())

    def _warn_of_changed_form(self, fetched: _Fetched) -> None:
        """Warn if the archive is not what its name says, or not what the storage keeps."""
        lines, place = [], self._settings.bundle
        if place is not None and place.name.lower().endswith((".gz", ".tgz")):
            with fetched.archive.path.open("rb") as file:
                if begins_tar(file.read(START_BYTES)):
                    lines.append(f"{place.name} is a tar archive without compression, although its name says gzip.")
        if not fetched.downloaded.as_stored:
            lines += [
                "The storage, or something between it and this runner, changed the bundle's compression.",
                "`bundleSize` and `bundleSha256` are those of the bytes received, not of the bytes stored.",
            ]
        if lines:
            self._events.warning(self._job, lines)

    def _deliver_site(self, archive: Staged, site: OutputPath, overlap: OverlappedUnpack) -> None:
        self._job.start_phase(UNPACK, self._context.clock.monotonic())
        self._events.unpacking(self._job)
        with _disk_errors_as(InternalError, f"the site cannot be written to {site.name}"), ExitStack() as stack:
            staged_site, unpacked = overlap.result(self._job) or self._unpack(archive, site, stack)
            self._check_pages(unpacked)
            self._context.clock.cancellation.check()
            self._publish_archive(archive)
            staged_site.publish()
        self._job.site_path, self._job.site_files = site.name, unpacked.files
        self._events.unpacked(self._job)

    def _unpack(self, archive: Staged, site: OutputPath, stack: ExitStack) -> tuple[Staged, Unpacked]:
        owner = self._owner(site)
        staged_site = stack.enter_context(staged(site.path, owner, self._context.cleanups, is_folder=True))
        on_progress = partial(self._events.unpack_progressed, self._job)
        with open_archive(archive.path, self._context.clock.cancellation) as file:
            unpacked = unpack(file, staged_site.path, on_progress=on_progress, owner=owner)
        return staged_site, unpacked

    def _check_pages(self, unpacked: Unpacked) -> None:
        """Raise `TooFewPages` if there are fewer pages than `min_pages`, which is set if the API reported no page count."""
        if self._settings.min_pages is not None and unpacked.html_files < self._settings.min_pages:
            html_files = pluralize(unpacked.html_files, "`.html` file")
            raise TooFewPages(
                f"its bundle has {html_files}, fewer than the {self._settings.min_pages:,} pages that `min-pages` asks for",
                details=("The API reported no usable `pageCount`, so the `.html` files in the bundle were counted.",),
            )

    def _publish_archive(self, archive: Staged) -> None:
        """Publish the archive if that had to wait until the pages were counted."""
        place = self._settings.bundle
        if place is not None and not archive.is_published:
            with _disk_errors_as(DownloadFailed, _UNSAVED):
                archive.publish()
            self._job.bundle_path = place.name
            self._events.archive_saved(self._job)

    def _write_values(self, place: OutputPath) -> None:
        from .helm_values import values_text  # imports a YAML library, which few runs need

        job, bundle = self._job, self._job.bundle
        assert bundle is not None  # noqa: S101  # there is a link by now; this tells the type checker
        text = values_text(bundle_url=bundle.url, version=self._settings.version, comment=_values_comment(job, bundle))
        with (
            _disk_errors_as(InternalError, f"the Helm values file cannot be written to {place.name}"),
            staged(place.path, self._owner(place), self._context.cleanups) as file,
        ):
            file.path.write_text(text, encoding="utf-8", newline="\n")
            self._context.clock.cancellation.check()
            file.publish()
        job.values_file = place.name
        self._events.values_written(job)


def _values_comment(job: Job, bundle: Bundle) -> tuple[str, str]:
    of = f" of {job.domain}" if job.domain is not None else ""
    until = f"{bundle.expires:%Y-%m-%d %H:%M:%S} UTC" if bundle.expires is not None else bundle.expires_at
    works = f" The link is valid until {until}." if until is not None else ""
    return (
        f"Static export{of}, job {job.job_id}.{works}",
        f"For a fresh link run the action with job-id: {job.job_id}",
    )


@contextlib.contextmanager
def _disk_errors_as(failure: type[ActionError], summary: str) -> Iterator[None]:
    """Raise an `OSError` as a failure that says what happened."""
    try:
        yield
    except OSError as error:
        if error.errno in {*_DISK_FULL, errno.EFBIG}:
            cause, remedy = "The runner's disk is full.", "Free space in an earlier step, or use a runner with a larger disk."
        elif isinstance(error, PermissionError):
            cause, remedy = DENIED_CAUSE, DENIED_REMEDY
        else:
            cause = "The runner's disk is faulty, or another process is using it."
            remedy = "Fix the runner and run the workflow again."
        said = f"The system reported: {error.strerror or type(error).__name__}."
        raise failure(summary, details=(said,), cause=cause, remedy=remedy) from error
