"""The administrative API's four operations.

Source: the API's description, version 2.0.0 (`docs/admin-api.openapi.yaml`).
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ..http.client import Request, Timeouts
from ..models import AgentJob, Bundle, ExportJob, StartedExport, read_agent_job, read_bundle, read_export_job, read_started_export
from .calls import Caller
from .statuses import Call

if TYPE_CHECKING:
    from ..job import Job

BUNDLE_TIMEOUT_SECONDS: Final = 300.0
"""How long the platform may take to pack a bundle before it responds."""

SETTLING_SECONDS: Final = 30.0
"""How long after its start a job may be unknown to some of the platform's servers."""


class AdminApi:
    """The API of one platform, for all `jobs` of a run.

    Every method raises the `ActionError` that the response stands for. A `deadline` is on the clock's `monotonic`.
    """

    def __init__(self, caller: Caller, jobs: "Sequence[Job]") -> None:
        self._caller = caller
        self._jobs = jobs
        self.quote = caller.client.quote

    def start_export(self, job: "Job", options: Mapping[str, object]) -> StartedExport:
        """Start a static export of a job's domain. The request becomes the job's `start_request`."""
        request = Request(method="POST", url="/v1/static-export/jobs", body={**options, "domain": job.domain})
        job.start_request = request
        other_jobs = [other for other in self._jobs if other is not job]
        call = Call(job=job, request=request, read=read_started_export, idempotent=False, other_jobs=other_jobs)
        return self._caller.send(call)

    def read_export(self, job: "Job", *, deadline: float) -> ExportJob:
        """Return the status of an export job."""
        request = Request(method="GET", url=f"/v1/static-export/jobs/{_path_segment(job.job_id)}")
        temporary_until = {404: _settles_at(job)}
        call = Call(job=job, request=request, read=read_export_job, temporary_until=temporary_until, deadline=deadline)
        return self._caller.send(call)

    def make_bundle(self, job: "Job") -> Bundle:
        """Pack a completed export, or make a new link to its bundle."""
        call = Call(
            job=job,
            request=Request(method="POST", url=f"/v1/static-export/jobs/{_path_segment(job.job_id)}/bundle"),
            read=read_bundle,
            retry_invalid_object=False,
            temporary_until={404: _settles_at(job), 409: math.inf},  # 409: the platform is still packing
            timeouts=Timeouts(idle_seconds=BUNDLE_TIMEOUT_SECONDS, total_seconds=BUNDLE_TIMEOUT_SECONDS),
        )
        return self._caller.send(call)

    def read_agent_job(self, job: "Job", *, deadline: float) -> AgentJob:
        """Return the status of an agent job."""
        url = f"/v2/agent/{_path_segment(job.project_id)}/job/{_path_segment(job.job_id)}"
        call = Call(job=job, request=Request(method="GET", url=url), read=read_agent_job, deadline=deadline)
        return self._caller.send(call)


def _settles_at(job: "Job") -> float:
    """Return until when a 404 is temporary. If this run did not start the job, it never is."""
    return -math.inf if job.started_at is None else job.started_at + SETTLING_SECONDS


def _path_segment(identifier: str | None) -> str:
    assert identifier is not None  # noqa: S101  # for the type checker: the id is known by now
    # slashes are encoded too, and the dots of `.` and `..`
    return "%2E" * len(identifier) if identifier in {".", ".."} else quote(identifier, safe="")
