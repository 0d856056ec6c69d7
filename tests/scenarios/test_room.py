"""A start that the platform refuses for lack of room waits, in virtual time.

It waits for another export, or for a limit.
"""

import itertools
import re
from collections.abc import Sequence
from typing import Any, Final

import pytest

from admin_api_simulator import ExportPlan, Fault, StartQuota
from admin_api_simulator.github import COMMIT, CREATOR, NEWER, OLDER
from tests.action import Action
from tests.ended import Ended
from tests.forms import BOTH_FORMS
from tests.scenarios.test_many import Interrupted, reasons, rows
from tests.virtual_platform import Sent, Trouble, VirtualPlatform
from tests.virtual_time import BEGINNING, VirtualClock

HOUR: Final = 3600.0
QUOTA: Final = StartQuota(starts=10)
RUNNING: Final = Fault(status=409, json={"error": "An export is running.", "jobId": "se_7"})
UNNAMED: Final = Fault(status=409, json={})
LIMIT: Final = Fault(status=429, json={"error": "An organization may start 10 exports an hour."})
DOWN: Final = ConnectionRefusedError()
SITE: Final = "docs.example.com"
FIVE: Final = [f"{letter}.example.com" for letter in "abcde"]


def sites(count: int) -> list[str]:
    return [f"docs{number:03}.example.com" for number in range(count)]


def platform_of(**options: Any) -> VirtualPlatform:
    return VirtualPlatform(VirtualClock(), **{"export_seconds": 240.0, **options})


def export(action: Action, platform: VirtualPlatform, *domains: str, **inputs: str) -> Ended:
    return action.run(platform, domain="\n".join(domains), **inputs)


def starts(platform: VirtualPlatform) -> list[tuple[int, int]]:
    """Return when each start was sent, in seconds since the beginning, and its status."""
    sent = platform.simulator.requests_of("start_export")
    return [(round(request.at - BEGINNING), request.status or 0) for request in sent]


def times(platform: VirtualPlatform) -> list[int]:
    return [at for at, _ in starts(platform)]


def is_start(sent: Sent) -> bool:
    return sent.method == "POST" and "/bundle" not in sent.target


@BOTH_FORMS
class TestAnotherExport:
    @pytest.mark.parametrize("is_named", [True, False])
    def test_a_start_waits_until_it_has_ended_and_is_exported_itself(
        self, action: Action, is_named: bool
    ) -> None:
        platform = platform_of(export_seconds=120.0, names_running_job=is_named)

        ended = export(action, platform, "busy.example.com")

        assert ended.end == (0, None)
        assert starts(platform) == [(0, 409), (30, 409), (90, 409), (210, 202)]
        named = re.findall(r"running \(job (se_\w+)\)", ended.log)
        assert bool(named) == is_named
        assert ended.outputs["jobId"] not in named
        assert "until 13:15 UTC" in ended.log
        assert "mode: collect" in ended.log.split("accepted the start after 3:30")[0]

    def test_one_that_an_earlier_run_left_is_waited_for(self, action: Action) -> None:
        platform = platform_of(one_active_export=True)
        earlier = export(action, platform, SITE, wait="false")

        ended = export(action, platform, SITE, site_path="site")

        assert ended.end == (0, None), ended.stdout
        assert f"running (job {earlier.outputs['jobId']})" in ended.log
        assert ended.outputs["jobId"] != earlier.outputs["jobId"]
        assert platform.simulator.count("start_export", status=202) == 2

    @pytest.mark.parametrize("is_named", [True, False])
    def test_one_that_never_ends_fails_the_run_after_start_timeout(
        self, action: Action, is_named: bool
    ) -> None:
        platform = platform_of()
        fault = RUNNING if is_named else UNNAMED
        platform.simulator.script_forever("start_export", fault)

        ended = export(action, platform, SITE)

        assert ended.end == (1, "rejected")
        assert "jobId" not in ended.outputs
        assert ended.result["jobId"] is None
        assert times(platform)[:6] == [0, 30, 90, 210, 450, 750]
        assert times(platform)[-1] == 75 * 60
        assert len(times(platform)) == 19
        assert ("se_7" in ended.error) == is_named
        assert "start-timeout" in ended.error

    def test_it_delays_no_other_site_and_takes_no_place(self, action: Action) -> None:
        platform = platform_of()
        busy, *others = FIVE
        platform.simulator.script("start_export", *[RUNNING] * 6, domain=busy)

        ended = export(action, platform, busy, *others, max_parallel="1")

        accepted = [at for at, status in starts(platform) if status == 202]
        assert ended.end == (0, None)
        assert platform.simulator.max_concurrent_jobs == 1
        assert accepted[3] < 3 * 260  # the busy one is the last
        assert rows(ended)[busy]["durationSeconds"] > accepted[4]  # since its first start
        assert platform.simulator.count("start_export", domain=busy) == 7

    def test_this_runs_own_export_for_another_site_is_named_and_not_to_be_collected(
        self, action: Action
    ) -> None:
        platform = platform_of()
        first, second = FIVE[:2]
        platform.simulator.plan_export(first, ExportPlan(job_id="se_1", seconds=100))
        own = Fault(status=409, json={"error": "no", "jobId": "se_1"})
        platform.simulator.script("start_export", *[own] * 3, domain=second)

        ended = export(action, platform, first, second)

        assert ended.end == (0, None)
        assert len({row["jobId"] for row in ended.results}) == 2
        assert f"the same deployment for {first} (job se_1)" in ended.log
        assert "To use that export" not in ended.log

    def test_the_start_waits_without_a_wait_for_the_job_too(self, action: Action) -> None:
        platform = platform_of()
        platform.simulator.script("start_export", RUNNING)

        ended = export(action, platform, SITE, wait="false")

        assert ended.end == (0, None)
        assert times(platform) == [0, 30]
        assert ended.outputs["jobId"]


@BOTH_FORMS
class TestLimit:
    @pytest.mark.parametrize(
        ("faults", "expected"),
        [
            ([LIMIT], [0, 30]),
            ([LIMIT] * 4, [0, 30, 90, 210, 450]),
            ([Fault(status=429, headers={"Retry-After": "1800"})], [0, 1800]),
            # a platform that asks for too little is not asked again at its pace
            ([Fault(status=429, headers={"Retry-After": "1"})] * 4, [0, 1, 31, 91, 211]),
            ([Fault(status=409, headers={"Retry-After": "100"})] * 3, [0, 100, 200, 300]),
            ([Fault(status=429, headers={"Retry-After": "7200"})], [0, 4500]),
            # in turn
            ([RUNNING, LIMIT] * 3, [0, 30, 60, 120, 180, 300, 420]),
        ],
    )
    def test_a_start_is_sent_again_after_the_pause_that_was_asked_for_or_a_longer_one(
        self, action: Action, faults: Sequence[Fault], expected: list[int]
    ) -> None:
        platform = platform_of()
        platform.simulator.script("start_export", *faults)

        ended = export(action, platform, SITE)

        assert ended.end == (0, None), ended.stdout
        assert times(platform) == pytest.approx(expected, abs=1)

    def test_one_that_lasts_fails_all_sites_after_start_timeout_with_few_starts(
        self, action: Action
    ) -> None:
        platform = platform_of()
        platform.simulator.script_forever("start_export", LIMIT, after=[None, None])

        ended = export(action, platform, *FIVE)

        assert reasons(ended) == [None, None, *["unavailable"] * 3]
        assert 75 * 60 <= platform.clock.elapsed < 76 * 60
        assert platform.simulator.count("start_export", status=429) < 25

    def test_sites_whose_turn_never_came_end_with_one_last_attempt_for_all(
        self, action: Action
    ) -> None:
        platform = platform_of()
        platform.simulator.script_forever("start_export", LIMIT)

        ended = export(action, platform, *sites(60), max_parallel="1")

        assert {*reasons(ended)} == {"unavailable"}
        assert 75 * 60 <= platform.clock.elapsed < 76 * 60
        assert len(times(platform)) < 25

    def test_one_that_is_about_one_site_alone_stops_no_other(self, action: Action) -> None:
        platform = platform_of()
        for domain in FIVE[:2]:
            platform.simulator.script_forever("start_export", LIMIT, domain=domain)

        ended = export(action, platform, *FIVE, max_parallel="1")

        assert reasons(ended) == ["unavailable", "unavailable", None, None, None]

    @pytest.mark.parametrize(
        "trouble", [DOWN, TimeoutError(), Fault(status=503, headers={"Retry-After": "9999"})]
    )
    def test_an_outage_after_it_is_waited_out_side_by_side(
        self, action: Action, trouble: Trouble
    ) -> None:
        first_answers = iter([LIMIT, None])

        def fail(sent: Sent) -> Trouble:
            if not is_start(sent):
                return None
            return next(first_answers, trouble)

        platform = VirtualPlatform(VirtualClock(), trouble=fail, seconds=lambda _: 2.0)

        ended = export(action, platform, *sites(20))

        assert "responding again" not in ended.log
        assert reasons(ended).count("unavailable") == 19
        assert reasons(ended).count(None) == 1
        assert platform.clock.elapsed < 35 * 60  # three rounds of `outage-tolerance`, not nineteen

    def test_one_that_is_about_one_site_alone_delays_the_others_little(
        self, action: Action
    ) -> None:
        platform = platform_of()
        platform.simulator.script_forever("start_export", LIMIT, domain=FIVE[0])

        ended = export(action, platform, FIVE[0], *sites(20), start_timeout="5m")

        assert reasons(ended) == ["unavailable", *[None] * 20]
        assert platform.clock.elapsed < 30 * 60

    def test_a_start_after_an_outage_is_held_back_by_a_limit_too(self, action: Action) -> None:
        clock = VirtualClock()
        outage = Fault(status=503, headers={"Retry-After": "120"})
        answers = iter([LIMIT, *[outage] * 9])
        pause = Fault(status=429, headers={"Retry-After": "1800"})
        refused: list[float] = []

        def trouble(sent: Sent) -> Trouble:
            if not is_start(sent):
                return None
            answer = next(answers, None)
            if answer is None and not refused:
                refused.append(clock.elapsed)
                return pause
            return answer

        platform = VirtualPlatform(clock, trouble=trouble)

        ended = export(action, platform, *sites(10))

        assert ended.end == (0, None), ended.stdout
        later = [at for at in times(platform) if at > refused[0] + 1]
        assert min(later) >= refused[0] + 1799

    def test_after_it_starts_follow_one_at_a_time_once_one_is_accepted(
        self, action: Action
    ) -> None:
        platform = platform_of(start_quota=StartQuota(starts=3), seconds=lambda _: 2.0)

        ended = export(action, platform, *sites(20), start_timeout="90m")

        assert ended.end == (0, None), ended.stdout
        refused = [at for at, status in starts(platform) if status == 429]
        # those that were sent before the first refusal was known
        together = len([at for at in refused if at <= 10])
        assert together < len(refused)
        assert together <= 9
        later = times(platform)[3 + together :]
        # never before the last answer
        assert min(after - before for before, after in itertools.pairwise(later)) >= 2
        accepted = [at for at, status in starts(platform) if status == 202]
        assert accepted[5] - accepted[3] < 10

    def test_each_start_that_is_accepted_begins_start_timeout_anew(self, action: Action) -> None:
        platform = platform_of(start_quota=StartQuota(starts=1, hour_seconds=20 * 60))

        ended = export(action, platform, *FIVE, start_timeout="30m")

        assert ended.end == (0, None), ended.stdout
        assert platform.clock.elapsed > 80 * 60

    @pytest.mark.parametrize(
        "quota",
        [
            {},
            {"by_clock": True},
            {"sends_retry_after": True},
            {"counts_refused": True, "by_clock": True},
            {"counts_refused": True, "sends_retry_after": True},
        ],
    )
    def test_an_hour_passes_and_all_twelve_sites_are_exported(
        self, action: Action, quota: dict[str, bool]
    ) -> None:
        platform = platform_of(start_quota=StartQuota(starts=10, **quota))

        ended = export(action, platform, *sites(12))

        assert ended.end == (0, None), ended.stdout
        assert len(ended.results) == 12
        assert HOUR <= platform.clock.elapsed < HOUR + 300 + 260
        assert platform.simulator.count("start_export", status=202) == 12
        assert platform.simulator.count("start_export", status=429) < 20

    def test_a_sliding_hour_in_which_refused_starts_count_is_never_over(
        self, action: Action
    ) -> None:
        platform = platform_of(start_quota=StartQuota(starts=10, counts_refused=True))

        ended = export(action, platform, *sites(12))

        assert reasons(ended) == [*[None] * 10, *["unavailable"] * 2]


SIXTY_REFUSED: Final = 70
"""How many starts of sixty sites are refused: about fourteen in each of five hours."""


def test_sixty_sites_are_exported_in_six_hours(action: Action) -> None:
    platform = platform_of(start_quota=QUOTA)

    ended = export(action, platform, *sites(60))

    assert ended.end == (0, None), ended.stdout
    assert 5 * HOUR < platform.clock.elapsed < 6 * HOUR
    assert platform.simulator.count("start_export", status=429) == SIXTY_REFUSED
    assert platform.simulator.max_concurrent_jobs == 10
    # at least one line a minute, and each minute of the wait says what for, and until when
    waiting = r"waiting for \S+ The platform allows .* until \d\d:\d\d UTC"
    minutes = re.findall(rf"(?m)^ *(\d:\d\d):\d\d  .* {waiting}", ended.log)
    assert len({*minutes}) > 3.5 * 60


def test_outages_in_the_middle_of_a_wait_have_their_own_tolerance(action: Action) -> None:
    clock = VirtualClock()
    sent: list[float] = []

    def trouble(request: Sent) -> Trouble:
        if not is_start(request):
            return None
        sent.append(clock.elapsed)
        if clock.elapsed >= 600:
            return None
        return RUNNING if len(sent) % 4 == 1 else DOWN

    platform = VirtualPlatform(clock, trouble=trouble)

    ended = export(action, platform, SITE, outage_tolerance="3m")

    assert ended.end == (0, None), ended.stdout
    outages = ended.log.count("Retrying for")
    assert outages > 0
    assert ended.log.count("responding again") == outages


@pytest.mark.parametrize(
    "trouble", [Fault(status=502), Fault(cut="before_response", processed=True)]
)
def test_a_start_in_the_middle_of_a_wait_that_may_have_been_processed_is_not_repeated(
    action: Action, trouble: Fault
) -> None:
    platform = platform_of()
    platform.simulator.script("start_export", RUNNING, LIMIT, trouble)

    ended = export(action, platform, SITE)

    assert ended.end == (1, "start-unconfirmed")
    assert len(times(platform)) == 3


@BOTH_FORMS
@pytest.mark.parametrize(
    "fault", [RUNNING, LIMIT, Fault(status=429, headers={"Retry-After": "3000"})]
)
def test_a_cancel_ends_a_wait_at_once_and_nothing_was_started(
    action: Action, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    monkeypatch.setattr("tests.action.InProcessHandler", Interrupted)
    platform = platform_of()
    platform.simulator.script_forever("start_export", fault)

    ended = export(action, platform, SITE)

    assert ended.end == (143, "cancelled")
    assert "jobId" not in ended.outputs
    assert platform.clock.elapsed < 31
    assert "Nothing was started" in ended.error
    assert "waited for room for 0:" in ended.error
    assert ("se_7" in ended.error) == (fault is RUNNING)


def test_the_summary_of_a_cancelled_wait_says_what_for_and_until_when(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.action.InProcessHandler", Interrupted)
    platform = platform_of(start_quota=QUOTA)

    ended = export(action, platform, *sites(60), max_parallel="20")

    assert ended.end == (143, "cancelled")
    assert "The platform allowed no more starts" in ended.summary
    assert "the last one at 13:15 UTC" in ended.summary


class TestCommit:
    def export(
        self, action: Action, platform: VirtualPlatform, *domains: str, **inputs: str
    ) -> Ended:
        wanted = {
            "commit": COMMIT,
            "github_token": platform.simulator.token,
            "deployment_creator": CREATOR,
        }
        return export(action, platform, *domains, **wanted, **inputs)

    def test_one_that_is_overtaken_during_a_wait_is_read_again_before_the_start(
        self, action: Action
    ) -> None:
        platform = platform_of()
        platform.simulator.github.add(COMMIT)
        platform.simulator.github.add(NEWER, in_seconds=60)
        platform.simulator.script("start_export", *[RUNNING] * 3)

        ended = self.export(action, platform, SITE)

        assert ended.end == (0, None)
        assert ended.outputs["deployedCommit"] == NEWER

    def test_one_that_is_no_longer_served_after_a_wait_is_not_exported(
        self, action: Action
    ) -> None:
        platform = platform_of()
        platform.simulator.github.add(COMMIT)
        platform.simulator.github.add(OLDER, in_seconds=60)
        platform.simulator.script("start_export", *[RUNNING] * 3)

        ended = self.export(action, platform, SITE, commit_timeout="5m")

        assert ended.reason == "not-deployed"
        assert platform.simulator.count("start_export", status=202) == 0


def test_a_key_that_is_wrong_after_a_limit_is_sent_once(action: Action) -> None:
    platform = platform_of()
    platform.simulator.script_forever("start_export", Fault(status=401), after=[LIMIT])

    ended = export(action, platform, *FIVE)

    assert {*reasons(ended)} == {"unauthorized"}
    assert len(times(platform)) == 2


def test_a_key_that_is_refused_after_another_export_was_running_fails_its_own_site(
    action: Action,
) -> None:
    platform = platform_of()
    platform.simulator.script("start_export", RUNNING, Fault(status=401), domain=FIVE[0])

    ended = export(action, platform, *FIVE)

    assert reasons(ended) == ["unauthorized", *[None] * 4]


def test_the_first_site_waits_alone_only_for_its_first_answer(action: Action) -> None:
    platform = platform_of()
    platform.simulator.script("start_export", *[RUNNING] * 4, domain=FIVE[0])

    ended = export(action, platform, *FIVE)

    assert ended.end == (0, None)
    assert {*times(platform)[:5]} <= {0, 1}
    assert rows(ended)[FIVE[1]]["durationSeconds"] < 260
