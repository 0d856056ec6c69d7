"""Many domains in one step: each is exported independently, and all share one pace of requests."""

import json
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator import Simulator
from admin_api_simulator.contract import check_requests
from admin_api_simulator.faults import Fault
from docs_platform_action.http.pacing import GAP_SECONDS
from docs_platform_action.job import Job
from tests.action import Action
from tests.archives import SEVEN_ZIP
from tests.ended import Ended
from tests.engine import remember_output
from tests.integration.parts import expiring_links, link_in
from tests.keys import ADMIN_KEY
from tests.virtual_time import VirtualClock

PAGES = 12
MAX_PARALLEL = 20
DOMAINS = [f"docs{number:02}.example.com" for number in range(93)]
FAILING = [
    ("failing.example.com", "job-failed", "failed", True),
    ("unknown.example.com", "not-found", None, False),
    ("no-plan.example.com", "forbidden", None, False),
    ("rejected.example.com", "rejected", None, False),
    ("lost.example.com", "start-unconfirmed", None, False),
    ("endless.example.com", "timeout", "running", True),
    ("damaged.example.com", "invalid-bundle", "completed", True),
]
EXPIRED = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
ALL = [*DOMAINS[:5], *(domain for domain, *_ in FAILING), *DOMAINS[5:]]


def rows(ended: Ended) -> dict[str, dict[str, Any]]:
    """Return the rows of `results` by domain."""
    return {row["domain"]: row for row in json.loads(ended.outputs["results"])}


@pytest.mark.timeout(600)  # the run takes a minute on an idle machine
class TestAHundredWithSevenFailures:
    @pytest.fixture(scope="class")
    @classmethod
    def platform(cls) -> Iterator[Simulator]:
        with Simulator(key=ADMIN_KEY, export_seconds=5, pages=PAGES) as platform:
            platform.script("start_export", Fault(status=422, json={"error": "no such theme"}), domain="rejected.example.com")
            platform.script("start_export", Fault(cut="before_response", processed=True), domain="lost.example.com")
            platform.script_forever("read_export", Fault(json={"status": "running"}), domain="endless.example.com")
            platform.script_forever("download", Fault(body=SEVEN_ZIP), domain="damaged.example.com")
            yield platform
            check_requests(platform.requests)

    @pytest.fixture(scope="class")
    @classmethod
    def workspace(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        return tmp_path_factory.mktemp("many")

    @pytest.fixture(scope="class")
    @classmethod
    def ended(cls, platform: Simulator, workspace: Path) -> Ended:
        return Action(workspace).run(
            platform,
            domain="\n".join(ALL),
            max_parallel=str(MAX_PARALLEL),
            poll_interval="5s",
            timeout="40s",
            outage_tolerance="5m",
            site_path="sites/{domain}",
            values_file="values/{domain}.yaml",
        )

    def test_nothing_shown_contains_a_secret(self, ended: Ended) -> None:
        # the run is older than this test, so its texts are registered again for the search
        for text in (ended.stdout, ended.stderr, ended.summary):
            remember_output(text)
        for text in ended.outputs.values():
            remember_output(text, holds_links=True)

    def test_the_step_fails_and_has_a_row_for_each_domain_in_order(self, ended: Ended) -> None:
        results = json.loads(ended.outputs["results"])

        assert (ended.exit_code, ended.reason, ended.stderr, len(ended.errors)) == (1, "job-failed", "", len(FAILING))
        assert {*ended.outputs} == {"results", "durationSeconds", "failureReason"}
        assert [row["domain"] for row in results] == ALL
        assert {tuple(row) for row in results} == {tuple(Job(mode=None).result(0.0))}
        assert {row["mode"] for row in results} == {"export"}

    @pytest.mark.parametrize("domain", DOMAINS)
    def test_a_successful_domain_has_its_link_its_site_and_its_values(self, ended: Ended, workspace: Path, domain: str) -> None:
        row = rows(ended)[domain]

        assert row["status"] == "completed"
        assert (row["pageCount"], row["failureReason"], row["message"]) == (PAGES, None, None)
        assert f"/{row['jobId']}/" in row["bundleUrl"]
        assert row["expiresAt"]
        assert row["bundleSize"] > 0
        assert re.fullmatch("[0-9a-f]{64}", row["bundleSha256"])
        assert (row["bundlePath"], row["sitePath"], row["valuesFile"]) == (None, f"sites/{domain}", f"values/{domain}.yaml")
        assert row["durationSeconds"] >= 5  # as the platform takes
        assert domain in (workspace / "sites" / domain / "index.html").read_text()
        assert row["bundleUrl"] in (workspace / "values" / f"{domain}.yaml").read_text()

    @pytest.mark.parametrize(("domain", "reason", "status", "has_id"), FAILING)
    def test_a_failed_domain_has_its_reason_its_known_state_and_no_link(
        self, ended: Ended, workspace: Path, domain: str, reason: str, status: str | None, has_id: bool
    ) -> None:
        row = rows(ended)[domain]

        assert (row["failureReason"], row["bundleUrl"], row["sitePath"]) == (reason, None, None)
        assert (row["status"], bool(row["jobId"])) == (status, has_id)
        assert not (workspace / "sites" / domain).exists()

    def test_every_domain_is_started_once(self, ended: Ended, platform: Simulator) -> None:
        assert ended.exit_code == 1
        assert {domain: platform.count("start_export", domain=domain) for domain in ALL} == dict.fromkeys(ALL, 1)

    def test_a_bundle_is_made_once_for_each_completed_job(self, ended: Ended, platform: Simulator) -> None:
        completed = [domain for domain, row in rows(ended).items() if row["status"] == "completed"]

        assert sorted(completed) == sorted([*DOMAINS, "damaged.example.com"])
        assert {domain: platform.count("make_bundle", domain=domain) for domain in ALL} == {
            domain: int(domain in completed) for domain in ALL
        }

    def test_no_job_is_polled_more_often_than_the_pauses_allow(self, ended: Ended, platform: Simulator) -> None:
        assert ended.exit_code == 1
        for domain in DOMAINS:  # at once, after five seconds, and perhaps once more
            (started,), readings = (platform.requests_of(name, domain=domain) for name in ("start_export", "read_export"))
            assert 1 <= len(readings) <= 3
            # a busy machine may delay the first poll until the job has ended
            assert len(readings) >= 2 or readings[0].at - started.at > 4.9

    def test_no_more_jobs_run_in_parallel_than_allowed(self, ended: Ended, platform: Simulator) -> None:
        assert ended.exit_code == 1
        # the job whose start got no response runs too, but no slot waits for it
        assert MAX_PARALLEL // 2 < platform.max_concurrent_jobs <= MAX_PARALLEL + 1

    def test_requests_are_kept_apart(self, ended: Ended, platform: Simulator) -> None:
        assert ended.exit_code == 1
        moments = [request.at for request in platform.requests if request.operation != "download"]
        late = 1.0  # seconds by which a busy machine may delay a request
        for number, moment in enumerate(moments):
            for further, later in enumerate(moments[number:]):
                assert further * GAP_SECONDS <= later - moment + late, f"at {moment - moments[0]:.1f} s"


@pytest.mark.parametrize(
    ("changes", "reason"), [({"key": "adm_an0ther-key-of-the-tests"}, "unauthorized"), ({"plan": False}, "forbidden")]
)
def test_a_rejected_key_is_sent_once(
    action: Action, make_platform: Callable[..., Simulator], changes: Mapping[str, Any], reason: str
) -> None:
    platform = make_platform(**changes)

    ended = action.run(platform, domain="\n".join(DOMAINS[:30]), max_parallel="30")

    assert (ended.exit_code, ended.reason, len(platform.requests)) == (1, reason, 1)
    assert [row["failureReason"] for row in rows(ended).values()] == [reason] * 30


class TestConcurrencyLimit:
    def test_a_platform_with_a_lower_limit_gets_fewer_jobs_at_once(
        self, action: Action, make_platform: Callable[..., Simulator]
    ) -> None:
        platform = make_platform(export_seconds=1.5, max_jobs=3)
        action.set_constants(http__retry__MIN_ATTEMPT_SECONDS=30.0)  # the response to a start may be late

        ended = action.run(platform, domain="\n".join(DOMAINS[:9]), poll_interval="300ms", outage_tolerance="1s")

        assert ended.exit_code == 0, ended.stdout
        assert platform.max_concurrent_jobs == 3
        assert platform.count(status=429) > 0

    def test_a_quota_of_starts_delays_no_other_request(self, action: Action, make_platform: Callable[..., Simulator]) -> None:
        platform = make_platform(export_seconds=0.5)
        quota = Fault(status=429, headers={"Retry-After": "86400"})
        platform.script_forever("start_export", quota, domain="b.example.com")
        platform.script("download", Fault(status=403, body=EXPIRED))  # so that a second link is needed

        ended = action.run(platform, domain="a.example.com\nb.example.com", outage_tolerance="5s", site_path="{domain}")

        first, second = rows(ended).values()
        assert (first["failureReason"], second["failureReason"]) == (None, "unavailable")
        assert platform.count("make_bundle") == 2
        _, last_start = platform.requests_of("start_export", domain="b.example.com")
        assert platform.requests_of("download")[-1].at < last_start.at


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_after_a_cancel_the_known_state_of_each_domain_is_an_output(
    action: Action, make_platform: Callable[..., Simulator], number: signal.Signals, exit_code: int
) -> None:
    platform = make_platform(export_seconds=3600)
    platform.script("start_export", Fault(status=422), domain="rejected.example.com")
    domains = ["rejected.example.com", *DOMAINS[:5]]

    with action.start(platform, domain="\n".join(domains), max_parallel="3") as running:
        for domain in domains[1:4]:
            while not platform.count("read_export", domain=domain):
                time.sleep(0.005)
        running.signal(number)
        ended = running.wait()

    results = rows(ended)
    assert ended.exit_code == exit_code
    assert [row["failureReason"] for row in results.values()] == ["rejected", *["cancelled"] * 5]
    assert [bool(results[domain]["jobId"]) for domain in domains] == [False, True, True, True, False, False]
    assert ended.reason == "rejected"


def test_a_link_that_expires_before_the_end_of_the_run_is_renewed(
    action: Action, make_platform: Callable[..., Simulator]
) -> None:
    platform = make_platform(export_seconds=0.0)
    action.clock = clock = VirtualClock(real_rate=1.0)
    domains = ["a.example.com", "b.example.com", "c.example.com"]
    for domain, seconds in zip(domains, [(100, 3600), (3600,), (3600,)], strict=True):
        platform.override("make_bundle", expiring_links(*seconds, clock=clock), domain=domain)
    platform.script("read_export", *[Fault(json={"status": "running"})] * 4, domain="c.example.com")  # 200 seconds
    inputs = {"poll_interval": "50s", "max_poll_interval": "50s", "max_parallel": "1", "mask_bundle_url": "true"}

    ended = action.run(platform, domain="\n".join(domains), values_file="{domain}.yaml", **inputs)

    assert (ended.exit_code, platform.count("make_bundle"), ended.warnings) == (0, 4, []), ended.stdout
    masks = {command.value for command in ended.commands if command.name == "add-mask"}
    for domain, row in rows(ended).items():
        assert link_in(action.workspace / f"{domain}.yaml") == row["bundleUrl"]
        assert row["bundleUrl"] in masks
        assert datetime.fromisoformat(row["expiresAt"]) > clock.now() + timedelta(minutes=30)


@pytest.mark.parametrize("max_parallel", ["1", "3"])
def test_a_domain_that_gets_the_job_of_another_one_fails_and_leaves_the_job_alone(
    action: Action, make_platform: Callable[..., Simulator], max_parallel: str
) -> None:
    platform = make_platform(job_ids=["se_1", "se_2"])
    platform.override("start_export", {"jobId": "se_1", "status": "queued"}, domain="b.example.com")
    domains = ["a.example.com", "b.example.com", "c.example.com"]

    ended = action.export(platform, domain="\n".join(domains), max_parallel=max_parallel, site_path="sites/{domain}")

    results = rows(ended)
    assert (ended.exit_code, ended.reason, len(ended.errors)) == (1, "bad-response", 1)
    assert {domain: results[domain]["failureReason"] for domain in domains} == {
        "a.example.com": None,
        "b.example.com": "bad-response",
        "c.example.com": None,
    }
    known = ("jobId", "status", "bundleUrl", "pageCount", "sitePath")
    assert [results["b.example.com"][name] for name in known] == [None] * len(known)
    assert not (action.workspace / "sites" / "b.example.com").exists()
    assert (platform.count("make_bundle"), platform.count("download")) == (2, 2)
