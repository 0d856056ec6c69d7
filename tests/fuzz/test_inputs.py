"""Inputs: every environment gives settings within the contract, or an error.

The error names the invalid inputs.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
import trustme
from hypothesis import strategies as st

from docs_platform_action.errors import InvalidInput
from docs_platform_action.inputs.reader import Reader
from docs_platform_action.inputs.settings import (
    AgentSettings,
    CollectSettings,
    ExportSettings,
    PlatformSettings,
    SiteSettings,
    UnpackSettings,
    WaitSettings,
)
from docs_platform_action.inputs.table import DEFAULTS
from docs_platform_action.inputs.validators import MAX_DURATION_SECONDS
from docs_platform_action.main import MODES
from docs_platform_action.models import OutputPath
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_text
from tests.unit.inputs.test_validators import READ, REFUSED

KEY: Final = "K3Y-9Q27X1Z4W8V05J63"
"""A key whose parts do not occur in messages."""

Roots = tuple[Path, Path]
Settings = ExportSettings | CollectSettings | UnpackSettings | AgentSettings

EXPORT: Final = {
    "base-url": "https://api.example.com",
    "admin-key": KEY,
    "domain": "docs.example.com",
}
COLLECT: Final = {
    "mode": "collect",
    "base-url": "https://api.example.com",
    "admin-key": KEY,
    "job-id": "se_1",
}
AGENT: Final = {**COLLECT, "mode": "agent", "project-id": "prj_1"}

PATHS: Final = (
    "out/{domain}",
    "new/deeper/file.txt",
    "file.txt",
    "full",
    "empty",
    "full/held.html",
    "a//b/./c",
    "in/side",
    "circle/x",
    "out-of-here/etc/x",
    "pipe",
    "../beside",
    "/",
    "/etc/passwd",
    "{workspace}/new",
    "{temp}/new",
    "{temp}",
    "a/../b",
    "x" * 256,
    "x/" * 3000 + "x",
    "~/site",
    "$RUNNER_TEMP/x",
    "%TEMP%/x",
    ".\\site",
    "a~b",
    "100%",
)
OF_FILES: Final = {"bundle-path", "site-path", "values-file"}
CERTIFICATES: Final = (
    "ca.pem",
    "{workspace}/ca.pem",
    "full/held.html",
    "empty",
    "pipe",
    "missing.pem",
    "../ca.pem",
    "circle",
)


TABLE_ROWS: Final = {
    "project-id": "job-id",
    "export-version": "job-id",
    "mask-bundle-url": "wait",
    "require-pr": "wait",
}
"""Inputs whose values the unit tests have under the name of another input."""


def known_values(name: str) -> list[str]:
    """Return good and bad values of an input.

    They are those of the unit tests, and paths to what a workspace has.
    """
    row = TABLE_ROWS.get(name, name)
    if name.endswith(("interval", "tolerance")):
        row = "timeout"
    known: list[str] = []
    for input_name, texts in (*READ, *REFUSED):
        if input_name == row:
            known += [text for text in texts if len(text) < 1000]
    if name in OF_FILES:
        known += PATHS
    elif name == "ca-bundle":
        known += CERTIFICATES
    known.append(f"Bearer {KEY}")
    return known


VALUES: Final = {name: known_values(name) for name in DEFAULTS}
WITH_KEY: Final = (
    KEY,
    f"x{KEY}x",
    f"https://{KEY}.example.com/",
    f"https://me:{KEY}@example.com",
    f"a, {KEY}",
)


def values_for(name: str) -> st.SearchStrategy[str]:
    """Draw a value of an input: valid, mistaken, arbitrary, or one that contains the key."""
    known = st.sampled_from(VALUES[name])
    arbitrary = st.text(st.characters(), max_size=12)
    odd = st.one_of(mutated_text(known), arbitrary, st.sampled_from(HOSTILE_TEXTS))
    return st.one_of(known, known, odd, st.sampled_from(WITH_KEY))


changes = st.sampled_from([*DEFAULTS]).flatmap(
    lambda name: st.tuples(st.just(name), values_for(name))
)
changes_of_inputs = st.lists(changes, max_size=4).map(dict)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Roots]:
    """Create a workspace with obstacles, and the runner's temporary folder.

    Check in the end that reading has changed nothing.
    """
    home = tmp_path_factory.mktemp("runner")
    workspace = home / "workspace"
    temp = home / "temp"
    for folder in (workspace / "full", workspace / "empty", temp):
        folder.mkdir(parents=True)
    (workspace / "full" / "held.html").write_text("held")
    (workspace / "file.txt").write_text("file")
    trustme.CA().cert_pem.write_to_path(workspace / "ca.pem")
    (workspace / "in").symlink_to("empty")
    (workspace / "out-of-here").symlink_to("/")
    (workspace / "circle").symlink_to("circle")
    os.mkfifo(workspace / "pipe")
    before = sorted(home.rglob("*"))
    yield workspace, temp
    assert sorted(home.rglob("*")) == before


def read(inputs: Mapping[str, str], roots: Roots) -> Settings | list[str]:
    """Return the settings, or the lines of the error without the key."""
    workspace, temp = roots
    environment = {}
    for name, text in inputs.items():
        path = text.replace("{workspace}", str(workspace)).replace("{temp}", str(temp))
        environment[f"INPUT_{name.upper()}"] = path
    reader = Reader(environment, in_workflow=True)
    try:
        read_inputs = reader.read(roots=roots)
    except InvalidInput as error:
        return [error.summary, *error.details, error.cause, error.remedy]
    read: Settings = MODES[read_inputs.mode].read(read_inputs)
    return read


def check(settings: Settings, roots: Roots) -> None:
    """Check that settings are valid within the contract."""
    if isinstance(settings, UnpackSettings):
        check_targets([settings.bundle_path, settings.site_path], roots)
        return
    assert isinstance(settings, ExportSettings | CollectSettings | AgentSettings)
    check_platform(settings.platform)
    check_waiting(settings.waiting)
    if isinstance(settings, AgentSettings):
        return
    if isinstance(settings, CollectSettings):
        check_sites([settings.site], roots)
        return
    check_sites(settings.sites, roots)
    assert 1 <= settings.max_parallel <= 100
    json.dumps(settings.start_options, allow_nan=False)


def check_sites(sites: Sequence[SiteSettings], roots: Roots) -> None:
    domains = [site.domain for site in sites]
    for domain in domains:
        assert domain is None or re.fullmatch(r"[A-Za-z0-9_.-]+(:[0-9]+)?", domain)
    assert len({str(domain).lower() for domain in domains}) == len(domains)
    targets = []
    for site in sites:
        delivery = site.delivery
        targets += [delivery.bundle_path, delivery.site_path, delivery.values_file]
    check_targets([target for target in targets if target is not None], roots)


def check_platform(platform: PlatformSettings) -> None:
    parts = urlsplit(platform.base_url)
    assert re.fullmatch(r"[\x21-\x7e]+", platform.admin_key)
    assert 0 < platform.outage_tolerance_seconds <= MAX_DURATION_SECONDS
    if parts.scheme != "https" and parts.hostname != "localhost":
        assert ip_address(str(parts.hostname)).is_loopback
    assert parts.username is None
    assert parts.query == ""
    assert parts.fragment == ""
    assert not parts.path.endswith("/")


def check_waiting(waiting: WaitSettings) -> None:
    assert 0 < waiting.timeout_seconds <= MAX_DURATION_SECONDS
    assert 0 < waiting.poll_interval_seconds <= waiting.max_poll_interval_seconds
    assert waiting.max_poll_interval_seconds <= MAX_DURATION_SECONDS


def check_targets(targets: Sequence[OutputPath], roots: Roots) -> None:
    for number, target in enumerate(targets):
        assert target.root in [root.resolve() for root in roots]
        assert target.path == target.path.resolve()
        assert target.path.is_relative_to(target.root)
        for other in [*targets[:number], *targets[number + 1 :]]:
            assert not other.path.is_relative_to(target.path)


@fuzz(200, base=st.sampled_from([EXPORT, EXPORT, COLLECT, AGENT, {}]), changes=changes_of_inputs)
def test_any_inputs_give_settings_or_an_error_that_names_them(
    roots: Roots, base: dict[str, str], changes: dict[str, str]
) -> None:
    inputs = {**base, **changes}

    found = read(inputs, roots)

    if not isinstance(found, list):
        check(found, roots)
        return
    message = "\n".join(found)
    named = {*re.findall("`([a-z-]+)`", found[0])}
    assert named & {*DEFAULTS}
    assert len(message) < 20_000
    assert inputs.get("admin-key") != KEY or KEY not in message
