"""Starts a static export."""

from ..context import Context
from ..inputs.settings import JobSettings
from ..job import Job
from ..models import ExportJob


def start_site(job: Job, settings: JobSettings, context: Context) -> None:
    """Start an export. Raises `ActionError`."""
    started = context.api.start_export(job, settings.start_options or {})
    job.job_id, job.started_at = started.job_id, context.clock.monotonic()
    if started.status is not None:
        job.reading = ExportJob(status=started.status)
