"""The log holds no secret, begins no command that is not ours, and a broken stream costs no run."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.report.console import ANNOTATION_LIMIT, Console
from tests.keys import ADMIN_KEY


class Log:
    """A console and what it wrote."""

    def __init__(self, *, in_workflow: bool = True, debugging: bool = False) -> None:
        self.stream = io.StringIO()
        self.console = Console(self.stream, in_workflow=in_workflow, debugging=debugging)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


def decoded(command: str) -> str:
    """Give the message of a command as the runner reads it."""
    message = command.rstrip("\n").split("::", 2)[2]
    return message.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


class TestMask:
    def test_the_runner_is_told_in_a_workflow(self) -> None:
        log = Log()

        log.console.mask(ADMIN_KEY)

        assert log.text == f"::add-mask::{ADMIN_KEY}\n"

    def test_nothing_is_printed_elsewhere(self) -> None:
        log = Log(in_workflow=False)

        log.console.mask(ADMIN_KEY)

        assert log.text == ""

    def test_an_empty_secret_is_none(self) -> None:
        log = Log()

        log.console.mask("")
        log.console.line("abc")

        assert log.text == "abc\n"

    def test_a_secret_of_many_lines_stays_one_command(self) -> None:
        log = Log()

        log.console.mask("a%b\nsecond\r\n::error::third")

        assert log.text.count("\n") == 1
        assert decoded(log.text) == "a%b\nsecond\r\n::error::third"

    def test_each_line_of_a_secret_is_hidden_by_itself(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask("first-part\n\nsecond-part")

        log.console.line("found second-part and first-part")

        assert log.text == "found *** and ***\n"

    def test_a_longer_secret_is_hidden_whole(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask("abc")
        log.console.mask("abcdef")

        log.console.line("abcdef abc")

        assert log.text == "*** ***\n"

    def test_it_is_hidden_as_it_stands_in_an_address_too(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask("a+b/c=d&e")

        log.console.line("redirected to /login?key=a%2Bb%2Fc%3Dd%26e")

        assert log.text == "redirected to /login?key=***\n"

    def test_one_that_no_address_can_hold_is_hidden_as_it_is(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask("first\udcffpart")

        log.console.output("message", "found first\udcffpart")

        assert log.text == "message=found ***\n"

    @pytest.mark.parametrize("in_workflow", [True, False])
    def test_it_is_hidden_in_whatever_is_written(self, in_workflow: bool) -> None:
        log = Log(in_workflow=in_workflow, debugging=True)
        log.console.mask(ADMIN_KEY)
        said = f"key {ADMIN_KEY}"

        log.console.line(said)
        log.console.error([said, said])
        log.console.warning([said, said])
        log.console.debug(said)
        log.console.output("message", said)

        assert log.text.count(ADMIN_KEY) == (1 if in_workflow else 0)
        assert log.text.count("***") >= 7

    @given(st.text("\u200b\x00\n ", min_size=1, max_size=3), st.integers(1, len(ADMIN_KEY) - 1))
    def test_cleaning_does_not_put_it_together_again(self, between: str, at: int) -> None:
        log = Log(in_workflow=False)
        log.console.mask(ADMIN_KEY)

        log.console.line(ADMIN_KEY[:at] + between + ADMIN_KEY[at:])

        assert ADMIN_KEY not in log.text


class TestMaskForTheJob:
    LINK = "https://storage.example.com/b?X-Credential=a%2Fb&X-Signature=s3cr3t"

    def test_the_runner_is_told_with_percent_signs_escaped(self) -> None:
        log = Log()

        log.console.mask_for_the_job(self.LINK)

        assert log.text == "::add-mask::https://storage.example.com/b?X-Credential=a%252Fb&X-Signature=s3cr3t\n"
        assert decoded(log.text) == self.LINK

    def test_outside_of_a_workflow_it_would_only_be_shown(self) -> None:
        log = Log(in_workflow=False)

        log.console.mask_for_the_job(self.LINK)

        assert log.text == ""

    def test_outputs_that_are_printed_keep_it(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask_for_the_job(self.LINK)

        log.console.output("bundleUrl", self.LINK)

        assert log.text == f"bundleUrl={self.LINK}\n"


class TestLines:
    def test_a_line_is_written_and_flushed(self) -> None:
        log = Log()

        log.console.line("  queued    0:00")

        assert log.text == "  queued    0:00\n"

    @given(st.one_of(st.text(), st.text(":#[]\r\n e", max_size=12)))
    def test_no_line_begins_a_command_or_a_second_line(self, text: str) -> None:
        log = Log()

        log.console.line(text)

        assert len(log.text.splitlines()) <= 1
        assert not re.match(r"\s*::.*?::", log.text)
        assert "##[" not in log.text

    def test_debug_lines_are_for_debugging(self) -> None:
        log = Log(debugging=False)

        log.console.debug("details")

        assert log.text == ""
        assert not log.console.debugging

    @pytest.mark.parametrize(("in_workflow", "written"), [(True, "::debug::100%25\n"), (False, "debug: 100%\n")])
    def test_debug_lines_are_commands_in_a_workflow(self, in_workflow: bool, written: str) -> None:
        log = Log(in_workflow=in_workflow, debugging=True)

        log.console.debug("100%")

        assert log.text == written
        assert log.console.debugging


class TestAnnotations:
    def test_an_error_is_one_command_with_title_and_facts(self) -> None:
        log = Log()

        log.console.error(["Export of a.example: it broke, 50 %", "Because.", "Do this."])

        assert log.text.count("\n") == 1
        assert log.text.startswith("::error title=Export of a.example%3A it broke%2C 50 %25::")
        assert decoded(log.text) == "Export of a.example: it broke, 50 %\n  Because.\n  Do this."

    def test_elsewhere_it_reads_as_prose(self) -> None:
        log = Log(in_workflow=False)

        log.console.warning(["It is odd", "Because."])

        assert log.text == "Warning: It is odd\n  Because.\n"

    def test_it_is_cut_where_the_runner_would_cut_it(self) -> None:
        log = Log()

        log.console.error(["t", *["x" * 900] * 9])

        assert len(decoded(log.text)) <= ANNOTATION_LIMIT

    @given(st.lists(st.one_of(st.text(), st.text(":#[]%\r\n ,=e", max_size=12)), min_size=1, max_size=4))
    def test_foreign_text_stays_inside_its_command(self, lines: list[str]) -> None:
        log = Log()

        log.console.error(lines)

        assert log.text.count("\n") == 1
        assert re.match(r"::error title=[^:,\r\n]*::", log.text)
        assert "##[" not in log.text
        assert "\r" not in log.text


class TestOutputs:
    def test_they_are_printed_as_name_and_value(self) -> None:
        log = Log(in_workflow=False)

        log.console.output("bundleUrl", "https://storage.example.com/x?a=1::2")

        assert log.text == "bundleUrl=https://storage.example.com/x?a=1::2\n"

    def test_in_a_workflow_they_begin_no_command(self) -> None:
        log = Log()

        log.console.output("status", "##[error]x")

        assert "##[" not in log.text

    def test_a_long_one_is_printed_whole(self) -> None:
        log = Log()

        log.console.output("results", "x" * 5000)

        assert len(log.text) == len("results=\n") + 5000


class BrokenStream(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.attempts = 0

    def write(self, text: str) -> int:
        del text
        self.attempts += 1
        raise self.error


class TestBrokenStream:
    @pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left on device"), ValueError("closed file")])
    def test_it_is_given_up_with_one_warning(self, error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
        stream = BrokenStream(error)
        console = Console(stream, in_workflow=True, debugging=False)

        console.line("one")
        console.line("two")
        console.error(["three"])

        assert stream.attempts == 1
        assert console.broken
        said = capsys.readouterr().err
        assert said.startswith("Warning: the log cannot be written")
        assert said.count("\n") == 1

    def test_not_even_the_warning_has_to_be_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stderr", BrokenStream(BrokenPipeError()))
        console = Console(BrokenStream(BrokenPipeError()), in_workflow=True, debugging=False)

        console.line("one")

        assert console.broken

    def test_nor_need_there_be_a_place_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stderr", None)
        console = Console(BrokenStream(BrokenPipeError()), in_workflow=True, debugging=False)

        console.line("one")

        assert console.broken
