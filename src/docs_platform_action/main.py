"""The composition root: environment -> settings -> run -> report -> exit code."""

import functools
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TextIO, TypeVar
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies

from .addresses import is_loopback
from .bundle.link import Renewals
from .clock import Clock
from .context import Context, PlatformContext
from .errors import ActionError, InternalError, internal_error
from .github.client import GitHubClient
from .github.deployments import GitHub
from .http.client import HttpClient
from .http.transport import Transport
from .http.trust import UnusableServerError, create_ssl_context
from .inputs.checked import Inputs
from .inputs.reader import Reader
from .inputs.settings import (
    AgentSettings,
    CollectSettings,
    CommitSettings,
    ExportSettings,
    PlatformSettings,
    UnpackSettings,
)
from .inputs.table import Mode
from .job import Job, Kind
from .jobs import agent, collect, export, unpack
from .jobs.runner import Runner
from .jobs.task import Batch
from .outputs import Outputs
from .platform.operations import Platform
from .platform.room import Room
from .platform.sending import Sender
from .redaction import Redactor
from .report.console import Console
from .report.failures import annotate_failures
from .report.guard import GuardedListener
from .report.log import Log
from .report.summary import Summary, write_summary
from .signals import SignalHandler

S = TypeVar("S")


@dataclass(frozen=True)
class _Mode(Generic[S]):
    """What a mode does: the kind of its jobs, and how its inputs become tasks."""

    kind: Kind
    read: Callable[[Inputs], S]
    batch: Callable[[S], Batch]

    def batch_of(self, inputs: Inputs) -> Batch:
        """Return what the inputs ask for."""
        return self.batch(self.read(inputs))


MODES: Final[Mapping[Mode, _Mode[Any]]] = {
    Mode.EXPORT: _Mode(export.EXPORT, ExportSettings.read, export.batch),
    Mode.COLLECT: _Mode(collect.COLLECT, CollectSettings.read, collect.batch),
    Mode.UNPACK: _Mode(unpack.UNPACKING, UnpackSettings.read, unpack.batch),
    Mode.AGENT: _Mode(agent.AGENT, AgentSettings.read, agent.batch),
}

CANCELLED_OUTPUTS_SECONDS: Final = 1.0  # to write outputs, before the runner kills the container


def main(signal_handler: SignalHandler, clock: Clock) -> int:
    """Run the action with this process's environment and output; return the exit code."""
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):
        stream = io.TextIOWrapper(io.BytesIO())  # without a standard output, nobody reads it
    stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        exit_code = run(os.environ, stream, signal_handler, clock)
    except Exception as error:  # noqa: BLE001  # a stack trace could show what is not masked
        failed = f"the action itself failed ({type(error).__name__})"
        stream.write(f"Error: {failed}. {InternalError.default_cause}\n")
        exit_code = 1
    signal_handler.ignore()
    try:
        stream.flush()
    except OSError:
        # it is reported; Python would flush again at its end, fail, and change the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return exit_code


def run(
    environ: Mapping[str, str],
    stream: TextIO,
    signal_handler: SignalHandler,
    clock: Clock,
) -> int:
    """Run the action; return its exit code.

    It is 0, 1, or 128 plus the number of the signal that ended the run.
    """
    in_workflow = bool(environ.get("GITHUB_OUTPUT")) or environ.get("GITHUB_ACTIONS") == "true"
    debugging = environ.get("RUNNER_DEBUG") == "1"
    console = Console(stream, in_workflow=in_workflow, debugging=debugging)
    reader = Reader(environ, in_workflow=in_workflow)
    console.mask(reader.secrets)
    output_file = _path(environ, "GITHUB_OUTPUT")
    env_file = _path(environ, "OUTPUT_ENV_FILE") if output_file is None else None
    outputs = Outputs(output_file, console.redactor, env_file=env_file)
    started_at = clock.monotonic()
    kind = Kind() if reader.mode is None else MODES[reader.mode].kind
    jobs: Sequence[Job] = [Job(kind=kind, began_at=started_at)]  # reports errors in the inputs
    cancelled: Sequence[Job] = ()
    listener: GuardedListener | None = None
    exit_code = 0
    try:
        inputs = _read_inputs(reader, environ, env_file, console)
        batch = MODES[inputs.mode].batch_of(inputs)
        outputs.check()
        jobs = batch.jobs
        log = Log(console, clock, jobs, max_parallel=batch.max_parallel)
        listener = GuardedListener(log, console)
        runner = _runner_for(batch, outputs, listener, clock, console.redactor)
        received = signal_handler.run(runner)
        if received is not None:
            exit_code = 128 + received
            cancelled = runner.unfinished
            runner.cancel_unfinished(received.name)
    except Exception as error:  # noqa: BLE001  # any other becomes an `internal-error`
        _record_failure(jobs, error)
    now = clock.monotonic()
    duration_seconds = now - started_at
    # before the log, which may block: after a cancel the runner kills the container within seconds
    write = functools.partial(outputs.write_all, jobs, now=now, duration_seconds=duration_seconds)
    interrupted_by = signal_handler.finish(write, CANCELLED_OUTPUTS_SECONDS)
    if interrupted_by is not None:
        exit_code = 128 + interrupted_by
        _give_up_outputs(outputs, jobs, interrupted_by.name, now)
    _mask_links(jobs, console)
    if listener is not None:
        _close_log(listener, cancelled)
    _show_outputs(outputs, console, is_printed=output_file is None)
    summary = Summary(
        jobs=jobs,
        console=console,
        now=clock.now(),
        monotonic=now,
        duration_seconds=duration_seconds,
    )
    _report(summary, _path(environ, "GITHUB_STEP_SUMMARY"))
    return exit_code or int(any(job.failure is not None for job in jobs))


def _record_failure(jobs: Sequence[Job], error: Exception) -> None:
    """Record the error in every job that has no failure yet."""
    failure = error if isinstance(error, ActionError) else internal_error(error)
    for job in jobs:
        if job.failure is None:
            job.failure = failure


def _read_inputs(
    reader: Reader,
    environ: Mapping[str, str],
    env_file: Path | None,
    console: Console,
) -> Inputs:
    """Read the inputs, and show the warnings about them, also if they are refused."""
    roots = [_path(environ, "GITHUB_WORKSPACE") or Path()]
    temporary = _path(environ, "RUNNER_TEMP")
    if temporary is not None:
        roots.append(temporary)
    try:
        return reader.read(roots=roots, env_file=env_file)
    finally:
        for warning in reader.warnings:
            console.warning([warning])


def _runner_for(
    batch: Batch,
    outputs: Outputs,
    listener: GuardedListener,
    clock: Clock,
    redactor: Redactor,
) -> Runner:
    """Return what runs the batch, with the parts that its tasks need."""
    room = Room(clock, start_timeout_seconds=batch.start_timeout_seconds)
    context = Context(clock=clock, outputs=outputs, listener=listener, room=room)
    if batch.platform is None:
        return Runner(batch, context)
    platform_context = _platform_context(batch.platform, batch.commit, context, redactor)
    renewals = Renewals(batch.deliveries, platform_context)
    return Runner(batch, platform_context, renewals=renewals)


def _platform_context(
    platform: PlatformSettings,
    commit: CommitSettings | None,
    context: Context,
    redactor: Redactor,
) -> PlatformContext:
    client = HttpClient(
        transport=Transport(create_ssl_context(platform.ca_bundle)),
        clock=context.clock,
        proxies_for=functools.cache(_proxies_for),  # reading the environment is slow
        redactor=redactor,
    )
    sender = Sender(
        client=client,
        base_url=platform.base_url,
        key=platform.admin_key,
        room=context.room,
        clock=context.clock,
        outage_tolerance_seconds=platform.outage_tolerance_seconds,
        listener=context.listener,
    )
    return PlatformContext(
        clock=context.clock,
        outputs=context.outputs,
        listener=context.listener,
        room=context.room,
        client=client,
        platform=Platform(sender),
        github=_github(commit, client, context) if commit is not None else None,
    )


def _github(wanted: CommitSettings, client: HttpClient, context: Context) -> GitHub:
    github_client = GitHubClient(
        client=client,
        api_url=wanted.github_api_url,
        token=wanted.github_token,
        repository=wanted.github_repository,
        clock=context.clock,
        listener=context.listener,
    )
    return GitHub(
        github_client,
        commit=wanted.commit,
        timeout_seconds=wanted.commit_timeout_seconds,
        creator=wanted.deployment_creator,
        environment=wanted.deployment_environment,
        repository_url=f"{wanted.github_server_url}/{wanted.github_repository}",
    )


def _give_up_outputs(
    outputs: Outputs,
    jobs: Sequence[Job],
    signal_name: str,
    now: float,
) -> None:
    """Cancel the jobs that have not failed: their outputs are missing."""
    outputs.error = InternalError(
        "they could not be written in time after the cancel",
        cause="The file that GITHUB_OUTPUT or OUTPUT_ENV_FILE names blocks.",
    )
    for job in jobs:
        if job.failure is None:
            job.cancel(signal_name, now)


def _close_log(listener: GuardedListener, cancelled: Sequence[Job]) -> None:
    """Announce the end of the jobs that a signal ended, and close the log."""
    for job in cancelled:
        listener.job_ended(job)
    listener.close()


def _mask_links(jobs: Sequence[Job], console: Console) -> None:
    """Mask the links that the workflow asks to mask, before the runner reads the outputs."""
    for job in jobs:
        if job.masks_bundle_url and job.link is not None:
            console.mask_in_job(job.link.url)


def _report(summary: Summary, summary_file: Path | None) -> None:
    """Write the error annotations and the job summary."""
    console = summary.console
    with console.bugs_as_warnings("An error annotation"):
        annotate_failures(console, summary.jobs)
    with console.bugs_as_warnings("The job summary"):
        write_summary(summary, summary_file)


def _show_outputs(outputs: Outputs, console: Console, *, is_printed: bool) -> None:
    error = outputs.error
    if error is not None:
        first = f"The outputs are incomplete: {error.summary}."
        console.warning([first, *error.details, error.cause])
    if is_printed:
        console.print_outputs(outputs.printable)


def _proxies_for(url: str) -> dict[str, str]:
    """Return the environment's proxies.

    A proxy could not reach a loopback host, but would see what is sent there over http.
    """
    if is_loopback(urlsplit(url).hostname or ""):
        return {}
    try:
        return get_environ_proxies(url)
    except UnicodeError as error:
        cause = "NO_PROXY contains characters that are invalid in a host name."
        raise UnusableServerError(cause=cause, remedy="Correct NO_PROXY.") from error


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name)
    return Path(value) if value else None
