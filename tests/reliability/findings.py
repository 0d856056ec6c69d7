"""What the matrix, the hostile texts, the fuzzing, the soak and the kills brought to light in the action."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What went wrong, and the test that failed before it was mended."""

    what: str
    test: str


_DOWNLOAD: Final = "tests/integration/test_download.py::TestLength"
_ANSWER: Final = "tests/unit/test_exchange.py::TestAnswer"

FINDINGS: Final = (
    Finding(
        what="A login page or JSON in place of the bundle was unpacked, or saved as the bundle, instead of asked for again.",
        test=f"{_DOWNLOAD}::test_a_page_in_its_place_is_no_bundle",
    ),
    Finding(
        what="A bundle that was there whole was given up when its length had been announced too long.",
        test=f"{_DOWNLOAD}::test_one_that_is_announced_too_long_is_what_the_storage_has",
    ),
    Finding(
        what="One byte that is no UTF-8 made an answer none, and with it a job that had just been started was lost.",
        test=f"{_ANSWER}::test_text_that_is_no_utf_8_spoils_only_its_own_field",
    ),
    Finding(
        what="Each new TLS connection read all public authorities again: 24 ms of CPU.",
        test="tests/integration/test_connections.py::test_no_connection_reads_the_authorities_again",
    ),
)
