"""The demo with the action."""

import importlib.metadata
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from admin_api_simulator import demo
from admin_api_simulator.runner import ActionRun

LOCK = Path(__file__).parents[2] / "requirements" / "demo.txt"


def test_it_fits_on_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "DEPLOY_SECONDS", 0.0)
    monkeypatch.setattr(demo, "EXPORT_SECONDS", 0.3)
    monkeypatch.setattr(demo, "AGENT_SECONDS", 0.1)
    monkeypatch.setattr(demo, "POLL_INTERVAL", "100ms")
    out = io.StringIO()

    code = demo.main(out=out)

    lines = out.getvalue().splitlines()
    assert (code, (tmp_path / "demo" / "summary.html").exists()) == (0, True)
    assert 35 <= len(lines) <= 52
    assert max(len(line) for line in lines) <= 130
    for text in (
        "project-id: docs, domain: docs.example.com",
        "domain: docs.example.com",
        "serves 2222222",
        "Unpacked ",
        "Changes: pages: 3 added, 12 text changed, ",
        "failed: job-failed",
        "Error: ",
        '"failureReason": "job-failed"',
        "prLink = https://",
    ):
        assert text in out.getvalue()


@pytest.mark.parametrize(
    ("exit_code", "outputs", "expected"),
    [
        (1, {"failureReason": "job-failed", "results": "[]"}, True),
        (0, {"failureReason": "job-failed", "results": "[]"}, False),
        (1, {"failureReason": "timeout", "results": "[]"}, False),
        (1, {"failureReason": "job-failed"}, False),
    ],
)
def test_another_end_or_a_missing_output_is_unexpected(
    exit_code: int, outputs: dict[str, str], expected: bool
) -> None:
    (failing,) = (scene for scene in demo.SCENES if scene.failure_reason is not None)
    run = ActionRun(exit_code=exit_code, stdout="", stderr="", outputs=outputs, summary="")

    assert failing.ended_as_expected(run) == expected


def test_ctrl_c_ends_it_without_a_traceback_and_leaves_nothing(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        # a program that a shell starts in the background ignores SIGINT, and passes that on
        ["env", "--default-signal=INT", sys.executable, "-m", "admin_api_simulator.demo"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a terminal sends Ctrl-C to the whole group, also to the running action
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert any("started" in line for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()

    assert (process.returncode, errors) == (130, "")
    assert [*temporary.iterdir()] == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_it_needs_only_the_packages_of_its_lock_file() -> None:
    script = """
        import sys
        before = set(sys.modules)
        import admin_api_simulator.cli, admin_api_simulator.demo, docs_platform_action.main
        with admin_api_simulator.Simulator():
            pass
        print(*{name.partition(".")[0] for name in set(sys.modules) - before})
    """
    ended = subprocess.run(
        [sys.executable, "-I", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
    )

    packages = importlib.metadata.packages_distributions()
    used = set()
    for module in ended.stdout.split():
        for name in packages.get(module, ()):
            used.add(name.lower().replace("_", "-"))
    used.discard("docs-platform-action")
    locked = set(re.findall(r"^([\w.-]+)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    assert {"aiohttp", "cmarkgfm", "requests"} <= used
    assert used - locked == set()
