"""Compares the delivery of a bundle with shell commands: `python -m bench.bundle`.

Each generated site is packed as `.tar.gz` and as `.zip`. In turns, each time in a new folder of the
same file system, the archive is delivered by the action, as a process that collects a finished job
from the simulated platform, and by the commands `curl`, `sha256sum`, and `tar` or `unzip`, one
after another. A server of this process sends the archive over loopback, at full speed and at the
rate of a network. As root, the folders belong to another user, as on a runner, so the action
changes the owner of each file. The action runs through `measured_entrypoint.py`, which records its
peak memory.
"""

import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from typing import Final

from bench.common import need_programs, options_of, table, write_section
from bench.large_site import OWNER_ID, pack

from admin_api_simulator import Simulator
from admin_api_simulator.runner import run_action

MIB: Final = 1024 * 1024
# It holds a new folder: on a disk, the same files take up to twice as long.
IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108
NETWORK_MIB: Final = 50  # a typical rate of an object storage, in MiB per second
RATES: Final = (math.inf, float(NETWORK_MIB * MIB))
MAX_RATIO: Final = 1.0
MAX_MIB: Final = 64
MAX_LARGE_ZIP_MIB: Final = 160  # with 130,000 files, whose directory is in memory

JOB: Final = "export-finished"
MAX_SECONDS: Final = 300.0
BLOCK_BYTES: Final = 128 * 1024
MEASURED: Final = Path(__file__).with_name("measured_entrypoint.py")
ROUNDS: Final = 3
UNPACKERS: Final = {
    "bundle.tar.gz": ("tar", "-xzf", "bundle", "-C", "site"),
    "bundle.zip": ("unzip", "-q", "bundle", "-d", "site"),
}


@dataclass(frozen=True, kw_only=True)
class Site:
    """A site of so many files and MiB, and the rates at which its delivery is compared.

    Without rates, only the memory is measured.
    """

    files: int
    mib: int
    rates: Sequence[float] = ()


SITES: Final = (
    Site(files=34_000, mib=572, rates=RATES),
    Site(files=1, mib=256, rates=RATES),
    Site(files=130_000, mib=128),
)
SMALLEST: Final = (Site(files=20, mib=1, rates=RATES), Site(files=10, mib=1))


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """How long the action took to deliver an archive, and its peak memory."""

    seconds: float
    peak_mib: float


def main() -> int:
    """Measure every archive, and write the section."""
    options = options_of(__doc__).parse_args()
    need_programs("curl", "sha256sum", "tar", "unzip")
    sites = SMALLEST if options.smallest else SITES
    rounds = 1 if options.smallest else ROUNDS
    rows = []
    missed = []
    with folder_in_memory("bundle-") as folder:
        for site in sites:
            for archive in packed(folder, site.files, site.mib):
                with served(archive, math.inf) as link:
                    peak_mib = by_action(folder, link, site.files).peak_mib
                ratios = [
                    ratio_to_shell(folder, archive, site.files, rate, rounds) for rate in site.rates
                ]
                rows.append(row(archive, site, ratios, peak_mib))
                missed += missed_goals(archive, site, ratios, peak_mib)
                archive.unlink()
    return report(rows, missed)


def row(archive: Path, site: Site, ratios: Sequence[float], peak_mib: float) -> str:
    """Return the row of an archive; without ratios, their cells are empty."""
    kind = archive.name.removeprefix("bundle")
    times = " | ".join(f"{ratio:.2f}" for ratio in ratios) or " | "
    limit = max_mib(archive, site)
    return f"`{kind}` | {site.files:,} | {site.mib} | {times} | {peak_mib:.1f} | {limit}"


def missed_goals(archive: Path, site: Site, ratios: Sequence[float], peak_mib: float) -> list[str]:
    """Return the goals that an archive misses."""
    what = f"{archive.name}, {site.files:,} files"
    missed = [f"{what}: {ratio:.2f}" for ratio in ratios if ratio > MAX_RATIO]
    if peak_mib > max_mib(archive, site):
        missed.append(f"{what}: {peak_mib:.1f} MiB")
    return missed


def max_mib(archive: Path, site: Site) -> int:
    """Return the goal for the peak memory."""
    if archive.suffix == ".zip" and site.files > 100_000:
        return MAX_LARGE_ZIP_MIB
    return MAX_MIB


def report(rows: list[str], missed: list[str]) -> int:
    """Write the section."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    head = (
        f"archive | files | unpacked MiB | action / shell | at {NETWORK_MIB} MiB/s"
        " | peak MiB | limit"
    )
    return write_section(
        "## Bundle to disk",
        f"""
        Generated sites are served over loopback, at full speed and at the rate of a network. The
        action, a process on Python {python}, downloads, hashes and unpacks each of them, and keeps
        the archive. A shell runs `curl -o`, `sha256sum`, and `tar -xzf` or `unzip -q`, one after
        another. They take turns, {ROUNDS} each, in new folders in memory. *Action / shell* is the
        ratio of the median times: below 1.00 the action is faster.
        """,
        f"""
        Goals: not slower than the shell; a peak memory of at most {MAX_MIB} MiB, and
        {MAX_LARGE_ZIP_MIB} MiB with 130,000 files in a zip archive.
        """,
        table(head, rows),
        """
        The action unpacks a tar archive while it arrives, and a zip archive after the download.
        Memory does not grow with the size of a site, but with the number of entries in a zip
        archive.
        """,
        missed=missed,
    )


@contextmanager
def folder_in_memory(prefix: str) -> Iterator[Path]:
    """Create a temporary folder, in memory if the machine allows it, and remove it at the end."""
    parent = IN_MEMORY if IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
        yield Path(name)


def packed(folder: Path, files: int, mib: int) -> list[Path]:
    """Pack a site in both formats."""
    archives = [folder / name for name in UNPACKERS]
    with ProcessPoolExecutor(len(archives)) as pool:
        list(pool.map(pack, archives, repeat(files), repeat(mib * MIB)))
    return archives


def ratio_to_shell(folder: Path, archive: Path, files: int, rate: float, rounds: int) -> float:
    """Return the ratio of the action's median time to the shell's."""
    by_actions = []
    by_shells = []
    times = []
    with served(archive, rate) as link:
        for _ in range(rounds):
            action = by_action(folder, link, files).seconds
            shell = by_shell(folder, link, archive.name)
            by_actions.append(action)
            by_shells.append(shell)
            times.append(f"action {action:.2f} s, shell {shell:.2f} s")
    what = f"{archive.name}, {archive.stat().st_size / MIB:.0f} MiB, at {rate / MIB:.0f} MiB/s"
    sys.stderr.write(f"{what}: {', '.join(times)}\n")
    return statistics.median(by_actions) / statistics.median(by_shells)


@contextmanager
def served(archive: Path, rate: float) -> Iterator[str]:
    """Serve an archive at a number of bytes per second, and yield its link."""

    class Storage(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = archive.stat().st_size
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            began = time.monotonic()
            sent = 0
            with archive.open("rb") as file:
                while sent < size:
                    sent += self.connection.sendfile(file, sent, BLOCK_BYTES)
                    time.sleep(max(began + sent / rate - time.monotonic(), 0.0))

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Storage) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/{archive.name}"
        server.shutdown()


def by_action(
    folder: Path,
    link: str,
    count: int,
    inputs: Mapping[str, str] | None = None,
    *,
    files: Mapping[str, bytes] | None = None,
    keep: Sequence[str] = (),
) -> Delivery:
    """Deliver an archive of so many files with the action.

    `inputs` are further ones, `files` are in the workspace before, and those that are named in
    `keep` are copied from it.
    """
    peak_file = folder / "peak"
    with Simulator() as platform, new_workspace(folder) as workspace:
        platform.add_export_job(JOB)
        platform.override("make_bundle", lambda json: json | {"bundleUrl": link})
        given = {
            "base-url": platform.base_url,
            "admin-key": platform.key,
            "mode": "collect",
            "job-id": JOB,
            "bundle-path": "bundle",
            "site-path": "site",
            **(inputs or {}),
        }
        for name, content in (files or {}).items():
            (workspace / name).write_bytes(content)
        env = {"PEAK_MEMORY_FILE": str(peak_file)}
        began = time.monotonic()
        run = run_action(
            given, entrypoint=MEASURED, workspace=workspace, env=env, timeout_seconds=MAX_SECONDS
        )
        seconds = time.monotonic() - began
        found = sum(len(names) for _, _, names in os.walk(workspace / "site"))
        if run.exit_code != 0 or found != count:
            raise SystemExit(
                f"the run left {found:,} files, not {count:,}:\n{run.stdout[-3000:]}{run.stderr}"
            )
        for name in keep:
            shutil.copy(workspace / name, folder / name)
    return Delivery(seconds=seconds, peak_mib=int(peak_file.read_text()) / 1024)


def by_shell(folder: Path, link: str, name: str) -> float:
    """Deliver an archive with shell commands; return the seconds."""
    with new_workspace(folder) as workspace:
        (workspace / "site").mkdir()
        commands = (
            ("curl", "-sS", "-o", "bundle", link),
            ("sha256sum", "bundle"),
            UNPACKERS[name],
        )
        began = time.monotonic()
        for command in commands:
            # runs programs that are named above
            subprocess.run(  # noqa: S603
                command, cwd=workspace, check=True, stdout=subprocess.DEVNULL
            )
        return time.monotonic() - began


@contextmanager
def new_workspace(folder: Path) -> Iterator[Path]:
    """Create an empty workspace, and remove it at the end."""
    workspace = folder / "workspace"
    workspace.mkdir()
    if os.geteuid() == 0:
        os.chown(workspace, OWNER_ID, OWNER_ID)
    yield workspace
    shutil.rmtree(workspace)


if __name__ == "__main__":
    sys.exit(main())
