"""The log holds no secret, and foreign text begins no command in it.

A broken stream does not fail the run.
"""

import io

import pytest

from docs_platform_action.report.console import ANNOTATION_LIMIT, MAX_WARNINGS, Console
from tests.commands import commands_in, lines_of
from tests.hostile import HARMFUL


class Log:
    """A console and what it wrote."""

    def __init__(self, *, in_workflow: bool = True, debugging: bool = False) -> None:
        self.stream = io.StringIO()
        self.console = Console(self.stream, in_workflow=in_workflow, debugging=debugging)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.mark.parametrize(
    "secret", ["a%b\nsecond\r\n::error::third", "https://s.example.com/b?X-Credential=a%2Fb&x=1"]
)
def test_a_secret_is_masked_whole_in_one_command(secret: str) -> None:
    log = Log()

    log.console.mask([secret, ""])
    log.console.mask_in_job(secret)

    masks = [(command.name, command.value) for command in commands_in(log.text)]
    assert masks == [("add-mask", secret)] * 2


@pytest.mark.parametrize("text", HARMFUL)
def test_foreign_text_stays_inside_its_line_or_command(text: str) -> None:
    log = Log()

    log.console.line(text, link="https://git.example.com/##[error]\n::x::")
    log.console.group(text, [text, text])
    log.console.warning([text, text])
    log.console.error([text], title="Static export failed: rejected")

    commands = commands_in(log.text)
    assert [command.name for command in commands] == ["group", "endgroup", "warning", "error"]
    assert commands[-1].properties == {"title": "Static export failed: rejected"}
    assert not any(commands_in(command.value) for command in commands)
    assert len(lines_of(log.text)) == 1 + 4 + 1 + 1


def test_only_the_link_at_the_end_of_a_line_keeps_its_query() -> None:
    log = Log()

    log.console.line("see https://a.example/?x=1:", link="https://git.example.com/pull?id=7")

    assert log.text == "see https://a.example/?… https://git.example.com/pull?id=7\n"


def test_an_annotation_has_the_runners_limit() -> None:
    log = Log()
    details = ["x" * 900] * 9

    log.console.error(["title", *details], title="Static export failed")

    (command,) = commands_in(log.text)
    assert len(command.value) == ANNOTATION_LIMIT


def test_more_warnings_than_the_runner_shows_are_plain_lines() -> None:
    log = Log()

    for number in range(MAX_WARNINGS + 2):
        log.console.warning([f"It is odd ({number})", "Because."])
    log.console.error(["It failed"], title="Static export failed")

    commands = commands_in(log.text)
    assert [command.name for command in commands] == [*["warning"] * MAX_WARNINGS, "error"]
    assert log.text.count("Warning: ") == 2


@pytest.mark.parametrize("debugging", [True, False])
def test_the_first_bug_in_a_part_of_the_report_is_a_warning_with_a_trace_for_debugging(
    debugging: bool,
) -> None:
    log = Log(debugging=debugging)

    for part in ("The log", "The log", "The summary"):
        with log.console.bugs_as_warnings(part):
            raise KeyError(part)

    assert log.text.count("::warning::") == 2
    assert log.text.count("::debug::KeyError:") == (2 if debugging else 0)


@pytest.mark.parametrize(
    "error",
    [BrokenPipeError(), OSError(28, "No space left on device"), ValueError(), MemoryError()],
)
def test_after_an_error_of_the_stream_nothing_more_is_written(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts: list[str] = []

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            attempts.append(text)
            raise error

    console = Console(Broken(), in_workflow=True, debugging=False)
    console.line("one")
    console.error(["two"], title="Static export failed")

    assert len(attempts) == 1
    assert capsys.readouterr().err.count("\n") == 1
