"""How much an archive may unpack to, held while it is unpacked: what an archive announces may be a lie."""

from dataclasses import dataclass
from typing import Final

from ..errors import InvalidBundle

MOST_ENTRIES: Final = 250_000
"""Entries, and folders that only entries' names imply. Large documentation sites have some 50,000 pages."""

MOST_BYTES: Final = 20 * 1024**3
"""Bytes of all files. A hosted runner has 14 GiB to itself at least (source: GitHub docs, "GitHub-hosted runners reference")."""

MOST_RATIO: Final = 200
"""Unpacked bytes for each byte of the archive. Text packs to a tenth; deflate's best is a thousandth, of zeros alone."""

RATIO_FROM_BYTES: Final = 256 * 1024**2
"""Unpacked bytes up to which the ratio does not matter, because they do no harm."""

_HEADER_BYTES: Final = 4096
"""What a tar archive takes for an entry beside its content, at most, in the mean: headers with long names and padding."""

_LAST_RECORD_BYTES: Final = 16 * 1024**2
"""What a tar archive may be padded with at its end; GNU tar's usual record has 10 KiB."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The bounds of one archive; `ratio` is unpacked bytes a byte of archive, looked at beyond `ratio_from_bytes`."""

    entries: int = MOST_ENTRIES
    unpacked_bytes: int = MOST_BYTES
    ratio: int = MOST_RATIO
    ratio_from_bytes: int = RATIO_FROM_BYTES


class Meter:
    """Counts what comes out of an archive; each method raises `InvalidBundle` beyond the bound."""

    def __init__(self, limits: Limits, *, archive_bytes: int) -> None:
        self.unpacked_bytes = 0
        self._limits = limits
        self._entries = 0
        self._decompressed_bytes = 0
        self._ratio_bytes = max(limits.ratio * archive_bytes, limits.ratio_from_bytes)
        self._stream_bytes = limits.unpacked_bytes + limits.entries * _HEADER_BYTES + _LAST_RECORD_BYTES

    def announce_entries(self, count: int) -> None:
        """Look at a number of entries that is only announced."""
        if count > self._limits.entries:
            raise _too_large(f"It holds more than {self._limits.entries:,} files and folders.")

    def announce_bytes(self, count: int) -> None:
        """Look at a file's size that is only announced."""
        self._hold_bytes(self.unpacked_bytes + count)

    def count_entry(self) -> None:
        """Count an entry, or a folder that a name implies."""
        self._entries += 1
        self.announce_entries(self._entries)

    def count_bytes(self, count: int) -> None:
        """Count bytes of a file, before they are written."""
        self.unpacked_bytes += count
        self._hold_bytes(self.unpacked_bytes)
        self._hold_ratio(self.unpacked_bytes)

    def count_decompressed(self, count: int) -> None:
        """Count what was decompressed to find entries in it, whatever it is."""
        self._decompressed_bytes += count
        self._hold_ratio(self._decompressed_bytes)
        if self._decompressed_bytes > self._stream_bytes:
            self._hold_bytes(self._decompressed_bytes)

    def _hold_bytes(self, count: int) -> None:
        if count > self._limits.unpacked_bytes:
            raise _too_large(f"It unpacks to more than {_binary(self._limits.unpacked_bytes)}.")

    def _hold_ratio(self, count: int) -> None:
        if count > self._ratio_bytes:
            raise _too_large(
                f"It unpacks to more than {self._limits.ratio} times its size; that is looked at "
                f"beyond {_binary(self._limits.ratio_from_bytes)}."
            )


def _too_large(fact: str) -> InvalidBundle:
    return InvalidBundle(
        "the bundle is too large to be opened safely",
        facts=(fact,),
        cause="It was made to fill the runner's disk, or it holds more than a documentation site.",
        remedy=(
            "Look at the archive: save it with `bundle-path`, and leave `site-path` out. "
            "If it is what the site needs, unpack it in a step of your own."
        ),
    )


def _binary(count: int) -> str:
    """Write a size with one decimal of its binary unit."""
    power = min(count.bit_length() // 10, 3)
    return f"{count / 1024**power:.1f} {('', 'KiB', 'MiB', 'GiB')[power]}" if power else f"{count:,} bytes"
