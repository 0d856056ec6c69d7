"""Other limits for what an archive may unpack to: a test of the real ones would write gigabytes."""

import gzip
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from unittest.mock import patch

from docs_platform_action.archive import limits
from tests.archives import EMPTY_END, FILE, entry, pax, tar_of


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits for one archive, whatever the disk."""

    entries: int = limits.MAX_ENTRIES
    unpacked_bytes: int = limits.MAX_UNPACKED_BYTES

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the limits to all archives that are unpacked in this context."""
        with patch.multiple(limits, MAX_ENTRIES=self.entries, MAX_UNPACKED_BYTES=self.unpacked_bytes):
            yield


@dataclass(frozen=True, kw_only=True)
class Exact:
    """An archive that a limit of this `value` just allows. `limit` is a constant of the package's room `archive`."""

    limit: str
    value: int
    archive: bytes

    @contextmanager
    def applied(self, *, lowered: int = 0) -> Iterator[None]:
        """Apply the limit, or a lower one."""
        with patch(f"docs_platform_action.archive.{self.limit}", self.value - lowered):
            yield


_STREAMS: Final = gzip.compress(b"") * 3 + gzip.compress(FILE + EMPTY_END)
_DESCRIBED: Final = tar_of(*(entry(b"pax", b"6 a=b\n" * 2, type_=b"x") + entry(b"%d" % number) for number in range(5)))
_LINKS: Final = [pax(linkpath=b"a/../" * 200 + b"a/b") + entry(b"l%d" % number, type_=b"2") for number in range(30)]

EXACT: Final[Mapping[str, Exact]] = {
    "streams in a row": Exact(limit="codecs.MAX_STREAMS", value=4, archive=_STREAMS),
    "streams in a row, inside gzip": Exact(limit="codecs.MAX_STREAMS", value=4, archive=gzip.compress(_STREAMS)),
    "bytes of all extended headers": Exact(limit="tar.MAX_TOTAL_EXTENSION_BYTES", value=60, archive=_DESCRIBED),
    "records of all extended headers": Exact(limit="tar.MAX_TOTAL_RECORDS", value=15, archive=_DESCRIBED),
    "symbolic links": Exact(limit="tree.MAX_LINKS", value=30, archive=tar_of(entry(b"a/b"), *_LINKS)),
    "steps of symbolic links": Exact(limit="symlinks.MAX_STEPS", value=12_060, archive=tar_of(entry(b"a/b"), *_LINKS)),
}
