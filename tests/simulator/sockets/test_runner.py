"""Running entry points as the runner does."""

import json
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from admin_api_simulator.runner import OutputFileError, run_action, start_action


def entrypoint(folder: Path, code: str) -> Path:
    path = folder / "entrypoint.py"
    path.write_text(textwrap.dedent(code))
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def test_a_run_gets_its_inputs_and_the_runners_variables(tmp_path: Path, workspace: Path) -> None:
    script = entrypoint(tmp_path, "import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))")
    (tmp_path / "action.yml").write_text("inputs: {mode: {default: export}, job-id: {required: false}}")

    run = run_action({"base-url": "http://x"}, entrypoint=script, workspace=workspace, env={"EXTRA": "1"}, debug=True)

    env, cwd = json.loads(run.stdout)
    assert (env["INPUT_BASE-URL"], env["INPUT_MODE"], env["INPUT_JOB-ID"]) == ("http://x", "export", "")
    assert (env["CI"], env["GITHUB_ACTIONS"], env["RUNNER_DEBUG"], env["EXTRA"]) == ("true", "true", "1", "1")
    assert env["GITHUB_WORKSPACE"] == cwd == str(workspace)
    assert {"HOME", "PATH", "RUNNER_TEMP", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} <= set(env)
    assert not {"VIRTUAL_ENV", "PYTEST_CURRENT_TEST"} & set(env)


def test_without_debug_the_runner_says_nothing_of_it(tmp_path: Path, workspace: Path) -> None:
    script = entrypoint(tmp_path, "import os; print(os.environ.get('RUNNER_DEBUG'))")

    assert run_action({}, entrypoint=script, workspace=workspace).stdout == "None\n"


def test_a_run_is_collected(tmp_path: Path, workspace: Path) -> None:
    script = entrypoint(
        tmp_path,
        """
        import os, sys
        open(os.environ["GITHUB_OUTPUT"], "a").write("jobId<<X\\nse_1\\nX\\nstatus=completed\\n")
        open(os.environ["GITHUB_STEP_SUMMARY"], "a").write("# Done\\n")
        sys.stdout.buffer.write("one\\rstill one ü\\n".encode())
        print("two", file=sys.stderr)
        sys.exit(3)
        """,
    )
    lines: list[str] = []

    run = run_action({}, entrypoint=script, workspace=workspace, python=sys.executable, on_line=lines.append)

    assert run.exit_code == 3
    assert (run.stdout, run.stderr) == ("one\rstill one ü\n", "two\n")
    assert run.outputs == {"jobId": "se_1", "status": "completed"}
    assert run.summary == "# Done\n"
    assert sorted(lines) == ["one\rstill one ü", "two"]


def test_a_started_run_can_be_signalled(tmp_path: Path, workspace: Path) -> None:
    script = entrypoint(
        tmp_path,
        """
        import signal, sys
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        print("waiting", flush=True)
        sys.exit(128 + signal.sigwait([signal.SIGTERM]))
        """,
    )

    with start_action({}, entrypoint=script, workspace=workspace) as started:
        line = started.wait_for_line("wait")
        assert started.poll() is None
        started.send_signal(signal.SIGTERM)
        run = started.collect(timeout_seconds=20)

    assert (line, run.exit_code, run.stdout) == ("waiting", 143, "waiting\n")


def test_a_run_that_takes_too_long_is_killed(tmp_path: Path, workspace: Path) -> None:
    script = entrypoint(tmp_path, "import time; print('so far', flush=True); time.sleep(60)")

    with start_action({}, entrypoint=script, workspace=workspace) as started:
        started.wait_for_line("so far")
        with pytest.raises(TimeoutError, match="so far"):
            started.collect(timeout_seconds=0.01)

    assert started.poll() == -signal.SIGKILL


def test_a_line_that_never_comes_is_reported(tmp_path: Path, workspace: Path) -> None:
    ending = entrypoint(tmp_path, "print('something else')")

    with start_action({}, entrypoint=ending, workspace=workspace) as started, pytest.raises(EOFError, match="something"):
        started.wait_for_line("waiting")

    lasting = entrypoint(tmp_path, "import time; time.sleep(60)")

    with start_action({}, entrypoint=lasting, workspace=workspace) as started, pytest.raises(TimeoutError):
        started.wait_for_line("waiting", timeout_seconds=0.01)


def test_an_output_file_that_breaks_the_rules_fails_the_run(tmp_path: Path, workspace: Path) -> None:
    script = entrypoint(tmp_path, "import os; open(os.environ['GITHUB_OUTPUT'], 'a').write('a=1\\n\\nb=2\\n')")

    with pytest.raises(OutputFileError):
        run_action({}, entrypoint=script, workspace=workspace)
