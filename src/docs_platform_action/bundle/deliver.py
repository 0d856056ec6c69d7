"""Delivers a bundle as the settings ask: the archive, the site and the Helm values."""

from contextlib import AbstractContextManager, nullcontext
from typing import Final

from ..context import PlatformContext
from ..errors import ActionError, Cancelled, DownloadFailed, InvalidBundle
from ..inputs.settings import DeliverySettings
from ..job import BUNDLE, DOWNLOAD, Job
from ..models import OutputPath
from .faults import DAMAGED_AT_STORAGE, DiskTooSmall, OtherArchive, compressed_on_its_way
from .guards import has_guards
from .link import is_expiring, renew_link
from .publication import Publication
from .staging import Staged
from .stream import BundleStream, ResumeError
from .values_file import write_values_file

MAX_RESTARTS: Final = 2  # of a delivery whose download cannot be resumed


def deliver_bundle(job: Job, settings: DeliverySettings, context: PlatformContext) -> None:
    """Deliver the bundle of a job that has a link.

    Raises `ActionError` and `Cancelled`; what was delivered before it is kept.
    """
    publication = Publication(job, settings.publication, context)
    try:
        if settings.bundle_path is not None or settings.site_path is not None:
            _deliver_files(settings, publication, context)
        if is_expiring(job, context):
            job.start_phase(BUNDLE, context.clock.monotonic())
            renew_link(job, settings, context)
        write_values_file(job, settings, publication.owners, context)
    finally:
        publication.warn_of_chown_error()


def _deliver_files(
    settings: DeliverySettings,
    publication: Publication,
    context: PlatformContext,
) -> None:
    """Download the bundle and publish it, from the first byte again if need be."""
    for _ in range(MAX_RESTARTS):
        try:
            _download(settings, publication, context)
        except ResumeError as error:
            context.listener.download_restarted(publication.job, error.reason)
        else:
            return
    _download(settings, publication, context)


def _download(
    settings: DeliverySettings,
    publication: Publication,
    context: PlatformContext,
) -> None:
    job = publication.job
    job.start_phase(DOWNLOAD, context.clock.monotonic())
    with (
        _staged_archive(settings.bundle_path, publication) as archive,
        BundleStream(job, context, archive) as stream,
    ):
        stream.peek()
        if archive is not None:
            archive.check_space(stream.size or 0)
        try:
            if settings.site_path is not None:
                publication.publish_site(settings.site_path, stream, archive)
            elif archive is not None:
                publication.publish_only_archive(stream, archive)
        except InvalidBundle as error:
            if archive is not None and _is_kept_after(error, settings):
                _keep_refused_archive(stream, archive, publication)
            if stream.coding and isinstance(error, OtherArchive):
                raise compressed_on_its_way(stream.coding, error) from error
            if stream.is_complete and error.cause == InvalidBundle.default_cause:
                error.cause = DAMAGED_AT_STORAGE
            raise


def _staged_archive(
    target: OutputPath | None,
    publication: Publication,
) -> AbstractContextManager[Staged | None]:
    if target is None:
        return nullcontext()
    owner = publication.owners.of(target.root)
    return Staged(target, owner, DownloadFailed, "the bundle cannot be saved")


def _is_kept_after(error: InvalidBundle, settings: DeliverySettings) -> bool:
    """Return whether the archive is published to be inspected, although the site is not."""
    return not isinstance(error, DiskTooSmall) and not has_guards(settings.publication)


def _keep_refused_archive(stream: BundleStream, archive: Staged, publication: Publication) -> None:
    """Publish an archive to be inspected, if it can be downloaded. Raises `Cancelled`."""
    try:
        publication.publish_only_archive(stream, archive)
    except Cancelled:
        raise
    except ActionError:
        return  # why the archive was refused is reported, and not this
