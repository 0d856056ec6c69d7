"""Events: everything that a run announces about its jobs. The logs and the outputs listen."""

from collections.abc import Callable, Sequence

from .job import Job


class Events:
    """A listener that ignores every event; a subclass overrides those that it needs. Events come from several threads."""

    def job_begun(self, job: Job) -> None:
        """Announce that a job's turn has come."""

    def job_known(self, job: Job) -> None:
        """Announce that the platform's job is known: started or attached to, and not read yet."""

    def not_waiting(self, job: Job) -> None:
        """Announce that nobody waits for the job, because `wait` is `false`."""

    def polling(self, job: Job) -> None:
        """Announce that the wait for the job begins."""

    def status_read(self, job: Job) -> None:
        """Announce a reading of the job, which is in the job already."""

    def request_ended(self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        """Announce the end of a request to the API, such as `GET /v1/…`, with its status or what it failed with."""

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Announce the first failed attempt of an outage of `API` or `STORAGE`, and when the next attempt comes.

        The budget is infinite while other jobs make room for this one.
        """

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        """Announce the end of an outage that was announced."""

    def link_made(self, job: Job, *, masked: bool) -> None:
        """Announce the link to the bundle, which is in the job already. `masked` links are masked in the runner's log."""

    def link_expired(self, job: Job, error: str) -> None:
        """Announce that the link no longer works, and that a fresh one is made."""

    def link_renewed(self, job: Job, *, masked: bool) -> None:
        """Announce a fresh link, which is in the job already."""

    def link_redirected(self, job: Job, url: str) -> None:
        """Announce another address that the storage redirects to, with its secrets."""

    def downloading(self, job: Job) -> None:
        """Announce that the download begins."""

    def storage_responded(self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None) -> None:
        """Announce a response of the storage: from which address, without its query, and to which range."""

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        """Announce how many bytes of the bundle are there, and of how many if that is known."""

    def download_restarted(self, job: Job, reason: str) -> None:
        """Announce that the download starts again at the first byte."""

    def download_moved(self, job: Job) -> None:
        """Announce that the bundle does not fit in the temporary folder, and is downloaded to the workspace's disk instead."""

    def downloaded(self, job: Job) -> None:
        """Announce that the whole bundle is there."""

    def archive_saved(self, job: Job) -> None:
        """Announce that the archive is at `bundle-path`, where that had to wait for its pages to be counted."""

    def unpacking(self, job: Job) -> None:
        """Announce that the bundle is being unpacked."""

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        """Announce how many files, and bytes in them, are unpacked."""

    def unpacked(self, job: Job) -> None:
        """Announce that the site is at `site-path`."""

    def values_written(self, job: Job) -> None:
        """Announce that the Helm values file is written."""

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        """Announce something that is not a failure but should be seen. The first line is the title."""

    def job_ended(self, job: Job) -> None:
        """Announce that the job has ended, well or with the failure in it, or that it is not begun."""

    def heartbeat(self, every_seconds: float) -> None:
        """Announce that the run goes on, for a log in which nothing was written for this long."""


class Listeners(Events):
    """Passes each event on to its listeners, in order."""

    def __init__(self, *listeners: Events) -> None:
        self._listeners = listeners

    def _listeners_of(self, _job: Job) -> Sequence[Events]:
        return self._listeners

    def heartbeat(self, every_seconds: float) -> None:
        """Pass on the one event that is about no job."""
        for listener in self._listeners:
            listener.heartbeat(every_seconds)


def _pass_on(event: str) -> Callable[..., None]:
    def announce(self: Listeners, job: Job, *details: object, **named_details: object) -> None:
        for listener in self._listeners_of(job):
            getattr(listener, event)(job, *details, **named_details)

    return announce


for _event in vars(Events).keys() - vars(Listeners).keys():  # what is announced has one list: the methods of `Events`
    if not _event.startswith("_"):
        setattr(Listeners, _event, _pass_on(_event))
