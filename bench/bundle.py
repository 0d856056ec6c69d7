"""Delivers a bundle to disk, compared with shell commands, and measures peak memory: `python bench/bundle.py`.

Each of `COMPARED`, a site of many small files and one of a single large file, is generated from a seed (`large_site.py`) and
packed as `.tar.gz` and as `.zip`. The simulated platform serves it over loopback from a separate process. In turns, each time
into a new folder of the same file system, it is

- collected by the action: its entry point collects the finished job, makes a link, downloads, hashes and unpacks;
- fetched from a link by a shell: `curl`, then `sha256sum`, then `tar -xzf` or `unzip -q`.

Both are repeated through a relay (`paced_relay.py`) with the bandwidth `NETWORKS_MIB`.

Wall time ends with the process; processor time is that of the process and its children in user and kernel mode (getrusage(2)).
Both are medians of `ROUNDS` rounds. Writes are flushed to disk between turns, outside the measurements. If this runs as root, the
folders belong to another user, as on a runner, so the action changes the owner of each file.

The second table runs only the action, through `measured_entrypoint.py`, which records the highest resident set of the process.
Exits with 3 if a goal is missed.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import large_site
import requests
from needs import need_programs
from paced_relay import PacedRelay

from admin_api_simulator import Simulator
from admin_api_simulator.runner import run_action

COMPARED: Final = ((34_000, 572), (1, 256))
"""Files and MiB of the sites that are compared with the shell."""
SIZES: Final = ((100, 1), (2_000, 64), (130_000, 128))
"""The same of the other sites for the memory measurement. The last has about half the maximum number of entries."""
IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # it holds a new folder: on a disk, the same files take up to twice as long
ROUNDS: Final = 3
MAX_MIB: Final = 64
MAX_LARGE_ZIP_MIB: Final = 160  # of a zip archive with 130,000 files, whose directory is in memory

NETWORKS_MIB: Final = (None, 50)
"""MiB per second: unlimited loopback, and a typical rate from an object storage."""

SLOWEST: Final = 1.0
MISSED: Final = 3
"""The exit code for a missed goal; 1 is an error of the benchmark (`page.py`)."""
JOB: Final = "export-finished"
MAX_SECONDS: Final = 1800.0
ENTRYPOINT: Final = Path(__file__).parents[1] / "entrypoint.py"
MEASURED: Final = Path(__file__).with_name("measured_entrypoint.py")
MIB: Final = 1024 * 1024
UNPACKERS: Final = {
    "bundle.tar.gz": ("tar", "-xzf", "bundle", "-C", "site"),
    "bundle.zip": ("unzip", "-q", "bundle", "-d", "site"),
}
TOOLS: Final = ("curl", "sha256sum", "tar", "unzip")

TIMES: Final = """## Bundle to disk

Sites generated from a seed are served over loopback from a separate process, at full speed and at the rate of a network. The
action downloads, hashes and unpacks each of them, and keeps the archive; its time is that of the whole process. A shell runs
`curl -o`, `sha256sum`, and `tar -xzf` or `unzip -q`, one after another. They take turns, {rounds} each, in new folders of the
same file system, which is in memory: a disk takes up to twice as long for the same files. The action runs on Python {python}.
Times are medians; processor time is that of all cores. Below 1.00 the action is faster or takes less. The goal: not slower in
wall time. The last three columns are the shares of the shell's time.

| archive | files | size | network | action / shell | fastest | processors | goal | curl | sha256sum | unpacking |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""

MEMORY: Final = """
Peak memory of the action's process. The goal: at most {bound} MiB, and {large_zip} MiB with 130,000 files in a zip archive.

| archive | files | unpacked | peak memory | share of the limit | goal |
| --- | --- | --- | --- | --- | --- |"""

MEANING: Final = """
Memory does not grow with the size of a site. It grows with the number of entries in a zip archive, whose directory is read whole.
"""


Size = tuple[int, int]
"""Files and MiB of a site."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a turn in seconds."""

    wall: float
    processor: float


@dataclass(frozen=True, kw_only=True)
class Platform:
    """The server of an archive: the API's address and key, and a link to the archive."""

    base_url: str
    key: str
    link: str


def main() -> int:
    """Measure every format, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="turns of each side")
    parser.add_argument("--files", type=int, metavar="N", help="compare a single site, of this many files, with the shell")
    parser.add_argument("--mib", type=int, metavar="MIB", help="size of that site, unpacked")
    parser.add_argument(
        "--other-sites", type=int, default=len(SIZES), metavar="N", help="other sites for the memory, the smallest first"
    )
    where = IN_MEMORY if IN_MEMORY.is_dir() else None
    parser.add_argument("--folder", type=Path, default=where, help="where to work, by default in memory if possible")
    options = parser.parse_args()
    need_programs(*TOOLS)
    with tempfile.TemporaryDirectory(prefix="bundle-", dir=options.folder) as folder:
        compared = ((options.files, options.mib),) if options.files and options.mib else COMPARED
        return _measure(Path(folder), options.rounds, compared, SIZES[: options.other_sites])


def _measure(folder: Path, rounds: int, compared: Sequence[Size], other_sizes: Sequence[Size]) -> int:
    ratios: dict[tuple[str, Size, int | None], tuple[float, ...]] = {}
    peaks: dict[tuple[str, Size], float] = {}
    for size in (*other_sizes, *compared):
        files, mib = size
        for archive in _packed(folder, files, mib):
            with _served(archive) as platform:
                peaks[archive.name, size] = _peak_mib(platform, folder, files)
            for network in NETWORKS_MIB if size in compared else ():
                with _served(archive, network) as platform:
                    ratios[archive.name, size, network] = _compared(platform, folder, archive, rounds, files)
            archive.unlink()
    sys.stdout.write(_section(ratios, peaks, rounds))
    slow = any(wall > SLOWEST for wall, *_ in ratios.values())
    return MISSED if slow or any(peak > _max_mib(*key) for key, peak in peaks.items()) else 0


def _max_mib(archive: str, size: Size) -> int:
    return MAX_LARGE_ZIP_MIB if archive.endswith(".zip") and size[0] > 100_000 else MAX_MIB


def _packed(folder: Path, files: int, mib: int) -> list[Path]:
    """Pack the site in both formats in parallel."""
    archives = [folder / name for name in UNPACKERS]
    with ProcessPoolExecutor(len(archives)) as pool:
        for packed in [pool.submit(large_site.pack, archive, files, mib * MIB) for archive in archives]:
            packed.result()
    _log(
        f"packed {files:,} files, {mib} MiB: "
        + ", ".join(f"{path.name} {path.stat().st_size / MIB:.1f} MiB" for path in archives)
    )
    return archives


@contextmanager
def _served(archive: Path, network_mib: int | None = None) -> Iterator[Platform]:
    """Serve an archive as the bundle of a finished job from a separate process, at a limited rate in MiB per second."""
    here, there = get_context("spawn").Pipe()
    server = get_context("spawn").Process(target=_serve, args=(archive, network_mib, there))
    server.start()
    try:
        yield here.recv()
    finally:
        here.send(None)
        server.join()


def _serve(archive: Path, network_mib: int | None, parent: Connection) -> None:
    with ExitStack() as stack:
        platform = stack.enter_context(Simulator())
        platform.put_bundle_file(JOB, archive)
        if network_mib is not None:
            storage = urlsplit(_link(platform)).netloc
            port = int(storage.rpartition(":")[2])
            relay = stack.enter_context(PacedRelay(port, bytes_a_second=network_mib * MIB))
            there = f"127.0.0.1:{relay.port}"
            platform.override("make_bundle", lambda json: json | {"bundleUrl": json["bundleUrl"].replace(storage, there, 1)})
        parent.send(Platform(base_url=platform.base_url, key=platform.key, link=_link(platform)))
        parent.recv()


def _link(platform: Simulator) -> str:
    path, headers = f"/v1/static-export/jobs/{JOB}/bundle", {"Authorization": f"Bearer {platform.key}"}
    return str(requests.post(f"{platform.base_url}{path}", headers=headers, timeout=60).json()["bundleUrl"])


def _compared(platform: Platform, folder: Path, archive: Path, rounds: int, files: int) -> tuple[float, ...]:
    """Measure both in turns; return the ratios of wall time, processor time and best wall time, and the commands' shares."""
    action: list[Cost] = []
    shell: list[list[Cost]] = []
    for number in range(rounds):
        turns = [
            lambda: action.append(_by_action(platform, folder, files)),
            lambda: shell.append(_by_shell(platform, folder, archive)),
        ]
        for turn in turns if number % 2 == 0 else reversed(turns):
            turn()
        _log(f"{archive.name} {number + 1}: action {_format_costs(action[-1:])}; shell {_format_costs(shell[-1])}")
    whole = [Cost(wall=sum(cost.wall for cost in turn), processor=sum(cost.processor for cost in turn)) for turn in shell]
    wall = statistics.median(cost.wall for cost in whole)
    shares = (statistics.median(turn[command].wall for turn in shell) / wall for command in range(3))
    return (
        statistics.median(cost.wall for cost in action) / wall,
        statistics.median(cost.processor for cost in action) / statistics.median(cost.processor for cost in whole),
        min(cost.wall for cost in action) / min(cost.wall for cost in whole),
        *shares,
    )


def _by_action(platform: Platform, folder: Path, files: int) -> Cost:
    with _workspace(folder, files) as workspace:
        return _cost(lambda: _run(platform, workspace, ENTRYPOINT))


def _by_shell(platform: Platform, folder: Path, archive: Path) -> list[Cost]:
    """Run the commands in order, and return their costs."""
    with _workspace(folder) as workspace:
        (workspace / "site").mkdir()
        commands = (("curl", "-sS", "-o", "bundle", platform.link), ("sha256sum", "bundle"), UNPACKERS[archive.name])
        return [_cost(lambda: _command(command, workspace)) for command in commands]  # noqa: B023  # called before the loop continues


def _command(command: tuple[str, ...], workspace: Path) -> None:
    subprocess.run(command, cwd=workspace, check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # defined in this file


def _peak_mib(platform: Platform, folder: Path, files: int) -> float:
    peak_file = folder / "peak"
    with _workspace(folder, files) as workspace:
        _run(platform, workspace, MEASURED, {"PEAK_MEMORY_FILE": str(peak_file)})
    peak = int(peak_file.read_text()) / 1024
    _log(f"{files:,} files: {peak:.1f} MiB of memory")
    return peak


def _run(platform: Platform, workspace: Path, entrypoint: Path, env: dict[str, str] | None = None) -> None:
    inputs = {
        "base-url": platform.base_url,
        "admin-key": platform.key,
        "mode": "collect",
        "job-id": JOB,
        "bundle-path": "bundle",
        "site-path": "site",
    }
    run = run_action(inputs, entrypoint=entrypoint, workspace=workspace, env=env, timeout_seconds=MAX_SECONDS)
    if run.exit_code != 0:
        raise SystemExit(f"the run failed:\n{run.stdout}{run.stderr}")


@contextmanager
def _workspace(folder: Path, files: int | None = None) -> Iterator[Path]:
    """Create an empty workspace, and check the number of files in its site at the end."""
    workspace = folder / "workspace"
    workspace.mkdir()
    if os.geteuid() == 0:
        os.chown(workspace, large_site.OWNER_ID, large_site.OWNER_ID)
    os.sync()
    yield workspace
    found = sum(len(names) for _, _, names in os.walk(workspace / "site"))
    if files is not None and found != files:
        raise SystemExit(f"the run left {found:,} files, not {files:,}")
    shutil.rmtree(workspace)


def _cost(work: Callable[[], None]) -> Cost:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall=wall, processor=after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def _section(
    ratios: dict[tuple[str, Size, int | None], tuple[float, ...]], peaks: dict[tuple[str, Size], float], rounds: int
) -> str:
    lines = [TIMES.format(rounds=rounds, python=".".join(map(str, sys.version_info[:2])))]
    for (name, (files, mib), network), (wall, processor, best, *shares) in ratios.items():
        kind, pace = name.removeprefix("bundle"), "loopback" if network is None else f"{network} MiB/s"
        parts = " | ".join(f"{100 * share:.0f} %" for share in shares)
        met = "met" if wall <= SLOWEST else f"missed by {wall - SLOWEST:.2f}"
        site = f"{files:,} | {mib:,} MiB"
        lines.append(f"| `{kind}` | {site} | {pace} | {wall:.2f} | {best:.2f} | {processor:.2f} | {met} | {parts} |")
    lines.append(MEMORY.format(bound=MAX_MIB, large_zip=MAX_LARGE_ZIP_MIB))
    for (name, (files, mib)), peak in peaks.items():
        bound = _max_mib(name, (files, mib))
        met = "met" if peak <= bound else f"missed by {peak - bound:.1f} MiB"
        kind = name.removeprefix("bundle")
        lines.append(f"| `{kind}` | {files:,} | {mib:,} MiB | {peak:.1f} MiB | {peak / bound:.2f} | {met} |")
    lines.append(MEANING)
    return "\n".join(lines)


def _format_costs(costs: list[Cost]) -> str:
    return " + ".join(f"{cost.wall:.2f} s ({cost.processor:.2f} s of processors)" for cost in costs)


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
