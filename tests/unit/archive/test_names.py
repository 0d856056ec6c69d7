"""Names that S3 and common file systems can store are accepted in any spelling."""

import pytest

from tests.archives import EMPTY_END, KINDS, Site, Zipped, entry, tar_of, zip_of
from tests.unit.archive.places import Place


class TestNames:
    def test_may_begin_with_a_dot_and_double_their_slashes(self, place: Place) -> None:
        place.unpack(entry(b"./", type_=b"5") + entry(b"./a//b/./c.html", b"c") + EMPTY_END)

        assert place.tree() == {"a": None, "a/b": None, "a/b/c.html": b"c"}

    @pytest.mark.parametrize("kind", ["tar", "tar-gnu", "zip"])
    def test_may_be_as_long_as_a_key_and_hold_any_letters(self, place: Place, kind: str) -> None:
        files = {"ü" * 127: b"1", "a b/ .c/日本語 — ☃.html": b"2", "/".join(["x" * 204] * 5): b"3", "con/aux. ": b"4", "~": b"5"}

        place.unpack(KINDS[kind](Site(files=files)))

        assert {path: content for path, content in place.tree().items() if content} == files

    def test_of_folders_may_come_again(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"a/b"), entry(b"a/", type_=b"5"), entry(b"a/", type_=b"5"), entry(b"c"), entry(b"a/d")))

        assert place.tree().keys() == {"a", "a/b", "a/d", "c", "index.html"}

    def test_of_folders_may_lack_their_slash_or_stand_for_their_type(self, place: Place) -> None:
        place.unpack(tar_of(entry(b"a", type_=b"5"), entry(b"b/"), entry(b"c/", type_=b"\0")))
        place.unpack(zip_of(Zipped(name=b"x"), Zipped(name=b"d", content=b"", mode=0o40755)))
        place.unpack(zip_of(Zipped(name=b"y"), Zipped(name=b"e/", content=b"", mode=0)))
        place.unpack(zip_of(Zipped(name=b"z"), Zipped(name=b"f", content=b"", system=0, attributes=0x10)))
        place.unpack(zip_of(Zipped(name=b"maven"), Zipped(name=b"g/", content=b"", mode=0xFFFF, attributes=0x10)))

        assert [path for path, content in place.tree().items() if content is None] == ["a", "b", "c", "d", "e", "f", "g"]
