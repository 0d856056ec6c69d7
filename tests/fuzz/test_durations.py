"""Durations: documented forms are read, and everything else is rejected."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final

import pytest
from hypothesis import example
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidInput
from docs_platform_action.inputs.reader import Reader
from docs_platform_action.inputs.validators import MAX_DURATION_SECONDS
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, edited, edits
from tests.keys import ADMIN_KEY

UNITS: Final = {"h": Fraction(3600), "m": Fraction(60), "s": Fraction(1), "ms": Fraction(1, 1000)}
DIGITS: Final = "0123456789"
TOLERANCE: Final = Fraction(1, 10**9)
"""The relative error of a float."""

LONGEST: Final = Fraction(MAX_DURATION_SECONDS)

Parts = list[tuple[str, str]]
"""Written numbers with their units."""

numbers = st.one_of(
    st.integers(0, 99).map(str),
    st.integers(0, 10**7).map(str),
    st.text(DIGITS, min_size=1, max_size=12),
    st.builds("{}.{}".format, st.integers(0, 999), st.text(DIGITS, min_size=1, max_size=6)),
)
durations = st.one_of(
    st.builds(lambda number: [(number, "")], numbers),
    st.lists(st.sampled_from([*UNITS]), min_size=1, max_size=4, unique=True).flatmap(
        lambda units: st.tuples(*(st.tuples(numbers, st.just(unit)) for unit in sorted(units, key=[*UNITS].index))).map(list)
    ),
)


def read(text: str) -> float:
    environ = {
        "INPUT_BASE-URL": "https://api.example.com",
        "INPUT_ADMIN-KEY": ADMIN_KEY,
        "INPUT_DOMAIN": "docs.example.com",
        "INPUT_TIMEOUT": text,
    }
    reader = Reader(environ, in_workflow=True)
    return reader.read(roots=[Path("/github/workspace")]).jobs[0].waiting.timeout_seconds


def expected_seconds(text: str) -> Fraction | None:
    """Read a duration character by character, as in the contract; `None` if it is invalid."""
    left = text
    total, known = Fraction(0), [*UNITS]
    while left:
        number = left[: len(left) - len(left.lstrip(f"{DIGITS}."))]
        left = left[len(number) :]
        unit = left[: len(left) - len(left.lstrip("hms"))]
        left = left[len(unit) :]
        whole, point, part = number.partition(".")
        if not whole or (point and not part) or "." in part:
            return None
        if not unit and not left and number == text:
            return Fraction(Decimal(number))
        if unit not in known:
            return None
        known = known[known.index(unit) + 1 :]
        total += Fraction(Decimal(number)) * UNITS[unit]
    return total if text else None


def check(text: str, seconds: Fraction | None) -> None:
    """Check that a duration is read correctly, or rejected."""
    if seconds is not None and abs(seconds - LONGEST) < TOLERANCE * LONGEST and seconds != LONGEST:
        return  # too close to the limit for a float
    if seconds is not None and 0 < seconds <= LONGEST:
        assert abs(Fraction(read(text)) - seconds) <= TOLERANCE * seconds
        return
    with pytest.raises(InvalidInput, match=r"^Invalid input `timeout`: "):
        read(text)


@fuzz("durations as documented", parts=durations)
@example([("840", "h")])
@example([("0", "h"), ("0.0", "ms")])
@example([("9" * 400, "h")])
@example([("0", "h"), ("9" * 400, "ms")])
def test_a_documented_duration_is_the_sum_of_its_parts(parts: Parts) -> None:
    seconds = sum((Fraction(Decimal(number)) * UNITS.get(unit, Fraction(1)) for number, unit in parts), Fraction(0))

    check("".join(number + unit for number, unit in parts), seconds)


tokens = durations.map(lambda parts: [token for part in parts for token in part if token])
signs = st.sampled_from([*UNITS, "d", "H", "µs", ".", ".", "-", "+", "e", "_", " ", "0", "1", "05"])
pieces = st.one_of(signs, st.sampled_from(HOSTILE_TEXTS)).map(lambda piece: [piece])


@fuzz("durations altered", tokens=tokens, todo=edits(pieces))
@example(["1", "ms"], [("insert", 0.0, 0.0, ["1s"])])
@example(["1"], [("insert", 1.0, 0.0, ["٣"])])
@example(["1", "s"], [("insert", 0.0, 0.0, ["9" * 5000])])
@example(["1", "s"], [("insert", 0.5, 0.0, ["."])])
@example(["1", "s"], [("insert", 0.0, 0.0, ["."])])
@example(["1", "h", "1", "h"], [("insert", 0.0, 0.0, [""])])
def test_an_altered_duration_is_read_correctly_or_rejected(
    tokens: list[str], todo: list[tuple[str, float, float, list[str]]]
) -> None:
    text = "".join(edited(tokens, todo)).strip().strip("\ufeff").strip()

    if not text:
        assert read(text) == 3600  # an empty input has its default
    elif any("\ud800" <= character <= "\udfff" for character in text):
        check(text, None)
    else:
        check(text, expected_seconds(text))


@pytest.mark.timeout(30)
@pytest.mark.parametrize("ending", ["", "x", "h", "ms", "h1", "."])
@pytest.mark.parametrize("part", ["1", "1.", "1.1", "1h", "1m", "1ms", "h", "0", "٣"])
def test_a_very_long_text_is_rejected_quickly(part: str, ending: str) -> None:
    """Reject a text on which a backtracking search takes hours, and a quadratic one minutes."""
    text = part * (200_000 // len(part)) + ending

    with pytest.raises(InvalidInput) as caught:
        read(text)

    assert caught.value.summary.startswith("Invalid input `timeout`: ")
    assert len(caught.value.summary) < 300
