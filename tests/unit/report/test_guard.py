"""The guard passes every event on as it is."""

import inspect
from types import FunctionType
from unittest.mock import Mock

import pytest

from docs_platform_action.events import Listener
from docs_platform_action.report.guard import GuardedListener
from tests.unit.report.test_console import Log

METHODS = [method for name, method in vars(Listener).items() if not name.startswith("_")]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_each_argument_is_passed_on(method: FunctionType) -> None:
    listener = Mock()
    guarded = GuardedListener(listener, Log().console)
    given = []
    named = {}
    for name, parameter in inspect.signature(method).parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = object()
        else:
            given.append(object())

    getattr(guarded, method.__name__)(*given, **named)

    getattr(listener, method.__name__).assert_called_once_with(*given, **named)
    assert len(listener.mock_calls) == 1
