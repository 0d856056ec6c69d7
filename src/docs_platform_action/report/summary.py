"""The job summary: verdict, failures, facts of each job and a timeline, within the size that GitHub accepts."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..errors import DENIED_CAUSE, ActionError, Cancelled
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from ..text import as_sentence, format_bytes, format_clock, format_time, link_target, pluralize
from .appending import UNREAD, UNREAD_CAUSE, append, open_to_append
from .explanation import CAUTION, WARNING, alert, collecting_hint, explanation, link_to_run
from .failures import how_to_collect, jobs_with_shared_failure
from .overview import Overview
from .timeline import timeline_of
from .view import View

MAX_SUMMARY_BYTES: Final = 1_000_000  # GitHub drops more than 1,048,576 (source: actions/runner, CreateStepSummaryCommand)
MIN_SUMMARY_BYTES: Final = 2_048  # any page can be shortened to this size

_MAX_TITLE_LENGTH: Final = 300
_MAX_CAUSE_LENGTH: Final = 200
_MAX_LISTED_NAMES: Final = 10

_ICONS: Final = {FAILED: "❌", CANCELLED: "🚫", NOT_STARTED: "🚫", STARTED: "⏳", DONE: "✅"}  # the worst verdict first
_WARNING_ICON: Final = "⚠️"


def summary_of(jobs: Sequence[Job], view: View, *, duration_seconds: float, max_bytes: int = MAX_SUMMARY_BYTES) -> str:
    """Return the step's summary in Markdown, shortened to `max_bytes` of UTF-8, which must be at least `MIN_SUMMARY_BYTES`."""
    if len(jobs) == 1:
        return _page_of_one(jobs[0], view, duration_seconds, max_bytes)
    return _PageOfSeveral(jobs, view, duration_seconds).longest_version(max_bytes)


def write_summary(jobs: Sequence[Job], view: View, path: Path, *, duration_seconds: float) -> None:
    """Append the summary to the file that `GITHUB_STEP_SUMMARY` names. If that fails, only warn."""
    try:
        with FileIO(open_to_append(path), "ab") as file:
            max_bytes = max(MAX_SUMMARY_BYTES - os.fstat(file.fileno()).st_size, MIN_SUMMARY_BYTES)
            page = summary_of(jobs, view, duration_seconds=duration_seconds, max_bytes=max_bytes)
            append(view.console.hide(page).encode("utf-8", "replace"), file)
    except OSError as error:
        reason = f"The file that GITHUB_STEP_SUMMARY names: {error.strerror}."
        cause = [DENIED_CAUSE] if isinstance(error, PermissionError) else [UNREAD_CAUSE] if error.errno in UNREAD else []
        view.console.warning(["The job summary could not be written.", reason, *cause, "The result is not affected."])


def _page_of_one(job: Job, view: View, duration_seconds: float, max_bytes: int) -> str:
    headline = f"### {_icon_of([job], view)} {view.show(job.title, max_length=_MAX_TITLE_LENGTH)}: {job.verdict}"
    error, timeline, alerts = job.failure, timeline_of([job], view), []
    table, hint = _table_of(job, view, duration_seconds), collecting_hint(job, view)
    for quoting, note in ((True, ""), (False, "Shortened: server messages are not shown.")):
        if error is not None:
            explained = error if quoting else error.with_details()
            alerts = [alert(_kind_of(error), explanation(job, explained, view, collecting=hint, reason=_reason_of(error)))]
        page = _joined_blocks(headline, *alerts, note, table, hint if error is None else "", timeline)
        if _size(page) <= max_bytes:
            return page
    if error is not None:
        alerts = [alert(_kind_of(error), [_reason_of(error)])]
    return _joined_blocks(headline, *alerts, "Shortened: no details are shown; see the log and the output `results`.")


def _icon_of(jobs: Sequence[Job], view: View) -> str:
    """Return the icon of the worst verdict, or a warning if a link of successful jobs has expired."""
    verdicts = {job.verdict for job in jobs}
    has_expired = verdicts == {DONE} and any(job.link_seconds(view.now) <= 0 for job in jobs)
    return _WARNING_ICON if has_expired else next(icon for verdict, icon in _ICONS.items() if verdict in verdicts)


def _joined_blocks(*blocks: str) -> str:
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"


def _kind_of(error: ActionError) -> str:
    return WARNING if isinstance(error, Cancelled) else CAUTION


def _reason_of(error: ActionError) -> str:
    return f"Failure reason: `{error.failure_reason}`."


def _table_of(job: Job, view: View, duration_seconds: float | None) -> str:
    """Return the table of the known facts, whose header row is the first of them. Empty if none is known."""
    lines = [f"| {name} | {value} |" for name, value in _rows(job, view, duration_seconds) if value]
    return "\n".join([*lines[:1], "| :--- | :--- |", *lines[1:]]) if lines else ""


def _rows(job: Job, view: View, duration_seconds: float | None) -> Iterator[tuple[str, str]]:
    """Return the rows of both modes without what the title shows. Unknown values are empty."""
    show, source, downloaded = view.show, job.agent_job, job.downloaded
    if source is not None:
        yield from (("Repository", show(source.repository)), ("Branch", show(source.ref)), ("Model", show(source.model)))
    yield from (("Job", show(job.job_id) if not job.is_agent_job else ""), ("Status", show(job.status)))
    yield "Pages", f"{job.page_count:,}" if job.page_count is not None else ""
    yield "Duration", format_clock(duration_seconds) if duration_seconds is not None and duration_seconds >= 1 else ""
    if job.bundle is not None and job.failure is None:
        host = f"on {show(urlsplit(job.bundle.url).hostname)}"
        yield "Bundle link", ", ".join(filter(None, (host, view.expiry_of(job.bundle))))
    yield "Bundle", f"{format_bytes(downloaded.size)}, SHA-256 `{downloaded.sha256}`" if downloaded is not None else ""
    yield "Saved as", show(job.bundle_path)
    yield "Site", f"{pluralize(job.site_files, 'file')} in {show(job.site_path)}" if job.site_files is not None else ""
    yield "Helm values", show(job.values_file)
    if job.pr_link is not None:
        yield "Pull request", f"[{show(job.pr_link)}](<{link_target(job.pr_link)}>)"
    elif job.is_agent_job and job.has_ended:
        yield "Pull request", "none"


class _PageOfSeveral:
    """The page of several exports. A version is given up once it exceeds `max_bytes`: any number of jobs takes bounded work."""

    def __init__(self, jobs: Sequence[Job], view: View, duration_seconds: float) -> None:
        self._jobs = jobs
        self._view = view
        self._duration_seconds = duration_seconds
        self._sharing = jobs_with_shared_failure(jobs)
        self._shared_failure = self._sharing[0].failure if self._sharing else None
        self._explained = {*self._sharing}
        self._overview = Overview(jobs, view, self._explained)
        # by importance: failed, cancelled, not started, then the successful ones
        self._ranked = sorted(jobs, key=lambda job: len(VERDICTS) if job.failure is None else VERDICTS.index(job.verdict))

    def longest_version(self, max_bytes: int) -> str:
        """Return the longest version that fits."""
        table = _joined(map(self._overview.row, self._jobs), max_bytes)
        for pieces in self._versions(table) if table is not None else ():
            if (page := _joined(pieces, max_bytes)) is not None:
                return page
        return self._with_fewer_rows(max_bytes)

    def _versions(self, table: str) -> Iterator[Iterator[str]]:
        """Return the versions with all rows, the longest first."""
        timeline = timeline_of(self._jobs, self._view)
        cancelled_before_start = {job for job in self._jobs if job.verdict == NOT_STARTED and isinstance(job.failure, Cancelled)}
        without_details = cancelled_before_start | (self._explained if len(self._explained) > 1 else set())
        detailed = [job for job in self._ranked if job not in without_details]
        yield self._version(table, timeline, detailed=detailed)
        if unsuccessful := [job for job in detailed if job.failure is not None]:
            note = "Shortened: details are shown only for what failed or was cancelled"
            yield self._version(table, timeline, detailed=unsuccessful, note=f"{note}.")
            yield self._version(table, timeline, detailed=unsuccessful, quoting=False, note=f"{note}, without server messages.")
        elsewhere = "see the log and the output `results`"
        yield self._version(table, timeline, note=f"Shortened: no details are shown; {elsewhere}.")
        yield self._version(table, "", note=f"Shortened: neither details nor the timeline are shown; {elsewhere}.")

    def _version(
        self, table: str, timeline: str, *, detailed: Sequence[Job] = (), quoting: bool = True, note: str = ""
    ) -> Iterator[str]:
        yield self._headline()
        yield f"{explained}\n\n" if (explained := self._alert()) else ""
        yield f"{self._totals()}\n\n"
        yield f"{note}\n\n" if note else ""
        yield from (self._overview.head, table, "\n", f"{timeline}\n" if timeline else "")
        yield from (self._collapsed(job, quoting=quoting) for job in detailed)

    def _with_fewer_rows(self, max_bytes: int) -> str:
        """Return the page with the rows that fit, in the order of the jobs. Unsuccessful jobs have priority."""
        note = "Shortened: neither details nor the timeline are shown, and only as many rows as fit, failed ones first.\n\n"
        head = f"{self._headline()}{self._short_alert()}{self._totals()}\n\n{note}{self._overview.head}"
        available = max_bytes - _size(head + _more(len(self._jobs)))
        rows: dict[Job, str] = {}
        for job in self._ranked:
            row = self._overview.row(job)
            available -= _size(row)
            if available < 0:
                break
            rows[job] = row
        shown = [rows[job] for job in self._jobs if job in rows]
        return head + "".join(shown) + _more(len(self._jobs) - len(shown))

    def _headline(self) -> str:
        counts = Counter(job.verdict for job in self._jobs)
        verdicts = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if verdict in counts)
        summary = verdicts if len(counts) > 1 else f"all {self._jobs[0].verdict}"
        return f"### {_icon_of(self._jobs, self._view)} Static export of {len(self._jobs):,} domains: {summary}\n\n"

    def _totals(self) -> str:
        done = [job for job in self._jobs if job.verdict == DONE]
        page_counts = [job.page_count for job in done if job.page_count is not None]
        sizes = [job.downloaded.size for job in done if job.downloaded is not None]
        pages = pluralize(sum(page_counts), "page") if page_counts else ""
        bundles = f"{format_bytes(sum(sizes))} of bundles" if sizes else ""
        total = " and ".join(filter(None, (pages, bundles)))
        took = f"The step took {format_clock(self._duration_seconds)} and ended at {format_time(self._view.now)}."
        sentences = [took, *([f"Total: {total}."] if total else [])]
        if any(job.failure is not None and how_to_collect(job, job.failure) for job in self._jobs):
            sentences += [link_to_run(self._view)]
        return " ".join(filter(None, sentences))

    def _alert(self) -> str:
        """Return the alert with the shared failure and the names of the other failed domains, or with the cancel."""
        paragraphs = []
        if self._shared_failure is not None:
            first, *others = self._sharing
            subject = self._share_of(self._sharing) if others or first.domain is None else first.domain
            paragraphs = explanation(first, self._shared_by_all(self._shared_failure), self._view, subject=subject)
        others = [job for job in self._jobs if job.verdict == FAILED and job not in self._explained]
        if others:
            paragraphs.append(self._list_of(others))
        if paragraphs:
            return alert(CAUTION, paragraphs)
        cancelled = [job for job in self._jobs if isinstance(job.failure, Cancelled)]
        if not cancelled or cancelled[0].failure is None:
            return ""
        cause = Cancelled("cancelled", cause=cancelled[0].failure.cause)
        return alert(WARNING, explanation(cancelled[0], cause, self._view, subject=self._share_of(cancelled)))

    def _shared_by_all(self, error: ActionError) -> ActionError:
        """Return the failure of the first job with it, with the details that are only about that job marked as such."""
        first, *others = self._sharing
        failures = [job.failure for job in others if job.failure is not None]
        if all((other.details, other.request_id) == (error.details, error.request_id) for other in failures):
            return error
        request = [f"Request id {error.request_id}."] if error.request_id else []
        unstarted = ["The others were not started."] if all(job.verdict == NOT_STARTED for job in others) else []
        details = " ".join(map(as_sentence, [*error.details, *request]))
        marked = error.with_details(*([f"For {first.domain}: {details}"] if details else []), *unstarted)
        marked.request_id = None
        return marked

    def _short_alert(self) -> str:
        if self._shared_failure is None:
            return ""
        summary = self._view.show(as_sentence(self._shared_failure.summary), max_length=_MAX_CAUSE_LENGTH)
        return f"{alert(CAUTION, [f'**What happened:** {self._share_of(self._sharing)}: {summary}'])}\n\n"

    def _share_of(self, jobs: Collection[Job]) -> str:
        count, total = len(jobs), len(self._jobs)
        return f"All {total:,} domains" if count == total else f"{count:,} of {total:,} domains"

    def _collapsed(self, job: Job, *, quoting: bool) -> str:
        """Return the details as a block that opens on a click. Markdown in HTML needs the empty lines."""
        view, error, paragraphs = self._view, job.failure, []
        if error is not None and job not in self._explained:
            paragraphs = explanation(job, error if quoting else error.with_details(), view)
        hint = collecting_hint(job, view) if error is None else ""  # that of a failed job is in its row
        blocks = [block for block in (*paragraphs, _table_of(job, view, view.seconds_of(job)), hint) if block]
        verdict = f"<b>{FAILED}</b>" if job.verdict == FAILED else job.verdict
        summary = f"<details><summary>{view.show_in_html(job.domain or '')}: {verdict}</summary>"
        return "\n\n".join([summary, *blocks, "</details>", ""]) if blocks else ""

    def _list_of(self, failed: Sequence[Job]) -> str:
        listed = [(job.domain, job.failure) for job in failed[:_MAX_LISTED_NAMES]]
        names = [f"{self._view.show(domain)} (`{error.failure_reason}`)" for domain, error in listed if error is not None]
        more = [f"and {len(failed) - len(names):,} more"] if len(failed) > len(names) else []
        return f"**{'Also failed' if self._explained else 'Failed'}:** {', '.join([*names, *more])}."


def _more(count: int) -> str:
    return f"\n… and {count:,} more: see the output `results`.\n" if count else ""


def _joined(pieces: Iterable[str], max_bytes: int) -> str | None:
    """Join pieces, or return `None` as soon as they are larger than `max_bytes`."""
    joined: list[str] = []
    for piece in pieces:
        max_bytes -= _size(piece)
        if max_bytes < 0:
            return None
        joined.append(piece)
    return "".join(joined)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
