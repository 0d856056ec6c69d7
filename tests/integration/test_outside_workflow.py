"""A run outside a workflow, where no runner reads commands or files."""

import json
import re
import signal
from pathlib import Path

import pytest

from admin_api_simulator import Fault, Simulator
from tests.action import Action
from tests.ended import Ended
from tests.keys import ADMIN_KEY
from tests.shells import SHELLS, source

NO_RUNNER = {"GITHUB_ACTIONS": None, "GITHUB_OUTPUT": None, "GITHUB_STEP_SUMMARY": None, "CI": None}
TO_FILE = {**NO_RUNNER, "OUTPUT_ENV_FILE": "outputs.env"}


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
    assert re.search(r"^Error: Export of failing\.example\.com: .+\n  .+", ended.stdout, re.MULTILINE)
    assert printed_outputs(ended)["failureReason"] == "job-failed"


@pytest.mark.parametrize("text", ["::error::stolen", "##[error]stolen", "\x1b[31mred", "a\n::error::stolen"])
def test_foreign_text_is_harmless(action: Action, platform: Simulator, text: str) -> None:
    platform.script_forever("read_export", Fault(json={"status": f"x{text}", "error": text}))

    ended = action.run(platform, mode="collect", job_id="export-finished", timeout="1ms", env=NO_RUNNER)

    assert printed_outputs(ended)["failureReason"] == "timeout"
    assert not any(line.lstrip().startswith("::") for line in ended.stdout.splitlines())
    assert "\x1b" not in ended.stdout


def test_a_runner_without_an_output_file_still_gets_commands(action: Action, platform: Simulator) -> None:
    action.set_constants(api__admin_api__SETTLING_SECONDS=0.0)

    ended = action.run(platform, mode="collect", job_id="nowhere", env={"GITHUB_OUTPUT": None})

    assert (ended.exit_code, len(ended.errors)) == (1, 1)
    assert printed_outputs(ended)["failureReason"] == "not-found"


class TestEnvFile:
    @pytest.fixture
    def file(self, action: Action) -> Path:
        return action.workspace / "outputs.env"

    @pytest.mark.parametrize("shell", SHELLS)
    def test_a_shell_gets_the_printed_outputs(self, action: Action, platform: Simulator, file: Path, shell: str) -> None:
        ended = action.export(platform, env=TO_FILE, site_path="site")

        assert (ended.exit_code, ended.outputs) == (0, {})
        found = source(file, shell)
        assert found == printed_outputs(ended)
        assert (found["status"], found["sitePath"], json.loads(found["results"])[0]["jobId"]) == (
            "completed",
            "site",
            found["jobId"],
        )

    @pytest.mark.parametrize("inputs", [{"timeout": "never"}, {"mode": "collect", "job_id": "nowhere"}])
    def test_no_value_of_an_earlier_run_is_left(
        self, action: Action, platform: Simulator, file: Path, inputs: dict[str, str]
    ) -> None:
        action.export(platform, env=TO_FILE)
        assert "bundleUrl" in source(file)

        ended = action.export(platform, env=TO_FILE, **inputs)

        assert ended.exit_code == 1
        assert source(file) == printed_outputs(ended)

    def test_a_cancelled_run_writes_what_it_knows(self, action: Action, platform: Simulator, file: Path) -> None:
        platform.override("read_export", {"status": "running"})

        with action.start(platform, domain="docs.example.com", env=TO_FILE) as running:
            running.wait_for("  running")
            running.signal(signal.SIGTERM)
            ended = running.wait()

        found = source(file)
        assert ended.exit_code == 143
        assert (found["status"], found["failureReason"]) == ("running", "cancelled")
        assert found == printed_outputs(ended)

    @pytest.mark.parametrize("name", ["bundle_path", "values_file", "site_path"])
    def test_it_must_not_be_the_path_of_another_result(self, action: Action, platform: Simulator, file: Path, name: str) -> None:
        ended = action.export(platform, env=TO_FILE, **{name: "outputs.env"})

        assert (ended.exit_code, platform.requests) == (1, [])
        assert f"`{name.replace('_', '-')}`" in ended.stdout
        assert source(file)["failureReason"] == "invalid-input"

    def test_in_a_workflow_its_path_is_free(self, action: Action, platform: Simulator) -> None:
        ended = action.export(platform, env={"OUTPUT_ENV_FILE": "outputs.env"}, bundle_path="outputs.env")

        assert (ended.exit_code, ended.outputs["bundlePath"]) == (0, "outputs.env")

    @pytest.mark.parametrize("place", [".", "missing/outputs.env", "/proc/nowhere/outputs.env"])
    def test_one_that_cannot_be_written_fails_the_run_before_any_request(
        self, action: Action, platform: Simulator, place: str
    ) -> None:
        ended = action.export(platform, env={**NO_RUNNER, "OUTPUT_ENV_FILE": place})

        assert (ended.exit_code, platform.requests) == (1, [])
        assert printed_outputs(ended)["failureReason"] == "invalid-input"
