"""The network.

What went wrong on the way to a server: connections, TLS, proxies, and responses that are incomplete or not HTTP. An error becomes
a part of what [the API](api.md) says.
"""

import gzip

from docs_platform_action.errors import Unavailable
from docs_platform_action.http.client import Request, Timeouts
from docs_platform_action.http.faults import NetworkError, UntrustedCertificateError
from docs_platform_action.http.proxy import UnusableProxyError, check_proxy
from docs_platform_action.http.tls import handshake_advice
from tests.unit.fakes import BASE_URL, FakeAdapter, http_client
from tests.unit.http.test_faults import ERRORS, TUNNELING, fetch, message_of, wrapped
from tests.unit.http.test_tls import REASONS
from tests.wording.api import text_of
from tests.wording.page import Sections

SERVER, ADDRESS = "the API at api.example.com", "`base-url`"
CERTIFICATES = {"expired": 10, "not valid yet": 9, "of another host": 62, "of another address": 64, "of an unknown authority": 18}


def sections() -> Sections:
    """Return the errors, and the advice about TLS and proxies."""
    messages = {name: message_of(name) for name in ERRORS}
    return {
        "No complete response": {
            "\n".join(name for name in messages if messages[name] == message): message
            for message in dict.fromkeys(messages.values())
        }
        | {"Damaged compression": _damaged()},
        "A certificate that is not trusted": {
            f"{name}{', of a proxy' * is_proxy}": _untrusted(code, is_proxy=is_proxy)
            for name, code in CERTIFICATES.items()
            for is_proxy in (False, True)
        },
        "A TLS handshake that fails": {
            f"{reason}{', of a proxy' * is_proxy}": _handshake(reason, is_proxy=is_proxy)
            for reason in REASONS
            for is_proxy in (False, True)
        },
        "A proxy that cannot be used": {
            "An address that is not valid": _unusable("proxy:port"),
            "A SOCKS proxy": _unusable("socks5://proxy.example.com:1080"),
            "A proxy that requires other credentials": _unusable(None),
        },
    }


def _damaged() -> str:
    adapter = FakeAdapter(200, gzip.compress(b"{}")[:-1], {"Content-Encoding": "gzip"})
    try:
        with http_client(adapter).send(Request(method="GET", url=BASE_URL), Timeouts(), headers={}) as response:
            response.read(100)
    except NetworkError as error:
        return error.message
    return "read"


def _untrusted(code: int, *, is_proxy: bool) -> str:
    error = UntrustedCertificateError("an example of a reason.", code=code, is_proxy_error=is_proxy)
    return "\n".join(text_of(error.failure(Unavailable, SERVER, ADDRESS)))


def _handshake(reason: str, *, is_proxy: bool) -> str:
    advice = handshake_advice(reason, ADDRESS, is_proxy=is_proxy)
    assert advice is not None
    return f"{advice['cause']}\n{advice['remedy']}"


def _unusable(address: str | None) -> str:
    try:
        if address is None:
            fetch(wrapped(OSError()), {**TUNNELING, "proxy_status": 407})
        else:
            check_proxy(address)
    except UnusableProxyError as error:
        return "\n".join(text_of(error.failure(Unavailable, SERVER, ADDRESS)))
    return "used"
