"""Every request that reached the simulator, as it was on the wire."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from multidict import CIMultiDict

from admin_api_simulator.domains import same_domain


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """One request.

    `operation` is that of the route, `download` for all that reaches the storage, `unknown` for a request that fits no
    operation. `path` and `query` are raw, as on the wire, and `path` includes `base_path`. `headers` is a case-insensitive
    mapping. `at` is `time.monotonic()` seconds when the request was complete. `connection` is the number of the TCP
    connection that it came on, counted from 1 over both ports. `domain` is that of the export, as the start request named it,
    None where there is none or nobody knows. `status` is what was answered, None where no status line went out.
    """

    operation: str
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str]
    body: bytes = b""
    at: float = 0.0
    status: int | None = None
    base_path: str = ""
    connection: int = 0
    domain: str | None = None

    def is_about(self, domain: str) -> bool:
        """Tell whether the request is about a domain, however it is spelled."""
        return self.domain is not None and same_domain(self.domain) == same_domain(domain)


class Recorder:
    """Keeps the requests in the order of their arrival; safe to read from another thread than the server's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[RecordedRequest] = []

    def add(self, request: RecordedRequest) -> int:
        """Keep a request and return the number by which `answered` knows it."""
        with self._lock:
            self._requests.append(request)
            return len(self._requests) - 1

    def answered(self, number: int, status: int) -> None:
        """Note the status that a request was answered with."""
        with self._lock:
            self._requests[number] = replace(self._requests[number], status=status)

    def snapshot(self) -> list[RecordedRequest]:
        """Return the requests so far."""
        with self._lock:
            return list(self._requests)


def request_on_the_wire(
    *,
    operation: str,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes,
    base_path: str = "",
    at: float | None = None,
    connection: int = 0,
) -> RecordedRequest:
    """Return the record of a request from its raw target, `/path?query` or what a proxy gets, `http://host/path?query`."""
    path, _, query = target.partition("?")
    return RecordedRequest(
        operation=operation,
        method=method,
        path=path,
        query=query,
        headers=CIMultiDict(headers),
        body=body,
        at=time.monotonic() if at is None else at,
        base_path=base_path,
        connection=connection,
    )
