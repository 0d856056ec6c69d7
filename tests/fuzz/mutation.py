"""Mutations of valid data: edits of sequences of bytes, characters or words."""

import re
from collections.abc import Sequence
from typing import Final, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

HOSTILE_TEXTS: Final = (
    # white space, and what is invisible
    "",
    " ",
    "\0",
    "\n",
    "\r",
    "\t",
    "\x1b[31m",
    "\x7f",
    "\x85",
    "\xa0",
    "\u2028",
    "\u200b",
    "\u202e",
    "\ufeff",
    "\ufffd",
    # what has other forms, in Unicode or in UTF-8
    "\ud800",
    "\udcff",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "٣",
    "²",
    "\U0001d7d8",
    "😀",
    "\u3002",
    "\uff0f",
    "\uff20",
    # paths, addresses and shells
    "..",
    ".",
    "/",
    "//",
    "\\",
    "@",
    ":",
    "?",
    "#",
    "%",
    "%00",
    "%2e%2e",
    "[",
    "]",
    "<",
    ">",
    "|",
    "*",
    "~",
    "$(id)",
    "`id`",
    # commands, templates and lists
    "::error::x",
    "##[error]x",
    "{",
    "}",
    "{domain}",
    "{}",
    "'",
    '"',
    ",",
    ";",
    "&",
    "=",
    "--",
    "- ",
    # numbers and other values
    "0",
    "-0",
    "-1",
    "1e3",
    "1e999",
    "NaN",
    "Infinity",
    "0x10",
    "1_0",
    "99999999999999999999",
    "null",
    "true",
    "None",
    # what is long
    "a" * 64,
    "a" * 300,
    "é" * 130,
    "9" * 5000,
    "[" * 2000,
)

HOSTILE_BYTES: Final = (
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
    b"\xff" * 2,
    b"\xff" * 4,
    b"\xff" * 8,
    b"\0" * 8,
    b"\1\0",
    b"BZh9",
    b"\xfd7zXZ\0",
    bytes(512),
)

Edit = tuple[str, float, float, T]
"""An operation, its start and its length as fractions, and a piece to insert."""


def edits(pieces: st.SearchStrategy[T], *, most: int = 3) -> st.SearchStrategy[list[Edit[T]]]:
    """Draw edits of a sequence."""
    operations = st.sampled_from(["insert", "replace", "delete", "repeat", "cut"])
    return st.lists(
        st.tuples(operations, st.floats(0, 1), st.floats(0, 1), pieces), min_size=1, max_size=most
    )


def edited(items: Sequence[T], todo: Sequence[Edit[Sequence[T]]]) -> list[T]:
    """Apply edits.

    Each affects a few items, except a cut, which removes everything after its start.
    """
    result = list(items)
    for operation, start, length, piece in todo:
        at = int(start * len(result))
        end = min(len(result), at + 1 + int(length * 8))
        if operation == "insert":
            result[at:at] = piece
        elif operation == "replace":
            result[at : at + len(piece)] = piece
        elif operation == "delete":
            del result[at:end]
        elif operation == "repeat":
            result[at:at] = result[at:end]
        else:
            del result[at:]
    return result


byte_pieces = st.one_of(st.sampled_from(HOSTILE_BYTES), st.binary(min_size=1, max_size=4))
text_pieces = st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(st.characters(), max_size=3))


def mutated_bytes(good: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draw good data with a few edited bytes."""
    return st.builds(lambda data, todo: bytes(edited(data, todo)), good, edits(byte_pieces))


def mutated_text(good: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw a good text with a few edited words or characters."""
    words = text_pieces.map(lambda piece: [piece])

    def edited_text(text: str, todo: Sequence[Edit[Sequence[str]]]) -> str:
        words_and_marks = re.findall(r"\w+|\W", text)
        return "".join(edited(words_and_marks, todo))

    return st.builds(edited_text, good, edits(words))
