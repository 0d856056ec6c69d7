"""HTTP responses as data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import responses
from typing import Literal

Content = bytes | memoryview

# what marks the end of a body (RFC 9112, section 6.3)
Framing = Literal["length", "chunked", "close"]


@dataclass(frozen=True, kw_only=True)
class Response:
    """Status, headers and body.

    Without `reason`, the status line has the status's standard phrase.
    """

    status: int = 200
    reason: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Content = b""

    @property
    def phrase(self) -> str:
        """The reason phrase of the status line."""
        if self.reason is None:
            return responses.get(self.status, "")
        return self.reason

    def head_bytes(self, framing: Framing = "length") -> bytes:
        """Return the status line, the headers and the blank line.

        Framing headers that are set are kept.
        """
        lines = [f"HTTP/1.1 {self.status} {self.phrase}"]
        lines += [f"{name}: {text}" for name, text in self.headers.items()]
        present = {name.lower() for name in self.headers}
        if "content-length" not in present and "transfer-encoding" not in present:
            if framing == "length":
                lines.append(f"Content-Length: {len(self.body)}")
            elif framing == "chunked":
                lines.append("Transfer-Encoding: chunked")
        if "connection" not in present:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def json_response(
    value: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with a JSON body."""
    body = json.dumps(value, ensure_ascii=False).encode()
    return Response(
        status=status, headers={"Content-Type": "application/json", **(headers or {})}, body=body
    )


def error_response(
    status: int, message: str, *, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response with the API's Error object."""
    return json_response({"error": message}, status=status, headers=headers)
