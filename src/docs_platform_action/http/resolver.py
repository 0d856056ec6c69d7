"""Resolves names within a time limit. `getaddrinfo` has none, and cannot be ended: silent name servers take it minutes."""

import socket
import threading
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from urllib3.util.connection import allowed_gai_family

if TYPE_CHECKING:
    from .connection import Exchange


MAX_THREADS: Final = 4
"""Threads for one name at the same time, if all but the last hang."""


class ResolutionTimeout(TimeoutError):
    """The time for a lookup was up, or its exchange was aborted."""


@dataclass(eq=False)
class _Lookup:
    """A lookup under way. `result` holds the addresses or the error of the first of its threads that has ended."""

    result: list[Any] | BaseException | None = None
    threads: int = 0
    hangs: bool = False  # somebody has waited for it in vain


class Resolver:
    """Looks up each name in a thread of its own, which all that wait for this name share. Safe to use from several threads.

    An attempt after one that waited in vain asks again, and takes the answer that comes first.
    """

    def __init__(self) -> None:
        self._lookups: dict[tuple[str, int], _Lookup] = {}
        self._changed = threading.Condition()

    def resolve(self, host: str, port: int, seconds: float, exchange: "Exchange") -> list[Any]:
        """Return what `getaddrinfo` finds. Raises its errors, and `ResolutionTimeout`, as soon as the exchange is aborted too."""
        try:
            ip_address(host)
        except ValueError:
            return self._wait_for(host, port, min(seconds, exchange.remaining_seconds), exchange)
        return _look_up(host, port)

    def wake(self) -> None:
        """Wake all that wait, to check whether their exchange is aborted."""
        with self._changed:
            self._changed.notify_all()

    def _wait_for(self, host: str, port: int, seconds: float, exchange: "Exchange") -> list[Any]:
        with self._changed:
            lookup = self._lookups.setdefault((host, port), _Lookup())
            # one that hangs may still end first
            needs_thread = not lookup.threads or (lookup.hangs and lookup.threads < MAX_THREADS)
            can_wait = self._begin(host, port, lookup) if needs_thread else True
            if can_wait:
                self._changed.wait_for(lambda: lookup.result is not None or exchange.is_aborted, seconds)
            lookup.hangs = lookup.result is None
        if not can_wait:  # the machine allows no more threads
            return _look_up(host, port)
        if lookup.result is None:
            raise ResolutionTimeout
        if isinstance(lookup.result, BaseException):
            raise lookup.result
        return lookup.result

    def _begin(self, host: str, port: int, lookup: _Lookup) -> bool:
        """Start a thread for a lookup. Return whether it has any."""
        try:
            threading.Thread(target=self._run, args=(host, port, lookup), daemon=True, name="resolver").start()
        except RuntimeError:
            return lookup.threads > 0
        lookup.threads += 1
        lookup.hangs = False
        return True

    def _run(self, host: str, port: int, lookup: _Lookup) -> None:
        try:
            result: list[Any] | BaseException = _look_up(host, port)
        except BaseException as error:  # noqa: BLE001  # those that wait raise it
            result = error
        with self._changed:
            if lookup.result is None:
                lookup.result = result
                del self._lookups[host, port]
                self._changed.notify_all()


def _look_up(host: str, port: int) -> list[Any]:
    try:
        return socket.getaddrinfo(host, port, allowed_gai_family(), socket.SOCK_STREAM)
    except UnicodeError as error:  # not a name, such as one with an empty label
        raise socket.gaierror(socket.EAI_NONAME, "not a name") from error
