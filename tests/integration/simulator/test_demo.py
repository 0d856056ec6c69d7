"""The demo, with a minimal fake of the action."""

import io
import textwrap
from pathlib import Path

from admin_api_simulator import demo

STAND_IN = """
    import os
    import urllib.request

    outputs = {"export": ("bundleUrl", "https://x/?sig"), "agent": ("prLink", "https://git/1")}
    mode = os.environ["INPUT_MODE"]
    several = "\\n" in os.environ.get("INPUT_DOMAIN", "")
    key = os.environ["INPUT_ADMIN-KEY"]
    print("::add-mask::" + key)
    print("::debug::hidden")
    print("talking to", os.environ["INPUT_BASE-URL"], "with", key)
    if mode == os.environ.get("INPUT_BROKEN"):
        print("::error title=No::It is%0Abroken")
        raise SystemExit(1)
    name, value = ("results", "[]") if several else outputs[mode]
    open(os.environ["GITHUB_OUTPUT"], "a").write(f"{name}={value}\\n")
    open(os.environ["GITHUB_STEP_SUMMARY"], "a").write("# Summary of " + mode)
"""


def play(tmp_path: Path, *, broken: str = "") -> tuple[int, str]:
    (tmp_path / "entrypoint.py").write_text(textwrap.dedent(STAND_IN))
    (tmp_path / "action.yml").write_text(f"inputs: {{mode: {{default: export}}, broken: {{default: '{broken}'}}}}")
    out = io.StringIO()
    return demo.main(["--entrypoint", str(tmp_path / "entrypoint.py")], out=out), out.getvalue()


def test_it_shows_step_log_outputs_and_summary_of_every_run(tmp_path: Path) -> None:
    code, shown = play(tmp_path)

    assert code == 0
    for text in (
        "uses: OWNER/docs-platform-action@v1",
        "${{ secrets.DOCS_ADMIN_KEY }}",
        "domain: docs.example.com",
        "project-id: demo-project",
        "with ***",
        "bundleUrl = https://x/?sig",
        "results = []",
        "partners.example.com",
        "prLink = https://git/1",
        "# Summary of export",
        "# Summary of agent",
        "All runs succeeded.",
    ):
        assert text in shown
    assert "add-mask" not in shown
    assert "hidden" not in shown
    assert "simulated-admin-key" not in shown


def test_it_fails_when_a_run_does_not_end_well(tmp_path: Path) -> None:
    code, shown = play(tmp_path, broken="agent")

    assert code == 1
    assert "Error: It is\n    broken\n" in shown
    assert "All runs succeeded." not in shown
    assert "Agent mode: wait for a job and its pull request: exit code 1, prLink None" in shown
