"""The job summary of several sites: an alert, a table with a row for each, a timeline, details."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import ActionError, Cancelled, TimedOut
from ..job import DONE, FAILED, NOT_STARTED, Job
from ..text import (
    MAX_WORD_LENGTH,
    as_sentence,
    format_bytes,
    format_clock,
    format_time,
    join_nonempty,
    list_first,
    pluralize,
)
from .changes import (
    MAX_LISTED_SITES,
    changes_section,
    describe_first_publications,
    short_changes,
)
from .facts import Facts, commits_of
from .failures import failure_paragraphs, how_to_collect, request_line
from .markup import MAX_NAME_LENGTH, alert
from .room import describe_ended_waits
from .timeline import timeline_of
from .warnings import warning_paragraph


@dataclass(frozen=True, kw_only=True)
class SitesSummary:
    """What the summary of several sites shows below its headline."""

    jobs: Sequence[Job]
    facts: Facts
    duration_seconds: float

    def blocks(self) -> Iterator[str]:
        """Yield the blocks of the page, which may be cut off after any of them."""
        failed: dict[Job, ActionError] = {}
        for job in self.jobs:
            if job.failure is not None and not isinstance(job.failure, Cancelled):
                failed[job] = job.failure
        explained = _explained_by_alert(failed)
        yield self._alert(failed)
        yield f"\n{self._totals()}\n\n"
        yield from self._table(explained)
        yield timeline_of(self.jobs, now=self.facts.now, monotonic=self.facts.monotonic)
        # failed and cancelled jobs first, then the successful ones
        for job in sorted(self.jobs, key=lambda job: job.failure is None):
            yield self._details(job, is_explained=job in explained)

    def _alert(self, failed: Mapping[Job, ActionError]) -> str:
        """Return an alert about the failures, or else about the cancel."""
        if _have_same_failure(list(failed.values())):
            paragraphs = self._shared_failure(failed)
        elif failed:
            paragraphs = [self._names_of(failed)]
        else:
            paragraphs = self._cancel()
        if not paragraphs:
            return ""
        return alert(paragraphs, is_failure=any(job.verdict == FAILED for job in self.jobs))

    def _shared_failure(self, failed: Mapping[Job, ActionError]) -> list[str]:
        """Explain the failure of all failed sites. What differs is shown of the first one."""
        errors = list(failed.values())
        error = errors[0]
        has_own_details = any(other.details != error.details for other in errors)
        has_own_request = bool(error.request_id) and len(errors) > 1
        if has_own_details or has_own_request:
            error = _as_example(next(iter(failed)), error)
        return failure_paragraphs(error, self.facts.markup, subject=self._subject_of(failed))

    def _names_of(self, failed: Mapping[Job, ActionError]) -> str:
        """Return the names of the sites that failed. Those beyond the limit are counted."""
        names = [
            f"{self._name_of(job)} (`{error.failure_reason}`)" for job, error in failed.items()
        ]
        return f"**Failed:** {list_first(names, MAX_LISTED_SITES)}."

    def _cancel(self) -> list[str]:
        """Explain the cancel. Empty if no job was cancelled."""
        jobs: list[Job] = []
        cancels: list[Cancelled] = []
        for job in self.jobs:
            if isinstance(job.failure, Cancelled):
                jobs.append(job)
                cancels.append(job.failure)
        if not cancels:
            return []
        waits = describe_ended_waits(jobs, now=self.facts.now, monotonic=self.facts.monotonic)
        error = Cancelled("cancelled", details=waits, cause=cancels[0].cause)
        return failure_paragraphs(error, self.facts.markup, subject=self._subject_of(jobs))

    def _subject_of(self, jobs: Collection[Job]) -> str:
        count = len(jobs)
        total = len(self.jobs)
        if count == 1:
            (job,) = jobs
            return job.domain or ""
        if count == total:
            return f"All {total:,} sites"
        return f"{count:,} of {total:,} sites"

    def _totals(self) -> str:
        """Return how long the step took, and what all sites have in common or together."""
        took = format_clock(self.duration_seconds)
        sentences = [f"The step took {took} and ended at {format_time(self.facts.now)}."]
        page_counts: list[int] = []
        refusals = 0
        for job in self.jobs:
            if job.verdict == DONE and job.page_count is not None:
                page_counts.append(job.page_count)
            if job.room is not None:
                refusals += job.room.refusals
        if page_counts:
            sentences.append(f"Total: {pluralize(sum(page_counts), 'page')}.")
        if self.jobs[0].deployed is not None:
            sentences.append(f"Commit: {commits_of(self.jobs[0])}.")
        if refusals:
            sentences.append(f"Starts refused for lack of room: {refusals:,}.")
        sentences.append(describe_first_publications(self.jobs, self._name_of))
        return join_nonempty(" ", *sentences)

    def _table(self, explained: Collection[Job]) -> Iterator[str]:
        """Yield the lines of the table. Columns of which nothing is known are left out."""
        has_pages = any(job.page_count is not None for job in self.jobs)
        has_changes = any(job.delivered.changes is not None for job in self.jobs)
        names = ["Site", "Result"]
        rules = [":---", ":---"]
        if has_pages:
            names.append("Pages")
            rules.append("---:")
        if has_changes:
            names.append("Changes")
            rules.append(":---")
        names += ["Bundle", "Time", "Link or failure"]
        rules += ["---:", "---:", ":---"]
        yield _line_of(names)
        yield _line_of(rules)
        for job in self.jobs:
            result = join_nonempty(", ", self._result(job), _warning_count(job))
            cells = [self._name_of(job), result]
            if has_pages:
                cells.append(_page_count(job))
            if has_changes:
                cells.append(_changes(job))
            outcome = self._link_or_failure(job, is_explained=job in explained)
            cells += [_bundle_size(job), self._duration(job), outcome]
            yield _line_of(cells)

    def _name_of(self, job: Job) -> str:
        return self.facts.markup.literal(job.domain, max_length=MAX_NAME_LENGTH)

    def _result(self, job: Job) -> str:
        """Return the verdict, and the status where it adds something."""
        verdict = f"**{FAILED}**" if job.verdict == FAILED else job.verdict
        status = self.facts.markup.literal(job.status, max_length=MAX_WORD_LENGTH)
        if not status or job.has_ended:
            return verdict
        if job.failure is not None:
            return f"{verdict}, last seen {status}"
        return f"{verdict} ({status})"

    def _duration(self, job: Job) -> str:
        if job.began_at is None:
            return ""
        return format_clock(job.duration_seconds(self.facts.monotonic))

    def _link_or_failure(self, job: Job, *, is_explained: bool) -> str:
        """Return how long the link is valid, or why there is none.

        The cause and the remedy are in the alert or the details.
        """
        error = job.failure
        if error is None:
            return self.facts.expiry(job)
        sentences: list[str] = []
        if isinstance(error, Cancelled):
            sentences.extend(error.details)
        elif not is_explained:
            # without the API's host, which is the same in each row
            summary = re.sub(r"^([Tt]he API) at \S+ ", r"\1 ", error.summary)
            sentences.append(as_sentence(summary))
        sentences.append(how_to_collect(job, error, subject="The job"))
        happened = self.facts.markup.prose(join_nonempty(" ", *sentences))
        return join_nonempty(": ", f"`{error.failure_reason}`", happened)

    def _details(self, job: Job, *, is_explained: bool) -> str:
        """Return a block that opens on a click. Empty if it would say nothing new."""
        if job.verdict == NOT_STARTED:
            return ""
        # without a job on the platform, the alert is all there is
        if is_explained and job.job_id is None:
            return ""
        markup = self.facts.markup
        blocks: list[str] = []
        if job.failure is not None and not is_explained:
            blocks += failure_paragraphs(job.failure, markup)
        for lines in job.warnings:
            blocks.append(f"**Warning:** {warning_paragraph(lines, markup)}")
        blocks.append(changes_section(job.delivered, markup))
        blocks.append(self.facts.table(job, job.duration_seconds(self.facts.monotonic)))
        # the row of a failed job has the hint
        if job.failure is None:
            blocks.append(self.facts.collecting_hint(job))

        # Markdown in HTML needs the empty lines
        content = join_nonempty("\n\n", *blocks)
        if not content:
            return ""
        verdict = f"<b>{FAILED}</b>" if job.verdict == FAILED else job.verdict
        domain = markup.in_html(job.domain or "", max_length=MAX_NAME_LENGTH)
        return f"\n<details><summary>{domain}: {verdict}</summary>\n\n{content}\n\n</details>\n"


def _have_same_failure(errors: Sequence[ActionError]) -> bool:
    """Return whether there are failures, and one explanation fits all of them."""
    if not errors:
        return False
    first = errors[0]
    for other in errors[1:]:
        if other.failure_reason != first.failure_reason or other.summary != first.summary:
            return False
        # several that timed out may have got to different points
        if isinstance(other, TimedOut):
            return False
    return True


def _explained_by_alert(failed: Mapping[Job, ActionError]) -> set[Job]:
    """Return the failed jobs that need no explanation beside the alert."""
    errors = list(failed.values())
    if not _have_same_failure(errors):
        return set()
    explained: set[Job] = set()
    for job, error in failed.items():
        if error.details == errors[0].details or job.verdict == NOT_STARTED:
            explained.add(job)
    return explained


def _as_example(job: Job, error: ActionError) -> ActionError:
    """Return a failure of several jobs, with the details and the request ID of this one."""
    sentences = [as_sentence(detail) for detail in error.details]
    sentences.append(request_line(error))
    example = error.with_details(f"For {job.domain}: {join_nonempty(' ', *sentences)}")
    example.request_id = None
    return example


def _line_of(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _warning_count(job: Job) -> str:
    if not job.warnings:
        return ""
    return pluralize(len(job.warnings), "warning")


def _page_count(job: Job) -> str:
    if job.page_count is None:
        return ""
    return f"{job.page_count:,}"


def _changes(job: Job) -> str:
    if job.delivered.changes is None:
        return ""
    return short_changes(job.delivered.changes)


def _bundle_size(job: Job) -> str:
    archive = job.delivered.archive
    if archive is None:
        return ""
    # a narrow column would break the line at the space
    return format_bytes(archive.size).replace(" ", "&nbsp;")
