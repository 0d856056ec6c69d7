"""The demo: with the action, and with a minimal fake of it."""

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

LOCK = Path(__file__).parents[3] / "requirements" / "demo.txt"
STAND_IN = """
    import os

    mode = os.environ["INPUT_MODE"]
    several = "\\n" in os.environ.get("INPUT_DOMAIN", "")
    key = os.environ["INPUT_ADMIN-KEY"]
    outputs = {"export": {"status": "completed", "bundleUrl": "https://x/?" + "s" * 200, "sitePath": "site", "jobId": "se_1"},
               "agent": {"status": "completed", "prLink": "https://git/1"}}[mode]
    print("::add-mask::" + key)
    print("::debug::hidden")
    print("talking to", os.environ["INPUT_BASE-URL"], "with", key)
    if several:
        print("  0:01  a  running")
        print("  0:02  a  running")
        outputs = {"results": '[{"domain": "a", "jobId": "se_2", "sitePath": null}]', "failureReason": "job-failed"}
    if mode == os.environ.get("INPUT_BROKEN"):
        print("::error title=No::It is%0Abroken")
        raise SystemExit(1)
    for name, value in outputs.items():
        open(os.environ["GITHUB_OUTPUT"], "a").write(f"{name}={value}\\n")
    open(os.environ["GITHUB_STEP_SUMMARY"], "a").write("# Summary of " + mode)
    raise SystemExit(several)
"""


def play(tmp_path: Path, *, broken: str = "") -> tuple[int, str]:
    (tmp_path / "entrypoint.py").write_text(textwrap.dedent(STAND_IN))
    (tmp_path / "action.yml").write_text(f"inputs: {{mode: {{default: export}}, broken: {{default: '{broken}'}}}}")
    out = io.StringIO()
    code = demo.main(out=out, entrypoint=tmp_path / "entrypoint.py", page=tmp_path / "demo" / "summary.html")
    return code, out.getvalue()


def test_it_shows_inputs_log_and_outputs_of_every_run(tmp_path: Path) -> None:
    code, shown = play(tmp_path)

    assert code == 0
    for text in (
        "1. One domain (domain: docs.example.com, ",
        "2. Several domains, one fails (domain: docs.example.com\\nfailing.example.com\\napi.example.com, ",
        "project-id: demo-project",
        "with ***",
        "   Outputs: status = completed\n            bundleUrl = https://x/?sss",
        "            sitePath = site   (and 1 more)\n",
        '   Outputs: results = [{"domain": "a", …}]\n            failureReason = job-failed   (and 0 more)\n',
        "   … 2 more lines …\n",
        "prLink = https://git/1",
        "All runs ended as expected.",
        "make simulator",
    ):
        assert text in shown
    assert "add-mask" not in shown
    assert "hidden" not in shown
    assert "simulated-admin-key" not in shown


def test_it_writes_the_summaries_as_a_page(tmp_path: Path) -> None:
    _, shown = play(tmp_path)

    page = tmp_path / "demo" / "summary.html"
    html = page.read_text(encoding="utf-8")
    assert [html.count(f"<h1>Summary of {mode}</h1>") for mode in ("export", "agent")] == [2, 1]
    assert f": {page}\n" in shown


@pytest.mark.parametrize(
    ("broken", "unexpected"),
    [
        ("agent", ["3. An agent job: unexpected exit code 1"]),
        # the planned failure has another reason
        ("export", ["1. One domain: unexpected", "2. Several domains, one fails: unexpected"]),
    ],
)
def test_it_fails_when_a_run_does_not_end_as_expected(tmp_path: Path, broken: str, unexpected: list[str]) -> None:
    code, shown = play(tmp_path, broken=broken)

    assert code == 1
    assert "   Error: It is\n   broken\n" in shown
    assert "All runs ended as expected." not in shown
    assert [text for text in unexpected if text not in shown] == []


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "EXPORT_SECONDS", 0.3)
    monkeypatch.setattr(demo, "AGENT_SECONDS", 0.1)
    monkeypatch.setattr(demo, "POLL_INTERVAL", "100ms")


@pytest.mark.usefixtures("quick")
def test_with_the_action_it_fits_on_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()

    code = demo.main(out=out)

    lines = out.getvalue().splitlines()
    assert code == 0
    assert (tmp_path / "demo" / "summary.html").exists()
    assert 35 <= len(lines) <= 45
    assert max(map(len, lines)) <= 130
    for text in ("Unpacked ", "failed: job-failed", "Error: ", '"failureReason": "job-failed"', "prLink = https://"):
        assert text in out.getvalue()


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
        start_new_session=True,  # a terminal sends Ctrl-C to the whole group, also to the running action
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
    ended = subprocess.run([sys.executable, "-I", "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)

    packages = importlib.metadata.packages_distributions()
    used = {name.lower().replace("_", "-") for module in ended.stdout.split() for name in packages.get(module, ())} - {
        "docs-platform-action"
    }
    locked = set(re.findall(r"^([\w.-]+)==", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    assert {"aiohttp", "cmarkgfm", "requests"} <= used
    assert used - locked == set()
