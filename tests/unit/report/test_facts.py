"""What the table of a job shows, until when its link is valid, and when it can be collected."""

import io
from datetime import timedelta
from typing import Any

import pytest

from docs_platform_action.errors import JobFailed, NoRoom
from docs_platform_action.job import Job
from docs_platform_action.jobs.agent import Agent
from docs_platform_action.jobs.export import Export
from docs_platform_action.jobs.unpack import Unpack
from docs_platform_action.models import (
    AgentJob,
    Archive,
    BundleLink,
    Delivered,
    Deployment,
    ExportJob,
    RoomWait,
)
from docs_platform_action.report.console import Console
from docs_platform_action.report.facts import Facts
from docs_platform_action.report.markup import Markup
from tests.virtual_time import NOON

NOW = 1000.0
URL = "https://storage.example.com/bundle?sig=1"
LINK = BundleLink(url=URL, expires_at="later", expires=NOON + timedelta(hours=1))
EXPIRED = BundleLink(url=URL, expires_at="earlier", expires=NOON)
COMPLETED = ExportJob(status="completed", page_count=1412)
FAILURE = JobFailed("an error")


def facts() -> Facts:
    console = Console(io.StringIO(), in_workflow=False, debugging=False)
    return Facts(markup=Markup(console), now=NOON, monotonic=NOW)


def rows(job: Job) -> list[str]:
    """Return the rows of the table of a job, with its heading."""
    heading, _, *others = facts().table(job, 0.0).splitlines()
    return [heading, *others]


def export(**known: Any) -> Job:
    return Job(kind=Export(), **known)


def agent(status: str, **known: Any) -> Job:
    return Job(kind=Agent(), job_id="a1", reading=AgentJob(status=status, **known))


def deployment(name: str) -> Deployment:
    return Deployment(
        id=1,
        commit=name * 7,
        commit_url=f"https://git.example/{name}",
        creator="platform",
        environment="production",
        is_transient=False,
    )


def room(refusals: int) -> RoomWait:
    return RoomWait(refusal=NoRoom(status=NoRoom.BUSY), refusals=refusals, since=NOW - 60)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            export(domain="a.example", project_id="p1", job_id="e1"),
            ["| Export | a.example |", "| Project | p1 |", "| Job | e1 |"],
        ),
        (export(project_id="p1", job_id="e1"), ["| Project | p1 |", "| Job | e1 |"]),
        (
            export(job_id="e1", reading=ExportJob(status="odd")),
            ["| Job | e1 |", "| Status | odd |"],
        ),
        (
            Job(kind=Unpack(), domain="a.example", delivered=Delivered(bundle_path="b.tar")),
            ["| Domain | a.example |", "| Archive | b.tar |"],
        ),
        (
            Job(kind=Unpack(), delivered=Delivered(bundle_path="b.tar")),
            ["| Mode | unpack |", "| Archive | b.tar |"],
        ),
        (
            agent("active", repository="docs", ref="main", model="m1"),
            [
                "| Agent job | a1 |",
                "| Repository | docs |",
                "| Branch | main |",
                "| Model | m1 |",
                "| Status | active |",
            ],
        ),
    ],
    ids=["domain", "project", "job", "bundle", "bundle-without-domain", "agent"],
)
def test_the_heading_says_what_a_table_is_about(job: Job, expected: list[str]) -> None:
    assert rows(job) == expected


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (agent("completed"), "| Pull request | none |"),
        (
            agent("completed", pr_link="https://git.example/a&b"),
            r"| Pull request | [https\://git.example/a\&b](<https://git.example/a&amp;b>) |",
        ),
        (
            export(deployed=deployment("a")),
            "| Commit | [aaaaaaa](<https://git.example/a>) |",
        ),
        (
            export(deployed=deployment("a"), deployed_later=deployment("b")),
            (
                "| Commit | [aaaaaaa](<https://git.example/a>)"
                " or [bbbbbbb](<https://git.example/b>)"
                " (deployed during the export) |"
            ),
        ),
        (export(room=room(1)), "| Start | refused 1 time for lack of room |"),
        (
            export(room=room(2), started_at=NOW),
            "| Start | refused 2 times for lack of room, then accepted |",
        ),
        (export(reading=COMPLETED), "| Pages | 1,412 |"),
        (
            export(reading=COMPLETED, delivered=Delivered(html_files=1412)),
            "| Pages | 1,412 |",
        ),
        (
            export(reading=COMPLETED, delivered=Delivered(html_files=1413)),
            "| Pages | 1,412 |",
        ),
        (
            export(reading=COMPLETED, delivered=Delivered(html_files=1)),
            "| Pages | 1,412 reported, 1 `.html` file in the bundle |",
        ),
        (
            export(link=LINK),
            "| Bundle link | on storage.example.com, valid until 2026-05-04 13:00 UTC (60 min) |",
        ),
        (export(link=BundleLink(url=URL)), "| Bundle link | on storage.example.com |"),
        (
            export(delivered=Delivered(archive=Archive(size=2048, sha256="9b1c"))),
            "| Bundle | 2.0 KiB, SHA-256 `9b1c` |",
        ),
        (export(delivered=Delivered(bundle_path="b.tar")), "| Saved as | b.tar |"),
        (
            export(delivered=Delivered(site_files=2, site_path="site")),
            "| Site | 2 files in site/ |",
        ),
        (export(delivered=Delivered(manifest_path="m.json")), "| Manifest | m.json |"),
        (export(delivered=Delivered(changes_path="c.json")), "| List of changes | c.json |"),
        (export(delivered=Delivered(site_sha256="9b1c")), "| Site SHA-256 | `9b1c` |"),
        (export(delivered=Delivered(values_file="v.yaml")), "| Helm values | v.yaml |"),
    ],
)
def test_a_known_fact_has_a_row(job: Job, expected: str) -> None:
    assert rows(job)[-1] == expected


@pytest.mark.parametrize(
    ("job", "duration_seconds"),
    [
        (export(domain="a.example"), 0.0),
        (export(domain="a.example"), 0.9),
        (export(room=room(0)), 0.0),
        (export(link=LINK, failure=FAILURE), 0.0),
        (export(delivered=Delivered(html_files=1)), 0.0),
        (Job(kind=Agent(), job_id="a1"), 0.0),
    ],
)
def test_without_a_known_fact_there_is_no_table(job: Job, duration_seconds: float) -> None:
    assert facts().table(job, duration_seconds) == ""


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        (None, ""),
        (BundleLink(url=URL), ""),
        (BundleLink(url=URL, expires_at="soon"), "valid until soon"),
        (BundleLink(url=URL, expires_at="x" * 61), f"valid until {'x' * 60}…"),
        (EXPIRED, "expired at 2026-05-04 12:00 UTC by this runner's clock"),
    ],
)
def test_an_expiry_that_cannot_be_read_is_shown_as_it_is(
    link: BundleLink | None, expected: str
) -> None:
    assert facts().expiry(export(link=link)) == expected


@pytest.mark.parametrize(
    ("known", "is_collectable"),
    [
        ({"started_at": NOW}, True),
        ({"link": EXPIRED}, True),
        ({"link": LINK}, False),
        ({"reading": COMPLETED, "failure": FAILURE}, True),
        ({"reading": ExportJob(status="failed"), "failure": FAILURE}, False),
        ({"link": EXPIRED, "reading": ExportJob(status="failed"), "failure": FAILURE}, False),
    ],
)
def test_a_job_can_be_collected_as_long_as_it_has_no_valid_link(
    known: dict[str, Any], is_collectable: bool
) -> None:
    hint = facts().collecting_hint(export(job_id="e1", **known))

    assert ("`mode: collect, job-id: e1`" in hint) == is_collectable
