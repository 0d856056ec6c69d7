"""The status of jobs over time, with a fake clock."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from admin_api_simulator.clock import Clock
from admin_api_simulator.jobs import ExportPlan, JobStore, first_label


@dataclass
class Hand:
    seconds: float = 100.0

    def clock(self) -> Clock:
        return Clock(monotonic=lambda: self.seconds, now=lambda: datetime(2024, 6, 1, 12, tzinfo=UTC))


def store(hand: Hand, *, job_ids: tuple[str, ...] = (), awkward_ids: bool = False) -> JobStore:
    return JobStore(
        clock=hand.clock(),
        export_seconds=10.0,
        queue_share=0.2,
        agent_seconds=5.0,
        pages=100,
        job_ids=job_ids,
        awkward_ids=awkward_ids,
    )


@pytest.mark.parametrize(
    ("age", "status", "progress", "pages"),
    [
        (0.0, "queued", None, None),
        (1.9, "queued", None, None),
        (2.0, "running", 0, 0),
        (6.0, "running", 50, 50),
        (9.999, "running", 99, 99),
        (10.0, "completed", None, 100),
        (99.0, "completed", None, 100),
    ],
)
def test_an_export_is_queued_then_runs_then_is_complete(age: float, status: str, progress: int | None, pages: int | None) -> None:
    hand = Hand()
    jobs = store(hand)
    job = jobs.start_export("docs.example.com")

    hand.seconds += age
    job_json = jobs.export_json(job)

    assert (job_json["status"], job_json.get("progress"), job_json.get("pageCount")) == (status, progress, pages)
    assert job_json["createdAt"] == "2024-06-01T12:00:00.000Z"


def test_a_failed_export_has_an_error_and_no_page_count() -> None:
    hand = Hand()
    jobs = store(hand)
    job = jobs.start_export("Failing.example.com")

    hand.seconds += 10
    job_json = jobs.export_json(job)

    assert job_json["status"] == "failed"
    assert job_json["error"]
    assert "pageCount" not in job_json


def test_the_first_read_starts_an_agent_jobs_clock() -> None:
    hand = Hand()
    jobs = store(hand)

    hand.seconds += 1000
    first = jobs.agent_json("demo-project", "agent-archived")
    hand.seconds += 4.9
    second = jobs.agent_json("demo-project", "agent-archived")
    hand.seconds += 0.1
    last = jobs.agent_json("demo-project", "agent-archived")

    assert first is not None
    assert second is not None
    assert last is not None
    assert [first["status"], second["status"], last["status"]] == ["active", "active", "archived"]
    assert (second["archivedAt"], last["archivedAt"]) == (None, "2024-06-01T12:00:05.000Z")


def test_fields_that_belong_to_the_end_are_overridden_at_the_end() -> None:
    hand = Hand()
    jobs = store(hand)
    jobs.add_agent("mine", outcome="failed", overrides={"prLink": "https://x.example/1", "model": "m"})

    active = jobs.agent_json("demo-project", "mine")
    hand.seconds += 5
    ended = jobs.agent_json("demo-project", "mine")

    assert active is not None
    assert ended is not None
    assert (active["prLink"], active["model"]) == (None, "m")
    assert ended["prLink"] == "https://x.example/1"


def test_ids_are_given_ones_first_and_then_made_the_same_way_every_time() -> None:
    first, second = (
        [store(Hand(), job_ids=("a/b",)).start_export("d.example").id for _ in range(1)]
        + [store(Hand()).start_export("d.example").id]
        for _ in range(2)
    )

    assert first == second
    assert first[0] == "a/b"
    assert first[1].startswith("se_")


def test_two_exports_of_a_domain_are_two_jobs() -> None:
    jobs = store(Hand(), awkward_ids=True)

    one, two = jobs.start_export("d.example"), jobs.start_export("d.example")

    assert one.id != two.id
    assert set("/% ?#ä") < set(one.id)


def test_exports_are_counted_while_they_are_unfinished() -> None:
    hand = Hand()
    jobs = store(hand)
    counts = []

    for pause in (0, 4, 6, 0, 10):
        hand.seconds += pause
        counts.append(jobs.unfinished())
        jobs.start_export("d.example")

    assert counts == [0, 1, 1, 2, 0]
    assert jobs.max_concurrent() == 3


@pytest.mark.parametrize(
    ("domain", "label"),
    [("Docs.example.com", "docs"), ("unknown:8443", "unknown"), ("no-plan", "no-plan"), (" failing.x", "failing"), ("", "")],
)
def test_the_first_label_is_the_word_before_the_first_dot(domain: str, label: str) -> None:
    assert first_label(domain) == label


def test_an_export_is_as_planned_for_its_domain() -> None:
    jobs, now = store(Hand()), 100.0
    plan = ExportPlan(job_id="se_x", seconds=100, queue_seconds=20, pages=50, error="It broke.", bundle=b"b")

    jobs.plan_export("Docs.Example.com", plan)

    job, other = jobs.start_export("docs.example.com"), jobs.start_export("other.example.com")
    assert (job.id, job.bundle) == ("se_x", b"b")
    assert [job.status(now + age) for age in (19, 21, 99, 100)] == ["queued", "running", "running", "failed"]
    assert job.as_json(now + 60)["pageCount"] == 25
    assert job.as_json(now + 100)["error"] == "It broke."
    assert (other.seconds, other.pages, other.outcome) == (10, 100, "completed")
