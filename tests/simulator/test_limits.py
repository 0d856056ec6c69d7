"""The limits for starts of exports: an hourly quota, and one active export of a deployment."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from admin_api_simulator import StartQuota
from admin_api_simulator.cli import parser, pop_start_quota
from admin_api_simulator.contract import check_request
from admin_api_simulator.jobs import DOCS_PROJECT
from admin_api_simulator.simulator import DEFAULT_READ_KEY
from tests.virtual_platform import API_URL, VirtualPlatform
from tests.virtual_time import VirtualClock

JOBS = "/v1/static-export/jobs"
QUOTA_ERROR = "An organization may start 10 exports an hour."
ACTIVE_ERROR = "An export of this deployment is queued or running."
EXPORT_SECONDS = 600.0
QUOTA_OPTIONS = {"starts_per_hour", "hour_seconds", "hour", "count_refused", "retry_after"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the platform answers."""

    status: int
    fields: Mapping[str, Any]
    retry_after: str | None


class Platform:
    """A simulator whose clock moves only when it is told to."""

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock()
        options = {"export_seconds": EXPORT_SECONDS, **options}
        self.simulator = VirtualPlatform(self.clock, **options).simulator

    def start(self, site: str = "docs.example.com", *, key: str | None = None) -> Answer:
        """Start an export: of a domain, or of a project, whose name has no dot."""
        if "." not in site:
            return self.call("POST", f"/v1/static-export/{site}/jobs", key=key)
        body = json.dumps({"domain": site}).encode()
        return self.call("POST", JOBS, body=body, key=key)

    def call(self, method: str, path: str, *, body: bytes = b"", key: str | None = None) -> Answer:
        """Make a request, and check it against the API's description."""
        headers = {"Authorization": f"Bearer {key or self.simulator.key}"}
        if body:
            headers["Content-Type"] = "application/json"
        reply = self.simulator.reply(
            method=method,
            url=API_URL + path,
            headers=headers,
            body=body,
            at=self.clock.monotonic(),
        )
        self.simulator.sent(reply)
        check_request(self.simulator.requests[-1])
        return Answer(
            status=reply.response.status,
            fields=json.loads(bytes(reply.response.body)),
            retry_after=reply.response.headers.get("Retry-After"),
        )

    def statuses(self, count: int, *, every_seconds: float) -> list[int]:
        """Start an export of `docs.example.com` at these intervals."""
        statuses = []
        for _ in range(count):
            statuses.append(self.start().status)
            self.clock.advance(every_seconds)
        return statuses


def test_a_start_above_the_quota_is_refused_until_the_first_one_was_an_hour_ago() -> None:
    platform = Platform(start_quota=StartQuota(starts=10))

    assert platform.statuses(10, every_seconds=60) == [202] * 10
    refused = platform.start()
    platform.clock.advance(3600 - 600 - 0.5)
    still_refused = platform.start()
    platform.clock.advance(0.5)

    assert refused == Answer(status=429, fields={"error": QUOTA_ERROR}, retry_after=None)
    assert still_refused == refused
    # the first start is an hour old now, the second one in a minute
    assert platform.statuses(4, every_seconds=30) == [202, 429, 202, 429]


def test_both_forms_and_all_domains_share_the_quota() -> None:
    platform = Platform(start_quota=StartQuota(starts=3))

    answers = [
        platform.start("docs.example.com"),
        platform.start("api.example.com"),
        platform.start("docs"),
        platform.start("docs.example.com"),
        platform.start("api"),
    ]

    assert [answer.status for answer in answers] == [202, 202, 202, 429, 429]


def test_with_the_hour_of_the_clock_the_count_begins_again_at_the_full_hour() -> None:
    platform = Platform(start_quota=StartQuota(starts=2, by_clock=True))
    platform.clock.advance(3000)  # since noon

    before = platform.statuses(3, every_seconds=100)
    platform.clock.advance(299.5)
    last = platform.start().status
    platform.clock.advance(0.5)

    assert (before, last) == ([202, 202, 429], 429)
    assert platform.statuses(3, every_seconds=1) == [202, 202, 429]


def test_a_shorter_hour_of_the_clock_begins_at_its_multiples() -> None:
    platform = Platform(start_quota=StartQuota(starts=1, hour_seconds=60, by_clock=True))
    platform.clock.advance(50)

    assert platform.statuses(4, every_seconds=5) == [202, 429, 202, 429]


@pytest.mark.parametrize(
    ("quota", "retry_after"),
    [
        (StartQuota(starts=2, sends_retry_after=True), "3400"),
        (StartQuota(starts=2, sends_retry_after=True, by_clock=True), "2600"),
        # the refused start counts: the next is possible an hour after the second of the first two
        (StartQuota(starts=2, sends_retry_after=True, counts_refused=True), "3500"),
        (StartQuota(starts=2, sends_retry_after=True, counts_refused=True, by_clock=True), "2600"),
    ],
)
def test_after_retry_after_a_start_is_accepted(quota: StartQuota, retry_after: str) -> None:
    platform = Platform(start_quota=quota)
    platform.clock.advance(800.25)
    platform.statuses(2, every_seconds=100)
    platform.clock.advance(0.5)

    refused = platform.start()
    platform.clock.advance(int(retry_after))

    assert (refused.status, refused.retry_after) == (429, retry_after)
    assert platform.start().status == 202


def test_if_refused_starts_count_and_the_hour_slides_retries_are_never_accepted() -> None:
    platform = Platform(start_quota=StartQuota(starts=10, counts_refused=True))
    platform.statuses(10, every_seconds=0)

    retries = platform.statuses(100, every_seconds=300)
    platform.clock.advance(3600)

    assert retries == [429] * 100
    assert platform.start().status == 202


@pytest.mark.parametrize(
    "quota",
    [
        StartQuota(starts=10),
        StartQuota(starts=10, by_clock=True),
        StartQuota(starts=10, by_clock=True, counts_refused=True),
    ],
)
def test_otherwise_retries_are_accepted_after_an_hour(quota: StartQuota) -> None:
    platform = Platform(start_quota=quota)
    platform.statuses(10, every_seconds=0)

    assert platform.statuses(13, every_seconds=300) == [429] * 12 + [202]


@pytest.mark.parametrize("counts_refused", [False, True])
@pytest.mark.parametrize(
    ("site", "key", "status"),
    [
        ("docs.example.com", "wrong", 401),
        ("docs.example.com", DEFAULT_READ_KEY, 403),
        ("no-plan.example.com", None, 403),
        ("private", None, 403),
        ("unknown.example.com", None, 404),
        ("unknown", None, 404),
        ("busy.example.com", None, 409),
        ("active", None, 409),
    ],
)
def test_starts_that_are_refused_for_other_reasons_do_not_count(
    site: str, key: str | None, status: int, counts_refused: bool
) -> None:
    quota = StartQuota(starts=1, counts_refused=counts_refused)
    platform = Platform(start_quota=quota, one_active_export=True)
    platform.simulator.add_export_job("other", domain="active.example.com", seconds=60)

    refused = [platform.start(site, key=key).status for _ in range(3)]
    accepted = platform.start()
    refused_above_the_quota = platform.start(site, key=key)

    assert refused == [status] * 3
    assert accepted.status == 202
    assert refused_above_the_quota.status == status


@pytest.mark.parametrize("options", [{"starts": 0}, {"starts": 1, "hour_seconds": 0.0}])
def test_a_quota_of_nothing_is_an_error(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="greater than zero"):
        StartQuota(**options)


@pytest.mark.parametrize("second", ["docs.example.com", " Docs.Example.com", "docs", DOCS_PROJECT])
@pytest.mark.parametrize("first", ["docs.example.com", "docs"])
def test_a_deployment_has_one_active_export_in_both_forms_together(first: str, second: str) -> None:
    platform = Platform(one_active_export=True)
    job_id = platform.start(first).fields["jobId"]

    platform.clock.advance(EXPORT_SECONDS - 1)
    refused = platform.start(second)
    other = platform.start("other")
    platform.clock.advance(1)

    error = {"error": ACTIVE_ERROR, "jobId": job_id}
    assert refused == Answer(status=409, fields=error, retry_after=None)
    assert other.status == 202
    assert platform.start(second).status == 202


def test_without_one_active_export_a_second_start_is_accepted() -> None:
    platform = Platform()

    assert platform.statuses(2, every_seconds=0) == [202, 202]


@pytest.mark.parametrize("domain", ["docs.example.com", "busy.example.com"])
def test_the_409_can_be_without_the_id_of_the_running_job(domain: str) -> None:
    platform = Platform(one_active_export=True, names_running_job=False)
    platform.start(domain)

    refused = platform.start(domain)

    assert (refused.status, refused.fields) == (409, {"error": ACTIVE_ERROR})


def test_an_added_export_is_an_active_one_until_it_has_ended() -> None:
    platform = Platform(one_active_export=True)
    platform.simulator.add_export_job("earlier", domain="docs.example.com", seconds=30)

    refused = platform.start("docs")
    platform.clock.advance(30)

    assert (refused.status, refused.fields["jobId"]) == (409, "earlier")
    assert platform.start("docs").status == 202


def test_a_busy_domain_has_an_export_already_when_the_first_start_comes() -> None:
    platform = Platform(job_ids=["mine"])
    platform.clock.advance(5000)

    first = platform.start("busy.example.com")
    running = platform.call("GET", f"/v1/static-export/busy/jobs/{first.fields['jobId']}")
    platform.clock.advance(EXPORT_SECONDS - 1)
    later = platform.start("busy")
    platform.clock.advance(1)
    accepted = platform.start("busy")

    assert (first.status, first.fields["error"]) == (409, ACTIVE_ERROR)
    assert (running.status, running.fields["status"]) == (200, "queued")
    assert later == first
    assert (accepted.status, accepted.fields["jobId"]) == (202, "mine")
    # its own export does not make it busy
    assert platform.start("busy.example.com").status == 202


def test_each_busy_domain_has_an_export_of_its_own() -> None:
    platform = Platform()

    first = platform.start("busy.example.com")
    platform.clock.advance(EXPORT_SECONDS)
    other = platform.start("busy.d2.example.com")

    assert (first.status, other.status) == (409, 409)
    assert first.fields["jobId"] != other.fields["jobId"]
    assert platform.start("Busy.example.com").status == 202


@pytest.mark.parametrize(
    ("arguments", "quota"),
    [
        ((), None),
        (("--starts-per-hour", "10"), StartQuota(starts=10)),
        (
            ("--starts-per-hour", "2", "--hour-seconds", "60", "--hour", "clock"),
            StartQuota(starts=2, hour_seconds=60, by_clock=True),
        ),
        (
            ("--starts-per-hour", "2", "--count-refused", "--retry-after"),
            StartQuota(starts=2, counts_refused=True, sends_retry_after=True),
        ),
        (("--hour-seconds", "60", "--hour", "clock", "--count-refused", "--retry-after"), None),
    ],
)
def test_the_options_of_the_program_set_the_quota(
    arguments: Sequence[str],
    quota: StartQuota | None,
) -> None:
    options = vars(parser().parse_args(arguments))

    assert pop_start_quota(options) == quota
    assert options.keys() == vars(parser().parse_args([])).keys() - QUOTA_OPTIONS
