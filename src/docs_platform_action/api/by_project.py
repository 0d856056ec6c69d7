"""Exports by project: the newer form of the export API.

A start names a project, and a completed job holds the link. A job has neither progress nor a number
of pages. Source: the platform's public descriptions, autumn 2026 (`docs/admin-api.openapi.yaml`);
the form is a private beta.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import Advice
from ..http.transport import Request
from ..job import Job
from ..models import ExportJob
from .calls import path_segment
from .resources import read_bundle_link, read_export_job


class ByProject:
    """The form that names a project."""

    resource = "project"
    cause_if_other_form = "The platform exports domains, not projects"
    remedy_if_other_form = "If your platform exports domains, set `domain` and remove `project-id`"
    not_enabled: Sequence[str] = (
        "static export is not enabled for this deployment",
        "the deployment asks its readers to sign in",
    )
    is_refusal_about_all_sites = False
    unknown_site = Advice(
        cause="The project is mistyped, was deleted, or belongs to another organization.",
        remedy="Compare `project-id` with the dashboard's API keys page.",
    )
    unknown_job = Advice(
        cause="`job-id` or `project-id` is wrong, or the job was deleted or started by domain.",
        remedy="Compare both with the dashboard, and remove `project-id` if the export was started "
        "without it. To export again, use `mode: export` without `job-id`.",
    )

    def start(self, job: Job, options: Mapping[str, object]) -> Request:
        """Return a start whose path names the project.

        Without options, it has neither a body nor a content type, as in the platform's own example.
        """
        return Request(method="POST", url=_jobs(job), body=options or None)

    def status(self, job: Job) -> Request:
        """Return a request for the job in its project."""
        return Request(method="GET", url=f"{_jobs(job)}/{path_segment(job.job_id)}")

    def read_status(self, body: Mapping[str, object]) -> ExportJob:
        """Read the status and, of a completed job, the link. Raises `ValueError` without a status.

        The link may come later than the status.
        """
        reading = read_export_job(body)
        if reading.status != ExportJob.COMPLETED:
            return reading
        try:
            link = read_bundle_link(body)
        except ValueError:
            return reading
        return replace(reading, link=link)

    def link(self, job: Job) -> None:
        """Return no call: reading a completed job again gives a fresh link."""


def _jobs(job: Job) -> str:
    return f"/v1/static-export/{path_segment(job.project_id)}/jobs"
