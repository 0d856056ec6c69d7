"""Runs.

The log of a run, its annotations and its job summary. Errors, causes and advice are examples; the real ones are on other pages.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    InvalidInput,
    JobFailed,
    NotFound,
    Rejected,
    TimedOut,
    Unauthorized,
)
from docs_platform_action.job import DOWNLOAD, UNPACK, Delivered, Job
from docs_platform_action.models import STORAGE, AgentJob, Bundle, Downloaded, ExportJob
from docs_platform_action.report.failures import annotate_failures
from docs_platform_action.report.log import STALL_SECONDS
from docs_platform_action.text import (
    describe_retry,
    format_approx,
    format_bytes,
    format_clock,
    format_eta,
    format_expiry,
    format_time,
    pluralize,
)
from tests.unit.report.logs import MIB, LoggedJob, LoggedJobs
from tests.unit.report.test_console import Log
from tests.virtual_time import BEGINNING, NOON
from tests.wording import summaries, unwritten
from tests.wording.page import Sections

LINK = Bundle(
    url="https://s.example.com/se_1/b.tar.gz?X-Signature=0123456789abcdef",
    expires_at="2026-05-04T13:00:00Z",
    expires=NOON + timedelta(hours=1),
)
ADVICE = {"cause": "An example of a cause.", "remedy": "An example of advice."}


def sections() -> Sections:
    """Return the log, the annotations and the summary of runs."""
    return {
        "The log of one job": {"An export from start to finish": _export()} | _lines_of_a_job(),
        "Warnings, errors and debug logging": _messages(),
        "The log of several exports": {"Three exports from start to finish": _exports()} | _lines_of_several(),
        "Annotations of failures": _annotations(),
        **summaries.sections(),
        **unwritten.sections(),
        "Numbers": _numbers(),
    }


def _export() -> str:
    job = LoggedJob(started_at=BEGINNING)
    job.clock.advance(1)
    job.announce("job_begun")
    job.announce("job_known")
    job.read("queued", after_seconds=3)
    job.read("running", 12.4, 48, after_seconds=28)
    job.retry(seconds=12)
    job.heartbeat()
    job.recover(98.9)
    job.heartbeat()
    job.read("polishing", 57, 231, after_seconds=13)
    job.read("failed", 57, 231, after_seconds=10)
    job.read("running", 99.9, 1411, after_seconds=29.9)
    job.read("completed", 99.9, 1412, after_seconds=0.2)
    job.job.link = LINK
    job.announce("link_made")
    job.respond(200, 503)
    job.enter(DOWNLOAD)
    job.receive(40 * MIB, 400 * MIB)
    job.receive(50 * MIB, 400 * MIB, after_seconds=20)
    job.retry(STORAGE, "An example of a storage error", 0.5)
    job.heartbeat()
    job.recover(70, STORAGE)
    job.respond(206, 403)
    job.announce("link_expired", "An example of a storage error")
    job.announce("link_renewed")
    job.announce("download_restarted", "an example of a reason")
    job.respond(206)
    job.receive(400 * MIB, 400 * MIB)
    job.downloaded(400 * MIB, after_seconds=1.9)
    job.enter(UNPACK)
    job.clock.advance(10)
    job.announce("unpack_progressed", 1000, 40 * MIB)
    job.heartbeat()
    job.job.delivered = Delivered(
        bundle_path="out/bundle.tar.gz", site_path="out/site", site_files=1904, values_file="deploy/values.yaml"
    )
    job.announce("archive_saved")
    job.announce("unpacked")
    job.announce("values_written")
    job.announce("job_ended")
    return job.text


def _lines_of_a_job() -> dict[str, str]:
    pull_request = "https://git.example.com/docs/pull/7"
    agent = {"mode": "agent", "domain": None, "project_id": "prj_1", "job_id": "aj_1"}

    def outside(**known: Any) -> LoggedJob:
        return LoggedJob(in_workflow=False, **known)

    def stall(job: LoggedJob, progress: float | None, pages: int | None, last: float | None = None) -> None:
        job.read("running", progress, pages)
        job.read("running", last, pages, after_seconds=STALL_SECONDS)
        job.heartbeat()

    def linked(**bundle: Any) -> LoggedJob:
        return LoggedJob(link=Bundle(url="https://s.example.com/b?x=1", **bundle))

    def downloading(job: LoggedJob) -> None:
        job.enter(DOWNLOAD)
        job.receive(2500)
        job.receive(2000)
        job.heartbeat()

    situations: dict[str, tuple[LoggedJob, Callable[[LoggedJob], object]]] = {
        "A job without a domain": (LoggedJob(domain=None), lambda job: job.announce("job_begun")),
        "An agent job": (LoggedJob(**agent), lambda job: job.announce("job_begun")),
        "A job that an earlier run started": (LoggedJob(mode="collect"), lambda job: job.announce("job_known")),
        "`wait` is `false`": (LoggedJob(), lambda job: job.announce("not_waiting")),
        "No response to the start yet": (LoggedJob(job_id=None), LoggedJob.heartbeat),
        "No status yet": (LoggedJob(), LoggedJob.heartbeat),
        "No progress for ten minutes": (outside(), lambda job: stall(job, 57, 231, 57)),
        "The same, with only a percentage": (outside(), lambda job: stall(job, 57, None, 57)),
        "The same, with only a number of pages": (outside(), lambda job: stall(job, None, 231)),
        "The same, if the percentage is no longer reported": (outside(), lambda job: stall(job, 57, None)),
        "A link that expires on another day": (
            linked(expires=NOON + timedelta(days=2)),
            lambda job: job.announce("link_made"),
        ),
        "A link that has expired": (linked(expires=NOON - timedelta(minutes=1)), lambda job: job.announce("link_made")),
        "A link of which only the platform knows when it expires": (
            linked(expires_at="soon"),
            lambda job: job.announce("link_made"),
        ),
        "A start that exceeded a limit": (LoggedJob(), lambda job: (job.limit(), job.recover(4, is_limit=True))),
        "A download of unknown size, which begins again": (LoggedJob(), downloading),
        "A download in one piece": (LoggedJob(), lambda job: job.downloaded(512)),
        "The pull request of an agent job": (
            LoggedJob(**agent, reading=AgentJob(status="archived", pr_link=pull_request)),
            lambda job: job.announce("job_ended"),
        ),
        "An agent job without a pull request": (
            LoggedJob(**agent, reading=AgentJob(status="active", pr_link=pull_request)),
            lambda job: job.announce("job_ended"),
        ),
    }
    for job, announce in situations.values():
        announce(job)
    return {title: job.text for title, (job, _) in situations.items()}


def _messages() -> dict[str, str]:
    def written(*, in_workflow: bool) -> str:
        job = LoggedJob(in_workflow=in_workflow, debugging=True)
        job.announce("warning", ["An example of a warning", "A detail, 100 %."])
        annotate_failures(job.console, [_failed(Rejected("an example of an error", details=("A detail, 100 %.",), **ADVICE))])
        job.announce("request_ended", "GET /v1/x", outcome="200", milliseconds=12.3, request_id="r-1")
        job.announce("request_ended", "GET /v1/x", outcome="502", milliseconds=0.4, request_id=None)
        address = "https://s.example.com/b?x=1"
        job.announce("storage_responded", address, status=206, requested="bytes=10-", request_id="r-1")
        job.announce("storage_responded", address, status=503, requested=None, request_id=None)
        return job.text

    return {"In a workflow": written(in_workflow=True), "Outside a workflow": written(in_workflow=False)}


def _exports() -> str:
    run = LoggedJobs("docs.example.com", "api.example.com", "x.example.com", max_parallel=2)
    run.begin(0, 1)
    run.start(0, "se_3f9a2c1b")
    run.start(1, "se_77")
    run.clock.advance(4)
    run.read(0, "running", 1)
    run.read(1, "polishing", 7, 1)
    run.retry(0)
    run.heartbeat(60)
    run.clock.advance(38)
    run.recover(0, 98)
    run.retry(1, STORAGE, "An example of a storage error")
    run.clock.advance(30)
    run.recover(1, 30, STORAGE)
    run.log.link_expired(run.jobs[0], "An example of a storage error")
    run.warn(1, "An example of a warning", "A detail.")
    run.heartbeat()
    run.read(0, "completed", 100, 412)
    run.jobs[0].delivered = Delivered(downloaded=Downloaded(size=40056657, sha256="ab" * 32))
    run.heartbeat()
    run.end(0, link=LINK)
    run.clock.advance(48)
    run.note(1)
    run.end(1, Rejected("an example of an error", details=("A detail.",), **ADVICE))
    run.log.close()
    return run.text.rstrip()


def _lines_of_several() -> dict[str, str]:
    in_parallel = LoggedJobs()
    in_outage = LoggedJobs("a.example", "b.example", "c.example", "d.example")
    in_outage.begin(0, 1, 2, 3)
    in_outage.retry(1)
    in_outage.heartbeat()
    for number in range(4):
        in_outage.retry(number)
    in_outage.heartbeat()
    known = LoggedJobs("a.example", "b.example")
    known.begin(0, 1)
    for status in ("polishing", "running", "queued"):
        known.read(0, status)
        known.read(1, status)
    return {
        "All at the same time": in_parallel.text.rstrip(),
        "An outage of the API for some and for all domains": in_outage.text.rstrip(),
        "An unknown status of several domains": known.text.rstrip(),
        "The end of a domain": _ends(),
        "Domains that are not started": _not_started(),
        "Domains that a cancel came before": _cancelled_before(),
        "A status that changes very often": _shortened(),
        "Outside a workflow": _outside(),
    }


def _ends() -> str:
    ends: list[dict[str, Any]] = [
        {},
        {"reading": ExportJob(status="completed", page_count=1)},
        {"link": Bundle(url="https://s.example.com/b")},
        {"link": Bundle(url="https://s.example.com/b", expires=NOON - timedelta(minutes=1))},
        {"failure": TimedOut("an example of an error")},
        {"failure": Cancelled("cancelled after 0:09", cause=""), "note": ""},
        {"failure": TimedOut("an example of an error"), "note": "", "is_announced": False},
        {"note": "", "is_announced": False},
    ]
    run = LoggedJobs(*(f"d{number}.example" for number in range(len(ends))))
    for number, end in enumerate(ends):
        job = run.jobs[number]
        run.begin(number)
        if "note" in end:
            run.note(number)
        run.clock.advance(9)
        job.job_id, job.reading, job.link, job.failure = "se_1", end.get("reading"), end.get("link"), end.get("failure")
        if end.get("is_announced", True):
            run.log.job_ended(job)
    run.log.close()
    return run.text.rstrip()


def _not_started() -> str:
    run = LoggedJobs(*(f"d{number}.example" for number in range(8)))
    run.begin(0)
    for number in range(6):
        run.end(number, Unauthorized("an example of an error"))
    run.end(6, Cancelled("cancelled after 0:00"))
    run.clock.advance(1)
    run.log.close()
    return "\n".join(run.lines[:5])


def _cancelled_before() -> str:
    run = LoggedJobs("a.example", "b.example")
    run.end(0, Cancelled("cancelled before it started"))
    run.log.close()
    return "\n".join(run.lines[1:3])


def _shortened() -> str:
    with patch("docs_platform_action.report.live.MAX_KEPT_LINES", 3):
        run = LoggedJobs("a.example", "b.example")
        run.begin(0)
        for number in range(3000):
            run.read(0, ("queued", "running")[number % 2])
    run.log.close()
    return "\n".join(line for line in run.lines if line.startswith(("  ", "…")))


def _outside() -> str:
    run = LoggedJobs("a.example", "b.example", in_workflow=False, debugging=True)
    run.begin(0)
    run.note(0)
    run.debug(0)
    run.log.close()
    return run.text.rstrip()


def _failed(error: ActionError | None, **known: Any) -> Job:
    status = known.pop("status", None)
    reading = ExportJob(status=status) if status is not None else None
    return Job(**{"mode": "export", "domain": "docs.example.com", "began_at": 1.0, "failure": error, "reading": reading, **known})


def _annotations() -> dict[str, str]:
    running = {"job_id": "se_1", "status": "running"}
    completed = {"job_id": "se_1", "status": "completed"}
    error = Rejected("an example of an error", details=("A detail.", "Another one."), **ADVICE, request_id="7f3a91c2")
    bare = Rejected("an example of an error", cause="", remedy="")
    failures: dict[str, list[Job]] = {
        "A job that continues": [_failed(error, **running)],
        "A job with a status that no document has": [_failed(bare, job_id="se_1", status="polishing")],
        "An export that is completed": [_failed(bare, **completed)],
        "A job that failed, that the platform lost, or of which there was no response": [
            _failed(JobFailed("an example of an error"), job_id="se_1", status="failed"),
            _failed(NotFound("an example of an error", cause="", remedy=""), **completed),
            _failed(bare, job_id="se_1"),
            _failed(bare, status="running"),
        ],
        "A job that was started, and not read yet": [_failed(bare, job_id="se_1", started_at=1.0)],
        "A job that was not started": [_failed(bare, began_at=None)],
        "Agent jobs, one that continues and one that is completed": [
            _failed(bare, mode="agent", project_id="prj_1", **running),
            _failed(bare, mode="agent", project_id="prj_1", **completed),
        ],
        "Jobs without a domain, and without an ID": [
            _failed(bare, domain=None, job_id="se_1"),
            _failed(bare, domain=None),
            _failed(bare, mode="agent"),
        ],
        "Wrong inputs": [_failed(InvalidInput("an example of an error", details=("`a`: no.", "`b`: no."), remedy=""), mode=None)],
        "Cancelled jobs, after those that failed": [
            _failed(Cancelled("cancelled after 0:38", cause="")),
            _failed(Cancelled("cancelled", cause=""), began_at=None),
            _failed(bare),
        ],
        "More failures than the runner shows": [_failed(bare)] * 10
        + [_failed(TimedOut("an example of an error"))] * 8
        + [_failed(Cancelled("cancelled"))] * 1200
        + [_failed(None)],
        "One more failure than the runner shows": [_failed(bare)] * 10,
    }
    return {title: _annotated(jobs) for title, jobs in failures.items()}


def _annotated(jobs: list[Job]) -> str:
    """Return the annotations as GitHub shows them, the title above the lines; of many, the last."""
    log = Log()
    annotate_failures(log.console, jobs)
    lines = log.text.splitlines()
    shown = lines[-1:] if len(lines) > 9 else lines
    return "\n".join(line.partition("title=")[2].replace("%3A", ":").replace("::", "\n").replace("%0A", "\n") for line in shown)


def _numbers() -> dict[str, str]:
    def table(describe: Callable[[float], str], *values: float) -> str:
        return "\n".join(f"{value:>14,}  {describe(value)}" for value in values)

    seconds = (-86_400, 0, 1, 3600, 172_800)
    return {
        "Elapsed time": table(format_clock, -5, 0, 31, 144.9, 3599, 3600, 90_061),
        "Remaining time": table(format_eta, 1, 7.4, 7.6, 57.6, 60, 64.9, 65.1, 594, 596, 600, 629, 631, 3871),
        "A length of time": table(
            format_approx,
            *(0.04, 0.05, 0.25, 4, 4.5, 9.94, 9.95, 10, 89, 90, 3540, 5399, 5400, 86_400, 172_799, 172_800),
        ),
        "A count": table(lambda count: pluralize(int(count), "file"), 0, 1, 2, 1904),
        "A size": table(
            format_bytes,
            *(0, 0.4, 1, 1023, 1024, 1536, 1023.94 * 1024, 1023.96 * 1024, 38.2 * MIB, 1024**3 - 1, 50 * 1024**3),
            *(1024**4, 5000 * 1024**4),
        ),
        "A time, today or another day": "\n".join(
            [format_time(NOON), format_time(NOON, NOON), format_time(NOON + timedelta(days=1), NOON)]
        ),
        "When a link expires": table(lambda rest: format_expiry(NOON + timedelta(seconds=rest), NOON), *seconds),
        "The same on a page that is read later": format_expiry(NOON + timedelta(hours=1), NOON, always_dated=True),
        "What happens after a temporary error": describe_retry("An example of an error", 299.6, 4),
        "The same while other jobs keep the platform busy, by the seconds to the next attempt": table(
            lambda pause: describe_retry("An example of an error", float("inf"), pause), 0.049, 0.05, 86_400
        ),
    }
