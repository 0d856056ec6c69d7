"""Several domains in one step, in virtual time.

Each ends on its own, and all share the limits of the platform.
"""

import contextlib
import itertools
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from admin_api_simulator import Fault, Simulator
from docs_platform_action.errors import Cancelled
from docs_platform_action.http.pacing import GAP_SECONDS
from docs_platform_action.signals import SignalHandler, Work
from tests.action import Action
from tests.archives import SEVEN_ZIP
from tests.ended import Ended
from tests.forms import BOTH_FORMS, BY_DOMAIN
from tests.virtual_platform import VirtualPlatform
from tests.virtual_time import VirtualClock

MAX_PARALLEL: Final = 20
GOOD: Final = [f"docs{number:02}.example.com" for number in range(93)]
FAILING: Final = {  # the reason, the last status, and whether the job is known
    "failing.example.com": ("job-failed", "failed", True),
    "unknown.example.com": ("not-found", None, False),
    "no-plan.example.com": ("forbidden", None, False),
    "rejected.example.com": ("rejected", None, False),
    "lost.example.com": ("start-unconfirmed", None, False),
    "endless.example.com": ("timeout", "running", True),
    "damaged.example.com": ("invalid-bundle", "completed", True),
}
HUNDRED: Final = [*GOOD[:5], *FAILING, *GOOD[5:]]
A: Final = "a.example.com"


def rows(ended: Ended) -> dict[str, dict[str, Any]]:
    """Return the rows of `results` by domain."""
    return {row["domain"]: row for row in ended.results}


def reasons(ended: Ended) -> list[str | None]:
    return [row["failureReason"] for row in ended.results]


def export(action: Action, platform: VirtualPlatform, domains: list[str], **inputs: str) -> Ended:
    return action.run(platform, domain="\n".join(domains), **inputs)


@BOTH_FORMS
def test_of_a_hundred_each_ends_on_its_own(action: Action, form: str) -> None:
    platform = VirtualPlatform(VirtualClock(), export_seconds=60, pages=12)
    plan_failures(platform.simulator)
    inputs = {"timeout": "5m", "site_path": "sites/{domain}", "values_file": "values/{domain}.yaml"}

    ended = export(action, platform, HUNDRED, max_parallel=str(MAX_PARALLEL), **inputs)

    # the first in the order of the input
    assert ended.end == (1, "job-failed")
    assert len(ended.errors) == len(FAILING)
    assert {*ended.outputs} == {"results", "durationSeconds", "failureReason"}
    assert [*rows(ended)] == HUNDRED
    assert {row["domain"] for row in ended.results if row["failureReason"]} == {*FAILING}
    for domain, (reason, status, is_known) in FAILING.items():
        row = rows(ended)[domain]
        assert row["failureReason"] == reason
        assert row["status"] == status
        assert (row["jobId"] is not None) == is_known
        assert row["bundleUrl"] is None
        assert row["sitePath"] is None
        assert row["valuesFile"] is None
    assert {path.name for path in (action.workspace / "sites").iterdir()} == {*GOOD}
    for domain in GOOD:
        row = rows(ended)[domain]
        check_delivered(row, action.workspace)
        assert row["pageCount"] == (12 if form == BY_DOMAIN else None)
        project = domain.removesuffix(".example.com")
        assert row["projectId"] == (None if form == BY_DOMAIN else project)
        assert 60 <= row["durationSeconds"] < platform.clock.elapsed
    check_requests(platform.simulator)


def plan_failures(simulator: Simulator) -> None:
    """Let the jobs of `FAILING` fail that do not fail by their domain's name."""
    rejected = Fault(status=422)
    simulator.script("start_export", rejected, domain="rejected.example.com")
    lost = Fault(cut="before_response", processed=True)
    simulator.script("start_export", lost, domain="lost.example.com")
    running = Fault(json={"status": "running"})
    simulator.script_forever("read_export", running, domain="endless.example.com")
    damaged = Fault(body=SEVEN_ZIP)
    simulator.script_forever("download", damaged, domain="damaged.example.com")


def check_delivered(row: Mapping[str, Any], workspace: Path) -> None:
    assert row["status"] == "completed"
    assert row["message"] is None
    assert f"/{row['jobId']}/" in row["bundleUrl"]
    assert row["domain"] in (workspace / row["sitePath"] / "index.html").read_text()
    assert row["bundleUrl"] in (workspace / row["valuesFile"]).read_text()


def check_requests(simulator: Simulator) -> None:
    """Check that each of the hundred was started once, and that the limits were kept."""
    count = simulator.count
    assert {count("start_export", domain=domain) for domain in HUNDRED} == {1}
    downloaded = {domain for domain in HUNDRED if count("download", domain=domain)}
    assert downloaded == {*GOOD, "damaged.example.com"}
    # the job whose start got no response runs, too, but nothing waits for it
    assert simulator.max_concurrent_jobs in {MAX_PARALLEL, MAX_PARALLEL + 1}
    to_the_api = [request for request in simulator.requests if request.operation != "download"]
    times = sorted(request.at for request in to_the_api)
    assert min(later - at for at, later in itertools.pairwise(times)) > GAP_SECONDS - 1e-6


@pytest.mark.parametrize(("failures", "annotations"), [(9, 9), (12, 10)])
def test_many_failures_are_counted_in_the_last_annotation(
    action: Action, failures: int, annotations: int
) -> None:
    domains = [f"failing.d{number}.example.com" for number in range(failures)]

    ended = export(action, VirtualPlatform(VirtualClock()), domains)

    assert reasons(ended) == ["job-failed"] * failures
    assert len(ended.errors) == annotations
    assert failures == annotations or "3" in ended.errors[-1]


class TestLimitOfStarts:
    @BOTH_FORMS
    def test_starts_wait_for_room_while_other_jobs_run_however_long_that_takes(
        self, action: Action
    ) -> None:
        platform = VirtualPlatform(VirtualClock(), export_seconds=600, max_jobs=3)

        ended = export(action, platform, GOOD[:9], outage_tolerance="1m")

        assert ended.end == (0, None), ended.stdout
        assert platform.simulator.max_concurrent_jobs == 3
        assert platform.simulator.count("start_export", status=429) > 0


class Interrupted(SignalHandler):
    """Runs the work until a signal arrives, half a minute after its beginning."""

    def __init__(self, clock: VirtualClock, **_: object) -> None:
        """Leave the process's signal handlers alone."""
        self._virtual = clock

    def run(self, work: Work) -> signal.Signals:
        def interrupt() -> None:
            self._virtual.sleep(30.0)
            work.stop()
            self._virtual.cancel()

        with contextlib.suppress(Cancelled):
            self._virtual.run(work.run, interrupt)
        return signal.SIGTERM


@BOTH_FORMS
def test_a_cancel_ends_all_and_keeps_what_is_known_of_each(
    action: Action, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.action.InProcessHandler", Interrupted)
    platform = VirtualPlatform(VirtualClock(), export_seconds=3600)
    platform.simulator.script("start_export", Fault(status=422), domain=A)

    ended = export(action, platform, [A, *GOOD[:5]], max_parallel="3", site_path="{domain}")

    assert ended.end == (143, "rejected")  # the first, in the order of the input
    assert reasons(ended) == ["rejected", *["cancelled"] * 5]
    started = [row["domain"] for row in ended.results if row["jobId"] is not None]
    assert started == GOOD[:3]
    assert platform.clock.elapsed < 31
    cancelled = r"(?m)^ +0:30  docs\d+.example.com +cancelled after 0:\d\d\b"
    assert len(re.findall(cancelled, ended.log)) == 3
    assert [*action.workspace.iterdir()] == []
