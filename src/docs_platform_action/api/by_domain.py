"""Exports by domain: the older form of the export API.

A start names a domain, and a call of its own makes the link.
Source: the API's description, version 2.0.0 (`docs/admin-api.openapi.yaml`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from ..errors import Advice
from ..http.transport import Request, Timeouts
from ..job import Job
from ..models import BundleLink, ExportJob
from .calls import Call, path_segment, settles_at
from .resources import read_bundle_link, read_export_job

JOBS: Final = "/v1/static-export/jobs"

# the platform packs the bundle before it responds
BUNDLE_TIMEOUTS: Final = Timeouts(idle_seconds=300.0, total_seconds=300.0)


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
    unknown_job = Advice(
        cause="The job ID is wrong, the job was deleted, or it was started with `project-id`.",
        remedy="Compare the ID with the dashboard, and set `project-id` if the export was started "
        "with it. To export again, use `mode: export` without `job-id`.",
    )

    def start(self, job: Job, options: Mapping[str, object]) -> Request:
        """Return a start whose body names the domain."""
        return Request(method="POST", url=JOBS, body={**options, "domain": job.domain})

    def status(self, job: Job) -> Request:
        """Return a request for the job, whose id is enough."""
        return Request(method="GET", url=f"{JOBS}/{path_segment(job.job_id)}")

    def read_status(self, body: Mapping[str, object]) -> ExportJob:
        """Read status, progress and number of pages. Raises `ValueError` without a status."""
        return read_export_job(body)

    def link(self, job: Job) -> Call[BundleLink]:
        """Return the call that packs the bundle. Until then, the platform may answer 202 or 409."""
        packing = {202: math.inf, 409: math.inf}
        return Call(
            job=job,
            action="download exports",
            request=Request(method="POST", url=f"{JOBS}/{path_segment(job.job_id)}/bundle"),
            read=read_bundle_link,
            form=self,
            timeouts=BUNDLE_TIMEOUTS,
            temporary_until={404: settles_at(job), **packing},
        )
