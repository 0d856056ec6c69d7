"""Hands a finished bundle over: fetched, unpacked, written as Helm values, whatever of it the inputs ask for."""

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..archive.formats import START_BYTES
from ..archive.reading import open_archive
from ..archive.tar import begins_tar
from ..archive.unpack import Unpacked, unpack
from ..cleanups import Cleanups
from ..clock import Cancellation, Clock
from ..errors import DENIED_CAUSE, DENIED_REMEDY, ActionError, DownloadFailed, InternalError, TooFewPages
from ..inputs.paths import Place
from ..inputs.settings import DeliverySettings
from ..job import DOWNLOAD, UNPACK, Job
from ..models import Bundle, Downloaded
from ..ownership import Owner, owner_of
from ..report.deliverylog import DeliveryLog
from ..text import pluralize
from .disk_space import DiskSpace, DiskTooSmall, existing_folder
from .download import Download
from .overlap import Followed, Overlap
from .staging import Staged, staged_file, staged_folder
from .storage import Storage

_OwnerAt = Callable[[Place], Owner | None]
_Fetched = tuple[Staged, Overlap | None, Downloaded]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, kw_only=True)
class Handover:
    """The parts that a bundle is handed over with.

    `renew` makes a fresh link; `cleanups` knows what is to be removed when the run is left behind; `warn` shows a warning of
    several lines.
    """

    settings: DeliverySettings
    storage: Storage
    renew: Callable[[], Bundle]
    clock: Clock
    cancellation: Cancellation
    outage_tolerance_seconds: float
    record: Job
    log: DeliveryLog
    cleanups: Cleanups
    warn: Callable[[list[str]], None]

    def carry_out(self, bundle: Bundle) -> None:
        """Do what the settings ask; what is there goes into the record at once.

        Raises the `ActionError` that it failed with. What was handed over before stays.
        """
        owners: dict[Path, Owner | None] = {}

        def owner_at(place: Place) -> Owner | None:
            return owners.setdefault(place.root, owner_of(place.root))

        try:
            with contextlib.ExitStack() as stack:
                if self.settings.bundle is not None or self.settings.site is not None:
                    fetched, overlap = self._fetch(bundle, stack, owner_at)
                    if self.settings.site is not None and overlap is not None:
                        self._open(fetched, self.settings.site, overlap, owner_at)
            if self.settings.values is not None:
                self._write_values(self.settings.values, owner_at)
        finally:
            self._tell_refusal(owners.values())

    def _tell_refusal(self, owners: Iterable[Owner | None]) -> None:
        refused = next((owner.refused for owner in owners if owner is not None and owner.refused), None)
        if refused is not None:
            self.warn(
                [
                    "What the action left in the workspace could not be given to the workspace's owner.",
                    f"The file system said: {refused}.",
                    "Later steps can read it, but may not be able to change or delete it.",
                ]
            )

    def _fetch(self, bundle: Bundle, stack: contextlib.ExitStack, owner_at: _OwnerAt) -> tuple[Staged, Overlap | None]:
        """Download the archive; with `min-pages` still to check it stays staged until the pages are counted."""
        place = self.settings.bundle
        with _writing(_cannot_save):
            if place is None:
                staged, overlap, downloaded = self._fetch_to_scratch(bundle, stack, owner_at)
            else:
                staged = stack.enter_context(staged_file(place.path, owner_at(place), self.cleanups))
                staged, overlap, downloaded = self._fetch_to(staged, bundle, stack, owner_at)
                if self.settings.min_pages is None:
                    self.cancellation.check()
                    staged.publish()
                    self.record.bundle_path = place.name
            self.record.downloaded = downloaded
            self.log.downloaded(downloaded, self.record.bundle_path)
            self._warn_of_form(downloaded, staged)
        return staged, overlap

    def _fetch_to_scratch(self, bundle: Bundle, stack: contextlib.ExitStack, owner_at: _OwnerAt) -> _Fetched:
        """Fetch an archive that is not kept: to the runner's temporary folder, or beside the site where it does not fit there."""
        site = self.settings.site
        assert site is not None  # noqa: S101  # without one nothing is fetched but to be kept; this tells the type checker
        scratch = self.settings.scratch
        if scratch is not None:
            try:
                with contextlib.ExitStack() as attempt:
                    staged = attempt.enter_context(staged_file(scratch / "bundle", None, self.cleanups))
                    fetched = self._fetch_to(staged, bundle, attempt, owner_at)
                    stack.push(attempt.pop_all())
                    return fetched
            except (DiskTooSmall, OSError) as error:
                is_full = error.folder == scratch if isinstance(error, DiskTooSmall) else error.errno in _FULL
                if not is_full or scratch.stat().st_dev == existing_folder(site.path.parent).stat().st_dev:
                    raise
                self.log.moved_to_workspace()
        # the folders that lead there may stay, with the site in them
        staged = stack.enter_context(staged_file(site.path.parent / "bundle", owner_at(site), self.cleanups))
        return self._fetch_to(staged, bundle, stack, owner_at)

    def _fetch_to(self, staged: Staged, bundle: Bundle, stack: contextlib.ExitStack, owner_at: _OwnerAt) -> _Fetched:
        overlap = self._overlap(staged.path, stack, owner_at)
        return staged, overlap, self._download(bundle, staged.path, overlap)

    def _warn_of_form(self, downloaded: Downloaded, staged: Staged) -> None:
        """Warn when the archive is not what its name says, or not what the storage keeps."""
        lines, kept = [], self.settings.bundle
        if kept is not None and kept.name.lower().endswith((".gz", ".tgz")):
            with staged.path.open("rb") as file:
                if begins_tar(file.read(START_BYTES)):
                    lines.append(f"{kept.name} is a tar archive without compression, although its name says gzip.")
        if not downloaded.as_stored:
            lines += [
                "The storage, or something between it and this runner, changed the compression of the bundle.",
                "`bundleSize` and `bundleSha256` are those of the bytes that came, not of the bytes as they are stored.",
            ]
        if lines:
            self.warn(lines)

    def _overlap(self, archive: Path, stack: contextlib.ExitStack, owner_at: _OwnerAt) -> Overlap | None:
        """Have the site, if one is wanted, unpacked behind the download, as far as that goes."""
        site = self.settings.site
        if site is None:
            return None
        overlap = Overlap(archive, site, owner_at(site), self.cleanups, self.cancellation)
        return stack.enter_context(overlap)

    def _download(self, bundle: Bundle, path: Path, overlap: Overlap | None) -> Downloaded:
        self.record.enter(DOWNLOAD, self.clock.monotonic())
        self.log.downloading()
        site = self.settings.site
        space = DiskSpace(archive_folder=path.parent, site_folder=site.path.parent if site is not None else None)
        with path.open("r+b") as file:
            download = Download(
                bundle,
                file,
                storage=self.storage,
                renew=self.renew,
                clock=self.clock,
                outage_tolerance_seconds=self.outage_tolerance_seconds,
                listener=self.log if overlap is None else Followed(self.log, overlap),
                disk_space=space,
            )
            return download.run()

    def _open(self, fetched: Staged, site: Place, overlap: Overlap, owner_at: _OwnerAt) -> None:
        self.record.enter(UNPACK, self.clock.monotonic())
        self.log.unpacking()
        with (
            _writing(lambda error: _cannot_put(f"the site cannot be written to {site.name}", error)),
            contextlib.ExitStack() as stack,
        ):
            found = overlap.result(self.log.unpacked_so_far)
            staged, unpacked = self._unpack(fetched, site, stack, owner_at) if found is None else found
            self._check_pages(unpacked)
            self.cancellation.check()
            self._publish_archive(fetched)
            staged.publish()
        self.record.site_path, self.record.site_files = site.name, unpacked.files
        self.log.unpacked(unpacked.files, site.name)

    def _check_pages(self, unpacked: Unpacked) -> None:
        """Raise `TooFewPages` where `min-pages` is still to be checked, because the API reported no page count."""
        if self.settings.min_pages is not None and unpacked.html_files < self.settings.min_pages:
            html_files = pluralize(unpacked.html_files, "`.html` file")
            raise TooFewPages(
                f"its bundle has {html_files}, fewer than the {self.settings.min_pages:,} pages that `min-pages` asks for",
                facts=("The API reported no usable `pageCount`, so the `.html` files in the bundle were counted.",),
            )

    def _publish_archive(self, fetched: Staged) -> None:
        """Save the archive at `bundle-path` where that had to wait for the pages to be counted."""
        place = self.settings.bundle
        if place is not None and not fetched.is_published:
            with _writing(_cannot_save):
                fetched.publish()
            self.record.bundle_path = place.name
            self.log.saved(place.name)

    def _unpack(self, fetched: Staged, site: Place, stack: contextlib.ExitStack, owner_at: _OwnerAt) -> tuple[Staged, Unpacked]:
        owner = owner_at(site)
        staged = stack.enter_context(staged_folder(site.path, owner, self.cleanups))
        with open_archive(fetched.path, self.cancellation) as archive:
            unpacked = unpack(archive, staged.path, on_progress=self.log.unpacked_so_far, owner=owner)
        return staged, unpacked

    def _write_values(self, place: Place, owner_at: _OwnerAt) -> None:
        from .helm_values import values_text  # few runs write values, and to load what writes them takes a while

        record, bundle = self.record, self.record.bundle
        assert bundle is not None  # noqa: S101  # there is a link by now; this tells the type checker
        of = f" of {record.domain}" if record.domain is not None else ""
        until = f"{bundle.expires:%Y-%m-%d %H:%M:%S} UTC" if bundle.expires is not None else bundle.expires_at
        works = f" The link works until {until}." if until is not None else ""
        comment = (
            f"Static export{of}, job {record.job_id}.{works}",
            f"For a fresh link run the action with job-id: {record.job_id}",
        )
        text = values_text(bundle_url=bundle.url, version=self.settings.version, comment=comment)
        with (
            _writing(lambda error: _cannot_put(f"the Helm values file cannot be written to {place.name}", error)),
            staged_file(place.path, owner_at(place), self.cleanups) as staged,
        ):
            staged.path.write_text(text, encoding="utf-8", newline="\n")
            self.cancellation.check()
            staged.publish()
        record.values_file = place.name
        self.log.wrote_values(place.name)


@contextlib.contextmanager
def _writing(failure: Callable[[OSError], ActionError]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise failure(error) from error


def _cannot_save(error: OSError) -> DownloadFailed:
    cause, remedy = _why(error)
    return DownloadFailed("the bundle cannot be saved", facts=(_said(error),), cause=cause, remedy=remedy)


def _cannot_put(happened: str, error: OSError) -> InternalError:
    cause, remedy = _why(error)
    return InternalError(happened, facts=(_said(error),), cause=cause, remedy=remedy)


def _said(error: OSError) -> str:
    return f"The system said: {error.strerror or type(error).__name__}."


def _why(error: OSError) -> tuple[str, str]:
    if error.errno in {*_FULL, errno.EFBIG}:
        return "The runner's disk is full.", "Free space in a step before, or use a runner with a larger disk."
    if isinstance(error, PermissionError):
        return DENIED_CAUSE, DENIED_REMEDY
    return "The runner's disk does not work as it should, or another process is at work there.", "Fix the runner and run again."
