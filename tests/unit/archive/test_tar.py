"""Tar archives are read as their writers mean them."""

import struct
import tarfile

import pytest

from docs_platform_action.archive import tar as tar_reader
from tests.archives import EMPTY_END, FILE, KINDS, SMALL_SITE, Site, checksummed, entry, header, pax, pax_record, tar, tar_of
from tests.unit.archive.places import SMALL_TREE, Place, message_of


class TestTar:
    def test_may_begin_with_a_label_and_the_folder_itself_whatever_that_is_called(self, place: Place) -> None:
        folders = (entry(name, type_=b"5") for name in (b"/", b"./", b".", b"//"))
        sized = header(b"a/", type_=b"5", size=4096)

        place.unpack(entry(b"Docs", type_=b"V") + tar_of(*folders, sized))

        assert [*place.tree()] == ["a", "index.html"]

    def test_of_gnu_may_hold_times_where_posix_has_a_prefix(self, place: Place) -> None:
        block = header(b"a")

        place.unpack(tar_of(checksummed(block[:257] + b"ustar  \0" + block[265:345] + b"12345670123\0" + block[357:])))

        assert place.tree().keys() == {"a", "index.html"}

    def test_of_posix_may_split_a_name(self, place: Place) -> None:
        block = header(b"b" * 100)

        place.unpack(tar_of(checksummed(block[:345] + b"a" * 155 + block[500:])))

        assert "a" * 155 + "/" + "b" * 100 in place.tree()

    def test_from_before_posix_is_recognized_by_its_checksum(self, place: Place) -> None:
        block = header(b"BZh91AY&SY", size=3)

        place.unpack(checksummed(block[:156] + bytes(356)) + b"old".ljust(512, b"\0") + EMPTY_END)

        assert place.tree() == {"BZh91AY&SY": b"old"}

    def test_may_have_summed_signed_bytes(self, place: Place) -> None:
        block = entry("é".encode())
        blank = block[:148] + b" " * 8 + block[156:]
        signed = sum(struct.unpack("512b", blank))

        place.unpack(tar_of(blank[:148] + f"{signed:06o}\0 ".encode() + blank[156:]))

        assert place.tree().keys() == {"index.html", "é"}

    def test_may_write_a_size_in_binary(self, place: Place) -> None:
        block = header(b"a")

        place.unpack(tar_of(checksummed(block[:124] + b"\x80" + bytes(10) + b"\3" + block[136:]) + b"abc".ljust(512, b"\0")))

        assert place.tree()["a"] == b"abc"

    def test_may_write_a_size_in_an_extended_header(self, place: Place) -> None:
        place.unpack(tar_of(pax(size=b"3", comment=b"="), header(b"a") + b"abc".ljust(512, b"\0")))

        assert place.tree()["a"] == b"abc"

    def test_may_hold_headers_for_all_that_name_nothing(self, place: Place) -> None:
        place.unpack(entry(b"pax_global_header", pax_record(b"comment", b"0123abc"), type_=b"g") + FILE + EMPTY_END)

        assert place.tree().keys() == {"index.html"}

    def test_may_link_to_long_names(self, place: Place) -> None:
        name = "x" * 120

        place.unpack(KINDS["tar-gnu"](Site(files={name: b"1"}, links={"link": name})))

        assert place.tree() == {name: b"1", "link": name}

    def test_may_be_padded_with_zeros_but_nothing_else(self, place: Place) -> None:
        place.unpack(FILE + EMPTY_END + bytes(1_000_001))

        assert place.tree().keys() == {"index.html"}

    def test_need_not_be_an_even_number_of_blocks(self, place: Place) -> None:
        place.unpack(FILE + bytes(513))

        assert place.tree().keys() == {"index.html"}


class TestOtherPackers:
    @pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    def test_of_every_form_of_tar_are_read(self, place: Place, form: int) -> None:
        place.unpack(tar(SMALL_SITE, form=form))

        assert place.tree() == SMALL_TREE


class TestExtendedHeaders:
    def test_may_hold_many_attributes_of_a_file(self, place: Place) -> None:
        attributes = {f"SCHILY__xattr__user__{number}": b"x" * 900 for number in range(998)}

        place.unpack(tar_of(pax(**attributes, path=b"a"), entry(b"b")))

        assert place.tree().keys() == {"a", "index.html"}

    def test_are_limited_for_each_entry_and_not_for_all_of_them_together(self, place: Place) -> None:
        many = entry(b"pax", b"6 a=b\n" * 999, type_=b"x")

        place.unpack(tar_of(many, entry(b"a"), many, entry(b"b")))

        assert place.tree().keys() == {"a", "b", "index.html"}

    @pytest.mark.parametrize(
        ("limit", "words"), [("MAX_TOTAL_RECORDS", "more than 12 records"), ("MAX_TOTAL_EXTENSION_BYTES", "more than 1 GiB")]
    )
    def test_are_limited_in_the_whole_archive(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, limit: str, words: str
    ) -> None:
        described = entry(b"pax", b"6 a=b\n" * 2, type_=b"x")
        monkeypatch.setattr(tar_reader, limit, 12)

        assert words in message_of(place.refusal(tar_of(*(described + entry(b"%d" % number) for number in range(5)))))
