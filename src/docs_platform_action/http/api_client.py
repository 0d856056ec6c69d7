"""The API's side of the HTTP client: the base URL, the key, and responses in JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ..addresses import is_web_address
from ..text import as_sentence, pluralize
from .client import HttpClient, Response
from .faults import NetworkError, request_id_of
from .retry import read_retry_after
from .transport import Request, Timeouts

MAX_RESPONSE_BYTES: Final = 1024 * 1024

_AS_GIVEN: Final = ("jobId", "bundleUrl", "prLink")
"""Fields that are used as the API gave them.

They may share characters with the key, such as the organization's id.
"""


@dataclass(frozen=True, kw_only=True)
class ApiResponse:
    """A response of the API.

    `body` is the JSON value without the key, `None` if it is not JSON. `description` is for people.
    """

    status: int
    headers: Mapping[str, str]
    body: object
    description: str
    is_web_page: bool
    retry_after_seconds: float | None
    request_id: str | None


class ApiClient:
    """Sends requests to one base URL, and the key only there. `host` includes the port."""

    def __init__(self, client: HttpClient, *, base_url: str, key: str) -> None:
        self._client = client
        self._key = key
        self.redactor = client.redactor
        self.base_url = base_url
        self.host = urlsplit(base_url).netloc

    def quote(self, error_text: str | None) -> tuple[str, ...]:
        """Return the text of an error response as a sentence, or nothing if there is no text."""
        if not error_text:
            return ()
        return (as_sentence(f'The API at {self.host} said: "{error_text}"'),)

    def field_with_key(self, body: Mapping[str, object]) -> str | None:
        """Return the name of a field that must be used as it is, but contains the whole key."""
        for name in _AS_GIVEN:
            if self.redactor.has_key(str(body.get(name))):
                return name
        return None

    def send(self, request: Request, timeouts: Timeouts) -> ApiResponse:
        """Send a request and return the response.

        Raises `NetworkError`, `UnusableServerError` and `Cancelled`.
        """
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        with self._client.send(
            request, timeouts, base_url=self.base_url, headers=headers
        ) as response:
            is_success = 200 <= response.status < 300
            content = _read_content(response, is_success=is_success)
        body = self._read_json(content, is_success=is_success)
        if isinstance(body, dict):
            self._hide_link(body)  # before anything of the response is shown
        content_type = _content_type_of(response.headers)
        return ApiResponse(
            status=response.status,
            headers=response.headers,
            body=body,
            description=_describe(content, content_type, response.headers.get("Content-Encoding")),
            is_web_page=body is None and _is_web_page(content, content_type),
            retry_after_seconds=read_retry_after(response.headers, self._client.clock.now()),
            request_id=request_id_of(response.headers),
        )

    def _hide_link(self, body: Mapping[str, object]) -> None:
        link = body.get("bundleUrl")
        if isinstance(link, str) and is_web_address(link):
            self.redactor.add_link(link)

    def _read_json(self, content: bytes, *, is_success: bool) -> object:
        try:
            value = json.loads(content.decode("utf-8-sig", "surrogateescape"))
            body = self._without_key(value)
        except (ValueError, RecursionError):
            return None
        if is_success and isinstance(value, dict):
            for name in _AS_GIVEN:
                if isinstance(value.get(name), str):
                    body[name] = value[name]
        return body

    def _without_key(self, value: Any) -> Any:
        """Hide the key where the server echoes it in a JSON value."""
        if isinstance(value, str):
            if not self.redactor.has_key(value):
                return value  # a short key may be part of a word
            return self.redactor.hide_key(value)
        if isinstance(value, list):
            return [self._without_key(item) for item in value]
        if isinstance(value, dict):
            return {name: self._without_key(item) for name, item in value.items()}
        return value


def _read_content(response: Response, *, is_success: bool) -> bytes:
    try:
        content = response.read(MAX_RESPONSE_BYTES + 1)
    except NetworkError:
        if is_success:
            raise
        return b""  # the body of an error only explains it
    if is_success and len(content) > MAX_RESPONSE_BYTES:
        raise NetworkError(
            f"The API's response is larger than {MAX_RESPONSE_BYTES // 1024**2} MiB",
            maybe_processed=True,
        )
    return content


def _content_type_of(headers: Mapping[str, str]) -> str:
    """Return the content type without its parameters, such as `charset`."""
    content_type = headers.get("Content-Type") or "no content type"
    return content_type.partition(";")[0]


def _describe(content: bytes, content_type: str, coding: str | None) -> str:
    description = f"{content_type}, {pluralize(len(content), 'byte')}"
    if coding:
        description += f", Content-Encoding {coding}"
    return description


def _is_web_page(content: bytes, content_type: str) -> bool:
    if "html" in content_type.lower():
        return True
    start = content[:100].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html"))
