"""Events: everything that a run announces about its jobs. The logs and the outputs listen."""

from collections.abc import Sequence

from .job import Job


class Events:
    """Passes each event on to its listeners, in order; without listeners, nothing happens.

    A listener is a subclass that overrides the events it needs. Jobs run in several threads, and so do their events.
    """

    _listeners: "tuple[Events, ...]" = ()

    def __init__(self, *listeners: "Events") -> None:
        self._listeners = listeners

    def _listeners_of(self, job: Job) -> "Sequence[Events]":  # noqa: ARG002  # a log of several jobs has one listener for each
        return self._listeners

    def job_begun(self, job: Job) -> None:
        """Announce that a job's turn has come."""
        for listener in self._listeners_of(job):
            listener.job_begun(job)

    def job_known(self, job: Job) -> None:
        """Announce that the platform's job is known: started or attached to, and not read yet."""
        for listener in self._listeners_of(job):
            listener.job_known(job)

    def not_waiting(self, job: Job) -> None:
        """Announce that nobody waits for the job, because `wait` is `false`."""
        for listener in self._listeners_of(job):
            listener.not_waiting(job)

    def polling(self, job: Job) -> None:
        """Announce that the wait for the job begins."""
        for listener in self._listeners_of(job):
            listener.polling(job)

    def status_read(self, job: Job) -> None:
        """Announce a reading of the job, which is in the job already."""
        for listener in self._listeners_of(job):
            listener.status_read(job)

    def request_ended(self, job: Job, request: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        """Announce the end of a request to the API, such as `GET /v1/…`, with its status or what it failed with."""
        for listener in self._listeners_of(job):
            listener.request_ended(job, request, outcome=outcome, milliseconds=milliseconds, request_id=request_id)

    def retrying(self, job: Job, server: str, error: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Announce the first failed attempt of an outage of `API` or `STORAGE`, and when the next attempt comes.

        The budget is infinite while other jobs make room for this one.
        """
        for listener in self._listeners_of(job):
            listener.retrying(job, server, error, budget_seconds=budget_seconds, pause_seconds=pause_seconds)

    def recovered(self, job: Job, server: str, *, after_seconds: float) -> None:
        """Announce the end of an outage that was announced."""
        for listener in self._listeners_of(job):
            listener.recovered(job, server, after_seconds=after_seconds)

    def link_made(self, job: Job, *, masked: bool) -> None:
        """Announce the link to the bundle, which is in the job already. `masked` links are masked in the runner's log."""
        for listener in self._listeners_of(job):
            listener.link_made(job, masked=masked)

    def link_expired(self, job: Job, error: str) -> None:
        """Announce that the link no longer works, and that a fresh one is made."""
        for listener in self._listeners_of(job):
            listener.link_expired(job, error)

    def link_renewed(self, job: Job, *, masked: bool) -> None:
        """Announce a fresh link, which is in the job already."""
        for listener in self._listeners_of(job):
            listener.link_renewed(job, masked=masked)

    def link_redirected(self, job: Job, url: str) -> None:
        """Announce another address that the storage redirects to, with its secrets."""
        for listener in self._listeners_of(job):
            listener.link_redirected(job, url)

    def downloading(self, job: Job) -> None:
        """Announce that the download begins."""
        for listener in self._listeners_of(job):
            listener.downloading(job)

    def storage_responded(self, job: Job, address: str, *, status: int, requested: str | None, request_id: str | None) -> None:
        """Announce a response of the storage: from which address, without its query, and to which range."""
        for listener in self._listeners_of(job):
            listener.storage_responded(job, address, status=status, requested=requested, request_id=request_id)

    def download_progressed(self, job: Job, received: int, size: int | None) -> None:
        """Announce how many bytes of the bundle are there, and of how many if that is known."""
        for listener in self._listeners_of(job):
            listener.download_progressed(job, received, size)

    def download_restarted(self, job: Job, reason: str) -> None:
        """Announce that the download starts again at the first byte."""
        for listener in self._listeners_of(job):
            listener.download_restarted(job, reason)

    def download_moved(self, job: Job) -> None:
        """Announce that the bundle does not fit in the temporary folder, and is downloaded to the workspace's disk instead."""
        for listener in self._listeners_of(job):
            listener.download_moved(job)

    def downloaded(self, job: Job) -> None:
        """Announce that the whole bundle is there."""
        for listener in self._listeners_of(job):
            listener.downloaded(job)

    def archive_saved(self, job: Job) -> None:
        """Announce that the archive is at `bundle-path`, where that had to wait for its pages to be counted."""
        for listener in self._listeners_of(job):
            listener.archive_saved(job)

    def unpacking(self, job: Job) -> None:
        """Announce that the bundle is being unpacked."""
        for listener in self._listeners_of(job):
            listener.unpacking(job)

    def unpack_progressed(self, job: Job, files: int, size: int) -> None:
        """Announce how many files, and bytes in them, are unpacked."""
        for listener in self._listeners_of(job):
            listener.unpack_progressed(job, files, size)

    def unpacked(self, job: Job) -> None:
        """Announce that the site is at `site-path`."""
        for listener in self._listeners_of(job):
            listener.unpacked(job)

    def values_written(self, job: Job) -> None:
        """Announce that the Helm values file is written."""
        for listener in self._listeners_of(job):
            listener.values_written(job)

    def warning(self, job: Job, lines: Sequence[str]) -> None:
        """Announce something that is not a failure but should be seen. The first line is the title."""
        for listener in self._listeners_of(job):
            listener.warning(job, lines)

    def job_ended(self, job: Job) -> None:
        """Announce that the job has ended, well or with the failure in it, or that it is not begun."""
        for listener in self._listeners_of(job):
            listener.job_ended(job)

    def heartbeat(self, every_seconds: float) -> None:
        """Announce that the run goes on, for a log in which nothing was written for this long."""
        for listener in self._listeners:
            listener.heartbeat(every_seconds)
