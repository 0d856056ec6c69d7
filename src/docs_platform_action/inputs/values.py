"""The values of the inputs in the mode of the run."""

from collections.abc import Sequence
from typing import TypeVar

from . import table
from .given import GivenInputs
from .mistakes import Mistakes
from .table import INPUTS, Input, Mode

T = TypeVar("T")


class InputValues:
    """The values of the inputs. Those that the mode does not use have their defaults.

    `mode` is `None` if it is unknown. Then every input counts, but none is missing that only some
    modes require.
    """

    def __init__(self, given: GivenInputs, mistakes: Mistakes) -> None:
        self.mode = _mode_named(given.text("mode"))
        self._given = given
        self._mistakes = mistakes
        self._invalid: set[str] = set()

    def check(self) -> None:
        """Report the inputs that are missing, and those whose text is not valid by itself."""
        for row in INPUTS:
            error = self._error_in(row)
            if error is not None:
                self._mistakes.add(row.name, error)
                self.invalidate(row)

    def text(self, row: Input[object]) -> str:
        """Return an input's text, or its default if the mode does not use it."""
        return self._given.text(row.name) if self.is_in(row.modes) else row.default

    def is_in(self, modes: Sequence[Mode]) -> bool:
        """Return whether the mode is one of these, or unknown."""
        return self.mode is None or self.mode in modes

    def is_set(self, name: str) -> bool:
        """Return whether an input differs from its default, in any mode."""
        return self._given.is_set(name)

    def value(self, row: Input[T]) -> T | None:
        """Return the value of an input, unless it is empty or invalid."""
        text = self.text(row)
        if not text or not self.is_valid(row):
            return None
        return row.parse(text)

    def is_valid(self, row: Input[object]) -> bool:
        """Return whether no mistake makes the value of an input unusable."""
        return row.name not in self._invalid

    def invalidate(self, row: Input[object]) -> None:
        """Record that the value of an input is not used."""
        self._invalid.add(row.name)

    @property
    def delivers(self) -> bool:
        """Whether inputs about delivery count: unless `wait` is `false`.

        An invalid `wait` hides no mistakes in them.
        """
        return self.value(table.WAIT) is not False

    def _error_in(self, row: Input[object]) -> str | None:
        text = self.text(row)
        if not text:
            return self._error_without_text(row)
        if row.name != table.ADMIN_KEY.name and self._given.has_key(text):
            return "contains the admin key, which belongs only in `admin-key`"
        try:
            row.parse(text)
        except ValueError as error:
            return str(error)
        return None

    def _error_without_text(self, row: Input[object]) -> str | None:
        # at this point, an empty input has a mistake only if its name was misspelled
        is_misspelled = row.name in self._mistakes.names
        is_alternative_meant = row.unless in self._mistakes.names
        has_alternative = bool(row.unless) and (self.is_set(row.unless) or is_alternative_meant)
        is_required = self.mode in row.required_in
        if not is_required or has_alternative or is_misspelled:
            return None
        missing = f"missing; mode `{self.mode}` requires it"
        hint = row.hint
        if self._given.in_workflow:
            hint = hint or row.workflow_hint
        return f"{missing}. {hint}" if hint else missing


def _mode_named(text: str) -> Mode | None:
    return Mode(text) if text in [*Mode] else None
