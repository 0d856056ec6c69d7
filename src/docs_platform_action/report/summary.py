"""The job summary: the page that people look at after the run."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from ..model import Bundle
from ..record import JobRecord
from ..settings import AGENT
from .console import Console
from .failure import failure_lines
from .text import host_of, markdown, markdown_link, minutes, moment, roughly

LARGEST_SUMMARY_BYTES: Final = 1024 * 1024
"""What the runner takes from one step; it drops a larger page whole (source: actions/runner)."""


def summary_of(record: JobRecord, *, duration_seconds: float, now: datetime) -> str:
    """Write the page of one job in GitHub's Markdown: the verdict, then a table of what is known."""
    verdict = "failed" if record.failure is not None else "done"
    if record.failure is not None and record.failure.failure_reason == "cancelled":
        verdict = "cancelled"
    rows = [(name, value) for name, value in _rows(record, duration_seconds, now) if value]
    page = [f"### {markdown(record.subject)}: {verdict}", "", "| | |", "| --- | --- |"]
    page += [f"| {name} | {value} |" for name, value in rows]
    if record.failure is not None:
        title, *facts = failure_lines(record, record.failure)
        page += ["", f"**{markdown(title)}**", "", *(f"- {markdown(fact)}" for fact in facts)]
    return "\n".join(page) + "\n"


def _rows(record: JobRecord, duration_seconds: float, now: datetime) -> Sequence[tuple[str, str]]:
    failure = ("Failure reason", f"`{record.failure.failure_reason}`" if record.failure is not None else "")
    common = [
        ("Job", markdown(record.job_id or "")),
        ("Status", markdown(record.status or "")),
        ("Pages", f"{record.page_count:,}" if record.page_count is not None else ""),
        ("Duration", minutes(duration_seconds)),
        failure,
    ]
    if record.mode != AGENT:
        return [("Domain", markdown(record.domain or "")), *common, ("Bundle link", _bundle(record, now))]
    job = record.agent_job
    return [
        ("Repository", markdown((job.repository if job else None) or "")),
        ("Branch", markdown((job.ref if job else None) or "")),
        ("Model", markdown((job.model if job else None) or "")),
        ("Project", markdown(record.project_id or "")),
        *common,
        ("Pull request", _pull_request(record)),
    ]


def _bundle(record: JobRecord, now: datetime) -> str:
    bundle: Bundle | None = record.bundle
    if bundle is None or record.failure is not None:
        return ""
    host = f"on {markdown(host_of(bundle.url))}"
    if bundle.expires is not None:
        return f"{host}, works until {moment(bundle.expires, now)} ({roughly((bundle.expires - now).total_seconds())})"
    return f"{host}, works until {markdown(bundle.expires_at)}" if bundle.expires_at else host


def _pull_request(record: JobRecord) -> str:
    if record.pr_link is not None:
        return markdown_link(record.pr_link, record.pr_link)
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
