"""The first bytes of a response decide whether it is a bundle, whatever its headers say."""

import gzip

import pytest

from docs_platform_action.bundle.storage import StorageResponse
from docs_platform_action.bundle.transcoding import read_archive_start
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


class TestBeginning:
    """A response that begins like an archive is a bundle, even if the archive cannot be opened."""

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
    def test_an_archive_of_any_kind_is_one(self, content: bytes, content_type: str | None) -> None:
        assert read(response(content, content_type=content_type)) == content

    @pytest.mark.parametrize("content", [b"MZ" + bytes(600) + b"PK\x03\x04", b"%PDF-1.7", b"\x89PNG", b"PK", b"\x1f", bytes(511)])
    def test_nothing_else_is(self, content: bytes) -> None:
        with pytest.raises(
            TransientError, match=r"^The storage's response is not a bundle: it .* \(Content-Type application/zip\)$"
        ):
            read_archive_start(response(content, content_type="application/zip"))

    @pytest.mark.parametrize("content", [gzip.compress(KINDS["tar"](SMALL_SITE)), gzip.compress(GZIP)], ids=["of tar", "of gzip"])
    def test_of_an_encoded_archive_the_decompressed_start_counts(self, content: bytes) -> None:
        assert read(response(content, encoding="gzip")) == content
