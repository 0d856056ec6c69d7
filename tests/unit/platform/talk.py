"""The API's client on the simulated platform in virtual time, with scripted troubles."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.faults import Operation
from docs_platform_action.errors import ActionError
from docs_platform_action.http.json_response import JsonResponse
from docs_platform_action.http.transport import Request
from docs_platform_action.job import Job
from docs_platform_action.jobs.agent import Agent
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import ExportJob
from docs_platform_action.platform.calls import Answer, Call, ExportForm
from docs_platform_action.platform.forms import ByDomain
from docs_platform_action.platform.operations import Platform
from docs_platform_action.platform.resources import read_export_job
from docs_platform_action.platform.room import Room
from docs_platform_action.platform.sending import Sender
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, HOST, RecordedEvents, http_client
from tests.virtual_platform import API_URL, Sent, Trouble, VirtualPlatform
from tests.virtual_time import BEGINNING, VirtualClock

START: Final = "start_export"
READ: Final = "read_export"
BUNDLE: Final = "make_bundle"
AGENT: Final = "read_agent_job"

DOMAIN: Final = "docs.example.com"
EXPORT_ID: Final = "export-finished"
RUNNING: Final = Fault(json={"status": "running"})
BY_DOMAIN: Final = ByDomain()

Step = Trouble | Callable[[Sent], Trouble]


class Talk:
    """A `Platform` whose requests meet a script of troubles.

    The last trouble repeats. Pauses are the longest ones.
    """

    def __init__(
        self,
        *script: Step,
        tolerance: float = 300.0,
        seconds: float = 0.0,
        job: Job | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.job = job or Job(kind=Export(), domain=DOMAIN, job_id=EXPORT_ID)
        self.events = RecordedEvents()
        self.sent: list[Sent] = []
        self.times: list[float] = []
        self._script = list(script) or [None]
        transport = VirtualPlatform(
            self.clock, trouble=self._next, seconds=lambda _request: seconds, agent_seconds=0.0
        )
        client = http_client(transport, clock=self.clock)
        self.redactor = client.redactor
        self.platform = Platform(
            Sender(
                client=client,
                base_url=API_URL,
                key=ADMIN_KEY,
                room=Room(self.clock, start_timeout_seconds=4500.0),
                clock=self.clock,
                outage_tolerance_seconds=tolerance,
                listener=self.events,
                jitter=lambda ceiling: ceiling,
            )
        )

    def _next(self, request: Sent) -> Trouble:
        self.sent.append(request)
        self.times.append(round(self.clock.elapsed, 6))
        step = self._script[0]
        if len(self._script) > 1:
            self._script.pop(0)
        return step(request) if callable(step) else step

    def call(self, operation: Operation = READ, *, deadline: float = math.inf) -> Any:
        """Call the API. The deadline is in seconds from now."""
        at = self.clock.monotonic() + deadline
        calls: Mapping[Operation, Callable[[], Any]] = {
            START: lambda: self.platform.start_export(self.job, {}),
            BUNDLE: lambda: self.platform.make_link(self.job),
            AGENT: lambda: self.platform.read_agent_job(self.job, deadline=at),
            READ: lambda: self.platform.read_export(self.job, deadline=at),
        }
        return calls[operation]()

    def failure(self, operation: Operation = READ, *, deadline: float = math.inf) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self.call(operation, deadline=deadline)
        return caught.value


def export_job() -> Job:
    return Job(kind=Export(), domain=DOMAIN)


def collected_job() -> Job:
    return Job(kind=Collect(), job_id=EXPORT_ID, began_at=BEGINNING)


def agent_job(job_id: str = "agent-pull-request") -> Job:
    return Job(kind=Agent(), project_id="demo-project", job_id=job_id, began_at=BEGINNING)


def job_for(operation: Operation) -> Job:
    """Return a job of which the operation is a first request."""
    if operation == START:
        return export_job()
    if operation == AGENT:
        return agent_job()
    return collected_job()


def failed(operation: Operation, *, after_success: bool = False, **fault: Any) -> ActionError:
    """Return the failure of an operation without retries."""
    script = [Fault(**fault)]
    if after_success:
        script.insert(0, RUNNING)
    talk = Talk(*script, job=job_for(operation), tolerance=0.0)
    if after_success:
        talk.call(READ)
    return talk.failure(operation)


def answer_of(
    status: int,
    body: object = None,
    *,
    job: Job | None = None,
    form: ExportForm | None = BY_DOMAIN,
    method: str = "GET",
    is_start: bool = False,
    is_web_page: bool = False,
    is_api_known: bool = False,
    accepted_methods: frozenset[str] = frozenset(),
    base_url: str = BASE_URL,
    field_with_key: str | None = None,
    temporary_until: Mapping[int, float] | None = None,
) -> Answer[ExportJob]:
    """Return an answer to a call, which reads an export job."""
    call = Call(
        job=job or job_for(START if is_start else READ),
        action="read exports",
        request=Request(method=method, url="/jobs"),
        read=read_export_job,
        form=form,
        is_start=is_start,
        temporary_until=temporary_until or {},
    )
    response = JsonResponse(
        host=HOST,
        status=status,
        headers={},
        body=body,
        field_with_key=field_with_key,
        description="text/plain, 7 bytes",
        is_web_page=is_web_page,
        retry_after_seconds=None,
        request_id=None,
    )
    return Answer(
        call=call,
        response=response,
        base_url=base_url,
        is_api_known=is_api_known,
        accepted_methods=accepted_methods,
    )
