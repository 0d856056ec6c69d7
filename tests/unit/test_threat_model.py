"""docs/threat-model.md names a test for each threat, and its numbers and variables are those of the code."""

import ast
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from admin_api_simulator.runner import runner_environment
from docs_platform_action import redaction, text
from docs_platform_action.api import client as api_client
from docs_platform_action.archive import codecs, limits, symlinks, tar
from docs_platform_action.bundle import download, staging, storage
from docs_platform_action.http import client, connection, rate_limit, response
from docs_platform_action.main import run
from docs_platform_action.report import signed_links
from tests.inside import Uninterrupted
from tests.keys import ADMIN_KEY
from tests.virtual_time import VirtualClock

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threat-model.md").read_text("utf-8")
FLOWING = " ".join(PAGE.split())
THREATS = PAGE.partition("\n## Threats\n")[2]
HEAD = "| threat | what the action does | limit | tests |"
LINK = re.compile(r"\[`([\w:]+)`\]\(\.\./(tests/[\w/.-]+\.py)\)")
"""A test: its name, as pytest writes it after the file, and a link to its file."""


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


class TestThreats:
    def test_every_row_has_four_cells(self) -> None:
        assert len(rows()) > 50
        assert [row[0] for row in rows() if len(row) != 4 or not all(row)] == []

    @pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
    def test_each_row_names_tests_or_the_reason_that_there_are_none(self, row: list[str]) -> None:
        assert bool(LINK.search(row[-1])) != row[-1].startswith("No test: ")
        assert LINK.sub("", row[-1]).replace("<br>", "") == "" or not LINK.search(row[-1])

    @pytest.mark.parametrize("file", sorted({file for _, file in LINK.findall(THREATS)}))
    def test_the_named_tests_exist(self, file: str) -> None:
        named = {name for name, of in LINK.findall(THREATS) if of == file}

        assert named <= {*names_of_tests(ROOT / file)}


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

    exit_code = run(environment, io.TextIOWrapper(io.BytesIO(), "utf-8"), Uninterrupted(), clock=VirtualClock(real_rate=1.0))

    (names,) = re.findall(r"The action reads its own `INPUT_…` variables, (.*?), and the proxy variables", FLOWING)
    assert "It lists the names of all variables, to warn about misspelled inputs, and reads no other value." in FLOWING
    declared = {f"INPUT_{name.upper()}" for name in given}
    assert exit_code == 1
    assert {name for name in environment.read_names if name not in declared} == {*re.findall(r"`(\w+)`", names)}


@pytest.mark.parametrize(
    ("holds", "quote"),
    [
        (api_client.MAX_RESPONSE_BYTES == 2**20, "each response of the API to 60 s and 1 MiB,"),
        (client.Timeouts().total_seconds == 60, "each response of the API to 60 s and 1 MiB,"),
        (response.MAX_HEAD_BYTES == 64 * 1024, "in every phase, and the head to 64 KiB."),
        (
            response.MAX_HEAD_BYTES == 64 * 1024,
            "Extensions of chunks and trailers together may have 64 KiB more than the content.",
        ),
        (api_client.MAX_RESPONSE_BYTES == 2**20, "Stops at 1 MiB, counted before and after decompression."),
        (response.MAX_INTERIM_RESPONSES == 100, "Treats more than 100 of them as a network error."),
        (connection.create_ssl_context(None).minimum_version.name == "TLSv1_2", "The minimum is TLS 1.2."),
        (rate_limit.REQUESTS_PER_SECOND == 10, "at most 10 requests per second"),
        (storage.MAX_REDIRECTS == 5, "at most 5 redirects"),
        (storage.IDLE_SECONDS == 30, "if it receives nothing for 30 s"),
        ((storage.MIN_BYTES_PER_SECOND, storage.SLOW_SECONDS) == (1024, 60), "less than 1 KiB per second over 60 s"),
        (download.MAX_BUNDLE_BYTES == 50 * 2**30, "A bundle of unknown length ends at 50 GiB."),
        (limits.MAX_ENTRIES == 250_000, "at most 250,000 files and folders, 20 GiB,"),
        (limits.MAX_UNPACKED_BYTES == 20 * 2**30, "at most 250,000 files and folders, 20 GiB,"),
        (limits.MAX_UNPACKED_BYTES == 20 * 2**30, "up to 20 GiB of the disk"),
        (
            limits.MAX_RESERVED_BYTES == 2**30,
            "Unpacking stops before it leaves less than 10 % of the disk or 1 GiB free, whichever is smaller.",
        ),
        (codecs.XZ_MEMORY_BYTES == 80 * 2**20, "xz data may need a dictionary of 64 MiB,"),
        (tar.MAX_EXTENSION_BYTES == 2**20, "may hold 1 MiB and 1,000 records for each entry,"),
        (tar.MAX_RECORDS == 1000, "may hold 1 MiB and 1,000 records for each entry,"),
        (tar.MAX_TOTAL_RECORDS == 5_000_000, "5,000,000 records in total."),
        (symlinks.MAX_LINKS == 10_000, "10,000 symbolic links"),
        (codecs.MAX_STREAMS == 1_000_000, "1,000,000 compressed streams in a row"),
        ((staging.FILE_MODE, staging.FOLDER_MODE) == (0o644, 0o755), "Files with mode 0644 and folders with mode 0755"),
        (staging.ABANDONED_SECONDS == 24 * 3600, "The next run with the same result removes those that are older than a day."),
        (text.MAX_FOREIGN_TEXT_LENGTH == 1000, "Cuts lines at 1,000 characters."),
        (redaction.MIN_RUN_LENGTH == 16, "Of a signature that is truncated to 16 or more characters, fewer than 16 are shown"),
        (signed_links.MIN_RANDOM_SECRET_LENGTH == 16, "only if its value looks random and has 16 characters or more."),
        (
            redaction.MIN_SECRET_LENGTH == 8,
            "Values of fewer than 8 characters are hidden only after the name of their parameter.",
        ),
        (redaction.MIN_RUN_LENGTH == 16, "it finds any 16 consecutive characters."),
        (redaction.MIN_SECRET_LENGTH == 8, "The action recognizes keys of 8 or more characters."),
        (redaction.MIN_SECRET_LENGTH == 8, "A key of fewer than 8 characters is not searched for in responses."),
        (redaction.MIN_SECRET_LENGTH == 8, "The action finds keys of 8 or more characters: unchanged or in another case,"),
    ],
)
def test_the_numbers_of_the_page_are_those_of_the_code(holds: bool, quote: str) -> None:
    assert holds
    assert quote in FLOWING


def test_the_page_names_the_base_image() -> None:
    used = {*re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"))}

    assert used == {*re.findall(r"`(python:[^`]+)` by tag, not by digest", FLOWING)}
