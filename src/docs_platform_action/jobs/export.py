"""Starts a static export, once the platform serves the commit that the workflow asks for."""

import copy

from ..api.admin_api import Unannounced
from ..context import Context
from ..inputs.settings import JobSettings
from ..job import Job
from .commit import wait_for_commit


def start_site(job: Job, settings: JobSettings, context: Context, *, reads_again: bool) -> Unannounced[None]:
    """Start an export and record it in the job. The caller announces it.

    After a wait for room, the deployments are read again. Raises `ActionError` and `NoRoom`.
    """
    github = context.github
    if github is not None and reads_again:
        github = copy.copy(github)  # another thread may be using it
    if github is not None and (job.deployed is None or reads_again):
        wait_for_commit(job, settings.commit_timeout_seconds, github, context)
    return context.api.start_export(job, settings.start_options or {})
