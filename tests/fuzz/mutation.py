"""Mutations of valid data: edits of sequences of bytes or of tokens."""

import re
from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

HOSTILE_TEXTS: Final = (
    *("", " ", "\0", "\n", "\r", "\t", "\x1b[31m", "\x7f", "\x85", "\xa0", "\u2028", "\u200b", "\u202e", "\ufeff", "\ufffd"),
    *("\ud800", "\udcff", "é", "e\u0301", "ß", "İ", "٣", "²", "\U0001d7d8", "😀", "\u3002", "\uff0f", "\uff20"),
    *("..", ".", "/", "//", "\\", "@", ":", "?", "#", "%", "%00", "%2e%2e", "[", "]", "<", ">", "|", "*", "~", "$(id)", "`id`"),
    *("::error::x", "##[error]x", "{", "}", "{domain}", "{}", "'", '"', ",", ";", "&", "=", "--", "- "),
    *("0", "-0", "-1", "1e3", "1e999", "NaN", "Infinity", "0x10", "1_0", "99999999999999999999", "null", "true", "None"),
    *("a" * 64, "a" * 300, "é" * 130, "9" * 5000, "[" * 2000),
)

HOSTILE_BYTES: Final = (
    *(b"\0", b"\xff", b"\x80", b"\x7f", b" ", b"/", b"\\", b"..", b"../", b"\n", b"PK\3\4", b"PK\1\2", b"PK\5\6"),
    b"\x1f\x8b\x08",
    *(b"\xff\xff", b"\xff\xff\xff\xff", b"\xff" * 8, b"\0" * 8, b"\0\0\0\x80", b"\1\0", b"BZh9", b"\xfd7zXZ\0", bytes(512)),
)

Edit = tuple[str, float, float, T]
"""An operation, its start and its length as fractions, and a piece to insert."""

_OPERATIONS: Final = ("insert", "replace", "delete", "repeat", "swap", "cut")


def edits(pieces: st.SearchStrategy[T], *, most: int = 3) -> st.SearchStrategy[list[Edit[T]]]:
    """Draw edits of a sequence."""
    parts = st.floats(0, 1)
    return st.lists(st.tuples(st.sampled_from(_OPERATIONS), parts, parts, pieces), min_size=1, max_size=most)


def edited(items: Sequence[T], todo: Sequence[Edit[Sequence[T]]], *, longest: int = 8) -> list[T]:
    """Apply edits. Each affects at most `longest` items, except a cut, which removes everything after its start."""
    result = list(items)
    for operation, start, length, piece in todo:
        at = int(start * len(result))
        end = min(len(result), at + 1 + int(length * longest))
        if operation == "insert":
            result[at:at] = piece
        elif operation == "replace":
            result[at : at + len(piece)] = piece
        elif operation == "delete":
            del result[at:end]
        elif operation == "repeat":
            result[at:at] = result[at:end]
        elif operation == "swap":
            result[at:end] = result[at:end][::-1]
        else:
            del result[at:]
    return result


def mostly(good: Sequence[T], odd: Sequence[T], *, times: int = 10) -> st.SearchStrategy[T]:
    """Draw a good value `times` as often as an odd one: if each of many parts were often odd, nothing would ever be accepted."""
    return st.sampled_from([*good] * max(times * len(odd) // len(good), 1) + [*odd])


def seldom(strategy: st.SearchStrategy[list[T]], *, times: int = 10) -> st.SearchStrategy[list[T]]:
    """Draw an empty list `times` as often as another."""
    return st.integers(0, times).flatmap(lambda number: strategy if number == times else st.just([]))


byte_pieces = st.one_of(st.sampled_from(HOSTILE_BYTES), st.binary(min_size=1, max_size=4))


def mutated_bytes(good: st.SearchStrategy[bytes], *, most: int = 3) -> st.SearchStrategy[bytes]:
    """Draw good data with a few edited bytes."""
    return st.builds(lambda data, todo: bytes(edited(data, todo)), good, edits(byte_pieces, most=most))


text_pieces = st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(st.characters(), max_size=3))


def mutated_text(good: st.SearchStrategy[str], *, most: int = 3) -> st.SearchStrategy[str]:
    """Draw a good text with a few edited words or characters."""
    return st.builds(
        lambda text, todo: "".join(edited(re.findall(r"\w+|\W", text), todo)),
        good,
        edits(text_pieces.map(lambda piece: [piece]), most=most),
    )
