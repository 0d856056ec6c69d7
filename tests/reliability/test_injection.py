"""No text from a server is interpreted: in every field the runner, the pages and the files treat it as text.

Each field that a server fills gets random hostile texts, made of line ends, command prefixes, markup and invisible characters.
Every run uses the same examples; `HYPOTHESIS_PROFILE=explore` uses many random ones.
"""

import io
import itertools
import json
import os
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import OPERATIONS
from docs_platform_action.job import Job
from docs_platform_action.models import MAX_TEXT_LENGTH, UNUSABLE, is_job_id
from docs_platform_action.report.console import MAX_JOB_OUTPUT_BYTES
from tests.commands import Command, commands_in, lines_of
from tests.ended import Ended
from tests.hostile import COMMANDS, HARMFUL, UNSEEN
from tests.inside import run_inside
from tests.keys import ADMIN_KEY
from tests.page.gfm import page_of

EXPLORING: Final = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
EXAMPLES: Final = 10
"""Texts per field in every run of the tests; one contains every hostile text, another is very long."""

LINK = "https://127.0.0.1:9/b.tar.gz"
FINISHED = {"domain": "", "mode": "collect", "job-id": "export-finished"}
AGENT = {"mode": "agent", "domain": "", "project-id": "demo-project", "job-id": "agent-pr"}
LONG = "x" * 1_000_000

Plant = Callable[[Simulator, str], None]


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field that a server fills: the function that puts a text into it, and the inputs of a run that reads it.

    `output` is the output that contains the text.
    """

    plant: Plant
    inputs: Mapping[str, str] = field(default_factory=lambda: FINISHED)
    output: str | None = None


def of_api(operation: str, body: Callable[[str], object], *, status: int = 200) -> Plant:
    """Return a function that puts a text into the API's JSON, also with lone surrogates."""

    def plant(platform: Simulator, text: str) -> None:
        answer = Fault(status=status, body=json.dumps(body(text)), headers={"Content-Type": "application/json"})
        platform.script_forever(operation, answer)  # type: ignore[arg-type]

    return plant


def of_header(
    operation: str, head: str, *, status: int = 200, reason: str = "Reason", body: str = "{}", once: bool = False
) -> Plant:
    """Return a function that puts a text without line ends into headers or a status line."""

    def plant(platform: Simulator, text: str) -> None:
        written = f"HTTP/1.1 {status} {reason}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{head}\r\n\r\n{body}"
        raw = written.replace("TEXT", text.replace("\n", " ")[:60_000]).encode("utf-8", "surrogatepass")
        if once:
            platform.script(operation, Fault(raw=raw))  # type: ignore[arg-type]
        else:
            platform.script_forever(operation, Fault(raw=raw))  # type: ignore[arg-type]

    return plant


def of_storage(body: str) -> Plant:
    """Return a function that puts a text into the storage's XML error."""

    def plant(platform: Simulator, text: str) -> None:
        content = body.replace("TEXT", text[:10_000]).encode("utf-8", "surrogatepass")
        platform.script_forever("download", Fault(status=451, body=content, headers={"Content-Type": "application/xml"}))

    return plant


def of_archive(member: Callable[[str], tarfile.TarInfo]) -> Plant:
    """Return a function that makes a bundle with a file or a link whose name or target is a text."""

    def plant(platform: Simulator, text: str) -> None:
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(member(text[:3_000].encode("utf-8", "replace").decode()))
        platform.put_bundle("export-finished", content.getvalue())

    return plant


def linked(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def started(platform: Simulator, text: str) -> None:
    """Start a job whose ID is a text, and complete it."""
    of_api("start_export", lambda value: {"jobId": value})(platform, text)
    of_api("read_export", lambda _value: {"status": "completed"})(platform, text)
    of_api("make_bundle", lambda _value: {"bundleUrl": LINK})(platform, text)


NEW = {"domain": "docs.example.com"}
VALUES = {**FINISHED, "values-file": "values.yaml"}
DOWNLOAD = {**FINISHED, "bundle-path": "b.tar.gz"}
SITE = {**FINISHED, "site-path": "site"}
REQUEST_IDS = ("X-Request-Id", "Request-Id", "X-Correlation-Id", "X-Amzn-RequestId", "X-Amz-Request-Id", "X-Goog-Request-Id")

TABLE: Final[Mapping[str, Field]] = {
    "jobId": Field(plant=started, inputs={**NEW, "values-file": "values.yaml"}, output="jobId"),
    "status of a start": Field(
        plant=of_api("start_export", lambda text: {"jobId": "se_1", "status": text}),
        inputs={**NEW, "wait": "false"},
        output="status",
    ),
    "status of an export": Field(plant=of_api("read_export", lambda text: {"status": text}), output="status"),
    "progress": Field(plant=of_api("read_export", lambda text: {"status": "running", "progress": text})),
    "pageCount": Field(plant=of_api("read_export", lambda text: {"status": "running", "pageCount": text})),
    "error of a failed job": Field(plant=of_api("read_export", lambda text: {"status": "failed", "error": text})),
    "error": Field(plant=of_api("start_export", lambda text: {"error": text}, status=422), inputs=NEW),
    "message": Field(plant=of_api("read_export", lambda text: {"message": text}, status=403)),
    "detail": Field(plant=of_api("read_export", lambda text: {"detail": text}, status=404)),
    "error.message": Field(plant=of_api("make_bundle", lambda text: {"error": {"message": text}}, status=401)),
    "error of an outage": Field(plant=of_api("read_export", lambda text: {"error": text}, status=503)),
    "names of members": Field(plant=of_api("read_export", lambda text: {text: text, "status": "running"})),
    "bundleUrl": Field(plant=of_api("make_bundle", lambda text: {"bundleUrl": text}), inputs=VALUES),
    "bundleUrl's host": Field(plant=of_api("make_bundle", lambda text: {"bundleUrl": f"https://{text}/b"}), inputs=VALUES),
    "bundleUrl's user": Field(
        plant=of_api("make_bundle", lambda text: {"bundleUrl": f"https://{text}@127.0.0.1/b"}), inputs=VALUES
    ),
    "bundleUrl's path": Field(plant=of_api("make_bundle", lambda text: {"bundleUrl": _url_with(text, "{}")}), inputs=VALUES),
    "bundleUrl's query": Field(plant=of_api("make_bundle", lambda text: {"bundleUrl": _url_with(text, "b?s={}")}), inputs=VALUES),
    "expiresAt": Field(plant=of_api("make_bundle", lambda text: {"bundleUrl": LINK, "expiresAt": text}), inputs=VALUES),
    "sizeBytes": Field(plant=of_api("make_bundle", lambda text: {"bundleUrl": LINK, "sizeBytes": text}), inputs=VALUES),
    "status of an agent job": Field(plant=of_api("read_agent_job", lambda text: {"status": text}), inputs=AGENT, output="status"),
    **{
        name: Field(
            plant=of_api("read_agent_job", lambda text, name=name: {"status": "completed", "source": {name: text}}),  # type: ignore[misc]
            inputs=AGENT,
        )
        for name in ("repository", "ref")
    },
    **{
        name: Field(
            plant=of_api("read_agent_job", lambda text, name=name: {"status": "archived", name: text}),  # type: ignore[misc]
            inputs=AGENT,
        )
        for name in ("model", "createdAt", "archivedAt", "prLink")
    },
    "prLink's path": Field(
        plant=of_api("read_agent_job", lambda text: {"status": "completed", "prLink": _url_with(text, "{}")}), inputs=AGENT
    ),
    **{f"{name} of the API": Field(plant=of_header("read_export", f"{name}: TEXT", status=401)) for name in REQUEST_IDS},
    "X-Ms-Request-Id of the storage": Field(plant=of_header("download", "X-Ms-Request-Id: TEXT", status=451), inputs=DOWNLOAD),
    "Content-Type of the API": Field(plant=of_header("start_export", "Content-Type: TEXT", body="no JSON"), inputs=NEW),
    "Location of the API": Field(plant=of_header("read_export", "Location: TEXT", status=302)),
    "Location's host": Field(plant=of_header("read_export", "Location: https://TEXT/", status=307)),
    "Location's path": Field(plant=of_header("read_export", "Location: /TEXT", status=308)),
    "Retry-After": Field(plant=of_header("read_export", "Retry-After: TEXT", status=503)),
    "reason phrase of the API": Field(plant=of_header("read_export", "X: y", status=418, reason="TEXT")),
    "status line": Field(plant=of_header("read_export", "X: y", reason="OK\rTEXT")),
    "name of a header": Field(plant=of_header("read_export", "TEXT: y", status=400)),
    "Content-Type of the storage": Field(plant=of_header("download", "Content-Type: TEXT", body="a page"), inputs=DOWNLOAD),
    "ETag": Field(plant=of_header("download", 'ETag: "TEXT"', body="a part", once=True), inputs=DOWNLOAD),
    "Content-Range": Field(plant=of_header("download", "Content-Range: TEXT", status=206), inputs=DOWNLOAD),
    "Location of the storage": Field(plant=of_header("download", "Location: TEXT", status=302), inputs=DOWNLOAD),
    "Location's host of the storage": Field(plant=of_header("download", "Location: http://TEXT/", status=302), inputs=DOWNLOAD),
    "reason phrase of the storage": Field(plant=of_header("download", "X: y", status=451, reason="TEXT"), inputs=DOWNLOAD),
    "Code of the storage": Field(plant=of_storage("<Error><Code>TEXT</Code></Error>"), inputs=DOWNLOAD),
    "Message of the storage": Field(plant=of_storage("<Code>x</Code><Message>TEXT</Message>"), inputs=DOWNLOAD),
    "name of a file": Field(plant=of_archive(tarfile.TarInfo), inputs=SITE),
    "name of a file that is refused": Field(plant=of_archive(lambda text: tarfile.TarInfo(f"../{text}")), inputs=SITE),
    "target of a symbolic link": Field(plant=of_archive(lambda text: linked("link", text, tarfile.SYMTYPE)), inputs=SITE),
    "target of a hard link": Field(plant=of_archive(lambda text: linked("link", text, tarfile.LNKTYPE)), inputs=SITE),
    "name of a link": Field(plant=of_archive(lambda text: linked(text, "../../x", tarfile.SYMTYPE)), inputs=SITE),
}
FIELDS: Final = tuple(TABLE)
"""The fields that a server has a say in."""

OUTPUTS: Final = {
    *("jobId", "status", "bundleUrl", "expiresAt", "pageCount", "bundlePath", "bundleSize", "bundleSha256", "sitePath"),
    *("valuesFile", "prLink", "results", "durationSeconds", "failureReason"),
}
TAGS: Final = {
    *("h3", "blockquote", "p", "strong", "code", "pre", "details", "summary", "b"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


TITLE: Final = re.compile("(Static export|Agent job) failed: [a-z-]+")


def _url_with(text: str, template: str) -> str:
    """Return a URL that contains a text without white space and control characters."""
    return "https://127.0.0.1:9/" + template.format(re.sub(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff]", "", text))


def split(text: str, between: str, at: int) -> str:
    """Insert invisible characters or a line end into a text."""
    at %= len(text) + 1
    return text[:at] + between + text[at:]


UNSEEN_BITS = ["\u200b", "\ufeff", "\xad", "\u034f", "\ufe0f", "\u202e", "\u2066", "\x00", "\x1b[0m", "\x07", "\ud800"]
ENDS = ["\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\t", " "]
BETWEEN = [*UNSEEN_BITS, *ENDS, ":", "#", "\\", "%0A", "%3A", "%250A", "&#58;", "\\u003a"]
BITS = [":", "::", "#", "##", "[", "##[", "]", "|", "`", "```", "<", ">", "</td>", "<<", "EOF", "=", '"', "'", "%", "\\", "\n"]
HOSTILE: Final = st.lists(
    st.one_of(
        st.sampled_from(HARMFUL),
        st.sampled_from(BITS),
        st.sampled_from(BETWEEN),
        st.builds(split, st.sampled_from(COMMANDS), st.sampled_from(BETWEEN), st.integers(0, 60)),
        st.text(max_size=6),
    ),
    min_size=1,
    max_size=16,
).map("".join)


@pytest.fixture(scope="module")
def platform() -> Iterator[Simulator]:
    with Simulator(key=ADMIN_KEY, export_seconds=0, agent_seconds=0, pages=2) as platform:
        yield platform


def assert_only_our_commands(ended: Ended) -> None:
    """Check that the runner executes only the run's own commands: a mask, justified warnings, an error if it failed."""
    found = commands_in(ended.stdout, ended.stderr)
    archived = ended.result["mode"] == "agent" and ended.result["status"] == "archived"
    too_large = len(ended.outputs["results"].encode("utf-16-le")) > MAX_JOB_OUTPUT_BYTES
    assert found[0] == Command(name="add-mask", value=ADMIN_KEY)
    expected = ["warning"] * (archived + too_large) + ["error"] * ended.exit_code
    unusable_links = [command for command in found if "its pull request cannot be used" in command.value]
    assert len(unusable_links) <= 1
    assert [command.name for command in found[1:] if command not in unusable_links] == expected
    for command in found[1:]:
        is_error = command.name == "error"
        assert {*command.properties} == ({"title"} if is_error else set())
        assert not is_error or TITLE.fullmatch(command.properties["title"])
        assert not commands_in(command.value)
        assert not UNSEEN.search(command.value)


def assert_plain(ended: Ended) -> None:
    """Check that the log's lines are short, without invisible characters and command prefixes."""
    assert ended.stderr == ""
    assert not UNSEEN.search(ended.stdout)
    for line in lines_of(ended.stdout):
        assert len(line) < 20_000
        assert "##[" not in line
        assert "::" not in line or line.startswith(("::error title=", "::warning::", "::add-mask::"))


def assert_literal(ended: Ended) -> None:
    """Check that the summary has only our own elements, and only a link to the pull request."""
    page = page_of(ended.summary)
    link = ended.outputs.get("prLink")
    assert page.tags() <= TAGS | ({"a"} if link else set())
    shortened = link is not None and len(link) > 500_000  # too long for the page
    row = ended.result
    known = [row["status"], row["pageCount"], row["jobId"] if row["domain"] is not None else None]
    has_table = any(value is not None for value in known) or int(ended.outputs["durationSeconds"]) > 0
    assert (len(page.all("h3")), len(page.tables())) == (1, 1 if has_table and not shortened else 0)
    assert [kind for kind, _ in page.alerts()] == (["CAUTION"] if ended.exit_code else [])
    assert len(page.all("a")) == (1 if link and not shortened else 0)
    assert {len(row) for table in page.tables() for row in table} <= {2}
    assert not UNSEEN.search(ended.summary)


def assert_whole(ended: Ended, workspace: Path) -> None:
    """Check that the outputs are our own, on one line each and equal to `results`, and that the values file has the link."""
    assert {*ended.outputs} <= OUTPUTS
    assert not [name for name, value in ended.outputs.items() if UNUSABLE.search(value)]
    (row,) = json.loads(ended.outputs["results"])
    assert tuple(row) == tuple(Job(mode=None).result(0.0))
    of_the_job = {name: value for name, value in ended.outputs.items() if name in row and name != "durationSeconds"}
    assert {name: str(row[name]) for name in of_the_job} == of_the_job
    assert {name: left for name, left in ended.left.items() if left} == {}
    if "valuesFile" in ended.outputs:
        text = (workspace / ended.outputs["valuesFile"]).read_text()
        expected = {"staticExport": {"enabled": True, "bundleUrl": ended.outputs["bundleUrl"]}}
        assert yaml.safe_load(text) == expected
        assert YAML(typ="safe", pure=True).load(text) == expected


Test = Callable[[str], None]


def with_hostile_texts(test: Test) -> Test:
    """Run a test with all texts of a field."""
    apply_settings = settings(
        max_examples=1000 if EXPLORING else EXAMPLES - 2,
        derandomize=not EXPLORING,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    with_all, with_long = example(text=" ".join(HARMFUL)), example(text=f"{COMMANDS[0]}{LONG}\r{COMMANDS[0]}")
    return apply_settings(with_all(with_long(given(text=HOSTILE)(test))))


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    """Return new workspaces."""

    def numbered() -> Iterator[Path]:
        for number in itertools.count():
            (tmp_path / str(number)).mkdir()
            yield tmp_path / str(number)

    return numbered()


def run_with(platform: Simulator, plant: Plant, text: str, inputs: Mapping[str, str], workspace: Path) -> Ended:
    """Run the action with a text in a field."""
    for operation in OPERATIONS:
        platform.script(operation)  # type: ignore[arg-type]
    plant(platform, text)
    common = {"base-url": platform.base_url, "admin-key": ADMIN_KEY, "timeout": "30s", "outage-tolerance": "10s"}
    return run_inside({**common, **inputs}, workspace=workspace)


@pytest.mark.parametrize("name", FIELDS)
def test_a_text_from_a_server_is_not_interpreted(name: str, platform: Simulator, folders: Iterator[Path]) -> None:
    subject = TABLE[name]

    @with_hostile_texts
    def try_text(text: str) -> None:
        workspace = next(folders)

        ended = run_with(platform, subject.plant, text, subject.inputs, workspace)

        assert_only_our_commands(ended)
        assert_plain(ended)
        assert_literal(ended)
        assert_whole(ended, workspace)
        read = text if subject.output == "jobId" else text.strip()
        if subject.output and is_job_id(read):
            assert ended.outputs[subject.output] == (read if subject.output == "jobId" else read[:MAX_TEXT_LENGTH])

    try_text()


SHOWN_DIFFERENTLY_IN_MANY: Final = (
    *("status of an export", "error of a failed job", "error", "error of an outage"),
    *("expiresAt", "Message of the storage"),
)
"""Fields that are shown differently with several domains: in log groups and table rows."""


@pytest.mark.parametrize("name", SHOWN_DIFFERENTLY_IN_MANY)
def test_a_text_is_not_interpreted_with_several_domains(name: str, platform: Simulator, folders: Iterator[Path]) -> None:
    inputs = {"domain": "a.example.com\nb.example.com", "bundle-path": "{domain}.tar.gz"}

    @with_hostile_texts
    def try_text(text: str) -> None:
        ended = run_with(platform, TABLE[name].plant, text, inputs, next(folders))

        rows = json.loads(ended.outputs["results"])
        names = [command.name for command in commands_in(ended.stdout, ended.stderr)]
        failed = [row for row in rows if row["failureReason"]]
        assert Counter(names) - Counter(warning=1) == Counter(
            {"add-mask": 1, "group": len(rows), "endgroup": len(rows), "error": len(failed)}
        )
        assert not UNSEEN.search(ended.stdout + ended.summary)
        assert "##[" not in ended.stdout
        assert page_of(ended.summary).tags() <= TAGS
        assert len(page_of(ended.summary).tables()[0]) == 1 + len(rows)
        assert {*ended.outputs} <= {"results", "durationSeconds", "failureReason"}

    try_text()
