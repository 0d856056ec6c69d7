"""The events of a run, for people.

The log is the listener. Nothing else happens because of an event.
"""

from collections.abc import Sequence
from typing import Protocol

from .errors import NoRoom
from .job import Job
from .models import Archive, BundleLink


class Listener(Protocol):
    """Receives the events of the jobs, on the threads of the jobs.

    A job is updated before the event: a new value is in the job already.
    """

    def job_begun(self, job: Job) -> None:
        """Announce that a job's turn has come."""

    def job_known(self, job: Job) -> None:
        """Announce that the platform's job, if there is one, is known.

        It was started, or is going to be collected. Its status has not been read yet.
        """

    def noted(self, job: Job, text: str, *, is_live: bool = False) -> None:
        """Announce something in one line, unless it is the same as the last one.

        If there are several jobs, it is shown at once only if `is_live`.
        """

    def status_read(self, job: Job) -> None:
        """Announce a new reading of the job."""

    def request_ended(
        self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None
    ) -> None:
        """Announce the end of a request to the API, such as `GET /v1/…`.

        `outcome` is its status or its error.
        """

    def retrying(
        self,
        job: Job,
        server: str,
        error: str,
        *,
        budget_seconds: float,
        pause_seconds: float,
    ) -> None:
        """Announce an outage of a server, such as `API`, and when the request is sent again."""

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        """Announce the end of an outage."""

    def waiting_for_room(self, job: Job, refusal: NoRoom) -> None:
        """Announce that the job's start was refused for lack of room, and is sent again later."""

    def link_made(self, job: Job, link: BundleLink) -> None:
        """Announce the link to the bundle, or a new one."""

    def storage_responded(
        self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None
    ) -> None:
        """Announce a response of the storage. `requested` is the requested range."""

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        """Announce the received bytes of the bundle, and its size if known."""

    def download_restarted(self, job: Job, reason: str) -> None:
        """Announce that the download restarts at the first byte."""

    def downloaded(self, job: Job, archive: Archive) -> None:
        """Announce that the download is complete."""

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        """Announce the number of unpacked files, and their size in bytes."""

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        """Announce a warning, whose first line is its title."""

    def job_ended(self, job: Job) -> None:
        """Announce that the job succeeded, failed or will not begin."""

    def heartbeat(self) -> None:
        """Announce, every second, that the run continues."""
