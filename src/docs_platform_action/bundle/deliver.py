"""Delivers a bundle as the settings ask: the archive, the site and the Helm values."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

from ..context import Context, PlatformContext
from ..errors import ActionError, Cancelled, DownloadFailed, InvalidBundle, Unavailable
from ..inputs.settings import DeliverySettings, UnpackSettings
from ..job import BUNDLE, DOWNLOAD, MIN_LINK_SECONDS, UNPACK, VERIFICATION, Job
from ..models import BundleLink, OutputPath
from ..text import as_sentence, format_bytes, format_digest, format_seconds
from .faults import UNUSABLE_FILE, DiskTooSmall
from .file import BundleFile, open_archive
from .publication import Publication
from .staging import Staged
from .stream import BundleStream, ResumeError

MAX_RESTARTS: Final = 2  # of a delivery whose download cannot be resumed


def warn_of_failed_renewal(job: Job, context: Context, error: ActionError) -> None:
    """Warn that a job's link expires soon, and could not be replaced."""
    remedy = error.remedy
    if isinstance(error, Unavailable):
        remedy = f"A later run with `{job.inputs_to_collect}` makes a new one."
    lines = [
        *_lines_about_expiry(job, context),
        as_sentence(f"It could not be replaced: {error.summary}"),
        *error.details,
        remedy,
    ]
    context.events.warning(job, lines)


def _warn_of_short_link(job: Job, context: Context) -> None:
    """Warn that a job's link expires soon, although it is new."""
    not_needed = "Steps that use the files of `bundle-path` or `site-path` need no link."
    lines = [
        *_lines_about_expiry(job, context),
        f"A new link is not valid for longer. {not_needed}",
    ]
    context.events.warning(job, lines)


def _lines_about_expiry(job: Job, context: Context) -> list[str]:
    now = context.clock.now()
    return [
        f"{job.title}: the bundle link {_expiry(job, context)}.",
        f"This runner's clock says {now:%Y-%m-%d %H:%M:%S} UTC.",
    ]


def _expiry(job: Job, context: Context) -> str:
    remaining = job.link_seconds(context.clock.now())
    if remaining <= 0:
        return "has expired"
    return f"expires in {format_seconds(remaining)}"


def deliver_file(job: Job, settings: UnpackSettings, context: Context) -> None:
    """Publish the site of a bundle that is a file here, once its digest is verified.

    Raises `ActionError` and `Cancelled`.
    """
    source = settings.bundle_path
    publication = Publication(job, settings.publication, context)
    job.start_phase(VERIFICATION, context.clock.monotonic())
    cancellation = context.clock.cancellation
    try:
        with BundleFile(
            open_archive(source),
            source.name,
            settings.bundle_sha256,
            cancellation,
        ) as file:
            archive = file.verify()
            job.start_phase(UNPACK, context.clock.monotonic())
            job.delivered = replace(job.delivered, archive=archive)
            fact = f"{format_bytes(archive.size)}, SHA-256 {format_digest(archive.sha256)}"
            context.events.noted(job, f"Verified {source.name}: {fact}")
            _publish_verified(publication, settings.site_path, file)
        job.delivered = replace(job.delivered, bundle_path=source.name)
    finally:
        _warn_of_chown_error(publication)


def _publish_verified(publication: Publication, target: OutputPath, file: BundleFile) -> None:
    try:
        publication.publish_site(target, file, None)
    except InvalidBundle as error:
        # another run of the workflow would read the same archive
        if error.remedy == InvalidBundle.default_remedy:
            error.cause = UNUSABLE_FILE["cause"]
            error.remedy = UNUSABLE_FILE["remedy"]
        raise


@dataclass
class Delivery:
    """The delivery of the bundle of a job that has a link."""

    job: Job
    settings: DeliverySettings
    context: PlatformContext
    publication: Publication = field(init=False)

    def __post_init__(self) -> None:
        self.publication = Publication(self.job, self.settings.publication, self.context)

    def deliver(self) -> None:
        """Deliver everything. Raises `ActionError`; what was delivered before it is kept."""
        try:
            if self.settings.bundle_path is not None or self.settings.site_path is not None:
                self._deliver_files()
            if self.job.link_seconds(self.context.clock.now()) < MIN_LINK_SECONDS:
                self.job.start_phase(BUNDLE, self.context.clock.monotonic())
                self.renew_link()
            if self.settings.values_file is not None and self.job.link is not None:
                self._write_values(self.settings.values_file, self.job.link)
        finally:
            _warn_of_chown_error(self.publication)

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
                    self.publication.publish_site(self.settings.site_path, stream, archive)
                elif archive is not None:
                    self._publish_archive(stream, archive)
            except InvalidBundle as error:
                if archive is not None and self._keeps_archive_after(error):
                    self._keep_refused_archive(stream, archive)
                raise

    def _staged_archive(self) -> AbstractContextManager[Staged | None]:
        target = self.settings.bundle_path
        if target is None:
            return nullcontext()
        owner = self.publication.owners.of(target.root)
        return Staged(target, owner, DownloadFailed, "the bundle cannot be saved")

    def _publish_archive(self, stream: BundleStream, archive: Staged) -> None:
        self.publication.end_download(stream)
        self.publication.publish_archive(archive)

    def _keep_refused_archive(self, stream: BundleStream, archive: Staged) -> None:
        """Publish an archive to be inspected, if it can be downloaded. Raises `Cancelled`."""
        try:
            self._publish_archive(stream, archive)
        except Cancelled:
            raise
        except ActionError:
            return  # why the archive was refused is reported, and not this

    def _keeps_archive_after(self, error: InvalidBundle) -> bool:
        """Return whether the archive is published to be inspected, although the site is not."""
        return not isinstance(error, DiskTooSmall) and not self.publication.has_guards

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
            events.link_made(job, job.link)
            if job.delivered.values_file is not None and self.settings.values_file is not None:
                self._write_values(self.settings.values_file, job.link)
        except Cancelled:
            raise
        except ActionError as error:
            job.link = old_link
            warn_of_failed_renewal(job, self.context, error)
            return False
        job.has_short_link = job.link_seconds(self.context.clock.now()) < MIN_LINK_SECONDS
        if job.has_short_link:
            _warn_of_short_link(job, self.context)
        return True

    def _write_values(self, target: OutputPath, link: BundleLink) -> None:
        # imports a YAML library, which most runs do not need
        from .helm_values import values_text

        now = self.context.clock.now()
        text = values_text(self.job, link, self.settings.export_version, now)
        self.publication.write(target, "the Helm values file", [text.encode()])
        self.job.delivered = replace(self.job.delivered, values_file=target.name)
        self.context.events.noted(self.job, f"Wrote the Helm values file {target.name}")


def _warn_of_chown_error(publication: Publication) -> None:
    reason = publication.owners.chown_error
    if reason is None:
        return
    lines = [
        "The action's files could not be given to the workspace's owner.",
        f"The file system reported: {reason}.",
        "Later steps can read them, but may not be able to change or delete them.",
    ]
    publication.context.events.warning(publication.job, lines)
