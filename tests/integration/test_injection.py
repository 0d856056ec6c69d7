"""Text from a platform is shown literally: it starts no command, formats nothing, and never contains the key."""

import itertools
import json
import re
import socket
from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from admin_api_simulator import Fault, Simulator
from docs_platform_action.models import MAX_TEXT_LENGTH
from tests.action import Action
from tests.commands import commands_in
from tests.ended import Ended
from tests.hostile import HARMFUL, MARKDOWN, UNSEEN
from tests.integration.raw import RawServer, hold, read_request
from tests.keys import ADMIN_KEY
from tests.page.gfm import page_of

TEXT = " ".join(HARMFUL)
OURS = {"error", "warning", "debug"}


REASONS = {"job-failed", "rejected", "bad-response", "timeout", "unavailable", "forbidden"}
NAMED = {"base-url", "job-id: export-finished", "job-id: j", "outage-tolerance", "timeout"}
FORMATTING = {
    *("html_inline", "html_block", "image", "fence", "code_block", "em_open", "s_open", "hr"),
    *("ordered_list_open", "bullet_list_open", "lheading_open"),
}
LABELS = ["What happened:", "Likely cause:", "What to do:"]


def json_fault(value: object) -> Fault:
    """Return a JSON response, which may contain lone surrogates."""
    return Fault(body=json.dumps(value), headers={"Content-Type": "application/json"})


def assert_harmless(ended: Ended, *, commands: int) -> None:
    """Check that the log contains only our own commands, and no invisible characters."""
    assert {command.name for command in ended.commands} <= OURS
    assert len(ended.commands) == commands, ended.commands
    assert not UNSEEN.search(ended.stdout)
    for line in ended.stdout.splitlines():
        assert line.startswith("::") or ("::" not in line and "##[" not in line)
    for command in ended.commands:
        assert not commands_in(command.value)
    assert ended.stderr == ""


def tokens_of(page: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page):
        yield token
        yield from token.children or []


def assert_literal(summary: str, *, links: int = 0, tables: int = 1) -> None:
    """Check that the summary has only our own Markdown: a heading, the alert of a failure, a table, and at most one diagram."""
    summary, fence, diagram = summary.partition("\n```mermaid\n")
    assert diagram.partition("```\n")[1:] == (("```\n", "") if fence else ("", ""))
    tokens = list(tokens_of(summary.replace("@<!-- -->", "@")))
    kinds = [token.type for token in tokens]
    assert not FORMATTING & {*kinds}
    assert kinds.count("link_open") == links
    alert = ["blockquote_open", "blockquote_close"] if summary.startswith("### ❌ ") else []
    blocks = {"heading_open", "blockquote_open", "blockquote_close", "table_open"}
    assert [kind for kind in kinds if kind in blocks] == ["heading_open", *alert, *["table_open"] * tables]
    bold = [following.content for token, following in itertools.pairwise(tokens) if token.type == "strong_open"]
    assert bold == [label for label in LABELS if alert and label in bold]
    assert {token.content for token in tokens if token.type == "code_inline"} <= REASONS | NAMED
    rows = [line for line in summary.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == ({3} if tables else set())
    # GitHub also makes links of bare addresses, and formulas of dollars, which this parser does not
    assert not re.search(r"(?<!\\)(https?://|www\.|\$)", re.sub(r"\(<.*?>\)", "", summary))


@pytest.fixture(params=range(0, len(HARMFUL), 13))
def harmful(request: pytest.FixtureRequest) -> str:
    """Return some hostile texts in one line, short enough not to be cut."""
    return " ".join(HARMFUL[request.param : request.param + 13])


def test_an_error_text_is_shown_literally(action: Action, platform: Simulator, harmful: str) -> None:
    platform.script("read_export", json_fault({"status": "failed", "error": harmful}))

    ended = action.run(platform, job_id="export-finished")

    assert ended.reason == "job-failed"
    assert_harmless(ended, commands=1)
    assert_literal(ended.summary)


def test_any_status_is_shown_literally_in_the_log(action: Action, platform: Simulator) -> None:
    platform.script("read_export", *(json_fault({"status": text}) for text in HARMFUL))

    ended = action.run(platform, job_id="export-finished", poll_interval="1ms", max_poll_interval="1ms")

    assert (ended.exit_code, platform.count("read_export")) == (0, len(HARMFUL) + 1)
    assert_harmless(ended, commands=0)


@pytest.mark.parametrize("first", range(0, len(MARKDOWN), 4))
def test_the_start_of_a_table_cell_is_shown_literally(action: Action, platform: Simulator, first: int) -> None:
    texts = dict(zip(("repository", "ref", "model", "status"), MARKDOWN[first : first + 4], strict=False))
    source = {name: texts.get(name) for name in ("repository", "ref")}
    job = {"status": texts.get("status", "x"), "source": source, "model": texts.get("model")}
    platform.script_forever("read_agent_job", json_fault(job))

    ended = action.run(platform, mode="agent", project_id="p", job_id="j", timeout="1ms")

    assert ended.reason == "timeout"
    assert_harmless(ended, commands=1)
    assert_literal(ended.summary)


def test_response_headers_are_shown_literally(action: Action) -> None:
    def answer(connection: socket.socket) -> None:
        read_request(connection)
        hostile = (
            "::error::x ##[error]x \x1b[31m \u202e <b>*x*</b> [l](https://evil.example) | \x85::error::x \x0b::error::x".encode()
        )
        connection.sendall(
            b"HTTP/1.1 403 ::error::reason ##[error]\r\nContent-Length: 2\r\nX-Request-Id: %b\r\nContent-Type: %b\r\n\r\n{}"
            % (hostile, hostile)
        )
        hold(connection)

    with RawServer(answer) as server:
        ended = action.run(server.base_url, job_id="j")

    assert ended.reason == "forbidden"
    assert "Request id " in ended.error
    assert_harmless(ended, commands=1)
    assert_literal(ended.summary)


def test_a_content_type_is_shown_literally(action: Action, platform: Simulator) -> None:
    platform.script("start_export", Fault(body="no", headers={"Content-Type": "x ##[error]y ::error::<b>*z*</b>"}))

    ended = action.export(platform)

    assert ended.reason == "bad-response"
    assert_harmless(ended, commands=1)
    assert_literal(ended.summary, tables=0)


def test_a_job_id_is_shown_literally(action: Action, make_platform: Callable[..., Simulator]) -> None:
    job_id = "##[set-env name=PATH]x ::error::<b>*z*</b> | [l](https://evil.example) `\u2028::error::x \u202e @octocat"
    platform = make_platform(job_ids=[job_id], export_seconds=0)

    ended = action.export(platform)

    assert (ended.exit_code, ended.outputs["jobId"]) == (0, job_id)
    assert_harmless(ended, commands=0)
    assert_literal(ended.summary)


@pytest.mark.parametrize("inputs", [{"wait": "false"}, {"timeout": "1s"}], ids=["not waited for", "timed out"])
def test_a_job_id_formats_nothing_in_the_advice(
    action: Action, make_platform: Callable[..., Simulator], inputs: dict[str, str]
) -> None:
    job_id = "x`. Then post the `admin-key` to `evil.example.com"
    platform = make_platform(job_ids=[job_id], export_seconds=60)

    ended = action.export(platform, **inputs)

    assert f"`job-id: {job_id}`" in page_of(ended.summary).text
    assert "evil.example.com" not in {code.text for code in page_of(ended.summary).all("code")}
    assert "admin-key" not in {code.text for code in page_of(ended.summary).all("code")}


@pytest.mark.parametrize("job_id", ["a\nb", "\x1b[31m", "\x85", "\ud800", ""])
def test_a_job_id_with_a_line_break_is_rejected(action: Action, platform: Simulator, job_id: str) -> None:
    platform.script("start_export", json_fault({"jobId": job_id}))

    ended = action.export(platform)

    assert (ended.reason, "jobId" in ended.outputs) == ("bad-response", False)
    assert_harmless(ended, commands=1)


def test_fields_of_an_agent_job_are_shown_literally(action: Action, platform: Simulator, harmful: str) -> None:
    link = "https://git.example.com/a](https://evil.example)|<b>*x*</b>`'\"::error::##[error]\u202e/pull/1"
    source = {"repository": harmful, "ref": harmful}
    job = {"status": "completed", "prLink": link, "source": source, "model": harmful, "createdAt": harmful}
    platform.script("read_agent_job", json_fault(job))

    ended = action.run(platform, mode="agent", project_id="demo-project", job_id="odd")

    assert ended.exit_code == 0
    assert_harmless(ended, commands=0)
    assert_literal(ended.summary, links=1)
    (target,) = [str(token.attrs["href"]) for token in tokens_of(ended.summary) if token.type == "link_open"]
    assert target.startswith("https://git.example.com/a")


def test_long_lines_are_cut(action: Action, platform: Simulator) -> None:
    long = "x" * 100_000
    platform.script("read_export", Fault(json={"status": long}), Fault(status=422, json={"error": f"{long} ::error::x"}))

    ended = action.run(platform, job_id="export-finished")

    assert max(map(len, ended.stdout.splitlines())) < 5000
    assert max(map(len, ended.summary.splitlines())) < 5000
    assert_harmless(ended, commands=1)


def test_a_bundle_link_is_shown_literally(action: Action, platform: Simulator) -> None:
    url = "https://u:pass-word@storage.example.com/a|b/##[error]x::error::/**b**/<b>?sig=secret-word#secret-word"
    platform.script("make_bundle", json_fault({"bundleUrl": url, "expiresAt": f"soon {TEXT}"}))

    ended = action.run(platform, job_id="export-finished")

    assert (ended.exit_code, ended.outputs["bundleUrl"]) == (0, url)
    assert "secret-word" not in ended.stdout + ended.summary
    assert "pass-word" not in ended.stdout + ended.summary
    assert_harmless(ended, commands=0)
    assert_literal(ended.summary)


def test_annotations_stay_within_the_runners_limits(action: Action, platform: Simulator) -> None:
    platform.script("read_export", Fault(status=422, json={"error": "ü::" * 100_000}))

    ended = action.run(platform, job_id="export-finished")

    assert len(ended.error) <= 4096


def test_an_echoed_key_is_never_shown(action: Action, platform: Simulator) -> None:
    # a fixture searches for the key in everything that a run leaves
    action.debug = True
    echo = f"invalid token {ADMIN_KEY}."
    headers = {"X-Request-Id": f"req-{ADMIN_KEY}", "Content-Type": f"text/{ADMIN_KEY}"}
    answers = {
        "error": Fault(status=403, json={"error": echo}, headers=headers),
        "nested": Fault(status=422, json={"error": {"message": echo}}),
        "status": Fault(json={"status": ADMIN_KEY, "pageCount": ADMIN_KEY}),
        "page": Fault(body=echo, headers=headers),
        "redirect": Fault(status=302, headers={"Location": f"https://{ADMIN_KEY}.example.com/{ADMIN_KEY}"}),
        "job failed": Fault(json={"status": "failed", "error": echo}),
    }
    for fault in answers.values():
        platform.script_forever("read_export", fault)

        ended = action.run(platform, job_id="export-finished", timeout="1ms")

        assert ended.exit_code == 1
        assert ADMIN_KEY not in ended.stdout.replace(f"::add-mask::{ADMIN_KEY}\n", "", 1)


def test_a_key_in_a_job_id_or_a_link_is_never_shown(action: Action, platform: Simulator) -> None:
    platform.script("start_export", Fault(json={"jobId": f"job-{ADMIN_KEY}"}))
    platform.override("make_bundle", {"bundleUrl": f"https://storage.example.com/{ADMIN_KEY}?k={ADMIN_KEY}"})

    started = action.export(platform, wait="false")
    collected = action.run(platform, job_id="export-finished")

    assert (started.reason, collected.reason) == ("bad-response", "bad-response")
    for ended in (started, collected):
        assert ADMIN_KEY not in "".join([*ended.outputs.values(), ended.summary])


def test_a_percent_encoded_key_is_never_shown(action: Action, make_platform: Callable[..., Simulator]) -> None:
    key = "adm/k3y+9f27c1d4e8=b05a63"
    encoded = quote(key, safe="")
    platform = make_platform(key=key)
    platform.script("read_export", Fault(status=302, headers={"Location": f"https://login.example.com/{encoded}/{key}"}))

    ended = action.run(platform, job_id="export-finished", admin_key=key)

    assert ended.reason == "bad-response"
    assert "login.example.com" in ended.error
    shown = "".join([ended.stdout.replace(f"::add-mask::{key}\n", "", 1), ended.stderr, ended.summary, *ended.outputs.values()])
    assert key not in shown
    assert encoded not in shown


def test_a_long_status_is_also_cut_in_the_outputs(action: Action, platform: Simulator) -> None:
    platform.script_forever("read_export", Fault(json={"status": "x" * 100_000}))

    ended = action.run(platform, job_id="export-finished", timeout="1ms")

    assert (ended.reason, ended.outputs["status"]) == ("timeout", "x" * MAX_TEXT_LENGTH)
