"""Tests whose programs are missing are skipped, or fail where everything is required."""

from pathlib import Path

import pytest

from tests.fuzz.test_other_tools import test_no_tool_is_missing as need_other_tools
from tests.registry import need_registry_tools


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only folder on `PATH`, which is empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("REQUIRE_ENGINE", raising=False)
    return tmp_path


@pytest.mark.usefixtures("programs")
def test_a_skipped_test_names_each_missing_program() -> None:
    with pytest.raises(pytest.skip.Exception, match="needs docker-registry and skopeo"):
        need_registry_tools()


@pytest.mark.usefixtures("programs")
def test_tools_that_archives_are_compared_with_are_named() -> None:
    with pytest.raises(pytest.skip.Exception, match="not compared with 7-Zip and GNU tar and bsdtar and unzip"):
        need_other_tools()


def test_installed_programs_are_not_named(programs: Path) -> None:
    (programs / "docker-registry").touch(mode=0o755)

    with pytest.raises(pytest.skip.Exception, match="needs skopeo"):
        need_registry_tools()


@pytest.mark.usefixtures("programs")
def test_a_missing_program_is_a_failure_if_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUIRE_ENGINE", "1")

    with pytest.raises(pytest.fail.Exception, match="needs docker-registry and skopeo"):
        need_registry_tools()
