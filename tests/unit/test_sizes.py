"""How many bytes, as people read it."""

import pytest

from docs_platform_action.text import size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (0.4, "0 bytes"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1023.94 * 1024, "1023.9 KiB"),
        (1023.96 * 1024, "1.0 MiB"),
        (38.2 * 1024**2, "38.2 MiB"),
        (1024**3 - 1, "1.0 GiB"),
        (50 * 1024**3, "50.0 GiB"),
        (1024**4, "1.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_sizes_are_binary_with_one_decimal(count: float, text: str) -> None:
    assert size(count) == text
