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

    With `status`, `body`, `json`, `raw` or `cut="before_response"`, it replaces the operation,
    which still runs if `processed` is true: then only its response is lost. Otherwise it changes
    the operation's normal response.

    - `status`: by default 200. `reason`: the reason phrase of the status line.
    - `headers`: replaced or added headers.
    - `body`, `json`: the body. An error status without a body gets the API's Error object.
    - `delay_seconds`: the pause before the first byte.
    - `drip_seconds`: the pause between single bytes, headers included.
    - `cut`: where the connection closes; `in_body` means after `cut_after_bytes` of the body, by
      default after half of it.
    - `stall_after_bytes`: after so many bytes of the body nothing more is sent; the connection
      stays open.
    - `framing`: what marks the end of the body: `length` (Content-Length), `chunked` (the last
      chunk) or `close` (the end of the connection). A chunked body that is cut or stalled has no
      last chunk.
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
        is_framed = self.stall_after_bytes is not None or self.framing != "length"
        if self.raw is not None and is_framed:
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
        if self.raw is not None or self.cut == "before_response":
            return True
        return self._has_content

    @property
    def runs_operation(self) -> bool:
        """Whether the operation runs."""
        return self.processed or not self.replaces_response

    @property
    def needs_raw_writing(self) -> bool:
        """Whether the HTTP library cannot write the response."""
        if self.raw is not None or self.drip_seconds > 0:
            return True
        if self.cut is not None or self.stall_after_bytes is not None or self.framing != "length":
            return True
        return any(name.lower() in FRAMING_HEADERS for name in self.headers)

    def kept_bytes(self, size: int) -> int | None:
        """Return how many bytes of the body are sent, or None for the complete body and its end."""
        if self.cut != "in_body":
            return self.stall_after_bytes
        if self.cut_after_bytes is None:
            return size // 2
        return self.cut_after_bytes

    def apply(self, normal: Response | None) -> Response:
        """Return the response to send, given the normal one if the operation ran."""
        if normal is not None and not self._has_content:
            return self._with_changed_headers(normal)
        status = 200 if self.status is None else self.status
        content, content_type = self._content(status)
        has_own_type = any(name.lower() == "content-type" for name in self.headers)
        headers = {}
        if content_type and not has_own_type:
            headers["Content-Type"] = content_type
        headers.update(self.headers)
        return Response(status=status, reason=self.reason, headers=headers, body=content)

    @property
    def _has_content(self) -> bool:
        return self.status is not None or self.body is not None or self.json is not None

    def _with_changed_headers(self, normal: Response) -> Response:
        changed = {name.lower() for name in self.headers}
        kept = {name: text for name, text in normal.headers.items() if name.lower() not in changed}
        headers = {**kept, **self.headers}
        return replace(normal, headers=headers, reason=self.reason or normal.reason)

    def _content(self, status: int) -> tuple[bytes, str]:
        """Return the body and its media type."""
        if self.json is not None:
            return json.dumps(self.json, ensure_ascii=False).encode(), "application/json"
        if isinstance(self.body, bytes):
            return self.body, "application/octet-stream"
        if self.body is not None:
            return self.body.encode(), "text/plain; charset=utf-8"
        if status >= 400:
            error = {"error": self.reason or responses.get(status, "")}
            return json.dumps(error).encode(), "application/json"
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

        The turns of a `domain` take precedence over those for all. Raises ValueError for an unknown
        operation, and for a domain with an operation that has none.
        """
        if operation not in OPERATIONS:
            raise ValueError(f"unknown operation {operation!r}; use one of {', '.join(OPERATIONS)}")
        if domain is not None and operation not in DOMAIN_OPERATIONS:
            raise ValueError(
                f"{operation} has no domain; use one of {', '.join(sorted(DOMAIN_OPERATIONS))}"
            )
        after_them = itertools.repeat(then) if then else ()
        self._plans[operation, _key(domain)] = itertools.chain(turns, after_them)

    def next_turn(self, operation: str, domain: str | None = None) -> Fault | None:
        """Return the fault of this turn, or None for a normal turn."""
        for key in (_key(domain), None):
            remaining = self._plans.get((operation, key), ())
            for turn in remaining:  # uses it up
                return turn
        return None


def _key(domain: str | None) -> str | None:
    return None if domain is None else normalized(domain)
