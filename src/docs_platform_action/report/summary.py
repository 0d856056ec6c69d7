"""The job summary: verdict, what happened and what to do, and one table of facts."""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from ..errors import DENIED
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, STARTED, VERDICTS, Job
from .changes import changes_section
from .console import Console
from .facts import Facts
from .failures import failure_paragraphs
from .markup import MAX_NAME_LENGTH, Markup, alert
from .sites import SitesSummary
from .warnings import warning_paragraph

# GitHub drops more than 1,048,576 (source: actions/runner, CreateStepSummaryCommand)
MAX_SUMMARY_BYTES: Final = 1_000_000

_WORST_FIRST: Final = (FAILED, CANCELLED, NOT_STARTED, STARTED, DONE)
_ICONS: Final = {
    FAILED: "❌",
    CANCELLED: "🚫",
    NOT_STARTED: "🚫",
    STARTED: "⏳",
    DONE: "✅",
}
_WARNING_ICON: Final = "⚠️"

_CUT_OFF: Final = (
    "\n\nCut off here, because GitHub accepts no larger summary. "
    "The output `results` has every job.\n"
)


def write_summary(summary: "Summary", path: Path | None) -> None:
    """Append the summary to the file that `GITHUB_STEP_SUMMARY` names, if there is one.

    If that fails, only warn.
    """
    if path is None:
        return
    try:
        with path.open("ab") as file:
            page = summary.page(MAX_SUMMARY_BYTES - os.fstat(file.fileno()).st_size)
            file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        lines = [
            "The job summary could not be written.",
            f"The file that GITHUB_STEP_SUMMARY names: {error.strerror}.",
        ]
        if isinstance(error, PermissionError):
            lines.append(DENIED["cause"])
        lines.append("The result is not affected.")
        summary.console.warning(lines)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the summary shows: the jobs, and how long the step took.

    `now` and `monotonic` are the same time.
    """

    jobs: Sequence[Job]
    console: Console
    now: datetime
    monotonic: float
    duration_seconds: float

    def page(self, max_bytes: int = MAX_SUMMARY_BYTES) -> str:
        """Return the summary in Markdown, cut off if it is larger than `max_bytes` of UTF-8."""
        page: list[str] = []
        available = max_bytes - len(_CUT_OFF.encode())
        for block in self._blocks():
            available -= len(block.encode("utf-8", "replace"))
            if available < 0:
                page.append(_CUT_OFF)
                break
            page.append(block)
        return "".join(page)

    def _blocks(self) -> Iterator[str]:
        markup = Markup(self.console)
        facts = Facts(markup=markup, now=self.now, monotonic=self.monotonic)
        counts = Counter(job.verdict for job in self.jobs)
        icon = self._icon(counts, facts)
        if len(self.jobs) == 1:
            job = self.jobs[0]
            title = markup.literal(job.title, max_length=MAX_NAME_LENGTH)
            yield f"### {icon} {title}: {job.verdict}\n"
            yield from self._blocks_of_one(job, facts)
        else:
            parts = [f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS if counts[verdict]]
            name = self.jobs[0].kind.name
            yield f"### {icon} {name} of {len(self.jobs):,} sites: {', '.join(parts)}\n"
            sites = SitesSummary(
                jobs=self.jobs, facts=facts, duration_seconds=self.duration_seconds
            )
            yield from sites.blocks()

    def _icon(self, verdicts: Collection[str], facts: Facts) -> str:
        """Return the icon of the worst verdict, or a warning if a success needs a look."""
        worst = min(verdicts, key=_WORST_FIRST.index)
        if worst == DONE and any(job.warnings or facts.has_expired_link(job) for job in self.jobs):
            return _WARNING_ICON
        return _ICONS[worst]

    def _blocks_of_one(self, job: Job, facts: Facts) -> Iterator[str]:
        """Yield what stands below the headline."""
        hint = facts.collecting_hint(job)
        if job.failure is not None:
            paragraphs = failure_paragraphs(
                job.failure,
                facts.markup,
                collecting_hint=hint,
                reason=f"Failure reason: `{job.failure.failure_reason}`.",
            )
            yield alert(paragraphs, is_failure=job.verdict == FAILED)
        for lines in job.warnings:
            yield alert([warning_paragraph(lines, facts.markup)], is_failure=False)
        changes = changes_section(job.delivered, facts.markup)
        if changes:
            yield f"\n{changes}\n"
        table = facts.table(job, self.duration_seconds)
        if table:
            yield f"\n{table}\n"
        if job.failure is None and hint:
            yield f"\n{hint}\n"
