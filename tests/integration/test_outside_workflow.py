"""A run outside a workflow, where no runner reads commands or files."""

import pytest

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.ended import Ended
from tests.keys import ADMIN_KEY

NO_RUNNER = {"GITHUB_ACTIONS": None, "GITHUB_OUTPUT": None, "GITHUB_STEP_SUMMARY": None, "CI": None}


def printed_outputs(ended: Ended) -> dict[str, str]:
    lines = [line for line in ended.stdout.splitlines() if not line.startswith(" ")]
    return {name: value for name, equals, value in (line.partition("=") for line in lines) if equals}


def test_outputs_are_printed(action: Action, platform: Simulator) -> None:
    ended = action.export(platform, env=NO_RUNNER)

    assert (ended.exit_code, ended.outputs, ended.summary) == (0, {}, "")
    outputs = printed_outputs(ended)
    assert outputs.keys() == {"jobId", "status", "pageCount", "bundleUrl", "expiresAt", "durationSeconds", "results"}
    assert outputs["status"] == "completed"
    assert outputs["bundleUrl"].startswith(platform.storage_url)


def test_the_key_is_not_printed_for_masking(action: Action, platform: Simulator) -> None:
    ended = action.export(platform, env=NO_RUNNER)

    assert ADMIN_KEY not in ended.stdout
    assert "::" not in ended.stdout.replace(printed_outputs(ended)["results"], "")


def test_a_failure_is_printed_as_plain_text(action: Action, platform: Simulator) -> None:
    ended = action.export(platform, domain="failing.example.com", env=NO_RUNNER)

    assert ended.exit_code == 1
    assert "Error: Export of failing.example.com: the export failed at the platform\n  The API at " in ended.stdout
    assert printed_outputs(ended)["failureReason"] == "job-failed"


def test_debug_lines_are_not_commands(action: Action, platform: Simulator) -> None:
    action.debug = True

    ended = action.run(platform, job_id="export-finished", env=NO_RUNNER)

    assert "debug: GET /v1/static-export/jobs/export-finished: 200, " in ended.stdout
    assert ended.commands == []


@pytest.mark.parametrize("text", ["::error::stolen", "##[error]stolen", "\x1b[31mred", "a\n::error::stolen"])
def test_foreign_text_is_harmless(action: Action, platform: Simulator, text: str) -> None:
    platform.script_forever("read_export", Fault(json={"status": f"x{text}", "error": text}))

    ended = action.run(platform, job_id="export-finished", timeout="1ms", env=NO_RUNNER)

    assert printed_outputs(ended)["failureReason"] == "timeout"
    assert not any(line.lstrip().startswith("::") for line in ended.stdout.splitlines())
    assert "\x1b" not in ended.stdout


def test_a_runner_without_an_output_file_still_gets_commands(action: Action, platform: Simulator) -> None:
    ended = action.run(platform, job_id="nowhere", env={"GITHUB_OUTPUT": None})

    assert (ended.exit_code, len(ended.errors)) == (1, 1)
    assert printed_outputs(ended)["failureReason"] == "not-found"
