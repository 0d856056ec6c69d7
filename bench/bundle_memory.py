"""Peak memory of a run that downloads, hashes and unpacks a bundle, small and large: `python bench/bundle_memory.py`.

The bundle is generated from a seed, and half of it cannot be compressed; the simulator serves it over loopback from a file. Each
run is the action's own entry point in a process of its own, which tells its highest resident set (`VmHWM`, proc(5)) when it ends.
Ends with 1 when a run needs more than `MOST_MIB`.
"""

import argparse
import random
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Final

from admin_api_simulator import Simulator
from admin_api_simulator.runner import run_action

MOST_MIB: Final = 96
SIZES_MIB: Final = (1, 64, 512)
SEED: Final = 20260504
ENTRYPOINT: Final = Path(__file__).with_name("measured_entrypoint.py")
MIB: Final = 1024 * 1024


def main() -> int:
    """Measure every kind in every size, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES_MIB, metavar="MIB", help="sizes of the archive")
    options = parser.parse_args()
    sys.stdout.write("| archive | size | files | peak memory | beside the smallest |\n| --- | --- | --- | --- | --- |\n")
    worst = 0.0
    for kind, pack in KINDS.items():
        peaks = []
        for size_mib in options.sizes:
            count, peak = measure(pack, size_mib * MIB)
            peaks.append(peak)
            sys.stdout.write(f"| {kind} | {size_mib} MiB | {count:,} | {peak:.1f} MiB | {peak / peaks[0]:.2f} |\n")
            sys.stdout.flush()
        worst = max(worst, *peaks)
    sys.stdout.write(f"\nThe most: {worst:.1f} MiB. The bound: {MOST_MIB} MiB.\n")
    return 1 if worst > MOST_MIB else 0


def measure(pack: Callable[[Path, int], int], size: int) -> tuple[int, float]:
    """Run the action on a bundle of about `size` bytes; give its number of files and the run's peak memory in MiB."""
    with tempfile.TemporaryDirectory(prefix="bundle-memory-") as folder, Simulator() as platform:
        archive, workspace, told = Path(folder, "bundle"), Path(folder, "workspace"), Path(folder, "peak")
        workspace.mkdir()
        count = pack(archive, size)
        platform.put_bundle_file("export-finished", archive)
        inputs = {
            "base-url": platform.base_url,
            "admin-key": platform.key,
            "job-id": "export-finished",
            "bundle-path": "bundle",
            "site-path": "site",
        }
        run = run_action(
            inputs, entrypoint=ENTRYPOINT, workspace=workspace, env={"PEAK_MEMORY_FILE": str(told)}, timeout_seconds=600
        )
        if run.exit_code != 0:
            raise SystemExit(f"the run failed:\n{run.stdout}{run.stderr}")
        if int(run.outputs["bundleSize"]) != archive.stat().st_size:
            raise SystemExit("the run did not fetch the bundle")
        return count, int(told.read_text()) / 1024


def files(size: int) -> Iterator[tuple[str, bytes]]:
    """Make a site whose archive has about `size` bytes: many pages, and some assets that cannot be compressed."""
    chance = random.Random(SEED)  # noqa: S311  # the same in every run, and no secret
    made = number = 0
    while made < size:
        number += 1
        page = chance.randbytes(6_000).hex().encode()  # compresses to half
        yield f"guides/{number % 97}/page-{number}.html", page
        made += len(page) // 2
        if number % 20 == 0:
            asset = chance.randbytes(250_000)
            yield f"assets/{number}.bin", asset
            made += len(asset)


def pack_tar_gz(archive: Path, size: int) -> int:
    """Pack a site as `.tar.gz`; give the number of files."""
    count = 0
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for name, content in files(size):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, BytesIO(content))
            count += 1
    return count


def pack_zip(archive: Path, size: int) -> int:
    """Pack a site as `.zip`; give the number of files."""
    count = 0
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name, content in files(size):
            packed.writestr(name, content)
            count += 1
    return count


KINDS: Final[dict[str, Callable[[Path, int], int]]] = {".tar.gz": pack_tar_gz, ".zip": pack_zip}


if __name__ == "__main__":
    sys.exit(main())
