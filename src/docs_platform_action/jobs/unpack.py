"""Mode `unpack`: delivers a bundle that is a file here already."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..bundle.faults import UNUSABLE_FILE
from ..bundle.file import BundleFile, open_archive
from ..bundle.publication import Publication
from ..context import Context
from ..errors import InvalidBundle
from ..inputs.settings import UnpackSettings
from ..job import UNPACK, VERIFICATION, Job, Kind
from ..text import format_bytes, format_digest
from .task import Batch, Task


class Unpack(Kind):
    """A bundle that is a file here already, and not a job of the platform."""

    mode = "unpack"
    name = "Bundle"
    noun = "bundle"
    bundle_path_label = "Archive"

    def heading(self, job: Job) -> tuple[str, str]:
        if job.domain is not None:
            return "Domain", job.domain
        return "Mode", self.mode

    def cancelled_before_start(self, _job: Job, _now: float) -> Sequence[str]:
        return []


def verify_and_unpack(job: Job, settings: UnpackSettings, context: Context) -> None:
    """Verify the digest of the archive, and publish its site.

    The file stays open in between, so that nothing else is unpacked than what was verified.
    """
    source = settings.bundle_path
    job.start_phase(VERIFICATION, context.clock.monotonic())
    with BundleFile(
        open_archive(source),
        source.name,
        settings.bundle_sha256,
        context.clock.cancellation,
    ) as file:
        _verify(job, file, source.name, context)
        _unpack(job, file, settings, context)
    job.delivered = replace(job.delivered, bundle_path=source.name)


def _verify(job: Job, file: BundleFile, name: str, context: Context) -> None:
    archive = file.verify()
    job.delivered = replace(job.delivered, archive=archive)
    fact = f"{format_bytes(archive.size)}, SHA-256 {format_digest(archive.sha256)}"
    context.listener.noted(job, f"Verified {name}: {fact}")


def _unpack(job: Job, file: BundleFile, settings: UnpackSettings, context: Context) -> None:
    job.start_phase(UNPACK, context.clock.monotonic())
    publication = Publication(job, settings.publication, context)
    try:
        publication.publish_site(settings.site_path, file, None)
    except InvalidBundle as error:
        # another run of the workflow would read the same archive
        if error.remedy == InvalidBundle.default_remedy:
            error.cause = UNUSABLE_FILE["cause"]
            error.remedy = UNUSABLE_FILE["remedy"]
        raise
    finally:
        publication.warn_of_chown_error()


UNPACKING: Final = Unpack()
STEPS: Final = (verify_and_unpack,)


def batch(settings: UnpackSettings) -> Batch:
    """Return the one task of the mode."""
    job = Job(kind=UNPACKING, domain=settings.domain)
    return Batch(tasks=[Task(job=job, settings=settings, steps=STEPS)])
