"""Several domains in one step: each ends on its own, all share the limits of the platform. In virtual time."""

import contextlib
import itertools
import re
import signal
from typing import Any, Final

import pytest

from admin_api_simulator import Fault
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
A, B = (f"{letter}.example.com" for letter in "ab")


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
    simulator, count = platform.simulator, platform.simulator.count
    simulator.script("start_export", Fault(status=422), domain="rejected.example.com")
    simulator.script(
        "start_export", Fault(cut="before_response", processed=True), domain="lost.example.com"
    )
    simulator.script_forever(
        "read_export", Fault(json={"status": "running"}), domain="endless.example.com"
    )
    simulator.script_forever("download", Fault(body=SEVEN_ZIP), domain="damaged.example.com")
    inputs = {"timeout": "5m", "site_path": "sites/{domain}", "values_file": "values/{domain}.yaml"}

    ended = export(action, platform, HUNDRED, max_parallel=str(MAX_PARALLEL), **inputs)

    failed = {row["domain"]: row for row in ended.results if row["failureReason"]}
    assert (ended.end, len(ended.errors)) == (
        (1, "job-failed"),
        len(FAILING),
    )  # the first in the order of the input
    assert {*ended.outputs} == {"results", "durationSeconds", "failureReason"}
    assert [*rows(ended)] == HUNDRED
    assert {
        name: (row["failureReason"], row["status"], row["jobId"] is not None)
        for name, row in failed.items()
    } == FAILING
    assert {
        row[name] for row in failed.values() for name in ("bundleUrl", "sitePath", "valuesFile")
    } == {None}
    assert {path.name for path in (action.workspace / "sites").iterdir()} == {*GOOD}
    for domain in GOOD:
        row = rows(ended)[domain]
        assert (row["status"], row["pageCount"], row["message"]) == (
            "completed",
            12 if form == BY_DOMAIN else None,
            None,
        )
        assert row["projectId"] == (
            None if form == BY_DOMAIN else domain.removesuffix(".example.com")
        )
        assert f"/{row['jobId']}/" in row["bundleUrl"]
        assert domain in (action.workspace / row["sitePath"] / "index.html").read_text()
        assert row["bundleUrl"] in (action.workspace / row["valuesFile"]).read_text()
        assert 60 <= row["durationSeconds"] < platform.clock.elapsed
    assert {count("start_export", domain=domain) for domain in HUNDRED} == {1}
    assert {domain for domain in HUNDRED if count("download", domain=domain)} == {
        *GOOD,
        "damaged.example.com",
    }
    # the job whose start got no response runs, too, but nothing waits for it
    assert simulator.max_concurrent_jobs in {MAX_PARALLEL, MAX_PARALLEL + 1}
    times = sorted(request.at for request in simulator.requests if request.operation != "download")
    assert min(later - at for at, later in itertools.pairwise(times)) > GAP_SECONDS - 1e-6


@pytest.mark.parametrize(("failures", "annotations"), [(9, 9), (12, 10)])
def test_many_failures_are_counted_in_the_last_annotation(
    action: Action, failures: int, annotations: int
) -> None:
    ended = export(
        action,
        VirtualPlatform(VirtualClock()),
        [f"failing.d{number}.example.com" for number in range(failures)],
    )

    assert (reasons(ended), len(ended.errors)) == (["job-failed"] * failures, annotations)
    assert failures == annotations or "3" in ended.errors[-1]


class TestLimitOfStarts:
    @BOTH_FORMS
    def test_starts_wait_for_room_while_other_jobs_run_however_long_that_takes(
        self, action: Action
    ) -> None:
        platform = VirtualPlatform(VirtualClock(), export_seconds=600, max_jobs=3)

        ended = export(action, platform, GOOD[:9], outage_tolerance="1m")

        assert (ended.end, platform.simulator.max_concurrent_jobs) == ((0, None), 3), ended.stdout
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
    assert [row["jobId"] is not None for row in ended.results] == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]
    assert platform.clock.elapsed < 31
    assert (
        len(
            re.findall(
                r"^ +0:30  docs\d+.example.com +cancelled after 0:\d\d\b", ended.log, re.MULTILINE
            )
        )
        == 3
    )
    assert [*action.workspace.iterdir()] == []
