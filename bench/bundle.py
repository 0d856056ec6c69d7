"""Compares the delivery of a bundle with shell commands, and measures peak memory: `python -m bench.bundle`.

Each generated site is packed as `.tar.gz` and as `.zip`. In turns, each time in a new folder of the same file system, the archive
is delivered by the action, as a process that collects a finished job from the simulated platform, and by the commands `curl`,
`sha256sum`, and `tar` or `unzip`, one after another. A server of this process sends the archive over loopback, at full speed and
at the rate of a network. As root, the folders belong to another user, as on a runner, so the action changes the owner of each
file. The action runs through `measured_entrypoint.py`, which records its peak memory.
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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from typing import Final

from bench.common import need_programs, options_of, table, write_section
from bench.large_site import OWNER_ID, pack

from admin_api_simulator import Simulator
from admin_api_simulator.runner import run_action

MIB: Final = 1024 * 1024
IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # it holds a new folder: on a disk, the same files take up to twice as long
NETWORK_MIB: Final = 50  # a typical rate of an object storage, in MiB per second
RATES: Final = (math.inf, float(NETWORK_MIB * MIB))
MAX_RATIO: Final = 1.0
MAX_MIB: Final = 64
MAX_LARGE_ZIP_MIB: Final = 160  # with 130,000 files, whose directory is in memory

JOB: Final = "export-finished"
MAX_SECONDS: Final = 300.0
BLOCK_BYTES: Final = 128 * 1024
MEASURED: Final = Path(__file__).with_name("measured_entrypoint.py")
SITES: Final = ((34_000, 572, RATES), (1, 256, RATES), (130_000, 128, ()))
SMALLEST: Final = ((20, 1, RATES), (10, 1, ()))
"""Files and MiB of each site, and the rates at which it is compared. Without rates, only the memory is measured."""
ROUNDS: Final = 3
UNPACKERS: Final = {
    "bundle.tar.gz": ("tar", "-xzf", "bundle", "-C", "site"),
    "bundle.zip": ("unzip", "-q", "bundle", "-d", "site"),
}


def main() -> int:
    """Measure every archive, and write the section."""
    options = options_of(__doc__).parse_args()
    need_programs("curl", "sha256sum", "tar", "unzip")
    rows, missed = [], []
    with tempfile.TemporaryDirectory(
        prefix="bundle-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None
    ) as name:
        folder = Path(name)
        for files, mib, rates in SMALLEST if options.smallest else SITES:
            for archive in packed(folder, files, mib):
                with served(archive, math.inf) as link:
                    _, peak_mib = by_action(folder, link, files)
                ratios = [
                    ratio_to_shell(folder, archive, files, rate, 1 if options.smallest else ROUNDS)
                    for rate in rates
                ]
                times = " | ".join(f"{ratio:.2f}" for ratio in ratios) or " | "
                max_mib = (
                    MAX_LARGE_ZIP_MIB if archive.suffix == ".zip" and files > 100_000 else MAX_MIB
                )
                what = f"`{archive.name.removeprefix('bundle')}` | {files:,} | {mib}"
                rows.append(f"{what} | {times} | {peak_mib:.1f} | {max_mib}")
                missed += [
                    f"{archive.name}, {files:,} files: {ratio:.2f}"
                    for ratio in ratios
                    if ratio > MAX_RATIO
                ]
                missed += (
                    [f"{archive.name}, {files:,} files: {peak_mib:.1f} MiB"]
                    if peak_mib > max_mib
                    else []
                )
                archive.unlink()
    python = ".".join(map(str, sys.version_info[:2]))
    return write_section(
        "## Bundle to disk",
        f"""
        Generated sites are served over loopback, at full speed and at the rate of a network. The action, a process on Python
        {python}, downloads, hashes and unpacks each of them, and keeps the archive. A shell runs `curl -o`, `sha256sum`, and
        `tar -xzf` or `unzip -q`, one after another. They take turns, {ROUNDS} each, in new folders in memory. *Action / shell* is
        the ratio of the median times: below 1.00 the action is faster.
        """,
        f"""
        Goals: not slower than the shell; a peak memory of at most {MAX_MIB} MiB, and {MAX_LARGE_ZIP_MIB} MiB with 130,000 files
        in a zip archive.
        """,
        table(
            f"archive | files | unpacked MiB | action / shell | at {NETWORK_MIB} MiB/s | peak MiB | limit",
            rows,
        ),
        """
        The action unpacks a tar archive while it arrives, and a zip archive after the download. Memory does not grow with the
        size of a site, but with the number of entries in a zip archive.
        """,
        missed=missed,
    )


def packed(folder: Path, files: int, mib: int) -> list[Path]:
    """Pack a site in both formats."""
    archives = [folder / name for name in UNPACKERS]
    with ProcessPoolExecutor(len(archives)) as pool:
        list(pool.map(pack, archives, repeat(files), repeat(mib * MIB)))
    return archives


def ratio_to_shell(folder: Path, archive: Path, files: int, rate: float, rounds: int) -> float:
    """Return the ratio of the action's median time to the shell's."""
    with served(archive, rate) as link:
        pairs = [
            (by_action(folder, link, files)[0], by_shell(folder, link, archive.name))
            for _ in range(rounds)
        ]
    what = f"{archive.name}, {archive.stat().st_size / MIB:.0f} MiB, at {rate / MIB:.0f} MiB/s"
    sys.stderr.write(
        f"{what}: {', '.join(f'action {action:.2f} s, shell {shell:.2f} s' for action, shell in pairs)}\n"
    )
    return statistics.median(action for action, _ in pairs) / statistics.median(
        shell for _, shell in pairs
    )


@contextmanager
def served(archive: Path, rate: float) -> Iterator[str]:
    """Serve an archive at a number of bytes per second, and yield its link."""

    class Storage(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = archive.stat().st_size
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            began, sent = time.monotonic(), 0
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
) -> tuple[float, float]:
    """Deliver an archive of so many files with the action; return the seconds, and the peak memory in MiB.

    `inputs` are further ones, `files` are in the workspace before, and those that are named in `keep` are copied from it.
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
        }
        given |= {"bundle-path": "bundle", "site-path": "site", **(inputs or {})}
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
    return seconds, int(peak_file.read_text()) / 1024


def by_shell(folder: Path, link: str, name: str) -> float:
    """Deliver an archive with shell commands; return the seconds."""
    with new_workspace(folder) as workspace:
        (workspace / "site").mkdir()
        began = time.monotonic()
        for command in (
            ("curl", "-sS", "-o", "bundle", link),
            ("sha256sum", "bundle"),
            UNPACKERS[name],
        ):
            subprocess.run(command, cwd=workspace, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # defined here
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
