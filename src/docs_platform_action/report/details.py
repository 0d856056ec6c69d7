"""What the summary tells of one job: the facts of its failure, and a table of what is known."""

from collections.abc import Iterator, Sequence

from ..record import FAILED, STARTED, JobRecord
from ..settings import AGENT
from ..sizes import size
from .failure import failure_lines
from .text import files, host_of, link_target, minutes
from .view import View, link_of, seconds_at


def details_of(record: JobRecord, view: View, *, duration_seconds: float | None, quoting: bool = True) -> Iterator[str]:
    """Write the lines on one job; without `quoting` they leave out what servers said."""
    yield from _failure(record, view, quoting=quoting)
    yield from ("| | |", "| --- | --- |")
    yield from (f"| {name} | {value} |" for name, value in _rows(record, view, duration_seconds) if value)
    if record.verdict == STARTED:
        yield from ("", view.show_prose(f"Collect it in a later step or run with `job-id: {record.job_id}`."))


def folded(record: JobRecord, view: View, *, name: str, quoting: bool = True) -> str:
    """Write the same as a block that opens on a click; the empty lines in it are where HTML ends and Markdown begins."""
    verdict = record.verdict
    shown = f"{view.show_in_html(name)}: {f'<b>{verdict}</b>' if verdict == FAILED else verdict}"
    lines = details_of(record, view, duration_seconds=seconds_at(record, view), quoting=quoting)
    return "\n".join([f"<details><summary>{shown}</summary>", "", *lines, "", "</details>", "", ""])


def _failure(record: JobRecord, view: View, *, quoting: bool) -> Iterator[str]:
    if record.failure is None:
        return
    title, *lines = failure_lines(record, record.failure)
    quoted = len([fact for fact in record.failure.facts if fact])
    facts = [view.show(fact) for fact in lines[:quoted]] if quoting else []
    facts += [view.show_prose(line) for line in lines[quoted:]]
    yield from (f"**{view.show(title)}**", "")
    yield from (f"- {fact}" for fact in facts)
    yield from [""] if facts else []


def _rows(record: JobRecord, view: View, duration_seconds: float | None) -> Sequence[tuple[str, str]]:
    show = view.show
    common = [
        ("Job", show(record.job_id)),
        ("Status", show(record.status)),
        ("Pages", f"{record.page_count:,}" if record.page_count is not None else ""),
        ("Duration", minutes(duration_seconds) if duration_seconds is not None else ""),
        ("Failure reason", f"`{record.failure.failure_reason}`" if record.failure is not None else ""),
    ]
    if record.mode != AGENT:
        return [("Domain", show(record.domain)), *common, ("Bundle link", _link(record, view)), *_delivered(record, view)]
    job = record.agent_job
    told = [] if job is None else [("Repository", show(job.repository)), ("Branch", show(job.ref)), ("Model", show(job.model))]
    return [*told, ("Project", show(record.project_id)), *common, ("Pull request", _pull_request(record, view))]


def _link(record: JobRecord, view: View) -> str:
    bundle = link_of(record)
    if bundle is None:
        return ""
    host, until = f"on {view.show(host_of(bundle.url))}", view.works_until(bundle)
    if not until:
        return host
    return f"{host}, {until}" if until.startswith("expired at ") else f"{host}, works until {until}"


def _delivered(record: JobRecord, view: View) -> Sequence[tuple[str, str]]:
    downloaded, count = record.downloaded, record.site_files
    return [
        ("Bundle", f"{size(downloaded.size)}, SHA-256 `{downloaded.sha256}`" if downloaded is not None else ""),
        ("Saved as", view.show(record.bundle_path)),
        ("Site", f"{files(count)} in {view.show(record.site_path)}" if count is not None else ""),
        ("Helm values", view.show(record.values_file)),
    ]


def _pull_request(record: JobRecord, view: View) -> str:
    if record.pr_link is not None:
        return f"[{view.show(record.pr_link)}](<{link_target(record.pr_link)}>)"
    return "none" if record.agent_job is not None and record.agent_job.ended else ""
