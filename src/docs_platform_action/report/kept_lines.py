"""The beginning and the end of a log that is shown later: a platform may report something new in each of a day's responses."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from ..text import pluralize

MAX_KEPT_CHARACTERS: Final = 16 * 1024  # some 250 lines


class KeptLines:
    """Lines of which the first and the last `MAX_KEPT_CHARACTERS` are kept, and the others counted."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._last: deque[str] = deque()
        self._first_size = self._last_size = self._left_out = 0

    def append(self, line: str) -> None:
        """Add a line, which may displace earlier ones."""
        if not self._last and self._first_size + len(line) <= MAX_KEPT_CHARACTERS:
            self._first.append(line)
            self._first_size += len(line)
            return
        self._last.append(line)
        self._last_size += len(line)
        while self._last_size > MAX_KEPT_CHARACTERS:
            self._last_size -= len(self._last.popleft())
            self._left_out += 1

    def __bool__(self) -> bool:
        return bool(self._first)

    def __iter__(self) -> Iterator[str]:
        yield from self._first
        if self._left_out:
            yield f"… {pluralize(self._left_out, 'line')} left out …"
        yield from self._last
