"""The log: the one place that writes to standard output, and makes foreign text harmless on the way."""

import contextlib
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from actions_toolkit.command import Command

from ..redaction import Redactor
from .text import SHORTEST_LINK_SECRET, clean, secrets_of

ANNOTATION_LIMIT: Final = 4096
"""Characters of an annotation that the runner keeps (source: actions/runner)."""

MOST_WARNINGS: Final = 9
"""Warnings that are annotations; the runner shows ten of a kind a step (source: actions/runner), and others may come from it."""


class LinkSecrets:
    """The parts of links that open them, none shorter than `SHORTEST_LINK_SECRET`. Safe to use from several threads.

    They are found by how they begin, and then by the lengths that such ones have: a text costs the same with one link as with
    thousands, whose signatures differ but are equally long.
    """

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._lock = threading.Lock()

    def add(self, secrets: Iterable[str]) -> None:
        """Hide these from here on."""
        with self._lock:
            for secret in secrets:
                self._secrets.add(secret)  # first: whoever reads at the same time finds it by its length
                beginning = secret[:SHORTEST_LINK_SECRET]
                lengths = {*self._lengths.get(beginning, ()), len(secret)}
                self._lengths[beginning] = tuple(sorted(lengths, reverse=True))

    def hide(self, text: str) -> str:
        """Put an ellipsis in place of each one; of those that overlap nothing is left."""
        if not self._lengths:
            return text
        shown: list[str] = []
        covered = 0
        for at in range(len(text) - SHORTEST_LINK_SECRET + 1):
            for length in self._lengths.get(text[at : at + SHORTEST_LINK_SECRET], ()):
                if text[at : at + length] in self._secrets:
                    if at >= covered:
                        shown += [text[covered:at], "…"]
                    covered = max(covered, at + length)
                    break
        return "".join([*shown, text[covered:]])


class Console:
    """Writes log lines and the runner's commands. Safe to use from several threads.

    In a workflow the runner reads the commands; elsewhere they are written as a person would read them, and the key is never
    written to be masked. A stream that cannot be written to is given up: the run does not fail for its log.
    """

    def __init__(self, stream: TextIO, *, in_workflow: bool, debugging: bool) -> None:
        self._stream = stream
        self._in_workflow = in_workflow
        self._debugging = debugging
        self._secrets: set[str] = set()
        self._names: set[str] = set()
        self._redactor = Redactor()
        self._link_secrets = LinkSecrets()
        self._warnings = 0
        self._lock = threading.Lock()
        self.broken = False

    @property
    def in_workflow(self) -> bool:
        """Whether a runner reads what is written."""
        return self._in_workflow

    @property
    def debugging(self) -> bool:
        """Whether debug logging is on."""
        return self._debugging

    def mask(self, secret: str) -> None:
        """Hide a secret: from here on in whatever this console writes, and by the runner in whatever the job writes."""
        if not secret:
            return
        if self._in_workflow:
            self._write(str(Command("add-mask", {}, secret)))
        with self._lock:
            self._secrets |= {secret, *filter(None, secret.splitlines())}  # every line, as the runner does it
            self._redactor = Redactor(self._secrets, names=self._names)

    def always_show(self, names: Iterable[str | None]) -> None:
        """Show what the run itself names, though it may be part of a secret."""
        with self._lock:
            self._names.update(filter(None, names))
            self._redactor = Redactor(self._secrets, names=self._names)

    def mask_for_the_job(self, text: str) -> None:
        """Have the runner hide what this console never writes but later steps may; elsewhere nobody could hide it."""
        if self._in_workflow:
            self._write(str(Command("add-mask", {}, text)))

    def keep_link_out(self, url: str) -> None:
        """Show nothing that opens a link in log or summary, whoever echoes it there; the outputs have the link as it is."""
        self._link_secrets.add(secrets_of(url))

    def hide(self, text: str) -> str:
        """Take every secret out of a text."""
        return self._redactor.hide(text)

    def _hide_all(self, text: str) -> str:
        return self._link_secrets.hide(self.hide(text))

    def safe(self, text: str) -> str:
        """Take the secrets out of a text and make it harmless; once more after the cleaning, which may join what was split."""
        cleaned = clean(hidden := self._hide_all(text))
        return text if cleaned == hidden == text else self._hide_all(cleaned)

    def line(self, text: str) -> None:
        """Write a line of the log."""
        self._write(self.safe(text))

    def group(self, title: str, lines: Iterable[str]) -> None:
        """Write lines that belong together, in one go: folded up in a workflow, under their title elsewhere.

        The runner folds what lies between two commands of its own (source: actions/runner), which no line here can be.
        """
        head, foot = (
            (str(Command("group", {}, self.safe(title))), ["::endgroup::"]) if self._in_workflow else (self.safe(title), [])
        )
        indent = "" if self._in_workflow else "  "
        self._write("\n".join([head, *(f"{indent}{self.safe(line)}" for line in lines), *foot]))

    def error(self, lines: Sequence[str]) -> None:
        """Write one error annotation; its first line is the title, which has to be enough by itself."""
        self._annotate("error", lines)

    def warning(self, lines: Sequence[str]) -> None:
        """Write one warning annotation; a plain line where there are too many of them to be shown."""
        with self._lock:
            self._warnings += 1
            annotated = self._warnings <= MOST_WARNINGS
        self._annotate("warning", lines, annotated=annotated)

    def debug(self, text: str) -> None:
        """Write a line that is seen only with debug logging."""
        if self._debugging:
            self._write(str(Command("debug", {}, self.safe(text))) if self._in_workflow else f"debug: {self.safe(text)}")

    def output(self, name: str, value: str) -> None:
        """Print an output, where there is no runner to hand it to."""
        value = self.hide(value)
        self._write(f"{name}={clean(value, longest=len(value)) if self._in_workflow else value}")

    def _annotate(self, kind: str, lines: Sequence[str], *, annotated: bool = True) -> None:
        title, *rest = [self.safe(line) for line in lines]
        message = "\n".join([title, *(f"  {line}" for line in rest)])[:ANNOTATION_LIMIT]
        is_command = annotated and self._in_workflow
        self._write(str(Command(kind, {"title": title}, message)) if is_command else f"{kind.capitalize()}: {message}")

    def _write(self, line: str) -> None:
        with self._lock:
            if self.broken:
                return
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError) as error:
                self.broken = True
                # the last place there is to say it; `None` when it was closed from the start
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    sys.stderr.write(
                        f"Warning: the log cannot be written ({type(error).__name__}); the run goes on without it.\n"
                    )
