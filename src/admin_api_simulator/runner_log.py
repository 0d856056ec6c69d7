"""The log as GitHub shows it: workflow commands are executed, secrets masked, groups collapsed.

Source: actions/runner, `ActionCommandManager`, and GitHub's documentation of workflow commands.
"""

import re
from collections.abc import Callable

COMMAND = re.compile(
    r"\s*::(?P<name>[a-z-]+)(?: (?P<properties>[^:]*(?::(?!:)[^:]*)*))?::(?P<value>.*)", re.DOTALL
)
ANNOTATIONS = {"error": "Error: ", "warning": "Warning: ", "notice": "Notice: "}


class RunnerLog:
    """Writes lines of an action's output as GitHub shows them; those that match `cut` are only counted."""

    def __init__(self, write: Callable[[str], None], *, cut: str | None = None) -> None:
        self._write = write
        self._cut = re.compile(cut or "(?!)")
        self._masks: list[str] = []
        self._in_group = False
        self._cut_lines = 0

    def show(self, line: str) -> None:
        """Write the lines of the log for one line of output, in order, because a mask applies to the lines after it."""
        command = COMMAND.fullmatch(line)
        name, text = (command["name"], _decoded(command["value"])) if command else ("", line)
        if name == "add-mask":
            self._masks = sorted(
                {*self._masks, *filter(str.strip, text.splitlines())}, key=len, reverse=True
            )
        elif name == "group":
            self._show(f"▶ {text}")
        elif not self._in_group and (command is None or name in ANNOTATIONS):
            self._show(ANNOTATIONS.get(name, "") + text)
        if name in {"group", "endgroup"}:
            self._in_group = name == "group"

    def end(self) -> None:
        """Write how many lines were cut since the last one."""
        if self._cut_lines:
            self._write(f"… {self._cut_lines} more lines …")
            self._cut_lines = 0

    def _show(self, text: str) -> None:
        for mask in self._masks:
            text = text.replace(mask, "***")
        for line in text.split("\n"):
            if self._cut.search(line):
                self._cut_lines += 1
            else:
                self.end()
                self._write(line)


def _decoded(value: str) -> str:
    return value.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")
