"""Everything that a run announces about its jobs. The logs and the outputs listen."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from .job import Job


def _forwarded(event: Callable[..., None]) -> Callable[..., None]:
    @wraps(event)
    def forward(self: "Events", *args: Any, **kwargs: Any) -> None:
        self._forward(event.__name__, *args, **kwargs)

    return forward


def _with_forwarded_events(events: "type[Events]") -> "type[Events]":
    for name, event in [*vars(events).items()]:
        if not name.startswith("_"):
            setattr(events, name, _forwarded(event))
    return events


@_with_forwarded_events
class Events:
    """Forwards each event to the method of the same name of each listener. Events come from the threads of the jobs.

    Subclasses override the events that they need.
    """

    _listeners: "tuple[Events, ...]" = ()

    def __init__(self, *listeners: "Events") -> None:
        self._listeners = listeners

    def _forward(self, event: str, *args: Any, **kwargs: Any) -> None:
        for listener in self._listeners:
            getattr(listener, event)(*args, **kwargs)

    def job_begun(self, job: Job) -> None:
        """Announce that a job's turn has come."""

    def job_known(self, job: Job) -> None:
        """Announce that the platform's job is known: started or collected, and not read yet."""

    def not_waiting(self, job: Job) -> None:
        """Announce that the run does not wait for the job, because `wait` is `false`."""

    def polling(self, job: Job) -> None:
        """Announce that the wait for the job begins."""

    def status_read(self, job: Job) -> None:
        """Announce a new reading of the job."""

    def request_ended(self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        """Announce the end of a request to the API, such as `GET /v1/…`, with its status or its error."""

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Announce an outage of `API` or `STORAGE`. An infinite budget lasts while other jobs are running."""

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        """Announce the end of an outage."""

    def link_made(self, job: Job) -> None:
        """Announce the link to the bundle, which is in the job already."""

    def link_expired(self, job: Job, error: str) -> None:
        """Announce that the link no longer works, or will not soon, and that a new one is requested."""

    def link_renewed(self, job: Job) -> None:
        """Announce a new link, which is in the job already."""

    def link_redirected(self, job: Job, url: str) -> None:
        """Announce a redirect of the storage to another signed link."""

    def downloading(self, job: Job) -> None:
        """Announce that the download begins."""

    def storage_responded(self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None) -> None:
        """Announce a response of the storage. `requested` is the requested range."""

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        """Announce the received bytes of the bundle, and its size if known."""

    def download_restarted(self, job: Job, reason: str) -> None:
        """Announce that the download restarts at the first byte."""

    def downloaded(self, job: Job) -> None:
        """Announce that the download is complete."""

    def archive_saved(self, job: Job) -> None:
        """Announce that the archive is saved at `bundle-path`."""

    def unpacking(self, job: Job) -> None:
        """Announce that unpacking begins."""

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        """Announce the number of unpacked files, and their size in bytes."""

    def unpacked(self, job: Job) -> None:
        """Announce that the site is at `site-path`."""

    def values_written(self, job: Job) -> None:
        """Announce that the Helm values file is written."""

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        """Announce a warning, whose first line is its title."""

    def job_ended(self, job: Job) -> None:
        """Announce that the job succeeded, failed or will not begin."""

    def heartbeat(self) -> None:
        """Announce, every second, that the run continues."""
