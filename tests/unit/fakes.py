"""Fakes: a transport with answers, recorded events."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import requests
from urllib3 import HTTPResponse

from docs_platform_action.clock import Clock
from docs_platform_action.context import PlatformContext
from docs_platform_action.events import Listener
from docs_platform_action.http.client import HttpClient
from docs_platform_action.http.transport import Transport
from docs_platform_action.outputs import Outputs
from docs_platform_action.platform.room import Room
from docs_platform_action.redaction import Redactor
from tests.keys import ADMIN_KEY
from tests.virtual_platform import Sent, VirtualTransport
from tests.virtual_time import VirtualClock

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
    transport: Transport,
    *,
    clock: Clock | None = None,
    proxies: Mapping[str, str] = NONE,
    secrets: Sequence[str] = (ADMIN_KEY,),
) -> HttpClient:
    """Return a client for a transport, as in `main`."""
    redactor = Redactor(secrets)
    return HttpClient(
        transport=transport,
        clock=clock or Clock(),
        proxies_for=lambda _url: proxies,
        redactor=redactor,
    )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response. If it `is_cut`, the connection breaks after its body.

    Without a status, the connection breaks at once.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    is_cut: bool = False


class FakeTransport(VirtualTransport):
    """Gives one answer after another, and the last again and again.

    It records the requests. Each takes a second.
    """

    def __init__(self, *answers: Answer, clock: VirtualClock | None = None) -> None:
        super().__init__()
        self._answers = [*answers] or [Answer()]
        self._clock = clock or VirtualClock()
        self.requests: list[Sent] = []
        self.is_reached = True

    def respond(self, sent: Sent) -> requests.Response:
        self.requests.append(sent)
        if self.is_reached:
            sent.exchange.begin()
        self._clock.sleep(1.0)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if not answer.status:
            raise requests.ConnectionError(ConnectionResetError())
        response = requests.Response()
        response.status_code = answer.status
        response.headers.update(answer.headers)
        body = CutBody(answer.body) if answer.is_cut else io.BytesIO(answer.body)
        response.raw = HTTPResponse(
            body, headers=answer.headers, status=answer.status, preload_content=False
        )
        return response


class CutBody(io.BytesIO):
    """A body whose connection breaks at its end."""

    def read1(self, size: int | None = -1) -> bytes:
        if piece := super().read1(size):
            return piece
        raise ConnectionResetError


class RecordedEvents:
    """Implements `Listener`, and records every event.

    An event is recorded with its name, its job, and its other arguments in order.
    """

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    @property
    def names(self) -> list[str]:
        return [event[0] for event in self.seen]

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """Return the arguments of the events with this name, without the job."""
        return [event[2:] for event in self.seen if event[0] == name]

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in vars(Listener):
            raise AttributeError(name)
        return lambda *args, **options: self.seen.append((name, *args, *options.values()))


def context(
    clock: Clock,
    events: Any,
    *,
    platform: Any = None,
    client: Any = None,
    outputs: Outputs | None = None,
    github: Any = None,
    room: Room | None = None,
) -> PlatformContext:
    """Return the context of a run with the parts that a test needs."""
    return PlatformContext(
        clock=clock,
        client=client,
        platform=platform,
        outputs=outputs or Outputs(None, Redactor()),
        listener=events,
        github=github,
        room=room or Room(clock, start_timeout_seconds=0.0),
    )
