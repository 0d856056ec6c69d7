"""What GitHub's responses mean: JSON, an error that may pass, or one that is final."""

from collections.abc import Mapping
from typing import Any, Final
from unittest.mock import MagicMock

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.simulator import DEFAULT_TOKEN
from docs_platform_action.errors import NO_THREADS, NotDeployed
from docs_platform_action.github.client import DOWN
from docs_platform_action.http.attempts import LAST_ATTEMPT_SECONDS, TransientError
from docs_platform_action.http.client import HttpClient
from docs_platform_action.http.faults import NetworkError
from tests.unit.github.repository import Repository


def test_a_request_carries_the_token_and_asks_for_json() -> None:
    repository = Repository()

    repository.get()

    (sent,) = repository.sent
    assert sent.headers["Authorization"] == f"Bearer {DEFAULT_TOKEN}"
    assert sent.headers["Accept"] == "application/json"


def test_the_end_of_a_request_is_announced() -> None:
    repository = Repository()
    fault = Fault(status=503, headers={"X-GitHub-Request-Id": "r-1"})
    repository.simulator.script("list_deployments", fault)

    with pytest.raises(TransientError):
        repository.get("/deployments?page=1")

    ((request, outcome, _, request_id),) = repository.events.of("request_ended")
    assert request == "GET /repos/demo/docs/deployments?page=1"
    assert (outcome, request_id) == ("503", "r-1")


# 90 s after noon
LIMIT: Final = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1777896090"}


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        ({"status": 429}, 60),
        ({"status": 403, "headers": {"Retry-After": "7"}}, 7),
        ({"status": 403, "headers": LIMIT}, 90),
        ({"status": 429, "headers": LIMIT}, 90),
        ({"status": 429, "headers": {**LIMIT, "Date": "Mon, 04 May 2026 12:01:00 GMT"}}, 30),
        ({"status": 429, "headers": {**LIMIT, "X-RateLimit-Reset": "9" * 400}}, 60),
        ({"status": 403, "json": {"message": "You have exceeded a secondary rate limit."}}, 60),
        ({"status": 403, "json": {"message": "You have triggered an abuse detection"}}, 60),
        ({"status": 403, "headers": {"X-RateLimit-Remaining": "0"}}, 60),
        ({"status": 304}, 0),
        ({"status": 204}, 0),
        ({"status": 408}, 0),
        ({"status": 500}, 0),
        ({"status": 502}, 0),
        ({"status": 503}, 0),
        ({"status": 200, "json": {}}, 0),
        ({"status": 200, "json": "text"}, 0),
        ({"status": 200, "body": "<!doctype html>"}, 0),
        ({"cut": "before_response"}, 0),
    ],
)
def test_a_temporary_error_says_how_long_to_wait(fault: Mapping[str, Any], seconds: float) -> None:
    repository = Repository()
    repository.simulator.script("list_deployments", Fault(**fault))

    with pytest.raises(TransientError) as caught:
        repository.get()

    assert caught.value.retry_after_seconds == pytest.approx(seconds, abs=1)
    assert repository.get() == []


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (TransientError("no more threads", advice=NO_THREADS), NO_THREADS["remedy"]),
        (NetworkError("lost", was_sent=True), DOWN["remedy"]),
        (
            NetworkError("no TLS", was_sent=False, is_without_tls=True),
            "Correct the host and port in GITHUB_API_URL.",
        ),
    ],
)
def test_a_request_without_a_response_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch, error: NetworkError | TransientError, remedy: str
) -> None:
    repository = Repository()
    monkeypatch.setattr(HttpClient, "send", MagicMock(side_effect=error))

    with pytest.raises(TransientError, match=error.message) as caught:
        repository.get()

    assert caught.value.advice["remedy"] == remedy


def test_after_its_deadline_a_pass_sends_no_more_requests() -> None:
    repository = Repository()

    with pytest.raises(TransientError, match="no time"):
        repository.get(seconds=-10)

    assert repository.asked == []


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [(300, 60), (20, 20), (4, LAST_ATTEMPT_SECONDS), (-9, LAST_ATTEMPT_SECONDS)],
)
def test_a_request_may_take_the_time_until_the_deadline_or_that_of_a_last_attempt(
    seconds: float, limit: float
) -> None:
    repository = Repository()

    repository.get(seconds=seconds)

    assert repository.sent[0].exchange.timeouts.total_seconds == limit


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=403, body=""),
        Fault(status=403, headers={**LIMIT, "X-RateLimit-Remaining": "1"}),
        Fault(status=404, headers=LIMIT),
        Fault(status=404, headers={"Retry-After": "7"}),
    ],
    ids=str,
)
def test_a_refusal_that_is_not_about_a_limit_is_final(fault: Fault) -> None:
    repository = Repository()
    repository.simulator.script("list_deployments", fault)

    with pytest.raises(NotDeployed, match="refused the token"):
        repository.get()


def test_a_web_page_is_not_blamed_on_the_token() -> None:
    repository = Repository()
    page = Fault(status=403, body="<!doctype html>", headers={"Content-Type": "text/html"})
    repository.simulator.script("list_deployments", page)

    with pytest.raises(NotDeployed, match="a web page came") as caught:
        repository.get()

    assert "gateway" in caught.value.cause


def test_an_object_that_is_missing_is_none_and_a_web_page_says_nothing_of_it() -> None:
    repository = Repository()
    page = Fault(status=404, body="<!doctype html>", headers={"Content-Type": "text/html"})

    assert repository.find() is None

    repository.simulator.script("read_deployment", page)
    with pytest.raises(NotDeployed, match="a web page came"):
        repository.find()


def test_a_refusal_has_the_id_of_its_request() -> None:
    repository = Repository()
    fault = Fault(status=404, headers={"X-GitHub-Request-Id": "r-1"})
    repository.simulator.script("list_deployments", fault)

    with pytest.raises(NotDeployed) as caught:
        repository.get()

    assert caught.value.request_id == "r-1"


def test_a_proxy_that_cannot_be_used_is_final() -> None:
    with pytest.raises(NotDeployed) as caught:
        Repository(proxies={"https": "socks5://proxy.example.com"}).get()

    assert "SOCKS" in caught.value.cause
