"""The log of several exports: live lines with their domain, and the log of each domain at the end."""

import gc
import io
import itertools
import re
import threading
import tracemalloc
from collections.abc import Callable
from datetime import timedelta

import pytest

from docs_platform_action.errors import ActionError, Rejected
from docs_platform_action.job import Job
from docs_platform_action.jobs.progress import DisplayedEstimate
from docs_platform_action.models import API, STORAGE, Bundle, Downloaded, ExportJob
from docs_platform_action.report import multi_log
from docs_platform_action.report.console import MAX_WARNINGS, Console
from docs_platform_action.report.job_log import LINE_SECONDS, STALL_SECONDS
from docs_platform_action.report.kept_lines import MAX_KEPT_CHARACTERS
from docs_platform_action.report.multi_log import MAX_STATUSES, QUIET_SECONDS, MultiLog
from tests.inside import unmeasured
from tests.unit.fakes import words
from tests.virtual_time import NOON, VirtualClock


class Stream(io.StringIO):
    """A stream that calls a function once, when it writes a marker."""

    marker = ""

    def interrupt(self, marker: str, callback: Callable[[], None]) -> None:
        self.marker, self.callback = marker, callback

    def write(self, text: str) -> int:
        if self.marker and self.marker in text:
            self.marker = ""
            self.callback()
        return super().write(text)


class Run:
    """A run of several domains, and what its log shows."""

    def __init__(self, *domains: str, in_workflow: bool = True, debugging: bool = False) -> None:
        self.clock = VirtualClock()
        self.stream = Stream()
        self.console = Console(self.stream, in_workflow=in_workflow, debugging=debugging)
        self.jobs = [Job(mode="export", domain=domain) for domain in domains or ("a.example", "b.example", "c.example")]
        self.log = MultiLog(self.console, self.clock, self.jobs)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    @property
    def shown(self) -> list[str]:
        """The live lines."""
        return words(list(itertools.takewhile(lambda line: line != GROUPS, self.lines)))

    @property
    def groups(self) -> list[str]:
        """The logs of the domains."""
        return self.lines[self.lines.index(GROUPS) + 1 :]

    def begin(self, *numbers: int) -> None:
        for number in numbers:
            self.jobs[number].began_at = self.clock.monotonic()
            self.log.job_begun(self.jobs[number])

    def start(self, number: int, job_id: str = "se_1", status: str | None = None) -> None:
        job = self.jobs[number]
        job.job_id, job.status, job.started_at = job_id, status, 0.0
        self.log.job_known(job)

    def read(self, number: int, status: str, progress: float | None = None, pages: int | None = None) -> None:
        job = self.jobs[number]
        job.update_export(ExportJob(status=status, progress=progress, page_count=pages), self.clock.monotonic())
        if job.estimate is not None:
            job.estimate.update(self.clock.monotonic(), progress, pages)
        self.log.status_read(job)

    def end(self, number: int, failure: ActionError | None = None, bundle: Bundle | None = None) -> None:
        job = self.jobs[number]
        job.failure, job.bundle, job.ended_at = failure, bundle, self.clock.monotonic()
        self.log.job_ended(job)

    def note(self, number: int, values_file: str = "values.yaml") -> None:
        """Write a line to the domain's own log."""
        self.jobs[number].values_file = values_file
        self.log.values_written(self.jobs[number])

    def warn(self, number: int, *lines: str) -> None:
        self.log.warning(self.jobs[number], lines)

    def debug(self, number: int) -> None:
        self.log.request_ended(self.jobs[number], "GET /v1/x", outcome="200", milliseconds=7, request_id=None)

    def retry(self, number: int, server: str = API, error: str = "The API returned 502 (bad gateway)") -> None:
        self.log.retrying(self.jobs[number], server, error, budget_seconds=300, pause_seconds=4)

    def recover(self, number: int, after_seconds: float = 1.0, server: str = API) -> None:
        self.log.recovered(self.jobs[number], server, after_seconds=after_seconds)

    def heartbeat(self, after_seconds: float = 55) -> str:
        self.clock.advance(after_seconds)
        before = len(self.shown)
        self.log.heartbeat()
        return " ".join(self.shown[before:])


GROUPS = "The log of each domain, by the time of day in UTC:"
BUNDLE = Bundle(url="https://storage.example.com/b", expires=NOON + timedelta(hours=3))


class TestLive:
    def test_a_run_reads_from_top_to_bottom(self) -> None:
        run = Run("docs.example.com", "api.example.com", "x.example.com")
        run.log.begin(max_parallel=2)
        run.begin(0, 1)
        run.start(0, "se_3f9a2c1b")
        run.start(1, "se_77")
        run.clock.advance(4)
        run.read(0, "running", 1)
        run.clock.advance(249)
        run.read(0, "completed", None, 412)
        run.jobs[0].downloaded = Downloaded(size=40056657, sha256="ab" * 32)
        run.end(0, bundle=BUNDLE)
        run.clock.advance(48)
        run.end(1, Rejected("the platform rejected the request (422)"))

        assert run.lines == [
            "Static export of 3 domains, 2 at a time",
            "   0:00  docs.example.com  started, job-id: se_3f9a2c1b                            2 running, 1 pending",
            "   0:00  api.example.com   started, job-id: se_77",
            "   0:04  docs.example.com  running",
            "   4:13  docs.example.com  done: 412 pages, 38.2 MiB, link valid until 15:00 UTC   1 done, 1 running, 1 pending",
            "   5:01  api.example.com   failed: rejected, the platform rejected the request (422)  1 done, 1 failed, 1 pending",
        ]

    def test_the_title_says_when_all_run_in_parallel(self) -> None:
        run = Run()

        run.log.begin(max_parallel=3)

        assert run.lines == ["Static export of 3 domains, all in parallel"]

    def test_a_very_long_domain_does_not_widen_every_line(self) -> None:
        run = Run("a.example", "x" * 200 + ".example")
        run.begin(0)

        run.start(0)

        assert run.lines[0].startswith(f"   0:00  {'a.example':<40}  started")

    def test_progress_is_not_shown_live(self) -> None:
        run = Run()
        run.begin(0)
        for percent in range(0, 100, 10):
            run.read(0, "running", percent)

        assert run.shown == ["0:00 a.example running"]

    @pytest.mark.parametrize("status", ["queued", None])
    def test_the_first_queued_status_has_no_line(self, status: str | None) -> None:
        run = Run()
        run.begin(0)
        run.start(0, status=status)

        run.read(0, "queued")
        run.read(0, "running")
        run.read(0, "queued")

        assert [line.split()[2] for line in run.shown] == ["started,", "running", "queued"]

    def test_a_job_without_a_status_has_no_line(self) -> None:
        run = Run()
        run.begin(0)

        run.log.status_read(run.jobs[0])

        assert run.shown == []

    @pytest.mark.parametrize("status", ["completed", "failed"])
    def test_a_final_status_has_no_line_of_its_own(self, status: str) -> None:
        run = Run()
        run.begin(0)

        run.read(0, status)

        assert run.shown == []

    def test_an_unknown_status_is_explained_once_and_shown_once_per_domain(self) -> None:
        run = Run()
        run.begin(0, 1)

        for number in (0, 1):
            for status in ("polishing", "running", "polishing", "polishing"):
                run.read(number, status)

        assert run.shown == [
            "0:00 a.example reports the unknown status 'polishing'; waiting continues",
            "0:00 a.example running",
            "0:00 b.example polishing",
            "0:00 b.example running",
        ]

    @pytest.mark.parametrize("statuses", [["queued", "running"] * 50, [f"page {number} of 100" for number in range(100)]])
    def test_a_status_that_flaps_or_counts_floods_nothing(self, statuses: list[str]) -> None:
        run = Run("a.example", "b.example")
        run.begin(0, 1)

        for status in statuses:
            run.read(0, status)
        run.read(1, "running")

        assert len(run.shown) == MAX_STATUSES + 1
        assert run.shown[-1] == "0:00 b.example running"
        run.log.close()
        assert sum(line.startswith("12:") and statuses[-1] in line for line in run.lines) >= 1

    def test_storage_errors_are_shown_live_every_thirty_seconds(self) -> None:
        run = Run("a.example", "b.example")

        for seconds in (0, 20, 15):
            run.clock.advance(seconds)
            for number in (0, 1):
                run.retry(number, STORAGE, "The storage returned 503")

        shown = "The storage returned 503. Retrying for up to 5:00, next attempt in 4 s."
        assert run.shown == [f"0:00 a.example {shown}", f"0:35 a.example {shown}"]
        run.log.close()
        assert [line for line in run.lines if line.startswith("12:")] == [
            f"12:00:{second}  {shown}" for second in ("00", "20", "35") * 2
        ]

    def test_expired_links_and_resumed_downloads_are_shown_live(self) -> None:
        run = Run("a.example", "b.example")
        run.log.link_expired(run.jobs[0], "The storage rejected the link with 403")
        run.clock.advance(QUIET_SECONDS)

        run.recover(1, 30, STORAGE)

        assert run.shown == [
            "0:00 a.example The storage rejected the link with 403. Making a new link.",
            "0:30 b.example The download resumed after 0:30.",
        ]

    def test_what_the_domains_own_log_leaves_out_is_not_shown_live(self) -> None:
        run = Run("a.example")
        run.retry(0, STORAGE, "It broke off")
        run.clock.advance(QUIET_SECONDS - 1)
        run.retry(0, STORAGE, "It broke off")
        run.clock.advance(LINE_SECONDS - 1)

        run.retry(0, STORAGE, "It broke off")
        run.recover(0, 1, STORAGE)

        assert len(run.shown) == 1

    def test_a_job_that_is_not_waited_for_is_shown_when_it_starts(self) -> None:
        run = Run("a.example")
        run.begin(0)
        run.start(0)
        run.end(0)

        run.log.close()

        assert run.shown == ["0:00 a.example started, job-id: se_1 1 running", "0:00 1 started"]

    def test_an_end_is_shown_once(self) -> None:
        run = Run("a.example")
        run.begin(0)
        run.end(0)

        run.end(0, Rejected("no"))
        run.begin(0)

        assert run.shown == ["0:00 a.example done 1 done"]
        assert run.heartbeat() == "0:55 1 done"

    def test_counts_are_shown_when_they_have_changed(self) -> None:
        run = Run()
        run.begin(0, 1)
        run.heartbeat()
        run.start(0)
        run.start(1, "se_2")
        run.end(0)
        run.end(1)
        run.begin(2)
        run.end(2)

        run.log.close()

        assert run.shown == [
            "0:55 2 running (a.example starting, b.example starting), 1 pending",
            "0:55 a.example started, job-id: se_1",
            "0:55 b.example started, job-id: se_2",
            "0:55 c.example done 1 done, 2 started",
        ]

    def test_the_last_counts_are_not_shown_twice(self) -> None:
        run = Run("a.example")
        run.begin(0)
        run.end(0)

        run.log.close()

        assert run.shown == ["0:00 a.example done 1 done"]

    def test_debug_lines_come_at_once_with_their_domain(self) -> None:
        run = Run(debugging=True)

        run.debug(1)

        assert run.lines == ["::debug::b.example: GET /v1/x: 200, 7 ms"]


class TestOutages:
    def test_the_first_affected_domain_reports_it_for_all(self) -> None:
        run = Run()
        run.begin(0, 1, 2)

        for number in (1, 0, 2):
            run.retry(number)
            run.clock.advance(10)
        for number in (0, 1, 2):
            run.recover(number, 38)

        assert run.shown == [
            "0:00 b.example The API returned 502 (bad gateway). Retrying for up to 5:00, next attempt in 4 s.",
            "0:30 b.example The API is responding again after 0:38.",
        ]

    def test_if_the_reporter_ends_the_next_to_recover_reports_the_end(self) -> None:
        run = Run()
        run.begin(0, 1)
        run.retry(0)
        run.retry(1)
        run.clock.advance(300)
        run.end(0, Rejected("no"))

        run.recover(1, 200)

        assert run.shown[-1] == "5:00 b.example The API is responding again after 5:00."

    def test_an_outage_ends_with_its_only_affected_domain(self) -> None:
        run = Run()
        run.begin(0, 1)
        run.retry(0)
        run.clock.advance(300)
        run.end(0, Rejected("no"))
        shown = len(run.shown)

        run.retry(1)
        run.recover(1)

        assert [line.split(maxsplit=2)[2] for line in run.shown[shown:]] == [
            "The API returned 502 (bad gateway). Retrying for up to 5:00, next attempt in 4 s.",
            "The API is responding again after 0:01.",
        ]

    def test_an_affected_domain_that_ends_reports_nothing(self) -> None:
        run = Run()
        run.begin(0, 1, 2)
        run.retry(0)
        run.retry(1)
        run.end(1, Rejected("no"))
        run.end(2)
        shown = len(run.shown)

        run.recover(0)

        assert len(run.shown) == shown + 1

    def test_short_outages_do_not_fill_the_log(self) -> None:
        run = Run()
        run.begin(0, 1)

        for _ in range(60):
            run.retry(0)
            run.clock.advance(0.5)
            run.recover(0)
            run.clock.advance(0.5)

        assert len(run.shown) == 2 * 60 / QUIET_SECONDS

    def test_a_job_that_keeps_failing_among_good_ones_is_reported_once(self) -> None:
        run = Run()
        run.begin(0, 1)
        run.retry(0)

        for _ in range(60):
            run.retry(0)
            run.retry(1)
            run.recover(1)
            run.clock.advance(5)

        assert len(run.shown) == 1

    def test_a_recovered_domain_is_no_longer_affected(self) -> None:
        run = Run()
        run.begin(0)
        run.retry(0)
        run.retry(0)

        run.recover(0)

        assert run.heartbeat() == "0:55 1 running (a.example starting), 2 pending"

    def test_the_log_of_each_domain_has_its_own_outages(self) -> None:
        run = Run()
        run.begin(0, 1)
        run.retry(0)
        run.retry(1)
        run.recover(1, 38)

        run.log.close()

        group = run.lines[run.lines.index("::group::b.example: not ended after 0:00") :]
        assert group[1:4] == [
            "12:00:00  Static export of b.example",
            "12:00:00  The API returned 502 (bad gateway). Retrying for up to 5:00, next attempt in 4 s.",
            "12:00:00  The API is responding again after 0:38.",
        ]


class TestHeartbeat:
    def test_it_shows_the_counts(self) -> None:
        run = Run(*(f"d{number}.example" for number in range(30)))
        run.begin(*range(10))

        assert run.heartbeat() == "0:55 10 running, 20 pending"

    def test_it_does_not_come_sooner(self) -> None:
        run = Run()
        run.clock.advance(30)
        run.begin(0)
        run.start(0)

        assert run.heartbeat(54.9) == ""

    @pytest.mark.parametrize(
        ("affected", "shown"),
        [
            ((), ""),
            ((1,), " (no successful response from the API for b.example)"),
            ((0, 1, 2, 3), " (no successful response from the API)"),
        ],
    )
    def test_it_shows_the_domains_in_an_outage(self, affected: tuple[int, ...], shown: str) -> None:
        run = Run("a.example", "b.example", "c.example", "d.example")
        run.begin(0, 1, 2, 3)
        for number in affected:
            run.retry(number)

        assert run.heartbeat() == f"0:55 4 running{shown}"

    def test_it_warns_of_stalled_jobs(self) -> None:
        run = Run()
        run.begin(0, 1)
        run.jobs[0].estimate = DisplayedEstimate()
        for _ in range(2):
            run.read(0, "running", 57)
            run.clock.advance(STALL_SECONDS - 55)

        run.heartbeat()
        run.heartbeat()

        assert sum(line.startswith("::warning::Export of a.example: no progress for ") for line in run.lines) == 1


class TestWarnings:
    def test_a_warning_is_an_annotation_and_in_the_log_of_its_domain(self) -> None:
        run = Run()

        run.warn(0, "It is odd", "Because.")
        run.log.close()

        assert run.lines[0] == "::warning::It is odd%0A  Because."
        assert run.lines[-4:] == [
            "::group::a.example: not started",
            "12:00:00  Warning: It is odd",
            "12:00:00    Because.",
            "::endgroup::",
        ]

    def test_the_same_warning_is_shown_once(self) -> None:
        run = Run()

        for number in range(3):
            run.warn(number, "It is odd", "Because.")
        run.warn(0, "It is odd", "For another reason.")

        assert len(run.lines) == 2

    def test_more_than_the_runner_shows_are_plain_lines(self) -> None:
        run = Run()

        for number in range(MAX_WARNINGS + 1):
            run.warn(0, f"It is odd ({number})")

        assert run.lines[-1] == "Warning: It is odd (9)"

    def test_a_warning_delays_the_heartbeat(self) -> None:
        run = Run()
        run.clock.advance(50)
        run.warn(0, "It is odd")

        assert run.heartbeat(50) == ""


class TestLongLogs:
    """What a domain's log keeps if the platform reports a new status in each reading."""

    STATUSES = 5000

    def flooded(self, statuses: int = STATUSES, *, length: int = 1000) -> Run:
        run = Run("a.example", "b.example")
        run.begin(0)
        for number in range(statuses):
            run.read(0, f"{number} {'é' * length}")
        return run

    def test_the_first_and_the_last_lines_are_kept_and_the_others_counted(self) -> None:
        run = self.flooded(length=1)
        run.end(0, Rejected("no"))

        run.log.close()

        lines = run.groups[1:-1]
        (left_out,) = [line for line in lines if line.startswith("…")]
        found = re.fullmatch(r"… ([0-9,]+) lines left out …", left_out)
        assert found is not None
        total = 1 + MAX_STATUSES + self.STATUSES + 3  # the title, the explained statuses, the readings, the failure
        assert int(found[1].replace(",", "")) + len(lines) - 1 == total
        assert lines[0] == "12:00:00  Static export of a.example"
        assert [line for line in lines if " 0 é " in line]
        assert [line for line in lines if f" {self.STATUSES - 1} é " in line]
        assert lines[-3] == "12:00:00  Export of a.example: no"

    def test_a_log_without_a_gap_says_nothing_of_one(self) -> None:
        run = self.flooded(100, length=1)

        run.log.close()

        assert len(run.groups) == 1 + MAX_STATUSES + 100 + 2
        assert "left out" not in run.stream.getvalue()

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
            assert len(run.stream.getvalue()) < 3 * MAX_KEPT_CHARACTERS

        assert held[1] - held[0] < 32 * 1024

    def test_a_very_long_line_is_cut_and_costs_no_other(self) -> None:
        run = Run("a.example", "b.example")
        run.begin(0)

        for number in range(2000):
            run.note(0, f"{number} {'x' * 10_000}")
        run.end(0)
        run.log.close()

        assert len("".join(run.groups)) < 3 * MAX_KEPT_CHARACTERS
        assert "1999 xxx" in run.groups[-2]

    def test_a_secret_is_not_cut_but_hidden(self) -> None:
        run = Run("a.example", "b.example")
        run.begin(0)
        secret = "".join(f"aB{number:03}" for number in range(400))
        run.console.redact_link(f"https://s.example.com/b?X-Signature={secret}")

        run.read(0, f"{'x' * 50} {secret}")
        run.note(0, f"{'x' * 900} {secret}")
        run.log.close()

        assert secret[:5] not in run.stream.getvalue()


class TestGroups:
    def finished(self, *, in_workflow: bool) -> Run:
        run = Run("b.example", "a.example", "c.example", in_workflow=in_workflow)
        run.begin(0, 1)
        for number in (1, 0):
            run.clock.advance(31)
            run.log.polling(run.jobs[number])
            run.read(number, "running", 12, 48)
            run.note(number)
        run.end(1, Rejected("no"))
        run.end(0)
        run.log.close()
        return run

    def test_they_are_folded_in_the_order_of_the_input(self) -> None:
        run = self.finished(in_workflow=True)

        start = run.lines.index("The log of each domain, by the time of day in UTC:")
        assert run.lines[start + 1 :] == [
            "::group::b.example: done in 1:02",
            "12:00:00  Static export of b.example",
            "12:01:02  running     12 %     48 pages      0:00",
            "12:01:02  Wrote the Helm values file values.yaml",
            "::endgroup::",
            "::group::a.example: failed after 1:02 (rejected)",
            "12:00:00  Static export of a.example",
            "12:00:31  running     12 %     48 pages      0:00",
            "12:00:31  Wrote the Helm values file values.yaml",
            "12:01:02  Export of a.example: no",
            "12:01:02  The platform does not accept this request; a retry would not help.",
            "12:01:02  Read the API's message, and correct the step's inputs if they caused it.",
            "::endgroup::",
        ]

    def test_a_bug_in_one_costs_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken_for_b(job: Job, stage: str, _now: float) -> str:
            if job.domain == "b.example":
                raise KeyError("pages")
            return stage

        monkeypatch.setattr(multi_log, "describe_duration", broken_for_b)

        lines = self.finished(in_workflow=True).lines

        assert [line for line in lines if line.startswith("::group::")] == ["::group::a.example: failed"]
        assert sum(line.startswith("::warning::The log of a domain cannot be written (KeyError)") for line in lines) == 1

    def test_outside_a_workflow_they_are_indented_under_their_titles(self) -> None:
        run = self.finished(in_workflow=False)

        start = run.lines.index("b.example: done in 1:02")
        assert run.lines[start + 1] == "  12:00:00  Static export of b.example"
        assert "::" not in run.stream.getvalue()

    def test_foreign_text_neither_begins_nor_ends_a_group(self) -> None:
        run = Run()
        for text in ("::endgroup::", "##[endgroup]", "x\n::group::y", "\r::endgroup::"):
            run.note(0, text)
            run.read(0, text)

        run.log.close()

        assert [line for line in run.lines if line.startswith(("::", "##"))] == [
            "::group::a.example: not started",
            "::endgroup::",
        ]

    def test_secrets_of_links_that_became_known_later_are_hidden(self) -> None:
        run = Run()
        run.note(0, "signed 0123456789abcdef")
        run.console.redact_link("https://storage.example.com/b?X-Signature=0123456789abcdef")

        run.log.close()

        assert "12:00:00  Wrote the Helm values file signed …" in run.lines


class TestMasking:
    def test_a_masked_link_is_explained(self) -> None:
        run = Run()
        run.jobs[0].job_id, run.jobs[0].bundle, run.jobs[0].masks_bundle_url = "se_1", BUNDLE, True

        run.log.link_made(run.jobs[0])
        run.log.close()

        assert run.lines[-2] == (
            "12:00:00  The link is masked, because `mask-bundle-url` is set: later steps of this job can read it, but GitHub "
            "drops job outputs that contain it, also `results`. Another job can make a new link with `job-id: se_1`."
        )

    def test_outside_a_workflow_it_is_not_masked(self) -> None:
        run = Run(in_workflow=False)
        run.jobs[0].bundle, run.jobs[0].masks_bundle_url = BUNDLE, True

        run.log.link_made(run.jobs[0])
        run.log.close()

        assert run.lines[-1].endswith("Outside a workflow, `mask-bundle-url` hides the link only if OUTPUT_ENV_FILE is set.")


class TestThreads:
    def test_events_after_the_end_are_ignored(self) -> None:
        run = Run(debugging=True)
        run.begin(0)
        run.note(0)
        run.log.close()
        before = run.lines

        run.read(0, "running", 12)
        run.retry(0)
        run.recover(0)
        run.debug(0)
        run.warn(0, "It is odd")
        run.start(1)
        run.end(0)
        run.heartbeat()
        run.log.close()

        assert run.lines == before

    def test_events_while_the_logs_are_written_are_ignored(self) -> None:
        run = Run()
        for number in range(3):
            run.note(number)

        run.stream.interrupt("::group::", lambda: run.note(2, "late.yaml"))
        run.log.close()

        assert run.groups.count("12:00:00  Wrote the Helm values file values.yaml") == 3
        assert not any("late" in line for line in run.lines)

    def test_an_event_waits_while_a_line_is_written(self) -> None:
        run = Run("a.example", "b.example")
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
        assert run.shown == ["0:00 a.example started, job-id: se_1 1 running, 1 pending"]

    def test_concurrent_events_lose_no_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(multi_log, "HEARTBEAT_SECONDS", 0)
        domains = [f"d{number}.example" for number in range(20)]
        run = Run(*domains)
        barrier = threading.Barrier(21)

        def work(number: int) -> None:
            barrier.wait()
            run.begin(number)
            run.start(number)
            for percent in range(100):
                run.read(number, "running", percent)
            run.retry(number)
            run.recover(number)
            run.warn(number, "It is odd")
            run.end(number)

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
        assert [line for line in run.lines if line.startswith("::group::")] == [
            f"::group::{name}: started in 0:00" for name in domains
        ]
        assert run.heartbeat() == ""
