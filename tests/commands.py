r"""Reads a log as GitHub's runner does, and returns the commands that it would execute.

Source: actions/runner, `ActionCommand.cs` and `ActionCommandManager.cs`. A line ends at `\n`,
`\r\n` or a lone `\r`, on stdout and stderr alike. It contains a command of the new form if it
begins with `::` after white space, or else of the old form if it contains `##[` anywhere; both only
with a name that the runner knows, in any case. .NET compares `::` and `##[` by the culture's rules,
which ignore invisible characters: each line is read with and without them.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

STOP: Final = "stop-commands"
KNOWN: Final = frozenset(
    {
        "add-mask",
        "add-matcher",
        "add-path",
        "debug",
        "echo",
        "endgroup",
        "error",
        "group",
        "internal-set-repo-path",
        "notice",
        "remove-matcher",
        "save-state",
        "set-env",
        "set-output",
        STOP,
        "warning",
    }
)
"""All commands that any version of the runner knows or knew."""

IGNORABLE: Final = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Invisible letters and marks. Formatting characters are a category of their own.

Source: Unicode, Default_Ignorable_Code_Point.
"""

Escapes = tuple[tuple[str, str], ...]
"""Codes with the characters that they stand for, in the order of decoding."""

_DATA: Final = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
_PROPERTY: Final = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
_OLD: Final = (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%25", "%"))


@dataclass(frozen=True, kw_only=True)
class Form:
    """A form in which commands are written. The pattern's groups are the head and the value."""

    pattern: re.Pattern[str]
    separator: str
    """The separator of the properties."""
    property_escapes: Escapes
    value_escapes: Escapes


_FORMS: Final = (
    Form(
        pattern=re.compile(r"^\s*::(.*?)::(.*)$"),
        separator=",",
        property_escapes=_PROPERTY,
        value_escapes=_DATA,
    ),
    Form(
        pattern=re.compile(r"##\[(.*?)\](.*)$"),
        separator=";",
        property_escapes=_OLD,
        value_escapes=_OLD,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that the runner would execute; `properties` and `value` are decoded."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    value: str = ""


def commands_in(*streams: str) -> list[Command]:
    """Return the commands in a process's output.

    They include `stop-commands`, but not the commands that it stops.
    """
    lines: list[str] = []
    for stream in streams:
        lines += lines_of(stream)
    found = []
    stop_token = ""
    for line in lines:
        command = _command_in(line, {*KNOWN, stop_token} - {""})
        if command is None:
            continue
        name = command.name.lower()
        if stop_token:
            # the token ends the stop, and is not a command itself
            if name == stop_token:
                stop_token = ""
            continue
        if name == STOP:
            stop_token = command.value.lower()
        found.append(command)
    return found


def lines_of(stream: str) -> list[str]:
    """Split a stream into lines where the runner does."""
    lines = re.split(r"\r\n|\r|\n", stream)
    return lines if lines[-1] else lines[:-1]


def _command_in(line: str, names: set[str]) -> Command | None:
    for variant in (line, _visible(line)):
        for form in _FORMS:
            found = form.pattern.search(variant)
            if found is None:
                continue
            name, _, properties = found[1].partition(" ")
            if name.lower() in names:
                return Command(
                    name=name,
                    properties=_properties_in(properties, form),
                    value=_decoded(found[2], form.value_escapes),
                )
    return None


def _properties_in(text: str, form: Form) -> dict[str, str]:
    properties = {}
    for pair in text.strip().split(form.separator):
        key, _, value = pair.partition("=")
        if key and value:
            properties[key] = _decoded(value, form.property_escapes)
    return properties


def _visible(line: str) -> str:
    """Return a line without the characters that .NET does not compare.

    These are control characters, formatting characters and other invisible ones.
    """
    shaped = re.sub(IGNORABLE, "", line)
    if shaped.isprintable():
        return shaped
    visible = ""
    for character in shaped:
        if character == "\t" or not unicodedata.category(character).startswith("C"):
            visible += character
    return visible


def _decoded(text: str, escapes: Escapes) -> str:
    for code, character in escapes:
        text = text.replace(code, character)
    return text
