"""The request handler.

It records and logs the request, applies the planned fault, and sends the response.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import StreamWriter

from admin_api_simulator.faults import Fault, FaultScript
from admin_api_simulator.recording import RecordedRequest, request_on_the_wire
from admin_api_simulator.request_log import log_request
from admin_api_simulator.responses import Content, Response, error_response

PIECE_BYTES = 1 << 20
CHUNK_BYTES = 1 << 14


class Service(Protocol):
    """What responds on a port."""

    def operation_of(self, method: str, path: str) -> str:
        """Return the operation for a method and raw path."""

    def domain_of(self, request: RecordedRequest) -> str | None:
        """Return the domain of a request's export, if it is known."""

    def respond(self, request: RecordedRequest) -> Response:
        """Run the request's operation."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the platform does about a request: the response, and the fault to send it with."""

    number: int
    response: Response
    fault: Fault | None = None

    @property
    def status(self) -> int | None:
        """The status that the client receives, if any."""
        if self.fault is not None:
            is_lost = self.fault.raw is not None or self.fault.cut == "before_response"
            if is_lost:
                return None
        return self.response.status


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What the handlers of both ports share."""

    faults: FaultScript
    key: str
    requests: list[RecordedRequest] = field(default_factory=list)
    keep_requests: bool = True

    def handler(
        self, service: Service
    ) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        """Return the request handler of a service."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            began = time.monotonic()
            status = None
            try:
                response, status = await self._respond(service, request)
            finally:
                log_request(
                    request.method,
                    request.raw_path,
                    status,
                    seconds=time.monotonic() - began,
                    key=self.key,
                )
            return response

        return handle

    async def _respond(
        self, service: Service, request: web.BaseRequest
    ) -> tuple[web.StreamResponse, int | None]:
        """Return the response, and the status that the client receives, if any."""
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _web_response(error_response(413, "the body is too large")), 413
        path = request.raw_path.partition("?")[0]
        received = request_on_the_wire(
            operation=service.operation_of(request.method, path),
            method=request.method,
            target=request.raw_path,
            headers=request.headers,
            body=body,
        )
        reply = self.reply(service, received)
        if reply.fault is not None:
            await asyncio.sleep(reply.fault.delay_seconds)
        self.sent(reply)
        if reply.fault is not None and reply.fault.needs_raw_writing:
            return _RawResponse(reply.response, reply.fault), reply.status
        return _web_response(reply.response), reply.status

    def reply(
        self, service: Service, received: RecordedRequest, fault: Fault | None = None
    ) -> Reply:
        """Record a request, and return what to send.

        That is the response of its operation, or the given or planned fault.
        """
        recorded = replace(received, domain=service.domain_of(received))
        if self.keep_requests:
            self.requests.append(recorded)
        number = len(self.requests) - 1
        if fault is None:
            fault = self.faults.next_turn(recorded.operation, recorded.domain)
        if fault is None:
            return Reply(number=number, response=service.respond(recorded))
        normal = service.respond(recorded) if fault.runs_operation else None
        return Reply(number=number, response=fault.apply(normal), fault=fault)

    def sent(self, reply: Reply) -> None:
        """Record the status that the client receives."""
        if reply.status is not None and self.keep_requests:
            self.requests[reply.number] = replace(self.requests[reply.number], status=reply.status)


class _RawResponse(web.StreamResponse):
    """A response that is written to the socket directly, and then closes the connection."""

    def __init__(self, response: Response, fault: Fault) -> None:
        super().__init__()
        self._response = response
        self._fault = fault

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Write what the fault allows.

        Raises ConnectionResetError, so that aiohttp closes the connection.
        """
        writer = StreamWriter(request.protocol, asyncio.get_running_loop())
        step = 1 if self._fault.drip_seconds > 0 else PIECE_BYTES
        for content in sent_parts(self._response, self._fault):
            for piece in pieces(content, piece_bytes=step):
                await writer.write(piece)
                await asyncio.sleep(self._fault.drip_seconds)
        if self._fault.stall_after_bytes is not None:
            # canceled when the client disconnects or the simulator stops
            await asyncio.Event().wait()
        raise ConnectionResetError


class _Streamed(web.StreamResponse):
    """A response whose body is written in pieces."""

    def __init__(self, response: Response) -> None:
        super().__init__(status=response.status, reason=response.phrase, headers=response.headers)
        self.content_length = len(response.body)
        self._content = response.body

    async def write_eof(self, data: bytes = b"") -> None:
        """Write the body. Raises ConnectionError if the client has disconnected."""
        for piece in pieces(self._content):
            await self.write(piece)
            await asyncio.sleep(0)  # lets other connections continue
        await super().write_eof(data)


def sent_parts(response: Response, fault: Fault) -> Iterator[bytes | memoryview]:
    """Yield the bytes that a fault lets through, from the status line on."""
    if fault.raw is not None:
        yield fault.raw
        return
    if fault.cut == "before_response":
        return
    head = response.head_bytes(fault.framing)
    if fault.cut == "in_headers":
        yield head[: max(head.index(b"\r\n") + 2, len(head) // 2)]
        return
    yield head
    kept = fault.kept_bytes(len(response.body))
    if fault.framing == "chunked":
        yield from _chunks(response.body, kept)
    else:
        yield from pieces(memoryview(response.body)[:kept])


def pieces(content: Content, *, piece_bytes: int = PIECE_BYTES) -> Iterator[memoryview]:
    """Yield the bytes in pieces, without copying them."""
    for position in range(0, len(content), piece_bytes):
        yield memoryview(content)[position : position + piece_bytes]


def _chunks(body: Content, kept: int | None) -> Iterator[bytes | memoryview]:
    left = len(body) if kept is None else kept
    for piece in pieces(body, piece_bytes=CHUNK_BYTES):
        if left <= 0:
            return
        yield f"{len(piece):x}\r\n".encode()
        yield piece[:left]
        if left < len(piece):
            return
        yield b"\r\n"
        left -= len(piece)
    if kept is None:
        yield b"0\r\n\r\n"


def _web_response(response: Response) -> web.StreamResponse:
    if len(response.body) > PIECE_BYTES:
        return _Streamed(response)
    return web.Response(
        status=response.status,
        reason=response.phrase,
        headers=response.headers,
        body=bytes(response.body),
    )
