r"""Reads a log as GitHub's runner does, and returns the commands that it would execute.

Source: actions/runner, `ActionCommand.cs` and `ActionCommandManager.cs`. A line ends at `\n`, `\r\n` or a lone `\r`, on stdout
and stderr alike. It contains a command of the new form if it begins with `::` after white space, or else of the old form if it
contains `##[` anywhere; both only with a name that the runner knows, in any case. .NET compares `::` and `##[` by the culture's
rules, which ignore invisible characters: each line is read with and without them.
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
"""All commands that any version of the runner knows or knew."""

IGNORABLE: Final = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
"""Invisible letters and marks (source: Unicode, Default_Ignorable_Code_Point; formatting characters are a category)."""

_DATA = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
_PROPERTY = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
_OLD = (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%25", "%"))
Escapes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that the runner would execute; `properties` and `value` are decoded."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    value: str = ""


def commands_in(*streams: str) -> list[Command]:
    """Return the commands in a process's output, including `stop-commands`, but not the commands that it stops."""
    found, token = [], ""
    for line in (line for stream in streams for line in lines_of(stream)):
        command = _command_in(line, {*KNOWN, token} - {""})
        if command is None or (token and command.name.lower() != token):
            continue
        if token:
            token = ""  # the end of the stop, which is not a command itself
            continue
        if command.name.lower() == STOP:
            token = command.value.lower()
        found.append(command)
    return found


def lines_of(stream: str) -> list[str]:
    """Split a stream into lines where the runner does."""
    lines = re.split(r"\r\n|\r|\n", stream)
    return lines if lines[-1] else lines[:-1]


def _command_in(line: str, names: set[str]) -> Command | None:
    variants = (line, _visible(line))
    return next((found for variant in variants for found in (_new(variant, names), _old(variant, names)) if found), None)


def _visible(line: str) -> str:
    """Return a line without the characters that .NET does not compare: control, formatting and other invisible ones."""
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
