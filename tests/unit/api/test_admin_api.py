"""The requests of the four operations, and what is special about each."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admin_api_simulator import Fault
from docs_platform_action.api.admin_api import BUNDLE_TIMEOUTS
from docs_platform_action.errors import BadResponse
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import is_job_id
from tests.faults import Operation
from tests.unit.api.talk import Talk, agent_job
from tests.virtual_platform import API_URL


def sent(talk: Talk) -> list[tuple[str | None, str, bytes | str | None]]:
    return [(request.method, str(request.url).removeprefix(API_URL), request.body) for request in talk.sent]


class TestStart:
    def test_the_domain_is_posted(self) -> None:
        talk = Talk(Fault(status=202, json={"jobId": "se_1", "status": "queued"}))

        assert talk.call(Operation.START).job_id == "se_1"
        assert sent(talk) == [("POST", "/v1/static-export/jobs", b'{"domain": "docs.example.com"}')]

    def test_options_go_beside_it_and_never_replace_it(self) -> None:
        talk = Talk()

        talk.api.start_export(talk.job, {"version": "v2", "domain": "other.example.com"})

        assert sent(talk)[0][2] == b'{"version": "v2", "domain": "docs.example.com"}'

    def test_the_job_of_another_domain_is_a_bad_response(self) -> None:
        other = Job(mode=Mode.EXPORT, domain="other.example.com")
        talk = Talk(Fault(json={"jobId": "se_1"}, headers={"X-Request-Id": "7f3a"}), others=[other])
        talk.api.start_export(other, {})

        error = talk.failure(Operation.START)

        assert (type(error), error.request_id, len(talk.sent)) == (BadResponse, "7f3a", 2)

    def test_a_domain_that_is_started_again_may_have_the_same_job(self) -> None:
        talk = Talk(Fault(json={"jobId": "se_1"}))

        assert talk.call(Operation.START) == talk.call(Operation.START)


class TestTheOthers:
    def test_the_status_of_an_export_is_read(self) -> None:
        talk = Talk()

        assert talk.read().status == "completed"
        assert sent(talk) == [("GET", "/v1/static-export/jobs/export-finished", None)]

    def test_a_bundle_is_posted_without_a_body_and_with_a_long_timeout(self) -> None:
        talk = Talk(seconds=BUNDLE_TIMEOUTS.total_seconds - 1)

        assert talk.call(Operation.BUNDLE).url.startswith("https://storage.example.com/")
        assert sent(talk) == [("POST", "/v1/static-export/jobs/export-finished/bundle", None)]
        assert talk.sent[0].exchange.timeouts == BUNDLE_TIMEOUTS

    def test_the_signature_of_a_link_is_hidden_from_then_on(self) -> None:
        talk = Talk(Fault(json={"bundleUrl": "https://storage.example.com/b?X-Amz-Signature=5ecret-signature"}))

        talk.call(Operation.BUNDLE)

        assert "5ecret-signature" not in talk.api.client.redactor.hide("no such signature: 5ecret-signature")

    def test_a_bundle_without_a_valid_link_is_final(self) -> None:
        talk = Talk(Fault(json={"bundleUrl": "http://storage.example.com/x"}))

        assert isinstance(talk.failure(Operation.BUNDLE), BadResponse)
        assert len(talk.sent) == 1

    def test_the_status_of_an_agent_job_is_read(self) -> None:
        talk = Talk(job=agent_job())

        assert talk.call(Operation.READ_AGENT).status == "completed"
        assert sent(talk) == [("GET", "/v2/agent/demo-project/job/agent-pull-request", None)]


class TestPaths:
    @pytest.mark.parametrize(
        ("identifier", "segment"),
        [
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("...", "..."),
            ("a?b#c;d", "a%3Fb%23c%3Bd"),
            ("a b", "a%20b"),
            ("ü", "%C3%BC"),
            ("🙂", "%F0%9F%99%82"),
            ("a.b-c_d~e", "a.b-c_d~e"),
        ],
    )
    def test_identifiers_are_percent_encoded(self, identifier: str, segment: str) -> None:
        talk = Talk(
            Fault(json={"status": "x", "bundleUrl": "https://storage.example.com/x"}),
            job=Job(mode=None, project_id=identifier, job_id=identifier),
        )

        for operation in (Operation.READ_EXPORT, Operation.BUNDLE, Operation.READ_AGENT):
            talk.call(operation)

        assert [path for _, path, _ in sent(talk)] == [
            f"/v1/static-export/jobs/{segment}",
            f"/v1/static-export/jobs/{segment}/bundle",
            f"/v2/agent/{segment}/job/{segment}",
        ]

    @given(st.text(min_size=1).filter(is_job_id))
    def test_any_identifier_is_one_segment_that_reads_back(self, identifier: str) -> None:
        talk = Talk(Fault(json={"status": "x"}), job=Job(mode=Mode.EXPORT, job_id=identifier))

        talk.read()

        *parents, segment = sent(talk)[0][1].split("/")
        assert parents == ["", "v1", "static-export", "jobs"]
        assert unquote(segment) == identifier
        assert segment not in {".", ".."}
        assert segment.isascii()


class TestAgentJobs:
    UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"

    @pytest.mark.parametrize(
        ("job_id", "found"),
        [
            ("aj_1", "aj_2"),
            ("aj_1", " aj_1"),
            ("aj_1", "aj_2\n"),
            ("42", 43),
            (UUID, UUID.replace("5", "6")),
            (UUID, "aj_1"),
        ],
    )
    def test_another_job_is_a_bad_response_and_is_not_read_again(self, job_id: str, found: object) -> None:
        talk = Talk(Fault(json={"id": found, "status": "completed"}, headers={"X-Request-Id": "7f3a"}), job=agent_job(job_id))

        error = talk.failure(Operation.READ_AGENT)

        assert (type(error), error.request_id, len(talk.sent)) == (BadResponse, "7f3a", 1)

    @pytest.mark.parametrize(
        ("job_id", "found"),
        [
            ("aj_1", "aj_1"),
            ("aj_1", "AJ_1"),
            *(("aj_1", odd) for odd in (None, "", 7, True, [])),
            ("42", 42),
            (UUID, UUID.upper()),
        ],
    )
    def test_an_id_that_names_no_other_job_is_accepted(self, job_id: str, found: object) -> None:
        talk = Talk(Fault(json={"id": found, "status": "completed"}), job=agent_job(job_id))

        assert talk.call(Operation.READ_AGENT).status == "completed"
