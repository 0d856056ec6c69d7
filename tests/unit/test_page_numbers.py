"""The limits that pages promise are those of the code. Each row has enough words around its number to stand on the page once."""

import re
from pathlib import Path

import pytest

from docs_platform_action.api.client import MAX_RESPONSE_BYTES
from docs_platform_action.bundle.archive import (
    MAX_DIRECTORY_BYTES,
    MAX_ENTRIES,
    MAX_HEADER_BYTES,
    MAX_UNPACKED_BYTES,
    XZ_MEMORY_BYTES,
)
from docs_platform_action.bundle.storage import MAX_REDIRECTS
from docs_platform_action.bundle.stream import MAX_BUNDLE_BYTES, MIN_PROGRESS_BYTES, SLOW_SECONDS
from docs_platform_action.bundle.tree import MAX_LINKS, MAX_SEEN
from docs_platform_action.http.pacing import GAP_SECONDS
from docs_platform_action.http.retry import MAX_PAUSE_SECONDS
from docs_platform_action.http.transport import Timeouts
from docs_platform_action.inputs.table import MAX_PARALLEL
from docs_platform_action.ownership import FILE_MODE, FOLDER_MODE
from docs_platform_action.report.failures import MAX_DETAILED_FAILURES
from docs_platform_action.text import MAX_FOREIGN_TEXT_LENGTH

ROOT = Path(__file__).parents[2]
KIB, MIB, GIB = 2**10, 2**20, 2**30


def flowing(page: str) -> str:
    return " ".join((ROOT / page).read_text("utf-8").split())


@pytest.mark.parametrize(
    ("promise", "pages"),
    [
        (f"at most {1 / GAP_SECONDS:g} requests per second", ["threat-model", "many-domains"]),
        (f"connect to one address of the host | {Timeouts().connect_seconds:g} s |", ["how-it-waits"]),
        (f"{Timeouts().total_seconds:g} s and {MAX_RESPONSE_BYTES // MIB} MiB", ["threat-model"]),
        (f"stays at {MAX_PAUSE_SECONDS:g} s", ["how-it-waits"]),
        (f"at most {MAX_REDIRECTS} redirects", ["threat-model"]),
        (f"less than {MIN_PROGRESS_BYTES // KIB} KiB in {SLOW_SECONDS:g} s", ["threat-model"]),
        (f"{MAX_HEADER_BYTES // MIB} MiB of headers", ["bundles"]),
        (f"more than {XZ_MEMORY_BYTES // MIB} MiB of memory", ["bundles"]),
        (f"zip archive of more than {MAX_DIRECTORY_BYTES // MIB} MiB", ["bundles"]),
        (f"the bundle may have at most {MAX_BUNDLE_BYTES // GIB} GiB", ["bundles"]),
        (f"{MAX_ENTRIES:,} files and folders", ["threat-model", "bundles"]),
        (f"{MAX_UNPACKED_BYTES // GIB} GiB unpacked", ["bundles"]),
        (f"{MAX_LINKS:,} symbolic links", ["threat-model", "bundles"]),
        (f"more than {MAX_SEEN:,} files and folders", ["bundles"]),
        (f"xz data may need {XZ_MEMORY_BYTES // MIB} MiB of memory", ["threat-model"]),
        (f"more than {XZ_MEMORY_BYTES // MIB} MiB of memory (`xz -9`", ["bundles"]),
        (f"more than {MAX_HEADER_BYTES // MIB} MiB of headers before an entry", ["bundles"]),
        (f"a directory of a zip archive of more than {MAX_DIRECTORY_BYTES // MIB} MiB", ["bundles"]),
        (f"the mode {FILE_MODE:04o}, and folders {FOLDER_MODE:04o}", ["bundles"]),
        (f"1 to {MAX_PARALLEL}", ["reference"]),
        (f"more than {MAX_DETAILED_FAILURES} domains fail", ["many-domains"]),
        (f"lines at {MAX_FOREIGN_TEXT_LENGTH:,} characters", ["threat-model"]),
    ],
)
def test_a_promised_limit_is_that_of_the_code(promise: str, pages: list[str]) -> None:
    assert {page: flowing(f"docs/{page}.md").count(promise) for page in pages} == dict.fromkeys(pages, 1)


@pytest.mark.parametrize("page", ["docs/threat-model.md", "docs/how-it-waits.md", "SECURITY.md"])
def test_the_base_image_is_that_of_the_dockerfile(page: str) -> None:
    used = {*re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text("utf-8"))}

    assert {*re.findall(r"`(python:[^`]+)`", flowing(page))} == used
