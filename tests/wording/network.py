"""The network.

What went wrong on the way to a server: connections, TLS, proxies, and responses that are incomplete or not HTTP. An error becomes
a part of what [the API](api.md) says.
"""

import gzip
import ssl
import threading
from unittest.mock import patch

from docs_platform_action.errors import Unavailable
from docs_platform_action.http.faults import NetworkError, translated
from docs_platform_action.http.retry import TransientError
from docs_platform_action.http.transport import Request, Timeouts, Transport
from docs_platform_action.http.trust import UnusableServerError, check_proxy, untrusted_certificate
from tests.unit.fakes import BASE_URL, FakeTransport, http_client
from tests.unit.http.test_faults import ERRORS, message_of
from tests.wording.api import text_of
from tests.wording.page import Sections

SERVER, ADDRESS = "the API at api.example.com", "`base-url`"
CERTIFICATES = {"expired": 10, "of another host": 62, "of an unknown authority": 18}


def sections() -> Sections:
    """Return the errors, and the advice about TLS and proxies."""
    messages = {name: message_of(name) for name in ERRORS}
    return {
        "No complete response": {
            "\n".join(name for name in messages if messages[name] == message): message
            for message in dict.fromkeys(messages.values())
        }
        | {"Damaged compression": _damaged(), "The time is up": _given_up(), "No more threads": _without_threads()},
        "A certificate that is not trusted": {
            f"{name}{', of a proxy' * is_proxy}": _untrusted(code, is_proxy=is_proxy)
            for name, code in CERTIFICATES.items()
            for is_proxy in (False, True)
        },
        "The likely cause": {
            "A server without TLS": _advice(is_without_tls=True),
        },
        "A proxy that cannot be used": {
            "An address that is not valid": _unusable("proxy:port"),
            "A SOCKS proxy": _unusable("socks5://proxy.example.com:1080"),
            "A proxy that requires other credentials": _refused(),
        },
    }


def _damaged() -> str:
    transport = FakeTransport(200, gzip.compress(b"{}")[:-1], {"Content-Encoding": "gzip"})
    try:
        with http_client(transport).send(Request(method="GET", url=BASE_URL), Timeouts(), headers={}) as response:
            response.read(100)
    except NetworkError as error:
        return error.message
    return "read"


def _given_up() -> str:
    transport = FakeTransport()
    http_client(transport).send(Request(method="GET", url=BASE_URL), Timeouts(), headers={}).__enter__()
    exchange = transport.requests[0].exchange
    after = exchange.give_up().message
    exchange.request.maybe_processed = False
    return f"{exchange.give_up().message}\n{after}"


def _without_threads() -> str:
    with patch.object(threading.Thread, "start", side_effect=RuntimeError):
        try:
            http_client(Transport(ssl.create_default_context())).send(
                Request(method="GET", url=BASE_URL), Timeouts(), headers={}
            ).__enter__()
        except TransientError as error:
            return f"{error.message}\n{error.advice['cause']}\n{error.advice['remedy']}"
    return "sent"


def _untrusted(code: int, *, is_proxy: bool) -> str:
    cause = ssl.SSLCertVerificationError(1, "certificate verify failed")
    cause.verify_message, cause.verify_code = "an example of a reason.", code
    error = untrusted_certificate(cause, is_proxy_error=is_proxy)
    return "\n".join(text_of(error.failure(Unavailable, SERVER, ADDRESS)))


def _advice(**flags: bool) -> str:
    advice = NetworkError("an example of an error", maybe_processed=False, **flags).advice_for(ADDRESS)
    assert advice is not None
    return f"{advice['cause']}\n{advice['remedy']}"


def _unusable(address: str) -> str:
    try:
        check_proxy(address)
    except UnusableServerError as error:
        return "\n".join(text_of(error.failure(Unavailable, SERVER, ADDRESS)))
    return "used"


def _refused() -> str:
    refusal = OSError("Tunnel connection failed: 407 Proxy Authentication Required")
    error = translated(refusal, "api.example.com", through_proxy=True, maybe_processed=False)
    assert isinstance(error, UnusableServerError)
    return "\n".join(text_of(error.failure(Unavailable, SERVER, ADDRESS)))
