"""The log holds no secret, foreign text begins no command in it, and a broken stream does not fail the run."""

import io
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.report.console import ANNOTATION_LIMIT, MAX_WARNINGS, Console
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

    def test_it_is_hidden_when_percent_encoded(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask(["a+b/c=d&e"])

        log.console.line("redirected to /login?key=a%2Bb%2Fc%3Dd%26e")

        assert log.text == "redirected to /login?key=***\n"

    def test_a_secret_that_cannot_be_percent_encoded_is_hidden(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask(["first\udcffpart"])

        log.console.output("message", "found first\udcffpart")

        assert log.text == "message=found ***\n"

    @pytest.mark.parametrize("in_workflow", [True, False])
    def test_it_is_hidden_in_whatever_is_written(self, in_workflow: bool) -> None:
        log = Log(in_workflow=in_workflow, debugging=True)
        log.console.mask([ADMIN_KEY])
        text = f"key {ADMIN_KEY}"

        log.console.line(text)
        log.console.error([text, text], title="Static export failed")
        log.console.warning([text, text])
        log.console.debug(text)
        log.console.output("message", text)

        assert log.text.count(ADMIN_KEY) == (1 if in_workflow else 0)
        assert log.text.count("***") >= 7

    @given(st.text("\u200b\x00\n ", min_size=1, max_size=3), st.integers(1, len(ADMIN_KEY) - 1))
    def test_cleaning_does_not_put_it_together_again(self, between: str, at: int) -> None:
        log = Log(in_workflow=False)
        log.console.mask([ADMIN_KEY])

        log.console.line(ADMIN_KEY[:at] + between + ADMIN_KEY[at:])

        assert ADMIN_KEY not in log.text


class TestMaskInJob:
    LINK = "https://storage.example.com/b?X-Credential=a%2Fb&X-Signature=s3cr3t"

    def test_the_command_has_percent_signs_escaped(self) -> None:
        log = Log()

        log.console.mask_in_job(self.LINK)

        assert log.text == "::add-mask::https://storage.example.com/b?X-Credential=a%252Fb&X-Signature=s3cr3t\n"
        assert decoded(log.text) == self.LINK

    def test_outputs_that_are_printed_keep_it(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask_in_job(self.LINK)

        log.console.output("bundleUrl", self.LINK)

        assert log.text == f"bundleUrl={self.LINK}\n"


def signature(number: int) -> str:
    return f"X-Signature={number:032x}"


class TestLinks:
    def test_the_secrets_of_a_link_are_hidden(self) -> None:
        log = Log()
        log.console.redact_link("https://storage.example.com/b?X-Id=1&X-Signature=0123456789abcdef")

        log.console.line("asked for /b?X-Id=1&X-Signature=0123456789abcdef, signed 0123456789abcdef.")

        assert log.text == "asked for /b?X-Id=1&X-Signature=…, signed ….\n"

    JOB = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    LINK = f"https://storage.example.com/b?domain=docs.example.com&job={JOB}&expires=1717243200&sig=0123456789abcdef"

    def test_domain_job_and_dates_stay(self) -> None:
        log = Log()
        log.console.redact_link(self.LINK)

        log.console.line(f"Export of docs.example.com, job {self.JOB}: the storage refused {self.LINK[27:]}")

        assert log.text == (
            f"Export of docs.example.com, job {self.JOB}: the storage refused "
            f"/b?domain=docs.example.com&job={self.JOB}&expires=1717243200&sig=…\n"
        )

    def test_names_of_the_run_stay_even_in_a_parameter_with_a_secret_name(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask([ADMIN_KEY], names=["docs.example.com"])
        log.console.redact_link(
            f"https://x.example/?auth=docs.example.com&token={self.JOB}&sign=2024-06-01T12:00:00Z&key=docs.example&sig=0123456789abc",
            names=[self.JOB, "2024-06-01T12:00:00Z", None],
        )

        log.console.line(f"docs.example.com {self.JOB} 2024-06-01T12:00:00Z 0123456789abc")

        assert log.text == f"docs.example.com {self.JOB} 2024-06-01T12:00:00Z …\n"

    def test_its_path_stays_even_if_it_shares_characters_with_the_key(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask([f"adm_{self.JOB}_k3y"])
        log.console.redact_link(f"https://storage.example.com/{self.JOB}/b?sig=0123456789abc")

        log.console.line(f"See storage.example.com/{self.JOB}/b")

        assert log.text == f"See storage.example.com/{self.JOB}/b\n"

    def test_a_path_with_its_secret_is_hidden(self) -> None:
        log = Log(in_workflow=False)
        log.console.redact_link("https://storage.example.com/0123456789abc/b?sig=0123456789abc")

        log.console.line("See storage.example.com/0123456789abc/b")

        assert log.text == "See storage.example.com/…/b\n"

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("GET /b?sig=abc&x=1", "GET /b?sig=…&x=1"),
            ("GET /b?x=1&SIG=abc.", "GET /b?x=1&SIG=…."),
            ("to=%2Fb%3Fx%3D1%26sig%3Dabc", "to=%2Fb%3Fx%3D1%26sig%3D…"),
            ("<sig>abc</sig>", "<sig>…</sig>"),
            ('{"sig": "abc", "x": "abc"}', '{"sig": "…", "x": "abc"}'),
            ("sig: abc", "sig: …"),
            ("abc", "abc"),
            ("design=abc", "design=abc"),
            ("sig=ab", "sig=ab"),
            ("token=abc", "token=abc"),
        ],
    )
    def test_a_short_secret_is_hidden_only_after_its_name(self, text: str, shown: str) -> None:
        log = Log()
        log.console.redact_link("https://storage.example.com/b?sig=abc")

        log.console.line(text)

        assert log.text == f"{shown}\n"

    def test_a_short_secret_that_is_a_name_stays(self) -> None:
        log = Log()
        log.console.redact_link("https://storage.example.com/b?token=se_1&sig=e_1", names=["se_1"])

        log.console.line("token=se_1 sig=e_1")

        assert log.text == "token=se_1 sig=…\n"

    def test_a_secret_of_eight_characters_is_hidden_everywhere(self) -> None:
        log = Log()
        log.console.redact_link("https://storage.example.com/b?sig=abcdefgh")

        log.console.line("abcdefgh")

        assert log.text == "…\n"

    def test_concurrent_links_lose_no_secret(self) -> None:
        log = Log(in_workflow=False)
        barrier = threading.Barrier(8)

        def add(first: int) -> None:
            barrier.wait()
            for number in range(first, first + 100):
                log.console.redact_link(f"https://storage.example.com/b?{signature(number)}")

        threads = [threading.Thread(target=add, args=(first,)) for first in range(0, 800, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert {log.console.safe(signature(number)) for number in range(800)} == {"X-Signature=…"}


class TestGroups:
    def test_secrets_are_hidden_in_them(self) -> None:
        log = Log(in_workflow=False)
        log.console.mask([ADMIN_KEY])

        log.console.group(ADMIN_KEY, [ADMIN_KEY])

        assert log.text == "***\n  ***\n"

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
    @given(st.one_of(st.text(), st.text(":#[]\r\n e", max_size=12)))
    def test_no_line_begins_a_command_or_a_second_line(self, text: str) -> None:
        log = Log()

        log.console.line(text)

        assert len(log.text.splitlines()) <= 1
        assert not re.match(r"\s*::.*?::", log.text)
        assert "##[" not in log.text


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

        log.console.output("bundleUrl", f"https://storage.example.com/x?a=1::2{'x' * 5000}")

        assert log.text == f"bundleUrl=https://storage.example.com/x?a=1::2{'x' * 5000}\n"

    def test_in_a_workflow_they_begin_no_command(self) -> None:
        log = Log()

        log.console.output("status", "##[error]x")

        assert "##[" not in log.text


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
