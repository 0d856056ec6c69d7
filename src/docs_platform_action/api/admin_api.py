"""The administrative API's four operations, nothing else.

Source: the API's description, version 2.0.0 (`docs/admin-api.openapi.yaml`).
"""

import math
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import quote

from ..http.client import Bounds
from ..models import (
    AgentJob,
    Bundle,
    ExportJob,
    StartedExport,
    read_agent_job,
    read_bundle,
    read_export_job,
    read_started_export,
)
from .calls import Call, Caller

SETTLING_SECONDS: Final = 30.0
"""How long after its start a job may still be unknown to the servers that are asked for it."""

BUNDLING_SECONDS: Final = 300.0
"""How long the platform may take to pack a bundle before it answers."""


class AdminApi:
    """The API of one platform, spoken with one key. Every method raises the `ActionError` that the answer stands for."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def host(self) -> str:
        """The API's host, with its port."""
        return self._caller.host

    def start_export(
        self,
        domain: str,
        options: Mapping[str, object],
        *,
        on_doubt: Callable[[bool], None],
        waits_for_room: Callable[[], bool],
    ) -> StartedExport:
        """Start a static export of a domain; never sent again once the platform may have seen it.

        `on_doubt` hears whether the platform may have started one that nobody knows the job of; `waits_for_room` tells whether
        exports of this run are under way, at whose end there is room for another.
        """
        return self._caller.send(
            Call(
                method="POST",
                path="/v1/static-export/jobs",
                about=f"the domain {domain}",
                named_by="`domain`",
                body={**options, "domain": domain},
                read=read_started_export,
                repeatable=False,
                on_doubt=on_doubt,
                waits_for_room=waits_for_room,
            )
        )

    def read_export(self, job_id: str, *, deadline: float, started_at: float | None = None) -> ExportJob:
        """Read an export job's status. `started_at` is when this run started it, if it did; both on the clock."""
        return self._caller.send(
            Call(
                method="GET",
                path=f"/v1/static-export/jobs/{_segment(job_id)}",
                about=f"the job {job_id}",
                named_by="`job-id`",
                read=read_export_job,
                temporary_until=_settling(started_at),
            ),
            deadline=deadline,
        )

    def make_bundle(self, job_id: str, *, started_at: float | None = None) -> Bundle:
        """Pack a completed export, or make a fresh link to what is packed. `started_at` is as for `read_export`."""
        return self._caller.send(
            Call(
                method="POST",
                path=f"/v1/static-export/jobs/{_segment(job_id)}/bundle",
                about=f"the job {job_id}",
                named_by="`job-id`",
                read=read_bundle,
                contract_is_final=True,
                temporary_until={409: math.inf, **_settling(started_at)},
                bounds=Bounds(idle_seconds=BUNDLING_SECONDS, total_seconds=BUNDLING_SECONDS),
            )
        )

    def read_agent_job(self, project_id: str, job_id: str, *, deadline: float) -> AgentJob:
        """Read an agent's job."""
        return self._caller.send(
            Call(
                method="GET",
                path=f"/v2/agent/{_segment(project_id)}/job/{_segment(job_id)}",
                about=f"the project {project_id}, or in it the job {job_id}",
                named_by="`project-id`, `job-id`",
                read=read_agent_job,
            ),
            deadline=deadline,
        )


def _settling(started_at: float | None) -> dict[int, float]:
    """Return until when a 404 is temporary, for a job that this run started."""
    return {404: started_at + SETTLING_SECONDS} if started_at is not None else {}


def _segment(identifier: str) -> str:
    """Percent-encode an identifier for a path, slashes too, and the dots of one that is all dots."""
    return "".join("%2E" for _ in identifier) if identifier in {".", ".."} else quote(identifier, safe="")
