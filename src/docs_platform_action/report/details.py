"""What the summary says of one job: the facts of its failure, and a table of what is known; and of many that failed alike."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from ..errors import ActionError, Cancelled, InvalidInput, TimedOut, Unavailable
from ..job import FAILED, NOT_STARTED, STARTED, Job
from ..text import link_target, minutes, pluralize, sentence, size
from .failures import failure_lines, how_to_collect
from .view import View, name_of, seconds_at

FEWEST_ALIKE: Final = 3
"""How many failures must have the same cause to be described once, and not again for each job."""


def details_of(job: Job, view: View, *, duration_seconds: float | None, quoting: bool) -> Iterator[str]:
    """Return the lines on one job; without `quoting` they leave out what servers said."""
    if job.failure is not None:
        title, *facts = _shown(failure_lines(job, job.failure), job.failure, view, quoting=quoting)
        yield from (f"**{title}**", "", *(f"- {fact}" for fact in facts), *([""] if facts else []))
    yield from ("| | |", "| --- | --- |")
    yield from (f"| {name} | {value} |" for name, value in _rows(job, view, duration_seconds) if value)
    if job.verdict == STARTED:
        yield from ("", view.show_prose(f"Collect it in a later step or run with `job-id: {job.job_id}`."))


def folded(job: Job, view: View, *, quoting: bool) -> str:
    """Return the same as a block that opens on a click; its empty lines are where HTML ends and Markdown begins."""
    verdict = f"<b>{FAILED}</b>" if job.verdict == FAILED else job.verdict
    lines = details_of(job, view, duration_seconds=seconds_at(job, view), quoting=quoting)
    summary = f"<details><summary>{view.show_in_html(name_of(job))}: {verdict}</summary>"
    return "\n".join([summary, "", *lines, "", "</details>", "", ""])


def failed_alike(jobs: Iterable[Job]) -> Sequence[Job]:
    """Return the jobs whose failures have the same cause, if they are many; of several causes that of the most jobs."""
    alike: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        # how far a job was that goes on is its own
        if job.failure is not None and not isinstance(job.failure, Cancelled | TimedOut):
            alike.setdefault(_cause(job, job.failure), []).append(job)
    most = max(alike.values(), key=len, default=[])
    return most if len(most) >= FEWEST_ALIKE else []


def _cause(job: Job, error: ActionError) -> tuple[str, ...]:
    kind = (error.failure_reason, error.happened)
    if isinstance(error, Unavailable):  # of one outage, its length and the last error differ between jobs
        return kind
    # the last fact of a job that was not started says whose response it was
    facts = error.facts[:-1] if job.verdict == NOT_STARTED else error.facts
    return (*kind, error.because, error.way_out, *facts)


def told_for_all(job: Job, error: ActionError, view: View) -> str:
    """Return, after what happened, all that holds for each job that failed alike."""
    own = how_to_collect(job, error)
    lines = [sentence(line) for line in failure_lines(job, error) if line != own]
    return " ".join(_shown(lines, error, view, quoting=True)[1:])


def _shown(lines: Sequence[str], error: ActionError, view: View, *, quoting: bool) -> list[str]:
    """Show the lines of a failure: the title, the facts, which may be what a server said, and our advice."""
    advice = 1 + len([fact for fact in error.facts if fact])
    show = view.show_mistake if isinstance(error, InvalidInput) else view.show
    return [show(line) for line in lines[: advice if quoting else 1]] + [view.show_prose(line) for line in lines[advice:]]


def _rows(job: Job, view: View, duration_seconds: float | None) -> Iterator[tuple[str, str]]:
    """Return the rows of either mode, in which what is unknown is empty."""
    show, source, downloaded, failure = view.show, job.agent_job, job.downloaded, job.failure
    yield "Domain", show(job.domain)
    if source is not None:
        yield from (("Repository", show(source.repository)), ("Branch", show(source.ref)), ("Model", show(source.model)))
    yield "Project", show(job.project_id)
    yield "Job", show(job.job_id)
    yield "Status", show(job.status)
    yield "Pages", f"{job.page_count:,}" if job.page_count is not None else ""
    yield "Duration", minutes(duration_seconds) if duration_seconds is not None else ""
    yield "Failure reason", f"`{failure.failure_reason}`" if failure is not None else ""
    yield "Bundle link", _link(job, view)
    yield "Bundle", f"{size(downloaded.size)}, SHA-256 `{downloaded.sha256}`" if downloaded is not None else ""
    yield "Saved as", show(job.bundle_path)
    yield "Site", f"{pluralize(job.site_files, 'file')} in {show(job.site_path)}" if job.site_files is not None else ""
    yield "Helm values", show(job.values_file)
    yield "Pull request", _pull_request(job, view)


def _link(job: Job, view: View) -> str:
    """Return where the bundle is, and until when, if its link is among the outputs."""
    if job.bundle is None or job.failure is not None:
        return ""
    host, until = f"on {view.show(urlsplit(job.bundle.url).hostname)}", view.works_until(job.bundle)
    if not until:
        return host
    return f"{host}, {until}" if until.startswith("expired at ") else f"{host}, works until {until}"


def _pull_request(job: Job, view: View) -> str:
    if job.pr_link is not None:
        return f"[{view.show(job.pr_link)}](<{link_target(job.pr_link)}>)"
    return "none" if job.agent_job is not None and job.agent_job.ended else ""
