"""Measures what a manifest and a comparison cost: `python -m bench.plan`.

A large site is delivered from `.tar.gz` and `.zip`, in turns: without a manifest; with one, compared with that of the same site;
and with one, compared with that of a site of which every page differs, as with a new build ID in each. Then the peak memory of a
site with as many files as a manifest can have, all of them changed, and hostile names.
"""

import io
import math
import re
import statistics
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from bench.bundle import IN_MEMORY, MIB, by_action, packed, served
from bench.common import options_of, table, write_section

FILES, UNPACKED_MIB = 34_000, 572
ROUNDS: Final = 5
MAX_RATIO: Final = 1.15
MAX_TAR_MIB: Final = 300
MAX_ZIP_MIB: Final = 460
MOST_FILES: Final = 250_000
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


def main() -> int:
    """Measure, and write the section."""
    options = options_of(__doc__).parse_args()
    files, mib, most, rounds = (
        (20, 1, 100, 1) if options.smallest else (FILES, UNPACKED_MIB, MOST_FILES, ROUNDS)
    )
    times, memory, missed = [], [], []
    with tempfile.TemporaryDirectory(
        prefix="plan-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None
    ) as name:
        folder = Path(name)
        for archive in packed(folder, files, mib):
            same, changed, peak_mib = ratios(folder, archive, files, rounds)
            kind = f"`{archive.name.removeprefix('bundle')}`"
            times.append(
                f"{kind} | {files:,} | {mib} | {same:.2f} | {changed:.2f} | {peak_mib:.1f}"
            )
            missed += [
                f"{kind}, {what}: {ratio:.2f}"
                for what, ratio in (("same", same), ("changed", changed))
                if ratio > MAX_RATIO
            ]
            archive.unlink()
        for archive, limit in (
            (pack_tar(folder, most), MAX_TAR_MIB),
            (pack_zip(folder, most), MAX_ZIP_MIB),
        ):
            count = sum(1 for _ in names(most))
            with served(archive, math.inf) as link:
                by_action(folder, link, count, FIRST, keep=(MANIFEST,))
                published = all_changed((folder / MANIFEST).read_bytes())
                _, peak_mib = by_action(folder, link, count, PLAN, files={PUBLISHED: published})
            kind = f"`{archive.name.removeprefix('most')}`"
            memory.append(
                f"{kind} | {count:,} | {len(published) / MIB:.0f} | {peak_mib:.1f} | {limit}"
            )
            missed += [f"{kind}, {count:,} files: {peak_mib:.1f} MiB"] if peak_mib > limit else []
            archive.unlink()
    return write_section(
        "## The plan",
        f"""
        A generated site is delivered over loopback, as in the section above, in turns without a manifest and with
        `manifest-path`, `compare-with` and `changes-path`, {rounds} times each. *Same*: the published site is the same. *All
        changed*: every page differs from the published one, as with a new build ID in each, so its text is extracted. The
        figures are ratios of the median times to that without a manifest.
        """,
        f"Goal: at most {MAX_RATIO}.",
        table("archive | files | unpacked MiB | same | all changed | peak MiB", times),
        f"""
        The peak memory with the most files that a manifest can have, all changed, with names full of Markdown. Goals:
        {MAX_TAR_MIB} MiB from a tar archive, {MAX_ZIP_MIB} MiB from a zip archive.
        """,
        table("archive | files | MiB of the manifest | peak MiB | limit", memory),
        missed=missed,
    )


def ratios(folder: Path, archive: Path, files: int, rounds: int) -> tuple[float, float, float]:
    """Return the ratios of the two comparisons to a delivery without one, and the highest peak in MiB."""
    with served(archive, math.inf) as link:
        by_action(folder, link, files, FIRST, keep=(MANIFEST,))
        same = (folder / MANIFEST).read_bytes()
        given: list[tuple[Mapping[str, str], Mapping[str, bytes]]] = [
            ({}, {}),
            (PLAN, {PUBLISHED: same}),
            (PLAN, {PUBLISHED: all_changed(same)}),
        ]
        measured = [
            [by_action(folder, link, files, inputs, files=before) for inputs, before in given]
            for _ in range(rounds)
        ]
    columns = [*zip(*measured, strict=True)]
    sys.stderr.write(
        f"{archive.name}: {', '.join(' '.join(f'{took:.2f}' for took, _ in column) for column in columns)} s\n"
    )
    without, *others = (statistics.median(took for took, _ in column) for column in columns)
    return (
        others[0] / without,
        others[1] / without,
        max(peak for column in columns for _, peak in column),
    )


def all_changed(manifest: bytes) -> bytes:
    """Return a manifest of the same pages with other contents."""
    return re.sub(rb"(?m)^[0-9a-f]{64}(?=  .*[.]html$)", b"0" * 64, manifest)


def names(count: int) -> Iterator[str]:
    """Yield names of pages that are long and full of Markdown."""
    for number in range(count - FOLDERS if count > FOLDERS else count):
        yield f"{number % FOLDERS}/[x](y)|`*_<b>&amp;@octo #1 ##[error] %0A::warning:: {'ü' * 40} {number}.html"


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
