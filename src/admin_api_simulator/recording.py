"""Records of the requests to the simulator."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from multidict import CIMultiDict


def normalized(domain: str) -> str:
    """Return a form of a domain that is the same for all its spellings."""
    return domain.strip().lower()


@dataclass(frozen=True, kw_only=True)
class RecordedRequest:
    """One request.

    - `operation`: the route's, `download` for every request to the storage, or `unknown`.
    - `path`, `query`: raw. `headers`: a case-insensitive mapping.
    - `at`: when the request was complete, in `time.monotonic()` seconds.
    - `domain`: the export's, as the start request spelled it, or None.
    - `status`: the response's, None if none was sent.
    """

    operation: str
    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str]
    body: bytes = b""
    at: float = 0.0
    status: int | None = None
    domain: str | None = None

    def is_about(self, domain: str) -> bool:
        """Return whether the request is about a domain, in any spelling."""
        return self.domain is not None and normalized(self.domain) == normalized(domain)


def request_on_the_wire(
    *, target: str, headers: Mapping[str, str], at: float | None = None, **known: Any
) -> RecordedRequest:
    """Return a record.

    The raw target is `/path?query`, or `http://host/path?query` as proxies get it.
    """
    path, _, query = target.partition("?")
    arrived = time.monotonic() if at is None else at
    return RecordedRequest(
        path=path, query=query, headers=CIMultiDict(headers), at=arrived, **known
    )
