"""Records of the requests to the simulator."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from multidict import CIMultiDict

from admin_api_simulator.domains import normalized


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """One request.

    - `operation`: the route's, `download` for every request to the storage, or `unknown`.
    - `path`, `query`: raw. `headers`: a case-insensitive mapping.
    - `at`: when the request was complete, in `time.monotonic()` seconds.
    - `connection`: the number of its TCP connection, from 1 over both ports.
    - `domain`: the export's, as the start request spelled it, or None. `status`: the response's, None if none was sent.
    """

    operation: str
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str]
    body: bytes = b""
    at: float = 0.0
    status: int | None = None
    connection: int = 0
    domain: str | None = None

    def is_about(self, domain: str) -> bool:
        """Return whether the request is about a domain, in any spelling."""
        return self.domain is not None and normalized(self.domain) == normalized(domain)


class Recorder:
    """Keeps the requests in the order of their arrival. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[RecordedRequest] = []

    def add(self, request: RecordedRequest) -> int:
        """Record a request; return its number for `set_status`."""
        with self._lock:
            self._requests.append(request)
            return len(self._requests) - 1

    def set_status(self, number: int, status: int) -> None:
        """Record the status of the response."""
        with self._lock:
            self._requests[number] = replace(self._requests[number], status=status)

    def snapshot(self) -> list[RecordedRequest]:
        """Return a copy of the list."""
        with self._lock:
            return list(self._requests)


class ForgetfulRecorder(Recorder):
    """Keeps no requests."""

    def add(self, request: RecordedRequest) -> int:
        """Forget a request."""
        del request
        return 0

    def set_status(self, number: int, status: int) -> None:
        """Do nothing."""


def request_on_the_wire(
    *,
    operation: str,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    at: float | None = None,
    connection: int = 0,
) -> RecordedRequest:
    """Return a record; the raw target is `/path?query`, or `http://host/path?query` as proxies get it."""
    path, _, query = target.partition("?")
    return RecordedRequest(
        operation=operation,
        method=method,
        path=path,
        query=query,
        headers=CIMultiDict(headers),
        body=body,
        at=time.monotonic() if at is None else at,
        connection=connection,
    )
