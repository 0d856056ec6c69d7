"""Everything that a run announces about its jobs. The logs and the outputs listen."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec

from .job import Job

P = ParamSpec("P")


def _forwarded(event: Callable[Concatenate["Events", Job, P], None]) -> Callable[Concatenate["Events", Job, P], None]:
    """Forward an event to the method of the same name of each listener."""

    @wraps(event)
    def forward(self: "Events", job: Job, /, *args: P.args, **kwargs: P.kwargs) -> None:
        self._forward(event.__name__, job, *args, **kwargs)

    return forward


class Events:
    """Forwards each event to its listeners, which override the events they need. Events come from the threads of the jobs."""

    _listeners: "tuple[Events, ...]" = ()

    def __init__(self, *listeners: "Events") -> None:
        self._listeners = listeners

    def _forward(self, event: str, job: Job, *args: object, **kwargs: object) -> None:
        for listener in self._listeners:
            getattr(listener, event)(job, *args, **kwargs)

    @_forwarded
    def job_begun(self, job: Job) -> None:
        """Announce that a job's turn has come."""

    @_forwarded
    def job_known(self, job: Job) -> None:
        """Announce that the platform's job is known: started or attached to, and not read yet."""

    @_forwarded
    def not_waiting(self, job: Job) -> None:
        """Announce that the run does not wait for the job, because `wait` is `false`."""

    @_forwarded
    def polling(self, job: Job) -> None:
        """Announce that the wait for the job begins."""

    @_forwarded
    def status_read(self, job: Job) -> None:
        """Announce a new reading of the job."""

    @_forwarded
    def request_ended(self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        """Announce the end of a request to the API, such as `GET /v1/…`, with its status or its error."""

    @_forwarded
    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Announce an outage of `API` or `STORAGE`. An infinite budget lasts while other jobs are running."""

    @_forwarded
    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        """Announce the end of an outage."""

    @_forwarded
    def link_made(self, job: Job) -> None:
        """Announce the link to the bundle, which is in the job already."""

    @_forwarded
    def link_expired(self, job: Job, error: str) -> None:
        """Announce that the link no longer works and that a fresh one is requested."""

    @_forwarded
    def link_renewed(self, job: Job) -> None:
        """Announce a fresh link, which is in the job already."""

    @_forwarded
    def link_redirected(self, job: Job, url: str) -> None:
        """Announce a redirect of the storage to another signed link."""

    @_forwarded
    def downloading(self, job: Job) -> None:
        """Announce that the download begins."""

    @_forwarded
    def storage_responded(self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None) -> None:
        """Announce a response of the storage. `requested` is the requested range."""

    @_forwarded
    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        """Announce the received bytes of the bundle, and its size if known."""

    @_forwarded
    def download_restarted(self, job: Job, reason: str) -> None:
        """Announce that the download restarts at the first byte."""

    @_forwarded
    def download_moved(self, job: Job) -> None:
        """Announce that the download moves to the workspace's disk, because the temporary folder is too small."""

    @_forwarded
    def downloaded(self, job: Job) -> None:
        """Announce that the download is complete."""

    @_forwarded
    def archive_saved(self, job: Job) -> None:
        """Announce that the archive is saved at `bundle-path`, after its pages were counted."""

    @_forwarded
    def unpacking(self, job: Job) -> None:
        """Announce that unpacking begins."""

    @_forwarded
    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        """Announce the number of unpacked files, and their size in bytes."""

    @_forwarded
    def unpacked(self, job: Job) -> None:
        """Announce that the site is at `site-path`."""

    @_forwarded
    def values_written(self, job: Job) -> None:
        """Announce that the Helm values file is written."""

    @_forwarded
    def warning(self, job: Job, lines: Sequence[str]) -> None:
        """Announce a warning, whose first line is its title."""

    @_forwarded
    def job_ended(self, job: Job) -> None:
        """Announce that the job succeeded, failed or will not begin."""

    def heartbeat(self) -> None:
        """Announce, every second, that the run continues."""
        for listener in self._listeners:
            listener.heartbeat()
