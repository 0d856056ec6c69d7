"""Waits of up to six hours end as expected despite faults, and use no more memory, threads or descriptors over time."""

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
from tests.reliability.soak import (
    ONE,
    RUNS,
    USUAL_RUNS,
    Run,
    Soak,
    WrongError,
    carry_out,
    check,
    check_many,
    draw,
    draw_many,
    soaked,
)
from tests.reliability.soak_judge import judge
from tests.reliability.soak_platform import Seen
from tests.reliability.soak_truth import FAULT_RATE, KINDS, Outage, Wait

SIX_HOURS = 6 * 3600.0
MAX_GROWTH_BYTES = 64 * 1024
"""Memory that the measurement, Python's caches and a job's progress history may take; measured were 25 to 36 KiB. For 2,500
requests this allows 26 bytes each, less than the smallest object."""

ENDS = {
    *("success", "job-failed", "no-pull-request", "timeout", "unavailable", "start-unconfirmed", "bad-response"),
    *("unauthorized", "forbidden", "not-found", "rejected"),
}
"""Every result that the API can cause."""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # a listing opens one itself, either way


def threads_and_descriptors() -> tuple[int, int]:
    gc.collect()
    return threading.active_count(), descriptors()


@pytest.fixture(scope="module")
def soak() -> Soak:
    return soaked()


@pytest.mark.timeout(max(600, RUNS // 5))
def test_every_run_ends_as_its_responses_require(soak: Soak) -> None:
    assert soak.wrong == ()


@pytest.mark.skipif(bool(ONE) or RUNS != USUAL_RUNS, reason="the page has the results of the usual number")
def test_the_page_has_these_results(soak: Soak) -> None:
    assert soak_part(soak).is_on_the_page(), NOT_COUNTED


@pytest.mark.skipif(bool(ONE) or RUNS < USUAL_RUNS, reason="few runs meet little")
class TestCoverage:
    def test_the_jobs_end_with_every_result(self, soak: Soak) -> None:
        assert {end for end, _ in soak.ends} == ENDS

    def test_every_kind_of_fault_occurs(self, soak: Soak) -> None:
        assert {*KINDS, "too slow", "404", "409"} <= {kind for kind, _ in soak.faults_by_kind}

    def test_at_least_one_request_in_five_fails(self, soak: Soak) -> None:
        assert soak.faults >= FAULT_RATE * soak.exchanges

    def test_the_runs_take_hours_each(self, soak: Soak) -> None:
        assert soak.hours > 2 * (soak.runs + soak.runs_of_many)


class TestCost:
    def test_no_wait_of_six_hours_prints_two_thousand_lines(self, soak: Soak) -> None:
        assert soak.most_lines < 2000

    def test_no_wait_of_six_hours_makes_more_requests_than_its_polls_and_faults(self, soak: Soak) -> None:
        assert soak.max_requests < 2000


class TestSeeds:
    @pytest.mark.parametrize("wait", [draw(3), draw_many(0)], ids=["one job", "several domains"])
    def test_the_same_seed_is_the_same_run(self, wait: Wait) -> None:
        first, second = carry_out(wait), carry_out(wait)

        assert (first.seen, first.log, first.results) == (second.seen, second.log, second.results)


def long_wait(*, pause: int) -> Wait:
    """Return a wait of six hours for a job that completes, with constant pauses."""
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


@pytest.mark.parametrize(("jobs", "check_run"), [(1, check), (12, check_many)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_host_that_does_not_exist_costs_half_a_minute(seed: int, jobs: int, check_run: Callable[[Run], object]) -> None:
    unknown = Outage(began=0.0, ended=SIX_HOURS, kinds=("no such host",))

    run = carry_out(replace(draw(seed, jobs=jobs), outages=(unknown,), refuses=None))

    check_run(run)
    assert {row["failureReason"] for row in run.results} == {"unavailable"}
    assert run.seconds < 35


class TestResources:
    def test_a_wait_uses_no_more_memory_after_thousands_of_requests_than_after_hundreds(self) -> None:
        held: dict[int, int] = {}
        counted = 0

        def look(_: Seen) -> None:
            nonlocal counted
            counted += 1
            if counted in {500, 3000}:
                gc.collect()
                held[counted] = tracemalloc.get_traced_memory()[0]

        carry_out(long_wait(pause=60))  # objects that are made once
        tracemalloc.start()
        try:
            carry_out(long_wait(pause=4), on_seen=look)
        finally:
            tracemalloc.stop()

        assert held[3000] - held[500] < MAX_GROWTH_BYTES

    def test_runs_leak_no_memory(self) -> None:
        def some_runs() -> int:
            for seed in range(12):
                carry_out(draw(seed))
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        some_runs()  # objects that are made once
        tracemalloc.start()
        try:
            first, second = some_runs(), some_runs()
        finally:
            tracemalloc.stop()

        assert second - first < MAX_GROWTH_BYTES

    def test_runs_of_several_domains_leave_no_threads_or_descriptors(self) -> None:
        before = threads_and_descriptors()

        carry_out(draw_many(0))

        assert threads_and_descriptors() == before


def test_runs_over_real_sockets_leave_no_threads_or_descriptors(tmp_path: Path) -> None:
    faults = [
        Fault(cut="in_body"),
        Fault(cut="before_response"),
        Fault(status=503, headers={"Retry-After": "1"}),
        Fault(status=502, body="<html>"),
        Fault(raw=b"SSH-2.0-OpenSSH\r\n"),
        None,
    ]

    def some_runs(platform: Simulator, number: int) -> None:
        for turn in range(4):
            platform.script("read_export", *faults[turn:], *faults)
            platform.script("make_bundle", *faults)
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
    """The judge detects errors: each of these runs did something forbidden."""

    @pytest.fixture(scope="class")
    @staticmethod
    def run() -> Run:
        return carry_out(replace(long_wait(pause=300), attached=False, fault_rate=0.0))

    @pytest.mark.parametrize(
        ("change", "finding"),
        [
            (lambda seen: seen[:-1], "instead of continuing"),
            (lambda seen: [*seen, replace(seen[-1], job_status="again")], "instead of ending with"),
            (lambda seen: [replace(seen[0], result="reset"), *seen], "instead of ending with {'start-unconfirmed'}"),
            (lambda seen: [*seen[:5], *seen[4:]], "two exchanges at a time"),
            (lambda seen: [*seen[:5], *seen[6:]], "a pause of 600"),
            (lambda seen: [*seen[:5], replace(seen[5], result="429", retry_after=400.0), *seen[6:]], "shorter than 400.0"),
            (
                lambda seen: [*seen[:5], *(replace(one, result="429", retry_after=599.0) for one in seen[5:10:2])],
                "no attempt at the limit",
            ),
            (lambda seen: [*seen[:5], replace(seen[5], job_status="failed"), *seen[6:]], "instead of ending with {'job-failed'}"),
        ],
    )
    def test_a_forbidden_request_or_pause_is_detected(
        self, run: Run, change: Callable[[list[Seen]], list[Seen]], finding: str
    ) -> None:
        judge(run.wait, run.seen, has_pr=False)

        with pytest.raises(WrongError) as caught:
            judge(run.wait, change(run.seen), has_pr=False)

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
    def test_a_forbidden_output_or_file_is_detected(self, run: Run, changes: dict[str, object], finding: str) -> None:
        check(run)

        with pytest.raises(WrongError) as caught:
            check(replace(run, **changes))  # type: ignore[arg-type]

        assert finding in str(caught.value)

    def test_a_lost_job_is_detected(self, run: Run) -> None:
        without = {name: value for name, value in run.outputs.items() if name != "jobId"}

        with pytest.raises(WrongError) as caught:
            check(replace(run, outputs=without))

        assert "the outputs are" in str(caught.value)
