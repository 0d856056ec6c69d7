"""When the log of several exports has a line, and what is hidden in it. `tests/wording/runs.md` has the lines."""

import gc
import re
import threading
import tracemalloc
from collections.abc import Sequence

import pytest

from docs_platform_action.errors import Rejected
from docs_platform_action.job import Job
from docs_platform_action.jobs.progress import DisplayedEstimate
from docs_platform_action.models import STORAGE, Bundle
from docs_platform_action.report import multi_log
from docs_platform_action.report.console import MAX_WARNINGS
from docs_platform_action.report.job_log import LINE_SECONDS, STALL_SECONDS
from docs_platform_action.report.kept_lines import MAX_KEPT_CHARACTERS
from docs_platform_action.report.multi_log import MAX_STATUSES, QUIET_SECONDS
from tests.inside import unmeasured
from tests.unit.report.logs import LoggedJobs

NO = Rejected("no")
Step = tuple[str, *tuple[object, ...]]


def play(run: LoggedJobs, *steps: Step) -> LoggedJobs:
    """Announce events, each the name of a method with its arguments; `wait` moves the clock."""
    for name, *arguments in steps:
        (run.clock.advance if name == "wait" else getattr(run, name))(*arguments)
    return run


def kinds(run: LoggedJobs) -> list[str]:
    """Return the domain of each live line, with a word for what it says."""
    words = {"started,": "starts", "Retrying": "fails", "again": "recovers", "resumed": "resumes", "link.": "renews"}
    shown = []
    for line in run.shown:
        kind = next((kind for word, kind in words.items() if word in line.split()), None)
        shown.append(f"{line.split()[1][0]} {kind or line.split()[2]}" if ".example" in line.split()[1] else "counts")
    return shown


class TestLive:
    @pytest.mark.parametrize(
        ("steps", "shown"),
        [
            ([("begin", 0), *(("read", 0, "running", percent) for percent in range(0, 100, 10))], ["a running"]),
            ([("begin", 0), ("read", 0, "completed")], []),
            ([("begin", 0), ("read", 0, "failed")], []),
            (
                [("begin", 0), ("start", 0), ("read", 0, "queued"), ("read", 0, "running"), ("read", 0, "queued")],
                ["a starts", "a running", "a queued"],
            ),
            ([("begin", 0), ("start", 0, "se_1", "queued"), ("read", 0, "queued")], ["a starts"]),
            (
                [("begin", 0), *(("read", 0, status) for status in ("polishing", "running", "polishing", "polishing"))],
                ["a reports", "a running"],
            ),
            ([("begin", 0), ("end", 0), ("end", 0, NO), ("begin", 0)], ["a done"]),
            ([("begin", 0), ("start", 0), ("end", 0)], ["a starts"]),
        ],
        ids=["progress", "completed", "failed", "first queued", "known queued", "unknown", "ended twice", "not waited for"],
    )
    def test_each_change_of_a_status_has_one_line(self, steps: Sequence[Step], shown: list[str]) -> None:
        assert kinds(play(LoggedJobs(), *steps)) == shown

    def test_a_job_without_a_status_has_no_line(self) -> None:
        run = LoggedJobs()
        run.begin(0)

        run.log.status_read(run.jobs[0])

        assert run.shown == []

    def test_a_very_long_domain_does_not_widen_every_line(self) -> None:
        run = LoggedJobs("a.example", "x" * 200 + ".example")
        run.begin(0)

        run.start(0)

        assert run.lines[0].startswith(f"   0:00  {'a.example':<40}  started")

    @pytest.mark.parametrize("statuses", [["queued", "running"] * 50, [f"page {number} of 100" for number in range(100)]])
    def test_a_status_that_flaps_or_counts_floods_nothing(self, statuses: list[str]) -> None:
        run = LoggedJobs("a.example", "b.example")
        run.begin(0, 1)

        for status in statuses:
            run.read(0, status)
        run.read(1, "running")

        assert len(run.shown) == MAX_STATUSES + 1
        assert kinds(run)[-1] == "b running"
        run.log.close()
        assert sum(line.startswith("12:") and statuses[-1] in line for line in run.lines) >= 1

    def test_counts_are_shown_when_they_have_changed(self) -> None:
        run = play(LoggedJobs(), ("begin", 0, 1), ("heartbeat",), ("start", 0), ("start", 1), ("end", 0), ("end", 1))

        play(run, ("begin", 2), ("end", 2)).log.close()

        assert [line.endswith(("pending", "started")) for line in run.shown] == [True, False, False, True]


class TestOutages:
    """The first domain that an outage of the API affects reports it for all."""

    @pytest.mark.parametrize(
        ("steps", "shown"),
        [
            (
                [("retry", 1), ("wait", 10), ("retry", 0), ("retry", 2), ("recover", 0), ("recover", 1), ("recover", 2)],
                ["b fails", "b recovers"],
            ),
            ([("retry", 0), ("retry", 1), ("wait", 300), ("end", 0, NO), ("recover", 1)], ["a fails", "a failed:", "b recovers"]),
            (
                [("retry", 0), ("wait", 300), ("end", 0, NO), ("retry", 1), ("recover", 1)],
                ["a fails", "a failed:", "b fails", "b recovers"],
            ),
            (
                [("retry", 0), ("retry", 1), ("end", 1, NO), ("end", 2), ("recover", 0)],
                ["a fails", "b failed:", "c done", "a recovers"],
            ),
            (
                [("retry", 0), ("wait", 0.5), ("recover", 0), ("wait", 0.5)] * 60,
                ["a fails", "a recovers"] * int(60 / QUIET_SECONDS),
            ),
            ([("retry", 0), *([("retry", 0), ("retry", 1), ("recover", 1), ("wait", 5)] * 60)], ["a fails"]),
            (
                [*(("retry", number, STORAGE) for number in (0, 1)), ("wait", 20), ("retry", 0, STORAGE)],
                ["a fails"],
            ),
            ([("retry", 0, STORAGE), ("wait", QUIET_SECONDS), ("retry", 1, STORAGE)], ["a fails", "b fails"]),
            (
                [
                    *(("retry", 0, STORAGE), ("wait", QUIET_SECONDS - 1), ("retry", 0, STORAGE), ("wait", LINE_SECONDS - 1)),
                    *(("retry", 0, STORAGE), ("recover", 0, 1, STORAGE)),
                ],
                ["a fails"],
            ),
        ],
        ids=[
            *("for all", "the reporter ends", "the only one ends", "others end", "short ones", "one among good ones"),
            *("storage", "storage later", "what the domain's own log leaves out"),
        ],
    )
    def test_it_has_a_line_when_it_begins_and_when_it_ends(self, steps: Sequence[Step], shown: list[str]) -> None:
        assert kinds(play(LoggedJobs(), ("begin", 0, 1, 2), *steps)) == shown

    @pytest.mark.parametrize(
        ("steps", "duration"),
        [
            ([("retry", 0), ("wait", 30), ("recover", 0, 38)], "0:38."),
            ([("retry", 0), ("retry", 1), ("wait", 300), ("end", 0, NO), ("recover", 1, 200)], "5:00."),
        ],
    )
    def test_its_length_is_that_of_the_longest(self, steps: Sequence[Step], duration: str) -> None:
        assert play(LoggedJobs(), ("begin", 0, 1), *steps).shown[-1].split()[-1] == duration

    def test_each_domains_own_log_has_its_own(self) -> None:
        run = play(LoggedJobs(), ("begin", 0, 1), ("retry", 0), ("retry", 1), ("recover", 1, 38))

        run.log.close()

        assert [len(group.splitlines()) for group in run.text.split("::group::")[1:]] == [4, 5]


class TestHeartbeat:
    @pytest.mark.parametrize(("seconds", "count"), [(54.9, 0), (55, 1)])
    @pytest.mark.parametrize("line", [("start", 0), ("warn", 0, "It is odd")])
    def test_it_comes_after_a_silence_which_any_line_breaks(self, line: Step, seconds: float, count: int) -> None:
        run = play(LoggedJobs(), ("begin", 0), ("wait", 30), line)
        shown = len(run.lines)

        run.heartbeat(seconds)

        assert len(run.lines) - shown == count

    def test_only_a_few_running_domains_are_named(self) -> None:
        run = LoggedJobs(*(f"d{number}.example" for number in range(30)))
        run.begin(*range(3))
        assert run.heartbeat().count(".example") == 3

        run.begin(3)

        assert run.heartbeat().count(".example") == 0

    def test_a_recovered_domain_is_no_longer_affected(self) -> None:
        run = play(LoggedJobs(), ("begin", 0), ("retry", 0), ("retry", 0), ("recover", 0))

        assert run.heartbeat().endswith("2 pending")

    def test_it_warns_of_stalled_jobs(self) -> None:
        run = LoggedJobs()
        run.begin(0, 1)
        run.jobs[0].estimate = DisplayedEstimate()
        for _ in range(2):
            run.read(0, "running", 57)
            run.clock.advance(STALL_SECONDS - 55)

        run.heartbeat()
        run.heartbeat()

        assert sum(line.startswith("::warning::Export of a.example") for line in run.lines) == 1


class TestWarnings:
    def test_the_same_warning_is_shown_once(self) -> None:
        run = LoggedJobs()

        for number in range(3):
            run.warn(number, "It is odd", "Because.")
        run.warn(0, "It is odd", "For another reason.")

        assert len(run.lines) == 2

    def test_more_than_the_runner_shows_are_plain_lines(self) -> None:
        run = LoggedJobs()

        for number in range(MAX_WARNINGS + 1):
            run.warn(0, f"It is odd ({number})")

        assert [line.startswith("::warning::") for line in run.lines] == [True] * MAX_WARNINGS + [False]


class TestLongLogs:
    """What a domain's log keeps if the platform reports a new status in each reading."""

    STATUSES = 5000

    def flooded(self, statuses: int = STATUSES, *, length: int = 1000) -> LoggedJobs:
        run = LoggedJobs("a.example", "b.example")
        run.begin(0)
        for number in range(statuses):
            run.read(0, f"{number} {'é' * length}")
        return run

    def test_the_first_and_the_last_lines_are_kept_and_the_others_counted(self) -> None:
        run = self.flooded(length=1)
        run.end(0, NO)

        run.log.close()

        lines = run.groups[1:-1]
        (left_out,) = [line for line in lines if line.startswith("…")]
        total = 1 + MAX_STATUSES + self.STATUSES + 3  # the title, the explained statuses, the readings, the failure
        assert int(re.sub(r"\D", "", left_out)) + len(lines) - 1 == total
        assert all([line for line in lines if f" {number} é " in line] for number in (0, self.STATUSES - 1))
        assert lines[-3].endswith(": no")

    def test_a_log_without_a_gap_says_nothing_of_one(self) -> None:
        run = self.flooded(100, length=1)

        run.log.close()

        assert len(run.groups) == 1 + MAX_STATUSES + 100 + 2
        assert "…" not in run.text

    def test_neither_the_log_nor_the_memory_grows_with_the_statuses(self) -> None:
        held = []
        for statuses in (1000, 4000):
            with unmeasured():
                tracemalloc.start()
                try:
                    run = self.flooded(statuses, length=100)
                    gc.collect()
                    held.append(tracemalloc.get_traced_memory()[0])
                finally:
                    tracemalloc.stop()
            assert len(run.lines) == MAX_STATUSES
            run.log.close()
            assert len(run.text) < 3 * MAX_KEPT_CHARACTERS

        assert held[1] - held[0] < 32 * 1024

    def test_a_very_long_line_is_cut_and_costs_no_other(self) -> None:
        run = LoggedJobs("a.example", "b.example")
        run.begin(0)

        for number in range(2000):
            run.note(0, f"{number} {'x' * 10_000}")
        run.end(0)
        run.log.close()

        assert len("".join(run.groups)) < 3 * MAX_KEPT_CHARACTERS
        assert "1999 xxx" in run.groups[-2]


class TestGroups:
    def test_a_bug_in_one_costs_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken_for_b(job: Job, stage: str, _now: float) -> str:
            if job.domain == "b.example":
                raise KeyError("pages")
            return stage

        monkeypatch.setattr(multi_log, "describe_duration", broken_for_b)
        run = play(LoggedJobs("b.example", "a.example"), ("begin", 0, 1), ("end", 1, NO), ("end", 0))

        run.log.close()

        assert [line for line in run.lines if line.startswith("::group::")] == ["::group::a.example: failed"]
        assert sum(line.startswith("::warning::") and "(KeyError)" in line for line in run.lines) == 1

    def test_foreign_text_neither_begins_nor_ends_a_group(self) -> None:
        run = LoggedJobs()
        for text in ("::endgroup::", "##[endgroup]", "x\n::group::y", "\r::endgroup::"):
            run.note(0, text)
            run.read(0, text)

        run.log.close()

        commands = [line for line in run.lines if line.startswith(("::", "##"))]
        assert [command.partition(":: ")[0] for command in commands] == ["::group::a.example: not started", "::endgroup::"]

    def test_secrets_of_links_that_became_known_later_are_hidden(self) -> None:
        run = LoggedJobs()
        run.note(0, "signed 0123456789abcdef")
        run.console.redact_link("https://storage.example.com/b?X-Signature=0123456789abcdef")

        run.log.close()

        assert any(line.endswith(" signed …") for line in run.lines)

    def test_a_secret_is_not_cut_but_hidden(self) -> None:
        run = LoggedJobs("a.example", "b.example")
        run.begin(0)
        secret = "".join(f"aB{number:03}" for number in range(400))
        run.console.redact_link(f"https://s.example.com/b?X-Signature={secret}")

        run.read(0, f"{'x' * 50} {secret}")
        run.note(0, f"{'x' * 900} {secret}")
        run.log.close()

        assert secret[:5] not in run.text

    @pytest.mark.parametrize("in_workflow", [True, False])
    def test_a_masked_link_is_masked_in_a_workflow(self, in_workflow: bool) -> None:
        run = LoggedJobs(in_workflow=in_workflow)
        run.jobs[0].bundle, run.jobs[0].masks_bundle_url = Bundle(url="https://storage.example.com/b"), True

        run.log.link_made(run.jobs[0])

        assert run.lines == (["::add-mask::https://storage.example.com/b"] if in_workflow else [])


class TestThreads:
    def test_events_after_the_end_are_ignored(self) -> None:
        run = play(LoggedJobs(debugging=True), ("begin", 0), ("note", 0))
        run.log.close()
        before = run.lines

        play(run, ("read", 0, "running", 12), ("retry", 0), ("recover", 0), ("debug", 0), ("warn", 0, "It is odd"), ("start", 1))
        play(run, ("end", 0), ("heartbeat",)).log.close()

        assert run.lines == before

    def test_events_while_the_logs_are_written_are_ignored(self) -> None:
        run = LoggedJobs()
        for number in range(3):
            run.note(number)

        run.stream.interrupt("::group::", lambda: run.note(2, "late.yaml"))
        run.log.close()

        assert sum(line.endswith("values.yaml") for line in run.groups) == 3
        assert not any("late" in line for line in run.lines)

    def test_an_event_waits_while_a_line_is_written(self) -> None:
        run = LoggedJobs("a.example", "b.example")
        run.begin(0)
        other = threading.Thread(target=run.begin, args=(1,))
        waited: list[bool] = []

        def interrupt() -> None:
            other.start()
            other.join(0.02)
            waited.append(other.is_alive())

        run.stream.interrupt("a.example", interrupt)
        run.start(0)
        other.join()

        assert waited == [True]
        assert run.text.endswith("1 running, 1 pending\n")

    def test_concurrent_events_lose_no_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(multi_log, "HEARTBEAT_SECONDS", 0)
        domains = [f"d{number}.example" for number in range(20)]
        run = LoggedJobs(*domains)
        barrier = threading.Barrier(21)

        def work(number: int) -> None:
            barrier.wait()
            play(run, ("begin", number), ("start", number), *(("read", number, "running", percent) for percent in range(100)))
            play(run, ("retry", number), ("recover", number), ("warn", number, "It is odd"), ("end", number))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        barrier.wait()
        for _ in range(50):
            run.log.heartbeat()
        for thread in threads:
            thread.join()
        run.log.close()

        assert sum(" running" in line and line.startswith("12:00:00") for line in run.lines) == 2000
        assert sum("::warning" in line for line in run.lines) == 1
        assert [line.split()[:2] for line in run.lines if line.startswith("::group::")] == [
            [f"::group::{name}:", "started"] for name in domains
        ]
        assert run.heartbeat() == ""
