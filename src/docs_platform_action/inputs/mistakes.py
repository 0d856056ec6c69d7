"""The mistakes in the inputs, which are reported together."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from ..errors import DENIED, DENIED_BY, InvalidInput
from ..text import as_sentence


class Mistakes:
    """Collects what is wrong with inputs, in the order in which it is found."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] = []  # each with the name of its input

    def add(self, name: str, text: str) -> None:
        """Add a text that completes "Invalid input `x`: …"."""
        self._found.append((name, text))

    @contextmanager
    def reported(self, name: str) -> Iterator[None]:
        """Add the `ValueError` that the body raises."""
        try:
            yield
        except ValueError as error:
            self.add(name, str(error))

    @property
    def names(self) -> Collection[str]:
        """The names of the inputs with mistakes, each once."""
        return dict.fromkeys(name for name, _ in self._found)

    def check(self) -> None:
        """Raise `InvalidInput` with all mistakes, if there are any."""
        if not self._found:
            return
        remedy = " ".join(dict.fromkeys(_remedy_for(text) for _, text in self._found))
        if len(self._found) == 1:
            name, text = self._found[0]
            raise InvalidInput(f"Invalid input `{name}`: {text}", remedy=remedy)
        names = ", ".join(f"`{name}`" for name in self.names)
        details = tuple(as_sentence(f"`{name}`: {text}") for name, text in self._found)
        raise InvalidInput(f"Invalid inputs: {names}", details=details, remedy=remedy)


def _remedy_for(text: str) -> str:
    return DENIED["remedy"] if DENIED_BY in text else InvalidInput.default_remedy
