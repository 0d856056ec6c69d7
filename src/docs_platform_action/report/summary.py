"""The job summary: the page that people look at after the run."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from ..errors import Cancelled
from ..record import JobRecord
from ..settings import AGENT
from ..sizes import size
from .console import Console
from .failure import failure_lines
from .text import files, host_of, link_target, markdown, minutes, works_until


def summary_of(record: JobRecord, *, safe: Callable[[str], str], duration_seconds: float, now: datetime) -> str:
    """Write the page of one job in GitHub's Markdown: the verdict, then a table of what is known.

    `safe` takes the secrets out of a text and makes it harmless, as the log's own does.
    """

    def show(text: str | None) -> str:
        return markdown(safe(text)) if text else ""

    page = [f"### {show(record.subject)}: {_verdict(record)}", "", "| | |", "| --- | --- |"]
    page += [f"| {name} | {value} |" for name, value in _rows(record, show, duration_seconds, now) if value]
    if _verdict(record) == _STARTED:
        page += ["", show(f"Collect it in a later step or run with `job-id: {record.job_id}`.")]
    if record.failure is not None:
        title, *facts = failure_lines(record, record.failure)
        page += ["", f"**{show(title)}**", "", *(f"- {show(fact)}" for fact in facts)]
    return "\n".join(page) + "\n"


def _verdict(record: JobRecord) -> str:
    if record.failure is None:
        return _STARTED if record.started and record.bundle is None else "done"
    return "cancelled" if isinstance(record.failure, Cancelled) else "failed"


_STARTED: Final = "started"
"""The verdict on an export that nobody waited for."""

_Show = Callable[[str | None], str]


def _rows(record: JobRecord, show: _Show, duration_seconds: float, now: datetime) -> Sequence[tuple[str, str]]:
    common = [
        ("Job", show(record.job_id)),
        ("Status", show(record.status)),
        ("Pages", f"{record.page_count:,}" if record.page_count is not None else ""),
        ("Duration", minutes(duration_seconds)),
        ("Failure reason", f"`{record.failure.failure_reason}`" if record.failure is not None else ""),
    ]
    if record.mode != AGENT:
        return [("Domain", show(record.domain)), *common, ("Bundle link", _bundle(record, show, now)), *_delivered(record, show)]
    job = record.agent_job
    told = [] if job is None else [("Repository", show(job.repository)), ("Branch", show(job.ref)), ("Model", show(job.model))]
    return [*told, ("Project", show(record.project_id)), *common, ("Pull request", _pull_request(record, show))]


def _bundle(record: JobRecord, show: _Show, now: datetime) -> str:
    bundle = record.bundle
    if bundle is None or record.failure is not None:
        return ""
    host = f"on {show(host_of(bundle.url))}"
    if bundle.expires is not None:
        return f"{host}, {works_until(bundle.expires, now)}"
    return f"{host}, works until {show(bundle.expires_at)}" if bundle.expires_at else host


def _delivered(record: JobRecord, show: _Show) -> Sequence[tuple[str, str]]:
    downloaded, count = record.downloaded, record.site_files
    return [
        ("Bundle", f"{size(downloaded.size)}, SHA-256 `{downloaded.sha256}`" if downloaded is not None else ""),
        ("Saved as", show(record.bundle_path)),
        ("Site", f"{files(count)} in {show(record.site_path)}" if count is not None else ""),
        ("Helm values", show(record.values_file)),
    ]


def _pull_request(record: JobRecord, show: _Show) -> str:
    if record.pr_link is not None:
        return f"[{show(record.pr_link)}](<{link_target(record.pr_link)}>)"
    return "none" if record.agent_job is not None and record.agent_job.ended else ""


def write_summary(page: str, file: Path | None, console: Console) -> None:
    """Append the page to the file that `GITHUB_STEP_SUMMARY` names; one that cannot be written costs a warning, not the run."""
    if file is None:
        return
    try:
        with file.open("a", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.write(console.hide(page))
    except OSError as error:
        why = f"The file that GITHUB_STEP_SUMMARY names: {error.strerror}."
        console.warning(["The job summary could not be written.", why, "The run goes on."])
