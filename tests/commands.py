r"""Reads a log as GitHub's runner does, and tells the commands that it would carry out.

Source: actions/runner, `ActionCommand.cs` and `ActionCommandManager.cs`, from their rules. A line ends at `\n`, `\r\n` or a lone
`\r`, on stdout and stderr alike. It holds a command of the new form where it begins with `::` after white space, or else of the
old form where `##[` stands anywhere in it; both only with a name that the runner knows, in upper or lower case. .NET compares
`::` and `##[` by the culture's rules, for which what nobody sees does not count: a line is read with such characters and without.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

STOP: Final = "stop-commands"
KNOWN: Final = frozenset(
    {
        *("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "internal-set-repo-path"),
        *("notice", "remove-matcher", "save-state", "set-env", "set-output", STOP, "warning"),
    }
)
"""Commands of all kinds that a runner has had."""

IGNORABLE: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
"""Letters and marks that have no shape (source: Unicode, Default_Ignorable_Code_Point; formatting characters are a category)."""

_DATA = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
_PROPERTY = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
_OLD = (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%25", "%"))
Escapes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that the runner would carry out; `properties` and `value` are decoded."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    value: str = ""


def commands_in(*streams: str) -> list[Command]:
    """Find the commands in what a process has written; one that stops the others counts, and what it stops does not."""
    found, token = [], ""
    for line in (line for stream in streams for line in lines_of(stream)):
        command = _command_in(line, {*KNOWN, token} - {""})
        if command is None or (token and command.name.lower() != token):
            continue
        if token:
            token = ""  # it ends here, and is no command itself
            continue
        if command.name.lower() == STOP:
            token = command.value.lower()
        found.append(command)
    return found


def lines_of(stream: str) -> list[str]:
    """Split a stream where the runner does."""
    lines = re.split(r"\r\n|\r|\n", stream)
    return lines if lines[-1] else lines[:-1]


def _command_in(line: str, names: set[str]) -> Command | None:
    readings = (line, _seen(line))
    return next((found for reading in readings for found in (_new(reading, names), _old(reading, names)) if found), None)


def _seen(line: str) -> str:
    """Leave out what .NET does not compare: control, formatting and other characters without a shape."""
    shaped = re.sub(IGNORABLE, "", line)
    if shaped.isprintable():
        return shaped
    return "".join(character for character in shaped if character == "\t" or not unicodedata.category(character).startswith("C"))


def _new(line: str, names: set[str]) -> Command | None:
    line = line.lstrip()
    end = line.find("::", 2)
    if not line.startswith("::") or end < 0:
        return None
    name, _, properties = line[2:end].partition(" ")
    if name.lower() not in names:
        return None
    return Command(name=name, properties=dict(_pairs(properties.strip(), ",", _PROPERTY)), value=_decoded(line[end + 2 :], _DATA))


def _old(line: str, names: set[str]) -> Command | None:
    begin = line.find("##[")
    end = line.find("]", begin)
    if begin < 0 or end < 0:
        return None
    name, _, properties = line[begin + 3 : end].partition(" ")
    if name.lower() not in names:
        return None
    return Command(name=name, properties=dict(_pairs(properties, ";", _OLD)), value=_decoded(line[end + 1 :], _OLD))


def _pairs(text: str, separator: str, escapes: Escapes) -> Iterator[tuple[str, str]]:
    for pair in text.split(separator):
        name, _, value = pair.lstrip("=").partition("=")
        if name and value:
            yield name, _decoded(value, escapes)


def _decoded(text: str, escapes: Escapes) -> str:
    for code, character in escapes:
        text = text.replace(code, character)
    return text
