"""Faults from a JSON file: `{"read_export": [null, {"status": 503, "headers": {"Retry-After": "1"}}]}`.

Next to the operations, `domains` may be an object with such operations for single domains.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from admin_api_simulator.domains import normalized
from admin_api_simulator.faults import CUTS, DOMAIN_OPERATIONS, FRAMINGS, OPERATIONS, Fault, Operation, is_operation

Turns = Mapping[Operation, tuple[Fault | None, ...]]

DOMAINS = "domains"
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a header's name (RFC 9110, section 5.1)


class ScenarioError(ValueError):
    """The file cannot be read or is invalid; the message names the field."""


class Scripted(Protocol):
    """What a scenario is applied to."""

    def script(self, operation: Operation, *turns: Fault | None, domain: str | None = None) -> None:
        """Plan the next turns of an operation."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The planned turns of each operation, for all requests and for single domains."""

    turns: Turns
    domains: Mapping[str, Turns] = field(default_factory=dict)

    def apply(self, simulator: Scripted) -> None:
        """Plan the turns."""
        for operation, turns in self.turns.items():
            simulator.script(operation, *turns)
        for domain, own in self.domains.items():
            for operation, turns in own.items():
                simulator.script(operation, *turns, domain=domain)


def read_scenario(path: Path) -> Scenario:
    """Read a scenario from a file. Raises ScenarioError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise ScenarioError(f"the scenario {path} cannot be read: {error}") from error
    try:
        return parse_scenario(text)
    except ScenarioError as error:
        raise ScenarioError(f"the scenario {path} is invalid: {error}") from error


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from JSON. Raises ScenarioError."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ScenarioError(f"it is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ScenarioError("it must be an object of operations")
    domains = document.pop(DOMAINS, {})
    return Scenario(turns=_turns(document, "", OPERATIONS), domains=_domains(domains))


def _domains(document: object) -> dict[str, Turns]:
    if not isinstance(document, dict):
        raise ScenarioError(f"{DOMAINS} must be an object of domains")
    seen: dict[str, str] = {}
    for domain, operations in document.items():
        same = seen.setdefault(normalized(domain), domain)
        if same != domain:
            raise ScenarioError(f"{DOMAINS}.{same} and {DOMAINS}.{domain} are the same domain; combine their operations")
        if not isinstance(operations, dict):
            raise ScenarioError(f"{DOMAINS}.{domain} must be an object of operations")
    known = tuple(operation for operation in OPERATIONS if operation in DOMAIN_OPERATIONS)
    return {domain: _turns(operations, f"{DOMAINS}.{domain}.", known) for domain, operations in document.items()}


def _turns(document: Mapping[str, object], prefix: str, known: Sequence[str]) -> Turns:
    turns: dict[Operation, tuple[Fault | None, ...]] = {}
    for operation, listed in document.items():
        field_name = f"{prefix}{operation}"
        if operation not in known or not is_operation(operation):
            where = f" in {prefix.removesuffix('.')}" if prefix else ""
            raise ScenarioError(f"unknown operation {operation!r}{where}; use one of {', '.join(known)}")
        if not isinstance(listed, list):
            raise ScenarioError(f"{field_name} must be a list with one entry per turn")
        turns[operation] = tuple(_turn(entry, f"{field_name}[{number}]") for number, entry in enumerate(listed))
    return turns


def _turn(entry: object, field_name: str) -> Fault | None:
    if entry is None:
        return None
    if not isinstance(entry, dict):
        raise ScenarioError(f"{field_name} must be null, for a normal turn, or an object")
    unknown = sorted(set(entry) - set(_CHECKS))
    if unknown:
        raise ScenarioError(f"{field_name}.{unknown[0]} is unknown; use one of {', '.join(_CHECKS)}")
    for name, value in entry.items():
        expected = _CHECKS[name](value)
        if expected:
            raise ScenarioError(f"{field_name}.{name} must be {expected}")
    raw = entry.get("raw")
    try:
        return Fault(**{**entry, "raw": None if raw is None else raw.encode()})
    except ValueError as error:
        raise ScenarioError(f"{field_name}: {error}") from error


def _status(value: object) -> str:
    valid = isinstance(value, int) and not isinstance(value, bool) and 200 <= value <= 599
    return "" if valid else "a status from 200 to 599"


def _one_line(value: object) -> str:
    return "" if isinstance(value, str) and value.isprintable() else "one line of text"


def _text(value: object) -> str:
    return "" if isinstance(value, str) else "text"


def _headers(value: object) -> str:
    valid = isinstance(value, dict) and all(TOKEN.fullmatch(name) and not _one_line(text) for name, text in value.items())
    return "" if valid else "an object of headers, each one line of text"


def _anything(_: object) -> str:
    return ""


def _seconds(value: object) -> str:
    valid = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return "" if valid else "a number of seconds, 0 or more"


def _bytes(value: object) -> str:
    valid = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if valid else "a number of bytes, 0 or more"


def _one_of(words: tuple[str, ...]) -> Callable[[object], str]:
    return lambda value: "" if value in words else f"one of {', '.join(words)}"


def _flag(value: object) -> str:
    return "" if isinstance(value, bool) else "true or false"


_CHECKS = {
    "status": _status,
    "reason": _one_line,
    "headers": _headers,
    "body": _text,
    "json": _anything,
    "delay_seconds": _seconds,
    "drip_seconds": _seconds,
    "cut": _one_of(CUTS),
    "cut_after_bytes": _bytes,
    "stall_after_bytes": _bytes,
    "framing": _one_of(FRAMINGS),
    "raw": _text,
    "processed": _flag,
}
