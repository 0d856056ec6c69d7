"""Starts a static export, once the platform serves the commit that the workflow asks for."""

from ..context import Context
from ..inputs.settings import JobSettings
from ..job import Job
from ..models import ExportJob
from .commit import wait_for_commit


def start_site(job: Job, settings: JobSettings, context: Context) -> None:
    """Start an export. Raises `ActionError`."""
    if context.github is not None and job.deployed is None:
        wait_for_commit(job, settings.commit_timeout_seconds, context.github, context)
    job.job_id, status = context.api.start_export(job, settings.start_options or {})
    job.started_at = context.clock.monotonic()
    if status is not None:
        job.reading = ExportJob(status=status)
