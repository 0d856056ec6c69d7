"""Why a TLS handshake failed, and what to do about it."""

import re
import ssl
from collections.abc import Sequence
from typing import Final

from ..errors import Advice

MISSING_CERTIFICATE: Final = "TLSV13_ALERT_CERTIFICATE_REQUIRED"  # which ends a handshake (RFC 8446, section 6.2)
CERTIFICATE_REQUIRED: Final = frozenset({MISSING_CERTIFICATE, "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_NO_CERTIFICATE"})
# what Python sees of a server without TLS: the first with OpenSSL 3.0, the second from 3.2 on
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})
_OLD_VERSION: Final = frozenset({"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE"})
_NOTHING_IN_COMMON: Final = frozenset({"SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV1_ALERT_INSUFFICIENT_SECURITY"})
_OTHER_NAME: Final = frozenset({"TLSV1_UNRECOGNIZED_NAME"})

_ADVICE: Final = (
    (
        _NOT_TLS,
        "The server does not use TLS at this port. It may be a server for plain HTTP.",
        "Correct the host and port in {address}.",
    ),
    (
        CERTIFICATE_REQUIRED,
        "The server requires a client certificate. The action cannot send one.",
        "Correct the host in {address}, or let the server accept this runner without a client certificate.",
    ),
    (
        _OLD_VERSION,
        "The server supports only outdated versions of TLS. The action requires TLS 1.2 or 1.3.",
        "Correct the host in {address}, or enable TLS 1.2 or 1.3 on the server.",
    ),
    (
        _NOTHING_IN_COMMON,
        "The server accepts none of the action's TLS cipher suites, or requires a client certificate (which is not supported).",
        "Correct the host in {address}, or enable current cipher suites on the server.",
    ),
    (_OTHER_NAME, "The server does not serve this host.", "Correct the host in {address}."),
)
_PROXY_WITHOUT_TLS: Final = Advice(
    cause="The proxy does not use TLS at this port. Most proxies do not, also for requests to `https` addresses.",
    remedy="Write the proxy's address with `http://` instead of `https://` (HTTPS_PROXY or similar), or correct its port.",
)


def reason_of(errors: Sequence[BaseException]) -> str:
    """Return OpenSSL's constant (sslerr.h) of a TLS error, such as `WRONG_VERSION_NUMBER`; empty if there is none."""
    for error in errors:
        if isinstance(error, ssl.SSLError) and hasattr(error, "reason"):
            text = re.search(r"\[SSL\] (.+) \(_ssl\.c", str(error))  # of a constant that Python does not know
            return error.reason or (re.sub(r"[^A-Z0-9]+", "_", text[1].upper()) if text else "")
    return ""


def handshake_advice(reason: str, address: str, *, is_proxy: bool) -> Advice | None:
    """Return the advice about a failed handshake, if its cause is known. `address` is what the server's address comes from."""
    if is_proxy and reason in _NOT_TLS:
        return _PROXY_WITHOUT_TLS
    for reasons, cause, remedy in _ADVICE:
        if reason in reasons:
            if is_proxy:
                cause, address = cause.replace("The server", "The proxy"), "the proxy's address (HTTPS_PROXY or similar)"
                remedy = remedy.replace("the server", "the proxy")
            return Advice(cause=cause, remedy=remedy.format(address=address))
    return None
