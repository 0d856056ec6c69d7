"""What a response holds is told by its first bytes, whatever its headers say."""

import gzip

import pytest

from docs_platform_action.bundle.storage import StorageResponse
from docs_platform_action.bundle.transcoding import read_archive_start
from docs_platform_action.http.retry import TransientError
from docs_platform_action.redaction import Redactor
from tests.archives import KINDS, SMALL_SITE

GZIP = b"\x1f\x8b\x08"


def answer(content: bytes, *, kind: str | None = None, encoding: str | None = None, piece_bytes: int = 10_000) -> StorageResponse:
    headers = {"Content-Type": kind, "Content-Encoding": encoding}
    return StorageResponse(
        redactor=Redactor([]),
        status=200,
        headers={name: value for name, value in headers.items() if value is not None},
        address="https://storage.example.com/se_1/bundle.tar.gz",
        pieces=(content[begin : begin + piece_bytes] for begin in range(0, len(content), piece_bytes)),
    )


def read(taken: StorageResponse) -> bytes:
    """Read the start and the rest."""
    return read_archive_start(taken) + b"".join(taken.pieces)


@pytest.mark.parametrize("archive", KINDS)
def test_an_archive_that_calls_itself_a_page_is_known_however_small_its_pieces_come(archive: str) -> None:
    content = KINDS[archive](SMALL_SITE)

    assert read(answer(content, kind="text/html", piece_bytes=7)) == content


class TestBeginning:
    """What comes is a bundle when it begins like an archive, one that cannot be opened here too."""

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
    @pytest.mark.parametrize("kind", ["text/html", "application/octet-stream", None])
    def test_an_archive_of_any_kind_is_one(self, content: bytes, kind: str | None) -> None:
        assert read(answer(content, kind=kind)) == content

    @pytest.mark.parametrize("content", [b"MZ" + bytes(600) + b"PK\x03\x04", b"%PDF-1.7", b"\x89PNG", b"PK", b"\x1f", bytes(511)])
    def test_nothing_else_is(self, content: bytes) -> None:
        with pytest.raises(
            TransientError, match=r"^The storage's response is not a bundle: it .* \(Content-Type application/zip\)$"
        ):
            read_archive_start(answer(content, kind="application/zip"))

    @pytest.mark.parametrize("content", [gzip.compress(KINDS["tar"](SMALL_SITE)), gzip.compress(GZIP)], ids=["of tar", "of gzip"])
    def test_in_an_encoded_one_what_is_inside_counts_where_it_can_be_read(self, content: bytes) -> None:
        assert read(answer(content, encoding="gzip")) == content
