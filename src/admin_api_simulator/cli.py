"""The simulator as a program."""

import argparse
import errno
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, get_args

from admin_api_simulator.github import COMMIT, DEMO_REPOSITORIES
from admin_api_simulator.jobs import AGENT_JOBS, DEMO_PROJECT, FAILED_EXPORT, FINISHED_EXPORT
from admin_api_simulator.limits import StartQuota
from admin_api_simulator.request_log import write_requests
from admin_api_simulator.scenario import ScenarioError, apply_scenario
from admin_api_simulator.simulator import DEFAULT_KEY, DEFAULT_READ_KEY, DEFAULT_TOKEN, Simulator
from admin_api_simulator.site import ArchiveKind

ENTRYPOINT = Path(__file__).resolve().parents[2] / "entrypoint.py"
DEFAULT_PORT = 8377
DEFAULT_STORAGE_PORT = 8378
DEFAULT_GITHUB_PORT = 8379
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m admin_api_simulator",
        description="Serve a simulated documentation platform: the administrative API on one port, "
        "its object storage on another, and GitHub's API of deployments on a third. Prints a "
        "command that runs the action with it, the names that select each outcome, and a line for "
        "each request. Serves until Ctrl-C or SIGTERM.",
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    _add_addresses(made)
    _add_credentials(made)
    _add_jobs(made)
    made.add_argument(
        "--one-active-export",
        action="store_true",
        help="a start gets 409 while an export of the same deployment is queued or running",
    )
    made.add_argument(
        "--scenario", type=Path, metavar="FILE", help="JSON file with scripted faults"
    )
    _add_quota(made)
    return made


def _add_addresses(made: argparse.ArgumentParser) -> None:
    made.add_argument("--host", default="127.0.0.1", help="address to listen on")
    made.add_argument(
        "--port",
        type=_whole_number(0, 65535),
        default=DEFAULT_PORT,
        help="port of the API, 0 for any free port",
    )
    made.add_argument(
        "--storage-port",
        type=_whole_number(0, 65535),
        default=DEFAULT_STORAGE_PORT,
        help="port of the storage, 0 for any free port",
    )
    made.add_argument(
        "--github-port",
        type=_whole_number(0, 65535),
        default=DEFAULT_GITHUB_PORT,
        help="port of GitHub's API, 0 for any free port",
    )
    made.add_argument(
        "--tls",
        action="store_true",
        help="serve https, with a certificate authority made for this run",
    )
    made.add_argument(
        "--ca-file",
        type=Path,
        metavar="FILE",
        help="PEM file to write the authority to, with --tls",
    )


def _add_credentials(made: argparse.ArgumentParser) -> None:
    made.add_argument("--key", default=DEFAULT_KEY, help="the admin API key to accept")
    made.add_argument(
        "--read-key", default=DEFAULT_READ_KEY, help="an admin API key with the scope read"
    )
    made.add_argument("--token", default=DEFAULT_TOKEN, help="the token that GitHub's API accepts")


def _add_jobs(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--deploy-seconds", type=_seconds, default=20.0, help="how long a deployment takes"
    )
    made.add_argument(
        "--export-seconds", type=_seconds, default=20.0, help="how long an export takes"
    )
    made.add_argument(
        "--agent-seconds", type=_seconds, default=20.0, help="how long an agent job is active"
    )
    made.add_argument(
        "--pages",
        type=_whole_number(1, 100_000),
        default=12,
        help="number of pages of an exported site",
    )
    made.add_argument(
        "--asset-bytes",
        type=_whole_number(0, 10**9),
        default=0,
        help="size of an additional file in the bundle",
    )
    made.add_argument(
        "--no-build-ids",
        dest="build_ids",
        action="store_false",
        help="write no build id into pages",
    )
    made.add_argument(
        "--archive", choices=get_args(ArchiveKind), default="tar.gz", help="format of the bundle"
    )
    made.add_argument(
        "--link-seconds", type=_seconds, default=3600.0, help="how long a bundle link works"
    )


def _add_quota(made: argparse.ArgumentParser) -> None:
    # The description does not name the option: argparse may break lines at its hyphens.
    quota = made.add_argument_group(
        "quota of starts",
        "The first option sets the quota. Without it, the others have no effect.",
    )
    quota.add_argument(
        "--starts-per-hour",
        type=_whole_number(1, 10**6),
        metavar="N",
        help="maximum accepted starts of exports an hour; others get 429",
    )
    quota.add_argument(
        "--hour-seconds",
        type=_positive_seconds,
        default=3600.0,
        metavar="S",
        help="length of the quota's hour",
    )
    quota.add_argument(
        "--hour",
        choices=("sliding", "clock"),
        default="sliding",
        help="whether the hour slides, or the count begins again with each hour of the clock (UTC)",
    )
    quota.add_argument(
        "--count-refused",
        action="store_true",
        help="count the starts that the quota refuses, too",
    )
    quota.add_argument("--retry-after", action="store_true", help="send Retry-After with the 429")


def pop_start_quota(options: dict[str, Any]) -> StartQuota | None:
    """Remove the options of the quota from all options, and return the quota."""
    starts = options.pop("starts_per_hour")
    hour_seconds = options.pop("hour_seconds")
    hour = options.pop("hour")
    counts_refused = options.pop("count_refused")
    sends_retry_after = options.pop("retry_after")
    if starts is None:
        return None
    return StartQuota(
        starts=starts,
        hour_seconds=hour_seconds,
        by_clock=hour == "clock",
        counts_refused=counts_refused,
        sends_retry_after=sends_retry_after,
    )


def main(arguments: Sequence[str] | None = None, *, out: TextIO | None = None) -> int:
    """Run the program; return its exit code: 0 after a signal, 2 if it cannot start."""
    options = vars(parser().parse_args(arguments))
    out = out or sys.stdout
    scenario = options.pop("scenario")
    start_quota = pop_start_quota(options)
    simulator = Simulator(start_quota=start_quota, **options)
    # Before any thread starts, so that all threads block them and `sigwait` receives them.
    # A handler would run only when the main thread is back in Python code: a signal that comes
    # in the moment before it begins to wait would not end the wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        if scenario:
            apply_scenario(scenario, simulator)
        simulator.start()
    except (ScenarioError, ModuleNotFoundError, OSError) as error:
        sys.stderr.write(f"The simulator cannot start: {error}\n")
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            any_free = "--port 0 --storage-port 0 --github-port 0"
            sys.stderr.write(f'Any free ports: make simulator OPTIONS="{any_free}"\n')
        return 2
    try:
        write_requests(out)
        out.write(banner(simulator))
        out.flush()
        signal.sigwait(STOP_SIGNALS)
    finally:
        simulator.stop()
    return 0


def banner(simulator: Simulator) -> str:
    """Return what the program prints once it is serving."""
    authority = ""
    if simulator.ca_path:
        authority = f"Authority:  {simulator.ca_path}\n"
    agents = "".join(
        f"  {job_id:<22}{outcome.replace('-', ' ')}\n" for job_id, outcome in AGENT_JOBS.items()
    )
    repositories = "".join(
        f"  {name:<22}{outcome}\n" for name, outcome in DEMO_REPOSITORIES.items()
    )
    return (
        f"The simulated platform serves at {simulator.base_url}\n"
        f"Storage:    {simulator.storage_url}\n"
        f"Admin key:  {simulator.key}\n"
        f"Read key:   {simulator.read_key}, which cannot start exports\n"
        f"GitHub:     {simulator.github_url}, token {simulator.token}\n"
        f"{authority}"
        "\n"
        "To run the action with it, copy this command into a second terminal, in the same folder:\n"
        "\n"
        f"{command(simulator)}\n"
        "\nMode export, domain, or by project, project-id: docs, changing, and so on:\n"
        "  docs.example.com      completed, like any other name\n"
        "  changing.example.com  each export adds, changes and removes another page\n"
        "  failing.example.com   failed\n"
        "  no-plan.example.com   403, static export is not enabled\n"
        "  private.example.com   403, the site asks its readers to sign in\n"
        "  unknown.example.com   404, no such deployment\n"
        "  busy.example.com      409 until an export that runs already has ended\n"
        "Mode collect, job-id, or by project, project-id docs and job-id:\n"
        f"  {FINISHED_EXPORT:<22}already completed\n"
        f"  {FAILED_EXPORT:<22}already failed\n"
        f"Mode agent, project-id {DEMO_PROJECT}, job-id:\n"
        f"{agents}"
        f"In a workflow, commit {COMMIT}, GITHUB_REPOSITORY:\n"
        f"{repositories}"
        "\nCtrl-C stops the simulator. Each request gets a line here:\n"
    )


def command(simulator: Simulator) -> str:
    """Return a shell command that runs the action with the simulator."""
    inputs = [
        f"INPUT_BASE_URL={simulator.base_url}",
        f"INPUT_ADMIN_KEY={shlex.quote(simulator.key)}",
    ]
    if simulator.ca_path:  # which the action reads only in the folder where it runs
        inputs.append(f"INPUT_CA_BUNDLE={shlex.quote(_relative(simulator.ca_path))}")
    run = shlex.join([_relative(Path(sys.executable)), "-I", "-u", _relative(ENTRYPOINT)])
    return f"{' '.join(inputs)} \\\n    INPUT_DOMAIN=docs.example.com {run}"


def _relative(path: Path) -> str:
    """Return a path relative to the current folder, if it is in there."""
    here = Path.cwd()
    absolute = path.absolute()
    if absolute.is_relative_to(here):
        return str(absolute.relative_to(here))
    return str(path)


def _whole_number(least: int, most: int) -> Callable[[str], int]:
    def parsed(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} to {most}")
        return int(text)

    return parsed


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a duration in seconds")
    return number


def _positive_seconds(text: str) -> float:
    number = _seconds(text)
    if number == 0:
        raise argparse.ArgumentTypeError(f"{text} is not greater than zero")
    return number
