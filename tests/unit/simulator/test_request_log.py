"""The log of requests."""

import io
import logging
from collections.abc import Iterator

import pytest

from admin_api_simulator.request_log import LONGEST_PATH, cleaned, log_request, write_requests

LOGGER = "admin_api_simulator.request_log"
KEY = "the key/1"


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    logger = logging.getLogger(LOGGER)
    before = (logger.handlers[:], logger.level, logger.propagate)
    stream = io.StringIO()
    write_requests(stream)
    yield stream
    logger.handlers[:], logger.level, logger.propagate = before


def test_a_request_is_one_line(out: io.StringIO) -> None:
    log_request("GET", "/v1/jobs/a", 200, seconds=0.0126, key=KEY)

    assert out.getvalue().endswith(" UTC  GET   /v1/jobs/a  200  13 ms\n")


def test_a_missing_response_has_no_status(out: io.StringIO) -> None:
    log_request("POST", "/v1/jobs", None, seconds=0, key=KEY)

    assert out.getvalue().endswith("  POST  /v1/jobs  -  0 ms\n")


@pytest.mark.parametrize("path", ["/a/the key/1/b", "/a/the%20key%2F1/b", "/a/the%20key/1/b"])
def test_the_key_is_replaced(out: io.StringIO, path: str) -> None:
    log_request("GET", path, 404, seconds=0, key=KEY)

    assert "  /a/***/b  404" in out.getvalue()


@pytest.mark.parametrize("path", ["/a/%74he%20key/1", "/a/the%20key%2f1?b", "/" + "a" * 300 + "/%74he key/1"])
def test_a_path_with_the_key_in_another_encoding_is_not_shown(out: io.StringIO, path: str) -> None:
    log_request("GET", path, 404, seconds=0, key=KEY)

    assert "  GET   …  404" in out.getvalue()


@pytest.mark.parametrize("letters", range(LONGEST_PATH - len(KEY) - 4, LONGEST_PATH))
def test_a_shortened_path_shows_no_part_of_the_key(letters: int) -> None:
    shown = cleaned(f"/{'a' * letters}{KEY}", key=KEY)

    assert set(shown) <= {*"/a*…"}


def test_no_part_of_a_key_with_a_question_mark_is_shown() -> None:
    assert cleaned("/a/the?key", key="the?key") == "/a/***"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a%20b/c.tar.gz", "/a%20b/c.tar.gz"),
        ("/a?X-Amz-Signature=1", "/a"),
        ("/##[error]x", "/%23%23%5Berror%5Dx"),
        ("/\x1b[31m\r\n\ud800ä", "/%1B%5B31m%0D%0A%3F%C3%A4"),
        ("/" + "a" * 300, "/" + "a" * 199 + "…"),
    ],
)
def test_a_path_is_cleaned(path: str, shown: str) -> None:
    assert cleaned(path, key=KEY) == shown


def test_an_empty_key_changes_nothing() -> None:
    assert cleaned("/a", key="") == "/a"


def test_nothing_is_written_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    log_request("GET", "/", 200, seconds=0, key=KEY)

    assert capsys.readouterr() == ("", "")
