"""The guard around the log: a fault in it cannot break a run."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from ..errors import NoRoom
from ..job import Job
from ..models import Archive, BundleLink
from .console import Console
from .log import Log

_PART: Final = "A part of the log"  # what cannot be written


class GuardedListener:
    """Implements `Listener`: passes each event on. The listener's first fault becomes a warning."""

    def __init__(self, listener: Log, console: Console) -> None:
        self._listener = listener
        self._console = console

    def job_begun(self, job: Job) -> None:
        with self._guard():
            self._listener.job_begun(job)

    def job_known(self, job: Job) -> None:
        with self._guard():
            self._listener.job_known(job)

    def noted(self, job: Job, text: str, *, is_live: bool = False) -> None:
        with self._guard():
            self._listener.noted(job, text, is_live=is_live)

    def status_read(self, job: Job) -> None:
        with self._guard():
            self._listener.status_read(job)

    def request_ended(
        self,
        job: Job,
        request: str,
        *,
        outcome: str,
        milliseconds: float,
        request_id: str | None,
    ) -> None:
        with self._guard():
            self._listener.request_ended(
                job,
                request,
                outcome=outcome,
                milliseconds=milliseconds,
                request_id=request_id,
            )

    def retrying(
        self,
        job: Job,
        server: str,
        error: str,
        *,
        budget_seconds: float,
        pause_seconds: float,
    ) -> None:
        with self._guard():
            self._listener.retrying(
                job,
                server,
                error,
                budget_seconds=budget_seconds,
                pause_seconds=pause_seconds,
            )

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        with self._guard():
            self._listener.recovered(job, server, after_seconds=after_seconds)

    def waiting_for_room(self, job: Job, refusal: NoRoom) -> None:
        with self._guard():
            self._listener.waiting_for_room(job, refusal)

    def link_made(self, job: Job, link: BundleLink) -> None:
        with self._guard():
            self._listener.link_made(job, link)

    def storage_responded(
        self,
        job: Job,
        address: str,
        *,
        status: int,
        requested: str | None,
        request_id: str | None,
    ) -> None:
        with self._guard():
            self._listener.storage_responded(
                job,
                address,
                status=status,
                requested=requested,
                request_id=request_id,
            )

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        with self._guard():
            self._listener.download_progressed(job, received, size)

    def download_restarted(self, job: Job, reason: str) -> None:
        with self._guard():
            self._listener.download_restarted(job, reason)

    def downloaded(self, job: Job, archive: Archive) -> None:
        with self._guard():
            self._listener.downloaded(job, archive)

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        with self._guard():
            self._listener.unpack_progressed(job, files, size)

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        with self._guard():
            self._listener.warning(job, lines)

    def job_ended(self, job: Job) -> None:
        with self._guard():
            self._listener.job_ended(job)

    def heartbeat(self) -> None:
        with self._guard():
            self._listener.heartbeat()

    def close(self) -> None:
        """Close the log."""
        with self._guard():
            self._listener.close()

    def _guard(self) -> AbstractContextManager[None]:
        return self._console.bugs_as_warnings(_PART)
