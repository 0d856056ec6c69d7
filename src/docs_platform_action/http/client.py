"""One request and its answer: sent byte for byte, bounded in size and time, and read as JSON."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import select_proxy

from .. import __version__
from ..errors import Cancelled
from ..models import read_error
from ..redaction import SHORTEST_TO_RECOGNISE, Redactor
from .connection import Exchanges, Guard, GuardedRequest
from .faults import FAULTS, NetworkError, fault_of, refuse_socks, request_id_of

LARGEST_ANSWER_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How long an exchange may take, in seconds: to connect, between two bytes of the answer, and all in all."""

    connect_seconds: float = 10.0
    idle_seconds: float = 30.0
    total_seconds: float = 60.0

    def within(self, total_seconds: float) -> "Bounds":
        """Make the bounds no longer than this."""
        return Bounds(
            connect_seconds=min(self.connect_seconds, total_seconds),
            idle_seconds=min(self.idle_seconds, total_seconds),
            total_seconds=min(self.total_seconds, total_seconds),
        )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the API answered. `body` is the JSON's value, or `None` where there is no JSON; `size` is in bytes."""

    status: int
    headers: Mapping[str, str]
    body: object
    size: int
    request_id: str | None

    @property
    def said(self) -> str | None:
        """The text of an error answer."""
        return read_error(self.body)


class Exchanger:
    """Sends requests to one base URL with one key.

    The adapter is requests' own seam below its sessions: nothing there follows a redirect, reads a `.netrc`, keeps a cookie or
    looks at the environment. `proxies` are those that requests would take from the environment; `exchanges` can end all at once.
    `names` are texts that are not hidden in answers, though they may be part of the key.
    """

    def __init__(
        self,
        *,
        adapter: BaseAdapter,
        base_url: str,
        key: str,
        proxies: Mapping[str, str],
        exchanges: Exchanges,
        names: Iterable[str] = (),
    ) -> None:
        self._adapter = adapter
        self._base_url = base_url
        self._key = key
        self._redactor = Redactor([key], shortest=SHORTEST_TO_RECOGNISE, names=names)
        self._proxies = dict(proxies)
        self._exchanges = exchanges

    @property
    def base_url(self) -> str:
        """The API's address as `base-url` gives it; it holds no credentials."""
        return self._base_url

    @property
    def host(self) -> str:
        """The API's host, with its port."""
        return urlsplit(self._base_url).netloc

    def exchange(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None,
        bounds: Bounds,
        *,
        fresh: bool = False,
        on_connected: Callable[[], None] = lambda: None,
    ) -> Answer:
        """Send one request and take its answer in. `path` follows the base URL as it is; `fresh` asks for a new connection.

        `on_connected` hears that there is a connection: from then on the server may see the request. Raises `NetworkError`,
        `UntrustedError`, `SocksProxyError`, and `Cancelled` once the exchanges are stopped or aborted.
        """
        refuse_socks(self._base_url, self._proxies)
        guard = Guard(on_connected, fresh=fresh)
        with self._exchanges.watch(guard, bounds.total_seconds):
            try:
                response = self._adapter.send(
                    self._prepare(method, path, body, guard),
                    stream=True,
                    timeout=(bounds.connect_seconds, bounds.idle_seconds),
                    proxies=self._proxies,
                )
                with response:
                    content = _read_bounded(response)
                content_json = self._read_json(content)
                if guard.expired and content_json is None:
                    raise TimeoutError  # a body without a length seems whole when the guard ends its connection
            except FAULTS as error:
                raise self._fault(error, guard, bounds) from error
        headers: CaseInsensitiveDict[str] = CaseInsensitiveDict(
            {name: self._scrub(value) for name, value in response.headers.items()}
        )
        return Answer(
            status=response.status_code,
            headers=headers,
            body=content_json,
            size=len(content),
            request_id=request_id_of(headers),
        )

    def _prepare(self, method: str, path: str, body: Mapping[str, object] | None, guard: Guard) -> GuardedRequest:
        request = GuardedRequest(guard)
        request.prepare(
            method=method,
            url=self._base_url,
            headers={
                "Authorization": f"Bearer {self._key}",
                "Accept": "application/json",
                "Accept-Encoding": "identity",
                "User-Agent": f"docs-platform-action/{__version__}",
            },
            json=body,
        )
        # set here, because `prepare` would decode what is percent-encoded, and with it the dots of an id such as `..`
        request.url = self._base_url + path
        return request

    def _fault(self, error: Exception, guard: Guard, bounds: Bounds) -> Exception:
        if self._exchanges.cancelled:
            return Cancelled("cancelled")
        if isinstance(error, _AnswerTooLargeError):
            return NetworkError(f"The API's answer is larger than {LARGEST_ANSWER_BYTES // 1024} KiB", sent=True)
        if guard.expired and not guard.tried:
            return NetworkError(f"The API's answer took longer than {bounds.total_seconds:.3g} s", sent=guard.connected)
        through_proxy = select_proxy(self._base_url, self._proxies) is not None
        return fault_of(error, guard, host=self.host, through_proxy=through_proxy)

    def _read_json(self, content: bytes) -> object:
        try:
            return self._scrub(json.loads(content.decode("utf-8-sig", "surrogateescape"), parse_int=_whole_number))
        except (ValueError, RecursionError):
            return None

    def _scrub(self, value: Any) -> Any:
        """Hide the key wherever a server echoes it."""
        if isinstance(value, str):
            return self._redactor.hide(value)
        if isinstance(value, list):
            return [self._scrub(item) for item in value]
        if isinstance(value, dict):
            return {self._scrub(name): self._scrub(item) for name, item in value.items()}
        return value


class _AnswerTooLargeError(OSError):
    """The answer is larger than anything that the API sends."""


def _read_bounded(response: requests.Response) -> bytes:
    content = bytearray()
    for chunk in response.iter_content(64 * 1024):
        content += chunk
        if len(content) > LARGEST_ANSWER_BYTES:
            raise _AnswerTooLargeError
    return bytes(content)


def _whole_number(digits: str) -> int | float:
    """Read a JSON integer; one of so many digits that Python refuses it counts nothing, and is as good as infinite."""
    return int(digits) if len(digits) <= 400 else float("inf")
