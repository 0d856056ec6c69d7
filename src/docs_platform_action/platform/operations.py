"""The operations of the administrative API.

Source: the API's description (`docs/admin-api.openapi.yaml`). What differs between the forms of its
exports is in `forms`, and what is decided about each answer in `answers`.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Final

from ..errors import BadResponse, JobFailed, NoRoom
from ..http.attempts import backoff_pauses
from ..http.json_response import quote
from ..http.transport import Request
from ..job import Job
from ..models import AgentJob, BundleLink, ExportJob
from ..text import format_clock
from .advice import IN_FRONT, NO_LINK
from .calls import Call, path_segment, settles_at
from .forms import form_of
from .resources import read_agent_job, read_started
from .sending import Sender, Unannounced

LINK_SECONDS: Final = 30.0  # how long the link of a completed job may be missing


class Platform:
    """The operations of one platform, for all jobs of a run.

    A `deadline` is on the clock's `monotonic`. Every operation raises what `Sender.send` does.
    """

    def __init__(self, sender: Sender) -> None:
        self.room = sender.room
        self.outage_tolerance_seconds = sender.outage_tolerance_seconds
        self._sender = sender
        self._clock = sender.clock
        self._started_jobs: dict[str, Job] = {}  # by the platform's id

    def announce(self, answered: Unannounced[None]) -> None:
        """Announce the answer to a start."""
        self._sender.announce(answered)

    def start_export(self, job: Job, options: Mapping[str, object]) -> Unannounced[None]:
        """Start a static export of a job's site, and record in the job that it has started.

        The caller announces the result once it has written the job's id: a log may block.
        Also raises `NoRoom` and `StartHeld`.
        """
        form = form_of(job)
        call = Call(
            job=job,
            action="start exports",
            request=form.start(job, options),
            read=partial(self._record_start, job=job),
            form=form,
            is_start=True,
        )
        try:
            started = self._sender.send_unannounced(call)
        except NoRoom as refusal:
            if refusal.running_job_id in self._started_jobs:
                refusal.own_site = self._started_jobs[refusal.running_job_id].site
            self.room.refuse(job, refusal)
            raise
        self.room.accept(job)
        return started

    def _record_start(self, body: Mapping[str, object], *, job: Job) -> None:
        job_id, status = read_started(body)
        # atomic: of two threads, one is the first
        first = self._started_jobs.setdefault(job_id, job)
        if first is not job:
            raise BadResponse(
                f"the platform returned the same job for {first.site} and this site",
                cause=IN_FRONT["cause"],
                remedy="Check the dashboard for an export of this site, and report this to the "
                "platform.",
            )
        job.record_start(job_id, status, self._clock.monotonic())

    def read_export(self, job: Job, deadline: float) -> ExportJob:
        """Return the status of an export job."""
        form = form_of(job)
        call = Call(
            job=job,
            action="read exports",
            request=form.status(job),
            read=form.read_status,
            form=form,
            temporary_until={404: settles_at(job)},
            deadline=deadline,
        )
        return self._sender.send(call)

    def make_link(self, job: Job) -> BundleLink:
        """Make a new link to the bundle of a completed export."""
        call = form_of(job).link(job)
        if call is None:
            return self._read_link(job)
        return self._sender.send(call)

    def _read_link(self, job: Job) -> BundleLink:
        """Read a completed job until it has a link, which may come a moment later.

        A reading without a link is not an outage. Raises also `JobFailed`, and `BadResponse` if the
        job has no link in the end.
        """
        give_up_at = self._clock.monotonic() + LINK_SECONDS
        pauses = backoff_pauses(self._sender.jitter)
        was_noted = False
        while True:
            now = self._clock.monotonic()
            reading = self.read_export(job, math.inf)
            if reading.has_ended:
                job.record(reading)
            if reading.link is not None:
                return reading.link
            if reading.status == ExportJob.FAILED:
                raise self.export_failure(job)
            if now >= give_up_at:
                raise self._missing_link(reading)
            if not was_noted:
                was_noted = True
                self._sender.listener.noted(
                    job,
                    "The completed export has no bundle link yet. "
                    f"Reading it again for up to {format_clock(LINK_SECONDS)}.",
                )
            self._clock.sleep(min(next(pauses), give_up_at - now))

    def _missing_link(self, reading: ExportJob) -> BadResponse:
        quotes = quote(self._sender.host, reading.error)
        return BadResponse(
            "the completed export has no bundle link",
            details=(
                "The API returned no `bundleUrl` that is an absolute https address.",
                *quotes,
            ),
            cause="" if quotes else NO_LINK["cause"],
            remedy=NO_LINK["remedy"],
        )

    def export_failure(self, job: Job) -> JobFailed:
        """Return the failure of an export whose status is `failed`."""
        reason = job.reading.error if job.reading is not None else None
        return JobFailed(
            "the export failed on the platform",
            details=quote(self._sender.host, reason) or ("The API gave no reason.",),
            remedy=f"Check job {job.job_id} in the dashboard, fix the site, and run the workflow "
            "again.",
        )

    def read_agent_job(self, job: Job, deadline: float) -> AgentJob:
        """Return the status of an agent job."""
        path = f"/v2/agent/{path_segment(job.project_id)}/job/{path_segment(job.job_id)}"
        call = Call(
            job=job,
            action="read agent jobs",
            request=Request(method="GET", url=path),
            read=partial(read_agent_job, job_id=job.job_id),
            temporary_until={404: settles_at(job)},
            deadline=deadline,
        )
        return self._sender.send(call)
