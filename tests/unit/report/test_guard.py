"""The guard passes every event on as it is."""

import inspect
from unittest.mock import Mock

import pytest

from docs_platform_action.events import Events
from docs_platform_action.report.guard import GuardedEvents
from tests.unit.report.test_console import Log

METHODS = [method for name, method in vars(Events).items() if not name.startswith("_")]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_each_argument_is_passed_on(method: object) -> None:
    listener, name = Mock(), method.__name__  # type: ignore[attr-defined]
    parameters = [*inspect.signature(method).parameters.values()][1:]  # type: ignore[arg-type]
    given = [object() for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    named = {
        parameter.name: object()
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY
    }

    getattr(GuardedEvents(listener, Log().console), name)(*given, **named)

    getattr(listener, name).assert_called_once_with(*given, **named)
    assert len(listener.mock_calls) == 1
