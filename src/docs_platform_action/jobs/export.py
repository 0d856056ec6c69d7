"""Starts a static export, then collects it."""

from ..context import Context
from ..inputs.settings import JobSettings
from ..job import Job
from .collect import collect_site


def export_site(job: Job, settings: JobSettings, context: Context) -> None:
    """Start an export, and collect it if the settings say so. Raises the `ActionError` that it failed with."""
    started = context.api.start_export(job, settings.start_options or {})
    job.job_id, job.status, job.started_at = started.job_id, started.status, context.clock.monotonic()
    context.events.job_known(job)  # the runner starts the other jobs on this
    if settings.wait:
        collect_site(job, settings, context)
    else:
        context.events.not_waiting(job)
