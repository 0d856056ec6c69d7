"""Measures what a manifest and a comparison cost: `python -m bench.plan`.

A large site is delivered from `.tar.gz` and `.zip`, in turns: without a manifest; with one,
compared with that of the same site; and with one, compared with that of a site of which every page
differs, as with a new build ID in each. Then the peak memory of a site with as many files as a
manifest can have, all of them changed, and hostile names.
"""

import io
import math
import re
import statistics
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.bundle import MIB, Delivery, by_action, folder_in_memory, packed, served
from bench.common import options_of, table, write_section

MAX_RATIO_SAME: Final = 1.4
MAX_RATIO_CHANGED: Final = 1.9
MAX_TAR_MIB: Final = 300
MAX_ZIP_MIB: Final = 460
FOLDERS: Final = 500  # of the site with the most files; they count as entries, too
MANIFEST: Final = "new.manifest"
PUBLISHED: Final = "published.manifest"
PLAN: Final = {
    "manifest-path": MANIFEST,
    "compare-with": PUBLISHED,
    "changes-path": "changes.json",
    "max-removed": "100%",
}
FIRST: Final = {**PLAN, "first-publication": "true"}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The files and MiB of the large site, the files of the largest one, and the rounds."""

    files: int
    mib: int
    most_files: int
    rounds: int


FULL: Final = Sizes(files=34_000, mib=572, most_files=250_000, rounds=5)
SMALLEST: Final = Sizes(files=20, mib=1, most_files=100, rounds=1)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What comparisons cost: ratios to a delivery without a manifest, and the highest peak."""

    same: float
    changed: float
    peak_mib: float


def main() -> int:
    """Measure, and write the section."""
    options = options_of(__doc__).parse_args()
    sizes = SMALLEST if options.smallest else FULL
    times = []
    memory = []
    missed = []
    with folder_in_memory("plan-") as folder:
        for archive in packed(folder, sizes.files, sizes.mib):
            cost = comparison_of(folder, archive, sizes)
            kind = f"`{archive.name.removeprefix('bundle')}`"
            times.append(
                f"{kind} | {sizes.files:,} | {sizes.mib} | {cost.same:.2f} | {cost.changed:.2f}"
                f" | {cost.peak_mib:.1f}"
            )
            if cost.same > MAX_RATIO_SAME:
                missed.append(f"{kind}, same: {cost.same:.2f}")
            if cost.changed > MAX_RATIO_CHANGED:
                missed.append(f"{kind}, changed: {cost.changed:.2f}")
            archive.unlink()
        count = len(list(names(sizes.most_files)))
        for pack, limit in ((pack_tar, MAX_TAR_MIB), (pack_zip, MAX_ZIP_MIB)):
            archive = pack(folder, sizes.most_files)
            manifest_mib, peak_mib = memory_of(folder, archive, count)
            kind = f"`{archive.name.removeprefix('most')}`"
            memory.append(f"{kind} | {count:,} | {manifest_mib:.0f} | {peak_mib:.1f} | {limit}")
            if peak_mib > limit:
                missed.append(f"{kind}, {count:,} files: {peak_mib:.1f} MiB")
            archive.unlink()
    return report(sizes.rounds, times, memory, missed)


def report(rounds: int, times: list[str], memory: list[str], missed: list[str]) -> int:
    """Write the section."""
    return write_section(
        "## The plan",
        f"""
        A generated site is delivered over loopback, as in the section above, in turns without a
        manifest and with `manifest-path`, `compare-with` and `changes-path`, {rounds} times each.
        *Same*: the published site is the same. *All changed*: every page differs from the published
        one, as with a new build ID in each, so its text is extracted. The figures are ratios of the
        median times to that without a manifest.
        """,
        f"Goals: at most {MAX_RATIO_SAME} and {MAX_RATIO_CHANGED}.",
        table("archive | files | unpacked MiB | same | all changed | peak MiB", times),
        f"""
        The peak memory with the most files that a manifest can have, all changed, with names full
        of Markdown. Goals: {MAX_TAR_MIB} MiB from a tar archive, {MAX_ZIP_MIB} MiB from a zip
        archive.
        """,
        table("archive | files | MiB of the manifest | peak MiB | limit", memory),
        missed=missed,
    )


def comparison_of(folder: Path, archive: Path, sizes: Sizes) -> Comparison:
    """Measure a delivery with both comparisons and without one, in turns."""
    without = []
    same = []
    changed = []
    with served(archive, math.inf) as link:
        by_action(folder, link, sizes.files, FIRST, keep=(MANIFEST,))
        same_site = (folder / MANIFEST).read_bytes()
        changed_site = all_changed(same_site)
        for _ in range(sizes.rounds):
            without.append(by_action(folder, link, sizes.files))
            same.append(by_action(folder, link, sizes.files, PLAN, files={PUBLISHED: same_site}))
            changed.append(
                by_action(folder, link, sizes.files, PLAN, files={PUBLISHED: changed_site})
            )
    times = f"{seconds_of(without)}, {seconds_of(same)}, {seconds_of(changed)}"
    sys.stderr.write(f"{archive.name}: {times} s\n")
    usual_seconds = median_seconds(without)
    return Comparison(
        same=median_seconds(same) / usual_seconds,
        changed=median_seconds(changed) / usual_seconds,
        peak_mib=max(delivery.peak_mib for delivery in without + same + changed),
    )


def seconds_of(deliveries: list[Delivery]) -> str:
    """Return the times of deliveries as text."""
    return " ".join(f"{delivery.seconds:.2f}" for delivery in deliveries)


def median_seconds(deliveries: list[Delivery]) -> float:
    """Return the median time of deliveries."""
    return statistics.median(delivery.seconds for delivery in deliveries)


def memory_of(folder: Path, archive: Path, count: int) -> tuple[float, float]:
    """Return the MiB of a manifest of which all pages changed, and of the peak with it."""
    with served(archive, math.inf) as link:
        by_action(folder, link, count, FIRST, keep=(MANIFEST,))
        published = all_changed((folder / MANIFEST).read_bytes())
        delivery = by_action(folder, link, count, PLAN, files={PUBLISHED: published})
    return len(published) / MIB, delivery.peak_mib


def all_changed(manifest: bytes) -> bytes:
    """Return a manifest of the same pages with other contents."""
    return re.sub(rb"(?m)^[0-9a-f]{64}(?=  .*[.]html$)", b"0" * 64, manifest)


def names(count: int) -> Iterator[str]:
    """Yield names of pages that are long and full of Markdown."""
    if count > FOLDERS:
        count -= FOLDERS
    for number in range(count):
        hostile = "[x](y)|`*_<b>&amp;@octo #1 ##[error] %0A::warning::"
        yield f"{number % FOLDERS}/{hostile} {'ü' * 40} {number}.html"


def pack_tar(folder: Path, count: int) -> Path:
    """Pack tiny pages as a tar archive."""
    with tarfile.open(folder / "most.tar.gz", "w:gz", compresslevel=1) as tar:
        for name in names(count):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    return folder / "most.tar.gz"


def pack_zip(folder: Path, count: int) -> Path:
    """Pack them as a zip archive."""
    with zipfile.ZipFile(folder / "most.zip", "w") as archive:
        for name in names(count):
            archive.writestr(name, name)
    return folder / "most.zip"


if __name__ == "__main__":
    sys.exit(main())
