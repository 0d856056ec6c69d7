"""The link to a bundle: made, judged, and replaced when it is refused or about to expire."""

from collections.abc import Mapping
from typing import Final

from ..context import PlatformContext
from ..errors import ActionError, Cancelled, Unavailable
from ..inputs.settings import DeliverySettings
from ..job import BUNDLE, Job
from ..models import BundleLink, ExportJob
from ..ownership import Owners
from ..text import as_sentence, format_seconds
from .values_file import write_values_file

# that a link must remain valid at the end of the run, so that later steps can use it
MIN_LINK_SECONDS: Final = 60.0

MAX_FAILED_RENEWALS: Final = 3  # in a row, at the end of a run


def make_link(job: Job, context: PlatformContext) -> None:
    """Record the first link of a completed export. Raises what `Platform.make_link` does."""
    job.start_phase(BUNDLE, context.clock.monotonic())
    link: BundleLink | None = None
    if isinstance(job.reading, ExportJob):
        link = job.reading.link
    _record(job, link or context.platform.make_link(job), context)


def replace_link(job: Job, context: PlatformContext) -> BundleLink:
    """Return a new link, and record it. Raises what `Platform.make_link` does."""
    link = context.platform.make_link(job)
    _record(job, link, context)
    return link


def _record(job: Job, link: BundleLink, context: PlatformContext) -> None:
    job.link = link
    context.listener.link_made(job, link)


def is_expiring(job: Job, context: PlatformContext) -> bool:
    """Return whether the link expires soon, and a new one may be valid for longer."""
    if job.has_short_link:
        return False
    return job.link_seconds(context.clock.now()) < MIN_LINK_SECONDS


def renew_link(job: Job, settings: DeliverySettings, context: PlatformContext) -> bool:
    """Replace a link that expires soon, also in the values file. Return whether that succeeded.

    Raises `Cancelled`.
    """
    old_link = job.link
    context.listener.noted(job, f"The bundle link {_expiry(job, context)}. Making a new link.")
    try:
        replace_link(job, context)
        if job.delivered.values_file is not None:
            write_values_file(job, settings, Owners(), context)
    except Cancelled:
        raise
    except ActionError as error:
        job.link = old_link
        _warn_of_failure(job, context, error)
        return False
    job.has_short_link = job.link_seconds(context.clock.now()) < MIN_LINK_SECONDS
    if job.has_short_link:
        _warn_of_short_link(job, context)
    return True


class Renewals:
    """Renews each link once that expired while other jobs ran, or is about to expire."""

    def __init__(
        self,
        deliveries: Mapping[Job, DeliverySettings],
        context: PlatformContext,
    ) -> None:
        self._deliveries = deliveries
        self._context = context
        self._pending: set[Job] = set()  # until the other jobs have ended, nothing is due

    def is_due(self, job: Job) -> bool:
        """Return whether a job's link is to be replaced before the run ends."""
        return job in self._pending and job.failure is None and is_expiring(job, self._context)

    def run(self) -> None:
        """Renew the links. Raises `Cancelled`."""
        self._pending = set(self._deliveries)
        failed = 0
        job = self._next_due()
        while job is not None:
            self._context.clock.cancellation.check()
            if failed >= MAX_FAILED_RENEWALS:  # each may take `outage-tolerance`
                reason = f"{MAX_FAILED_RENEWALS} other links in a row could not be replaced"
                _warn_of_failure(job, self._context, Unavailable(f"{reason}, so it was not tried"))
            elif renew_link(job, self._deliveries[job], self._context):
                failed = 0
            else:
                failed += 1
            self._pending.discard(job)
            job = self._next_due()

    def _next_due(self) -> Job | None:
        for job in self._deliveries:
            if self.is_due(job):
                return job
        return None


def _warn_of_failure(job: Job, context: PlatformContext, error: ActionError) -> None:
    """Warn that a link expires soon, and could not be replaced."""
    remedy = error.remedy
    if isinstance(error, Unavailable):
        remedy = f"A later run with `{job.inputs_to_collect}` makes a new one."
    lines = [
        *_lines_about_expiry(job, context),
        as_sentence(f"It could not be replaced: {error.summary}"),
        *error.details,
        remedy,
    ]
    context.listener.warning(job, lines)


def _warn_of_short_link(job: Job, context: PlatformContext) -> None:
    """Warn that a link expires soon, although it is new."""
    not_needed = "Steps that use the files of `bundle-path` or `site-path` need no link."
    lines = [
        *_lines_about_expiry(job, context),
        f"A new link is not valid for longer. {not_needed}",
    ]
    context.listener.warning(job, lines)


def _lines_about_expiry(job: Job, context: PlatformContext) -> list[str]:
    now = context.clock.now()
    return [
        f"{job.title}: the bundle link {_expiry(job, context)}.",
        f"This runner's clock says {now:%Y-%m-%d %H:%M:%S} UTC.",
    ]


def _expiry(job: Job, context: PlatformContext) -> str:
    remaining = job.link_seconds(context.clock.now())
    if remaining <= 0:
        return "has expired"
    return f"expires in {format_seconds(remaining)}"
