"""Zip archives are read as their writers mean them."""

import io
import zipfile

import pytest

from tests.archives import SMALL_SITE, Zipped, zip_of, zipped
from tests.unit.archive.places import SMALL_TREE, Place, message_of


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
        place.unpack(zip_of(Zipped(system=0, mode=0o120777)))

        assert place.tree() == {"index.html": b"<h1>Docs</h1>"}


class TestOtherPackers:
    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    def test_of_every_method_of_zip_are_read(self, place: Place, method: int) -> None:
        place.unpack(zipped(SMALL_SITE, method=method))

        assert place.tree() == SMALL_TREE
