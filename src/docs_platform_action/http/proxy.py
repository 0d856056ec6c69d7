"""Proxies that cannot be used, whatever is tried again."""

import contextlib
import re
from dataclasses import KW_ONLY, dataclass
from typing import Final

from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from ..errors import ActionError

_FORM: Final = (
    "Write HTTPS_PROXY as http://user:password@host:port, with special characters percent-encoded, or without user and password "
    "if the proxy needs none. If the host can be reached without a proxy, add it to NO_PROXY."
)


@dataclass(eq=False, repr=False)
class UnusableProxyError(Exception):
    """The environment names a proxy that cannot be used. `problem` is a sentence, or empty if the `cause` says all."""

    problem: str
    _: KW_ONLY
    cause: str
    remedy: str = _FORM
    proxy: str = "the proxy"

    def failure(self, kind: type[ActionError], server: str, _address: str) -> ActionError:
        """Return the failure for a server, such as "the API at api.example.com"."""
        details = (self.problem,) if self.problem else ()
        return kind(f"{server} cannot be reached through {self.proxy}", details=details, cause=self.cause, remedy=self.remedy)


def check_proxy(address: str) -> str:
    """Return a proxy's address with its scheme. Raises `UnusableProxyError`, which does not show the address."""
    url = address if "://" in address else f"http://{address.removeprefix('//')}"
    if re.match(r"socks[0-9a-z]*://", url, re.IGNORECASE):
        raise UnusableProxyError(
            "",
            cause="An environment variable (ALL_PROXY or HTTPS_PROXY) names a SOCKS proxy. SOCKS proxies are not supported.",
            remedy="Set HTTPS_PROXY to an HTTP proxy. If the host can be reached without a proxy, add it to NO_PROXY.",
            proxy="a SOCKS proxy",
        )
    with contextlib.suppress(LocationParseError):
        parsed = parse_url(url)
        is_proxy = parsed.scheme in {"http", "https"} and parsed.host and parsed.port != 0
        # a path does not matter; but behind a slash, there may be the rest of a password, or of a mistyped scheme
        is_alone = parsed.request_uri == "/" or (address == url and "@" not in parsed.request_uri)
        if is_proxy and is_alone and parsed.fragment is None and address.isprintable() and "\\" not in address:
            return url
    raise UnusableProxyError(
        "The proxy address in the environment is not valid.",
        cause="The value of HTTPS_PROXY (or ALL_PROXY) is not the address of an HTTP proxy.",
    )
