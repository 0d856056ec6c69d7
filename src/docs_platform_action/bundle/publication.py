"""Publishes the site of a bundle: unpacked, checked, and then renamed to its place."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import BinaryIO

from ..context import Context
from ..errors import InternalError, InvalidBundle
from ..inputs.settings import PublicationSettings
from ..job import UNPACK, Job
from ..models import Changes, FileDigests, Manifest, OutputPath
from ..ownership import Owners
from ..site.alarms import find_alarms
from ..site.comparison import changes_json, compare, describe
from ..site.digests import Digests
from ..site.links import reachable_files
from ..site.manifest import manifest_lines, site_sha256
from ..text import pluralize
from .archive import CHUNK_BYTES, ZIP_MAGICS
from .decompression import decompressed
from .file import BundleFile
from .guards import Counts, check_removed, check_unpacked_pages, describe_lack, lacks_pages
from .only_file import describe_only_file
from .pipe import Pipe
from .staging import Staged, write_file
from .stream import BundleStream
from .tar import TarSource, tar_entries
from .tree import Tree
from .zip import zip_entries

Source = BundleStream | BundleFile
"""What a bundle is read from. `peek` is for the first bytes, before anything is read."""


@dataclass
class Publication:
    """The publication of what a bundle holds. Nothing is published that a guard holds back."""

    job: Job
    settings: PublicationSettings
    context: Context
    owners: Owners = field(default_factory=Owners)

    def publish_site(
        self,
        target: OutputPath,
        stream: Source,
        archive: Staged | None,
    ) -> None:
        """Publish the site, with the archive that is kept, if any.

        Raises `ActionError` and `Cancelled`.
        """
        owner = self.owners.of(target.root)
        summary = f"the site cannot be written to {target.name}"
        digests = self._new_digests()
        with Staged(target, owner, InternalError, summary, is_folder=True) as site:
            tree = Tree(site.path, site.descriptor, self.context.clock.cancellation, owner, digests)
            self._unpack(stream, archive, site, tree)
            only_folder = tree.only_folder()

            self._check_pages(site, tree)
            self._check_changes(site, tree, digests)

            manifest_path = self.settings.manifest_path
            if manifest_path is not None and digests is not None:
                self._write(manifest_path, "the manifest", manifest_lines(digests.manifest))
            if archive is not None:
                self._publish_archive(archive)
            self.context.clock.cancellation.check()
            site.publish()
        self._record_site(target, tree.files)
        if only_folder is not None:
            self._warn_of_only_folder(target, only_folder)

    def _new_digests(self) -> Digests | None:
        """Return what records the digests of the site's files, if they are needed."""
        if self.settings.manifest_path is None and self.settings.compare_with is None:
            return None
        return Digests(self._published_files)

    @property
    def _published_files(self) -> Mapping[bytes, FileDigests]:
        """The files of the site to compare with. Empty if there is none."""
        if self.settings.compare_with is None:
            return {}
        return self.settings.compare_with.files

    def _unpack(
        self,
        stream: Source,
        archive: Staged | None,
        site: Staged,
        tree: Tree,
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
        self,
        stream: Source,
        archive: Staged | None,
        site: Staged,
        tree: Tree,
    ) -> None:
        """Unpack a zip archive once it is complete, because its directory is at the end."""
        with site.errors_explained(), _open_zip(archive, site) as file:
            if archive is None:  # a kept one is written by the stream itself
                while chunk := stream.read(CHUNK_BYTES):
                    tree.take_space(len(chunk))
                    file.write(chunk)
            self._end_download(stream)
            self.job.start_phase(UNPACK, self.context.clock.monotonic())
            for entry in zip_entries(file):
                tree.add(entry)
                self.context.listener.unpack_progressed(self.job, tree.files, tree.bytes)
            tree.finish()

    def _unpack_tar(self, stream: Source, site: Staged, tree: Tree) -> None:
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
                    self.context.listener.unpack_progressed(self.job, tree.files, tree.bytes)
                pipe.write(b"")
            except InvalidBundle as error:
                # what comes before it in the archive is read first, and may be an error, too
                pipe.write(error)
            pipe.wait()
        self._end_download(stream)

    def _check_pages(self, site: Staged, tree: Tree) -> None:
        """Compare the number of pages with `min-pages` or, without it, with the API's number.

        Raises `TooFewPages`.
        """
        self.job.delivered = replace(self.job.delivered, html_files=tree.html_files)
        only_file = ""
        if tree.files == 1:
            with site.errors_explained():
                only_file = describe_only_file(site.path)
        counts = Counts(
            files=tree.files,
            html_files=tree.html_files,
            reported=self.job.page_count,
            only_file=only_file,
        )
        check_unpacked_pages(counts, self.settings.min_pages)
        if self.settings.min_pages is None and lacks_pages(counts):
            self._warn(*describe_lack(counts))

    def _check_changes(self, site: Staged, tree: Tree, digests: Digests | None) -> None:
        """Warn about the texts, and compare the site with the published one, if there is one.

        The changes are written even if a guard then holds back the site: they show why.
        Raises `TooManyRemoved`, and `InvalidBundle` if the manifest cannot hold the site.
        """
        if digests is None:
            return
        manifest = digests.manifest
        digest = site_sha256(manifest_lines(manifest))
        self.job.delivered = replace(self.job.delivered, site_sha256=digest)
        has_alarm = self._warn_of_texts(site, tree, manifest)
        if self.settings.compare_with is not None:
            changes = self._compare(self.settings.compare_with, manifest, has_alarm=has_alarm)
            check_removed(changes, self.settings)
        else:
            reachable_files(manifest)  # refuses now what a later comparison would refuse

    def _warn_of_texts(self, site: Staged, tree: Tree, manifest: Manifest) -> bool:
        """Warn of pages that may be an error page or redirects. Return whether there are any."""

        def read(page: bytes) -> bytes:
            descriptor = os.open(page, os.O_RDONLY, dir_fd=site.descriptor)
            with os.fdopen(descriptor, "rb") as file:
                return file.read()

        with site.errors_explained():
            alarms = list(find_alarms(self._published_files, manifest.files, tree.links, read))
        for sentences in alarms:
            self._warn(*sentences)
        return bool(alarms)

    def _compare(self, published: Manifest, new: Manifest, *, has_alarm: bool) -> Changes:
        """Return, record and write what changes."""
        changes, paths = compare(published, new, self.job.page_count)
        changes = replace(changes, has_alarm=has_alarm, max_removed=self.settings.max_removed)
        target = self.settings.changes_path
        if target is not None:
            self._write(target, "the changes", changes_json(paths))
        self.job.delivered = replace(
            self.job.delivered,
            changes=changes,
            changes_path=target.name if target is not None else None,
        )
        for line in describe(changes):
            self.context.listener.noted(self.job, line)
        return changes

    def _record_site(self, target: OutputPath, files: int) -> None:
        """Record that the site is published. Only then is its manifest valid."""
        manifest = self.settings.manifest_path
        self.job.delivered = replace(
            self.job.delivered,
            site_path=target.name,
            site_files=files,
            manifest_path=manifest.name if manifest is not None else None,
        )
        count = pluralize(files, "file")
        self.context.listener.noted(self.job, f"Unpacked {count} to {target.name}/")

    def _warn_of_only_folder(self, target: OutputPath, folder: str) -> None:
        fact = "the site has no `index.html` at its top"
        condition = f"If `{folder}/` is not part of your site's addresses"
        inner = f"{target.name}/{folder}"
        upload = "An upload that deletes old files, such as `aws s3 sync --delete`"
        self._warn(
            f"{fact}, but one in its only folder, `{folder}/`.",
            f"{condition}, publish `{inner}` in place of `{target.name}`.",
            f"{upload}, would otherwise delete the site.",
        )

    def _warn(self, fact: str, *sentences: str) -> None:
        """Warn about what is delivered, also in the job summary."""
        lines = [f"{self.job.title}: {fact}", *sentences]
        self.job.warnings.append(lines)
        self.context.listener.warning(self.job, lines)

    def _write(self, target: OutputPath, what: str, lines: Iterable[bytes]) -> None:
        """Write a file in one step. `what` names it in the error."""
        write_file(
            target,
            what,
            lines,
            owner=self.owners.of(target.root),
            cancellation=self.context.clock.cancellation,
        )

    def publish_only_archive(self, stream: Source, archive: Staged) -> None:
        """Download the archive, and publish it without its site."""
        self._end_download(stream)
        self._publish_archive(archive)

    def _publish_archive(self, archive: Staged) -> None:
        """Publish the archive, which is complete."""
        self.context.clock.cancellation.check()
        archive.publish()
        name = archive.target.name
        self.job.delivered = replace(self.job.delivered, bundle_path=name)
        self.context.listener.noted(self.job, f"Saved the archive to {name}")

    def _end_download(self, stream: Source) -> None:
        """Read what is left of the bundle, and record its archive."""
        archive = stream.drain()
        if archive != self.job.delivered.archive:
            self.job.delivered = replace(self.job.delivered, archive=archive)
            self.context.listener.downloaded(self.job, archive)

    def warn_of_chown_error(self) -> None:
        """Warn if files could not be given to the workspace's owner."""
        reason = self.owners.chown_error
        if reason is None:
            return
        lines = [
            "The action's files could not be given to the workspace's owner.",
            f"The file system reported: {reason}.",
            "Later steps can read them, but may not be able to change or delete them.",
        ]
        self.context.listener.warning(self.job, lines)


def _open_zip(archive: Staged | None, site: Staged) -> BinaryIO:
    """Open the archive that is kept, or else a temporary file for one."""
    if archive is not None:
        return archive.open()
    return TemporaryFile(dir=site.path.parent)
