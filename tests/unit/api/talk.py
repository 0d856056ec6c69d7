"""The API's client on the simulated platform in virtual time, with scripted troubles."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from admin_api_simulator.faults import Operation
from docs_platform_action.api.admin_api import AdminApi
from docs_platform_action.api.room import Room
from docs_platform_action.errors import ActionError
from docs_platform_action.http.api_client import ApiClient
from docs_platform_action.http.pacing import Pacer
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from tests.keys import ADMIN_KEY
from tests.unit.fakes import RecordedEvents, http_client
from tests.virtual_platform import API_URL, Sent, Trouble, VirtualPlatform
from tests.virtual_time import BEGINNING, VirtualClock

DOMAIN = "docs.example.com"
EXPORT_ID = "export-finished"
Step = Trouble | Callable[[Sent], Trouble]


class Talk:
    """An `AdminApi` whose requests meet a script of troubles; the last one repeats. Pauses are the longest ones."""

    def __init__(
        self,
        *script: Step,
        tolerance: float = 300.0,
        seconds: float = 0.0,
        job: Job | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.job = job or Job(mode=Mode.EXPORT, domain=DOMAIN, job_id=EXPORT_ID)
        self.events = RecordedEvents()
        self.sent: list[Sent] = []
        self.times: list[float] = []
        self._script = list(script) or [None]
        platform = VirtualPlatform(
            self.clock, trouble=self._next, seconds=lambda _request: seconds, agent_seconds=0.0
        )
        self.api = AdminApi(
            client=ApiClient(
                http_client(platform, clock=self.clock), base_url=API_URL, key=ADMIN_KEY
            ),
            pacer=Pacer(self.clock),
            room=Room(self.clock, start_timeout_seconds=4500.0),
            clock=self.clock,
            outage_tolerance_seconds=tolerance,
            events=self.events,
            jitter=lambda ceiling: ceiling,
        )

    def _next(self, request: Sent) -> Trouble:
        self.sent.append(request)
        self.times.append(round(self.clock.elapsed, 6))
        step = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return step(request) if callable(step) else step

    def call(self, operation: Operation = "read_export", *, deadline: float = math.inf) -> Any:
        """Call the API. The deadline is in seconds from now."""
        at = self.clock.monotonic() + deadline
        calls: Mapping[Operation, Callable[[], Any]] = {
            "start_export": lambda: self.api.start_export(self.job, {}),
            "make_bundle": lambda: self.api.make_link(self.job),
            "read_agent_job": lambda: self.api.read_agent_job(self.job, deadline=at),
            "read_export": lambda: self.api.read_export(self.job, deadline=at),
        }
        return calls[operation]()

    def failure(
        self, operation: Operation = "read_export", *, deadline: float = math.inf
    ) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self.call(operation, deadline=deadline)
        return caught.value


def agent_job(job_id: str = "agent-pull-request") -> Job:
    return Job(mode=Mode.AGENT, project_id="demo-project", job_id=job_id, began_at=BEGINNING)
