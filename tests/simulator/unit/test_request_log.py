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


@pytest.mark.parametrize(("status", "shown"), [(200, "200"), (None, "-")])
def test_a_request_is_one_line(out: io.StringIO, status: int | None, shown: str) -> None:
    log_request("GET", "/a/the key/1/b", status, seconds=0.0126, key=KEY)

    assert out.getvalue().endswith(f" UTC  GET   /a/***/b  {shown}  13 ms\n")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/a%20b/c.tar.gz", "/a%20b/c.tar.gz"),
        ("/a?X-Amz-Signature=1", "/a"),
        ("/##[error]x", "/%23%23%5Berror%5Dx"),
        ("/\x1b[31m\r\n\ud800ä", "/%1B%5B31m%0D%0A%3F%C3%A4"),
        ("/" + "a" * 300, "/" + "a" * 199 + "…"),
        # the key
        ("/a/the key/1/b", "/a/***/b"),
        ("/a/the%20key%2F1/b", "/a/***/b"),
        ("/a/the%20key/1/b", "/a/***/b"),
        # another encoding of it
        ("/a/%74he%20key/1", "…"),
        ("/a/the%20key%2f1?b", "…"),
        ("/" + "a" * 300 + "/%74he key/1", "…"),
    ],
)
def test_a_path_is_cleaned(path: str, shown: str) -> None:
    assert cleaned(path, key=KEY) == shown


@pytest.mark.parametrize(("key", "shown"), [("the?key", "/a/***"), ("", "/a/the")])
def test_no_part_of_a_key_with_a_question_mark_is_shown(key: str, shown: str) -> None:
    assert cleaned("/a/the?key", key=key) == shown


@pytest.mark.parametrize("letters", range(LONGEST_PATH - len(KEY) - 4, LONGEST_PATH))
def test_a_shortened_path_shows_no_part_of_the_key(letters: int) -> None:
    shown = cleaned(f"/{'a' * letters}{KEY}", key=KEY)

    assert set(shown) <= {*"/a*…"}


def test_nothing_is_written_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    log_request("GET", "/", 200, seconds=0, key=KEY)

    assert capsys.readouterr() == ("", "")
