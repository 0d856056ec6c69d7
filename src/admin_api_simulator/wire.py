"""Between the socket and a service: records the request, plays the planned fault, sends the answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import StreamWriter

from admin_api_simulator.answers import Answer, error_answer
from admin_api_simulator.connections import number_of
from admin_api_simulator.content import PIECE_BYTES, Content, as_bytes, part_of, pieces
from admin_api_simulator.faults import Fault, FaultScript
from admin_api_simulator.recording import RecordedRequest, Recorder, request_on_the_wire

CHUNK_BYTES = 1 << 14


class Service(Protocol):
    """What answers on a port."""

    def operation_of(self, method: str, path: str) -> str:
        """Name the operation of a request by its method and raw path."""

    def domain_of(self, request: RecordedRequest) -> str | None:
        """Return the domain of the export that a request is about, where it is known."""

    def refusal(self, request: RecordedRequest) -> Answer | None:
        """Return what is answered without looking at the request, which then takes no turn; None lets it through."""

    def answer(self, request: RecordedRequest) -> Answer:
        """Carry the request out."""


@dataclass(frozen=True, kw_only=True)
class Wire:
    """What a port needs besides its service."""

    recorder: Recorder
    faults: FaultScript
    base_path: str = ""

    def handler(self, service: Service) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        """Return the request handler of a service."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            try:
                body = await request.read()
            except web.HTTPRequestEntityTooLarge:
                return _respond(error_answer(413, "the body is too large"))
            path = request.raw_path.partition("?")[0]
            received = request_on_the_wire(
                operation=service.operation_of(request.method, path),
                method=request.method,
                target=request.raw_path,
                headers=request.headers,
                body=body,
                base_path=self.base_path,
                connection=number_of(request),
            )
            recorded = replace(received, domain=service.domain_of(received))
            number = self.recorder.add(recorded)
            refusal = service.refusal(recorded)
            fault = None if refusal else self.faults.next_turn(recorded.operation, recorded.domain)
            if fault is None:
                answer = refusal or service.answer(recorded)
                self.recorder.answered(number, answer.status)
                return _respond(answer)
            answer = fault.shape(service.answer(recorded) if fault.runs_operation else None)
            await asyncio.sleep(fault.delay_seconds)
            if fault.raw is None and fault.cut != "before_answer":
                self.recorder.answered(number, answer.status)
            return _HandWritten(answer, fault) if fault.by_hand else _respond(answer)

        return handle


class _HandWritten(web.StreamResponse):
    """A response that writes itself to the socket and then ends the connection."""

    def __init__(self, answer: Answer, fault: Fault) -> None:
        super().__init__()
        self._answer_to_write = answer
        self._fault = fault

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Write all that the fault lets through; raises ConnectionResetError, on which aiohttp closes the connection."""
        writer = StreamWriter(request.protocol, asyncio.get_running_loop())
        step = 1 if self._fault.drip_seconds > 0 else PIECE_BYTES
        for content in _let_through(self._answer_to_write, self._fault):
            for piece in pieces(content, piece_bytes=step):
                await writer.write(piece)
                await asyncio.sleep(self._fault.drip_seconds)
        if self._fault.stall_after_bytes is not None:
            await asyncio.Event().wait()  # cancelled when the client goes or the simulator stops
        raise ConnectionResetError


class _Streamed(web.StreamResponse):
    """A response whose body goes out piece by piece, as the client takes it."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(status=answer.status, reason=answer.phrase, headers=answer.headers)
        self.content_length = len(answer.body)
        self._content = answer.body

    async def write_eof(self, data: bytes = b"") -> None:
        """Write the body; raises ConnectionError where the client has left, on which aiohttp closes the connection."""
        for piece in pieces(self._content):
            await self.write(piece)
            await asyncio.sleep(0)  # a client that takes all at once leaves the others their turns
        await super().write_eof(data)


def _let_through(answer: Answer, fault: Fault) -> Iterator[bytes | memoryview]:
    if fault.raw is not None:
        yield fault.raw
        return
    if fault.cut == "before_answer":
        return
    head = answer.head_bytes(fault.framing)
    if fault.cut == "in_headers":
        yield head[: max(head.index(b"\r\n") + 2, len(head) // 2)]
        return
    yield head
    kept = fault.kept_bytes(len(answer.body))
    if fault.framing == "chunked":
        yield from _chunks(answer.body, kept)
    else:
        yield from pieces(answer.body if kept is None else part_of(answer.body, 0, kept))


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


def _respond(answer: Answer) -> web.StreamResponse:
    if len(answer.body) > PIECE_BYTES:
        return _Streamed(answer)
    return web.Response(status=answer.status, reason=answer.phrase, headers=answer.headers, body=as_bytes(answer.body))
