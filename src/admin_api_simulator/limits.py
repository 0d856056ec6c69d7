"""The limits for starts of exports: active exports of a deployment, and accepted starts an hour."""

import math
from dataclasses import dataclass

from admin_api_simulator.clock import Clock
from admin_api_simulator.jobs import ExportJob, JobStore
from admin_api_simulator.responses import Response, error_response, json_response

ACTIVE_EXPORT = "An export of this deployment is queued or running."


@dataclass(frozen=True, kw_only=True)
class StartQuota:
    """The maximum number of exports that an organization may start in an hour.

    All domains and both forms of the API share it.

    - `starts`: accepted starts an hour. `hour_seconds`: length of that hour.
    - `by_clock=True`: the count begins again with each hour of the clock, at each multiple of
      `hour_seconds` since 1970 in UTC. Otherwise the hour slides.
    - `counts_refused`: starts that the quota refuses count, too.
    - `sends_retry_after`: the 429 has `Retry-After`, in whole seconds, rounded up.

    Raises ValueError if `starts` or `hour_seconds` is not greater than zero.
    """

    starts: int
    hour_seconds: float = 3600.0
    by_clock: bool = False
    counts_refused: bool = False
    sends_retry_after: bool = False

    def __post_init__(self) -> None:
        if self.starts <= 0 or self.hour_seconds <= 0:
            raise ValueError("`starts` and `hour_seconds` must be greater than zero")


class StartCounter:
    """The starts that currently count against a quota."""

    def __init__(self, quota: StartQuota, *, clock: Clock) -> None:
        self.quota = quota
        self._clock = clock
        self._expiries: list[float] = []

    def add(self) -> bool:
        """Count a start now, and return whether it is accepted."""
        is_accepted = self.remaining_seconds() == 0
        if is_accepted or self.quota.counts_refused:
            self._expiries.append(self._expiry(self._now()))
        return is_accepted

    def remaining_seconds(self) -> float:
        """Return the seconds until a start can be accepted, 0 if that is now."""
        now = self._now()
        self._expiries = [expiry for expiry in self._expiries if expiry > now]
        if len(self._expiries) < self.quota.starts:
            return 0.0
        return self._expiries[-self.quota.starts] - now

    def _now(self) -> float:
        if self.quota.by_clock:
            return self._clock.now().timestamp()
        return self._clock.monotonic()

    def _expiry(self, moment: float) -> float:
        """Return when a start at a moment stops counting."""
        seconds = self.quota.hour_seconds
        if self.quota.by_clock:
            return (moment // seconds + 1) * seconds
        return moment + seconds


class StartLimits:
    """Decides whether an export may start now.

    - `one_active_export`: a deployment has at most one unfinished export.
    - `names_running_job`: the 409 has the `jobId` of the unfinished export.
    - `max_jobs`: the maximum number of unfinished exports.
    """

    def __init__(
        self,
        *,
        jobs: JobStore,
        clock: Clock,
        quota: StartQuota | None = None,
        one_active_export: bool = False,
        names_running_job: bool = True,
        max_jobs: int | None = None,
    ) -> None:
        self._jobs = jobs
        self._counter = None if quota is None else StartCounter(quota, clock=clock)
        self._one_active_export = one_active_export
        self._names_running_job = names_running_job
        self._max_jobs = max_jobs

    def refusal(self, domain: str) -> Response | None:
        """Return why a start is refused. None: it is accepted, and counts against the quota."""
        active = self._blocking_export(domain)
        if active is not None:
            fields = {"error": ACTIVE_EXPORT}
            if self._names_running_job:
                fields["jobId"] = active.id
            return json_response(fields, status=409)
        if self._max_jobs is not None and self._jobs.unfinished() >= self._max_jobs:
            message = f"{self._max_jobs} exports are running already"
            return error_response(429, message, headers={"Retry-After": "1"})
        return self._quota_refusal()

    def _blocking_export(self, domain: str) -> ExportJob | None:
        """Return the unfinished export of a domain that a new one has to wait for."""
        other = self._jobs.export_of_somebody_else(domain)
        if other is None and self._one_active_export:
            return self._jobs.unfinished_of(domain)
        return other

    def _quota_refusal(self) -> Response | None:
        counter = self._counter
        if counter is None or counter.add():
            return None
        quota = counter.quota
        exports = "1 export" if quota.starts == 1 else f"{quota.starts} exports"
        headers = {}
        if quota.sends_retry_after:
            headers["Retry-After"] = str(math.ceil(counter.remaining_seconds()))
        return error_response(429, f"An organization may start {exports} an hour.", headers=headers)
