"""Targets of fuzzing, how many examples each gets, and the way to declare one.

Every run of the tests tries the same examples. `FUZZ_EXAMPLES`, which `make fuzz` sets, asks for so many random ones instead.
"""

import functools
import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES: Final[Mapping[str, int]] = {
    "inputs": 250,
    "inputs wrong together": 120,
    "inputs read back": 100,
    "certificate files": 200,
    "durations as documented": 300,
    "durations altered": 300,
    "answers as bytes": 500,
    "answers as values": 800,
    "answers to the transport": 300,
    "Retry-After": 800,
    "Retry-After as RFC 9110 has it": 300,
    "sites packed": 80,
    "archives damaged": 300,
    "hostile archives damaged": 300,
    "tar fields": 400,
    "zip fields": 400,
    "compressed streams": 150,
    "bombs": 40,
    "noise": 200,
    "links in archives": 100,
    "values files": 200,
    "links to bundles": 500,
    "redirects": 400,
    "whole runs": 60,
}
"""How many examples each target gets in every run of the tests."""

BY_HAND: Final = int(os.environ.get("FUZZ_EXAMPLES") or 0)
"""How many each gets instead, when a person goes exploring."""

SLOW: Final = {"whole runs": 20, "bombs": 20}
"""Targets whose examples take so many times as long as others'; by hand they get as many fewer."""

tried: Counter[str] = Counter()
"""How many examples of each target have been tried so far, those included that were found to say nothing."""


def fuzz(target: str, **strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of a target: it gets examples of each strategy, as many as the table says."""
    count = EXAMPLES[target]
    if BY_HAND:
        count = max(BY_HAND // SLOW.get(target, 1), 1)
    random: dict[str, Any] = {"derandomize": False} if BY_HAND else {"derandomize": True, "database": None}
    effort = settings(
        max_examples=count,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        **random,
    )

    def declare(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def counted(*args: Any, **kwargs: Any) -> None:
            tried[target] += 1
            test(*args, **kwargs)

        return effort(given(**strategies)(counted))

    return declare
