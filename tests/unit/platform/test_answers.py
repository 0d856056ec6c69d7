"""What a response of the API means: a result, an error that no retry can fix, or a retry."""

import math
from typing import Any

import pytest

from admin_api_simulator import Fault
from docs_platform_action.errors import (
    ActionError,
    Advice,
    BadResponse,
    Forbidden,
    NotFound,
    Rejected,
)
from docs_platform_action.http.attempts import TransientError
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import ExportJob
from docs_platform_action.platform.advice import (
    ECHOED_KEY,
    EXPLAINED,
    IN_FRONT,
    NETWORK,
    NOT_READY,
    NOT_THE_API,
    TOO_MANY,
)
from docs_platform_action.platform.answers import result_of
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, HOST
from tests.unit.platform.talk import EXPORT_ID, READ, START, Talk, answer_of, collected_job, failed
from tests.virtual_time import BEGINNING

NOW = 5.0
RUNNING = {"status": "running"}


def result(status: int, body: object = None, **options: Any) -> ExportJob:
    """Return the result of a call that got a response, or raise what the response means."""
    return result_of(answer_of(status, body, **options), NOW)


@pytest.mark.parametrize("status", [200, 202, 299])
def test_an_object_with_success_is_the_result(status: int) -> None:
    assert result(status, RUNNING) == ExportJob(status="running")


@pytest.mark.parametrize("status", [300, 304, 305, 306])
@pytest.mark.parametrize(
    ("body", "is_api_known", "advice"),
    [(None, False, NOT_THE_API), (None, True, IN_FRONT), ({"error": "no"}, True, EXPLAINED)],
)
def test_an_answer_that_was_not_asked_for_is_temporary(
    status: int, body: object, is_api_known: bool, advice: Advice
) -> None:
    with pytest.raises(TransientError) as caught:
        result(status, body, is_api_known=is_api_known)

    assert caught.value.retry_until == math.inf
    assert caught.value.advice == advice
    assert not caught.value.is_unprocessed


@pytest.mark.parametrize(
    ("status", "kind"),
    [(302, BadResponse), (400, Rejected), (403, Forbidden), (404, NotFound), (405, Rejected)],
)
def test_a_rejection_is_final(status: int, kind: type[ActionError]) -> None:
    with pytest.raises(kind):
        result(status, {"error": "no"})


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (408, NETWORK),
        (425, NETWORK),
        (429, TOO_MANY),
        (500, NETWORK),
        (503, NETWORK),
        (600, NETWORK),
    ],
)
def test_an_outage_is_temporary(status: int, advice: Advice) -> None:
    with pytest.raises(TransientError) as caught:
        result(status, RUNNING)

    assert caught.value.advice == advice
    assert caught.value.retry_until == math.inf
    assert caught.value.final_error is None


@pytest.mark.parametrize("status", [202, 409])
def test_a_bundle_that_is_being_packed_is_not_ready(status: int) -> None:
    with pytest.raises(TransientError) as caught:
        result(status, RUNNING, method="POST", temporary_until={status: math.inf})

    assert caught.value.advice == NOT_READY


def test_an_unknown_job_is_asked_for_again_until_servers_know_it() -> None:
    with pytest.raises(TransientError) as caught:
        result(404, {"error": "no job"}, temporary_until={404: NOW + 1})
    with pytest.raises(NotFound):
        result(404, {"error": "no job"}, temporary_until={404: NOW})

    assert caught.value.retry_until == NOW + 1
    assert isinstance(caught.value.final_error, NotFound)


def test_a_base_url_with_a_version_is_wrong_at_once() -> None:
    with pytest.raises(NotFound, match="`base-url` is probably wrong"):
        result(404, base_url=f"{BASE_URL}/v1", temporary_until={404: math.inf})


@pytest.mark.parametrize(
    ("base_url", "body"),
    [
        (f"{BASE_URL}/v1", {"error": "no job"}),
        (BASE_URL, {"error": "no such route"}),
    ],
    ids=["the API's own error", "no version"],
)
def test_any_other_unknown_job_may_be_known_later(base_url: str, body: object) -> None:
    with pytest.raises(TransientError):
        result(404, body, base_url=base_url, temporary_until={404: math.inf})


def test_a_web_page_of_a_server_in_front_may_be_gone_for_a_later_request() -> None:
    with pytest.raises(TransientError, match="and a web page") as caught:
        result(404, is_web_page=True, is_api_known=True, temporary_until={404: -math.inf})

    assert caught.value.advice == IN_FRONT
    assert caught.value.final_error is None


@pytest.mark.parametrize(("is_start", "is_api_known"), [(False, False), (True, True)])
def test_a_web_page_is_final_for_a_start_and_before_any_answer(
    is_start: bool, is_api_known: bool
) -> None:
    with pytest.raises(Forbidden, match="a web page instead of JSON"):
        result(
            403,
            is_web_page=True,
            is_start=is_start,
            is_api_known=is_api_known,
            temporary_until={403: math.inf},
        )


@pytest.mark.parametrize(
    ("is_api_known", "advice"), [(True, IN_FRONT), (False, NOT_THE_API)], ids=["later", "first"]
)
class TestInvalidSuccess:
    @pytest.mark.parametrize("body", [{"progress": 5}, ["running"], None])
    def test_is_read_again(self, is_api_known: bool, advice: Advice, body: object) -> None:
        with pytest.raises(TransientError) as caught:
            result(200, body, is_api_known=is_api_known)

        assert caught.value.advice == advice

    def test_without_an_object_is_requested_again(self, is_api_known: bool, advice: Advice) -> None:
        with pytest.raises(TransientError) as caught:
            result(200, ["running"], method="POST", is_api_known=is_api_known)

        assert caught.value.advice == advice

    @pytest.mark.parametrize(
        ("is_start", "sentences"),
        [
            (False, ["The API returned 200"]),
            (True, ["The API returned 200", "The response was", "The platform may have"]),
        ],
    )
    def test_of_another_request_is_final(
        self, is_api_known: bool, advice: Advice, is_start: bool, sentences: list[str]
    ) -> None:
        with pytest.raises(BadResponse) as caught:
            result(
                200, {"progress": 5}, method="POST", is_start=is_start, is_api_known=is_api_known
            )

        assert caught.value.cause == advice["cause"]
        assert_begin_with(caught.value.details, sentences)


@pytest.mark.parametrize("is_api_known", [True, False])
class TestExplainedSuccess:
    @pytest.mark.parametrize(
        "body", [{"error": "no quota"}, {"title": "no quota"}, [{"detail": "no quota"}]]
    )
    def test_is_read_again_and_blames_nothing_else(self, body: object, is_api_known: bool) -> None:
        with pytest.raises(TransientError) as caught:
            result(200, body, is_api_known=is_api_known)

        assert caught.value.advice == EXPLAINED
        assert caught.value.details == (f'The API at {HOST} said: "no quota".',)

    @pytest.mark.parametrize("is_start", [True, False])
    def test_of_another_request_is_final_with_the_reason(
        self, is_start: bool, is_api_known: bool
    ) -> None:
        body = {"message": "no quota"}
        with pytest.raises(BadResponse) as caught:
            result(200, body, method="POST", is_start=is_start, is_api_known=is_api_known)

        assert caught.value.details[1] == f'The API at {HOST} said: "no quota".'
        assert caught.value.cause == ""
        assert caught.value.remedy == EXPLAINED["remedy"]


def test_the_title_of_a_job_explains_nothing() -> None:
    error = failed(START, json={"status": "queued", "title": "Our docs"})

    assert error.cause == NOT_THE_API["cause"]


@pytest.mark.parametrize(
    ("is_start", "sentences"),
    [
        (False, ["The API returned 200, but `jobId` contains the admin key"]),
        (True, ["The API returned 200", "The platform may have"]),
    ],
)
def test_an_object_with_the_key_is_final_and_not_quoted(
    is_start: bool, sentences: list[str]
) -> None:
    with pytest.raises(BadResponse) as caught:
        result(
            200,
            {"jobId": f"se_{ADMIN_KEY}", **RUNNING},
            is_start=is_start,
            field_with_key="jobId",
        )

    assert caught.value.cause == ECHOED_KEY["cause"]
    assert_begin_with(caught.value.details, sentences)


def assert_begin_with(details: tuple[str, ...], sentences: list[str]) -> None:
    assert len(details) == len(sentences)
    for detail, sentence in zip(details, sentences, strict=True):
        assert detail.startswith(sentence)


@pytest.mark.parametrize(
    "job",
    [
        Job(kind=Export(), job_id=EXPORT_ID, started_at=BEGINNING),
        collected_job(),
    ],
    ids=["started", "collected"],
)
def test_a_job_that_was_started_or_collected_may_be_unknown_for_30_s(job: Job) -> None:
    talk = Talk(Fault(status=404), job=job)

    talk.failure(READ)
    first = talk.times[-1]
    talk.failure(READ)

    assert first == 30
    assert talk.times[-1] - first == pytest.approx(0.1, abs=0.2)
