"""One job on a scripted platform, in virtual time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from docs_platform_action.bundle.deliver import Delivery
from docs_platform_action.errors import ActionError
from docs_platform_action.inputs.settings import DeliverySettings, JobSettings, Mode, WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import start_site
from docs_platform_action.jobs.runner import FUNCTIONS, job_of
from docs_platform_action.models import AgentJob, Bundle, ExportJob, StartedExport
from tests.unit.fakes import FakeApiClient, RecordedEvents, context
from tests.virtual_time import VirtualClock

WAITING = WaitSettings(timeout_seconds=600, poll_interval_seconds=1, max_poll_interval_seconds=1)
EXPORT = JobSettings(mode=Mode.EXPORT, waiting=WAITING, domain="docs.example.com")
AGENT = JobSettings(mode=Mode.AGENT, waiting=WAITING, project_id="prj_1", job_id="aj_1")
BUNDLE = Bundle(url="https://storage.example.com/se_1/bundle.tar.gz?X-Signature=abc")


class Scripted:
    """A job and its platform, which returns these readings, the last one repeatedly, and records each event in order."""

    def __init__(
        self,
        *readings: ExportJob | AgentJob | Exception,
        settings: JobSettings = EXPORT,
        started: StartedExport | Exception = StartedExport(job_id="se_1", status="queued"),  # noqa: B008  # it is frozen
        bundle: Bundle | Exception = BUNDLE,
        **changes: Any,
    ) -> None:
        self.clock = VirtualClock()
        self.client = FakeApiClient(self.clock)
        self.events = RecordedEvents()
        self.settings = replace(settings, **changes)
        self.job = job_of(self.settings)
        self.options: Mapping[str, object] | None = None
        self.delivered: list[tuple[Bundle | None, DeliverySettings]] = []
        self._readings, self._started, self._bundle = [*readings], started, bundle

    def run(self) -> Job:
        """Run the job, and return it. Raises its failure."""
        shared = context(self.clock, self.events, api=self)
        with patch.object(Delivery, "deliver", lambda delivery: self._deliver(delivery)):
            if self.settings.mode is Mode.EXPORT:
                start_site(self.job, self.settings, shared)
            if self.settings.wait:
                FUNCTIONS[self.settings.mode](self.job, self.settings, shared)
        return self.job

    def failure(self) -> ActionError:
        """Run the job, and return its failure."""
        with pytest.raises(ActionError) as caught:
            self.run()
        return caught.value

    def start_export(self, job: Job, options: Mapping[str, object]) -> Any:
        self.options = options
        return self._answer("start", job, self._started)

    def read_export(self, job: Job, *, deadline: float) -> Any:
        del deadline
        return self._answer("read", job, self._readings.pop(0) if len(self._readings) > 1 else self._readings[0])

    read_agent_job = read_export

    def make_bundle(self, job: Job) -> Any:
        return self._answer("bundle", job, self._bundle)

    def _answer(self, request: str, job: Job, answer: object) -> object:
        self.events.seen.append((request, job))
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _deliver(self, delivery: Delivery) -> None:
        self.delivered.append((delivery.job.link, delivery.settings))
