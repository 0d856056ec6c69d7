"""The reason of a failed TLS handshake, as OpenSSL names it, decides the advice."""

import ssl
from typing import Any, Final

import pytest

from docs_platform_action.http.tls import handshake_advice, reason_of


def error(text: str, reason: str | None) -> ssl.SSLError:
    found: Any = ssl.SSLError(1, text)
    found.library, found.reason = "SSL", reason
    assert isinstance(found, ssl.SSLError)
    return found


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (error("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "WRONG_VERSION_NUMBER"), "WRONG_VERSION_NUMBER"),
        (error("[SSL] record layer failure (_ssl.c:1033)", None), "RECORD_LAYER_FAILURE"),
        (error("[SSL] ssl/tls alert no application protocol (_ssl.c:1033)", None), "SSL_TLS_ALERT_NO_APPLICATION_PROTOCOL"),
        (error("unknown error (_ssl.c:1033)", None), ""),
        (ssl.SSLError("raised by Python"), ""),
        (OSError("not TLS"), ""),
    ],
    ids=["known", "unknown", "unknown with a slash", "without a text", "without a reason", "not TLS"],
)
def test_the_reason_is_openssls_constant(found: Exception, reason: str) -> None:
    assert reason_of([ValueError(), found]) == reason


REASONS: Final = (
    *("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"),
    *("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE", "SSLV3_ALERT_NO_CERTIFICATE"),
    *("TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE"),
    *("SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV1_ALERT_INSUFFICIENT_SECURITY", "TLSV1_UNRECOGNIZED_NAME"),
)


@pytest.mark.parametrize("is_proxy", [False, True])
@pytest.mark.parametrize("reason", [*REASONS, "", "TLSV1_ALERT_INTERNAL_ERROR", "UNEXPECTED_EOF_WHILE_READING"])
def test_there_is_advice_about_known_reasons_alone(reason: str, is_proxy: bool) -> None:
    assert (handshake_advice(reason, "`base-url`", is_proxy=is_proxy) is not None) == (reason in REASONS)
