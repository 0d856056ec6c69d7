"""The job summary: the page that people look at after the run, as full as GitHub takes it.

A job's facts are in `_rows`, for a step of one job and of several; the table of several jobs is in `overview`.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..errors import DENIED_CAUSE, ActionError, Cancelled, InvalidInput
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from ..models import AGENT
from ..text import format_bytes, format_clock, link_target, pluralize, sentence
from .console import Console
from .failures import failed_alike, failure_lines, how_to_collect
from .overview import Overview
from .timeline import timeline_of
from .view import MAX_NAME_LENGTH, View, minute, name_of, seconds_at, size_of

ROOM_BYTES: Final = 1_000_000
"""What a page may take: GitHub drops one of more than 1,048,576 bytes (source: actions/runner, CreateStepSummaryCommand)."""

MIN_ROOM_BYTES: Final = 2_048
"""Any page can be shortened until it fits into this."""

_MAX_SUBJECT_LENGTH: Final = 300
_MAX_CAUSE_LENGTH: Final = 200
_MAX_LISTED_NAMES: Final = 10
_FEW_ROWS: Final = 12
"""Rows of a table that needs no scrolling: nobody has to be told which of them to look for."""


def summary_of(jobs: Sequence[Job], view: View, *, duration_seconds: float, room_bytes: int = ROOM_BYTES) -> str:
    """Return the page of a step in GitHub's Markdown: the verdict, what is known of each job, and a timeline.

    `duration_seconds` is the step's. A page of more than `room_bytes` in UTF-8 (at least `MIN_ROOM_BYTES`) is shortened
    step by step, and says so.
    """
    if len(jobs) == 1:
        return _page_of_one(jobs[0], view, duration_seconds, room_bytes)
    return _Jobs(jobs, view, duration_seconds).fitting(room_bytes)


def room_left(file: Path | None) -> int:
    """Return how many bytes a page may take in the file that `GITHUB_STEP_SUMMARY` names, beside what it holds already."""
    try:
        held = file.stat().st_size if file is not None else 0
    except OSError:  # there is no such file yet, or writing to it will show what is wrong with it
        held = 0
    return max(ROOM_BYTES - held, MIN_ROOM_BYTES)


def write_summary(page: str, file: Path | None, console: Console) -> None:
    """Append the page to the file that `GITHUB_STEP_SUMMARY` names; one that cannot be written costs a warning, not the run."""
    if file is None:
        return
    try:
        with file.open("a", encoding="utf-8", errors="replace", newline="\n") as stream:
            stream.write(console.hide(page))
    except OSError as error:
        why = f"The file that GITHUB_STEP_SUMMARY names: {error.strerror}."
        cause = [DENIED_CAUSE] if isinstance(error, PermissionError) else []
        console.warning(["The job summary could not be written.", why, *cause, "The run continues."])


def _page_of_one(job: Job, view: View, duration_seconds: float, room_bytes: int) -> str:
    headline = f"### {view.show(job.subject, longest=_MAX_SUBJECT_LENGTH)}: {job.verdict}\n\n"
    drawn = timeline_of([job], view)
    for quoting, note in ((True, ""), (False, "Shortened: server messages are not shown.\n\n")):
        details = "\n".join(_details_of(job, view, duration_seconds=duration_seconds, quoting=quoting))
        page = f"{headline}{note}{details}\n" + (f"\n{drawn}" if drawn else "")
        if _bytes(page) <= room_bytes:
            return page
    reason = f"Failure reason: `{job.failure.failure_reason}`\n\n" if job.failure is not None else ""
    return f"{headline}{reason}Shortened: no details are shown; see the log, and the output `results`.\n"


def _details_of(job: Job, view: View, *, duration_seconds: float | None, quoting: bool) -> Iterator[str]:
    """Return the lines on one job; without `quoting` they leave out what servers said."""
    if job.failure is not None:
        title, *facts = _shown(failure_lines(job, job.failure), job.failure, view, quoting=quoting)
        yield from (f"**{title}**", "", *(f"- {fact}" for fact in facts), *([""] if facts else []))
    yield from ("| | |", "| --- | --- |")
    yield from (f"| {name} | {value} |" for name, value in _rows(job, view, duration_seconds) if value)
    if job.verdict == STARTED:
        yield from ("", view.show_prose(f"Collect it in a later step or run with `job-id: {job.job_id}`."))


def _folded(job: Job, view: View, *, quoting: bool) -> str:
    """Return the same as a block that opens on a click; its empty lines are where HTML ends and Markdown begins."""
    verdict = f"<b>{FAILED}</b>" if job.verdict == FAILED else job.verdict
    lines = _details_of(job, view, duration_seconds=seconds_at(job, view), quoting=quoting)
    summary = f"<details><summary>{view.show_in_html(name_of(job))}: {verdict}</summary>"
    return "\n".join([summary, "", *lines, "", "</details>", "", ""])


def _told_for_all(job: Job, error: ActionError, view: View) -> str:
    """Return, after what happened, all that holds for each job that failed alike."""
    own = how_to_collect(job, error)
    lines = [sentence(line) for line in failure_lines(job, error) if line != own]
    return " ".join(_shown(lines, error, view, quoting=True)[1:])


def _shown(lines: Sequence[str], error: ActionError, view: View, *, quoting: bool) -> list[str]:
    """Show the lines of a failure: the title, the facts, which may be what a server said, and our advice."""
    advice = 1 + len([fact for fact in error.details if fact])
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
    yield "Duration", format_clock(duration_seconds) if duration_seconds is not None else ""
    yield "Failure reason", f"`{failure.failure_reason}`" if failure is not None else ""
    yield "Bundle link", _link(job, view)
    yield "Bundle", f"{format_bytes(downloaded.size)}, SHA-256 `{downloaded.sha256}`" if downloaded is not None else ""
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
    return f"{host}, {until}" if until.startswith("expired at ") else f"{host}, valid until {until}"


def _pull_request(job: Job, view: View) -> str:
    if job.pr_link is not None:
        return f"[{view.show(job.pr_link)}](<{link_target(job.pr_link)}>)"
    return "none" if job.agent_job is not None and job.agent_job.has_ended else ""


class _Jobs:
    """The page of several jobs. What does not fit is given up where the room ends, so none takes longer than a full page."""

    def __init__(self, jobs: Sequence[Job], view: View, duration_seconds: float) -> None:
        self._jobs = jobs
        self._view = view
        self._duration_seconds = duration_seconds
        self._kind = "domains" if all(job.domain for job in jobs) else "jobs"
        self._alike = failed_alike(jobs)
        self._cause = self._alike[0].failure if self._alike else None
        self._told_above = {id(job) for job in self._alike}
        self._overview = Overview(jobs, view, self._told_above)
        self._by_verdict: dict[str, list[Job]] = {verdict: [] for verdict in VERDICTS}
        for job in jobs:
            self._by_verdict[job.verdict].append(job)
        unstarted = [job for job in self._by_verdict[NOT_STARTED] if job.failure is not None]
        self._bad = [*self._by_verdict[FAILED], *self._by_verdict[CANCELLED], *unstarted]
        self._good = [job for job in jobs if job.failure is None]

    def fitting(self, room_bytes: int) -> str:
        """Return as much as fits."""
        table = _within(room_bytes, map(self._overview.row, self._jobs))
        if table is not None:
            for pieces in self._versions(table):
                if (page := _within(room_bytes, pieces)) is not None:
                    return page
        return self._with_fewer_rows(room_bytes)

    def _versions(self, table: str) -> Iterator[Iterator[str]]:
        """Return the pieces of the page with all rows, each version shorter than the one before."""
        drawn = timeline_of(self._jobs, self._view)
        others_alike = {id(job) for job in self._alike[1:]}
        # all that is known of them is that a cancel came before their turn
        put_off = {id(job) for job in self._by_verdict[NOT_STARTED] if isinstance(job.failure, Cancelled)}
        bad = [job for job in self._bad if id(job) not in others_alike and id(job) not in put_off]
        yield self._page(table, drawn, detailed=[*bad, *self._good])
        if bad:
            only = "Shortened: details are shown only for what failed or was cancelled"
            yield self._page(table, drawn, detailed=bad, note=f"{only}.")
            yield self._page(table, drawn, detailed=bad, quoting=False, note=f"{only}, without server messages.")
        elsewhere = "see the log, and the output `results`"
        yield self._page(table, drawn, note=f"Shortened: no details are shown; {elsewhere}.")
        yield self._page(table, "", note=f"Shortened: neither details nor the timeline are shown; {elsewhere}.")

    def _page(
        self, table: str, drawn: str, *, detailed: Sequence[Job] = (), quoting: bool = True, note: str = ""
    ) -> Iterator[str]:
        yield self._headline()
        if self._cause is not None:
            yield self._told_once(self._cause, detailed=bool(detailed))
        others = [job for job in self._by_verdict[FAILED] if id(job) not in self._told_above]
        if len(self._jobs) > _FEW_ROWS and others:
            yield self._named(others)
        yield f"{note}\n\n" if note else ""
        yield self._overview.head
        yield table
        yield "\n"
        yield f"{drawn}\n" if drawn else ""
        for job in detailed:
            yield _folded(job, self._view, quoting=quoting)

    def _with_fewer_rows(self, room_bytes: int) -> str:
        """Return the page with the rows of what did not end well before others, each at its place."""
        note = "Shortened: neither details nor the timeline are shown, and only as many rows as fit, failed ones first.\n\n"
        cause = f"{self._happened(self._cause)}\n\n" if self._cause is not None else ""
        head = self._headline() + cause + note + self._overview.head
        room_bytes -= _bytes(head + _more(len(self._jobs)))
        rows: dict[int, str] = {}
        for job in (*self._bad, *self._good):
            row = self._overview.row(job)
            room_bytes -= _bytes(row)
            if room_bytes < 0:
                break
            rows[id(job)] = row
        shown = [rows[id(job)] for job in self._jobs if id(job) in rows]
        return head + "".join(shown) + _more(len(self._jobs) - len(shown))

    def _headline(self) -> str:
        counted = [f"{len(jobs):,} {verdict}" for verdict, jobs in self._by_verdict.items() if jobs]
        told = ", ".join(counted) if len(counted) > 1 else f"all {self._jobs[0].verdict}"
        counted_jobs = f"{len(self._jobs):,} {self._kind}"
        what = counted_jobs if any(job.mode == AGENT for job in self._jobs) else f"Static export of {counted_jobs}"
        return f"### {what}: {told}\n\n{self._totals()}\n\n"

    def _totals(self) -> str:
        done = self._by_verdict[DONE]
        counts = [job.page_count for job in done if job.page_count is not None]
        sizes = [count for count in map(size_of, done) if count is not None]
        told = [
            *([pluralize(sum(counts), "page")] if counts else []),
            *([f"{format_bytes(sum(sizes))} of bundles"] if sizes else []),
        ]
        took = f"The step took {format_clock(self._duration_seconds)} and ended at {minute(self._view.now)}."
        return f"{took} In all {' and '.join(told)}." if told else took

    def _happened(self, cause: ActionError) -> str:
        """Return what happened to those that failed alike."""
        count, total = len(self._alike), len(self._jobs)
        who = f"All {total:,}" if count == total else f"{count:,} of {total:,}"
        return f"**{who} {self._kind}: {self._view.show(sentence(cause.summary), longest=_MAX_CAUSE_LENGTH)}**"

    def _told_once(self, cause: ActionError, *, detailed: bool) -> str:
        """Return for all that failed alike what is not repeated in each row."""
        first = self._alike[0]
        told = f"{self._happened(cause)} {_told_for_all(first, cause, self._view)}"
        name = self._view.show(name_of(first), longest=MAX_NAME_LENGTH)
        return f"{told} The details of {name}, the first, apply to all of them.\n\n" if detailed else f"{told}\n\n"

    def _named(self, failed: Sequence[Job]) -> str:
        few = [(name_of(job), job.failure.failure_reason) for job in failed[:_MAX_LISTED_NAMES] if job.failure is not None]
        names = [f"{self._view.show(name)} (`{reason}`)" for name, reason in few]
        more = [f"and {len(failed) - len(names):,} more"] if len(failed) > len(names) else []
        return f"{'Also failed' if self._alike else 'Failed'}: {', '.join([*names, *more])}.\n\n"


def _more(count: int) -> str:
    return f"\n… and {count:,} more: see the output `results`.\n" if count else ""


def _within(room_bytes: int, pieces: Iterable[str]) -> str | None:
    """Join pieces, unless they take more than the room."""
    kept: list[str] = []
    for piece in pieces:
        room_bytes -= _bytes(piece)
        if room_bytes < 0:
            return None
        kept.append(piece)
    return "".join(kept)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
