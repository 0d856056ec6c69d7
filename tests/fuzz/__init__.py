"""The decorator of the fuzz tests.

Every run uses the same examples, or `FUZZ_EXAMPLES` random ones (`make fuzz`).
"""

import os
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RANDOM_EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES") or 0)


def fuzz(
    examples: int, **strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test with so many examples."""
    options: dict[str, Any] = {"derandomize": False}
    if not RANDOM_EXAMPLES:
        options = {"derandomize": True, "database": None}
    effort = settings(
        max_examples=RANDOM_EXAMPLES or examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.function_scoped_fixture,
        ],
        **options,
    )

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        fuzzed: Callable[..., None] = effort(given(**strategies)(test))
        # other tests reach the same lines
        return pytest.mark.no_cover(fuzzed)

    return decorate
