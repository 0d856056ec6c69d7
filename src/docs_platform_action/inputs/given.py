"""The texts of the inputs, as the environment has them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..redaction import Redactor
from ..text import join_errors
from .mistakes import Mistakes
from .table import DEFAULTS
from .validators import trimmed

MAX_EDITS: Final = 2  # in a misspelled name, and at most a third of the right name's length
_KEYS: Final = ("INPUT_ADMIN-KEY", "INPUT_ADMIN_KEY")
_TOKENS: Final = ("INPUT_GITHUB-TOKEN", "INPUT_GITHUB_TOKEN")
_SET_TWICE: Final = (
    "is set twice, with a hyphen and with an underscore, to different values; remove one"
)


class GivenInputs:
    """The texts of the inputs by name.

    `secrets` has the admin key and the token, of variables with a hyphen and with an underscore.
    The runner passes everything in `with:`, `job-id` as `INPUT_JOB-ID` (source: actions/runner,
    Handler.cs). Outside a workflow `INPUT_JOB_ID` is the same input, because most shells cannot
    set a variable with a hyphen.
    """

    def __init__(self, environ: Mapping[str, str], *, in_workflow: bool) -> None:
        self.in_workflow = in_workflow
        keys = _values_of(environ, _KEYS)
        self.secrets = [*keys, *_values_of(environ, _TOKENS)]
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
    """Return the name of the input in a variable, in lower case.

    It is empty for any other variable: the runner writes the names of inputs in upper case.
    """
    name = variable.removeprefix("INPUT_").lower()
    is_input = variable == f"INPUT_{name.upper()}"
    return name if is_input else ""


def _values_of(environ: Mapping[str, str], variables: Sequence[str]) -> list[str]:
    """Return the values of variables that are not empty."""
    values = [trimmed(environ.get(variable, "")) for variable in variables]
    return [value for value in values if value]


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
