"""Responses in JSON, from which the key is hidden before anything of them is shown."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..addresses import is_web_address
from ..redaction import Redactor
from ..text import as_sentence, pluralize
from .client import HttpClient, Response
from .faults import NetworkError
from .headers import read_retry_after, request_id_of
from .reasons import read_error, read_error_of_success
from .transport import Exchange

MAX_RESPONSE_BYTES: Final = 1024 * 1024

_AS_GIVEN: Final = ("jobId", "bundleUrl", "prLink")
"""Fields that are used as the API gave them.

They may share characters with the key, such as the organization's id.
"""


@dataclass(frozen=True, kw_only=True)
class JsonResponse:
    """A response that should be JSON.

    `body` is the JSON value without the key, `None` if it is not JSON. `description` is for people.
    `field_with_key` names a field that must be used as it is, but contains the whole key.
    """

    host: str
    status: int
    headers: Mapping[str, str]
    body: object
    field_with_key: str | None = None
    description: str
    is_web_page: bool
    retry_after_seconds: float | None
    request_id: str | None

    @property
    def is_success(self) -> bool:
        """Whether the status is a 2xx."""
        return is_success(self.status)

    @property
    def quotes(self) -> tuple[str, ...]:
        """The reason that the server gave, in a sentence, if it gave one."""
        read = read_error_of_success if self.is_success else read_error
        return quote(self.host, read(self.body))


def quote(host: str, reason: str | None) -> tuple[str, ...]:
    """Return the reason that a server gave as a sentence, or nothing if there is none."""
    if not reason:
        return ()
    return (as_sentence(f'The API at {host} said: "{reason}"'),)


def is_success(status: int) -> bool:
    """Return whether a status is a 2xx."""
    return 200 <= status < 300


def request_json(client: HttpClient, exchange: Exchange) -> JsonResponse:
    """Send a request and return its response.

    Raises `NetworkError`, `TransientError`, `UnusableServerError` and `Cancelled`.
    """
    redactor = client.redactor
    with client.send(exchange) as response:
        content = _read_content(response)
    body = _read_body(content, redactor, is_success=is_success(response.status))
    if isinstance(body, dict):
        _hide_link(body, redactor)  # before anything of the response is shown
    content_type = _content_type_of(response.headers)
    return JsonResponse(
        host=exchange.host,
        status=response.status,
        headers=response.headers,
        body=body,
        field_with_key=_field_with_key(body, redactor),
        description=_describe(content, content_type, response.headers.get("Content-Encoding")),
        is_web_page=body is None and _is_web_page(content, content_type),
        retry_after_seconds=read_retry_after(response.headers, client.clock.now()),
        request_id=request_id_of(response.headers),
    )


def _read_content(response: Response) -> bytes:
    try:
        content = response.read(MAX_RESPONSE_BYTES + 1)
    except NetworkError:
        if is_success(response.status):
            raise
        return b""  # the body of an error only explains it
    if is_success(response.status) and len(content) > MAX_RESPONSE_BYTES:
        raise NetworkError(
            f"The API's response is larger than {MAX_RESPONSE_BYTES // 1024**2} MiB",
            was_sent=True,
        )
    return content


def _read_body(content: bytes, redactor: Redactor, *, is_success: bool) -> object:
    """Return the JSON value without the key, except in fields of a success that are as given."""
    try:
        value = json.loads(content.decode("utf-8-sig", "surrogateescape"))
        body = _without_key(value, redactor)
    except (ValueError, RecursionError):
        return None
    if is_success and isinstance(value, dict):
        for name in _AS_GIVEN:
            if isinstance(value.get(name), str):
                body[name] = value[name]
    return body


def _without_key(value: Any, redactor: Redactor) -> Any:
    """Hide the key where the server echoes it in a JSON value."""
    if isinstance(value, str):
        if not redactor.has_key(value):
            return value  # a short key may be part of a word
        return redactor.hide_key(value)
    if isinstance(value, list):
        return [_without_key(item, redactor) for item in value]
    if isinstance(value, dict):
        return {name: _without_key(item, redactor) for name, item in value.items()}
    return value


def _hide_link(body: Mapping[str, object], redactor: Redactor) -> None:
    link = body.get("bundleUrl")
    if isinstance(link, str) and is_web_address(link):
        redactor.add_link(link)


def _field_with_key(body: object, redactor: Redactor) -> str | None:
    if not isinstance(body, dict):
        return None
    for name in _AS_GIVEN:
        if redactor.has_key(str(body.get(name))):
            return name
    return None


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
