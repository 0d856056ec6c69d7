"""The settings of a job that a test asks nothing particular of, and the run of its steps."""

from typing import Any, Final

from docs_platform_action.context import Context
from docs_platform_action.inputs.settings import PlatformSettings, WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.task import Task
from tests.keys import ADMIN_KEY

PLATFORM: Final = PlatformSettings(
    base_url="https://api.example.com",
    admin_key=ADMIN_KEY,
    outage_tolerance_seconds=300.0,
)
WAITING: Final = WaitSettings(
    timeout_seconds=600, poll_interval_seconds=1, max_poll_interval_seconds=1
)


def run_steps(task: Task[Any, Any], context: Context) -> Job:
    """Run the steps of a task in their order, and return its job."""
    for step in task.steps:
        step(task.job, task.settings, context)
    return task.job
