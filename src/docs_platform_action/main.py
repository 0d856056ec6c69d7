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
from .bundle.deliver import deliver_file
from .clock import Clock
from .context import Context, PlatformContext
from .errors import ActionError, InternalError, internal_error
from .github.client import GitHubClient
from .github.deployments import Deployments
from .http.api_client import ApiClient
from .http.client import HttpClient
from .http.pacing import Pacer
from .http.transport import Transport
from .http.trust import UnusableServerError, create_ssl_context
from .inputs.reader import Reader
from .inputs.settings import (
    AgentSettings,
    CollectSettings,
    CommitSettings,
    ExportSettings,
    Mode,
    Settings,
    SiteSettings,
    UnpackSettings,
)
from .job import Job, Kind
from .jobs.agent import Agent, wait_for_agent
from .jobs.collect import Collect, collect_site
from .jobs.export import Export
from .jobs.export_runner import ExportRunner
from .jobs.runner import Runner, SingleJobRunner
from .jobs.unpack import Unpack
from .outputs import Outputs
from .redaction import Redactor
from .report.console import Console
from .report.failures import annotate_failures
from .report.guard import GuardedEvents
from .report.log import Log
from .report.summary import Summary, write_summary
from .signals import SignalHandler

KINDS: Final[Mapping[Mode, Kind]] = {
    Mode.EXPORT: Export(),
    Mode.COLLECT: Collect(),
    Mode.UNPACK: Unpack(),
    Mode.AGENT: Agent(),
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
    kind = Kind() if reader.mode is None else KINDS[reader.mode]
    jobs = [Job(kind=kind, began_at=started_at)]  # reports errors in the settings
    cancelled: Sequence[Job] = ()
    events: GuardedEvents | None = None
    exit_code = 0
    try:
        settings = _read_settings(reader, environ, env_file, console)
        outputs.check()
        jobs = jobs_of(settings)
        events = GuardedEvents(_log_of(settings, jobs, console, clock), console)
        context = Context(clock=clock, outputs=outputs, events=events)
        runner = _runner_for(settings, jobs, context, console.redactor)
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
    if events is not None:
        for job in cancelled:
            events.job_ended(job)
        events.close()
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


def jobs_of(settings: Settings) -> list[Job]:
    """Return a new job for each site, or for the one job that a run is about."""
    match settings:
        case ExportSettings():
            return [_job_of_site(Mode.EXPORT, site) for site in settings.sites]
        case CollectSettings():
            job = _job_of_site(Mode.COLLECT, settings.site)
            job.job_id = settings.job_id
            return [job]
        case UnpackSettings():
            return [Job(kind=KINDS[Mode.UNPACK], domain=settings.domain)]
        case AgentSettings():
            kind = KINDS[Mode.AGENT]
            return [Job(kind=kind, project_id=settings.project_id, job_id=settings.job_id)]


def _job_of_site(mode: Mode, site: SiteSettings) -> Job:
    return Job(
        kind=KINDS[mode],
        domain=site.domain,
        project_id=site.project_id,
        masks_bundle_url=site.delivery.mask_bundle_url,
    )


def _record_failure(jobs: Sequence[Job], error: Exception) -> None:
    """Record what ended the run in each job that has not failed by itself."""
    failure = error if isinstance(error, ActionError) else internal_error(error)
    for job in jobs:
        if job.failure is None:
            job.failure = failure


def _read_settings(
    reader: Reader,
    environ: Mapping[str, str],
    env_file: Path | None,
    console: Console,
) -> Settings:
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


def _log_of(settings: Settings, jobs: Sequence[Job], console: Console, clock: Clock) -> Log:
    max_parallel = settings.max_parallel if isinstance(settings, ExportSettings) else 1
    return Log(console, clock, jobs, max_parallel=max_parallel)


def _runner_for(
    settings: Settings,
    jobs: Sequence[Job],
    context: Context,
    redactor: Redactor,
) -> Runner:
    """Return what runs the jobs, with the parts that the mode needs."""
    if isinstance(settings, UnpackSettings):
        unpacking = functools.partial(deliver_file, settings=settings, context=context)
        return SingleJobRunner(jobs[0], unpacking, context)
    platform = _platform_context(settings, context, redactor)
    if isinstance(settings, ExportSettings):
        return ExportRunner(jobs, settings, platform)
    if isinstance(settings, CollectSettings):
        collecting = functools.partial(
            collect_site,
            waiting=settings.waiting,
            delivery=settings.site.delivery,
            context=platform,
        )
        return SingleJobRunner(jobs[0], collecting, platform)
    waiting = functools.partial(wait_for_agent, settings=settings, context=platform)
    return SingleJobRunner(jobs[0], waiting, platform)


def _platform_context(
    settings: ExportSettings | CollectSettings | AgentSettings,
    context: Context,
    redactor: Redactor,
) -> PlatformContext:
    platform = settings.platform
    client = HttpClient(
        transport=Transport(create_ssl_context(platform.ca_bundle)),
        clock=context.clock,
        proxies_for=functools.cache(_proxies_for),  # reading the environment is slow
        redactor=redactor,
    )
    start_timeout_seconds = 0.0
    github: Deployments | None = None
    if isinstance(settings, ExportSettings):
        start_timeout_seconds = settings.start_timeout_seconds
        if settings.commit is not None:
            github = _deployments(settings.commit, client, context)
    api = AdminApi(
        client=ApiClient(client, base_url=platform.base_url, key=platform.admin_key),
        pacer=Pacer(context.clock),
        room=Room(context.clock, start_timeout_seconds=start_timeout_seconds),
        clock=context.clock,
        outage_tolerance_seconds=platform.outage_tolerance_seconds,
        events=context.events,
    )
    return PlatformContext(
        clock=context.clock,
        outputs=context.outputs,
        events=context.events,
        client=client,
        api=api,
        github=github,
    )


def _deployments(wanted: CommitSettings, client: HttpClient, context: Context) -> Deployments:
    github_client = GitHubClient(
        client=ApiClient(client, base_url=wanted.github_api_url, key=wanted.github_token),
        repository=wanted.github_repository,
        clock=context.clock,
        events=context.events,
    )
    return Deployments(
        github_client,
        commit=wanted.commit,
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
            job.cancel(signal_name, now, is_start_unconfirmed=False)


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
