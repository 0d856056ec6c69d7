"""What the tests of inputs share."""

import pytest
import trustme


@pytest.fixture(scope="module")
def authority_pem() -> bytes:
    return trustme.CA().cert_pem.bytes()
