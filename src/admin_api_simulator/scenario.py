"""Faults from a JSON file.

For example: `{"read_export": [null, {"status": 503, "headers": {"Retry-After": "1"}}]}`.
Next to the operations, `domains` may be an object with such operations for single domains.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from admin_api_simulator.faults import CUTS, DOMAIN_OPERATIONS, FRAMINGS, OPERATIONS, Fault
from admin_api_simulator.simulator import Simulator

Scenario = Mapping[tuple[Any, str | None], tuple[Fault | None, ...]]
"""The planned turns of each operation and domain, None for all domains."""

DOMAINS: Final = "domains"
FIELDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "status": (int, "a status from 200 to 599"),
    "reason": (str, "text"),
    "headers": (dict, "an object of headers"),
    "body": (str, "text"),
    "json": (object, "JSON"),
    "delay_seconds": ((int, float), "a number of seconds"),
    "drip_seconds": ((int, float), "a number of seconds"),
    "cut": (str, f"one of {', '.join(CUTS)}"),
    "cut_after_bytes": (int, "a number of bytes"),
    "stall_after_bytes": (int, "a number of bytes"),
    "framing": (str, f"one of {', '.join(FRAMINGS)}"),
    "raw": (str, "text"),
    "processed": (bool, "true or false"),
}
"""The keys of a turn, with the type of their values and its name."""


class ScenarioError(ValueError):
    """The file cannot be read or is invalid; the message names the field."""


def apply_scenario(path: Path, simulator: Simulator) -> None:
    """Plan the turns of a file. Raises ScenarioError."""
    try:
        scenario = parse_scenario(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScenarioError(f"the scenario {path} is invalid or cannot be read: {error}") from error
    for (operation, domain), turns in scenario.items():
        simulator.script(operation, *turns, domain=domain)


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from JSON. Raises ValueError."""
    document = _object(json.loads(text), "it")
    domains = _object(document.pop(DOMAINS, {}), DOMAINS)
    scenario = dict(_turns(document, None, frozenset(OPERATIONS), ""))
    for domain, operations in domains.items():
        place = f"{DOMAINS}.{domain}"
        scenario |= _turns(_object(operations, place), domain, DOMAIN_OPERATIONS, f"{place}.")
    return scenario


def _turns(
    document: Mapping[str, object], domain: str | None, known: frozenset[str], prefix: str
) -> Scenario:
    turns = {}
    for operation, listed in document.items():
        place = f"{prefix}{operation}"
        if operation not in known:
            raise ScenarioError(f"unknown operation {place}; use one of {', '.join(sorted(known))}")
        if not isinstance(listed, list):
            raise ScenarioError(f"{place} must be a list with one entry per turn")
        turns[operation, domain] = tuple(
            _turn(entry, f"{place}[{number}]") for number, entry in enumerate(listed)
        )
    return turns


def _turn(entry: object, place: str) -> Fault | None:
    if entry is None:
        return None
    fields = _object(entry, place)
    for name, value in fields.items():
        if name not in FIELDS:
            raise ScenarioError(f"{place}.{name} is unknown; use one of {', '.join(FIELDS)}")
        kind, meaning = FIELDS[name]
        if not isinstance(value, kind):
            raise ScenarioError(f"{place}.{name} must be {meaning}")
    try:
        if "raw" in fields:
            fields["raw"] = fields["raw"].encode()
        return Fault(**fields)
    except ValueError as error:
        raise ScenarioError(f"{place}: {error}") from error


def _object(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScenarioError(f"{place} must be an object")
    return value
