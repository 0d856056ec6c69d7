r"""Reads a log as GitHub's runner does, and returns the commands that it would execute.

Source: actions/runner, `ActionCommand.cs` and `ActionCommandManager.cs`. A line ends at `\n`, `\r\n` or a lone `\r`, on stdout
and stderr alike. It contains a command of the new form if it begins with `::` after white space, or else of the old form if it
contains `##[` anywhere; both only with a name that the runner knows, in any case. .NET compares `::` and `##[` by the culture's
rules, which ignore invisible characters: each line is read with and without them.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

STOP: Final = "stop-commands"
KNOWN: Final = frozenset(
    {
        *(
            "add-mask",
            "add-matcher",
            "add-path",
            "debug",
            "echo",
            "endgroup",
            "error",
            "group",
            "internal-set-repo-path",
        ),
        *("notice", "remove-matcher", "save-state", "set-env", "set-output", STOP, "warning"),
    }
)
"""All commands that any version of the runner knows or knew."""

IGNORABLE: Final = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)
"""Invisible letters and marks (source: Unicode, Default_Ignorable_Code_Point; formatting characters are a category)."""

_DATA = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
_PROPERTY = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
_OLD = (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%25", "%"))
_FORMS: Final = (
    (re.compile(r"^\s*::(.*?)::(.*)$"), ",", _PROPERTY, _DATA),
    (re.compile(r"##\[(.*?)\](.*)$"), ";", _OLD, _OLD),
)
"""Each form with the separator of its properties, and the escapes of properties and values, in the order of decoding."""


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
    for variant in (line, _visible(line)):
        for form, separator, of_properties, of_values in _FORMS:
            if found := form.search(variant):
                name, _, properties = found[1].partition(" ")
                if name.lower() in names:
                    pairs = (pair.partition("=") for pair in properties.strip().split(separator))
                    decoded = {
                        key: _decoded(text, of_properties) for key, _, text in pairs if key and text
                    }
                    return Command(
                        name=name, properties=decoded, value=_decoded(found[2], of_values)
                    )
    return None


def _visible(line: str) -> str:
    """Return a line without the characters that .NET does not compare: control, formatting and other invisible ones."""
    shaped = re.sub(IGNORABLE, "", line)
    if shaped.isprintable():
        return shaped
    return "".join(
        character
        for character in shaped
        if character == "\t" or not unicodedata.category(character).startswith("C")
    )


def _decoded(text: str, escapes: Iterable[tuple[str, str]]) -> str:
    for code, character in escapes:
        text = text.replace(code, character)
    return text
