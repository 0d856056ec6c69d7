"""Ways to spoil what is good: sequences of bytes or of tokens, edited here and there."""

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
    *(
        b"\0",
        b"\xff",
        b"\x80",
        b"\x7f",
        b" ",
        b"/",
        b"\\",
        b"..",
        b"../",
        b"\n",
        b"PK\3\4",
        b"PK\1\2",
        b"PK\5\6",
        b"\x1f\x8b\x08",
    ),
    *(b"\xff\xff", b"\xff\xff\xff\xff", b"\xff" * 8, b"\0" * 8, b"\0\0\0\x80", b"\1\0", b"BZh9", b"\xfd7zXZ\0", bytes(512)),
)

Edit = tuple[str, float, float, T]
"""What to do, where it begins and ends in parts of the whole, and something to put there."""

_DEEDS: Final = ("insert", "replace", "delete", "repeat", "swap", "cut")


def edits(pieces: st.SearchStrategy[T], *, most: int = 3) -> st.SearchStrategy[list[Edit[T]]]:
    """Draw what is to be done to a sequence."""
    parts = st.floats(0, 1)
    return st.lists(st.tuples(st.sampled_from(_DEEDS), parts, parts, pieces), min_size=1, max_size=most)


def edited(items: Sequence[T], todo: Sequence[Edit[Sequence[T]]], *, longest: int = 8) -> list[T]:
    """Carry edits out; none takes away or repeats more than `longest` items, but a cut, which takes all behind it."""
    made = list(items)
    for deed, where, how_far, piece in todo:
        at = int(where * len(made))
        end = min(len(made), at + 1 + int(how_far * longest))
        if deed == "insert":
            made[at:at] = piece
        elif deed == "replace":
            made[at : at + len(piece)] = piece
        elif deed == "delete":
            del made[at:end]
        elif deed == "repeat":
            made[at:at] = made[at:end]
        elif deed == "swap":
            made[at:end] = made[at:end][::-1]
        else:
            del made[at:]
    return made


def mostly(good: Sequence[T], odd: Sequence[T], *, times: int = 10) -> st.SearchStrategy[T]:
    """Draw what is good so many times as often as what is not: where each of many parts is often odd, nothing is ever taken."""
    return st.sampled_from([*good] * max(times * len(odd) // len(good), 1) + [*odd])


def seldom(strategy: st.SearchStrategy[list[T]], *, times: int = 10) -> st.SearchStrategy[list[T]]:
    """Draw nothing so many times as often as something."""
    return st.integers(0, times).flatmap(lambda number: strategy if number == times else st.just([]))


byte_pieces = st.one_of(st.sampled_from(HOSTILE_BYTES), st.binary(min_size=1, max_size=4))


def mutated_bytes(good: st.SearchStrategy[bytes], *, most: int = 3) -> st.SearchStrategy[bytes]:
    """Draw something good with a few bytes of it spoiled."""
    return st.builds(lambda data, todo: bytes(edited(data, todo)), good, edits(byte_pieces, most=most))


text_pieces = st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(st.characters(), max_size=3))


def mutated_text(good: st.SearchStrategy[str], *, most: int = 3) -> st.SearchStrategy[str]:
    """Draw something good with a few of its words or signs spoiled."""
    return st.builds(
        lambda text, todo: "".join(edited(re.findall(r"\w+|\W", text), todo)),
        good,
        edits(text_pieces.map(lambda piece: [piece]), most=most),
    )
