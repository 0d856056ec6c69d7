"""The only place that writes to standard output. It hides secrets and makes foreign text harmless."""

import contextlib
import itertools
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TextIO

from actions_toolkit.command import Command

from ..errors import InternalError
from ..redaction import Redactor
from ..text import clean, without_query

ANNOTATION_LIMIT: Final = 4096
"""Characters of an annotation that the runner keeps (source: actions/runner)."""

MAX_WARNINGS: Final = 9
"""Warnings that become annotations. The runner shows ten per step (source: actions/runner), and may add its own."""


class Console:
    """Writes log lines and workflow commands. Safe to use from several threads.

    Outside a workflow, commands are written as plain text, and masks are omitted. After an error, nothing more is written.
    """

    def __init__(self, stream: TextIO, *, in_workflow: bool, debugging: bool) -> None:
        self.in_workflow = in_workflow
        self._debugging = debugging
        self._is_broken = False
        self._stream = stream
        self.redactor = Redactor()
        self._warning_numbers = itertools.count(1)  # `next` is atomic
        self._lock = threading.Lock()

    def mask(self, secrets: Sequence[str], *, names: Sequence[str] = ()) -> None:
        """Hide secrets in this log, and mask them in the log of the whole job. `names` stay visible by themselves."""
        for secret in secrets:
            self.mask_in_job(secret)
        lines = {line for secret in secrets for line in secret.splitlines()}  # the runner also masks each line
        self.redactor = Redactor({*secrets, *lines}, names=names)

    def mask_in_job(self, text: str) -> None:
        """Mask a text in the log of the whole job. Outside a workflow, the command would only reveal it."""
        if text and self.in_workflow:
            self._write(str(Command("add-mask", {}, text)))

    def redact_link(self, url: str, names: Iterable[str | None] = ()) -> None:
        """Hide a link's secrets in log and summary, not in outputs. Its path and `names`, such as the job's id, stay visible."""
        from .signed_links import MAX_LINK_LENGTH, secrets_of

        secrets, address = secrets_of(url), without_query(url)[:MAX_LINK_LENGTH]
        self.redactor.add_link_secrets(secrets)
        self.redactor.show(filter(None, names))
        if not any(secret.value in address for secret in secrets):
            self.redactor.show([address])

    def hide(self, text: str) -> str:
        """Return the text without secrets."""
        return self.redactor.hide(text)

    def safe(self, text: str) -> str:
        """Return the text cleaned and without secrets. Cleaning may join a split secret, so secrets are hidden once more."""
        hidden = self.hide(text)
        cleaned = clean(hidden)
        return text if cleaned == hidden == text else self.hide(cleaned)

    def line(self, text: str) -> None:
        """Write a line of the log."""
        self._write(self.safe(text))

    def group(self, title: str, lines: Iterable[str]) -> None:
        """Write a group of lines at once: folded in a workflow, indented under the title elsewhere."""
        if self.in_workflow:
            written = [str(Command("group", {}, self.safe(title))), *map(self.safe, lines), "::endgroup::"]
        else:
            written = [self.safe(title), *(f"  {self.safe(line)}" for line in lines)]
        self._write("\n".join(written))

    def error(self, lines: Sequence[str], *, title: str) -> None:
        """Write an error annotation. GitHub shows its title above the lines; the runner does not mask titles."""
        self._annotate("error", self._joined(lines), {"title": title}, is_command=self.in_workflow)

    def warning(self, lines: Sequence[str]) -> None:
        """Write a warning annotation, or a plain line after `MAX_WARNINGS` of them."""
        is_shown = next(self._warning_numbers) <= MAX_WARNINGS
        self._annotate("warning", self._joined(lines), {}, is_command=self.in_workflow and is_shown)

    def debug(self, text: str) -> None:
        """Write a line if debug logging is on."""
        if self._debugging:
            self._write(str(Command("debug", {}, self.safe(text))) if self.in_workflow else f"debug: {self.safe(text)}")

    def trace(self, bug: Exception) -> None:
        """Write the stack trace of a bug in the action if debug logging is on."""
        trace = self.hide("".join(traceback.format_exception(bug)))  # before it is split: a key may span lines
        for line in trace.splitlines():
            self.debug(line)

    @contextlib.contextmanager
    def bugs_as_warnings(self, part: str) -> Iterator[None]:
        """Turn a bug while a part of the report is written into a warning: it changes neither outputs nor exit code."""
        try:
            yield
        except Exception as bug:  # noqa: BLE001  # whatever it is
            lines = (
                f"{part} cannot be written ({type(bug).__name__}); outputs and exit code are not affected.",
                InternalError.default_cause,
                InternalError.default_remedy,
            )
            self._annotate("warning", "\n  ".join(lines), {}, is_command=self.in_workflow)  # not `safe`: it may have the bug
            with contextlib.suppress(Exception):  # for the same reason
                self.trace(bug)

    def output(self, name: str, value: str) -> None:
        """Print an output, for a run without `GITHUB_OUTPUT`, with job ids and links as they are."""
        value = self.redactor.hide_whole_keys(value, short_keys=True)
        self._write(f"{name}={clean(value, max_length=len(value)) if self.in_workflow else value}")

    def _joined(self, lines: Sequence[str]) -> str:
        return "\n  ".join(map(self.safe, lines))[:ANNOTATION_LIMIT]

    def _annotate(self, kind: str, message: str, properties: Mapping[str, str], *, is_command: bool) -> None:
        self._write(str(Command(kind, {**properties}, message)) if is_command else f"{kind.capitalize()}: {message}")

    def _write(self, line: str) -> None:
        with self._lock:
            if self._is_broken:
                return
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except (OSError, ValueError) as error:
                self._is_broken = True
                warning = f"Warning: the log cannot be written ({type(error).__name__}); the run continues without it.\n"
                with contextlib.suppress(OSError, ValueError, AttributeError):  # `sys.stderr` may be closed, or `None`
                    sys.stderr.write(warning)
