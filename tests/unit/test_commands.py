"""`tests/commands.py` finds the commands that GitHub's runner would execute."""

import pytest

from tests.commands import Command, commands_in, lines_of


@pytest.mark.parametrize(
    "line",
    [
        "::error::x",
        " \t::error::x",
        "\u00a0\u2028::error::x",
        "::ERROR::x",
        "##[error]x",
        "before ##[error]x",
        "::unknown::##[error]x",
        "\u200b:\u200b:error:\u00ad:x",
        "#\u200b#[error]x",
        ":\ufe0f:error:\u034f:x",
        "a\r::error::x",
        "a\n::error::x",
        "a\r\n::error::x\r\n",
    ],
)
def test_a_command_is_found(line: str) -> None:
    assert [(command.name.lower(), command.value) for command in commands_in(line)] == [("error", "x")]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "text ::error::x",
        ": :error::x",
        "::error:x",
        "::error",
        "::unknown::x",
        "::::x",
        ":::error::x",
        "##error]x",
        "##[error",
        "##[unknown]x ##[error]y",
        "# #[error]x",
        "a\v::error::x",
        "a\u2028::error::x",
        "::error\tfile=x::y",
    ],
)
def test_other_lines_are_not_commands(line: str) -> None:
    assert commands_in(line) == []


def test_properties_and_message_are_decoded() -> None:
    found = commands_in("::error title=a%3Ab%2Cc%250A%0Ad, file = x ,=,e=,=f=1::50%25 %2C%0D%0A")

    assert found == [Command(name="error", properties={"title": "a:b,c%0A\nd", " file ": " x ", "f": "1"}, value="50% %2C\r\n")]


def test_properties_and_message_of_the_old_form_are_decoded() -> None:
    assert commands_in("##[set-env name=a%3Bb%5D%250A;x=%3A]y%0A,%3B") == [
        Command(name="set-env", properties={"name": "a;b]%0A", "x": "%3A"}, value="y\n,;")
    ]


def test_the_new_form_comes_before_the_old() -> None:
    assert commands_in("::debug::##[error]x") == [Command(name="debug", value="##[error]x")]


def test_commands_are_stopped_until_the_token_comes() -> None:
    log = "::stop-commands::Pause\n::error::a\n##[error]b\n::other::\n::pause::\n::error::c\n::pause::d\n"

    assert [command.value for command in commands_in(log)] == ["Pause", "c"]


def test_a_stop_in_one_stream_applies_to_the_other() -> None:
    assert [command.value for command in commands_in("::stop-commands::t\n", "::error::a\n##[t]\n::error::b")] == ["t", "b"]


def test_lines_end_where_the_runner_ends_them() -> None:
    assert lines_of("a\nb\r\nc\rd\x0be\u2028f\n\n") == ["a", "b", "c", "d\x0be\u2028f", ""]
