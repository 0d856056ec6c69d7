"""The log as GitHub shows it: workflow commands are executed, secrets masked, groups collapsed.

Source: actions/runner, `ActionCommandManager`, and GitHub's documentation of workflow commands.
"""

import re

COMMAND = re.compile(r"\s*::(?P<name>[a-z-]+)(?: (?P<properties>[^:]*(?::(?!:)[^:]*)*))?::(?P<value>.*)", re.DOTALL)
ANNOTATIONS = {"error": "Error: ", "warning": "Warning: ", "notice": "Notice: "}
HIDDEN = frozenset({"debug", "save-state", "set-output", "echo", "add-matcher", "remove-matcher"})


class RunnerLog:
    """Converts lines of an action's output, in order, because a mask applies to the lines after it."""

    def __init__(self) -> None:
        self._masks: list[str] = []
        self._stopped_until: str | None = None
        self._in_group = False

    def show(self, line: str) -> list[str]:
        """Return the lines of the log for one line of output."""
        match = COMMAND.fullmatch(line)
        if self._stopped_until is not None:
            if line.strip() == f"::{self._stopped_until}::":
                self._stopped_until = None
                return []
            return self._visible(line)
        if match is None:
            return self._visible(line)
        return self._command(match["name"], _decoded(match["value"]), line)

    def _command(self, name: str, value: str, line: str) -> list[str]:
        if name == "add-mask":
            lines = {part for part in value.splitlines() if part.strip()}
            self._masks = sorted({*self._masks, *lines}, key=len, reverse=True)
            return []
        if name == "stop-commands":
            self._stopped_until = value
            return []
        if name in ANNOTATIONS:
            return self._visible(ANNOTATIONS[name] + value)
        if name in {"group", "endgroup"}:
            self._in_group = name == "group"
            return self._masked(f"▶ {value}") if self._in_group else []
        return [] if name in HIDDEN else self._visible(line)

    def _visible(self, text: str) -> list[str]:
        return [] if self._in_group else self._masked(text)

    def _masked(self, text: str) -> list[str]:
        for mask in self._masks:
            text = text.replace(mask, "***")
        return text.split("\n")


def _decoded(value: str) -> str:
    return value.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
