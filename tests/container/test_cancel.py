"""Cancelling a workflow: the runner sends a signal to the container's first process, which is the action itself."""

from collections.abc import Iterator

import pytest

from admin_api_simulator import Simulator
from tests.container.runner import GRACE_SECONDS, Runner
from tests.keys import ADMIN_KEY

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def platform() -> Iterator[Simulator]:
    # jobs that outlast every test
    with Simulator(key=ADMIN_KEY, export_seconds=3600, agent_seconds=3600, host="127.0.0.1") as platform:
        yield platform


@pytest.mark.parametrize(("signal", "exit_code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_the_wait_and_keeps_known_outputs(runner: Runner, platform: Simulator, signal: str, exit_code: int) -> None:
    step = runner.start(waiting_export(platform))
    step.wait_for_log("job-id: ")

    processes, changes = step.processes(), step.changed_files()
    step.signal(signal)
    ended = step.wait(timeout_seconds=GRACE_SECONDS)

    assert ended.exit_code == exit_code, ended.log
    assert ended.outputs["failureReason"] == "cancelled"
    assert ended.outputs["status"] in ("queued", "running")
    assert f"job-id: {ended.outputs['jobId']}" in ended.log
    assert "Traceback" not in ended.log
    assert "/opt/action/entrypoint.py" in processes, "the list shows whole command lines"
    assert platform.key not in processes
    assert [change for change in changes if "/github" not in change] == [], "a run writes nothing into its container"


def waiting_export(platform: Simulator) -> dict[str, str]:
    # a pause that only a signal can end before the runner kills the container
    return {
        "base-url": platform.base_url,
        "admin-key": platform.key,
        "domain": "docs.example.com",
        "poll-interval": "30s",
        "timeout": "30m",
    }
