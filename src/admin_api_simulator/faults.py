"""Scripted faults of operations."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.client import responses
from typing import Literal, get_args

from admin_api_simulator.recording import normalized
from admin_api_simulator.responses import Framing, Response

Operation = Literal[
    "start_export",
    "read_export",
    "make_bundle",
    "read_agent_job",
    "download",
    "list_deployments",
    "read_deployment",
    "compare_commits",
]
Cut = Literal["before_response", "in_headers", "in_body"]

OPERATIONS: tuple[str, ...] = get_args(Operation)
GITHUB_OPERATIONS = frozenset({"list_deployments", "read_deployment", "compare_commits"})
DOMAIN_OPERATIONS = frozenset(OPERATIONS) - GITHUB_OPERATIONS - {"read_agent_job"}
CUTS: tuple[str, ...] = get_args(Cut)
FRAMINGS: tuple[str, ...] = get_args(Framing)
FRAMING_HEADERS = frozenset(
    {"content-length", "transfer-encoding", "content-encoding", "connection"}
)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault of one turn of an operation.

    With `status`, `body`, `json`, `raw` or `cut="before_response"`, it replaces the operation, which still runs if `processed` is
    true: then only its response is lost. Otherwise it changes the operation's normal response.

    - `status`: by default 200. `reason`: the reason phrase of the status line. `headers`: replaced or added headers.
    - `body`, `json`: the body. An error status without a body gets the API's Error object.
    - `delay_seconds`: the pause before the first byte. `drip_seconds`: the pause between single bytes, headers included.
    - `cut`: where the connection closes; `in_body` means after `cut_after_bytes` of the body, by default after half of it.
    - `stall_after_bytes`: after so many bytes of the body nothing more is sent; the connection stays open.
    - `framing`: what marks the end of the body: `length` (Content-Length), `chunked` (the last chunk) or `close` (the end of
      the connection). A chunked body that is cut or stalled has no last chunk.
    - `raw`: bytes that are sent instead of a response; then the connection closes.

    Raises ValueError for fields that exclude each other.
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
            raise ValueError(
                "stall_after_bytes keeps the connection open, but cut closes it; use one of them"
            )
        if self.raw is not None and (
            self.stall_after_bytes is not None or self.framing != "length"
        ):
            raise ValueError("raw cannot be combined with stall_after_bytes or framing")
        if self.cut not in (None, *CUTS) or self.framing not in FRAMINGS:
            raise ValueError(
                f"cut is one of {', '.join(CUTS)}, and framing one of {', '.join(FRAMINGS)}"
            )
        if self.status is not None and not 200 <= self.status <= 599:
            raise ValueError(f"{self.status} is not a status from 200 to 599")

    @property
    def replaces_response(self) -> bool:
        """Whether the fault replaces the normal response."""
        parts = (self.status, self.body, self.json, self.raw)
        return any(part is not None for part in parts) or self.cut == "before_response"

    @property
    def runs_operation(self) -> bool:
        """Whether the operation runs."""
        return self.processed or not self.replaces_response

    @property
    def needs_raw_writing(self) -> bool:
        """Whether the HTTP library cannot write the response."""
        own_framing = any(name.lower() in FRAMING_HEADERS for name in self.headers)
        ends_otherwise = (
            self.cut is not None or self.stall_after_bytes is not None or self.framing != "length"
        )
        return self.raw is not None or ends_otherwise or self.drip_seconds > 0 or own_framing

    def kept_bytes(self, size: int) -> int | None:
        """Return how many bytes of the body are sent, or None for the complete body and its end."""
        if self.cut == "in_body":
            return size // 2 if self.cut_after_bytes is None else self.cut_after_bytes
        return self.stall_after_bytes

    def apply(self, normal: Response | None) -> Response:
        """Return the response to send, given the normal one if the operation ran."""
        if self.status is None and self.body is None and self.json is None and normal is not None:
            replaced = {name.lower() for name in self.headers}
            kept = {
                name: text for name, text in normal.headers.items() if name.lower() not in replaced
            }
            return replace(
                normal, headers={**kept, **self.headers}, reason=self.reason or normal.reason
            )
        status = 200 if self.status is None else self.status
        content, content_type = self._content(status)
        has_type = any(name.lower() == "content-type" for name in self.headers)
        headers = (
            {**self.headers}
            if has_type or not content_type
            else {"Content-Type": content_type, **self.headers}
        )
        return Response(status=status, reason=self.reason, headers=headers, body=content)

    def _content(self, status: int) -> tuple[bytes, str]:
        if self.json is not None:
            return json.dumps(self.json, ensure_ascii=False).encode(), "application/json"
        if isinstance(self.body, bytes):
            return self.body, "application/octet-stream"
        if self.body is not None:
            return self.body.encode(), "text/plain; charset=utf-8"
        if status >= 400:
            return json.dumps(
                {"error": self.reason or responses.get(status, "")}
            ).encode(), "application/json"
        return b"", ""


class FaultScript:
    """The planned turns of each operation, for all requests or for those of one domain."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str | None], Iterator[Fault | None]] = {}

    def plan(
        self,
        operation: str,
        turns: Iterable[Fault | None],
        *,
        then: Fault | None = None,
        domain: str | None = None,
    ) -> None:
        """Replace the planned turns of an operation; `then` repeats after them.

        The turns of a `domain` take precedence over those for all. Raises ValueError for an unknown operation, and for a domain
        with an operation that has none.
        """
        if operation not in OPERATIONS:
            raise ValueError(f"unknown operation {operation!r}; use one of {', '.join(OPERATIONS)}")
        if domain is not None and operation not in DOMAIN_OPERATIONS:
            raise ValueError(
                f"{operation} has no domain; use one of {', '.join(sorted(DOMAIN_OPERATIONS))}"
            )
        self._plans[operation, _key(domain)] = itertools.chain(
            turns, itertools.repeat(then) if then else ()
        )

    def next_turn(self, operation: str, domain: str | None = None) -> Fault | None:
        """Return the fault of this turn, or None for a normal turn."""
        plans = [self._plans.get((operation, key), iter(())) for key in (_key(domain), None)]
        return next(itertools.chain(*plans), None)


def _key(domain: str | None) -> str | None:
    return None if domain is None else normalized(domain)
