"""An archive's file is read in blocks."""

import tempfile

import pytest

from docs_platform_action.archive import reading
from docs_platform_action.archive.reading import ArchiveFile
from docs_platform_action.clock import Cancellation


class TestBlocks:
    def test_end_early_where_their_file_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "CHUNK_BYTES", 3)
        with tempfile.TemporaryFile() as file:
            file.write(b"12345")
            file.flush()

            assert list(ArchiveFile(file.fileno(), 10, Cancellation()).chunks(1, 10)) == [b"234", b"5"]
