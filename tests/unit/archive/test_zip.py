"""Zip archives are read as their writers mean them."""

import io
import zipfile
from dataclasses import replace

import pytest

from tests.archives import Zipped, descriptor, stream_field, unicode_field, unicode_zipped, unix_field, zip_of
from tests.folders import Tree
from tests.unit.archive.places import INDEX, Place

PAGE = b"<h1>Docs</h1>"


def with_fields(field: bytes, *, stored_name: bytes = b"a") -> bytes:
    """Return an archive with extra fields in both headers of its entry."""
    return zip_of(Zipped(name=stored_name, extra=field, extra_inside=field))


def in_other_order() -> bytes:
    """Return an archive whose directory lists the second entry first."""
    archive = zip_of(Zipped(name=b"a", content=b"1"), Zipped(name=b"b", content=b"2"))
    first = archive.index(b"PK\1\2")
    second, end = archive.index(b"PK\1\2", first + 1), archive.index(b"PK\5\6")
    return archive[:first] + archive[second:end] + archive[first:second] + archive[end:]


def without_seeking() -> bytes:
    """Return what `zipfile` writes into a pipe."""

    class Forward(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise io.UnsupportedOperation

    packed = Forward()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", PAGE)
    return packed.getvalue()


IGNORED_FIELDS = {
    "a Unicode name for another stored name": unicode_field(b"b", b"renamed"),
    "a Unicode name of an unknown version": unicode_field(b"b", b"a", version=2),
    "a Unicode name without a checksum": b"\x75\x70\2\0\1\0",
    "a Unicode name that is longer than the header says": b"\x75\x70\xff\0\1",
    "padding": bytes(4000),
    "Unix' mode": unix_field(0o100600),
    "Unix' mode without a type": unix_field(0),
    "a part of Unix' mode": unix_field(0)[:9],
    **{f"libarchive's parts {parts:03b}": b"UT\1\0\0" + stream_field(0o100644, parts=parts) for parts in range(8)},
}
READ: dict[str, tuple[bytes, Tree]] = {
    **{f"extra fields: {name}": (with_fields(field), {"a": PAGE}) for name, field in IGNORED_FIELDS.items()},
    "a comment": (zip_of(Zipped(), comment=b"0123abc PK\5 PK\1\2" * 5), INDEX),
    "zip64": (zip_of(Zipped(zip64=True, extra=b"\2\0\1\0!"), Zipped(name=b"a"), zip64=True), {"a": PAGE, **INDEX}),
    "a placeholder, and the name in the Unicode field, as Commons Compress and Info-ZIP write it": (
        zip_of(unicode_zipped("日.html".encode(), b"%U65E5.html"), unicode_zipped("ü/".encode(), b"\x81/", content=b"")),
        {"ü": None, "日.html": PAGE},
    ),
    "a Unicode field after empty fields": (
        with_fields(bytes(4 * 98) + unicode_field("ü".encode(), b"u"), stored_name=b"u"),
        {"ü": PAGE},
    ),
    "an announcement of sizes behind the content that are before it": (
        zip_of(Zipped(flags=8), Zipped(name=b"a")),
        {"a": PAGE, **INDEX},
    ),
    "another order": (in_other_order(), {"a": b"1", "b": b"2"}),
    "a pipe": (without_seeking(), {"a": PAGE}),
    "a system without modes": (zip_of(Zipped(system=0, mode=0o104755)), INDEX),
    "a folder without a slash": (zip_of(Zipped(), Zipped(name=b"d", content=b"", mode=0o40755)), {"d": None, **INDEX}),
    "a folder without a type": (zip_of(Zipped(), Zipped(name=b"d/", content=b"", mode=0)), {"d": None, **INDEX}),
    "a folder of DOS": (
        zip_of(Zipped(), Zipped(name=b"d", content=b"", system=0, attributes=0x10)),
        {"d": None, **INDEX},
    ),
    "a folder of an old Maven": (
        zip_of(Zipped(), Zipped(name=b"d/", content=b"", mode=0xFFFF, attributes=0x10)),
        {"d": None, **INDEX},
    ),
}


@pytest.mark.parametrize(("archive", "tree"), READ.values(), ids=READ)
def test_what_writers_pack_is_read(place: Place, archive: bytes, tree: Tree) -> None:
    place.unpack(archive)

    assert place.tree() == tree


@pytest.mark.parametrize("padding", [1, 22, 9_000, 65_535, 65_600, 1024**2])
@pytest.mark.parametrize("comment", [b"", b"a comment", b"a comment that ends with zeros" + bytes(30), bytes(0xFFFF)])
def test_zeros_may_pad_the_end(place: Place, comment: bytes, padding: int) -> None:
    """As bsdtar pads what it writes into a pipe, to a multiple of its block size."""
    place.unpack(zip_of(Zipped(), Zipped(name=b"a"), zip64=True, comment=comment) + bytes(padding))

    assert place.tree() == {"a": PAGE, **INDEX}


@pytest.mark.parametrize("layout", ["<3I", "<I2Q"])
@pytest.mark.parametrize("magic", [b"PK\x07\x08", b""])
def test_sizes_may_be_behind_the_content(place: Place, layout: str, magic: bytes) -> None:
    def streamed(item: Zipped) -> Zipped:
        return replace(item, flags=8, numbers_inside=(0, 0, 0), after=descriptor(item, layout=layout, magic=magic))

    place.unpack(zip_of(streamed(Zipped(name=b"a")), streamed(Zipped(name=b"b", content=b"", method=0)), Zipped(name=b"c")))

    assert place.tree() == {"a": PAGE, "b": b"", "c": PAGE}
