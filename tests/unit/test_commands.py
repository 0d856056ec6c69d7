"""`tests/commands.py` finds the commands that GitHub's runner would execute: the tests of hostile texts rely on it."""

import pytest

from tests.commands import Command, commands_in, lines_of

ERROR = Command(name="error", value="x")


@pytest.mark.parametrize(
    ("log", "found"),
    [
        (" \t\u00a0\u2028::error::x", [ERROR]),
        ("::ERROR::x", [Command(name="ERROR", value="x")]),
        ("before ##[error]x", [ERROR]),
        ("::unknown::##[error]x", [ERROR]),
        ("\u200b:\ufe0f:error:\u00ad:x", [ERROR]),
        ("#\u200b#[error]x", [ERROR]),
        ("a\r::error::x\n##[error]x\r\n", [ERROR, ERROR]),
        ("::debug::##[error]x", [Command(name="debug", value="##[error]x")]),
        ("text ::error::x\n: :error::x\n::error:x\n::error\n::unknown::x\n::::x\n:::error::x", []),
        ("##error]x\n##[error\n##[unknown]x ##[error]y\n# #[error]x", []),
        ("a\v::error::x\na\u2028::error::x\n::error\tfile=x::y", []),
        (
            "::error title=a%3Ab%2Cc%250A%0Ad, file = x ,=,e=,=f=1::50%25 %2C%0D%0A",
            [Command(name="error", properties={"title": "a:b,c%0A\nd", " file ": " x ", "f": "1"}, value="50% %2C\r\n")],
        ),
        (
            "##[set-env name=a%3Bb%5D%250A;x=%3A]y%0A,%3B",
            [Command(name="set-env", properties={"name": "a;b]%0A", "x": "%3A"}, value="y\n,;")],
        ),
        (
            "::stop-commands::Pause\n::error::a\n##[error]b\n::other::\n::pause::\n::error::x\n::pause::d\n",
            [Command(name="stop-commands", value="Pause"), ERROR],
        ),
    ],
)
def test_commands_are_found_and_decoded(log: str, found: list[Command]) -> None:
    assert commands_in(log) == found


def test_lines_end_where_the_runner_ends_them() -> None:
    assert lines_of("a\nb\r\nc\rd\x0be\u2028f\n\n") == ["a", "b", "c", "d\x0be\u2028f", ""]
