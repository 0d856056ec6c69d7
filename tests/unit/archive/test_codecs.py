"""Compressed data may come in several streams, but not in any number."""

import bz2
import gzip
import lzma
import zlib

import pytest

from docs_platform_action.archive import codecs, reading
from tests.archives import EMPTY_END, FILE, SMALL_SITE, entry, tar
from tests.unit.archive.places import Place, message_of


class TestStreams:
    def test_may_be_several_in_a_row(self, place: Place) -> None:
        for number, compress in enumerate((gzip.compress, bz2.compress, lzma.compress)):
            archive = entry(b"%d" % number) + EMPTY_END

            place.unpack(compress(archive[:300]) + compress(b"") + compress(archive[300:]))

        assert place.tree().keys() == {"0", "1", "2"}

    def test_may_begin_at_the_last_byte_of_a_chunk(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        archive = FILE + EMPTY_END
        whole = b"".join(gzip.compress(archive[at : at + 100]) for at in range(0, len(archive), 100))
        monkeypatch.setattr(reading, "CHUNK_BYTES", 1)

        place.unpack(whole)

        assert place.tree().keys() == {"index.html"}

    @pytest.mark.parametrize("layers", [1, 2])
    def test_are_limited_in_number(self, place: Place, monkeypatch: pytest.MonkeyPatch, layers: int) -> None:
        monkeypatch.setattr(codecs, "MAX_STREAMS", 3)
        whole = gzip.compress(FILE + EMPTY_END)
        few, many = (gzip.compress(b"") * count + whole for count in (2, 3))
        if layers == 2:
            few, many = gzip.compress(few), gzip.compress(many)

        place.unpack(few)

        assert "more than 3 streams" in message_of(place.refusal(many))

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

        assert "cannot be decompressed" in message_of(place.refusal(gzip.compress(tar(SMALL_SITE))))
