"""Keeps the garbage collector out of calls that reach the recursion limit."""

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def without_collection(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that no garbage is collected while it runs.

    Parsing deeply nested JSON reaches the recursion limit. Up to Python 3.11, a collection may run there, and the finalizers of
    objects that earlier tests left fail: pytest then fails the test that happens to run. Since Python 3.12, collections run only
    between bytecodes (source: What's New In Python 3.12).
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if was_enabled:
                gc.enable()

    return wrapped
