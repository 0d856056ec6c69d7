"""The first bytes of a response decide whether it is a bundle, whatever its headers say."""

import gzip
import zlib
from collections.abc import Mapping
from dataclasses import replace

import pytest

from docs_platform_action.bundle.storage import StorageResponse
from docs_platform_action.bundle.transcoding import _COMPRESSED, Transcoding, read_archive_start
from docs_platform_action.http.retry import TransientError
from docs_platform_action.redaction import Redactor
from tests.archives import KINDS, SMALL_SITE

GZIP = b"\x1f\x8b\x08"


def response(
    content: bytes, *, content_type: str | None = None, encoding: str | None = None, piece_bytes: int = 10_000
) -> StorageResponse:
    headers = {"Content-Type": content_type, "Content-Encoding": encoding}
    return StorageResponse(
        redactor=Redactor([]),
        status=200,
        headers={name: value for name, value in headers.items() if value is not None},
        address="https://storage.example.com/se_1/bundle.tar.gz",
        pieces=(content[begin : begin + piece_bytes] for begin in range(0, len(content), piece_bytes)),
    )


def read(found: StorageResponse) -> bytes:
    return read_archive_start(found) + b"".join(found.pieces)


@pytest.mark.parametrize("archive", KINDS)
def test_an_archive_is_detected_in_small_pieces_and_with_a_wrong_content_type(archive: str) -> None:
    content = KINDS[archive](SMALL_SITE)

    assert read(response(content, content_type="text/html", piece_bytes=7)) == content


@pytest.mark.parametrize("archive", ["tar.gz", "tar", "tar.bz2", "tar.xz", "zip"])
@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "deflate"])
def test_an_archive_is_accepted_whatever_its_coding_is_called(archive: str, encoding: str) -> None:
    content = KINDS[archive](SMALL_SITE)

    assert read(response(content, encoding=encoding)) == content


@pytest.mark.parametrize(
    "content",
    [
        GZIP,
        b"BZh91AY&SY",
        b"\xfd7zXZ\0",
        b"PK\x03\x04",
        b"PK\x05\x06" + bytes(18),
        b"PK\x07\x08PK\x03\x04",
        b"PK00PK\x03\x04",
        b"7z\xbc\xaf\x27\x1c",
        b"Rar!\x1a\x07\x00",
        b"Rar!\x1a\x07\x01\x00",
        b"\x28\xb5\x2f\xfd",
        b"\x50\x2a\x4d\x18",
        b"\x5d\x00\x00\x80\x00",
        b"\x1f\x9d\x90",
        b"LZIP\x01",
        b"\x04\x22\x4d\x18",
    ],
)
@pytest.mark.parametrize("content_type", ["text/html", "application/octet-stream", None])
def test_what_begins_like_an_archive_of_any_kind_is_one_even_if_it_cannot_be_opened(
    content: bytes, content_type: str | None
) -> None:
    assert read(response(content, content_type=content_type)) == content


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(KINDS["tar"](SMALL_SITE)),
        gzip.compress(GZIP),
        gzip.compress(b"") + gzip.compress(KINDS["tar"](SMALL_SITE)),
    ],
    ids=["of tar", "of gzip", "after nothing"],
)
def test_of_an_encoded_archive_the_decompressed_start_counts(content: bytes) -> None:
    assert read(response(content, encoding="gzip")) == content


PAGE = b"<!doctype html><title>Sign in</title>" * 50

NOT_BUNDLES: Mapping[str, tuple[bytes, str | None]] = {
    "a program": (b"MZ" + bytes(600) + b"PK\x03\x04", None),
    "a document": (b"%PDF-1.7", None),
    "a picture": (b"\x89PNG", None),
    "half of two bytes that begin zip": (b"PK", None),
    "half of two bytes that begin gzip": (b"\x1f", None),
    "less than a block of zeros": (bytes(511), None),
    "zeros": (bytes(4096), None),
    "nothing": (b"", None),
    "a script": (b"#!/bin/sh\n" + b"# a self-extracting archive" * 100, None),
    "a web page": (PAGE, None),
    "a web page behind a mark": ("\ufeff\n<!doctype html>".encode(), None),
    "a web page behind blanks": (b"\r\n" * 300 + b"<html>", None),
    "a web page in UTF-16": ("<html>".encode("utf-16"), None),
    "JSON": (b"[]", None),
    "a compressed web page": (gzip.compress(b"<html>" + b"<p>Please log in.</p>" * 5000), "gzip"),
    "a compressed web page that comes late": (gzip.compress(PAGE, compresslevel=0), "gzip"),
    "damaged gzip": (GZIP + b"\xff" * 600, "gzip"),
    "gzip that is too short to tell": (GZIP + b"\0\0\0\0\0\x04\0" + b"\xff", "gzip"),
    "empty gzip": (gzip.compress(b""), "gzip"),
    "Brotli": (bytes.fromhex("1b7b00f88d94d8a0"), "br"),
    "Brotli that begins like JSON": (bytes.fromhex("5b00f88d94d8a0"), "BR"),
    "Zstandard": (bytes.fromhex("28b52ffd04580100"), "zstd"),
    "zlib": (zlib.compress(KINDS["tar"](SMALL_SITE)), "deflate"),
    "compress": (b"\x1f\x9d\x90" + KINDS["tar"](SMALL_SITE), "compress"),
    "Brotli in gzip": (gzip.compress(bytes.fromhex("1b7b00f88d94d8a0")), "br, gzip"),
}
"""Content that is not a bundle, and its `Content-Encoding`."""


def refusal(name: str, *, content_type: str | None = "application/zip", piece_bytes: int = 512) -> TransientError:
    content, encoding = NOT_BUNDLES[name]
    with pytest.raises(TransientError) as caught:
        read_archive_start(response(content, content_type=content_type, encoding=encoding, piece_bytes=piece_bytes))
    return caught.value


@pytest.mark.parametrize("name", NOT_BUNDLES)
@pytest.mark.parametrize("piece_bytes", [1, 512])
def test_nothing_else_is_a_bundle_and_what_was_not_asked_for_is_said_to_be_so(name: str, piece_bytes: int) -> None:
    error = refusal(name, piece_bytes=piece_bytes)

    assert (error.advice == _COMPRESSED) == (NOT_BUNDLES[name][1] not in {None, "gzip"})


@pytest.mark.parametrize(
    ("headers", "link", "is_requested_again"),
    [
        ({"X-Goog-Stored-Content-Encoding": "GZIP", "Content-Length": "17"}, "bundle", True),
        ({}, "bundle", True),
        ({"Content-Length": "17"}, "bundle.tar.GZ", True),
        ({"Content-Length": "17"}, "bundle.tgz", True),
        ({"Content-Length": "17", "Content-Type": "application/gzip; x=y"}, "bundle", True),
        ({"Content-Length": "17", "Content-Type": "Application/X-Gzip"}, "bundle", True),
        ({"Content-Length": "17"}, "bundle", False),
        ({"Content-Length": "17"}, "bundle?a.gz", False),
        ({"Content-Encoding": "gzip"}, "bundle.tar.gz", False),
    ],
)
def test_a_tar_archive_that_may_have_been_decompressed_is_requested_again(
    headers: dict[str, str], link: str, is_requested_again: bool
) -> None:
    content = KINDS["tar"](SMALL_SITE)
    by_link = replace(response(content), headers=headers, address="https://storage.example.com/")
    by_redirect = replace(by_link, address=f"https://storage.example.com/{link.partition('?')[0]}")

    for found, requested in ((by_link, link), (by_redirect, "")):
        transcoding = Transcoding()
        again = transcoding.must_request_again(found, content, f"https://storage.example.com/{requested}")
        assert (again, transcoding.accepts_gzip) == (is_requested_again, is_requested_again)


@pytest.mark.parametrize("name", ["bundle", "bundle.tar.gz"])
def test_an_archive_that_is_compressed_itself_is_not_requested_again(name: str) -> None:
    content = KINDS["tar.gz"](SMALL_SITE)

    assert not Transcoding().must_request_again(response(content), content, f"https://storage.example.com/{name}")
