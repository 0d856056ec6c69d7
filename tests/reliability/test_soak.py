"""Waits of up to six hours end as they are to, whatever goes wrong meanwhile, and cost no more at the end than at first."""

import gc
import os
import threading
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from admin_api_simulator import Fault, Simulator
from tests.inside import run_inside
from tests.keys import ADMIN_KEY
from tests.reliability.page import NOT_COUNTED, soak_part
from tests.reliability.soak import ONE, RUNS, USUAL_RUNS, Run, Soak, WrongError, carry_out, check, draw, draw_many, soaked
from tests.reliability.soak_judge import judge
from tests.reliability.soak_truth import FAULT_RATE, KINDS, Wait
from tests.reliability.soak_wire import Seen

SIX_HOURS = 6 * 3600.0
MAX_SUMMARY_BYTES = 64 * 1024
"""What measuring memory itself, what Python keeps for later and the steps of a job's pace may come to: seen were 25 to 36 KiB. Of
2,500 requests each may leave 26 bytes, which is less than the smallest object."""

ENDS = {
    *("success", "job-failed", "no-pull-request", "timeout", "unavailable", "start-unconfirmed", "bad-response"),
    *("unauthorized", "forbidden", "not-found", "rejected"),
}
"""Every end that the API can bring about."""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # a listing opens one itself, either way


def threads_and_descriptors() -> tuple[int, int]:
    """Count both, when the watchers of exchanges, which were told to end, have ended."""
    for thread in threading.enumerate():
        if thread.name == "watchdog":
            thread.join(60)
    gc.collect()
    return threading.active_count(), descriptors()


@pytest.fixture(scope="module")
def soak() -> Soak:
    return soaked()


@pytest.mark.timeout(max(600, RUNS // 5))
def test_every_run_ends_as_what_its_platform_answered_demands(soak: Soak) -> None:
    assert soak.wrong == ()


@pytest.mark.skipif(bool(ONE) or RUNS != USUAL_RUNS, reason="the page tells what the usual number comes to")
def test_the_page_of_evidence_says_so(soak: Soak) -> None:
    assert soak_part(soak).is_on_the_page(), NOT_COUNTED


@pytest.mark.skipif(bool(ONE) or RUNS < USUAL_RUNS, reason="few runs meet little")
class TestWhatIsCovered:
    def test_the_jobs_come_to_every_end_there_is(self, soak: Soak) -> None:
        assert {end for end, _ in soak.ends} == ENDS

    def test_every_kind_of_fault_is_met(self, soak: Soak) -> None:
        assert {*KINDS, "too slow", "404", "409"} <= {kind for kind, _ in soak.faults_by_kind}

    def test_one_exchange_in_five_at_least_is_spoilt(self, soak: Soak) -> None:
        assert soak.faults >= FAULT_RATE * soak.exchanges

    def test_the_runs_take_hours_each(self, soak: Soak) -> None:
        assert soak.hours > 2 * (soak.runs + soak.runs_of_many)


class TestCost:
    def test_no_wait_of_six_hours_prints_two_thousand_lines(self, soak: Soak) -> None:
        assert soak.most_lines < 2000

    def test_no_wait_of_six_hours_makes_more_requests_than_its_readings_and_faults(self, soak: Soak) -> None:
        assert soak.max_requests < 2000


class TestSeeds:
    @pytest.mark.parametrize("wait", [draw(3), draw_many(0)], ids=["one job", "several domains"])
    def test_the_same_seed_is_the_same_run(self, wait: Wait) -> None:
        first, second = carry_out(wait), carry_out(wait)

        assert (first.seen, first.log, first.results) == (second.seen, second.log, second.results)


def long_wait(*, pause: int) -> Wait:
    """Wait six hours for a job that completes, with pauses that do not grow."""
    wait = draw(0)
    job = replace(wait.jobs[0], seconds=SIX_HOURS, end="completed", shape="steady", others=(), settles_after=0.0, packs_for=0.0)
    return replace(
        wait,
        mode="export",
        attached=True,
        waits=True,
        jobs=(job,),
        poll=pause,
        longest_poll=pause,
        timeout=7 * 3600,
        tolerance=900,
        outages=(),
        refuses=None,
    )


class TestWhatIsHeld:
    def test_a_wait_holds_no_more_after_thousands_of_requests_than_after_hundreds(self) -> None:
        held: dict[int, int] = {}
        counted = 0

        def look(_: Seen) -> None:
            nonlocal counted
            counted += 1
            if counted in {500, 3000}:
                gc.collect()
                held[counted] = tracemalloc.get_traced_memory()[0]

        carry_out(long_wait(pause=60))  # what is made once is made
        tracemalloc.start()
        try:
            carry_out(long_wait(pause=4), on_seen=look)
        finally:
            tracemalloc.stop()

        assert held[3000] - held[500] < MAX_SUMMARY_BYTES

    def test_runs_leave_no_memory_behind(self) -> None:
        def some_runs() -> int:
            for seed in range(12):
                carry_out(draw(seed))
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        some_runs()  # what is made once is made
        tracemalloc.start()
        try:
            first, second = some_runs(), some_runs()
        finally:
            tracemalloc.stop()

        assert second - first < MAX_SUMMARY_BYTES

    def test_runs_of_several_domains_leave_no_threads_or_descriptors_behind(self) -> None:
        before = threads_and_descriptors()

        carry_out(draw_many(0))

        assert threads_and_descriptors() == before


def test_runs_over_real_sockets_leave_no_threads_or_descriptors_behind(tmp_path: Path) -> None:
    spoilt = [
        Fault(cut="in_body"),
        Fault(cut="before_response"),
        Fault(status=503, headers={"Retry-After": "1"}),
        Fault(status=502, body="<html>"),
        Fault(raw=b"SSH-2.0-OpenSSH\r\n"),
        None,
    ]

    def some_runs(platform: Simulator, number: int) -> None:
        for turn in range(4):
            platform.script("read_export", *spoilt[turn:], *spoilt)
            platform.script("make_bundle", *spoilt)
            platform.script("download", Fault(cut="in_body"), None)
            folder = f"{number}-{turn}"
            inputs = {"bundle-path": f"{folder}/bundle.tar.gz", "site-path": f"{folder}/site"}
            given = {"base-url": platform.base_url, "admin-key": ADMIN_KEY, "domain": "docs.example.com", **inputs}
            assert run_inside(given, workspace=tmp_path).exit_code == 0

    def left_after(number: int) -> tuple[int, int]:
        with Simulator(key=ADMIN_KEY, export_seconds=0.05, pages=1) as platform:
            some_runs(platform, number)
        return threads_and_descriptors()

    assert left_after(1) == left_after(2)


class TestJudge:
    """The judge must be able to find fault: each of these runs did what none may do."""

    @pytest.fixture(scope="class")
    @staticmethod
    def run() -> Run:
        return carry_out(replace(long_wait(pause=300), attached=False, fault_rate=0.0))

    @pytest.mark.parametrize(
        ("spoil", "finding"),
        [
            (lambda seen: seen[:-1], "at which it was to go on"),
            (lambda seen: [*seen, replace(seen[-1], answered="again")], "though it was to end with"),
            (lambda seen: [replace(seen[0], got="reset"), *seen], "though it was to end with {'start-unconfirmed'}"),
            (lambda seen: [*seen[:5], *seen[4:]], "two exchanges at a time"),
            (lambda seen: [*seen[:5], *seen[6:]], "as much as 600"),
            (lambda seen: [*seen[:5], replace(seen[5], got="429", asked=400.0), *seen[6:]], "not 400.0"),
            (lambda seen: [*seen[:5], *(replace(one, got="429", asked=599.0) for one in seen[5:10:2])], "nothing began when"),
            (lambda seen: [*seen[:5], replace(seen[5], answered="failed"), *seen[6:]], "to end with {'job-failed'}"),
        ],
    )
    def test_a_run_that_does_what_none_may_do_is_found(
        self, run: Run, spoil: Callable[[list[Seen]], list[Seen]], finding: str
    ) -> None:
        judge(run.wait, run.seen, has_pr=False)

        with pytest.raises(WrongError) as caught:
            judge(run.wait, spoil(run.seen), has_pr=False)

        assert finding in str(caught.value)

    @pytest.mark.parametrize(
        ("changes", "finding"),
        [
            ({"exit_code": 1}, "exit code"),
            ({"starts": {"docs-1.example.com": 2}}, "2 jobs were started"),
            ({"summary": ""}, "no summary"),
            ({"most_under_way": 2}, "2 requests at a time"),
            ({"log": "::error title=a::a\n"}, "1 error annotations"),
            ({"log": "line\n" * 2000}, "2000 lines"),
            ({"log": f"{ADMIN_KEY[:4]}Traceback\n"}, "stack trace"),
        ],
    )
    def test_a_run_that_tells_or_leaves_what_none_may_is_found(self, run: Run, changes: dict[str, object], finding: str) -> None:
        check(run)

        with pytest.raises(WrongError) as caught:
            check(replace(run, **changes))  # type: ignore[arg-type]

        assert finding in str(caught.value)

    def test_a_lost_job_is_found(self, run: Run) -> None:
        without = {name: value for name, value in run.outputs.items() if name != "jobId"}

        with pytest.raises(WrongError) as caught:
            check(replace(run, outputs=without))

        assert "the outputs are" in str(caught.value)
