"""The texts of the inputs, as the environment has them."""

from collections.abc import Iterable, Mapping
from typing import Final

from ..redaction import Redactor
from ..text import join_errors
from .mistakes import Mistakes
from .table import DEFAULTS
from .validators import trimmed

MAX_EDITS: Final = 2  # in a misspelled name, and at most a third of the right name's length
_SET_TWICE: Final = (
    "is set twice, with a hyphen and with an underscore, to different values; remove one"
)


class GivenInputs:
    """The texts of the inputs by name.

    `secrets` has both forms of the admin key and of the token.
    The runner passes everything in `with:`, `job-id` as `INPUT_JOB-ID` (source: actions/runner,
    Handler.cs). Outside a workflow `INPUT_JOB_ID` is the same input, because most shells cannot
    set a variable with a hyphen.
    """

    def __init__(self, environ: Mapping[str, str], *, in_workflow: bool) -> None:
        keys = _both_forms(environ, "ADMIN", "KEY")
        self.secrets = [*keys, *_both_forms(environ, "GITHUB", "TOKEN")]
        self._redactor = Redactor(keys)
        self._texts: dict[str, str] = {}
        self._set_twice: list[str] = []
        self._unknown: dict[str, str] = {}  # names as given, each with the name it stands for
        for variable in sorted(environ):
            given = _name_of_input(variable)
            name = given if in_workflow else given.replace("_", "-")
            if name in DEFAULTS:
                self._set(name, trimmed(environ[variable]))
            elif given:
                self._unknown[given] = name

    def text(self, name: str) -> str:
        """Return an input's text, or its default."""
        return self._texts.get(name) or DEFAULTS[name]

    def is_set(self, name: str) -> bool:
        """Return whether an input differs from its default, which the runner passes too."""
        return self.text(name) != DEFAULTS[name]

    def has_key(self, text: str) -> bool:
        """Return whether a text contains the admin key."""
        return self._redactor.has_key(text)

    def check_names(self, mistakes: Mistakes, warnings: list[str]) -> None:
        """Refuse inputs that are set twice, and names that are close to that of an input.

        A guard whose name is misspelled does not guard. Other unknown names bring a warning.
        """
        for name in self._set_twice:
            mistakes.add(name, _SET_TWICE)
        unset = [known for known in DEFAULTS if not self.is_set(known)]
        others = []
        for given, name in self._unknown.items():
            shown = f"`{self._redactor.hide_key(given)[:80]}`"
            meant = _closest(name, unset)
            if meant is None:
                others.append(shown)
            else:
                mistakes.add(meant, f"{shown} is not an input; did you mean `{meant}`?")
        if others:
            warnings.append(f"Names that are not inputs have no effect: {join_errors(others)}.")

    def _set(self, name: str, text: str) -> None:
        """Set an input's text, unless it is set already. An empty text sets nothing."""
        if not text:
            return
        known = self._texts.setdefault(name, text)
        if known != text:
            self._set_twice.append(name)


def _name_of_input(variable: str) -> str:
    """Return the name of the input that a variable is, in lower case. Empty if it is none.

    The runner writes every name in upper case.
    """
    name = variable.removeprefix("INPUT_").lower()
    is_input = variable == f"INPUT_{name.upper()}"
    return name if is_input else ""


def _both_forms(environ: Mapping[str, str], *words: str) -> list[str]:
    """Return the values of an input with a hyphen and with an underscore."""
    values = []
    for mark in "-_":
        value = trimmed(environ.get(f"INPUT_{mark.join(words)}", ""))
        if value:
            values.append(value)
    return values


def _closest(name: str, known_names: Iterable[str]) -> str | None:
    """Return the first known name that a misspelled one may stand for."""
    for known in known_names:
        if is_close(name, known, min(MAX_EDITS, len(known) // 3)):
            return known
    return None


def is_close(one: str, other: str, edits: int) -> bool:
    """Return whether at most so many edits make one text from another.

    An edit inserts, deletes or replaces a character, or swaps it with the next one.
    """
    if one == other:
        return True
    if one and other and one[0] == other[0]:
        return is_close(one[1:], other[1:], edits)
    if edits == 0:
        return False
    is_swapped = one[:2] == other[:2][::-1]
    return (
        is_close(one[1:], other, edits - 1)
        or is_close(one, other[1:], edits - 1)
        or is_close(one[1:], other[1:], edits - 1)
        or (is_swapped and is_close(one[2:], other[2:], edits - 1))
    )
