"""The log of one job and that of several, to which tests announce events."""

import io
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from docs_platform_action.errors import ActionError
from docs_platform_action.job import DOWNLOAD, Delivered, Job
from docs_platform_action.models import API, Bundle, Downloaded, ExportJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.log import Log
from tests.unit.fakes import ReadableLog, words
from tests.virtual_time import VirtualClock

MIB = 1024 * 1024


class LoggedJob:
    """A job and its log. The run begins to work on the job at once."""

    def __init__(self, *, in_workflow: bool = True, debugging: bool = False, **known: Any) -> None:
        self.clock = VirtualClock()
        began_at = self.clock.monotonic()
        self.job = Job(**{"mode": "export", "domain": "docs.example.com", "job_id": "se_1", "began_at": began_at, **known})
        self.log = ReadableLog(self.job, clock=self.clock, in_workflow=in_workflow, debugging=debugging)

    def announce(self, event: str, *arguments: object, **options: object) -> None:
        getattr(self.log, event)(self.job, *arguments, **options)

    def enter(self, phase: str) -> None:
        """Begin a phase of the job."""
        self.job.start_phase(phase, self.clock.monotonic())

    def read(self, status: str, progress: float | None = None, pages: int | None = None, *, after_seconds: float = 0) -> None:
        self.clock.advance(after_seconds)
        self.job.record(ExportJob(status=status, progress=progress, page_count=pages), self.clock.monotonic())
        self.log.status_read(self.job)

    def retry(self, server: str = API, error: str = "An example of an error", seconds: float = 4) -> None:
        self.log.retrying(self.job, server, error, budget_seconds=300, pause_seconds=seconds)

    def limit(self) -> None:
        """Refuse a start because of a limit."""
        self.announce("retrying", API, "An example of an error", budget_seconds=300, pause_seconds=4, is_limit=True)

    def recover(self, after_seconds: float, server: str = API, *, is_limit: bool = False) -> None:
        self.log.recovered(self.job, server, after_seconds=after_seconds, is_limit=is_limit)

    def heartbeat(self, after_seconds: float = 60) -> None:
        self.clock.advance(after_seconds)
        self.log.heartbeat()

    def receive(self, count: int, size: int | None = None, *, after_seconds: float = 10) -> None:
        self.clock.advance(after_seconds)
        self.log.download_progressed(self.job, count, size)

    def respond(self, *statuses: int) -> None:
        """Open connections to the storage."""
        for status in statuses:
            self.announce("storage_responded", "https://s.example.com/b?x=1", status=status, requested=None, request_id=None)

    def downloaded(self, size: int, *, after_seconds: float = 0) -> None:
        self.enter(DOWNLOAD)
        self.clock.advance(after_seconds)
        self.job.delivered = replace(self.job.delivered, downloaded=Downloaded(size=size, sha256=f"9b1c{'0' * 56}e07a"))
        self.log.downloaded(self.job)

    @property
    def console(self) -> Console:
        return self.log.console  # what else a run writes to the same log

    @property
    def lines(self) -> list[str]:
        return self.log.lines

    @property
    def text(self) -> str:
        return "\n".join(self.log.lines)


class Stream(io.StringIO):
    """A stream that calls a function once, when it writes a marker."""

    marker = ""

    def interrupt(self, marker: str, callback: Callable[[], None]) -> None:
        self.marker, self.callback = marker, callback

    def write(self, text: str) -> int:
        if self.marker and self.marker in text:
            self.marker = ""
            self.callback()
        return super().write(text)


class LoggedJobs:
    """A run of several domains, and what its log shows."""

    def __init__(self, *domains: str, in_workflow: bool = True, debugging: bool = False, max_parallel: int = 100) -> None:
        self.clock = VirtualClock()
        self.stream = Stream()
        self.console = Console(self.stream, in_workflow=in_workflow, debugging=debugging)
        self.jobs = [Job(mode="export", domain=domain) for domain in domains or ("a.example", "b.example", "c.example")]
        self.log = Log(self.console, self.clock, self.jobs, max_parallel=max_parallel)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def shown(self) -> list[str]:
        """The live lines, without the title."""
        return words(list(itertools.takewhile(lambda line: not line.startswith(("The log of", "::group::")), self.lines[1:])))

    @property
    def groups(self) -> list[str]:
        """The logs of the domains."""
        return list(itertools.dropwhile(lambda line: not line.startswith("::group::"), self.lines))

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def begin(self, *numbers: int) -> None:
        for number in numbers:
            self.jobs[number].began_at = self.clock.monotonic()
            self.log.job_begun(self.jobs[number])

    def start(self, number: int, job_id: str = "se_1") -> None:
        job = self.jobs[number]
        job.job_id, job.started_at = job_id, self.clock.monotonic()
        self.log.job_known(job)

    def read(self, number: int, status: str, progress: float | None = None, pages: int | None = None) -> None:
        job = self.jobs[number]
        job.record(ExportJob(status=status, progress=progress, page_count=pages), self.clock.monotonic())
        self.log.status_read(job)

    def end(self, number: int, failure: ActionError | None = None, link: Bundle | None = None) -> None:
        job = self.jobs[number]
        job.failure, job.link, job.ended_at = failure, link, self.clock.monotonic()
        self.log.job_ended(job)

    def note(self, number: int, values_file: str = "values.yaml") -> None:
        """Write a line to the domain's own log."""
        self.jobs[number].delivered = Delivered(values_file=values_file)
        self.log.values_written(self.jobs[number])

    def warn(self, number: int, *lines: str) -> None:
        self.log.warning(self.jobs[number], lines)

    def debug(self, number: int) -> None:
        self.log.request_ended(self.jobs[number], "GET /v1/x", outcome="200", milliseconds=7, request_id=None)

    def retry(self, number: int, server: str = API, error: str = "An example of an error") -> None:
        self.log.retrying(self.jobs[number], server, error, budget_seconds=300, pause_seconds=4)

    def recover(self, number: int, after_seconds: float = 1.0, server: str = API) -> None:
        self.log.recovered(self.jobs[number], server, after_seconds=after_seconds)

    def heartbeat(self, after_seconds: float = 55) -> str:
        """Call the heartbeat after a silence; return what it shows."""
        self.clock.advance(after_seconds)
        before = len(self.shown)
        self.log.heartbeat()
        return " ".join(self.shown[before:])
