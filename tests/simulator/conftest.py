"""A running simulator for each test."""

from collections.abc import Iterator

import pytest

from admin_api_simulator import Simulator


@pytest.fixture
def platform() -> Iterator[Simulator]:
    with Simulator(export_seconds=0.2, agent_seconds=0.1) as running:
        yield running
