"""Fixtures for the tests of inputs."""

import pytest
import trustme


@pytest.fixture(scope="module")
def authority_pem() -> bytes:
    return trustme.CA().cert_pem.bytes()
