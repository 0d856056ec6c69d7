"""The reason of a failed TLS handshake, as OpenSSL names it, decides the advice."""

import re
import ssl
from typing import Any

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


@pytest.mark.parametrize("is_proxy", [False, True])
@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("WRONG_VERSION_NUMBER", "does not use TLS at this port"),
        ("RECORD_LAYER_FAILURE", "does not use TLS at this port"),
        ("PACKET_LENGTH_TOO_LONG", "does not use TLS at this port"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "requires a client certificate"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "requires a client certificate"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "supports only outdated versions of TLS"),
        ("UNSUPPORTED_PROTOCOL", "supports only outdated versions of TLS"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "accepts none of the action's TLS cipher suites, or requires a client certificate"),
        ("TLSV1_UNRECOGNIZED_NAME", "does not serve this host"),
    ],
)
def test_the_advice_fits_the_reason_and_names_who_failed(reason: str, cause: str, is_proxy: bool) -> None:
    advice = handshake_advice(reason, "`base-url`", is_proxy=is_proxy)

    assert advice is not None
    assert advice["cause"].startswith(f"The {'proxy' if is_proxy else 'server'} {cause}")
    assert ("HTTPS_PROXY" in advice["remedy"], "`base-url`" in advice["remedy"]) == (is_proxy, not is_proxy)
    assert not re.search(r"[{}]", advice["remedy"])


@pytest.mark.parametrize("reason", ["", "TLSV1_ALERT_INTERNAL_ERROR", "UNEXPECTED_EOF_WHILE_READING"])
def test_there_is_no_advice_about_other_reasons(reason: str) -> None:
    assert handshake_advice(reason, "`base-url`", is_proxy=False) is None
