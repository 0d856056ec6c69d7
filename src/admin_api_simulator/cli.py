"""The simulator as a program."""

import argparse
import difflib
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO, get_args

from admin_api_simulator.jobs import AGENT_JOBS, DEMO_PROJECT, FAILED_EXPORT, FINISHED_EXPORT
from admin_api_simulator.request_log import write_requests
from admin_api_simulator.scenario import ScenarioError, apply_scenario
from admin_api_simulator.simulator import DEFAULT_KEY, PortTakenError, Simulator
from admin_api_simulator.site import ArchiveKind

ENTRYPOINT = Path(__file__).resolve().parents[2] / "entrypoint.py"
DEFAULT_PORT = 8377
DEFAULT_STORAGE_PORT = 8378
PORT_OPTIONS = {"api": "--port", "storage": "--storage-port"}
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m admin_api_simulator",
        description="Serve a simulated documentation platform: the administrative API on one port, its object storage on "
        "another. Prints a command that runs the action with it, the names that select each outcome, and a line for each "
        "request. Serves until Ctrl-C or SIGTERM.",
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    made.add_argument("--host", default="127.0.0.1", help="address to listen on")
    made.add_argument("--port", type=_port, default=DEFAULT_PORT, help="port of the API, 0 for any free port")
    made.add_argument("--storage-port", type=_port, default=DEFAULT_STORAGE_PORT, help="port of the storage, 0 for any free port")
    made.add_argument("--tls", action="store_true", help="serve https, with a certificate authority made for this run")
    made.add_argument("--ca-file", type=Path, metavar="FILE", help="PEM file to write the authority to, with --tls")
    made.add_argument("--key", default=DEFAULT_KEY, help="the admin API key to accept")
    made.add_argument("--no-plan", action="store_true", help="reject static exports, as on a plan that does not include them")
    made.add_argument("--export-seconds", type=_seconds, default=20.0, help="how long an export takes")
    made.add_argument(
        "--queue-share", type=_share, default=0.2, help="fraction of --export-seconds that the job is queued, 0 to 1"
    )
    made.add_argument("--agent-seconds", type=_seconds, default=20.0, help="how long an agent job is active")
    made.add_argument("--pages", type=_count, default=12, help="number of pages of an exported site")
    made.add_argument("--asset-bytes", type=_size, default=0, help="size of an additional file in the bundle")
    made.add_argument("--archive", choices=get_args(ArchiveKind), default="tar.gz", help="format of the bundle")
    made.add_argument("--link-seconds", type=_seconds, default=3600.0, help="how long a bundle link works")
    made.add_argument("--max-jobs", type=_count, metavar="N", help="return 429 for a start while N exports are unfinished")
    made.add_argument("--scenario", type=Path, metavar="FILE", help="JSON file with scripted faults")
    return made


def main(arguments: Sequence[str] | None = None, *, out: TextIO | None = None) -> int:
    """Run the program; return its exit code: 0 after a signal, 2 if it cannot start."""
    options = _options(arguments)
    out = out or sys.stdout
    simulator = Simulator(
        host=options.host,
        port=options.port,
        storage_port=options.storage_port,
        tls=options.tls,
        ca_file=options.ca_file,
        key=options.key,
        plan=not options.no_plan,
        export_seconds=options.export_seconds,
        queue_share=options.queue_share,
        agent_seconds=options.agent_seconds,
        pages=options.pages,
        asset_bytes=options.asset_bytes,
        archive=options.archive,
        link_seconds=options.link_seconds,
        max_jobs=options.max_jobs,
    )
    # Before any thread starts, so that all threads block them and `sigwait` receives them. A handler would run only when the main
    # thread is back in Python code: a signal that comes in the moment before it begins to wait would not end the wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        if options.scenario:
            apply_scenario(options.scenario, simulator)
        simulator.start()
    except PortTakenError as error:
        option = PORT_OPTIONS[error.port]
        sys.stderr.write(
            f"The simulator cannot start: {error.strerror}. Use {option} for another port; {option} 0 is any free one.\n"
            'With make: make simulator OPTIONS="--port 0 --storage-port 0"\n'
        )
        return 2
    except (ScenarioError, ModuleNotFoundError, OSError) as error:
        sys.stderr.write(f"The simulator cannot start: {error}\n")
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
    agents = "".join(f"  {job_id:<22}{outcome.replace('-', ' ')}\n" for job_id, outcome in AGENT_JOBS.items())
    return (
        f"The simulated platform serves at {simulator.base_url}\n"
        f"Storage:    {simulator.storage_url}\n"
        f"Admin key:  {simulator.key}\n"
        f"{_authority(simulator.ca_path)}"
        "\nTo run the action with it, copy this command into a second terminal, in the same folder:\n\n"
        f"{command(simulator)}\n"
        "\nMode export, domain:\n"
        "  docs.example.com      completed, like any other name\n"
        "  failing.example.com   failed\n"
        "  no-plan.example.com   403, a plan without static export\n"
        "  unknown.example.com   404, no such deployment\n"
        "Mode collect, job-id:\n"
        f"  {FINISHED_EXPORT:<22}already completed\n"
        f"  {FAILED_EXPORT:<22}already failed\n"
        f"Mode agent, project-id {DEMO_PROJECT}, job-id:\n"
        f"{agents}"
        "\nCtrl-C stops the simulator. Each request gets a line here:\n"
    )


def command(simulator: Simulator) -> str:
    """Return a shell command that runs the action with the simulator."""
    inputs = [f"INPUT_BASE_URL={simulator.base_url}", f"INPUT_ADMIN_KEY={shlex.quote(simulator.key)}"]
    if simulator.ca_path and _is_here(simulator.ca_path):
        inputs.append(f"INPUT_CA_BUNDLE={shlex.quote(_relative(simulator.ca_path))}")
    run = shlex.join([_relative(Path(sys.executable)), "-I", "-u", _relative(ENTRYPOINT)])
    return f"{' '.join(inputs)} \\\n    INPUT_DOMAIN=docs.example.com {run}"


def _authority(path: Path | None) -> str:
    """Return the banner's line about the certificate authority. The action reads files only in the folder where it runs."""
    if path is None:
        return ""
    hint = "pass it to the action as ca-bundle" if _is_here(path) else "for the action, add --ca-file ca.pem"
    return f"Authority:  {path}   ({hint})\n"


def _is_here(path: Path) -> bool:
    return ".." not in path.parts and path.absolute().is_relative_to(Path.cwd())


def _relative(path: Path) -> str:
    return str(path.absolute().relative_to(Path.cwd()) if _is_here(path) else path)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed options. Exits with 2 for an unknown one, with the nearest known one."""
    known = parser()
    options, unknown = known.parse_known_args(arguments)
    if unknown:
        name = unknown[0].partition("=")[0]
        nearest = difflib.get_close_matches(name, re.findall(r"--[a-z-]+", known.format_usage()), n=1)
        hint = f"did you mean {nearest[0]}?" if nearest else "--help lists the options"
        known.exit(2, f"{name} is unknown; {hint}\n")
    return options


def _port(text: str) -> int:
    number = _whole(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is not a port from 0 to 65535")
    return number


def _seconds(text: str) -> float:
    number = _decimal(text)
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a duration in seconds")
    return number


def _share(text: str) -> float:
    number = _decimal(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return number


def _count(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _size(text: str) -> int:
    number = _whole(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is less than 0")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number") from None


def _decimal(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from None
