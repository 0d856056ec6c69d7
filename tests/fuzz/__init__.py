"""Fuzz targets, the number of their examples, and the decorator for them.

Every run of the tests uses the same examples. With `FUZZ_EXAMPLES`, set by `make fuzz`, each target gets that many random ones.
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
    "inputs with underscores": 100,
    "misspelled names": 200,
    "certificate files": 200,
    "durations as documented": 300,
    "durations altered": 300,
    "answers as bytes": 500,
    "answers as values": 800,
    "answers to the transport": 300,
    "Retry-After": 800,
    "Retry-After as RFC 9110 has it": 300,
    "sites packed": 80,
    "streams": 60,
    "sites for other programs": 60,
    "archives altered": 600,
    "archives damaged": 200,
    "noise": 200,
    "links in archives": 400,
    "values files": 200,
    "links to bundles": 500,
    "redirects": 400,
    "whole runs": 60,
    "several domains": 300,
}
"""Examples of each target in every run of the tests."""

RANDOM_EXAMPLES: Final = int(os.environ.get("FUZZ_EXAMPLES") or 0)
"""Random examples of each target instead; 0 for the usual ones."""

SLOW: Final = {"whole runs": 20, "sites for other programs": 10, "several domains": 10}
"""Factors by which examples take longer, and by which a target gets fewer random ones."""

tried: Counter[str] = Counter()
"""Examples of each target tried so far, including discarded ones."""


def fuzz(target: str, **strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test with the examples of a target."""
    count = EXAMPLES[target]
    if RANDOM_EXAMPLES:
        count = max(RANDOM_EXAMPLES // SLOW.get(target, 1), 1)
    random: dict[str, Any] = {"derandomize": False} if RANDOM_EXAMPLES else {"derandomize": True, "database": None}
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
