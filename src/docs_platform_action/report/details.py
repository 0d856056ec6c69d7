"""What the summary tells of one job: the facts of its failure, and a table of what is known; and of many that failed alike."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..errors import ActionError, Cancelled, InvalidInput, TimedOut, Unavailable
from ..job import FAILED, NOT_STARTED, STARTED, Job
from ..models import AGENT
from ..text import host_of, link_target, minutes, pluralize, sentence, size
from .failures import failure_lines, how_to_collect
from .view import View, link_of, seconds_at

FEWEST_ALIKE: Final = 3
"""Failures of one cause from which on it is told once, and not again for each job."""


def details_of(record: Job, view: View, *, duration_seconds: float | None, quoting: bool = True) -> Iterator[str]:
    """Write the lines on one job; without `quoting` they leave out what servers said."""
    yield from _failure(record, view, quoting=quoting)
    yield from ("| | |", "| --- | --- |")
    yield from (f"| {name} | {value} |" for name, value in _rows(record, view, duration_seconds) if value)
    if record.verdict == STARTED:
        yield from ("", view.show_prose(f"Collect it in a later step or run with `job-id: {record.job_id}`."))


def folded(record: Job, view: View, *, name: str, quoting: bool = True) -> str:
    """Write the same as a block that opens on a click; the empty lines in it are where HTML ends and Markdown begins."""
    verdict = record.verdict
    shown = f"{view.show_in_html(name)}: {f'<b>{verdict}</b>' if verdict == FAILED else verdict}"
    lines = details_of(record, view, duration_seconds=seconds_at(record, view), quoting=quoting)
    return "\n".join([f"<details><summary>{shown}</summary>", "", *lines, "", "</details>", "", ""])


def failed_alike(records: Iterable[Job]) -> Sequence[Job]:
    """Find the jobs whose failures have one and the same cause, if these are many; of several causes that of the most jobs."""
    alike: dict[tuple[str, ...], list[Job]] = {}
    for record in records:
        # how far a job was that goes on is its own
        if record.failure is not None and not isinstance(record.failure, Cancelled | TimedOut):
            alike.setdefault(_cause(record, record.failure), []).append(record)
    most = max(alike.values(), key=len, default=[])
    return most if len(most) >= FEWEST_ALIKE else []


def _cause(record: Job, error: ActionError) -> tuple[str, ...]:
    kind = (error.failure_reason, error.happened)
    if isinstance(error, Unavailable):  # of one outage, for how long it was seen and what the last try met differ
        return kind
    # the last fact of what was not started tells whose answer it was
    facts = error.facts[:-1] if record.verdict == NOT_STARTED else error.facts
    return (*kind, error.because, error.way_out, *facts)


def told_for_all(record: Job, error: ActionError, view: View) -> str:
    """Tell, after what happened, all that holds for each job that failed alike."""
    own = how_to_collect(record, error)
    lines = [line for line in failure_lines(record, error)[1:] if line != own]
    return " ".join(_shown([sentence(line) for line in lines], error, view))


def _failure(record: Job, view: View, *, quoting: bool) -> Iterator[str]:
    error = record.failure
    if error is None:
        return
    title, *lines = failure_lines(record, error)
    facts = _shown(lines, error, view, quoting=quoting)
    yield from (f"**{view.show_mistake(title) if isinstance(error, InvalidInput) else view.show(title)}**", "")
    yield from (f"- {fact}" for fact in facts)
    yield from [""] if facts else []


def _shown(lines: Sequence[str], error: ActionError, view: View, *, quoting: bool = True) -> Sequence[str]:
    """Show the lines of a failure but its title; the facts come first, and they may be what a server said."""
    quoted = len([fact for fact in error.facts if fact])
    show = view.show_mistake if isinstance(error, InvalidInput) else view.show
    facts = [show(fact) for fact in lines[:quoted]] if quoting else []
    return [*facts, *(view.show_prose(line) for line in lines[quoted:])]


def _rows(record: Job, view: View, duration_seconds: float | None) -> Sequence[tuple[str, str]]:
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


def _link(record: Job, view: View) -> str:
    bundle = link_of(record)
    if bundle is None:
        return ""
    host, until = f"on {view.show(host_of(bundle.url))}", view.works_until(bundle)
    if not until:
        return host
    return f"{host}, {until}" if until.startswith("expired at ") else f"{host}, works until {until}"


def _delivered(record: Job, view: View) -> Sequence[tuple[str, str]]:
    downloaded, count = record.downloaded, record.site_files
    return [
        ("Bundle", f"{size(downloaded.size)}, SHA-256 `{downloaded.sha256}`" if downloaded is not None else ""),
        ("Saved as", view.show(record.bundle_path)),
        ("Site", f"{pluralize(count, 'file')} in {view.show(record.site_path)}" if count is not None else ""),
        ("Helm values", view.show(record.values_file)),
    ]


def _pull_request(record: Job, view: View) -> str:
    if record.pr_link is not None:
        return f"[{view.show(record.pr_link)}](<{link_target(record.pr_link)}>)"
    return "none" if record.agent_job is not None and record.agent_job.ended else ""
