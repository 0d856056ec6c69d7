"""A simulated platform, and the action to run against it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator import Simulator
from admin_api_simulator.contract import check_requests
from tests.action import Action
from tests.forms import BY_DOMAIN
from tests.keys import ADMIN_KEY


@pytest.fixture
def make_platform() -> Iterator[Callable[..., Simulator]]:
    """Return a function that starts a simulated platform.

    Its requests are checked against the API description in the end.
    """
    defaults = {"key": ADMIN_KEY, "export_seconds": 0.1, "agent_seconds": 0.1, "pages": 12}
    with ExitStack() as stack:
        platforms = []

        def make(**options: Any) -> Simulator:
            platform = stack.enter_context(Simulator(**{**defaults, **options}))
            platforms.append(platform)
            return platform

        yield make
        for platform in platforms:
            check_requests(platform.requests)


@pytest.fixture
def platform(make_platform: Callable[..., Simulator]) -> Simulator:
    return make_platform()


@pytest.fixture
def form() -> str:
    """Return the form of the export API that `action` uses."""
    return BY_DOMAIN


@pytest.fixture
def action(tmp_path: Path, form: str) -> Action:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    action = Action(workspace)
    action.form = form
    return action
