"""One HTTP answer as data, before it goes over the wire."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal

from admin_api_simulator.content import Content, as_bytes

Framing = Literal["length", "chunked", "close"]  # what tells where a body ends, RFC 9112, section 6.3


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Status, headers and body; `reason` is the standard phrase of the status unless given."""

    status: int = 200
    reason: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Content = b""

    @property
    def phrase(self) -> str:
        """The reason to send in the status line."""
        return phrase_of(self.status) if self.reason is None else self.reason

    def to_bytes(self) -> bytes:
        """Return the answer as HTTP/1.1, on a connection that closes after it; own framing headers are kept."""
        return self.head_bytes() + as_bytes(self.body)

    def head_bytes(self, framing: Framing = "length") -> bytes:
        """Return the status line, the headers and the blank line."""
        given = {name.lower() for name in self.headers}
        lines = [f"HTTP/1.1 {self.status} {self.phrase}", *(f"{name}: {text}" for name, text in self.headers.items())]
        if framing != "close" and "content-length" not in given and "transfer-encoding" not in given:
            lines.append("Transfer-Encoding: chunked" if framing == "chunked" else f"Content-Length: {len(self.body)}")
        if "connection" not in given:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def phrase_of(status: int) -> str:
    """Return the standard reason phrase of a status, empty for a status without one."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def json_answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer with a JSON body."""
    body = json.dumps(value, ensure_ascii=False).encode()
    return Answer(status=status, headers={"Content-Type": "application/json", **(headers or {})}, body=body)


def error_answer(status: int, message: str, *, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer with the API's Error object."""
    return json_answer({"error": message}, status=status, headers=headers)
