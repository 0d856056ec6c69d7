"""No garbage is collected at the recursion limit."""

import gc
import json

import pytest


def test_no_garbage_is_collected_while_json_is_parsed() -> None:
    phases: list[str] = []

    def record(phase: str, _info: dict[str, int]) -> None:
        phases.append(phase)

    gc.collect()
    gc.callbacks.append(record)
    try:
        json.loads("[" * 800 + "]" * 800)
        during = len(phases)
    finally:
        gc.callbacks.remove(record)

    assert during == 0


def test_garbage_is_collected_again_afterwards() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads("[")

    assert gc.isenabled()
