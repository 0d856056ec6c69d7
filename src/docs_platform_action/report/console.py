"""The only place that writes to standard output.

It hides secrets and makes foreign text harmless.
"""

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
from ..text import clean

# characters of an annotation that the runner keeps (source: actions/runner)
ANNOTATION_LIMIT: Final = 4096

# as annotations: the runner shows ten per step (source: actions/runner), and may add its own
MAX_WARNINGS: Final = 9


class Console:
    """Writes log lines and workflow commands. Safe to use from several threads.

    Outside a workflow, commands are written as plain text, and masks are omitted. After an error of
    the stream, nothing more is written.
    """

    def __init__(self, stream: TextIO, *, in_workflow: bool, debugging: bool) -> None:
        self.in_workflow = in_workflow
        self._debugging = debugging
        self._is_broken = False
        self._stream = stream
        self.redactor = Redactor()
        self._warning_numbers = itertools.count(1)  # `next` is atomic
        self._faulty_parts: set[str] = set()
        self._lock = threading.Lock()

    def mask(self, keys: Sequence[str]) -> None:
        """Hide keys in this log, and mask them in the log of the whole job."""
        hidden = set(keys)
        for key in keys:
            self.mask_in_job(key)
            hidden.update(key.splitlines())  # the runner also masks each line
        self.redactor = Redactor(hidden)

    def mask_in_job(self, text: str) -> None:
        """Mask a text in the log of the whole job.

        Outside a workflow, the command would only reveal it.
        """
        if text and self.in_workflow:
            self._write(str(Command("add-mask", {}, text)))

    def safe(self, text: str) -> str:
        """Return foreign text without secrets, cleaned and shortened.

        Secrets are hidden before the text is shortened, so that no part of one is left. They are
        hidden again afterwards: cleaning may join a secret that invisible characters had split.
        """
        return self.redactor.hide(clean(self.redactor.hide(text)))

    def line(self, text: str, *, link: str = "") -> None:
        """Write a line of the log. A `link` at its end keeps its query."""
        line = self.safe(text)
        if link:
            line += f" {self.redactor.hide_key(clean(link))}"
        self._write(line)

    def group(self, title: str, lines: Iterable[str]) -> None:
        """Write a group of lines at once.

        It is folded in a workflow, and indented under the title elsewhere.
        """
        safe_title = self.safe(title)
        safe_lines = [self.safe(line) for line in lines]
        if self.in_workflow:
            command = str(Command("group", {}, safe_title))
            self._write("\n".join([command, *safe_lines, "::endgroup::"]))
        else:
            self._write("\n  ".join([safe_title, *safe_lines]))

    def error(self, lines: Sequence[str], *, title: str) -> None:
        """Write an error annotation.

        GitHub shows its title above the lines. The runner does not mask titles.
        """
        self._annotate("error", lines, {"title": title}, is_command=self.in_workflow)

    def warning(self, lines: Sequence[str]) -> None:
        """Write a warning annotation, or a plain line after `MAX_WARNINGS` of them."""
        is_annotation = next(self._warning_numbers) <= MAX_WARNINGS
        self._annotate("warning", lines, {}, is_command=self.in_workflow and is_annotation)

    def debug(self, text: str) -> None:
        """Write a line if debug logging is on."""
        if not self._debugging:
            return
        if self.in_workflow:
            self._write(str(Command("debug", {}, self.safe(text))))
        else:
            self._write(f"debug: {self.safe(text)}")

    def trace(self, bug: Exception) -> None:
        """Write the stack trace of a bug in the action if debug logging is on."""
        trace = "".join(traceback.format_exception(bug))
        # hidden before the trace is split: a key may span lines
        for line in self.redactor.hide(trace).splitlines():
            self.debug(line)

    @contextlib.contextmanager
    def bugs_as_warnings(self, part: str) -> Iterator[None]:
        """Turn the first bug in a part of the report into a warning.

        Bugs there change neither outputs nor exit code.
        """
        try:
            yield
        except Exception as bug:  # noqa: BLE001  # whatever it is
            with self._lock:
                is_first = part not in self._faulty_parts
                self._faulty_parts.add(part)
            if not is_first:
                return
            fault = f"{part} cannot be written ({type(bug).__name__})"
            first = f"{fault}; outputs and exit code are not affected."
            self.warning([first, InternalError.default_cause, InternalError.default_remedy])
            with contextlib.suppress(Exception):  # it may be a bug in showing the very text
                self.trace(bug)

    def print_outputs(self, outputs: Mapping[str, str]) -> None:
        """Print outputs for a run without `GITHUB_OUTPUT`, as later steps read them."""
        for name, text in outputs.items():
            value = clean(text, max_length=len(text)) if self.in_workflow else text
            self._write(f"{name}={value}")

    def _annotate(
        self, kind: str, lines: Sequence[str], properties: Mapping[str, str], *, is_command: bool
    ) -> None:
        safe_lines = [self.safe(line) for line in lines]
        message = "\n  ".join(safe_lines)[:ANNOTATION_LIMIT]
        if is_command:
            self._write(str(Command(kind, {**properties}, message)))
        else:
            self._write(f"{kind.capitalize()}: {message}")

    def _write(self, line: str) -> None:
        with self._lock:
            if self._is_broken:
                return
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except Exception as error:  # noqa: BLE001  # whatever it is, the run continues
                self._is_broken = True
                fault = f"the log cannot be written ({type(error).__name__})"
                # `sys.stderr` may be closed, or `None`
                with contextlib.suppress(OSError, ValueError, AttributeError):
                    sys.stderr.write(f"Warning: {fault}; the run continues without it.\n")
