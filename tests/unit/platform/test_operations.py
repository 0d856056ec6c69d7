"""The operations: what is sent, and what becomes of the results."""

from typing import Final

import pytest

from admin_api_simulator import Fault
from docs_platform_action.errors import BadResponse, JobFailed, NoRoom
from docs_platform_action.job import Job
from docs_platform_action.jobs.collect import Collect
from docs_platform_action.jobs.export import Export
from docs_platform_action.platform.forms import BUNDLE_TIMEOUTS
from docs_platform_action.platform.operations import LINK_SECONDS
from docs_platform_action.platform.room import FIRST_PAUSE_SECONDS
from tests.unit.platform.talk import (
    AGENT,
    BUNDLE,
    DOMAIN,
    READ,
    START,
    Talk,
    agent_job,
    export_job,
)

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


class TestRoom:
    def test_a_refused_start_is_recorded_in_its_job(self) -> None:
        talk = Talk(Fault(status=429), job=export_job())

        with pytest.raises(NoRoom) as caught:
            talk.call(START)

        assert talk.job.room is not None
        assert talk.job.room.refusal is caught.value

    def test_an_accepted_start_ends_a_limit(self) -> None:
        talk = Talk(Fault(status=429), Fault(json={"jobId": "se_1"}))
        other = Job(kind=Export(), domain="other.example.com")
        with pytest.raises(NoRoom):
            talk.call(START)
        assert not talk.platform.room.begin(talk.job)
        talk.clock.advance(FIRST_PAUSE_SECONDS)

        talk.platform.start_export(other, {})

        assert talk.platform.room.begin(talk.job)

    @pytest.mark.parametrize(("running", "own_site"), [("se_1", DOMAIN), ("se_2", None)])
    def test_a_refusal_because_of_a_job_of_this_run_names_its_site(
        self, running: str, own_site: str | None
    ) -> None:
        refusal = Fault(status=409, json={"jobId": running})
        talk = Talk(Fault(json={"jobId": "se_1"}), refusal)
        talk.call(START)

        with pytest.raises(NoRoom) as caught:
            talk.platform.start_export(Job(kind=Export(), domain="other.example.com"), {})

        assert caught.value.own_site == own_site


class TestLinkOfACompletedJob:
    """By project, it is a field of the job, and may come later than the status."""

    NO_LINK_YET = Fault(json={"status": "completed"})

    def job(self) -> Job:
        return Job(kind=Collect(), project_id="docs", job_id="se_1")

    def test_the_job_is_read_until_it_has_one_which_is_noted_once(self) -> None:
        completed = Fault(json={"status": "completed", "bundleUrl": LINK})
        talk = Talk(self.NO_LINK_YET, self.NO_LINK_YET, completed, job=self.job())

        link = talk.call(BUNDLE)

        assert link.url == LINK
        assert talk.times == [0, 1, 3]
        assert len(talk.events.of("noted")) == 1
        assert talk.job.status == "completed"

    def test_a_job_that_never_has_one_is_a_bad_response_after_30_s(self) -> None:
        talk = Talk(self.NO_LINK_YET, job=self.job())

        assert isinstance(talk.failure(BUNDLE), BadResponse)
        assert talk.times[-1] == LINK_SECONDS

    def test_a_job_that_never_has_one_says_why_and_nothing_else_is_blamed(self) -> None:
        talk = Talk(Fault(json={"status": "completed", "error": "bundle lost"}), job=self.job())

        error = talk.failure(BUNDLE)

        assert error.details[1].endswith('said: "bundle lost".')
        assert error.cause == ""

    def test_a_job_that_has_failed_meanwhile_has_none(self) -> None:
        talk = Talk(self.NO_LINK_YET, Fault(json={"status": "failed"}), job=self.job())

        assert isinstance(talk.failure(BUNDLE), JobFailed)
