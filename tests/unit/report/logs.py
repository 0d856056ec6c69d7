"""The log of a run, to which tests announce events."""

import io
import itertools
from typing import Any

from docs_platform_action.errors import ActionError
from docs_platform_action.job import Job
from docs_platform_action.models import API, ExportJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.log import Log
from tests.virtual_time import VirtualClock

MIB = 1024 * 1024


class LoggedJobs:
    """A run in a workflow, by default of three domains, and what its log shows. `known` is known of every job."""

    def __init__(self, *domains: str, debugging: bool = False, **known: Any) -> None:
        self.clock = VirtualClock()
        self.stream = io.StringIO()
        console = Console(self.stream, in_workflow=True, debugging=debugging)
        self.jobs = [Job(mode="export", domain=domain, **known) for domain in domains or ("a.example", "b.example", "c.example")]
        self.log = Log(console, self.clock, self.jobs, max_parallel=100)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    @property
    def shown(self) -> list[str]:
        """The live lines, without the title."""
        live = itertools.takewhile(lambda line: not line.startswith(("The log of", "::group::")), self.lines[1:])
        return [" ".join(line.split()) for line in live]

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def begin(self, *numbers: int) -> None:
        for number in numbers:
            self.jobs[number].began_at = self.clock.monotonic()
            self.log.job_begun(self.jobs[number])

    def start(self, number: int) -> None:
        self.jobs[number].job_id, self.jobs[number].started_at = "se_1", self.clock.monotonic()
        self.log.job_known(self.jobs[number])

    def read(self, number: int, status: str, progress: float | None = None, pages: int | None = None) -> None:
        job = self.jobs[number]
        job.record(ExportJob(status=status, progress=progress, page_count=pages), self.clock.monotonic())
        self.log.status_read(job)

    def end(self, number: int, failure: ActionError | None = None) -> None:
        job = self.jobs[number]
        job.failure, job.ended_at = failure, self.clock.monotonic()
        self.log.job_ended(job)

    def warn(self, number: int, *lines: str) -> None:
        self.log.warning(self.jobs[number], lines)

    def retry(self, number: int, server: str = API) -> None:
        self.log.retrying(self.jobs[number], server, "An example of an error", budget_seconds=300, pause_seconds=4)

    def recover(self, number: int, after_seconds: float = 1.0, server: str = API) -> None:
        self.log.recovered(self.jobs[number], server, after_seconds=after_seconds)

    def heartbeat(self, after_seconds: float = 55) -> str:
        """Call the heartbeat after a silence; return what it shows."""
        self.clock.advance(after_seconds)
        before = len(self.shown)
        self.log.heartbeat()
        return " ".join(self.shown[before:])
