"""The simulated platform in virtual time: a transport adapter for `requests`, without sockets."""

import http.client
import io
from collections.abc import Callable
from typing import Any, cast

import requests
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.clock import Clock as SimulatorClock
from admin_api_simulator.content import as_bytes
from admin_api_simulator.wire import Reply, sent_parts
from docs_platform_action.http.connection import AbortableRequest
from docs_platform_action.http.response import FinalResponse
from tests.keys import ADMIN_KEY
from tests.virtual_time import VirtualClock

API_URL = "https://api.example.com"
STORAGE_URL = "https://storage.example.com"

Trouble = OSError | Fault | None
"""What happens to a request: no connection, with this error; a fault of the response; or nothing."""


class VirtualPlatform(BaseAdapter):
    """Sends the action's requests to a simulator. Each takes `seconds` of the clock, by default a tenth of a second.

    `trouble` is asked first, then the simulator's planned faults. A request that takes longer than its time
    limits ends as on a network: with a timeout, or aborted. `options` are the simulator's.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        trouble: Callable[[AbortableRequest], Trouble] = lambda _request: None,
        seconds: Callable[[AbortableRequest], float] = lambda _request: 0.1,
        storage_url: str = STORAGE_URL,
        **options: Any,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._trouble = trouble
        self._seconds = seconds
        simulated = SimulatorClock(monotonic=clock.monotonic, now=clock.now)
        simulator = Simulator(**{"key": ADMIN_KEY, "clock": simulated, **options})
        self.simulator = simulator.open(api=API_URL, storage=storage_url)
        self.under_way = self.max_under_way = 0

    def close(self) -> None:
        """Do nothing."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        self.under_way += 1
        self.max_under_way = max(self.max_under_way, self.under_way)
        try:
            return self._exchange(cast("AbortableRequest", request), *options["timeout"])
        finally:
            self.under_way -= 1

    def _exchange(self, request: AbortableRequest, connect_seconds: float, idle_seconds: float) -> requests.Response:
        trouble = self._trouble(request)
        if isinstance(trouble, OSError):
            timed_out = isinstance(trouble, TimeoutError)
            self._clock.sleep(connect_seconds if timed_out else self._seconds(request))
            raise requests.ConnectTimeout if timed_out else _connection_error(trouble)
        request.mark_connected()
        began = self._clock.monotonic()
        self._wait(request, idle_seconds=idle_seconds, idle=self._seconds(request))
        reply = self.simulator.reply(
            method=str(request.method),
            url=str(request.url),
            headers=request.headers,
            body=cast("bytes", request.body or b""),
            at=began,
            fault=trouble,
        )
        if fault := reply.fault:
            dripping = fault.drip_seconds * sum(map(len, sent_parts(reply.response, fault)))
            self._wait(request, idle_seconds=idle_seconds, idle=fault.delay_seconds, total=fault.delay_seconds + dripping)
        self.simulator.sent(reply)
        received = _received(reply, lambda: self._clock.sleep(idle_seconds))
        response = requests.Response()
        response.status_code, response.raw = received.status, received
        response.headers.update(received.headers)
        return response

    def _wait(self, request: AbortableRequest, *, idle_seconds: float, idle: float, total: float = 0.0) -> None:
        """Wait for a first byte, and for the last one. Raises `ReadTimeout`, and aborts a request whose time is up."""
        left = request.exchange.ends_at - self._clock.monotonic()
        if idle >= idle_seconds and left > idle_seconds:
            self._clock.sleep(idle_seconds)
            raise requests.ReadTimeout
        if max(idle, total) >= left:
            self._clock.sleep(left)
            request.exchange.abort()
            raise requests.ReadTimeout
        self._clock.sleep(max(idle, total))


def _connection_error(error: Exception) -> requests.ConnectionError:
    return requests.ConnectionError(ProtocolError("Connection aborted.", error))


def _received(reply: Reply, stall: Callable[[], None]) -> HTTPResponse:
    """Return what the client receives of a reply. Raises an error of `requests`."""
    response, fault = reply.response, reply.fault
    if fault is None or not fault.needs_raw_writing:
        headers = {**response.headers, "Content-Length": str(len(response.body))}
        body = io.BytesIO(as_bytes(response.body))
        return HTTPResponse(body, headers=headers, status=response.status, preload_content=False)
    if fault.cut == "before_response":
        raise _connection_error(http.client.RemoteDisconnected("no response"))
    sent = b"".join(sent_parts(response, fault))
    parsed = FinalResponse(cast("Any", _Socket(sent, stall if fault.stall_after_bytes is not None else None)))
    try:
        parsed.begin()
    except (OSError, http.client.HTTPException) as error:
        parsed.close()
        raise _connection_error(error) from error
    return HTTPResponse(
        cast("Any", parsed), headers=dict(parsed.headers), status=parsed.status, preload_content=False, original_response=parsed
    )


class _Socket:
    """What a response is read from."""

    def __init__(self, sent: bytes, stall: Callable[[], None] | None) -> None:
        self._stream = _Stream(sent, stall)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._stream)

    def settimeout(self, _seconds: float) -> None:
        """Do nothing: a read never waits."""


class _Stream(io.RawIOBase):
    """Bytes, and then the end or, with `stall`, a timeout."""

    def __init__(self, sent: bytes, stall: Callable[[], None] | None) -> None:
        super().__init__()
        self._left = io.BytesIO(sent)
        self._stall = stall

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._left.readinto(buffer)
        if count == 0 and self._stall is not None:
            self._stall()
            raise TimeoutError("timed out")
        return count
