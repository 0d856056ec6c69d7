"""The two forms of the export API: their paths, their answers, and what their refusals mean.

By domain, the older one, a start names a domain, and a call of its own makes the link. By project,
the newer one, a start names a project, and a completed job holds the link; a job has neither
progress nor a number of pages. Source: the API's description, version 2.0.0, and the platform's
public descriptions, autumn 2026, in which the newer form is a private beta
(`docs/admin-api.openapi.yaml`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ..errors import Advice
from ..http.transport import Request, Timeouts
from ..job import Job
from ..models import BundleLink, ExportJob
from .calls import Call, ExportForm, path_segment, settles_at
from .resources import read_bundle_link, read_export_job

_JOBS: Final = "/v1/static-export/jobs"  # by domain

# the platform packs the bundle before it responds
BUNDLE_TIMEOUTS: Final = Timeouts(idle_seconds=300.0, total_seconds=300.0)


def form_of(job: Job) -> ExportForm:
    """Return the form for a job, which only the workflow knows: it sets `project-id`."""
    if job.project_id is None:
        return ByDomain()
    return ByProject()


class ByDomain:
    """The form that names a domain."""

    resource = "domain"
    cause_if_other_form = "The platform exports projects, not domains"
    remedy_if_other_form = "If your platform exports projects, set `project-id`"
    not_enabled: Sequence[str] = (
        "the organization has no Enterprise plan",
        "static export is not enabled",
        "the site asks its readers to sign in",
    )
    is_refusal_about_all_sites = True
    unknown_site = Advice(
        cause="The domain is mistyped, no longer deployed, or belongs to another organization.",
        remedy="Compare `domain` with the dashboard.",
    )
    job_names = "job"
    unknown_job = Advice(
        cause="The job ID is wrong, the job was deleted, or it was started with `project-id`.",
        remedy="Compare the ID with the dashboard, and set `project-id` if the export was started "
        "with it. To export again, use `mode: export` without `job-id`.",
    )

    def start(self, job: Job, options: Mapping[str, object]) -> Request:
        """Return a start whose body names the domain."""
        return Request(method="POST", url=_JOBS, body={**options, "domain": job.domain})

    def status(self, job: Job) -> Request:
        """Return a request for the job, whose id is enough."""
        return Request(method="GET", url=f"{_JOBS}/{path_segment(job.job_id)}")

    def read_status(self, body: Mapping[str, object]) -> ExportJob:
        """Read status, progress and number of pages. Raises `ValueError` without a status."""
        return read_export_job(body)

    def link(self, job: Job) -> Call[BundleLink]:
        """Return the call that packs the bundle. Until then, the platform may answer 202 or 409."""
        packing = {202: math.inf, 409: math.inf}
        return Call(
            job=job,
            action="download exports",
            request=Request(method="POST", url=f"{_JOBS}/{path_segment(job.job_id)}/bundle"),
            read=read_bundle_link,
            form=self,
            timeouts=BUNDLE_TIMEOUTS,
            temporary_until={404: settles_at(job), **packing},
        )


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
    job_names = "job or the project"
    unknown_job = Advice(
        cause="`job-id` or `project-id` is wrong, or the job was deleted or started by domain.",
        remedy="Compare both with the dashboard, and remove `project-id` if the export was started "
        "without it. To export again, use `mode: export` without `job-id`.",
    )

    def start(self, job: Job, options: Mapping[str, object]) -> Request:
        """Return a start whose path names the project.

        Without options, it has neither a body nor a content type, as in the platform's own example.
        """
        return Request(method="POST", url=_jobs_of_project(job), body=options or None)

    def status(self, job: Job) -> Request:
        """Return a request for the job in its project."""
        return Request(method="GET", url=f"{_jobs_of_project(job)}/{path_segment(job.job_id)}")

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


def _jobs_of_project(job: Job) -> str:
    return f"/v1/static-export/{path_segment(job.project_id)}/jobs"
