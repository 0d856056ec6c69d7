"""The bytes of a response, in memory or in a file, and parts of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from admin_api_simulator.content import Content, as_bytes, part_of, pieces, whole_file

DIGITS = b"0123456789"


@pytest.fixture(params=["memory", "file"])
def digits(request: pytest.FixtureRequest, tmp_path: Path) -> Content:
    (tmp_path / "digits").write_bytes(DIGITS)
    makers: dict[str, Callable[[], Content]] = {"memory": lambda: DIGITS, "file": lambda: whole_file(tmp_path / "digits")}
    return makers[request.param]()


@pytest.mark.parametrize(("start", "end"), [(0, 10), (3, 7), (0, 0), (7, 99), (99, 99), (5, 3)])
def test_a_part_is_what_slicing_gives(digits: Content, start: int, end: int) -> None:
    part = part_of(digits, start, end)

    assert as_bytes(part) == DIGITS[start:end]
    assert len(part) == len(DIGITS[start:end])


def test_a_part_of_a_part_counts_from_its_start(digits: Content) -> None:
    assert as_bytes(part_of(part_of(digits, 2, 8), 1, 3)) == b"34"


def test_content_comes_in_pieces_that_are_not_larger_than_asked_for(digits: Content) -> None:
    assert [bytes(piece) for piece in pieces(digits, piece_bytes=4)] == [b"0123", b"4567", b"89"]
    assert list(pieces(part_of(digits, 4, 4))) == []
