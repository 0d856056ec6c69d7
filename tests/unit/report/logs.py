"""The log of one job and that of several, to which tests announce events."""

import io
import itertools
from collections.abc import Callable
from typing import Any

from docs_platform_action.errors import ActionError
from docs_platform_action.job import Job
from docs_platform_action.jobs.progress import DisplayedEstimate
from docs_platform_action.models import API, Bundle, Downloaded, ExportJob
from docs_platform_action.report.console import Console
from docs_platform_action.report.multi_log import MultiLog
from tests.unit.fakes import Log, words
from tests.virtual_time import VirtualClock

MIB = 1024 * 1024


class LoggedJob:
    """A job and its log."""

    def __init__(self, *, in_workflow: bool = True, debugging: bool = False, **known: Any) -> None:
        self.clock = VirtualClock()
        self.job = Job(**{"mode": "export", "domain": "docs.example.com", "job_id": "se_1", **known})
        self.estimate = self.job.estimate = DisplayedEstimate()
        self.log = Log(self.job, self.clock, in_workflow=in_workflow, debugging=debugging)

    def announce(self, event: str, *arguments: object, **options: object) -> None:
        getattr(self.log, event)(self.job, *arguments, **options)

    def read(self, status: str, progress: float | None = None, pages: int | None = None, *, after_seconds: float = 0) -> None:
        self.clock.advance(after_seconds)
        reading = ExportJob(status=status, progress=progress, page_count=pages)
        now, queued = self.clock.monotonic(), status == ExportJob.QUEUED
        self.job.update_export(reading, now)
        self.estimate.update(now, progress, self.job.pages_so_far, queued=queued, ended=reading.has_ended)
        self.log.status_read(self.job)

    def retry(self, server: str = API, error: str = "An example of an error", seconds: float = 4) -> None:
        self.log.retrying(self.job, server, error, budget_seconds=300, pause_seconds=seconds)

    def recover(self, after_seconds: float, server: str = API) -> None:
        self.log.recovered(self.job, server, after_seconds=after_seconds)

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
        self.clock.advance(after_seconds)
        self.job.downloaded = Downloaded(size=size, sha256=f"9b1c{'0' * 56}e07a")
        self.log.downloaded(self.job)

    @property
    def console(self) -> Console:
        return self.log._console  # noqa: SLF001  # what else a run writes to the same log

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

    def __init__(self, *domains: str, in_workflow: bool = True, debugging: bool = False) -> None:
        self.clock = VirtualClock()
        self.stream = Stream()
        self.console = Console(self.stream, in_workflow=in_workflow, debugging=debugging)
        self.jobs = [Job(mode="export", domain=domain) for domain in domains or ("a.example", "b.example", "c.example")]
        self.log = MultiLog(self.console, self.clock, self.jobs)

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def shown(self) -> list[str]:
        """The live lines."""
        return words(list(itertools.takewhile(lambda line: not line.startswith(("The log of", "::group::")), self.lines)))

    @property
    def groups(self) -> list[str]:
        """The logs of the domains."""
        return list(itertools.dropwhile(lambda line: not line.startswith("::group::"), self.lines))

    def begin(self, *numbers: int) -> None:
        for number in numbers:
            self.jobs[number].began_at = self.clock.monotonic()
            self.log.job_begun(self.jobs[number])

    def start(self, number: int, job_id: str = "se_1", status: str | None = None) -> None:
        job = self.jobs[number]
        job.job_id, job.status, job.started_at = job_id, status, 0.0
        self.log.job_known(job)

    def read(self, number: int, status: str, progress: float | None = None, pages: int | None = None) -> None:
        job = self.jobs[number]
        job.update_export(ExportJob(status=status, progress=progress, page_count=pages), self.clock.monotonic())
        if job.estimate is not None:
            job.estimate.update(self.clock.monotonic(), progress, pages)
        self.log.status_read(job)

    def end(self, number: int, failure: ActionError | None = None, bundle: Bundle | None = None) -> None:
        job = self.jobs[number]
        job.failure, job.bundle, job.ended_at = failure, bundle, self.clock.monotonic()
        self.log.job_ended(job)

    def note(self, number: int, values_file: str = "values.yaml") -> None:
        """Write a line to the domain's own log."""
        self.jobs[number].values_file = values_file
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
