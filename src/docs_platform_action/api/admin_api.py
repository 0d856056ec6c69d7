"""The administrative API's four operations, nothing else.

Source: the API's description, version 2.0.0 (`docs/admin-api.openapi.yaml`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ..http.client import Request, Timeouts
from ..models import AgentJob, Bundle, ExportJob, StartedExport, read_agent_job, read_bundle, read_export_job, read_started_export
from .calls import Caller
from .statuses import Call, until_packed, until_settled

if TYPE_CHECKING:
    from ..job import Job

BUNDLE_TIMEOUT_SECONDS: Final = 300.0
"""How long the platform may take to pack a bundle before it answers."""


class AdminApi:
    """The API of one platform, called with one key for all `jobs` of a run.

    Every method raises the `ActionError` that the response stands for. A `deadline` is on the clock's `monotonic`.
    """

    def __init__(self, caller: Caller, jobs: "Sequence[Job]") -> None:
        self._caller = caller
        self._jobs = jobs
        self.host = caller.client.host

    def start_export(self, job: "Job", options: Mapping[str, object]) -> StartedExport:
        """Start a static export of a job's domain, with a request that becomes the job's `start_request`."""
        job.start_request = Request(method="POST", url="/v1/static-export/jobs", body={**options, "domain": job.domain})
        call = Call(
            job=job,
            request=job.start_request,
            about=f"the domain {job.domain}",
            named_by="`domain`",
            read=read_started_export,
            idempotent=False,
            other_jobs=[other for other in self._jobs if other is not job],
        )
        return self._caller.send(call)

    def read_export(self, job: "Job", *, deadline: float) -> ExportJob:
        """Return the status of an export job."""
        call = Call(
            job=job,
            request=Request(method="GET", url=f"/v1/static-export/jobs/{_segment(job.job_id)}"),
            about=f"the job {job.job_id}",
            named_by="`job-id`",
            read=read_export_job,
            temporary_until=until_settled(job),
            deadline=deadline,
        )
        return self._caller.send(call)

    def make_bundle(self, job: "Job") -> Bundle:
        """Pack a completed export, or make a fresh link to its bundle."""
        call = Call(
            job=job,
            request=Request(method="POST", url=f"/v1/static-export/jobs/{_segment(job.job_id)}/bundle"),
            about=f"the job {job.job_id}",
            named_by="`job-id`",
            read=read_bundle,
            contract_is_final=True,
            temporary_until=until_packed(job),
            timeouts=Timeouts(idle_seconds=BUNDLE_TIMEOUT_SECONDS, total_seconds=BUNDLE_TIMEOUT_SECONDS),
        )
        return self._caller.send(call)

    def read_agent_job(self, job: "Job", *, deadline: float) -> AgentJob:
        """Return the status of an agent job."""
        call = Call(
            job=job,
            request=Request(method="GET", url=f"/v2/agent/{_segment(job.project_id)}/job/{_segment(job.job_id)}"),
            about=f"the project {job.project_id}, or in it the job {job.job_id}",
            named_by="`project-id`, `job-id`",
            read=read_agent_job,
            deadline=deadline,
        )
        return self._caller.send(call)


def _segment(identifier: str | None) -> str:
    """Percent-encode an identifier for a path, slashes too, and the dots of one that is all dots."""
    assert identifier is not None  # noqa: S101  # only a job that is known is read; this tells the type checker
    return "%2E" * len(identifier) if identifier in {".", ".."} else quote(identifier, safe="")
