"""The log: the one place that writes to standard output, and makes foreign text harmless on the way."""

import contextlib
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from actions_toolkit.command import Command

from ..redaction import Redactor, replace_spans
from ..text import clean

if TYPE_CHECKING:
    from .signed_links import LinkSecret

ANNOTATION_LIMIT: Final = 4096
"""Characters of an annotation that the runner keeps (source: actions/runner)."""

MAX_WARNINGS: Final = 9
"""Warnings that are annotations; the runner shows ten of a kind a step (source: actions/runner), and others may come from it."""

MIN_LONG_SECRET_LENGTH: Final = 8
"""Characters of a link's secret that is hidden wherever it is; a shorter one may be part of ordinary words."""

_NAME: Final = re.compile(
    r"""(?:(?<![\w.~%-])|%26|%3F)([\w.~-]{1,64})(?:=|%3D|>|["']?:[ ]?["']?)""",
    re.IGNORECASE,
)
"""The name of a parameter in front of its value, in an address, in XML or in JSON."""


class LinkSecrets:
    """The secrets of signed links, and the names that are shown all the same. Safe to use from several threads.

    A secret of at least `MIN_LONG_SECRET_LENGTH` characters is hidden everywhere, a shorter one only behind its parameter's name.
    The long ones are looked up by their first characters, and then by the lengths that such ones have: a text costs the same
    with one link as with thousands, whose signatures differ but are equally long.
    """

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._short: dict[str, set[str]] = {}
        self._shown: set[str] = set()
        self._all_shown = ""
        self._lock = threading.Lock()

    def add(self, secrets: "Iterable[LinkSecret]") -> None:
        """Hide these from here on."""
        with self._lock:
            for name, secret in secrets:
                if len(secret) >= MIN_LONG_SECRET_LENGTH:
                    self._secrets.add(secret)  # first: another thread then finds it by its length
                    beginning = secret[:MIN_LONG_SECRET_LENGTH]
                    lengths = {*self._lengths.get(beginning, ()), len(secret)}
                    self._lengths[beginning] = tuple(sorted(lengths, reverse=True))
                else:  # one without a name follows none, so it is never found
                    self._short.setdefault(name.lower(), set()).add(secret)

    def always_show(self, names: Iterable[str]) -> None:
        """Hide none of these, nor a part of one."""
        with self._lock:
            self._shown.update(names)
            self._all_shown = "\n".join(self._shown)

    def hide(self, text: str) -> str:
        """Return the text with an ellipsis in place of each; of those that overlap nothing is left."""
        return replace_spans(text, [*self._long_in(text), *self._short_in(text)], "…")

    def _long_in(self, text: str) -> Iterator[tuple[int, int]]:
        for at in range(len(text) - MIN_LONG_SECRET_LENGTH + 1) if self._lengths else ():
            for length in self._lengths.get(text[at : at + MIN_LONG_SECRET_LENGTH], ()):
                secret = text[at : at + length]
                if secret in self._secrets and secret not in self._all_shown:
                    yield at, at + length
                    break

    def _short_in(self, text: str) -> Iterator[tuple[int, int]]:
        for found in _NAME.finditer(text) if self._short else ():
            secrets, start = self._short.get(found[1].lower(), ()), found.end()
            for end in range(min(start + MIN_LONG_SECRET_LENGTH - 1, len(text)), start, -1):
                secret = text[start:end]
                if secret in secrets and secret not in self._shown:
                    yield start, end
                    break


class Console:
    """Writes log lines and the runner's commands. Safe to use from several threads.

    In a workflow the runner reads the commands; elsewhere they are written as a person would read them, and the key is never
    written to be masked. A stream that cannot be written to is given up: the run does not fail for its log.
    """

    def __init__(self, stream: TextIO, *, in_workflow: bool, debugging: bool) -> None:
        self.in_workflow = in_workflow
        self.debugging = debugging
        self.broken = False
        self._stream = stream
        self._secrets: set[str] = set()
        self._names: set[str] = set()
        self._redactor: Redactor | None = None  # made when a text is searched
        self._link_secrets = LinkSecrets()
        self._warnings = 0
        self._lock = threading.Lock()

    def mask(self, secret: str) -> None:
        """Hide a secret: from here on in whatever this console writes, and by the runner in whatever the job writes."""
        if not secret:
            return
        self.mask_in_job(secret)
        with self._lock:
            self._secrets |= {secret, *filter(None, secret.splitlines())}  # every line, as the runner does it
            self._redactor = None

    def always_show(self, names: Iterable[str]) -> None:
        """Show the names of the run's own inputs, though they may be part of a secret."""
        with self._lock:
            self._names.update(names)
            self._redactor = None
        self._link_secrets.always_show(self._names)

    def mask_in_job(self, text: str) -> None:
        """Have the runner hide what this console never writes but later steps may; elsewhere nobody could hide it."""
        if self.in_workflow:
            self._write(str(Command("add-mask", {}, text)))

    def redact_link(self, url: str, names: Iterable[str | None] = ()) -> None:
        """Hide a link's secrets in log and summary, but not in the outputs; `names`, such as its job and date, stay visible."""
        from .signed_links import secrets_of

        self._link_secrets.always_show(filter(None, names))
        self._link_secrets.add(secrets_of(url))

    def hide(self, text: str) -> str:
        """Return the text without secrets, except those of links."""
        redactor = self._redactor
        if redactor is None:
            with self._lock:
                redactor = self._redactor = Redactor(self._secrets, names=self._names)
        return redactor.hide(text)

    def hide_links(self, text: str) -> str:
        """Return the text without the secrets of links."""
        return self._link_secrets.hide(text)

    def safe(self, text: str) -> str:
        """Return the text without secrets and harmless; the cleaning may join what was split, so they are hidden once more."""
        hidden = self.hide_links(self.hide(text))
        cleaned = clean(hidden)
        return text if cleaned == hidden == text else self.hide_links(self.hide(cleaned))

    def line(self, text: str) -> None:
        """Write a line of the log."""
        self._write(self.safe(text))

    def group(self, title: str, lines: Iterable[str]) -> None:
        """Write lines that belong together, in one go: folded up in a workflow, under their title elsewhere.

        The runner folds what lies between two commands of its own (source: actions/runner), which no line here can be.
        """
        if self.in_workflow:
            written = [str(Command("group", {}, self.safe(title))), *map(self.safe, lines), "::endgroup::"]
        else:
            written = [self.safe(title), *(f"  {self.safe(line)}" for line in lines)]
        self._write("\n".join(written))

    def error(self, lines: Sequence[str]) -> None:
        """Write one error annotation; its first line is the title, which has to be enough by itself."""
        self._annotate("error", lines, is_command=self.in_workflow)

    def warning(self, lines: Sequence[str]) -> None:
        """Write one warning annotation; a plain line where there are too many of them to be shown."""
        with self._lock:
            self._warnings += 1
            is_shown = self._warnings <= MAX_WARNINGS
        self._annotate("warning", lines, is_command=self.in_workflow and is_shown)

    def debug(self, text: str) -> None:
        """Write a line that is seen only with debug logging."""
        if self.debugging:
            self._write(str(Command("debug", {}, self.safe(text))) if self.in_workflow else f"debug: {self.safe(text)}")

    def output(self, name: str, value: str) -> None:
        """Print an output, where there is no runner to hand it to."""
        value = self.hide(value)
        self._write(f"{name}={clean(value, max_length=len(value)) if self.in_workflow else value}")

    def _annotate(self, kind: str, lines: Sequence[str], *, is_command: bool) -> None:
        title, *rest = [self.safe(line) for line in lines]
        message = "\n".join([title, *(f"  {line}" for line in rest)])[:ANNOTATION_LIMIT]
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
                        f"Warning: the log cannot be written ({type(error).__name__}); the run continues without it.\n"
                    )
