"""The API's side of the HTTP client: the base URL, the key, and responses in JSON."""

import contextlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from ..http.client import HttpClient, Request, Timeouts
from ..http.faults import NetworkError, request_id_of
from ..models import parse_time

MAX_RESPONSE_BYTES: Final = 1024 * 1024

_AS_GIVEN: Final = ("jobId", "bundleUrl", "prLink")
"""Fields that are used as the API gave them: they may share characters with the key, such as the organization's id."""


@dataclass(frozen=True, kw_only=True)
class ApiResponse:
    """A response of the API. `body` is the JSON value without the key, or `None` if it is not JSON. `size` is in bytes.

    `unknown_coding` is the `Content-Encoding` of a body that could not be decoded.
    """

    status: int
    headers: Mapping[str, str]
    body: object
    size: int
    request_id: str | None
    unknown_coding: str = ""


class ApiClient:
    """Sends requests to one base URL, and the key only there. `host` includes the port."""

    def __init__(self, client: HttpClient, *, base_url: str, key: str) -> None:
        self._client = client
        self._key = key
        self.base_url = base_url
        self.host = urlsplit(base_url).netloc

    def quote(self, error_text: str | None) -> tuple[str, ...]:
        """Return the text of an error response as a sentence, or nothing if there is no text."""
        return (f'The API at {self.host} said: "{error_text}"',) if error_text else ()

    def field_with_key(self, body: Mapping[str, object]) -> str | None:
        """Return the name of a field that must be used as it is, but contains the whole key."""
        fields = ((name, body.get(name)) for name in _AS_GIVEN)
        return next(
            (name for name, value in fields if isinstance(value, str) and self._client.redactor.has_whole_key(value)), None
        )

    def show_job_id(self, body: Mapping[str, object]) -> None:
        """Show the id of a job that the platform has started from now on, even if it shares characters with the key."""
        if isinstance(job_id := body.get("jobId"), str):
            self._client.redactor.show([job_id])

    def send(self, request: Request, timeouts: Timeouts, *, new_connection: bool = False) -> ApiResponse:
        """Send a request and return the response.

        Raises `NetworkError`, `UntrustedCertificateError`, `UnusableProxyError`, and `Cancelled` once requests are stopped.
        """
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        with self._client.send(
            request, timeouts, base_url=self.base_url, headers=headers, new_connection=new_connection
        ) as response:
            is_success, content = 200 <= response.status < 300, b""
            # the body of an error only explains it
            with contextlib.nullcontext() if is_success else contextlib.suppress(NetworkError):
                content = response.read(MAX_RESPONSE_BYTES + 1)
            if len(content) > MAX_RESPONSE_BYTES and is_success:
                raise NetworkError(f"The API's response is larger than {MAX_RESPONSE_BYTES // 1024} KiB", maybe_processed=True)
        return ApiResponse(
            status=response.status,
            headers=response.headers,
            body=self._read_json(content),
            size=len(content),
            request_id=request_id_of(response.headers),
            unknown_coding=response.unknown_coding,
        )

    def _read_json(self, content: bytes) -> object:
        try:
            text = content.decode("utf-8-sig", "surrogateescape")
            # Python does not convert integers of too many digits
            return self._without_key(json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= 400 else math.inf))
        except (ValueError, RecursionError):
            return None

    def _without_key(self, value: Any) -> Any:
        """Hide the key where the server echoes it in a JSON value, but in dates and in the fields that are used as given."""
        if isinstance(value, str):
            hidden = self._client.redactor.hide_keys(value)
            return value if hidden != value and parse_time(value) is not None else hidden
        if isinstance(value, list):
            return [self._without_key(item) for item in value]
        if isinstance(value, dict):
            return {
                self._without_key(name): item if name in _AS_GIVEN and isinstance(item, str) else self._without_key(item)
                for name, item in value.items()
            }
        return value
