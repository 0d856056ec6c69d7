"""Faults that a test or a scenario plants: which operation, at which turn, what goes wrong."""

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeGuard, get_args

from admin_api_simulator.answers import Answer, Framing, phrase_of
from admin_api_simulator.domains import same_domain

Operation = Literal["start_export", "read_export", "make_bundle", "read_agent_job", "download"]
Cut = Literal["before_answer", "in_headers", "in_body"]

OPERATIONS: tuple[str, ...] = get_args(Operation)
DOMAIN_OPERATIONS = frozenset(OPERATIONS) - {"read_agent_job"}
CUTS: tuple[str, ...] = get_args(Cut)
FRAMINGS: tuple[str, ...] = get_args(Framing)
FRAMING_HEADERS = frozenset({"content-length", "transfer-encoding", "content-encoding", "connection"})


def is_operation(name: str) -> TypeGuard[Operation]:
    """Tell whether a fault can be planted in the operation of that name."""
    return name in OPERATIONS


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What one turn of an operation does instead of, or on top of, its normal answer.

    With `status`, `body`, `json`, `raw` or `cut="before_answer"` the fault stands in place of the operation, which is carried
    out all the same when `processed` is true: a start whose answer is lost. Otherwise the operation's normal answer is what
    gets further `headers`, is delayed, dripped or cut.

    - `status`: 200 where only a body is given. `reason`: the words of the status line.
    - `body`, `json`: the body; an error status without one gets the API's Error object.
    - `delay_seconds`: the pause before the first byte. `drip_seconds`: the pause between single bytes, headers included.
    - `cut`: where the connection ends; `in_body` after `cut_after_bytes` bytes of the body, by default after half of it.
    - `stall_after_bytes`: after so many bytes of the body the connection stays open and silent, until the client goes.
    - `framing`: what tells where the body ends: `length` (Content-Length), `chunked` (its chunks) or `close` (the end of the
      connection). Cut or stalled, a chunked body has no last chunk, however many of its bytes are sent.
    - `raw`: these bytes go to the socket as they are, then the connection ends.

    Raises ValueError for parts that exclude each other.
    """

    status: int | None = None
    reason: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | bytes | None = None
    json: object | None = None
    delay_seconds: float = 0.0
    drip_seconds: float = 0.0
    cut: Cut | None = None
    cut_after_bytes: int | None = None
    stall_after_bytes: int | None = None
    framing: Framing = "length"
    raw: bytes | None = None
    processed: bool = False

    def __post_init__(self) -> None:
        if self.stall_after_bytes is not None and self.cut is not None:
            raise ValueError("stall_after_bytes leaves the connection open and cut ends it; give one of them")
        if self.raw is not None and (self.stall_after_bytes is not None or self.framing != "length"):
            raise ValueError("raw is written as it is; stall_after_bytes and framing do not go with it")

    @property
    def stands_in(self) -> bool:
        """Whether the fault takes the place of the normal answer."""
        parts = (self.status, self.body, self.json, self.raw)
        return any(part is not None for part in parts) or self.cut == "before_answer"

    @property
    def runs_operation(self) -> bool:
        """Whether the operation is carried out in spite of the fault."""
        return self.processed or not self.stands_in

    @property
    def by_hand(self) -> bool:
        """Whether the answer must be written to the socket byte by byte instead of by the HTTP library."""
        own_framing = any(name.lower() in FRAMING_HEADERS for name in self.headers)
        ends_otherwise = self.cut is not None or self.stall_after_bytes is not None or self.framing != "length"
        return self.raw is not None or ends_otherwise or self.drip_seconds > 0 or own_framing

    def kept_bytes(self, size: int) -> int | None:
        """Return how many bytes of a body of this size are sent, None where all of it is and what marks its end."""
        if self.cut == "in_body":
            return size // 2 if self.cut_after_bytes is None else self.cut_after_bytes
        return self.stall_after_bytes

    def shape(self, normal: Answer | None) -> Answer:
        """Return the answer to send, given the operation's normal one where it was carried out."""
        if self.status is None and self.body is None and self.json is None and normal is not None:
            changed = {name.lower() for name in self.headers}
            kept = {name: text for name, text in normal.headers.items() if name.lower() not in changed}
            return replace(normal, headers={**kept, **self.headers}, reason=self.reason or normal.reason)
        status = 200 if self.status is None else self.status
        content, content_type = self._content(status)
        has_type = any(name.lower() == "content-type" for name in self.headers)
        headers = {**self.headers} if has_type or not content_type else {"Content-Type": content_type, **self.headers}
        return Answer(status=status, reason=self.reason, headers=headers, body=content)

    def _content(self, status: int) -> tuple[bytes, str]:
        if self.json is not None:
            return json.dumps(self.json, ensure_ascii=False).encode(), "application/json"
        if isinstance(self.body, bytes):
            return self.body, "application/octet-stream"
        if self.body is not None:
            return self.body.encode(), "text/plain; charset=utf-8"
        if status >= 400:
            return json.dumps({"error": self.reason or phrase_of(status)}).encode(), "application/json"
        return b"", ""


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The turns to come, and what all after them are."""

    turns: deque[Fault | None]
    then: Fault | None

    @property
    def is_over(self) -> bool:
        return not self.turns and self.then is None

    def next_turn(self) -> Fault | None:
        return self.turns.popleft() if self.turns else self.then


class FaultScript:
    """The planned turns of each operation, for all requests and for those of one domain; safe to change from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: dict[tuple[str, str | None], _Plan] = {}

    def plan(
        self, operation: str, turns: Iterable[Fault | None], *, then: Fault | None = None, domain: str | None = None
    ) -> None:
        """Plan the next turns of an operation, in place of what was planned; `then` is for every turn after them.

        With `domain` only that domain's requests take these turns, and they take them before any that are planned for all.
        Raises ValueError for an unknown operation, and for a domain where an operation has none.
        """
        if not is_operation(operation):
            raise ValueError(f"unknown operation {operation!r}; there are {', '.join(OPERATIONS)}")
        if domain is not None and operation not in DOMAIN_OPERATIONS:
            raise ValueError(f"{operation} has no domain; {', '.join(sorted(DOMAIN_OPERATIONS))} have")
        with self._lock:
            self._plans[operation, _key(domain)] = _Plan(turns=deque(turns), then=then)

    def next_turn(self, operation: str, domain: str | None = None) -> Fault | None:
        """Take the fault of this turn; None is a normal turn."""
        with self._lock:
            own = None if domain is None else self._plans.get((operation, _key(domain)))
            plan = self._plans.get((operation, None)) if own is None or own.is_over else own
            return plan.next_turn() if plan else None


def _key(domain: str | None) -> str | None:
    return None if domain is None else same_domain(domain)
