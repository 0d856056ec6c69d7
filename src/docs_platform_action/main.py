"""The composition root: environment -> settings -> run -> report -> exit code."""

import functools
import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO
from urllib.parse import urlsplit

from requests.utils import get_environ_proxies

from .addresses import is_loopback
from .api.admin_api import AdminApi
from .api.room import Room
from .clock import Clock
from .context import Context
from .errors import ActionError, InternalError, internal_error
from .events import Events
from .github.client import GitHubClient
from .github.deployments import Deployments
from .http.api_client import ApiClient
from .http.client import HttpClient
from .http.pacing import Pacer
from .http.transport import Transport
from .http.trust import UnusableServerError, create_ssl_context
from .inputs.reader import Reader
from .inputs.settings import Settings
from .job import Job
from .jobs.runner import Runner, job_of
from .outputs import Outputs
from .redaction import Redactor
from .report.console import Console
from .report.failures import annotate_failures
from .report.guard import GuardedEvents
from .report.log import Log
from .report.summary import Summary, write_summary
from .signals import SignalHandler

CANCELLED_OUTPUTS_SECONDS: Final = 1.0  # to write outputs, before the runner kills the container


def main(signal_handler: SignalHandler, clock: Clock) -> int:
    """Run the action with this process's environment and output; return the exit code."""
    stream = (
        sys.stdout if isinstance(sys.stdout, io.TextIOWrapper) else io.TextIOWrapper(io.BytesIO())
    )
    stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        exit_code = run(os.environ, stream, signal_handler, clock)
    except Exception as error:  # noqa: BLE001  # a stack trace could show what is not masked yet
        stream.write(
            f"Error: the action itself failed ({type(error).__name__}). {InternalError.default_cause}\n"
        )
        exit_code = 1
    signal_handler.ignore()
    try:
        stream.flush()
    except (
        OSError
    ):  # already reported; Python would flush again at its end, fail, and change the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return exit_code


def run(
    environ: Mapping[str, str], stream: TextIO, signal_handler: SignalHandler, clock: Clock
) -> int:
    """Run the action; return its exit code: 0, 1, or 128 plus the number of the signal that ended it."""
    in_workflow = bool(environ.get("GITHUB_OUTPUT")) or environ.get("GITHUB_ACTIONS") == "true"
    console = Console(stream, in_workflow=in_workflow, debugging=environ.get("RUNNER_DEBUG") == "1")
    reader = Reader(environ, in_workflow=in_workflow)
    console.mask(reader.secrets)
    output_file = _path(environ, "GITHUB_OUTPUT")
    env_file = _path(environ, "OUTPUT_ENV_FILE") if output_file is None else None
    outputs = Outputs(output_file, console.redactor, env_file=env_file)
    started_at = clock.monotonic()
    jobs = [
        Job(mode=reader.mode, began_at=started_at)
    ]  # reports errors from before the settings are known
    events: GuardedEvents | None = None
    cancelled: Sequence[Job] = ()
    exit_code = 0
    try:
        roots = filter(
            None, [_path(environ, "GITHUB_WORKSPACE") or Path(), _path(environ, "RUNNER_TEMP")]
        )
        try:
            settings = reader.read(roots=[*roots], env_file=env_file)
        finally:
            for warning in reader.warnings:
                console.warning([warning])
        outputs.check()
        jobs = [job_of(own) for own in settings.jobs]
        log = Log(console, clock, jobs, max_parallel=settings.max_parallel)
        events = GuardedEvents(log, console)
        context = _context_for(settings, clock, events, outputs, console.redactor)
        runner = Runner(
            [*zip(jobs, settings.jobs, strict=True)], context, max_parallel=settings.max_parallel
        )
        received = signal_handler.run(runner)
        if received is not None:
            exit_code, cancelled = 128 + received, runner.unfinished
            runner.cancel_unfinished(received.name)
    except Exception as error:  # noqa: BLE001  # any other becomes an `internal-error`
        failure = error if isinstance(error, ActionError) else internal_error(error)
        for job in jobs:
            job.failure = job.failure or failure
    now = clock.monotonic()
    duration_seconds = now - started_at
    # before the log, which may block: after a cancel the runner kills the container within seconds
    write = functools.partial(outputs.write_all, jobs, now=now, duration_seconds=duration_seconds)
    if not signal_handler.finish(write, CANCELLED_OUTPUTS_SECONDS):
        exit_code = _give_up_outputs(outputs, jobs, signal_handler, now)
    for job in jobs:
        if job.masks_bundle_url and job.link is not None:
            console.mask_in_job(job.link.url)  # before the runner reads the outputs
    if events is not None:
        for job in cancelled:
            events.job_ended(job)
        events.close()
    _show_outputs(outputs, console, is_printed=output_file is None)
    with console.bugs_as_warnings("An error annotation"):
        annotate_failures(console, jobs)
    summary = Summary(
        jobs=jobs,
        console=console,
        now=clock.now(),
        monotonic=now,
        duration_seconds=duration_seconds,
    )
    with console.bugs_as_warnings("The job summary"):
        write_summary(summary, _path(environ, "GITHUB_STEP_SUMMARY"))
    return exit_code or (1 if any(job.failure is not None for job in jobs) else 0)


def _give_up_outputs(
    outputs: Outputs,
    jobs: Sequence[Job],
    signal_handler: SignalHandler,
    now: float,
) -> int:
    """Cancel the jobs that have not failed: their outputs are missing. Return the exit code."""
    received = signal_handler.received
    assert received is not None  # noqa: S101  # for the type checker: only a signal ends a write
    outputs.error = InternalError(
        "they could not be written in time after the cancel",
        cause="The file that GITHUB_OUTPUT or OUTPUT_ENV_FILE names blocks.",
    )
    for job in jobs:
        if job.failure is None:
            job.cancel(received.name, now, is_start_unconfirmed=False)
    return 128 + received


def _show_outputs(outputs: Outputs, console: Console, *, is_printed: bool) -> None:
    error = outputs.error
    if error is not None:
        first = f"The outputs are incomplete: {error.summary}."
        console.warning([first, *error.details, error.cause])
    if is_printed:
        console.print_outputs(outputs.printable)


def _context_for(
    settings: Settings,
    clock: Clock,
    events: Events,
    outputs: Outputs,
    redactor: Redactor,
) -> Context:
    client = HttpClient(
        transport=Transport(create_ssl_context(settings.ca_bundle)),
        clock=clock,
        proxies_for=functools.cache(_proxies_for),  # reading the environment is slow
        redactor=redactor,
    )
    api = AdminApi(  # without a platform, it is not used
        client=ApiClient(client, base_url=settings.base_url or "", key=settings.admin_key or ""),
        pacer=Pacer(clock),
        room=Room(clock, start_timeout_seconds=settings.jobs[0].start_timeout_seconds),
        clock=clock,
        outage_tolerance_seconds=settings.outage_tolerance_seconds,
        events=events,
    )
    github = None
    if (wanted := settings.deployment) is not None:
        token_client = ApiClient(client, base_url=wanted.github_api_url, key=wanted.github_token)
        github = Deployments(
            GitHubClient(
                client=token_client,
                repository=wanted.github_repository,
                clock=clock,
                events=events,
            ),
            commit=wanted.commit,
            creator=wanted.deployment_creator,
            environment=wanted.deployment_environment,
            repository_url=f"{wanted.github_server_url}/{wanted.github_repository}",
        )
    return Context(
        clock=clock,
        client=client,
        api=api,
        outputs=outputs,
        events=events,
        github=github,
    )


def _proxies_for(url: str) -> dict[str, str]:
    """Return the environment's proxies. A proxy could not reach a loopback host, but would see what is sent there over http."""
    try:
        return {} if is_loopback(urlsplit(url).hostname or "") else get_environ_proxies(url)
    except UnicodeError as error:
        cause = "NO_PROXY contains characters that are invalid in a host name."
        raise UnusableServerError(cause=cause, remedy="Correct NO_PROXY.") from error


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name)
    return Path(value) if value else None
