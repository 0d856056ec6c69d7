"""Mode `unpack`: delivers a bundle that is a file here already."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..bundle.faults import UNUSABLE_FILE
from ..bundle.file import BundleFile
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


def verify(job: Job, settings: UnpackSettings, context: Context) -> None:
    """Verify the digest of the archive."""
    job.start_phase(VERIFICATION, context.clock.monotonic())
    with _open(settings, context) as file:
        archive = file.drain()
    job.delivered = replace(job.delivered, archive=archive)
    fact = f"{format_bytes(archive.size)}, SHA-256 {format_digest(archive.sha256)}"
    context.events.noted(job, f"Verified {settings.bundle_path.name}: {fact}")


def unpack(job: Job, settings: UnpackSettings, context: Context) -> None:
    """Publish the site. The archive is verified again, because it may be written to meanwhile."""
    job.start_phase(UNPACK, context.clock.monotonic())
    publication = Publication(job, settings.publication, context)
    try:
        with _open(settings, context) as file:
            publication.publish_site(settings.site_path, file, None)
    except InvalidBundle as error:
        # another run of the workflow would read the same archive
        if error.remedy == InvalidBundle.default_remedy:
            error.cause = UNUSABLE_FILE["cause"]
            error.remedy = UNUSABLE_FILE["remedy"]
        raise
    finally:
        publication.warn_of_chown_error()
    job.delivered = replace(job.delivered, bundle_path=settings.bundle_path.name)


def _open(settings: UnpackSettings, context: Context) -> BundleFile:
    return BundleFile(settings.bundle_path, settings.bundle_sha256, context.clock.cancellation)


UNPACKING: Final = Unpack()
STEPS: Final = (verify, unpack)


def batch(settings: UnpackSettings) -> Batch:
    """Return the one task of the mode."""
    job = Job(kind=UNPACKING, domain=settings.domain)
    return Batch(tasks=[Task(job=job, settings=settings, steps=STEPS)])
