"""The requests of the four operations, and which statuses are temporary for each."""

from collections.abc import Callable, Mapping
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.api.admin_api import BUNDLE_TIMEOUT_SECONDS, SETTLING_SECONDS, AdminApi
from docs_platform_action.errors import ActionError, BadResponse, NotFound, Rejected, StartUnconfirmed, Unavailable
from docs_platform_action.http.circuit_breaker import CircuitBreaker
from docs_platform_action.job import Job
from docs_platform_action.models import AGENT, API, EXPORT, AgentJob, Bundle, ExportJob, StartedExport, is_job_id
from tests.unit.fakes import HOST, FakeApiClient, RecordedEvents, Step, answer
from tests.virtual_time import VirtualClock

URL = "https://storage.example.com/bundle.tar.gz?X-Signature=abc"
RUNNING = answer(200, {"status": "running"})
UNKNOWN = answer(404, {"error": "job not found"})
AGENT_JOB = Job(mode=AGENT, project_id="prj_1", job_id="aj_1")


class Platform:
    """An API with scripted responses, and two jobs of the run."""

    def __init__(self, *script: Step, job: Job | None = None) -> None:
        self.clock = VirtualClock()
        self.client = FakeApiClient(self.clock, *script)
        self.events = RecordedEvents()
        self.job = job or Job(mode=EXPORT, domain="docs.example.com", job_id="se_1")
        self.other = Job(mode=EXPORT, domain="other.example.com")
        self.api = AdminApi(
            client=self.client,
            breaker=CircuitBreaker(self.clock),
            clock=self.clock,
            outage_tolerance_seconds=300,
            events=self.events,
            jobs=[self.job, self.other],
            jitter=lambda ceiling: ceiling,
        )

    @property
    def deadline(self) -> float:
        return self.clock.monotonic() + 1000

    def start(self, options: Mapping[str, object] | None = None) -> StartedExport:
        return self.api.start_export(self.job, options or {})

    def read(self) -> ExportJob:
        return self.api.read_export(self.job, deadline=self.deadline)

    def make_bundle(self) -> Bundle:
        return self.api.make_bundle(self.job)

    def read_agent_job(self) -> AgentJob:
        return self.api.read_agent_job(self.job, deadline=self.deadline)

    def just_started(self) -> None:
        self.job.started_at = self.clock.monotonic()

    @property
    def sent(self) -> list[tuple[str, str, object]]:
        return [(sent.method, sent.path, sent.body) for sent in self.client.sent]

    def failure(self, act: Callable[[], object]) -> ActionError:
        with pytest.raises(ActionError) as caught:
            act()
        return caught.value


class TestStart:
    def test_the_domain_is_posted(self) -> None:
        platform = Platform(answer(202, {"jobId": "se_1", "status": "queued"}))

        started = platform.start()

        assert started.job_id == "se_1"
        assert platform.sent == [("POST", "/v1/static-export/jobs", {"domain": "docs.example.com"})]

    def test_options_go_beside_it_and_never_replace_it(self) -> None:
        platform = Platform(answer(202, {"jobId": "se_1"}))

        platform.start({"version": "v2", "domain": "other.example.com"})

        assert platform.sent[0][2] == {"version": "v2", "domain": "docs.example.com"}

    def test_it_is_not_sent_again_once_the_platform_may_have_processed_it(self) -> None:
        platform = Platform(answer(500))

        error = platform.failure(platform.start)

        assert isinstance(error, StartUnconfirmed)
        assert len(platform.sent) == 1

    def test_a_429_while_another_job_is_under_way_is_retried_without_an_end(self) -> None:
        platform = Platform(*[answer(429)] * 30, answer(202, {"jobId": "se_1"}))
        platform.other.job_id = "se_2"

        platform.start()

        assert platform.clock.elapsed > 300
        assert platform.events.of("retrying") == [(API, "The API returned 429 (too many requests)", float("inf"), 1)]

    def test_that_holds_for_the_last_attempt_in_an_outage_too(self) -> None:
        platform = Platform(answer(503, headers={"Retry-After": "999"}), answer(429), answer(202, {"jobId": "se_1"}))
        platform.other.job_id = "se_2"

        assert platform.start().job_id == "se_1"

    def test_the_job_itself_does_not_count_as_another(self) -> None:
        platform = Platform(answer(429))
        assert platform.job.is_under_way

        assert isinstance(platform.failure(platform.start), Unavailable)

    def test_it_has_a_new_connection(self) -> None:
        platform = Platform(answer(202, {"jobId": "se_1"}))

        platform.start()

        assert platform.client.sent[0].new_connection

    def test_the_job_of_another_domain_is_a_bad_response_that_names_it(self) -> None:
        platform = Platform(answer(202, {"jobId": "se_1"}, request_id="7f3a"))
        platform.api.start_export(platform.other, {})

        error = platform.failure(platform.start)

        assert isinstance(error, BadResponse)
        assert error.summary == "the platform returned the job of other.example.com for this domain, too"
        assert (error.request_id, len(platform.sent)) == ("7f3a", 2)

    def test_a_domain_that_is_started_again_may_have_the_same_job(self) -> None:
        platform = Platform(answer(202, {"jobId": "se_1"}))

        assert platform.start() == platform.start()

    def test_an_unknown_domain_is_named(self) -> None:
        platform = Platform(UNKNOWN)

        error = platform.failure(platform.start)

        assert error.summary == "the platform does not know the domain docs.example.com (404)"


class TestReadExport:
    def test_the_job_is_read(self) -> None:
        platform = Platform(RUNNING)

        job = platform.read()

        assert job.status == "running"
        assert platform.sent == [("GET", "/v1/static-export/jobs/se_1", None)]

    def test_a_404_just_after_the_start_is_temporary(self) -> None:
        platform = Platform(UNKNOWN, UNKNOWN, RUNNING)
        platform.just_started()

        job = platform.read()

        assert job.status == "running"

    def test_a_404_that_lasts_longer_is_final(self) -> None:
        platform = Platform(UNKNOWN)
        platform.just_started()

        error = platform.failure(platform.read)

        assert isinstance(error, NotFound)
        assert error.summary == "the platform does not know the job se_1 (404)"
        assert [sent.at for sent in platform.client.sent] == [0, 1, 3, 7, 15, SETTLING_SECONDS]

    def test_its_budget_and_pauses_stay_within_that_time(self) -> None:
        patient = answer(404, {"error": "job not found"}, headers={"Retry-After": "600"})
        platform = Platform(patient)
        platform.just_started()
        platform.clock.advance(10)

        platform.failure(platform.read)

        assert platform.events.of("retrying") == [(API, "The API returned 404 (not found)", 20, 20)]
        assert [sent.at for sent in platform.client.sent] == [10, 30]

    def test_a_later_404_is_final_at_once(self) -> None:
        platform = Platform(UNKNOWN)
        platform.just_started()
        platform.clock.advance(SETTLING_SECONDS)

        error = platform.failure(platform.read)

        assert isinstance(error, NotFound)
        assert len(platform.sent) == 1

    def test_a_404_for_a_job_of_another_run_is_final_at_once(self) -> None:
        platform = Platform(UNKNOWN)

        error = platform.failure(platform.read)

        assert isinstance(error, NotFound)
        assert len(platform.sent) == 1


class TestBundle:
    def test_it_is_posted_without_a_body_and_with_a_long_timeout(self) -> None:
        platform = Platform(answer(200, {"bundleUrl": URL}))

        bundle = platform.make_bundle()

        assert bundle.url == URL
        assert platform.sent == [("POST", "/v1/static-export/jobs/se_1/bundle", None)]
        assert platform.client.sent[0].timeouts.total_seconds == BUNDLE_TIMEOUT_SECONDS

    @pytest.mark.parametrize("bad", [answer(409, {"error": "not ready"}), answer(502), answer(200, None)])
    def test_a_conflict_and_the_usual_errors_are_temporary(self, bad: Step) -> None:
        platform = Platform(bad, bad, answer(200, {"bundleUrl": URL}))

        assert platform.make_bundle().url == URL

    def test_a_conflict_that_lasts_is_unavailable(self) -> None:
        platform = Platform(answer(409, {"error": "not ready"}))

        error = platform.failure(platform.make_bundle)

        assert isinstance(error, Unavailable)
        assert error.details[1] == f'The API at {HOST} said: "not ready"'
        assert "has not finished the export's bundle" in error.cause
        assert error.remedy == "Allow more time with `outage-tolerance`."

    def test_an_unknown_job_is_named(self) -> None:
        platform = Platform(UNKNOWN)

        error = platform.failure(platform.make_bundle)

        assert error.summary == "the platform does not know the job se_1 (404)"
        assert len(platform.sent) == 1

    def test_a_404_just_after_this_run_started_the_job_is_temporary(self) -> None:
        platform = Platform(UNKNOWN, UNKNOWN, answer(200, {"bundleUrl": URL}))

        platform.just_started()
        platform.clock.advance(4)

        bundle = platform.make_bundle()

        assert bundle.url == URL

    def test_a_404_that_lasts_longer_than_that_is_final(self) -> None:
        platform = Platform(UNKNOWN)
        platform.just_started()

        error = platform.failure(platform.make_bundle)

        assert isinstance(error, NotFound)
        assert [sent.at for sent in platform.client.sent] == [0, 1, 3, 7, 15, SETTLING_SECONDS]

    def test_a_response_without_a_valid_link_is_final(self) -> None:
        platform = Platform(answer(200, {"bundleUrl": "http://storage.example.com/x"}))

        error = platform.failure(platform.make_bundle)

        assert isinstance(error, BadResponse)
        assert len(platform.sent) == 1


class TestReadAgentJob:
    def test_the_job_is_read(self) -> None:
        platform = Platform(answer(200, {"status": "active"}), job=AGENT_JOB)

        job = platform.read_agent_job()

        assert job.status == "active"
        assert platform.sent == [("GET", "/v2/agent/prj_1/job/aj_1", None)]

    @pytest.mark.parametrize(("status", "kind"), [(404, NotFound), (409, Rejected)])
    def test_what_is_temporary_for_exports_is_final(self, status: int, kind: type[ActionError]) -> None:
        platform = Platform(answer(status), job=AGENT_JOB)

        error = platform.failure(platform.read_agent_job)

        assert isinstance(error, kind)
        assert len(platform.sent) == 1

    def test_an_unknown_job_is_named_with_its_project(self) -> None:
        platform = Platform(UNKNOWN, job=AGENT_JOB)

        error = platform.failure(platform.read_agent_job)

        assert error.summary == "the platform does not know the project prj_1 or its job aj_1 (404)"


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
        job = Job(mode=None, project_id=identifier, job_id=identifier)
        platform = Platform(answer(200, {"status": "x", "bundleUrl": URL}), job=job)

        platform.read()
        platform.make_bundle()
        platform.read_agent_job()

        assert [path for _, path, _ in platform.sent] == [
            f"/v1/static-export/jobs/{segment}",
            f"/v1/static-export/jobs/{segment}/bundle",
            f"/v2/agent/{segment}/job/{segment}",
        ]

    @given(st.text(min_size=1).filter(is_job_id))
    def test_any_identifier_is_one_segment_that_reads_back(self, identifier: str) -> None:
        platform = Platform(RUNNING, job=Job(mode=EXPORT, job_id=identifier))

        platform.read()

        *parents, segment = platform.sent[0][1].split("/")
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
            ("aj_1", "AJ_1"),
            ("aj_1", " aj_1"),
            ("aj_1", "aj_2\n"),
            ("42", 43),
            (UUID, UUID.replace("5", "6")),
            (UUID, "aj_1"),
        ],
    )
    def test_another_job_is_a_bad_response_and_is_not_read_again(self, job_id: str, found: str) -> None:
        platform = Platform(
            answer(200, {"id": found, "status": "completed"}, request_id="7f3a"),
            job=Job(mode=AGENT, project_id="prj_1", job_id=job_id),
        )

        error = platform.failure(platform.read_agent_job)

        assert isinstance(error, BadResponse)
        assert (error.summary, error.details) == (
            "the API returned another job",
            (f"The response has the id '{found}'.",),
        )
        assert (error.request_id, len(platform.sent)) == ("7f3a", 1)

    @pytest.mark.parametrize(
        ("job_id", "found"),
        [("aj_1", "aj_1"), *(("aj_1", odd) for odd in (None, "", 7, True, [])), ("42", 42), (UUID, UUID.upper())],
    )
    def test_an_id_that_names_no_other_job_is_accepted(self, job_id: str, found: object) -> None:
        platform = Platform(
            answer(200, {"id": found, "status": "completed"}), job=Job(mode=AGENT, project_id="prj_1", job_id=job_id)
        )

        assert platform.read_agent_job().status == "completed"
