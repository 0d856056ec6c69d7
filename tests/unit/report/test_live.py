"""When the log of several exports has a line, and what is hidden in it.

`tests/wording/runs.md` has the lines.
"""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from docs_platform_action.errors import Cancelled, NoRoom, Rejected
from docs_platform_action.job import ROOM
from docs_platform_action.models import STORAGE, Archive, BundleLink, Delivered, RoomWait
from docs_platform_action.report.live import MAX_KEPT_LINES, QUIET_SECONDS
from docs_platform_action.report.log import MAX_STATUSES
from docs_platform_action.text import MAX_WORD_LENGTH
from tests.unit.report.test_log import LoggedJobs
from tests.virtual_time import BEGINNING

NO = Rejected("no")
KINDS = {"started,": "starts", "Retrying": "fails", "again": "recovers", "resumed": "resumes"}
Step = tuple[str, *tuple[object, ...]]


def play(run: LoggedJobs, *steps: Step) -> LoggedJobs:
    """Announce events, each the name of a method with its arguments."""
    for name, *arguments in steps:
        getattr(run, name)(*arguments)
    return run


def kinds(run: LoggedJobs) -> list[str]:
    """Return the domain of each live line, with a word for what it says."""
    return [kind_of(line) for line in run.shown]


def kind_of(line: str) -> str:
    _time, domain, *words = line.split()
    if ".example" not in domain:
        return "counts"
    for word, kind in KINDS.items():
        if word in words:
            return f"{domain[0]} {kind}"
    return f"{domain[0]} {words[0]}"


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        (
            [
                ("begin", 0),
                ("read", 0, "running", 0),
                ("read", 0, "running", 10),
                ("read", 0, "running", 20),
            ],
            ["a running"],
        ),
        (
            [
                ("begin", 0),
                ("start", 0),
                ("read", 0, "queued"),
                ("read", 0, "running"),
                ("read", 0, "odd"),
                ("read", 0, "odd"),
            ],
            ["a starts", "a running", "a reports"],
        ),
        ([("begin", 0), ("read", 0, "completed"), ("end", 0), ("end", 0)], ["a done"]),
        (
            [("begin", 0), ("end", 0), ("end", 0, Cancelled("cancelled late"))],
            ["a done", "a cancelled"],
        ),
        ([("begin", 0), ("start", 0), ("end", 0)], ["a starts"]),
    ],
    ids=[
        "progress",
        "first queued, then unknown",
        "ended twice",
        "cancelled after its end",
        "not waited for",
    ],
)
def test_each_status_has_one_line(steps: Sequence[Step], shown: list[str]) -> None:
    assert kinds(play(LoggedJobs(), *steps)) == shown


@pytest.mark.parametrize("is_live", [True, False])
def test_a_note_is_shown_once_and_only_if_it_is_live(is_live: bool) -> None:
    run = LoggedJobs()
    run.begin(0)

    for _ in range(2):
        run.log.noted(run.jobs[0], "noted", is_live=is_live)

    assert kinds(run) == (["a noted"] if is_live else [])


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        (
            [("retry", 1), ("wait", 10), ("retry", 0), ("recover", 0), ("recover", 1)],
            ["b fails", "a recovers"],
        ),
        (
            [("retry", 0), ("retry", 1), ("wait", 300), ("end", 0, NO), ("recover", 1)],
            ["a fails", "a failed:", "b recovers"],
        ),
        (
            [("retry", 0), ("wait", 0.5), ("recover", 0), ("wait", 0.5)] * 60,
            ["a fails", "a recovers"] * int(60 / QUIET_SECONDS),
        ),
        (
            [
                ("retry", 0, STORAGE),
                ("retry", 1, STORAGE),
                ("wait", 20),
                ("retry", 0, STORAGE),
            ],
            ["a fails"],
        ),
        (
            [("retry", 0, STORAGE), ("wait", QUIET_SECONDS), ("retry", 1, STORAGE)],
            ["a fails", "b fails"],
        ),
    ],
    ids=["for all", "the reporter ends", "short ones", "storage", "storage later"],
)
def test_an_outage_has_a_line_of_one_domain_when_it_begins_and_when_it_ends(
    steps: Sequence[Step], shown: list[str]
) -> None:
    assert kinds(play(LoggedJobs(), ("begin", 0, 1, 2), *steps)) == shown


class TestHeartbeat:
    @pytest.mark.parametrize(("seconds", "count"), [(54.9, 0), (55, 1)])
    @pytest.mark.parametrize("line", [("start", 0), ("warn", 0, "It is odd")])
    def test_it_comes_after_a_silence_which_any_line_breaks(
        self, line: Step, seconds: float, count: int
    ) -> None:
        run = play(LoggedJobs(), ("begin", 0), ("wait", 30), line)
        shown = len(run.lines)

        run.heartbeat(seconds)

        assert len(run.lines) - shown == count

    @pytest.mark.parametrize(("numbers", "named"), [((1,), True), ((0, 1), False)])
    def test_it_names_the_domains_in_an_outage_unless_all_are(
        self, numbers: tuple[int, ...], named: bool
    ) -> None:
        run = play(LoggedJobs(), ("begin", 0, 1))
        for number in numbers:
            run.retry(number)

        assert ("for b.example)" in run.heartbeat()) == named


def wait_for_room(run: LoggedJobs, number: int, refusal: NoRoom, *, next_at: float) -> None:
    """Refuse a start at the beginning."""
    job = run.jobs[number]
    job.room = RoomWait(
        refusal=refusal, refusals=1, since=BEGINNING, next_at=next_at, until=BEGINNING + 4500
    )
    job.start_phase(ROOM, BEGINNING)
    run.log.waiting_for_room(job, refusal)


def test_the_heartbeat_groups_the_waits_for_room_and_counts_the_rest() -> None:
    run = LoggedJobs(*[f"{letter}.example" for letter in "abcdefg"])
    run.begin(*range(7))
    later = BEGINNING + 300
    wait_for_room(run, 0, NoRoom(status=429), next_at=later)
    wait_for_room(run, 1, NoRoom(status=429), next_at=later)
    for number in range(2, 6):
        refusal = NoRoom(status=409, running_job_id=f"se_{number}")
        wait_for_room(run, number, refusal, next_at=later)
    wait_for_room(run, 6, NoRoom(status=409, running_job_id="se_6"), next_at=BEGINNING)

    shown = run.heartbeat()

    assert "7 waiting for room" in shown
    assert "a.example, b.example waiting for 0:55. The platform allows no more starts" in shown
    assert "job se_2" in shown
    assert "job se_3" in shown
    assert "job se_4" not in shown
    assert "2 more sites waiting for other exports" in shown
    assert "g.example next to start" in shown


def test_the_line_of_a_delivered_site_has_its_pages_and_the_size_of_its_archive() -> None:
    run = play(LoggedJobs(), ("begin", 0), ("read", 0, "completed", 100, 412))
    run.jobs[0].delivered = Delivered(archive=Archive(size=2048, sha256="9b1c"))
    run.jobs[0].link = BundleLink(url="https://s.example.com/b", expires=None)

    run.end(0)

    assert "done: 412 pages, 2.0 KiB" in run.shown[-1]
    assert "link" not in run.shown[-1]


@pytest.mark.parametrize(("seconds", "word"), [(60, "valid"), (-60, "expired")])
def test_the_line_of_a_site_says_whether_its_link_is_still_valid(seconds: float, word: str) -> None:
    run = play(LoggedJobs(), ("begin", 0), ("read", 0, "completed"))
    expires = run.clock.now() + timedelta(seconds=seconds)
    run.jobs[0].link = BundleLink(url="https://s.example.com/b", expires=expires)

    run.end(0)

    assert f"done: link {word}" in run.shown[-1]


@pytest.mark.parametrize(
    ("steps", "title"),
    [
        ([("warn", 0, "It is odd"), ("end", 0, NO)], "not started"),
        ([("begin", 0), ("start", 0), ("wait", 3)], "not ended after 0:03"),
        ([("begin", 0), ("wait", 3), ("end", 0, Cancelled("no"))], "cancelled after 0:03"),
        ([("begin", 0), ("wait", 3), ("end", 0, NO)], "failed after 0:03 (rejected)"),
    ],
    ids=["not started", "running", "cancelled", "failed"],
)
def test_the_log_of_a_site_is_titled_with_how_it_ended(steps: Sequence[Step], title: str) -> None:
    run = play(LoggedJobs(), *steps)

    run.log.close()

    assert f"::group::a.example: {title}" in run.lines


def test_domains_that_were_not_started_are_named_at_the_end() -> None:
    run = play(LoggedJobs(), ("begin", 0), ("end", 0), ("end", 1, NO), ("end", 2, NO))

    run.log.close()

    (line,) = [line for line in run.lines if "not started (" in line]
    assert "b.example" in line
    assert "c.example" in line
    assert "a.example" not in line
    assert line.endswith(": no")


def test_the_same_warning_is_shown_once() -> None:
    run = LoggedJobs()

    for number in range(3):
        run.warn(number, "It is odd", "Because.")
    run.warn(0, "It is odd", "For another reason.")

    assert sum(line.startswith("::warning::") for line in run.lines) == 2


@pytest.mark.parametrize("statuses", [100, 5000])
def test_of_the_log_of_a_domain_the_last_lines_are_kept(statuses: int) -> None:
    run = LoggedJobs("a.example", "b.example")
    run.begin(0)
    for number in range(statuses):
        run.read(0, f"status {number}")
    run.end(0, Rejected("no", cause="", remedy=""))

    run.log.close()

    (group,) = [number for number, line in enumerate(run.lines) if line.startswith("::group::")]
    lines = run.lines[group + 1 : -1]
    assert lines[0].startswith("…") == (statuses > MAX_KEPT_LINES)
    kept = [line for line in lines if not line.startswith("…")]
    # the title, the explained statuses, the readings, the failure
    assert len(kept) == min(MAX_KEPT_LINES, 1 + MAX_STATUSES + statuses + 1)
    assert lines[-1].endswith(": no")


@pytest.mark.parametrize(
    ("domains", "named"),
    [
        (["a.example", "b.example"], "a.example, b.example"),
        (
            [f"{letter}.example" for letter in "abcdefghijkl"],
            ", ".join(f"{letter}.example" for letter in "abcdefghij") + " and 2 more",
        ),
        (["a.example", "b" * 200], f"a.example, {'b' * MAX_WORD_LENGTH}…"),
    ],
)
def test_sites_without_a_manifest_are_named_once_below_the_title(
    domains: Sequence[str], named: str
) -> None:
    run = LoggedJobs(*domains, "old.example", is_first_publication=True)
    run.jobs[-1].is_first_publication = False

    run.begin(0, 1)

    first_publications = f"First publication (no manifest yet): {named}."
    assert run.lines[1:] == [f"{first_publications} Compared with a manifest: 1 site."]


def test_without_a_first_publication_there_is_only_the_title() -> None:
    run = LoggedJobs()

    run.begin(0)

    assert len(run.lines) == 1
