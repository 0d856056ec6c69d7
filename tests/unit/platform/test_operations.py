"""The operations: what is sent, and what becomes of the results."""

from typing import Final

import pytest

from admin_api_simulator import Fault
from docs_platform_action.errors import BadResponse
from docs_platform_action.job import Job
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.jobs.export import Export
from docs_platform_action.platform.forms import BUNDLE_TIMEOUTS
from tests.unit.platform.talk import AGENT, BUNDLE, DOMAIN, READ, START, Talk, agent_job

SIGNATURE: Final = "0123456789"
LINK: Final = f"https://s.example.com/b?X-Amz-Signature={SIGNATURE}"


class TestRequests:
    @pytest.mark.parametrize(
        ("job_id", "segment"),
        [
            ("se_1", "se_1"),
            ("a/b", "a%2Fb"),
            ("..", "%2E%2E"),
            (".", "%2E"),
            ("a b?c#d%", "a%20b%3Fc%23d%25"),
            ("é", "%C3%A9"),
        ],
    )
    def test_an_id_is_one_segment_of_the_path(self, job_id: str, segment: str) -> None:
        agent = Talk(Fault(json={"status": "active"}), job=agent_job(job_id))
        agent.job.project_id = job_id
        agent.call(AGENT)
        body = {"status": "running", "bundleUrl": "https://s.example.com/b"}
        export = Talk(Fault(json=body), job=Job(kind=Collect(), job_id=job_id))
        export.call(READ)
        export.call(BUNDLE)

        assert agent.sent[0].target == f"/v2/agent/{segment}/job/{segment}"
        path = f"/v1/static-export/jobs/{segment}"
        assert [sent.target for sent in export.sent] == [path, f"{path}/bundle"]

    def test_a_bundle_is_posted_without_a_body_and_has_a_long_timeout(self) -> None:
        talk = Talk(Fault(json={"bundleUrl": LINK}))

        talk.call(BUNDLE)

        assert (talk.sent[0].method, talk.sent[0].body) == ("POST", None)
        assert talk.sent[0].exchange.timeouts.idle_seconds == BUNDLE_TIMEOUTS.idle_seconds

    def test_the_signature_of_a_new_link_is_hidden_from_then_on(self) -> None:
        talk = Talk(Fault(json={"bundleUrl": LINK}))

        talk.call(BUNDLE)

        assert talk.redactor.hide(SIGNATURE) == "…"

    def test_the_signature_of_a_link_in_a_reading_is_hidden_from_then_on(self) -> None:
        job = Job(kind=Collect(), project_id="docs", job_id="se_1")
        talk = Talk(Fault(json={"status": "completed", "bundleUrl": LINK}), job=job)

        talk.call(READ)

        assert talk.redactor.hide(SIGNATURE) == "…"

    def test_the_job_of_another_domain_is_refused_and_the_same_one_again_is_not(self) -> None:
        talk = Talk(Fault(json={"jobId": "se_1"}))
        other = Job(kind=Export(), domain="other.example.com")

        talk.call(START)
        talk.call(START)
        with pytest.raises(BadResponse, match=DOMAIN):
            talk.platform.start_export(other, {})
