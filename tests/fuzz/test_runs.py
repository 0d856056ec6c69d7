"""Whole runs on a platform with arbitrary responses: each ends as the contract allows."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import example
from hypothesis import strategies as st

from admin_api_simulator import Fault, Simulator
from docs_platform_action.errors import ActionError
from tests.archives import HOSTILE, KINDS, SMALL_SITE
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_bytes
from tests.fuzz.test_answers import GOOD, contents, spelled, values
from tests.fuzz.test_retry_after import statuses
from tests.fuzz.test_retry_after import values as header_values
from tests.inside import run_inside
from tests.keys import ADMIN_KEY

REASONS: Final = {kind.failure_reason for kind in ActionError.__subclasses__()}
ENDS: Final = {*REASONS, None} - {"internal-error", "cancelled", "invalid-input", "no-pull-request"}

answered = st.builds(
    lambda good, other: spelled({**good, **other}, doubled=False, plain=True).encode("utf-8", "replace"),
    st.sampled_from(GOOD),
    st.dictionaries(
        st.sampled_from(["jobId", "status", "progress", "pageCount", "bundleUrl", "expiresAt", "error"]), values, max_size=2
    ),
)
odd = st.sampled_from([b"[]", b"null", b"1", b'"text"', b'{"error": ["x"]}', b'{"error": {"message": 1}}', b""])
headers = st.dictionaries(
    st.sampled_from(["Retry-After", "Date", "Location", "X-Request-Id", "Content-Type", "ETag"]),
    st.one_of(header_values, st.sampled_from(HOSTILE_TEXTS)).filter(lambda text: text.isprintable() and text.isascii()),
    max_size=2,
)
answers = st.one_of(
    st.none(),
    st.builds(lambda body, found: Fault(status=200, body=body, headers=found), answered | contents | odd, headers),
    st.builds(
        lambda status, body, found: Fault(status=status, body=body, headers=found),
        statuses.filter(lambda status: 200 <= status < 600),
        answered | contents | odd,
        headers,
    ),
)
archives = st.one_of(
    st.none(),
    st.builds(
        lambda body: Fault(status=200, body=body),
        mutated_bytes(st.sampled_from([KINDS["tar.gz"](SMALL_SITE), KINDS["zip"](SMALL_SITE)])),
    ),
    st.builds(
        lambda body: Fault(status=200, body=body), st.sampled_from([body for body, _ in HOSTILE.values() if len(body) < 20_000])
    ),
    answers,
)


@pytest.fixture(scope="module")
def platform() -> Iterator[Simulator]:
    with Simulator(key=ADMIN_KEY, export_seconds=0.0) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@fuzz(
    "whole runs",
    start=st.lists(answers, max_size=1),
    readings=st.lists(answers, max_size=3),
    bundles=st.lists(answers, max_size=2),
    downloads=st.lists(archives, max_size=2),
)
@example([], [], [], [])
@example([], [], [], [Fault(status=200, body=HOSTILE["tar that leads out"][0])])
@example([Fault(status=400, body=b"[]")], [], [], [])
@example([], [Fault(json={"status": "running", "pageCount": [], "progress": {}})], [], [])
def test_every_run_ends_as_the_contract_allows(
    platform: Simulator,
    workspace: Path,
    start: list[Any],
    readings: list[Any],
    bundles: list[Any],
    downloads: list[Any],
) -> None:
    for operation, turns in (
        ("start_export", start),
        ("read_export", readings),
        ("make_bundle", bundles),
        ("download", downloads),
    ):
        platform.script(operation, *turns)
    inputs = {
        "base-url": platform.base_url,
        "admin-key": ADMIN_KEY,
        "domain": "docs.example.com",
        "timeout": "120s",
        "outage-tolerance": "20s",
        "bundle-path": "bundle",
        "site-path": "site",
        "values-file": "values.yaml",
    }

    ended = run_inside(inputs, workspace=workspace)

    site = workspace / "site"
    assert ended.reason in ENDS
    assert ended.reason is None or any((start, readings, bundles, downloads))
    assert ended.exit_code == (0 if ended.reason is None else 1)
    assert len(ended.errors) == ended.exit_code
    assert "Traceback" not in ended.stdout
    assert len(json.loads(ended.outputs["results"])) == 1
    assert site.exists() == (ended.reason is None)
    for left in workspace.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
