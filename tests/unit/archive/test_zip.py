"""Zip archives are read as their writers mean them."""

import io
import zipfile
from dataclasses import replace

import pytest

from tests.archives import SMALL_SITE, Zipped, descriptor, stream_field, unicode_field, unicode_zipped, unix_field, zip_of, zipped
from tests.unit.archive.places import SMALL_TREE, Place, message_of

LISTED = ((b"PK\1\2", 0), (b"PK\1\2", 1), (b"PK\5\6", 0))
"""The records of a directory of two entries, and its end: where each begins after the first."""


class TestZip:
    def test_may_carry_a_comment(self, place: Place) -> None:
        place.unpack(zip_of(Zipped(), comment=b"0123abc PK\5 PK\1\2" * 5))

        assert place.tree().keys() == {"index.html"}

    def test_with_a_second_end_in_its_comment_is_refused_because_readers_differ_in_which_they_believe(self, place: Place) -> None:
        hidden = zip_of(Zipped(name=b"evil.html"))

        refusal = place.refusal(zip_of(Zipped(), comment=hidden + b"longer than it says"))

        assert "The end of the zip archive is missing" in message_of(refusal)

    @pytest.mark.parametrize("padding", [1, 22, 9_000, 65_535, 65_600, 1024**2])
    @pytest.mark.parametrize("comment", [b"", b"a comment", b"a comment that ends with zeros" + bytes(30), bytes(0xFFFF)])
    def test_may_be_padded_with_zeros(self, place: Place, comment: bytes, padding: int) -> None:
        """As bsdtar pads what it writes into a pipe, to a multiple of its block size."""
        place.unpack(zip_of(Zipped(), Zipped(name=b"a"), zip64=True, comment=comment) + bytes(padding))

        assert place.tree().keys() == {"a", "index.html"}

    def test_may_have_large_numbers_in_zip64_fields(self, place: Place) -> None:
        place.unpack(zip_of(Zipped(zip64=True, extra=b"\2\0\1\0!"), Zipped(name=b"a"), zip64=True))

        assert place.tree().keys() == {"a", "index.html"}

    def test_may_have_a_placeholder_and_the_name_in_the_unicode_field(self, place: Place) -> None:
        """As Commons Compress and Info-ZIP write what an encoding cannot hold."""
        name = "日本語.html".encode()

        place.unpack(zip_of(unicode_zipped(name, b"%U65E5.html"), unicode_zipped("ü/".encode(), b"\x81/", content=b"")))

        assert place.tree() == {"日本語.html": b"<h1>Docs</h1>", "ü": None}

    @pytest.mark.parametrize(
        "field",
        [unicode_field(b"b", b"renamed"), unicode_field(b"b", b"a", version=2), b"\x75\x70\2\0\1\0", b"\x75\x70\xff\0\1"],
        ids=["for another stored name", "of an unknown version", "without a checksum", "longer than the header says"],
    )
    def test_with_a_unicode_field_that_does_not_count_has_its_stored_name(self, place: Place, field: bytes) -> None:
        place.unpack(zip_of(Zipped(name=b"a", extra=field, extra_inside=field)))

        assert place.tree().keys() == {"a"}

    def test_may_have_a_unicode_field_after_empty_fields(self, place: Place) -> None:
        field = bytes(4 * 98) + unicode_field("ü".encode(), b"u")

        place.unpack(zip_of(Zipped(name=b"u", extra=field, extra_inside=field)))

        assert place.tree().keys() == {"ü"}

    @pytest.mark.parametrize("layout", ["<3I", "<I2Q"])
    @pytest.mark.parametrize("magic", [b"PK\x07\x08", b""])
    def test_may_have_sizes_behind_the_content(self, place: Place, layout: str, magic: bytes) -> None:
        def streamed(item: Zipped) -> Zipped:
            return replace(item, flags=8, numbers_inside=(0, 0, 0), after=descriptor(item, layout=layout, magic=magic))

        place.unpack(zip_of(streamed(Zipped(name=b"a")), streamed(Zipped(name=b"b", content=b"", method=0)), Zipped(name=b"c")))

        assert place.tree() == {"a": b"<h1>Docs</h1>", "b": b"", "c": b"<h1>Docs</h1>"}

    def test_may_announce_sizes_behind_the_content_that_are_before_it(self, place: Place) -> None:
        place.unpack(zip_of(Zipped(flags=8), Zipped(name=b"a")))

        assert place.tree().keys() == {"a", "index.html"}

    @pytest.mark.parametrize(
        "field",
        [
            *(b"UT\1\0\0" + stream_field(0o100644, parts=parts) for parts in range(8)),
            *(unix_field(0o100600), unix_field(0), unix_field(0)[:9], bytes(4000)),
        ],
    )
    def test_may_repeat_its_type_in_extra_fields_or_be_padded(self, place: Place, field: bytes) -> None:
        place.unpack(zip_of(Zipped(name=b"a", extra=field, extra_inside=field)))

        assert place.tree().keys() == {"a"}

    def test_may_be_listed_in_another_order(self, place: Place) -> None:
        archive = zip_of(Zipped(name=b"a", content=b"1"), Zipped(name=b"b", content=b"2"))
        first, second, end = (archive.index(magic, archive.index(b"PK\1\2") + shift) for magic, shift in LISTED)

        place.unpack(archive[:first] + archive[second:end] + archive[first:second] + archive[end:])

        assert place.tree() == {"a": b"1", "b": b"2"}

    def test_may_be_written_without_seeking(self, place: Place) -> None:
        class Forward(io.BytesIO):
            def seekable(self) -> bool:
                return False

            def tell(self) -> int:
                raise io.UnsupportedOperation

        packed = Forward()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", b"streamed")

        place.unpack(packed.getvalue())

        assert place.tree() == {"a": b"streamed"}

    def test_may_come_from_a_system_without_modes(self, place: Place) -> None:
        place.unpack(zip_of(Zipped(system=0, mode=0o104755)))

        assert place.tree() == {"index.html": b"<h1>Docs</h1>"}


class TestOtherPackers:
    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    def test_of_every_method_of_zip_are_read(self, place: Place, method: int) -> None:
        place.unpack(zipped(SMALL_SITE, method=method))

        assert place.tree() == SMALL_TREE
