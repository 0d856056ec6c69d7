"""Starts a static export, once the platform serves the commit that the workflow asks for."""

import copy

from ..context import PlatformContext
from ..inputs.settings import ExportSettings
from ..job import Job
from ..platform.sending import Unannounced
from .commit import wait_for_commit


def start_site(
    job: Job,
    settings: ExportSettings,
    context: PlatformContext,
) -> Unannounced[None]:
    """Start an export and record it in the job. The caller announces it.

    Raises `ActionError`, and what `AdminApi.start_export` does.
    """
    commit = settings.commit
    if commit is not None and context.github is not None and job.deployed is None:
        github = copy.copy(context.github)  # another thread may be using it
        wait_for_commit(job, commit.commit_timeout_seconds, github, context)
    return context.platform.start_export(job, settings.start_options)
