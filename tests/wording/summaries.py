"""The job summaries on the page `runs.md`."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from docs_platform_action.errors import Cancelled, InvalidBundle, InvalidInput, Rejected, TimedOut, Unauthorized
from docs_platform_action.job import RUN, Job
from docs_platform_action.models import AgentJob, Bundle, ExportJob
from tests.page.samples import NOW, URL, cancelled, failed, good, phases, refused, unavailable
from tests.unit.report.pages import exported, many, page
from tests.virtual_time import NOON
from tests.wording.page import Sections

EXPIRED = Bundle(url=URL, expires_at="x", expires=NOON)
BARE: dict[str, Any] = {"cause": "", "remedy": ""}


def sections() -> Sections:
    """Return the summaries."""
    return {
        "Job summaries of one job": _of_one(),
        "Job summaries of several exports": _of_several(),
        "Parts of job summaries": _parts(),
        "Job summaries that are too long": _shortened(),
    }


def _of_one() -> dict[str, str]:
    agent = Job(mode="agent", project_id="prj_1", job_id="aj_1")
    link = "https://git.example.com/docs/pull/7"
    agent.record(AgentJob(status="completed", pr_link=link, repository="docs", ref="main", model="m_1"), NOW)
    unchanged = Job(mode="agent", project_id="prj_1", job_id="aj_1")
    unchanged.record(AgentJob(status="completed"), NOW)
    inputs = InvalidInput(
        "Invalid inputs: `domain`, `site-path`",
        details=("`domain`: 'a `wait` *b*' is wrong; write `c`.", "`site-path`: holds `{domain}`, see `job-id`."),
        remedy="An example of advice about `domain`.",
    )
    unexplained = Unauthorized("an example of an error", **BARE)
    pages = {
        "A successful export": page(
            good(bundle_path="out/b.tar.gz", site_path="out/site", site_files=1904, values_file="a|b_c.yaml")
        ),
        "An export that was started, in a workflow": page(_started()),
        "An export without a domain, whose link has expired": page(exported(domain=None, link=EXPIRED)),
        "An export that failed": page(failed()),
        "An export that continues": page(exported(status="running", failure=TimedOut("late", **BARE))),
        "An archive that was saved and is damaged": page(
            exported(
                downloaded=good().delivered.downloaded,
                bundle_path="b.tar.gz",
                failure=InvalidBundle("an example of an error", **BARE),
            )
        ),
        "A failure without a cause and advice": page(Job(mode=None, failure=unexplained), seconds=0.99),
        "A cancelled export": page(cancelled(phases=[])),
        "Invalid inputs": page(Job(mode=None, failure=inputs), seconds=1),
        "A pull request": page(agent),
        "An agent job that changed nothing": page(unchanged),
    }
    return {title: shown.rstrip() for title, shown in pages.items()}


def _started(**changes: object) -> Job:
    return exported(status="queued", page_count=None, link=None, **changes)


def _of_several() -> dict[str, str]:
    three = [good(), failed(), cancelled(phases=[])]
    late = [failed(failure=TimedOut("late", **BARE), status="running", job_id=f"se_{n}", phases=[]) for n in range(2)]
    rejected = failed("c.example.com", failure=Rejected("no", cause="", remedy="Fix it."), phases=[])
    outage = [failed(f"d{n}.example.com", failure=unavailable(300 + n), status="queued", phases=[]) for n in range(3)]
    pages = {
        "One of each verdict": page(*three, seconds=260),
        "Different failures, one of a job that continues": page(late[0], rejected),
        "Cancelled jobs and no failed one": page(
            good(phases=[]), cancelled(phases=[]), cancelled(job_id=None, status=None, began_at=None, phases=[])
        ),
        "Successful exports, one with a link of unknown expiry and no archive": page(
            exported(link=Bundle(url=URL)), good("b.example.com", phases=[])
        ),
        "Exports that were started": page(_started(), _started(domain="b.example.com")),
        "A key that is refused for all": page(*refused(4)),
        "Some are refused, others failed": page(failed("other.example.com", phases=[]), *refused(3), good(phases=[])),
        "An outage": page(*outage),
    }
    return {title: shown.rstrip() for title, shown in pages.items()}


def _parts() -> dict[str, str]:
    def first_lines(*groups: Sequence[Job]) -> str:
        return "\n".join(page(*jobs).partition("\n")[0] for jobs in groups)

    def said(*details: str, request_id: str | None = None) -> Rejected:
        return Rejected("no", details=details, request_id=request_id, **BARE)

    def what_happened(*jobs: Job) -> str:
        return next(line for line in page(*jobs).splitlines() if line.startswith("> **"))

    headlines = first_lines(
        *([good(), good()], [failed(), failed()], [failed(), cancelled(), good()], [good(), cancelled()]),
        *([good(link=None), good()], [good(), Job(mode="export", domain="d")], [good(link=None), cancelled()]),
        *([good() for _ in range(1200)], [good(), good(link=EXPIRED)], [good(link=EXPIRED), failed()]),
        *([good(link=Bundle(url=URL, expires=NOON + timedelta(seconds=1)))], [good(link=Bundle(url=URL, expires_at="x"))]),
    )
    bundles = [
        Bundle(url=URL, expires=NOON - timedelta(days=1)),
        Bundle(url=URL, expires=NOON + timedelta(days=1)),
        Bundle(url=URL, expires_at="in an hour"),
        Bundle(url=URL, expires_at="e" * 99),
        Bundle(url=URL),
        Bundle(url="https://user:pa55word@storage.example.com:8443/a"),
    ]
    compact = [good(f"d{n}.example.com", phases=phases(NOW - 99, **{RUN: 90.0 + n})) for n in range(8)]
    named = [failed(f"d{number}.example.com", failure=TimedOut("late")) for number in range(1234)]
    return {
        "Headlines": headlines,
        "Links": "\n".join(
            line for bundle in bundles for line in page(exported(link=bundle)).splitlines() if line.startswith("| Bundle link")
        ),
        "The rows of jobs": _rows(),
        "The domains that failed, if they are many": what_happened(*named),
        "What the API said of all, with one request ID": what_happened(
            *[failed(failure=said("The API said no.", request_id="7f3a")) for _ in range(3)]
        ),
        "The same, with different request IDs": what_happened(*[failed(failure=said(request_id=f"req-{n}")) for n in range(3)]),
        "A timeline": page(*compact, failed()).partition("```mermaid\n")[2].partition("\n\n<details>")[0],
        "The timeline of more than forty": _note_of([failed(), *(good() for _ in range(41))]),
        "The same if none failed": _note_of([good() for _ in range(41)]),
    }


def _note_of(jobs: Sequence[Job]) -> str:
    return page(*jobs).partition("```mermaid\n")[2].partition("```\n\n")[2].partition("\n")[0]


def _rows() -> str:
    """Return what the overview says of a job. Other failures keep the page from explaining that of the job."""
    wrong = Rejected("no", details=("The API said no.",), cause="It is wrong.", remedy="Fix it.", request_id="7f3a")
    jobs = [
        *(failed(status=None), failed(status="queued"), failed(status=ExportJob.COMPLETED), failed(failure=wrong, job_id=None)),
        failed(failure=unavailable(303), status="queued"),
        failed(failure=Rejected(f"no {'x' * 999}"), job_id=None),
        *(cancelled(status=None, began_at=None), cancelled(status=None, began_at=NOW - 1, job_id=None)),
        failed(status=None, failure=Cancelled("cancelled after 0:01", details=("An example of a detail.",)), job_id=None),
        cancelled(status=None, started_at=None),
        *(good(status="packed"), good(ended_at=None, downloaded=None), Job(mode="export", domain="late.example.com")),
    ]
    others = [failed(failure=Rejected(f"other {number}")) for number in range(2)]
    return "\n".join(page(job, *others, good()).partition("---: | :--- |\n")[2].partition("\n")[0] for job in jobs)


def _shortened() -> dict[str, str]:
    return {"The end of a summary that is cut off": page(*many(), max_bytes=1500).partition("| :--- |\n")[2].rstrip()}
