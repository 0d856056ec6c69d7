"""Temporary trouble of several domains with one API, told once for all."""

from typing import Final

from .domain_state import Row

QUIET_SECONDS: Final = 30.0
"""How long after trouble that was told no other is told: what comes and goes at one domain after the other would fill the log."""


class CommonTrouble:
    """Who gets no good answer, and whose trouble is told in the name of all."""

    def __init__(self) -> None:
        self.met_by: list[Row] = []
        self._told_by: Row | None = None
        self._since: float | None = None
        self._quiet_until = float("-inf")

    def met(self, row: Row, now: float) -> bool:
        """Take note that a domain meets it; tell whether that is news."""
        if row not in self.met_by:
            self.met_by.append(row)
        if self._since is not None or now < self._quiet_until:
            return False
        self._since, self._told_by, self._quiet_until = now, row, now + QUIET_SECONDS
        return True

    def over(self, row: Row, now: float) -> float | None:
        """Take note that a domain gets good answers again; tell how long it lasted since it was told, if its end is news."""
        self._forget(row)
        if self._since is None or self._told_by not in (None, row):
            return None
        lasted, self._since = now - self._since, None
        return lasted

    def left(self, row: Row) -> None:
        """Take note that a domain has ended, in trouble or not: of one that told it, the next to recover tells the end."""
        self._forget(row)
        if self._told_by is row:
            self._told_by = None
            self._since = self._since if self.met_by else None

    def _forget(self, row: Row) -> None:
        if row in self.met_by:
            self.met_by.remove(row)
