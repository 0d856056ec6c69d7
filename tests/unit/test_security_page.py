"""SECURITY.md names a test for each promise, its numbers are those of the code, and its examples follow its own advice."""

import ast
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from admin_api_simulator.runner import runner_environment
from docs_platform_action import redaction, text
from docs_platform_action.api import client as api_client
from docs_platform_action.archive import codecs, limits, symlinks
from docs_platform_action.bundle import download, staging, storage
from docs_platform_action.http import client, connection, rate_limit, response
from docs_platform_action.main import run
from docs_platform_action.report import console, signed_links
from tests.inside import QuickClock, Uninterrupted
from tests.keys import ADMIN_KEY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text("utf-8")
FLOWING = " ".join(PAGE.split())
README = (ROOT / "README.md").read_text("utf-8")
THREATS = PAGE.partition("\n## Threats\n")[2]
HEAD = "| threat | what the action does | where its limit is | held by |"
ZIZMOR = Path(sys.executable).with_name("zizmor")


def rows() -> list[list[str]]:
    """Return the cells of each row of the threat tables."""
    lines = [line for line in THREATS.splitlines() if line.startswith("|") and line != HEAD and set(line) - set("|- ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def names_of_tests(file: Path) -> Iterator[str]:
    """Return the tests of a file as pytest names them, without parameters."""
    for node in ast.parse(file.read_text("utf-8")).body:
        inner = node.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else [node]
        within = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        names = [found.name for found in inner if isinstance(found, ast.FunctionDef) and found.name.startswith("test_")]
        yield from (f"{within}{name}" for name in names)


def anchor(heading: str) -> str:
    """Return the anchor that GitHub makes for a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class TestThreats:
    def test_every_row_has_four_cells(self) -> None:
        assert len(rows()) > 50
        assert [row[0] for row in rows() if len(row) != 4 or not all(row)] == []

    @pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
    def test_each_row_names_tests_or_the_reason_that_there_are_none(self, row: list[str]) -> None:
        links = re.findall(r"\[`(tests/[^`]+)`\]\(([^)]+)\)", row[-1])

        assert bool(links) != row[-1].startswith("No test: ")
        assert [node for node, file in links if node.partition("::")[0] != file] == []
        assert re.sub(r"\[`[^`]+`\]\([^)]+\)", "", row[-1]).replace("<br>", "") == "" or not links

    @pytest.mark.parametrize("file", sorted({*re.findall(r"`(tests/[\w/.-]+\.py)::", THREATS)}))
    def test_the_named_tests_exist(self, file: str) -> None:
        named = {*re.findall(rf"`{re.escape(file)}::([\w:]+)`", THREATS)}

        assert named
        assert named <= {*names_of_tests(ROOT / file)}


class TestLinks:
    @pytest.mark.parametrize("target", sorted({*re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE)}))
    def test_files_exist(self, target: str) -> None:
        assert (ROOT / target).is_file()

    def test_sections_exist(self) -> None:
        headings = {anchor(found) for found in re.findall(r"^#+ (.+)$", PAGE, flags=re.MULTILINE)}

        assert {*re.findall(r"\]\(#([^)]+)\)", PAGE)} <= headings

    def test_the_readme_links_to_the_page_and_to_existing_sections(self) -> None:
        headings = {anchor(found) for found in re.findall(r"^#+ (.+)$", PAGE, flags=re.MULTILINE)}

        assert "](SECURITY.md)" in README
        assert {*re.findall(r"\]\(SECURITY\.md#([^)]+)\)", README)} <= headings
        assert "[security](#security)" in README
        assert "\n## Security\n" in README

    @pytest.mark.parametrize(
        "advice",
        [
            *("permissions: {}", "pull_request_target", "`mask-bundle-url", "`invalid-input`", "`env:`", "# v1"),
            *("`base-url`", "`jobId`", "verified", "expiresAt"),
        ],
    )
    def test_the_page_contains_the_advice_of_the_readme(self, advice: str) -> None:
        (section,) = re.findall(r"\n## Security\n(.*?)\n## ", README, flags=re.DOTALL)

        assert advice in section
        assert advice in PAGE


class TestSnippets:
    BLOCKS = tuple(re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL))

    def test_zizmor_finds_nothing(self, tmp_path: Path) -> None:
        assert self.BLOCKS
        workflows = tmp_path / ".github" / "workflows"
        workflows.mkdir(parents=True)
        for number, block in enumerate(self.BLOCKS):
            (workflows / f"{number}.yml").write_text(block)

        found = subprocess.run(
            [ZIZMOR, "--offline", "--color=never", "--no-progress", "--persona=pedantic", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )

        assert (found.returncode, found.stdout) == (0, "No findings to report. Good job!\n"), found.stdout + found.stderr

    def test_inputs_and_outputs_of_the_page_exist(self) -> None:
        action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
        steps = [step for block in self.BLOCKS for job in yaml.safe_load(block)["jobs"].values() for step in job["steps"]]
        inputs = {name for step in steps if "docs-platform-action@" in step.get("uses", "") for name in step["with"]}

        assert inputs
        assert inputs <= {*action["inputs"]}
        assert {*re.findall(r"steps\.docs\.outputs\.(\w+)", PAGE)} <= {*action["outputs"]}

    @pytest.mark.parametrize("block", re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL))
    def test_snippets_of_the_readme_use_no_expression_in_a_script_and_a_secret_as_key(self, block: str) -> None:
        scripts = [str(step["run"]) for step in steps_in(yaml.safe_load(block)) if "run" in step]
        keys = {step["with"]["admin-key"] for step in steps_in(yaml.safe_load(block)) if "admin-key" in step.get("with", {})}

        assert [script for script in scripts if "${{" in script] == []
        assert keys <= {"${{ secrets.DOCS_ADMIN_KEY }}"}


def steps_in(value: Any) -> list[dict[str, Any]]:
    """Return all steps in a part of a workflow."""
    if isinstance(value, dict):
        own = [value] if {"run", "uses"} & {*value} else []
        return own + [step for inner in value.values() for step in steps_in(inner)]
    return [step for inner in value for step in steps_in(inner)] if isinstance(value, list) else []


class RecordingEnvironment(dict[str, str]):
    """An environment that records which variables are read."""

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__(values)
        self.read_names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.read_names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> str:
        self.read_names.add(name)
        return super().__getitem__(name)

    def values(self) -> Any:
        raise AssertionError("the action must not read all values; it may list the names")

    items = values


@pytest.mark.parametrize("mode", ["export", "agent"])
def test_a_run_reads_only_the_variables_that_the_page_names(tmp_path: Path, mode: str) -> None:
    # nothing listens on the port, so the run is short
    inputs = {"mode": mode, "base-url": "http://127.0.0.1:9", "admin-key": ADMIN_KEY, "job-id": "j", "project-id": "p"}
    given = dict.fromkeys(yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"], "") | inputs
    (tmp_path / "workspace").mkdir()
    runners = runner_environment(inputs=given, folder=tmp_path, workspace=tmp_path / "workspace", debug=False)
    further = {"INPUT_DOMIAN": "docs.example.com", "ANOTHERS_SECRET": "s3cr3t"}
    environment = RecordingEnvironment(
        {**runners, **further, "GITHUB_OUTPUT": ""}
    )  # empty, so that the run also checks the other variables for a workflow

    exit_code = run(environment, io.TextIOWrapper(io.BytesIO(), "utf-8"), Uninterrupted(), clock=QuickClock())

    (names,) = re.findall(
        r"\*\*What it reads of the environment:\*\* its own `INPUT_…` variables, (.*?), and the proxies", FLOWING
    )
    assert "It lists the names of all variables, to warn of misspelt inputs, and reads no other value." in FLOWING
    declared = {f"INPUT_{name.upper()}" for name in given}
    assert exit_code == 1
    assert {name for name in environment.read_names if name not in declared} == {*re.findall(r"`(\w+)`", names)}


@pytest.mark.parametrize(
    ("holds", "quote"),
    [
        (api_client.MAX_RESPONSE_BYTES == 2**20, "has bounds, 60 s and 1 MiB,"),
        (client.Timeouts().total_seconds == 60, "has bounds, 60 s and 1 MiB,"),
        (api_client.MAX_RESPONSE_BYTES == 2**20, "It is ended at 1 MiB, counted unpacked."),
        (response.MAX_INTERIM_RESPONSES == 100, "After 100 of them it is a fault."),
        (connection.create_ssl_context(None).minimum_version.name == "TLSv1_2", "TLS 1.2 is the least."),
        (rate_limit.REQUESTS_PER_SECOND == 10, "At most 10 requests a second"),
        (storage.MAX_REDIRECTS == 5, "at most 5 redirects"),
        (storage.IDLE_SECONDS == 30, "brings nothing for 30 s"),
        ((storage.MIN_BYTES_PER_SECOND, storage.SLOW_SECONDS) == (1024, 60), "less than 1 KiB a second over 60 s"),
        (download.MAX_BUNDLE_BYTES == 50 * 2**30, "announces no length ends at 50 GiB"),
        (limits.MAX_ENTRIES == 250_000, "At most 250,000 files and folders"),
        (limits.MAX_UNPACKED_BYTES == 20 * 2**30, "files and folders, and 20 GiB."),
        (
            limits.MAX_RESERVED_BYTES == 2**30,
            "Unpacking stops while 10 % of the disk or 1 GiB, whichever is smaller, is still free",
        ),
        (codecs.LZMA_MEMORY_BYTES == 80 * 2**20, "80 MiB for xz"),
        (symlinks.MAX_LINKS == 10_000, "10,000 symbolic links"),
        (codecs.MAX_STREAMS == 1_000_000, "1,000,000 compressed streams in a row"),
        ((staging.FILE_MODE, staging.FOLDER_MODE) == (0o644, 0o755), "Files 0644, folders 0755"),
        (staging.ABANDONED_SECONDS == 24 * 3600, "the next run for the same result what is older than a day"),
        (text.MAX_FOREIGN_TEXT_LENGTH == 1000, "Lines are cut at 1,000 characters"),
        (signed_links.MIN_RANDOM_SECRET_LENGTH == 16, "when its value looks random and has 16 characters or more."),
        (signed_links.MIN_RANDOM_SECRET_LENGTH == 16, "if it looks random and has 16 characters or more."),
        (
            console.MIN_LONG_SECRET_LENGTH == 8,
            "Values of fewer than 8 characters are hidden only where they follow the parameter's name.",
        ),
        (redaction.MIN_RUN_LENGTH == 16, "any 16 characters in a row count as the key."),
        (redaction.MIN_SECRET_LENGTH == 8, "Told from 8 characters on;"),
        (redaction.MIN_SECRET_LENGTH == 8, "A key of fewer than 8 characters is not looked for in answers."),
        (redaction.MIN_SECRET_LENGTH == 8, "Looked for from 8 characters on: as it is, in base64 and hex"),
    ],
)
def test_the_numbers_of_the_page_are_those_of_the_code(holds: bool, quote: str) -> None:
    assert holds
    assert quote in FLOWING


def test_the_page_names_the_base_image() -> None:
    used = {*re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"))}

    assert used == {*re.findall(r"`(python:[^`]+)` by name, not by digest", FLOWING)}


def test_the_supported_release_is_the_one_in_the_readme() -> None:
    (supported,) = re.findall(r"\| the newest release of `(v\d+)` \| yes \|", PAGE)

    assert {*re.findall(r"OWNER/docs-platform-action@(v\d+)", README)} == {supported}
