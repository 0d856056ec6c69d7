"""The log holds no secret, foreign text begins no command in it, and a broken stream does not fail the run."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.report.console import ANNOTATION_LIMIT, MAX_JOB_OUTPUT_BYTES, MAX_WARNINGS, Console
from docs_platform_action.text import MAX_FOREIGN_TEXT_LENGTH
from tests.keys import ADMIN_KEY

hostile = st.one_of(st.text(), st.text(":#[]%\r\n ,=eg", max_size=12), st.just("::endgroup::"), st.just("##[endgroup]"))


class Log:
    """A console and what it wrote."""

    def __init__(self, *, in_workflow: bool = True, debugging: bool = False) -> None:
        self.stream = io.StringIO()
        self.console = Console(self.stream, in_workflow=in_workflow, debugging=debugging)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


def decoded(command: str) -> str:
    """Return the message of a command as the runner reads it."""
    message = command.rstrip("\n").split("::", 2)[2]
    return message.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


class TestMask:
    @pytest.mark.parametrize(("in_workflow", "written"), [(True, f"::add-mask::{ADMIN_KEY}\n" * 2), (False, "")])
    def test_the_runner_masks_it_in_a_workflow(self, in_workflow: bool, written: str) -> None:
        log = Log(in_workflow=in_workflow)

        log.console.mask([ADMIN_KEY])
        log.console.mask_in_job(ADMIN_KEY)

        assert log.text == written

    def test_each_of_several_is_masked_and_hidden(self) -> None:
        log = Log()

        log.console.mask([ADMIN_KEY, "another-key"])
        log.console.line(f"found another-key and {ADMIN_KEY}")

        assert log.text == f"::add-mask::{ADMIN_KEY}\n::add-mask::another-key\nfound *** and ***\n"

    def test_an_empty_secret_is_ignored(self) -> None:
        log = Log()

        log.console.mask([""])
        log.console.line("abc")

        assert log.text == "abc\n"

    def test_a_secret_of_many_lines_stays_one_command(self) -> None:
        log = Log()

        log.console.mask(["a%b\nsecond\r\n::error::third"])

        assert log.text.count("\n") == 1
        assert decoded(log.text) == "a%b\nsecond\r\n::error::third"

    def test_each_line_of_a_secret_is_hidden_by_itself(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask(["first-part\n\nsecond-part"])

        log.console.line("found second-part and first-part")

        assert log.text == "found *** and ***\n"

    @pytest.mark.parametrize("in_workflow", [True, False])
    def test_it_is_hidden_in_whatever_is_written(self, in_workflow: bool) -> None:
        log = Log(in_workflow=in_workflow, debugging=True)
        log.console.mask([ADMIN_KEY])
        text = f"key {ADMIN_KEY}"

        log.console.line(text, link=f"https://git.example.com/{ADMIN_KEY}")
        log.console.group(text, [text])
        log.console.error([text, text], title="Static export failed")
        log.console.warning([text, text])
        log.console.debug(text)
        log.console.trace(ValueError(text))

        assert log.text.count(ADMIN_KEY) == (1 if in_workflow else 0)
        assert log.text.count("***") == 10

    def test_cleaning_does_not_put_it_together_again(self) -> None:
        log = Log()
        log.console.mask([ADMIN_KEY])
        log.console.redactor.add_link("https://s.example.com/b?sig=0123456789abcdef")

        log.console.line(f"{ADMIN_KEY[:5]}\u200b{ADMIN_KEY[5:]} 01234567\u200b89abcdef https:\u200b//x.example.com/?a")

        assert log.text.splitlines()[-1] == "*** … https://x.example.com/?…"

    def test_no_part_of_it_is_left_where_a_text_is_cut(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask([ADMIN_KEY])

        log.console.line(f"{'x' * (MAX_FOREIGN_TEXT_LENGTH - 5)}{ADMIN_KEY}")

        assert ADMIN_KEY[:4] not in log.text


def test_a_link_is_masked_in_the_job_as_it_is() -> None:
    log = Log()
    link = "https://storage.example.com/b?X-Credential=a%2Fb&X-Signature=s3cr3t"

    log.console.mask_in_job(link)

    assert log.text == f"::add-mask::{link.replace('%', '%25')}\n"
    assert decoded(log.text) == link


class TestGroups:
    @given(hostile, st.lists(hostile, max_size=3))
    def test_foreign_text_neither_begins_nor_ends_a_group(self, title: str, lines: list[str]) -> None:
        log = Log()

        log.console.group(title, lines)

        head, *written, foot = log.text.split("\n")[:-1]
        assert head.startswith("::group::")
        assert foot == "::endgroup::"
        assert len(written) == len(lines)
        assert "##[" not in log.text
        assert not any(line.lstrip().startswith("::") for line in written)


class TestLines:
    @given(
        st.one_of(st.text(), st.text(":#[]\r\n e", max_size=12)),
        st.sampled_from(["", "https://git.example.com/##[error]\n::x::"]),
    )
    def test_no_line_begins_a_command_or_a_second_line(self, text: str, link: str) -> None:
        log = Log()

        log.console.line(text, link=link)

        assert len(log.text.splitlines()) <= 1
        assert not re.match(r"\s*::.*?::", log.text)
        assert "##[" not in log.text

    def test_only_the_link_at_the_end_of_a_line_keeps_its_query(self) -> None:
        log = Log()

        log.console.line("see https://a.example/?x=1:", link="https://git.example.com/pull?id=7")

        assert log.text == "see https://a.example/?… https://git.example.com/pull?id=7\n"


class TestAnnotations:
    def test_it_is_truncated_to_the_runners_limit(self) -> None:
        log = Log()

        log.console.error(["t", *["x" * 900] * 9], title="Static export failed")

        assert len(decoded(log.text)) <= ANNOTATION_LIMIT

    @given(st.lists(st.one_of(st.text(), st.text(":#[]%\r\n ,=e", max_size=12)), min_size=1, max_size=4))
    def test_foreign_text_stays_inside_its_command(self, lines: list[str]) -> None:
        log = Log()

        log.console.error(lines, title="Static export failed: rejected")

        assert log.text.count("\n") == 1
        assert re.match(r"::error title=Static export failed%3A rejected::", log.text)
        assert "##[" not in log.text
        assert "\r" not in log.text

    def test_more_warnings_than_the_runner_shows_are_plain_lines(self) -> None:
        log = Log()

        for number in range(MAX_WARNINGS + 2):
            log.console.warning([f"It is odd ({number})", "::error::Because."])
            log.console.error(["It broke"], title="Static export failed")

        assert log.text.count("::error ") == MAX_WARNINGS + 2
        *annotated, tenth, its_fact, eleventh, _ = [line for line in log.text.splitlines() if not line.startswith("::error ")]
        assert [line.partition("It is odd")[0] for line in annotated] == ["::warning::"] * 9
        assert (tenth, its_fact, eleventh) == ("Warning: It is odd (9)", "  : :error: :Because.", "Warning: It is odd (10)")


class TestOutputs:
    def test_they_are_printed_whole_as_name_and_value(self) -> None:
        log = Log(in_workflow=False)
        link = f"https://storage.example.com/x?a=1::2{'x' * 5000}"

        log.console.print_outputs({"jobId": "se_1", "bundleUrl": link})

        assert log.text == f"jobId=se_1\nbundleUrl={link}\n"

    def test_in_a_workflow_they_begin_no_command_and_are_whole(self) -> None:
        log = Log()

        log.console.print_outputs({"status": f"##[error]{'x' * 5000}"})

        assert "##[" not in log.text
        assert log.text.count("x") == 5000

    @pytest.mark.parametrize(("character", "size"), [("x", 2), ("🙂", 4)])
    @pytest.mark.parametrize("excess", [0, 1])
    def test_results_that_are_too_large_for_a_job_are_warned_of(self, character: str, size: int, excess: int) -> None:
        log = Log()

        log.console.warn_of_size(character * (MAX_JOB_OUTPUT_BYTES // size + excess))

        assert log.text.count("::warning::") == excess


class TestBugs:
    @pytest.mark.parametrize("debugging", [True, False])
    def test_one_in_a_part_of_the_report_becomes_a_warning_with_a_trace_for_debugging(self, debugging: bool) -> None:
        log = Log(debugging=debugging)

        with log.console.bugs_as_warnings("The log"):
            raise KeyError("pages")

        assert log.text.count("::warning::") == 1
        assert log.text.count("::debug::KeyError: 'pages'") == debugging


class BrokenStream(io.StringIO):
    """A stream whose writes fail."""

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
    def test_after_an_error_nothing_more_is_written(self, error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
        stream = BrokenStream(error)
        console = Console(stream, in_workflow=True, debugging=False)

        console.line("one")
        console.line("two")
        console.error(["three"], title="Static export failed")

        assert stream.attempts == 1
        warning = capsys.readouterr().err
        assert warning.count("\n") == 1

    @pytest.mark.parametrize("standard_error", [BrokenStream(BrokenPipeError()), None])
    def test_the_warning_may_fail_too(self, standard_error: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stderr", standard_error)
        stream = BrokenStream(BrokenPipeError())
        console = Console(stream, in_workflow=True, debugging=False)

        console.line("one")
        console.line("two")

        assert stream.attempts == 1
