"""Deliver a finished bundle as the settings ask.

Keep the archive, unpack the site and write the Helm values.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from ..context import Context
from ..errors import (
    ActionError,
    Cancelled,
    DownloadFailed,
    InternalError,
    InvalidBundle,
    TooFewPages,
    Unavailable,
)
from ..inputs.settings import DeliverySettings, OutputPath
from ..job import BUNDLE, DOWNLOAD, MIN_LINK_SECONDS, UNPACK, VERIFICATION, Job
from ..manifest import manifest_lines
from ..models import BundleLink
from ..ownership import Owner, owner_of
from ..text import as_sentence, format_bytes, format_digest, format_seconds, pluralize
from .archive import CHUNK_BYTES, ZIP_MAGICS, TarSource, decompressed, tar_entries, zip_entries
from .faults import UNUSABLE_FILE, DiskTooSmall
from .file import BundleFile, open_archive
from .pipe import Pipe
from .plan import Digests, changes_json, check_removed, compare, describe, site_sha256
from .staging import Staged
from .stream import BundleStream, ResumeError
from .tree import Tree

MAX_RESTARTS: Final = 2  # of a delivery whose download cannot be resumed


def warn_of_link(job: Job, context: Context, error: ActionError | None = None) -> None:
    """Warn that a job's link expires soon.

    With an `error`, it could not be replaced. Without, a new link is not valid for longer.
    """
    now = context.clock.now()
    lines = [
        f"{job.title}: the bundle link {_expiry(job, context)}.",
        f"This runner's clock says {now:%Y-%m-%d %H:%M:%S} UTC.",
    ]
    if error is None:
        lines.append(
            "A new link is not valid for longer. "
            "Steps that use the files of `bundle-path` or `site-path` need no link."
        )
    else:
        lines.append(as_sentence(f"It could not be replaced: {error.summary}"))
        lines.extend(error.details)
        if isinstance(error, Unavailable):
            lines.append(f"A later run with `{job.inputs_to_collect}` makes a new one.")
        else:
            lines.append(error.remedy)
    context.events.warning(job, lines)


def _expiry(job: Job, context: Context) -> str:
    remaining = job.link_seconds(context.clock.now())
    if remaining <= 0:
        return "has expired"
    return f"expires in {format_seconds(remaining)}"


@dataclass
class Delivery:
    """The delivery of the bundle of a job that has a link."""

    job: Job
    settings: DeliverySettings
    context: Context
    owners: dict[Path, Owner | None] = field(default_factory=dict)  # by root

    def deliver(self) -> None:
        """Deliver everything. Raises `ActionError`; what was delivered before it is kept."""
        try:
            if self.settings.bundle_sha256 is not None:
                self._deliver_given_file(self.settings.bundle_sha256)
            elif self.settings.bundle_path is not None or self.settings.site_path is not None:
                self._deliver_files()
            if self.job.link_seconds(self.context.clock.now()) < MIN_LINK_SECONDS:
                self.job.start_phase(BUNDLE, self.context.clock.monotonic())
                self.renew_link()
            if self.settings.values_file is not None and self.job.link is not None:
                self._write_values(self.settings.values_file, self.job.link)
        finally:
            self._warn_of_chown_error()

    def _deliver_given_file(self, sha256: str) -> None:
        source = self.settings.bundle_path
        target = self.settings.site_path
        # for the type checker: mode `unpack` requires them
        assert source is not None and target is not None  # noqa: S101, PT018
        self.job.start_phase(VERIFICATION, self.context.clock.monotonic())
        cancellation = self.context.clock.cancellation
        with BundleFile(open_archive(source), source.name, sha256, cancellation) as file:
            found = file.verify()
            self.job.start_phase(UNPACK, self.context.clock.monotonic())
            self.job.delivered = replace(self.job.delivered, archive=found)
            fact = f"{format_bytes(found.size)}, SHA-256 {format_digest(found.sha256)}"
            self.context.events.noted(self.job, f"Verified {source.name}: {fact}")
            try:
                self._deliver_site(target, file, None)
            except InvalidBundle as error:
                # another run has no other archive
                if error.remedy == InvalidBundle.default_remedy:
                    error.cause, error.remedy = UNUSABLE_FILE
                raise
        self.job.delivered = replace(self.job.delivered, bundle_path=source.name)

    def _deliver_files(self) -> None:
        for _ in range(MAX_RESTARTS):
            try:
                self._download()
            except ResumeError as error:
                self.context.events.download_restarted(self.job, error.reason)
            else:
                return
        self._download()

    def _download(self) -> None:
        self.job.start_phase(DOWNLOAD, self.context.clock.monotonic())
        with (
            self._staged_archive() as archive,
            BundleStream(self.job, self.context, archive) as stream,
        ):
            stream.peek()
            if archive is not None:
                archive.check_space(stream.size or 0)
            try:
                if self.settings.site_path is not None:
                    self._deliver_site(self.settings.site_path, stream, archive)
                else:
                    self._end_download(stream)
                    self._publish_archive(archive)
            except InvalidBundle as error:
                if archive is not None and self._keeps_archive_after(error):
                    with suppress(DownloadFailed):  # the first error is reported
                        self._end_download(stream)
                        self._publish_archive(archive)
                raise

    def _staged_archive(self) -> AbstractContextManager[Staged | None]:
        target = self.settings.bundle_path
        if target is None:
            return nullcontext()
        return Staged(target, self._owner(target), DownloadFailed, "the bundle cannot be saved")

    def _keeps_archive_after(self, error: InvalidBundle) -> bool:
        """Return whether the archive is published to be inspected, although the site is not."""
        if isinstance(error, DiskTooSmall):
            return False
        # the guards of the publication hold back the archive, too
        return self.settings.min_pages is None and self.settings.compare_with is None

    def _end_download(self, stream: BundleStream | BundleFile) -> None:
        archive = stream.drain()
        if archive != self.job.delivered.archive:
            self.job.delivered = replace(self.job.delivered, archive=archive)
            self.context.events.downloaded(self.job)

    def _deliver_site(
        self, target: OutputPath, stream: BundleStream | BundleFile, archive: Staged | None
    ) -> None:
        owner = self._owner(target)
        summary = f"the site cannot be written to {target.name}"
        digests = self._new_digests()
        with Staged(target, owner, InternalError, summary, is_folder=True) as site:
            tree = Tree(site.path, site.descriptor, self.context.clock.cancellation, owner, digests)
            self._unpack(stream, archive, site, tree)
            self._check_pages(tree)
            if digests is not None:
                self._plan(digests.files)
            self._publish_archive(archive)
            self.context.clock.cancellation.check()
            only_folder = tree.only_folder()
            site.publish()
        self._record_site(target, tree.files)
        if only_folder is not None:
            self._warn_of_only_folder(target, only_folder)

    def _new_digests(self) -> Digests | None:
        """Return what records the digests of the site's files, if they are needed."""
        if self.settings.manifest_path is None and self.settings.compare_with is None:
            return None
        return Digests(self.settings.compare_with or {})

    def _record_site(self, target: OutputPath, files: int) -> None:
        """Record that the site is published and that, therefore, its manifest is of use."""
        manifest = self.settings.manifest_path
        self.job.delivered = replace(
            self.job.delivered,
            site_path=target.name,
            site_files=files,
            manifest_path=manifest.name if manifest is not None else None,
        )
        self.context.events.noted(
            self.job, f"Unpacked {pluralize(files, 'file')} to {target.name}/"
        )

    def _warn_of_only_folder(self, target: OutputPath, folder: str) -> None:
        lines = [
            (
                f"{self.job.title}: the site has no `index.html` at its top, "
                f"but one in its only folder, `{folder}/`."
            ),
            (
                f"If `{folder}/` is not part of your site's addresses, "
                f"publish `{target.name}/{folder}` in place of `{target.name}`."
            ),
            (
                "A step that deletes what is no longer there, such as `aws s3 sync --delete`, "
                "would otherwise delete the site."
            ),
        ]
        self.context.events.warning(self.job, lines)

    def _unpack(
        self, stream: BundleStream | BundleFile, archive: Staged | None, site: Staged, tree: Tree
    ) -> None:
        is_zip = stream.peek().startswith(ZIP_MAGICS)
        archive_bytes = stream.size or 0
        needed_bytes = archive_bytes  # for the site, which is at least as large
        if is_zip and archive is None:
            needed_bytes += archive_bytes  # for a temporary file with the archive
        site.check_space(needed_bytes)
        if is_zip:
            self._unpack_zip(stream, archive, site, tree)
        else:
            self._unpack_tar(stream, site, tree)

    def _unpack_zip(
        self, stream: BundleStream | BundleFile, archive: Staged | None, site: Staged, tree: Tree
    ) -> None:
        """Unpack a zip archive once it is complete, because its directory is at the end."""
        with site.errors_explained(), _open_zip(archive, site) as file:
            if archive is None:
                while chunk := stream.read(CHUNK_BYTES):
                    tree.take_space(len(chunk))
                    file.write(chunk)
            self._end_download(stream)
            self.job.start_phase(UNPACK, self.context.clock.monotonic())
            for entry in zip_entries(file):
                tree.add(entry)
                self.context.events.unpack_progressed(self.job, tree.files, tree.bytes)
            tree.finish()

    def _unpack_tar(self, stream: BundleStream | BundleFile, site: Staged, tree: Tree) -> None:
        """Unpack a tar archive while it arrives."""

        def read(chunks: Iterator[bytes]) -> None:
            with site.errors_explained():
                for entry in tar_entries(TarSource(chunks)):
                    tree.add(entry)
                tree.finish()

        with Pipe(read, self.context.clock.cancellation) as pipe:
            try:
                for chunk in decompressed(stream, stream.peek()):
                    pipe.write(chunk)
                    self.context.events.unpack_progressed(self.job, tree.files, tree.bytes)
                pipe.write(b"")
            except InvalidBundle as error:
                # what comes before it in the archive is read first, and may be an error, too
                pipe.write(error)
            pipe.wait()
        self._end_download(stream)

    def _check_pages(self, tree: Tree) -> None:
        min_pages = self.settings.min_pages
        if min_pages is None or tree.html_files >= min_pages:
            return
        html_files = pluralize(tree.html_files, "`.html` file")
        details = []
        if self.job.page_count is not None:
            pages = pluralize(self.job.page_count, "page")
            details.append(
                f"The API reported {pages}, so the bundle may be incomplete, or another site's."
            )
        details.append("Nothing was published.")
        raise TooFewPages(
            f"the bundle has {html_files}, fewer than `min-pages` ({min_pages:,})",
            details=tuple(details),
        )

    def _plan(self, files: Mapping[bytes, bytes]) -> None:
        """Compare the site with the published one, and write its manifest.

        Of all that is published, only the changes come before. Raises `TooManyRemoved`.
        """
        digest = site_sha256(manifest_lines(files))
        self.job.delivered = replace(self.job.delivered, site_sha256=digest)
        if self.settings.compare_with is not None:
            self._compare(self.settings.compare_with, files)
        if self.settings.manifest_path is not None:
            self._write(self.settings.manifest_path, "the manifest", manifest_lines(files))

    def _compare(self, published: Mapping[bytes, bytes], files: Mapping[bytes, bytes]) -> None:
        """Record and write what changes. Raises `TooManyRemoved`."""
        changes, paths = compare(published, files)
        target = self.settings.changes_path
        if target is not None:
            self._write(target, "the changes", changes_json(paths))
        self.job.delivered = replace(
            self.job.delivered,
            changes=changes,
            changes_path=target.name if target is not None else None,
        )
        for line in describe(changes):
            self.context.events.noted(self.job, line)
        if self.settings.max_removed is not None:
            check_removed(changes, self.settings.max_removed)

    def _write(self, target: OutputPath, what: str, lines: Iterable[bytes]) -> None:
        owner = self._owner(target)
        summary = f"{what} cannot be written to {target.name}"
        with Staged(target, owner, InternalError, summary) as file:
            file.write_lines(lines)
            self.context.clock.cancellation.check()
            file.publish()

    def _publish_archive(self, archive: Staged | None) -> None:
        target = self.settings.bundle_path
        if archive is None or target is None:
            return
        self.context.clock.cancellation.check()
        archive.publish()
        self.job.delivered = replace(self.job.delivered, bundle_path=target.name)
        self.context.events.noted(self.job, f"Saved the archive to {target.name}")

    def renew_link(self) -> bool:
        """Replace the link, also in the values file, and return whether that succeeded.

        Raises `Cancelled`.
        """
        job = self.job
        events = self.context.events
        old_link = job.link
        events.noted(job, f"The bundle link {_expiry(job, self.context)}. Making a new link.")
        try:
            job.link = self.context.api.make_link(job)
            events.link_made(job)
            if job.delivered.values_file is not None and self.settings.values_file is not None:
                self._write_values(self.settings.values_file, job.link)
        except Cancelled:
            raise
        except ActionError as error:
            job.link = old_link
            warn_of_link(job, self.context, error)
            return False
        job.has_short_link = job.link_seconds(self.context.clock.now()) < MIN_LINK_SECONDS
        if job.has_short_link:
            warn_of_link(job, self.context)
        return True

    def _write_values(self, target: OutputPath, link: BundleLink) -> None:
        # imports a YAML library, which most runs do not need
        from .helm_values import values_text

        now = self.context.clock.now()
        text = values_text(self.job, link, self.settings.export_version, now)
        self._write(target, "the Helm values file", [text.encode()])
        self.job.delivered = replace(self.job.delivered, values_file=target.name)
        self.context.events.noted(self.job, f"Wrote the Helm values file {target.name}")

    def _owner(self, target: OutputPath) -> Owner | None:
        return self.owners.setdefault(target.root, owner_of(target.root))

    def _warn_of_chown_error(self) -> None:
        for owner in self.owners.values():
            if owner is not None and owner.chown_error:
                lines = [
                    "The action's files could not be given to the workspace's owner.",
                    f"The file system reported: {owner.chown_error}.",
                    "Later steps can read them, but may not be able to change or delete them.",
                ]
                self.context.events.warning(self.job, lines)
                return  # one warning is enough


def _open_zip(archive: Staged | None, site: Staged) -> BinaryIO:
    """Open the archive that is kept, or else a temporary file for one."""
    if archive is not None:
        return archive.open()
    return TemporaryFile(dir=site.path.parent)
