"""The link to a bundle: made, judged, and replaced before it expires or when it is refused."""

from typing import Final

from ..context import PlatformContext
from ..errors import ActionError, Unavailable
from ..job import BUNDLE, Job
from ..models import BundleLink
from ..text import as_sentence, format_seconds

# that a link must remain valid at the end of the run, so that later steps can use it
MIN_LINK_SECONDS: Final = 60.0

MAX_FAILED_RENEWALS: Final = 3  # in a row, at the end of a run


def make_link(job: Job, context: PlatformContext) -> None:
    """Record the first link to the bundle of a completed export.

    Raises what `Platform.make_link` does.
    """
    job.start_phase(BUNDLE, context.clock.monotonic())
    _record_link(job, job.reported_link or context.platform.make_link(job), context)


def replace_link(job: Job, context: PlatformContext) -> BundleLink:
    """Return a new link, and record it. Raises what `Platform.make_link` does."""
    link = context.platform.make_link(job)
    _record_link(job, link, context)
    return link


def _record_link(job: Job, link: BundleLink, context: PlatformContext) -> None:
    job.link = link
    context.events.link_made(job, link)


def is_expiring(job: Job, context: PlatformContext) -> bool:
    """Return whether a link is not valid for long enough, and a new one may be."""
    is_short = job.link_seconds(context.clock.now()) < MIN_LINK_SECONDS
    return is_short and not job.has_short_link
