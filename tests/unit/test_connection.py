"""A guard ends the exchange that it watches over, whichever stage that is in."""

import socket
import ssl

import pytest
import requests
import trustme

from docs_platform_action.connection import Guard, GuardedAdapter, trusting


def test_an_expired_guard_shuts_down_what_it_holds() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.adopt(ours)

    guard.expire()

    with ours, theirs:
        assert theirs.recv(1) == b""
    guard.release()


def test_a_connection_that_comes_too_late_is_shut_down_at_once() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.expire()

    guard.adopt(ours)

    with ours, theirs:
        assert theirs.recv(1) == b""
    guard.release()


def test_a_released_guard_leaves_the_connection_as_it_is() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.adopt(ours)

    guard.release()
    guard.expire()

    with ours, theirs:
        ours.sendall(b"x")
        assert theirs.recv(1) == b"x"


def test_a_connection_that_is_gone_already_is_no_trouble() -> None:
    ours, theirs = socket.socketpair()
    guard = Guard()
    guard.adopt(ours)
    theirs.close()
    ours.shutdown(socket.SHUT_RDWR)

    guard.expire()

    assert guard.expired
    guard.release()
    ours.close()


def test_further_authorities_are_trusted_beside_the_public_ones() -> None:
    authority = trustme.CA().cert_pem.bytes().decode()

    context = trusting(authority)

    assert len(context.get_ca_certs()) == len(trusting(None).get_ca_certs()) + 1
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_a_text_without_certificates_is_not_taken() -> None:
    with pytest.raises(ssl.SSLError):
        trusting("garbage")


def test_a_request_without_a_guard_is_not_sent() -> None:
    request = requests.Request("GET", "http://127.0.0.1:9/").prepare()

    with pytest.raises(TypeError, match="guarded requests alone"):
        GuardedAdapter(trusting(None)).send(request)
