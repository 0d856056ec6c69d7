"""Compressed data may come in several streams, but not in any number."""

import bz2
import contextlib
import gzip
import lzma
import os
import subprocess
import sys
import threading
import zlib
from dataclasses import replace
from pathlib import Path
from threading import BoundedSemaphore

import pytest

from docs_platform_action.archive import codecs, formats, reading
from docs_platform_action.archive.entries import damaged
from docs_platform_action.archive.reading import ArchiveFile
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled, InvalidBundle
from tests.archives import EMPTY_END, FILE, SMALL_SITE, entry, tar, tar_of
from tests.unit.archive.places import SMALL_TREE, Place


class TestStreams:
    def test_may_be_several_in_a_row(self, place: Place) -> None:
        for number, compress in enumerate((gzip.compress, bz2.compress, lzma.compress)):
            archive = entry(b"%d" % number) + EMPTY_END

            place.unpack(compress(archive[:300]) + compress(b"") + compress(archive[300:]))

        assert place.tree().keys() == {"0", "1", "2"}

    def test_of_xz_may_be_padded_between_them(self, place: Place) -> None:
        archive = FILE + EMPTY_END

        place.unpack(lzma.compress(archive[:300]) + bytes(4) + lzma.compress(archive[300:]) + bytes(200_000))

        assert place.tree().keys() == {"index.html"}

    def test_may_begin_at_the_last_byte_of_a_chunk(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        archive = FILE + EMPTY_END
        whole = b"".join(gzip.compress(archive[at : at + 100]) for at in range(0, len(archive), 100))
        monkeypatch.setattr(reading, "CHUNK_BYTES", 1)

        place.unpack(whole)

        assert place.tree().keys() == {"index.html"}

    @pytest.mark.parametrize("padding", [1, 511, 200_000])
    def test_may_be_padded_with_zeros(self, place: Place, padding: int) -> None:
        place.unpack(gzip.compress(FILE + EMPTY_END) + bytes(padding))

        assert place.tree().keys() == {"index.html"}


class TestMemory:
    def test_may_fail_in_a_decompressor(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        class Exhausted:
            eof, needs_input, unused_data = False, True, b""

            def decompress(self, _data: bytes, _max_length: int) -> bytes:
                raise MemoryError

        monkeypatch.setattr(zlib, "decompressobj", lambda _wbits: None)
        monkeypatch.setattr("docs_platform_action.archive.codecs._Inflater", lambda _wbits: Exhausted())

        assert place.refusal(gzip.compress(tar(SMALL_SITE))).summary == damaged("").summary


class TestLargeDecoders:
    """xz may need 65 MiB for each archive."""

    XZ = lzma.compress(tar(SMALL_SITE), preset=0)

    @pytest.fixture
    def decoders(self, monkeypatch: pytest.MonkeyPatch) -> BoundedSemaphore:
        """Return the decoders; there is one."""
        decoders = BoundedSemaphore(1)
        monkeypatch.setattr(ArchiveFile, "LARGE_DECODERS", decoders)
        return decoders

    def test_are_used_by_one_archive_after_another(self, place: Place, decoders: BoundedSemaphore) -> None:
        decoders.acquire()
        unpacking = threading.Thread(target=place.unpack, args=(self.XZ,))
        unpacking.start()
        unpacking.join(4 * reading.POLL_SECONDS)
        assert not place.tree()

        decoders.release()
        unpacking.join(60)

        assert place.tree() == SMALL_TREE

    def test_are_not_waited_for_after_a_cancel(self, place: Place, decoders: BoundedSemaphore) -> None:
        decoders.acquire()
        run = Cancellation()
        run.cancel()

        with pytest.raises(Cancelled):
            place.unpack(self.XZ, cancellation=run)

    @pytest.mark.parametrize(
        "archive",
        [XZ, gzip.compress(XZ), XZ[:-20], lzma.compress(b"text"), lzma.compress(entry(b"../a") + EMPTY_END)],
        ids=["whole", "in gzip", "cut", "of something else", "refused"],
    )
    def test_are_given_back(self, place: Place, decoders: BoundedSemaphore, archive: bytes) -> None:
        with contextlib.suppress(InvalidBundle):
            place.unpack(archive)

        assert decoders.acquire(blocking=False)

    @pytest.mark.parametrize("archive", [gzip.compress(FILE + EMPTY_END), FILE + EMPTY_END], ids=["gzip", "tar"])
    def test_are_not_needed_for_anything_else(self, place: Place, decoders: BoundedSemaphore, archive: bytes) -> None:
        decoders.acquire()

        place.unpack(archive)

        assert place.tree().keys() == {"index.html"}

    def test_free_their_memory_even_if_the_error_is_kept(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        freed = []

        class Decompressor:
            def __init__(self) -> None:
                self._lzma = lzma.LZMADecompressor()
                self.eof = False
                self.needs_input = True
                self.unused_data = b""

            def __del__(self) -> None:
                freed.append(True)

            def decompress(self, data: bytes, max_length: int) -> bytes:
                return self._lzma.decompress(data, max_length)

        monkeypatch.setattr(codecs, "XZ", replace(codecs.XZ, new_decompressor=Decompressor))
        monkeypatch.setattr(formats, "XZ", codecs.XZ)

        refusals = [place.refusal(self.XZ[:-20]), place.refusal(lzma.compress(entry(b"../a") + EMPTY_END))]

        assert len(freed) == len(refusals)

    def test_need_little_memory_for_many_archives(self, tmp_path: Path) -> None:
        """Each of these needs all of the 64 MiB of its dictionary."""
        (tmp_path / "bundle").write_bytes(lzma.compress(tar_of(entry(b"zeros", bytes(66 * 2**20))), preset=9))

        ended = subprocess.run(
            [sys.executable, "-c", UNPACK_TOGETHER],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )

        assert int(ended.stdout) < 300 * 1024


UNPACK_TOGETHER = """
import re, threading
from pathlib import Path
from docs_platform_action.archive.unpack import unpack
from docs_platform_action.clock import Cancellation
from tests.archives import open_archive

def unpack_into(folder):
    folder.mkdir()
    with open_archive(Path("bundle"), Cancellation()) as archive:
        unpack(archive, folder, on_progress=lambda *_: None)

threads = [threading.Thread(target=unpack_into, args=(Path(str(number)),)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(re.search("VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""
"""Prints the maximum of the resident memory in KiB; `ru_maxrss` would include that of the test's process."""
