"""The composition root: environment -> settings -> real parts -> mode -> report, and the exit code."""

import io
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies

from . import __version__, agent, export
from .admin_api import AdminApi
from .clock import SystemClock
from .connection import Exchanges, GuardedAdapter, trusting
from .delivery.staging import Litter
from .delivery.storage import Storage
from .errors import ActionError, Cancelled, InternalError
from .exchange import Exchanger
from .handover import Handover
from .health import Health
from .interruption import LEAVING_SECONDS, Interruptions
from .model import Bundle, is_loopback
from .record import JobRecord, as_result
from .report.console import Console
from .report.deliverylog import DeliveryLog
from .report.failure import failure_lines
from .report.joblog import JobLog
from .report.outputs import Outputs
from .report.summary import room_left, summary_of, write_summary
from .report.text import minutes
from .settings import ApiSettings, DeliverySettings, ExportSettings, Plan, read_key, read_mode, read_plan
from .transport import Listener, Transport

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
    environ: Mapping[str, str], stream: TextIO, interruptions: Interruptions, *, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> int:
    """Run the action with an environment, and give its exit code: 0, 1, or 128 and the number of the signal that ended it."""
    in_workflow = bool(environ.get("GITHUB_OUTPUT")) or environ.get("GITHUB_ACTIONS") == "true"
    console = Console(stream, in_workflow=in_workflow, debugging=environ.get("RUNNER_DEBUG") == "1")
    console.mask(read_key(environ))
    return _Run(environ, console, interruptions, heartbeat_seconds).carry_out()


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """What a plan is carried out with."""

    exchanges: Exchanges
    log: JobLog
    work: Callable[[], None]


class _Run:
    """One run of the action, from the inputs to the exit code."""

    def __init__(
        self, environ: Mapping[str, str], console: Console, interruptions: Interruptions, heartbeat_seconds: float
    ) -> None:
        self._environ = environ
        self._console = console
        self._interruptions = interruptions
        self._heartbeat_seconds = heartbeat_seconds
        self._clock = SystemClock()
        self._litter = Litter()
        self._outputs = Outputs(_named_file(environ, "GITHUB_OUTPUT"), console)
        self._record = JobRecord(mode=read_mode(environ), began=self._clock.monotonic())

    def carry_out(self) -> int:
        """Do what the inputs ask, report what became of it, and give the exit code."""
        exit_code = 1
        try:
            received = self._do()
            exit_code = 0
            if received is not None:
                self._record.failure = self._cancelled(received)
                exit_code = 128 + received
        except ActionError as error:
            self._record.failure = error
        except Exception as error:  # noqa: BLE001  # the last resort: it becomes one `internal-error`, never a bare trace
            self._record.failure = self._internal(error)
        return self._report(exit_code)

    def _do(self) -> signal.Signals | None:
        plan = self._plan()
        self._outputs.check()
        parts = self._assemble(plan)
        for warning in plan.warnings:
            self._console.warning([warning])

        def stop() -> None:
            self._clock.cancel()
            parts.exchanges.stop()

        received = self._interruptions.run(
            parts.work,
            on_idle=lambda: parts.log.heartbeat(self._heartbeat_seconds),
            idle_seconds=min(1.0, self._heartbeat_seconds / 2),
            stop=stop,
            abort=parts.exchanges.abort,
            grace_seconds=lambda: START_GRACE_SECONDS if self._record.start_in_doubt else 0.0,
            leaving_seconds=lambda: CLEANING_SECONDS if self._litter else LEAVING_SECONDS,
        )
        self._litter.clear()
        return received

    def _plan(self) -> Plan:
        workspace = Path(self._environ.get("GITHUB_WORKSPACE") or ".")
        temporary = _named_file(self._environ, "RUNNER_TEMP")
        return read_plan(self._environ, roots=[workspace, *([temporary] if temporary else [])])

    def _assemble(self, plan: Plan) -> _Parts:
        settings, record, console, clock = plan.settings, self._record, self._console, self._clock
        record.job_id = settings.job_id
        if isinstance(settings, ExportSettings):
            record.domain = settings.domain
            log = JobLog(console, clock, record, known_statuses=export.KNOWN_STATUSES)
        else:
            record.project_id = settings.project_id
            log = JobLog(console, clock, record, known_statuses=agent.KNOWN_STATUSES)
        exchanges = Exchanges()
        exchanger = _exchanger(settings.api, exchanges)
        api = AdminApi(_transport(exchanger, settings.api, clock, log), clock)

        def deliver(bundle: Bundle, renew: Callable[[], Bundle], delivery: DeliverySettings) -> None:
            Handover(
                settings=delivery,
                open_storage=lambda: _storage(settings.api, exchanges, on_redirect=console.keep_link_out),
                renew=renew,
                clock=clock,
                outage_tolerance_seconds=settings.api.outage_tolerance_seconds,
                record=record,
                log=DeliveryLog(log, clock),
                litter=self._litter,
                warn=console.warning,
            ).carry_out(bundle)

        def work() -> None:
            if isinstance(settings, ExportSettings):
                export.export_site(
                    settings,
                    api=api,
                    clock=clock,
                    record=record,
                    log=log,
                    on_job_known=self._tell_job,
                    keep_out=console.keep_link_out,
                    mask=console.mask_for_the_job,
                    deliver=deliver,
                )
            else:
                agent.wait_for_agent(
                    settings, api=api, clock=clock, record=record, log=log, on_job_known=self._tell_job, warn=console.warning
                )

        return _Parts(exchanges=exchanges, log=log, work=work)

    def _tell_job(self, job_id: str) -> None:
        self._outputs.write("jobId", job_id)

    def _cancelled(self, received: signal.Signals) -> Cancelled:
        record = self._record
        after = minutes(record.duration_seconds(self._clock.monotonic()))
        started = record.job_id is None and record.start_in_doubt
        return Cancelled(
            f"cancelled after {after}",
            facts=("A start request was under way; look in the dashboard whether the export runs.",) if started else (),
            cause=f"{received.name} came: {Cancelled.cause[0].lower()}{Cancelled.cause[1:]}",
        )

    def _internal(self, error: Exception) -> InternalError:
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "unknown"
        for line in "".join(traceback.format_exception(error)).splitlines():
            self._console.debug(line)
        return InternalError(
            "the action itself failed",
            facts=(f"{type(error).__name__} at {where}, docs-platform-action {__version__}, Python {sys.version.split()[0]}.",),
        )

    def _report(self, exit_code: int) -> int:
        record, console = self._record, self._console
        now = record.ended = self._clock.monotonic()
        self._write_outputs(now)
        self._outputs.close()
        if record.failure is not None:
            exit_code = exit_code or 1
            console.error(failure_lines(record, record.failure))
        file = _named_file(self._environ, "GITHUB_STEP_SUMMARY")
        page = summary_of(
            [record],
            safe=console.safe,
            duration_seconds=record.duration_seconds(now),
            now=self._clock.now(),
            monotonic=now,
            room_bytes=room_left(file),
        )
        write_summary(page, file, console)
        return exit_code

    def _write_outputs(self, now: float) -> None:
        """Write every output that there is room for: one that does not fit fails the run, but keeps no other out."""
        record, write = self._record, self._write_output
        write("jobId", record.job_id)
        write("status", record.status)
        write("pageCount", record.page_count)
        if record.bundle is not None and record.failure is None:
            write("bundleUrl", record.bundle.url)
        if record.bundle is not None and record.failure is None:  # still: not without the link
            write("expiresAt", record.bundle.expires_at)
        write("bundlePath", record.bundle_path)
        write("bundleSize", record.downloaded.size if record.downloaded is not None else None)
        write("bundleSha256", record.downloaded.sha256 if record.downloaded is not None else None)
        write("sitePath", record.site_path)
        write("valuesFile", record.values_file)
        write("prLink", record.pr_link)
        write("durationSeconds", int(record.duration_seconds(now)))
        write("results", json.dumps([as_result(record, now)], separators=(",", ":")))
        write("failureReason", record.failure.failure_reason if record.failure is not None else None)

    def _write_output(self, name: str, value: object) -> None:
        try:
            self._outputs.write(name, value)
        except InternalError as error:
            self._record.failure = self._record.failure or error


def _proxies_for(url: str) -> dict[str, str]:
    """Tell the environment's proxies; one would see what goes to a loopback host over http, and could not reach it anyway."""
    return {} if is_loopback(urlsplit(url).hostname or "") else get_environ_proxies(url)


def _storage(settings: ApiSettings, exchanges: Exchanges, *, on_redirect: Callable[[str], None]) -> Storage:
    return Storage(
        adapter=GuardedAdapter(trusting(settings.authorities_pem)),
        proxies_for=_proxies_for,
        on_redirect=on_redirect,
        exchanges=exchanges,
    )


def _exchanger(settings: ApiSettings, exchanges: Exchanges) -> Exchanger:
    return Exchanger(
        adapter=GuardedAdapter(trusting(settings.authorities_pem)),
        base_url=settings.base_url,
        key=settings.admin_key,
        proxies=_proxies_for(settings.base_url),
        exchanges=exchanges,
    )


def _transport(exchanger: Exchanger, settings: ApiSettings, clock: SystemClock, listener: Listener) -> Transport:
    return Transport(
        exchanger=exchanger,
        health=Health(clock),
        clock=clock,
        outage_tolerance_seconds=settings.outage_tolerance_seconds,
        listener=listener,
    )


def _named_file(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name)
    return Path(value) if value else None
