"""Other limits for what an archive may unpack to: a test of the real ones would write gigabytes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from docs_platform_action.archive import limits


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
