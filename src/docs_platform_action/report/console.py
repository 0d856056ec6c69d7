"""The only place that writes to standard output. It hides secrets and makes foreign text harmless."""

import contextlib
import itertools
import re
import sys
import threading
import traceback
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TextIO

from actions_toolkit.command import Command

from ..errors import InternalError
from ..redaction import Redactor, replace_spans
from ..text import clean

ANNOTATION_LIMIT: Final = 4096
"""Characters of an annotation that the runner keeps (source: actions/runner)."""

MAX_WARNINGS: Final = 9
"""Warnings that become annotations. The runner shows ten per step (source: actions/runner), and may add its own."""

MIN_LONG_SECRET_LENGTH: Final = 8
"""Shortest secret of a link that is hidden everywhere. A shorter one may be part of ordinary words."""

_PARAMETER_NAME: Final = re.compile(r"""(?:(?<![\w.~%-])|%26|%3F)([\w.~-]{1,64})(?:=|%3D|>|["']?:[ ]?["']?)""", re.IGNORECASE)
"""A parameter's name before its value, in a URL, in XML or in JSON."""


class LinkSecrets:
    """Hides the secrets of links: long ones everywhere, short ones only after their name. Safe to use from several threads.

    Long secrets are looked up by their first characters, then by the known lengths: thousands of links cost no more than one.
    """

    def __init__(self) -> None:
        self._long: set[str] = set()
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)  # of long secrets, by their first characters
        self._short: defaultdict[str, set[str]] = defaultdict(set)  # by the name of the parameter
        self._shown: set[str] = set()
        self._lock = threading.Lock()

    def add(self, secrets: Iterable[tuple[str, str]]) -> None:
        """Hide these secrets from now on. Each comes with its parameter's name, which may be empty."""
        with self._lock:
            for name, secret in secrets:
                if len(secret) >= MIN_LONG_SECRET_LENGTH:
                    self._long.add(secret)
                    self._lengths[secret[:MIN_LONG_SECRET_LENGTH]].add(len(secret))
                else:  # a short secret without a name is not searched for
                    self._short[name.lower()].add(secret)

    def always_show(self, names: Iterable[str]) -> None:
        """Show these names and every part of them, even a part that is a secret."""
        with self._lock:
            self._shown.update(names)

    def hide(self, text: str) -> str:
        """Return the text with an ellipsis in place of each secret; overlapping secrets become one ellipsis."""
        with self._lock:
            spans = [*self._find_long(text), *self._find_short(text)]
        return replace_spans(text, spans, "…")

    def _find_long(self, text: str) -> Iterator[tuple[int, int]]:
        for start in range(len(text) - MIN_LONG_SECRET_LENGTH + 1) if self._lengths else ():
            for length in self._lengths.get(text[start : start + MIN_LONG_SECRET_LENGTH], ()):
                secret = text[start : start + length]
                if secret in self._long and not any(secret in name for name in self._shown):
                    yield start, start + length

    def _find_short(self, text: str) -> Iterator[tuple[int, int]]:
        for match in _PARAMETER_NAME.finditer(text) if self._short else ():
            secrets, start = self._short.get(match[1].lower(), ()), match.end()
            for end in range(start + 1, start + MIN_LONG_SECRET_LENGTH):
                if text[start:end] in secrets and text[start:end] not in self._shown:
                    yield start, end


class Console:
    """Writes log lines and workflow commands. Safe to use from several threads.

    Outside a workflow, commands are written as plain text, and masks are omitted. After an error, nothing more is written.
    """

    def __init__(self, stream: TextIO, *, in_workflow: bool, debugging: bool) -> None:
        self.in_workflow = in_workflow
        self._debugging = debugging
        self._is_broken = False
        self._stream = stream
        self._redactor = Redactor([])
        self._link_secrets = LinkSecrets()
        self._warning_numbers = itertools.count(1)  # `next` is atomic
        self._lock = threading.Lock()

    def mask(self, secret: str, *, names: Sequence[str] = ()) -> None:
        """Hide a secret in this log, and mask it in the log of the whole job. `names` stay visible by themselves."""
        self.mask_in_job(secret)
        self._redactor = Redactor({secret, *secret.splitlines()}, names=names)  # the runner also masks each line
        self._link_secrets.always_show(names)

    def mask_in_job(self, text: str) -> None:
        """Mask a text in the log of the whole job. Outside a workflow, the command would only reveal it."""
        if text and self.in_workflow:
            self._write(str(Command("add-mask", {}, text)))

    def redact_link(self, url: str, names: Iterable[str | None] = ()) -> None:
        """Hide a link's secrets in log and summary, but not in outputs. `names`, such as the job's id, stay visible."""
        from .signed_links import secrets_of

        self._link_secrets.always_show(filter(None, names))
        self._link_secrets.add(secrets_of(url))

    def hide(self, text: str) -> str:
        """Return the text without secrets, except those of links."""
        return self._redactor.hide(text)

    def hide_links(self, text: str) -> str:
        """Return the text without the secrets of links."""
        return self._link_secrets.hide(text)

    def safe(self, text: str) -> str:
        """Return the text cleaned and without secrets. Cleaning may join a split secret, so secrets are hidden once more."""
        hidden = self.hide_links(self.hide(text))
        cleaned = clean(hidden)
        return text if cleaned == hidden == text else self.hide_links(self.hide(cleaned))

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
        """Print an output, for a run without `GITHUB_OUTPUT`."""
        value = self.hide(value)
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
