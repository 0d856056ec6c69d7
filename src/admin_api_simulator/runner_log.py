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
    """Writes lines of an action's output as GitHub shows them.

    Lines that match `cut` are only counted.
    """

    def __init__(self, write: Callable[[str], None], *, cut: str | None = None) -> None:
        self._write = write
        self._cut = re.compile(cut or "(?!)")
        self._masks: list[str] = []
        self._in_group = False
        self._cut_lines = 0

    def show(self, line: str) -> None:
        """Write the lines of the log for one line of output.

        Call it in the order of the output, because a mask applies to the lines after it.
        """
        command = COMMAND.fullmatch(line)
        if command is None:
            if not self._in_group:
                self._show(line)
            return
        name = command["name"]
        text = _decoded(command["value"])
        if name == "add-mask":
            self._mask(text)
        elif name == "group":
            self._show(f"▶ {text}")
            self._in_group = True
        elif name == "endgroup":
            self._in_group = False
        elif name in ANNOTATIONS and not self._in_group:
            self._show(ANNOTATIONS[name] + text)

    def end(self) -> None:
        """Write how many lines were cut since the last one."""
        if self._cut_lines:
            self._write(f"… {self._cut_lines} more lines …")
            self._cut_lines = 0

    def _mask(self, secret: str) -> None:
        """Mask each line of a secret, as GitHub does."""
        for line in secret.splitlines():
            if line.strip():
                self._masks.append(line)
        # The longest first: one mask may be a part of another.
        self._masks.sort(key=len, reverse=True)

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
