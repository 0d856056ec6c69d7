"""The composition root: environment -> settings -> real parts -> mode -> report, and the exit code.

What is needed only after the first request, or not in every run, is imported where it is needed: each step is a process of its
own, which asks the platform no sooner than it has imported what stands up here.
"""

import io
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TextIO
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies

from .api.admin_api import AdminApi
from .api.calls import Caller
from .cleanups import Cleanups
from .clock import SystemClock
from .errors import ActionError, InternalError
from .http.circuit_breaker import CircuitBreaker
from .http.client import Exchanger
from .http.connection import Exchanges, GuardedAdapter, trusting
from .http.rate_limit import REQUESTS_A_SECOND, RateLimiter
from .inputs.reader import read_key, read_mode, read_names, read_plan, unknown_inputs
from .inputs.settings import AgentSettings, DeliverySettings, ExportSettings, Plan
from .job import Job
from .jobs import agent, export
from .jobs.runner import SideBySide, Watcher, Work
from .models import AGENT, EXPORT, Bundle, is_loopback
from .redaction import SHORTEST_TO_RECOGNISE, Redactor
from .report.console import Console
from .report.job_log import JobLog
from .report.outputs import Outputs
from .signals import LEAVING_SECONDS, Interruptions

if TYPE_CHECKING:
    from .bundle.storage import Storage
    from .report.multi_log import Board

HEARTBEAT_SECONDS: Final = 55.0
"""A sign of life at least every minute, with a margin for the second in which it is looked for."""

CLEANING_SECONDS: Final = 5.0
"""How long a cancelled delivery gets to remove its parts: the runner sends its last signal 7.5 s after the first, and kills 2.5 s
later (source: actions/runner, ProcessInvoker)."""

START_GRACE_SECONDS: Final = 0.5
"""How long a cancel waits for the answer to a start request, without which nobody knows the job."""


def main(interruptions: Interruptions) -> int:
    """Run the action as the runner calls it; give the exit code."""
    stream = sys.stdout if isinstance(sys.stdout, io.TextIOWrapper) else io.TextIOWrapper(io.BytesIO())
    stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    exit_code = run(os.environ, stream, interruptions)
    interruptions.ignore()
    try:
        stream.flush()
    except OSError:  # told already; Python would try once more when it ends, and turn that into an exit code of its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return exit_code


def run(
    environ: Mapping[str, str],
    stream: TextIO,
    interruptions: Interruptions,
    *,
    clock: SystemClock | None = None,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> int:
    """Run the action with an environment, and give its exit code: 0, 1, or 128 and the number of the signal that ended it."""
    in_workflow = bool(environ.get("GITHUB_OUTPUT")) or environ.get("GITHUB_ACTIONS") == "true"
    console = Console(stream, in_workflow=in_workflow, debugging=environ.get("RUNNER_DEBUG") == "1")
    console.mask(read_key(environ))
    return _Run(environ, console, interruptions, clock or SystemClock(), heartbeat_seconds).carry_out()


class _Watch(Watcher, Protocol):
    """Shows how the jobs go."""

    def heartbeat(self, every_seconds: float) -> None:
        """Give a sign of life if nothing was told for this long."""
        ...


class _Quiet:
    """Watches a single job, whose log tells everything."""

    def __init__(self, log: JobLog) -> None:
        self.heartbeat = log.heartbeat

    def at_work(self, record: Job) -> None:
        """Its title tells."""

    def ended(self, record: Job) -> None:
        """Its failure is told in the end."""


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What a plan is carried out with."""

    exchanges: Exchanges
    watch: _Watch
    work: Callable[[], None]


class _Run:
    """One run of the action, from the inputs to the exit code."""

    def __init__(
        self,
        environ: Mapping[str, str],
        console: Console,
        interruptions: Interruptions,
        clock: SystemClock,
        heartbeat_seconds: float,
    ) -> None:
        self._environ = environ
        self._console = console
        self._interruptions = interruptions
        self._heartbeat_seconds = heartbeat_seconds
        self._clock = clock
        names = read_names(environ)
        console.always_show(names)
        self._redactor = Redactor([read_key(environ)], shortest=SHORTEST_TO_RECOGNISE, names=names)
        self._cleanups = Cleanups()
        self._outputs = Outputs(_named_file(environ, "GITHUB_OUTPUT"), console, self._redactor)
        self._began = self._clock.monotonic()
        self._records = [Job(mode=read_mode(environ), began=self._began)]
        self._unfinished: list[Job] | None = None
        self._cancelled: list[Job] = []
        self._board: Board | None = None

    def carry_out(self) -> int:
        """Do what the inputs ask, report what became of it, and give the exit code."""
        exit_code = 0
        try:
            received = self._do()
            if received is not None:
                self._note_cancel(received)
                exit_code = 128 + received
        except ActionError as error:
            self._fail_all(error)
        except Exception as error:  # noqa: BLE001  # the last resort: it becomes one `internal-error`, never a bare trace
            self._fail_all(self._internal(error))
        return self._report(exit_code)

    def _do(self) -> signal.Signals | None:
        for warning in unknown_inputs(self._environ):
            self._console.warning([warning])
        plan = self._plan()
        self._outputs.check()
        for warning in plan.warnings:
            self._console.warning([warning])
        parts = self._assemble(plan)

        def stop() -> None:
            self._unfinished = [record for record in self._records if record.ended is None]
            self._clock.cancellation.cancel()
            parts.exchanges.stop()

        with parts.exchanges.kept_watched():
            received = self._interruptions.run(
                parts.work,
                on_idle=lambda: parts.watch.heartbeat(self._heartbeat_seconds),
                idle_seconds=min(1.0, self._heartbeat_seconds / 2),
                stop=stop,
                abort=parts.exchanges.abort,
                grace_seconds=lambda: START_GRACE_SECONDS if any(record.start_in_doubt for record in self._records) else 0.0,
                leaving_seconds=lambda: CLEANING_SECONDS if self._cleanups else LEAVING_SECONDS,
            )
        self._cleanups.clear()
        return received

    def _plan(self) -> Plan:
        workspace = Path(self._environ.get("GITHUB_WORKSPACE") or ".")
        temporary = _named_file(self._environ, "RUNNER_TEMP")
        return read_plan(self._environ, roots=[workspace, *([temporary] if temporary else [])])

    def _assemble(self, plan: Plan) -> _Parts:
        clock, api_settings = self._clock, plan.jobs[0].api
        self._records = [_record_of(job) for job in plan.jobs]
        if len(plan.jobs) > 1:
            self._begin_board(plan)
        exchanges, trust = Exchanges(), trusting(api_settings.authorities_pem)
        shared = _Shared(
            exchanger=Exchanger(
                adapter=GuardedAdapter(trust),
                base_url=api_settings.base_url,
                key=api_settings.admin_key,
                proxies=_proxies_for(api_settings.base_url),
                exchanges=exchanges,
                names=read_names(self._environ),
            ),
            breaker=CircuitBreaker(clock, RateLimiter(requests_a_second=REQUESTS_A_SECOND)),
            storage=partial(self._storage, GuardedAdapter(trust), exchanges),
        )
        logs = [self._log_of(record) for record in self._records]
        works = [self._work_on(job, record, log, shared) for job, record, log in zip(plan.jobs, self._records, logs, strict=True)]
        watch = self._board or _Quiet(logs[0])
        side_by_side = SideBySide(works, at_once=plan.max_parallel, clock=clock, watcher=watch, failure_of=self._internal)
        return _Parts(exchanges=exchanges, watch=watch, work=side_by_side.run)

    def _begin_board(self, plan: Plan) -> None:
        from .report.multi_log import Board

        self._board = Board(
            self._console, self._clock, self._records, max_parallel=plan.max_parallel, known_statuses=export.KNOWN_STATUSES
        )
        self._board.begin()

    def _storage(self, adapter: GuardedAdapter, exchanges: Exchanges) -> "Storage":
        from .bundle.storage import Storage

        return Storage(
            adapter=adapter,
            proxies_for=_proxies_for,
            on_redirect=self._console.keep_link_out,
            exchanges=exchanges,
            hide=self._redactor.hide,
        )

    def _log_of(self, record: Job) -> JobLog:
        if self._board is not None:
            return self._board.log_of(record)
        known = agent.KNOWN_STATUSES if record.mode == AGENT else export.KNOWN_STATUSES
        return JobLog(self._console, self._clock, record, known_statuses=known)

    def _work_on(self, job: ExportSettings | AgentSettings, record: Job, log: JobLog, shared: "_Shared") -> Work:
        console, clock, tolerance = self._console, self._clock, job.api.outage_tolerance_seconds
        caller = Caller(
            exchanger=shared.exchanger, breaker=shared.breaker, clock=clock, outage_tolerance_seconds=tolerance, listener=log
        )
        api = AdminApi(caller)

        def deliver(bundle: Bundle, renew: Callable[[], Bundle], delivery: DeliverySettings) -> None:
            from .bundle.deliver import Handover
            from .report.deliverylog import DeliveryLog

            Handover(
                settings=delivery,
                storage=shared.storage(),
                renew=renew,
                clock=clock,
                cancellation=clock.cancellation,
                outage_tolerance_seconds=tolerance,
                record=record,
                log=DeliveryLog(log, clock),
                cleanups=self._cleanups,
                warn=log.warning,
            ).carry_out(bundle)

        def keep_out(bundle: Bundle) -> None:
            console.keep_link_out(bundle.url, names=[record.job_id, bundle.expires_at])

        def carry_out(on_job_known: Callable[[], None]) -> None:
            def tell_job(_job_id: str) -> None:
                self._tell_job(record)
                on_job_known()

            if isinstance(job, ExportSettings):
                export.export_site(
                    job,
                    api=api,
                    clock=clock,
                    record=record,
                    log=log,
                    on_job_known=tell_job,
                    waits_for_room=lambda: any(other is not record and other.is_under_way for other in self._records),
                    keep_out=keep_out,
                    mask=console.mask_for_the_job,
                    deliver=deliver,
                )
            else:
                agent.wait_for_agent(job, api=api, clock=clock, record=record, log=log, on_job_known=tell_job, warn=log.warning)

        return Work(record=record, carry_out=carry_out)

    def _tell_job(self, record: Job) -> None:
        if self._board is not None:
            self._board.job_known(record)
        else:
            self._outputs.job_known(record)

    def _fail_all(self, error: ActionError) -> None:
        """Take note of what ended the run before its jobs, or with them."""
        for record in self._records:
            record.failure = record.failure or error

    def _note_cancel(self, received: signal.Signals) -> None:
        """Take note of a cancel where a job had not come to its end when the signal came."""
        now = self._clock.monotonic()
        for record in self._records if self._unfinished is None else self._unfinished:
            record.failure = record.cancelled(received.name, now)
            record.ended = now
            record.leave(now)
            self._cancelled.append(record)

    def _internal(self, error: Exception) -> InternalError:
        from .report.failures import internal_error

        return internal_error(error, self._console)

    def _report(self, exit_code: int) -> int:
        now = self._clock.monotonic()
        # first: a cancelled container has seconds until it is killed, and a log that nobody reads blocks whoever writes to it
        results = self._outputs.write_all(self._records, now=now, duration_seconds=now - self._began)
        from .report.final_report import write_final_report

        if self._board is not None:
            for record in self._cancelled:
                self._board.ended(record)
            self._board.close()
        write_final_report(
            self._records,
            self._console,
            self._clock,
            results=results,
            duration_seconds=now - self._began,
            summary_file=_named_file(self._environ, "GITHUB_STEP_SUMMARY"),
        )
        return exit_code or (1 if any(record.failure is not None for record in self._records) else 0)


@dataclass(frozen=True, kw_only=True)
class _Shared:
    """What all jobs of a run have in common."""

    exchanger: Exchanger
    breaker: CircuitBreaker
    storage: "Callable[[], Storage]"


def _record_of(job: ExportSettings | AgentSettings) -> Job:
    if isinstance(job, ExportSettings):
        return Job(mode=EXPORT, domain=job.domain, job_id=job.job_id)
    return Job(mode=AGENT, project_id=job.project_id, job_id=job.job_id)


def _proxies_for(url: str) -> dict[str, str]:
    """Tell the environment's proxies; one would see what goes to a loopback host over http, and could not reach it anyway."""
    return {} if is_loopback(urlsplit(url).hostname or "") else get_environ_proxies(url)


def _named_file(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name)
    return Path(value) if value else None
