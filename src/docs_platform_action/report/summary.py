"""The job summary: verdict, what happened and what to do, one table of facts, and a timeline of several sites."""

import html
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..errors import DENIED, ActionError, Cancelled, InvalidInput, TimedOut
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from ..models import ExportJob
from ..text import (
    MAX_FOREIGN_TEXT_LENGTH,
    MAX_WORD_LENGTH,
    as_sentence,
    format_bytes,
    format_clock,
    format_expiry,
    format_time,
    link_target,
    markdown,
    pluralize,
    shortened,
)
from .changes import changes_section, short_changes
from .console import Console
from .failures import how_to_collect, request_line
from .room import describe_ended_waits
from .timeline import timeline_of

MAX_SUMMARY_BYTES: Final = (
    1_000_000  # GitHub drops more than 1,048,576 (source: actions/runner, CreateStepSummaryCommand)
)

_MAX_NAME_LENGTH: Final = 260  # any domain with its port
_MAX_LISTED_NAMES: Final = 10

_ICONS: Final = {
    FAILED: "❌",
    CANCELLED: "🚫",
    NOT_STARTED: "🚫",
    STARTED: "⏳",
    DONE: "✅",
}  # the worst verdict first
_WARNING_ICON: Final = "⚠️"

_CUT_OFF: Final = "\n\nCut off here, because GitHub accepts no larger summary. The output `results` has every job.\n"


def write_summary(summary: "Summary", path: Path | None) -> None:
    """Append the summary to the file that `GITHUB_STEP_SUMMARY` names, if there is one. If that fails, only warn."""
    if path is None:
        return
    try:
        with path.open("ab") as file:
            page = summary.page(MAX_SUMMARY_BYTES - os.fstat(file.fileno()).st_size)
            file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        cause = [DENIED["cause"]] if isinstance(error, PermissionError) else []
        lines = [
            "The job summary could not be written.",
            f"The file that GITHUB_STEP_SUMMARY names: {error.strerror}.",
        ]
        summary.console.warning([*lines, *cause, "The result is not affected."])


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the summary shows: the jobs and how long the step took, at a time that is on both clocks."""

    jobs: Sequence[Job]
    console: Console
    now: datetime
    monotonic: float
    duration_seconds: float

    def page(self, max_bytes: int = MAX_SUMMARY_BYTES) -> str:
        """Return the summary in Markdown, cut off if it is larger than `max_bytes` of UTF-8."""
        blocks = (
            self._blocks_of_one(self.jobs[0]) if len(self.jobs) == 1 else self._blocks_of_several()
        )
        page: list[str] = []
        available = max_bytes - len(_CUT_OFF.encode())
        for block in blocks:
            available -= len(block.encode("utf-8", "replace"))
            if available < 0:
                return "".join([*page, _CUT_OFF])
            page.append(block)
        return "".join(page)

    def _blocks_of_one(self, job: Job) -> Iterator[str]:
        yield f"### {self._icon} {self._show(job.title, max_length=_MAX_NAME_LENGTH)}: {job.verdict}\n"
        if job.failure is not None:
            reason = f"Failure reason: `{job.failure.failure_reason}`."
            yield self._alert(
                self._explanation(job.failure, collecting=self._collecting_hint(job), reason=reason)
            )
        if job.delivered.changes is not None:
            yield f"\n{changes_section(job.delivered.changes, self._show)}\n"
        if table := self._table_of(job, self.duration_seconds):
            yield f"\n{table}\n"
        if job.failure is None and (hint := self._collecting_hint(job)):
            yield f"\n{hint}\n"

    def _blocks_of_several(self) -> Iterator[str]:
        jobs = self.jobs
        failed = {
            job: job.failure
            for job in jobs
            if job.failure is not None and not isinstance(job.failure, Cancelled)
        }
        explained: set[Job] = set()
        if self._have_same_failure(failed):
            shared = next(iter(failed.values())).details
            explained = {
                job
                for job, error in failed.items()
                if error.details == shared or job.verdict == NOT_STARTED
            }
        counts = Counter(job.verdict for job in jobs)
        verdicts = ", ".join(
            f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts[verdict]
        )
        yield f"### {self._icon} Static export of {len(jobs):,} sites: {verdicts}\n"
        yield self._alert_of_several(failed)
        yield f"\n{self._totals()}\n\n"
        yield from self._table_of_several(explained)
        yield timeline_of(jobs, now=self.now, monotonic=self.monotonic)
        # failed and cancelled jobs first, then the successful ones
        for job in sorted(jobs, key=lambda job: job.failure is None):
            if job.verdict != NOT_STARTED and (job.job_id is not None or job not in explained):
                yield self._details(job, is_explained=job in explained)

    def _table_of_several(self, explained: Collection[Job]) -> Iterator[str]:
        """Yield the lines of the table of all sites. Columns of which nothing is known are left out."""
        counted = any(job.page_count is not None for job in self.jobs)
        compared = any(job.delivered.changes for job in self.jobs)
        columns = [
            ("Site", ":---"),
            ("Result", ":---"),
            *([("Pages", "---:")] if counted else []),
            *([("Changes", ":---")] if compared else []),
            ("Bundle", "---:"),
            ("Time", "---:"),
            ("Link or failure", ":---"),
        ]
        yield f"| {' | '.join(name for name, _ in columns)} |\n"
        yield f"| {' | '.join(rule for _, rule in columns)} |\n"
        for job in self.jobs:
            yield self._row(job, is_explained=job in explained, counted=counted, compared=compared)

    @property
    def _icon(self) -> str:
        """The icon of the worst verdict, or a warning if a link of successful jobs has expired."""
        verdicts = {job.verdict for job in self.jobs}
        has_expired = verdicts == {DONE} and any(
            job.link_seconds(self.now) <= 0 for job in self.jobs
        )
        return (
            _WARNING_ICON
            if has_expired
            else next(icon for verdict, icon in _ICONS.items() if verdict in verdicts)
        )

    def _alert(self, paragraphs: Sequence[str]) -> str:
        """Return an alert. GitHub shows one only at the top level, not in a list or in HTML (source: its documentation)."""
        is_failed = any(job.verdict == FAILED for job in self.jobs)
        lines = "\n\n".join(paragraphs).split("\n")
        return "\n".join(
            [
                "",
                f"> [!{'CAUTION' if is_failed else 'WARNING'}]",
                *(f"> {line}".rstrip() for line in lines),
                "",
            ]
        )

    def _explanation(
        self, error: ActionError, *, subject: str = "", collecting: str = "", reason: str = ""
    ) -> list[str]:
        """Return the paragraphs of a job's failure, about a subject if one is given."""
        summary = as_sentence(error.summary)
        happened = self._prose(
            f"{subject}: {summary}" if subject else summary[:1].upper() + summary[1:]
        )
        mark = "\n- " if isinstance(error, InvalidInput) else " "
        happened = mark.join(
            [happened, *(self._prose(as_sentence(detail)) for detail in error.details)]
        )
        advice = " ".join(filter(None, (self._prose(error.remedy), collecting)))
        end = " ".join(filter(None, (reason, self._show(request_line(error)))))
        return [
            f"**What happened:** {happened}",
            *([f"**Likely cause:** {self._prose(error.cause)}"] if error.cause else []),
            *([f"**What to do:** {advice}"] if advice else []),
            *([end] if end else []),
        ]

    def _collecting_hint(self, job: Job) -> str:
        """Return how a later run can collect the job. Empty if none can, or has to."""
        hint = (
            how_to_collect(job, job.failure, subject="The job") if job.failure is not None else ""
        )
        if job.verdict == STARTED:
            hint = f"Collect the job in a later step or run with `{job.inputs_to_collect}`."
        elif job.verdict == DONE and job.link_seconds(self.now) <= 0:
            hint = f"By this runner's clock, the link has expired. To make a new one, use `{job.inputs_to_collect}`."
        return self._prose(hint)

    def _table_of(self, job: Job, duration_seconds: float | None) -> str:
        """Return the table of the known facts."""
        kind, name = _heading_of(job)
        lines = [
            f"| {name} | {value} |" for name, value in self._rows(job, duration_seconds) if value
        ]
        return (
            "\n".join([f"| {kind} | {self._show(name)} |", "| :--- | :--- |", *lines])
            if lines
            else ""
        )

    def _rows(self, job: Job, duration_seconds: float | None) -> Iterator[tuple[str, str]]:
        """Yield the rows of all modes. Unknown values are empty."""
        show, delivered, archive = self._show, job.delivered, job.delivered.archive
        result = job.result(self.monotonic)
        for name, key in (("Repository", "repository"), ("Branch", "ref"), ("Model", "model")):
            yield name, show(str(result[key] or ""))
        yield "Commit", self._commits(job)
        yield "Project", show(job.project_id) if job.domain is not None else ""
        yield "Job", show(job.job_id) if job.site is not None else ""
        yield "Start", self._start(job)
        yield "Status", show(job.status)
        yield "Pages", f"{job.page_count:,}" if job.page_count is not None else ""
        yield (
            "Duration",
            self._duration(job, duration_seconds) if duration_seconds is not None else "",
        )
        if job.link is not None and job.failure is None:
            host = f"on {show(urlsplit(job.link.url).hostname)}"
            yield "Bundle link", ", ".join(filter(None, (host, self._expiry(job))))
        yield (
            "Bundle",
            f"{format_bytes(archive.size)}, SHA-256 `{archive.sha256}`"
            if archive is not None
            else "",
        )
        yield "Archive" if job.is_bundle_file else "Saved as", show(delivered.bundle_path)
        if delivered.site_files is not None:
            yield (
                "Site",
                f"{pluralize(delivered.site_files, 'file')} in {show(delivered.site_path)}/",
            )
        yield "Manifest", show(delivered.manifest_path)
        yield "List of changes", show(delivered.changes_path)
        yield (
            "Site SHA-256",
            f"`{delivered.site_sha256}`" if delivered.site_sha256 is not None else "",
        )
        yield "Helm values", show(delivered.values_file)
        if job.pr_link is not None:
            yield (
                "Pull request",
                f"[{show(job.pr_link)}](<{link_target(self.console.redactor.hide_key(job.pr_link))}>)",
            )
        elif job.is_agent_job and job.has_ended:
            yield "Pull request", "none"

    def _commits(self, job: Job) -> str:
        """Return what the platform served at the start and, if it differs, at the end."""
        links = [
            f"[{found.name}](<{link_target(found.commit_url)}>)"
            for found in (job.deployed, job.deployed_later)
            if found
        ]
        return " or ".join(links) + (" (deployed during the export)" if job.deployed_later else "")

    def _start(self, job: Job) -> str:
        """Return how often the start was refused for lack of room."""
        if job.room is None or not job.room.refusals:
            return ""
        refused = f"refused {pluralize(job.room.refusals, 'time')} for lack of room"
        return f"{refused}, then accepted" if job.was_started_here else refused

    def _duration(self, job: Job, seconds: float) -> str:
        """Return how long it took, and how much of that each phase took, in whole seconds."""
        phases: defaultdict[str, int] = defaultdict(int)
        for phase in job.phases:
            phases[job.outcome_of(phase)] += int(phase.seconds(self.monotonic))
        parts = [f"{name} {format_clock(took)}" for name, took in phases.items() if took]
        return (
            ": ".join(filter(None, (format_clock(seconds), ", ".join(parts))))
            if seconds >= 1
            else ""
        )

    def _expiry(self, job: Job) -> str:
        if job.link is None:
            return ""
        if job.link.expires is not None:
            return format_expiry(job.link.expires, self.now, always_dated=True)
        return (
            f"valid until {self._show(job.link.expires_at, max_length=MAX_WORD_LENGTH)}"
            if job.link.expires_at
            else ""
        )

    def _totals(self) -> str:
        page_counts = [
            job.page_count
            for job in self.jobs
            if job.verdict == DONE and job.page_count is not None
        ]
        total = f" Total: {pluralize(sum(page_counts), 'page')}." if page_counts else ""
        commit = f" Commit: {self._commits(self.jobs[0])}." if self.jobs[0].deployed else ""
        took = f"The step took {format_clock(self.duration_seconds)}"
        return f"{took} and ended at {format_time(self.now)}.{total}{commit}{self._refusals()}"

    def _refusals(self) -> str:
        """Return how often the platform had no room for a start."""
        count = sum(job.room.refusals for job in self.jobs if job.room is not None)
        return f" Starts refused for lack of room: {count:,}." if count else ""

    def _row(self, job: Job, *, is_explained: bool, counted: bool, compared: bool) -> str:
        archive = job.delivered.archive
        pages = "" if job.page_count is None else f"{job.page_count:,}"
        cells = (
            self._show(job.domain, max_length=_MAX_NAME_LENGTH),
            self._result(job),
            *([pages] if counted else []),
            *(
                [short_changes(job.delivered.changes) if job.delivered.changes else ""]
                if compared
                else []
            ),
            # a narrow column would break the line at the space
            "" if archive is None else format_bytes(archive.size).replace(" ", "&nbsp;"),
            "" if job.began_at is None else format_clock(job.duration_seconds(self.monotonic)),
            self._expiry(job)
            if job.failure is None
            else self._failure(job, job.failure, is_explained=is_explained),
        )
        return f"| {' | '.join(cells)} |\n"

    def _result(self, job: Job) -> str:
        """Return the verdict, and the status where it adds something."""
        verdict = f"**{FAILED}**" if job.verdict == FAILED else job.verdict
        status = self._show(job.status, max_length=MAX_WORD_LENGTH)
        if not status or job.status in {ExportJob.COMPLETED, ExportJob.FAILED}:
            return verdict
        return f"{verdict} ({status})" if job.failure is None else f"{verdict}, last seen {status}"

    def _failure(self, job: Job, error: ActionError, *, is_explained: bool) -> str:
        """Return a failure in a cell. The alert or the job's details contain the cause and the remedy."""
        # without the API's host, which is the same in each row
        summary = re.sub(r"^([Tt]he API) at \S+ ", r"\1 ", error.summary)
        sentences = [] if is_explained or isinstance(error, Cancelled) else [as_sentence(summary)]
        sentences += error.details if isinstance(error, Cancelled) else []
        sentences.append(how_to_collect(job, error, subject="The job"))
        return ": ".join(
            filter(
                None, (f"`{error.failure_reason}`", self._prose(" ".join(filter(None, sentences))))
            )
        )

    def _details(self, job: Job, *, is_explained: bool) -> str:
        """Return the details as a block that opens on a click. Markdown in HTML needs the empty lines."""
        seconds = None if job.began_at is None else job.duration_seconds(self.monotonic)
        hint = (
            self._collecting_hint(job) if job.failure is None else ""
        )  # that of a failed job is in its row
        explanation = (
            self._explanation(job.failure) if job.failure is not None and not is_explained else []
        )
        changes = (
            changes_section(job.delivered.changes, self._show)
            if job.delivered.changes is not None
            else ""
        )
        blocks = [*explanation, *filter(None, (changes, self._table_of(job, seconds), hint))]
        verdict = f"<b>{FAILED}</b>" if job.verdict == FAILED else job.verdict
        domain = html.escape(shortened(self.console.safe(job.domain or ""), _MAX_NAME_LENGTH))
        return (
            "\n\n".join(
                [f"\n<details><summary>{domain}: {verdict}</summary>", *blocks, "</details>\n"]
            )
            if blocks
            else ""
        )

    def _alert_of_several(self, failed: Mapping[Job, ActionError]) -> str:
        """Return the alert with the failure of all failed sites, or their names, or else with the cancel."""
        errors = [*failed.values()]
        if self._have_same_failure(failed):
            (first, error), details = next(iter(failed.items())), errors[0].details
            if any(other.details != details for other in errors) or (
                error.request_id and len(errors) > 1
            ):
                parts = [*map(as_sentence, details), *filter(None, [request_line(error)])]
                error = error.with_details(f"For {first.domain}: {' '.join(parts)}")
                error.request_id = None
            return self._alert(self._explanation(error, subject=self._share_of(failed)))
        if failed:
            names = [
                f"{self._show(job.domain)} (`{error.failure_reason}`)"
                for job, error in failed.items()
            ][:_MAX_LISTED_NAMES]
            more = [f"and {len(failed) - len(names):,} more"] if len(failed) > len(names) else []
            return self._alert([f"**Failed:** {', '.join([*names, *more])}."])
        cancelled = [job for job in self.jobs if isinstance(job.failure, Cancelled)]
        if cancelled and cancelled[0].failure is not None:
            waited = describe_ended_waits(cancelled, now=self.now, monotonic=self.monotonic)
            cause = cancelled[0].failure.cause
            error = Cancelled("cancelled", details=waited, cause=cause)
            return self._alert(self._explanation(error, subject=self._share_of(cancelled)))
        return ""

    def _have_same_failure(self, failed: Mapping[Job, ActionError]) -> bool:
        """Return whether all failed for one reason. Those that timed out may have got to different points."""
        kinds = {(error.failure_reason, error.summary) for error in failed.values()}
        return len(kinds) == 1 and (
            len(failed) == 1 or not any(isinstance(error, TimedOut) for error in failed.values())
        )

    def _share_of(self, jobs: Collection[Job]) -> str:
        count, total = len(jobs), len(self.jobs)
        if count == 1:
            return next(iter(jobs)).domain or ""
        return f"All {total:,} sites" if count == total else f"{count:,} of {total:,} sites"

    def _show(self, text: str | None, *, max_length: int = MAX_FOREIGN_TEXT_LENGTH) -> str:
        """Show foreign text literally in Markdown: secrets are hidden before it is shortened, so that no part of one is left."""
        return markdown(shortened(self.console.safe(text), max_length)) if text else ""

    def _prose(self, text: str) -> str:
        """Show sentences in Markdown, with plain words in backticks as code."""
        code = r"\\`((?:[A-Za-z0-9 .,/-]|:(?= |\\`)|\\_)+)\\`"
        return re.sub(code, lambda found: f"`{found[1]}`".replace("\\_", "_"), self._show(text))


def _heading_of(job: Job) -> tuple[str, str | None]:
    """Return what the table of one job is about."""
    if job.is_agent_job:
        return "Agent job", job.job_id
    if job.domain is not None:
        return "Domain" if job.is_bundle_file else "Export", job.domain
    if job.is_bundle_file:
        return "Mode", job.mode
    if job.project_id is not None:
        return "Project", job.project_id
    return "Job", job.job_id
