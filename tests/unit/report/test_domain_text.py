"""How the log of several exports describes one domain, and the domains that were not started."""

from datetime import timedelta

import pytest

from docs_platform_action.errors import ActionError, Cancelled, TimedOut, Unauthorized
from docs_platform_action.models import Bundle
from tests.unit.report.test_multi_log import Run
from tests.virtual_time import NOON


class TestLive:
    @pytest.mark.parametrize(
        ("known", "shown"),
        [
            ({}, "done"),
            ({"page_count": 1}, "done: 1 page"),
            ({"bundle": Bundle(url="https://s.example.com/b")}, "done"),
            (
                {"bundle": Bundle(url="https://s.example.com/b", expires=NOON - timedelta(minutes=1))},
                "done: link expired at 11:59 UTC by this runner's clock",
            ),
            ({"failure": TimedOut("still running after 60:00")}, "failed: timeout, still running after 60:00"),
            ({"failure": Cancelled("cancelled after 0:31")}, "cancelled after 0:31"),
        ],
    )
    def test_an_end_shows_the_result(self, known: dict[str, object], shown: str) -> None:
        run = Run("a.example")
        run.begin(0)
        for name, value in known.items():
            setattr(run.jobs[0], name, value)
        run.jobs[0].job_id = "se_1"

        run.log.job_ended(run.jobs[0])

        counted = "" if shown.startswith("cancelled") else " 1 failed" if shown.startswith("failed") else " 1 done"
        assert run.shown == [f"0:00 a.example {shown}{counted}"]


class TestNotStarted:
    def test_each_reason_has_one_line(self) -> None:
        run = Run(*(f"d{number}.example" for number in range(7)))
        run.begin(0)
        for number in range(6):
            run.end(number, Unauthorized("the key is refused (401)"))
        run.end(6, Cancelled("cancelled after 0:00"))
        run.clock.advance(1)

        run.log.close()

        assert run.shown == [
            "0:00 d0.example failed: unauthorized, the key is refused (401) 1 failed, 6 pending",
            "0:01 1 failed, 6 not started",
            "5 domains not started (d1.example, d2.example, d3.example and 2 more): the key is refused (401)",
            "1 domain not started (d6.example): the run was cancelled",
        ]

    def test_domains_without_events_are_listed(self) -> None:
        run = Run("a.example", "b.example")

        run.log.close()

        assert run.shown == ["0:00 2 not started", "2 domains not started (a.example, b.example)"]


class TestHeartbeat:
    def test_a_few_running_domains_are_listed_with_their_state(self) -> None:
        run = Run()
        run.begin(0, 1, 2)
        run.read(1, "running", 57)
        run.read(2, "completed", 100)

        shown = run.heartbeat()

        assert shown == "0:55 3 running (a.example starting, b.example running 57 %, c.example completed)"


class TestGroups:
    @pytest.mark.parametrize(
        ("failure", "ended", "title"),
        [
            (Cancelled("cancelled"), True, "a.example: cancelled after 0:09"),
            (Cancelled("cancelled"), False, "a.example: cancelled after 0:09"),
            (TimedOut("slow"), False, "a.example: failed after 0:09 (timeout)"),
            (None, False, "a.example: not ended after 0:09"),
        ],
    )
    def test_their_titles_show_the_end(self, failure: ActionError | None, ended: bool, title: str) -> None:
        run = Run("a.example")
        run.begin(0)
        run.note(0)
        run.clock.advance(9)
        run.jobs[0].failure = failure
        if ended:
            run.log.job_ended(run.jobs[0])

        run.log.close()

        assert f"::group::{title}" in run.lines
