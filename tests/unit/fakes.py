"""Fakes: a transport with one response, recorded events."""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import requests
from urllib3 import HTTPResponse

from docs_platform_action.clock import Clock
from docs_platform_action.context import Context
from docs_platform_action.events import Events
from docs_platform_action.http.client import HttpClient
from docs_platform_action.http.transport import Transport
from docs_platform_action.outputs import Outputs
from docs_platform_action.redaction import Redactor
from tests.keys import ADMIN_KEY
from tests.virtual_platform import Sent, VirtualTransport

HOST = "api.example.com"
BASE_URL = f"https://{HOST}"
NONE: Mapping[str, str] = {}
AGENT_JOB: Mapping[str, object] = {
    "id": "aj_1",
    "status": "completed",
    "source": {"repository": "https://git.example.com/docs.git", "ref": "main"},
    "model": "m-1",
    "prLink": "https://git.example.com/docs/pull/7",
    "createdAt": "2026-05-04T12:00:00Z",
    "archivedAt": None,
}


def http_client(
    transport: Transport, *, clock: Clock | None = None, proxies: Mapping[str, str] = NONE, secrets: Sequence[str] = (ADMIN_KEY,)
) -> HttpClient:
    """Return a client for a transport, as in `main`."""
    redactor = Redactor(secrets)
    return HttpClient(transport=transport, clock=clock or Clock(), proxies_for=lambda _url: proxies, redactor=redactor)


class FakeTransport(VirtualTransport):
    """Returns one response or raises one error for every request, and records the requests."""

    def __init__(
        self, status: int = 200, body: bytes = b"{}", headers: Mapping[str, str] | None = None, error: Exception | None = None
    ) -> None:
        super().__init__()
        self._status, self._body, self._headers, self._error = status, body, dict(headers or {}), error
        self.requests: list[Sent] = []
        self.before: Callable[[Sent], None] = lambda sent: sent.exchange.begin()

    def respond(self, sent: Sent) -> requests.Response:
        self.requests.append(sent)
        self.before(sent)
        if self._error is not None:
            raise self._error
        response = requests.Response()
        response.status_code = self._status
        response.headers.update(self._headers)
        response.raw = HTTPResponse(io.BytesIO(self._body), headers=self._headers, status=self._status, preload_content=False)
        return response


class Redirecting(FakeTransport):
    """Returns one redirect after another, then a bundle."""

    def __init__(self, *locations: str) -> None:
        super().__init__(body=b"bundle")
        self._locations = list(locations)

    def respond(self, sent: Sent) -> requests.Response:
        self._status, self._headers = (302, {"Location": self._locations.pop(0)}) if self._locations else (200, {})
        return super().respond(sent)


class RecordedEvents:
    """Implements `Events`, and records every event: its name, its job, and its other arguments in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    @property
    def names(self) -> list[str]:
        return [event[0] for event in self.seen]

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """Return the arguments of the events with this name, without the job."""
        return [event[2:] for event in self.seen if event[0] == name]

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in vars(Events):
            raise AttributeError(name)
        return lambda *args, **options: self.seen.append((name, *args, *options.values()))


def context(clock: Clock, events: Any, *, api: Any = None, client: Any = None, outputs: Outputs | None = None) -> Context:
    """Return the context of a run with the parts that a test needs."""
    return Context(clock=clock, client=client, api=api, outputs=outputs or Outputs(None, Redactor()), events=events)
