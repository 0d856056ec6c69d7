"""Text from a server is shown and not interpreted.

It can neither start a command of the runner, nor color the terminal, nor break the summary.
"""

import io
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import yaml

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.commands import commands_in, lines_of
from tests.ended import Ended
from tests.gfm import page_of, tags
from tests.hostile import COMMANDS, HARMFUL, UNSEEN
from tests.virtual_platform import STORAGE_URL, VirtualPlatform
from tests.virtual_time import VirtualClock

ALL: Final = " ".join(HARMFUL)
TEXTS: Final = (*COMMANDS, ALL, f"{COMMANDS[0]}{'x' * 50_000}\r{COMMANDS[0]}")
BLOCK_TAGS: Final = {"h3", "blockquote", "p", "strong", "code", "pre", "details", "summary", "b"}
TABLE_TAGS: Final = {"table", "thead", "tbody", "tr", "th", "td"}
TAGS: Final = BLOCK_TAGS | TABLE_TAGS

JSON: Final = b"{}"
WARNING_ICON: Final = "### \u26a0\ufe0f "

Plant = Callable[[Simulator, str], None]


def body(operation: Any, write: Callable[[str], object], *, status: int = 200) -> Plant:
    """Return a function that puts a text into JSON, also with lone surrogates."""

    def plant(simulator: Simulator, text: str) -> None:
        answer = Fault(
            status=status,
            body=json.dumps(write(text)),
            headers={"Content-Type": "application/json"},
        )
        simulator.script_forever(operation, answer)

    return plant


def header(operation: Any, name: str, *, status: int = 200, content: str = "{}") -> Plant:
    """Return a function that puts a text into a header."""

    def plant(simulator: Simulator, text: str) -> None:
        written = text.replace("\n", " ")[:20_000]
        response = (
            f"HTTP/1.1 {status} Reason\r\n"
            f"Content-Length: {len(content)}\r\n"
            f"{name}: {written}\r\n"
            "\r\n"
            f"{content}"
        )
        simulator.script_forever(operation, Fault(raw=response.encode("utf-8", "surrogatepass")))

    return plant


def storage_error(simulator: Simulator, text: str) -> None:
    short = text[:5000]
    error = f"<Error><Code>{short}</Code><Message>{short}</Message></Error>"
    content = error.encode("utf-8", "surrogatepass")
    simulator.script_forever("download", Fault(status=451, body=content))


def archive_with(name: str, target: str | None = None) -> Plant:
    def plant(simulator: Simulator, text: str) -> None:
        content = io.BytesIO()
        safe = text[:2000].encode("utf-8", "replace").decode()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
            member = tarfile.TarInfo(name.format(safe))
            member.size = len(JSON)  # a warning names the only file with its kind
            if target is not None:
                member.size = 0
                member.type = tarfile.SYMTYPE
                member.linkname = target.format(safe)
            archive.addfile(member, io.BytesIO(JSON))
        simulator.script_forever("download", Fault(body=content.getvalue()))

    return plant


COLLECT: Final = {"mode": "collect", "job_id": "export-finished"}


@dataclass(frozen=True, kw_only=True)
class Field:
    """Where a server puts a text, and a run that reads it."""

    plant: Plant
    inputs: Mapping[str, str] = field(default_factory=lambda: COLLECT)
    output: str | None = None
    """The output that is this text."""


EXPORT: Final = {"domain": "docs.example.com"}
SITE: Final = {**COLLECT, "site_path": "site"}
VALUES: Final = {**COLLECT, "values_file": "values.yaml"}
AGENT: Final = {"mode": "agent", "project_id": "demo-project", "job_id": "agent-pull-request"}
LINK: Final = f"{STORAGE_URL}/b"

FIELDS: Final[Mapping[str, Field]] = {
    "job ID": Field(
        plant=body("start_export", lambda text: {"jobId": text}),
        inputs={**EXPORT, "wait": "false"},
        output="jobId",
    ),
    "status of an export": Field(
        plant=body("read_export", lambda text: {"status": text}), output="status"
    ),
    "error of a failed job": Field(
        plant=body("read_export", lambda text: {"status": "failed", "error": text})
    ),
    "error of a start": Field(
        plant=body("start_export", lambda text: {"error": text}, status=422), inputs=EXPORT
    ),
    "expiry": Field(
        plant=body("make_bundle", lambda text: {"bundleUrl": LINK, "expiresAt": text}),
        inputs=VALUES,
    ),
    "link": Field(plant=body("make_bundle", lambda text: {"bundleUrl": text}), inputs=VALUES),
    "status of an agent job": Field(
        plant=body("read_agent_job", lambda text: {"status": text}), inputs=AGENT, output="status"
    ),
    "source of an agent job": Field(
        plant=body(
            "read_agent_job",
            lambda text: {"status": "completed", "source": {"repository": text, "ref": text}},
        ),
        inputs=AGENT,
    ),
    "other fields of an agent job": Field(
        plant=body(
            "read_agent_job",
            lambda text: {"status": "archived", "model": text, "createdAt": text, "prLink": text},
        ),
        inputs=AGENT,
    ),
    "request ID": Field(plant=header("read_export", "X-Request-Id", status=401)),
    "content type": Field(
        plant=header("start_export", "Content-Type", content="no JSON"), inputs=EXPORT
    ),
    "redirect": Field(plant=header("read_export", "Location", status=302)),
    "redirect of the storage": Field(plant=header("download", "Location", status=302), inputs=SITE),
    "content range": Field(plant=header("download", "Content-Range", status=206), inputs=SITE),
    "error of the storage": Field(plant=storage_error, inputs=SITE),
    "name of a file": Field(plant=archive_with("{}"), inputs=SITE),
    "name of a file that is refused": Field(plant=archive_with("../{}"), inputs=SITE),
    "target of a link": Field(plant=archive_with("link", "{}"), inputs=SITE),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_text_of_a_server_is_shown_and_not_interpreted(action: Action, name: str) -> None:
    subject = FIELDS[name]
    for number, text in enumerate(TEXTS):
        action.workspace = action.workspace.parent / f"workspace-{number}"
        action.workspace.mkdir()
        platform = VirtualPlatform(VirtualClock())
        subject.plant(platform.simulator, text)

        ended = action.run(platform, **subject.inputs, timeout="30s", outage_tolerance="10s")

        check_commands(ended)
        check_lines(ended)
        check_page(ended)
        if subject.output and text.isprintable():
            assert ended.outputs[subject.output].strip() == text.strip()
        if "valuesFile" in ended.outputs:
            values = yaml.safe_load((action.workspace / "values.yaml").read_text())
            expected = {"enabled": True, "bundleUrl": ended.outputs["bundleUrl"]}
            assert values == {"staticExport": expected}


def check_commands(ended: Ended) -> None:
    """Check that there is an error if the run failed, and little else.

    Up to two warnings are allowed, and no other command.
    """
    names = Counter(command.name for command in ended.commands)
    assert names["error"] == ended.exit_code, ended.stdout
    assert names["warning"] <= 2, ended.stdout
    assert {*names} <= {"error", "warning"}, ended.stdout
    for command in ended.commands:
        assert commands_in(command.value) == []


def check_lines(ended: Ended) -> None:
    summary = ended.summary.removeprefix(WARNING_ICON)  # the action's own
    assert not UNSEEN.search(ended.stdout + summary)
    for line in lines_of(ended.stdout):
        assert len(line) < 20_000
        assert "##[" not in line


def check_page(ended: Ended) -> None:
    page = page_of(ended.summary)
    allowed = TAGS | {"a"} if "prLink" in ended.outputs else TAGS
    assert tags(page) <= allowed
    assert len(page.findall("h3")) == 1
