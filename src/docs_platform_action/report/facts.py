"""The facts of a job at the end of a run, in Markdown: a table, and some facts alone."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from ..job import DONE, STARTED, Job
from ..models import Deployment
from ..text import (
    MAX_WORD_LENGTH,
    format_bytes,
    format_clock,
    format_expiry,
    join_nonempty,
    link_target,
    pluralize,
)
from .failures import how_to_collect
from .markup import Markup

_Row = tuple[str, str]
"""The name of a fact, and its value. The value is empty if it is unknown."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Shows what is known of jobs at a time that is on both clocks."""

    markup: Markup
    now: datetime
    monotonic: float

    def table(self, job: Job, duration_seconds: float) -> str:
        """Return the table of the known facts. Empty if there are none."""
        rows = [
            *self._rows_of_kind(job),
            *self._job_rows(job, duration_seconds),
            *self._bundle_rows(job),
            *self._site_rows(job),
            ("Pull request", self._pull_request(job)),
        ]
        lines = [f"| {name} | {value} |" for name, value in rows if value]
        if not lines:
            return ""
        label, value = job.kind.heading(job)
        return "\n".join([f"| {label} | {self.markup.literal(value)} |", "| :--- | :--- |", *lines])

    def _rows_of_kind(self, job: Job) -> Iterator[_Row]:
        result = job.result(self.monotonic)
        for name, key in job.kind.facts.items():
            yield name, self.markup.literal(str(result[key] or ""))

    def _job_rows(self, job: Job, duration_seconds: float) -> Iterator[_Row]:
        yield "Commit", commits_of(job)
        # otherwise, they are in the heading of the table
        if job.domain is not None:
            yield "Project", self.markup.literal(job.project_id)
        if job.site is not None:
            yield "Job", self.markup.literal(job.job_id)
        yield "Start", _start_of(job)
        yield "Status", self.markup.literal(job.status)
        yield "Pages", _pages_of(job)
        yield "Duration", self._duration(job, duration_seconds)

    def _bundle_rows(self, job: Job) -> Iterator[_Row]:
        if job.link is not None and job.failure is None:
            host = self.markup.literal(urlsplit(job.link.url).hostname)
            yield "Bundle link", join_nonempty(", ", f"on {host}", self.expiry(job))
        archive = job.delivered.archive
        if archive is not None:
            yield "Bundle", f"{format_bytes(archive.size)}, SHA-256 `{archive.sha256}`"
        yield job.kind.bundle_path_label, self.markup.literal(job.delivered.bundle_path)

    def _site_rows(self, job: Job) -> Iterator[_Row]:
        delivered = job.delivered
        if delivered.site_files is not None:
            folder = self.markup.literal(delivered.site_path)
            yield "Site", f"{pluralize(delivered.site_files, 'file')} in {folder}/"
        yield "Manifest", self.markup.literal(delivered.manifest_path)
        yield "List of changes", self.markup.literal(delivered.changes_path)
        if delivered.site_sha256 is not None:
            yield "Site SHA-256", f"`{delivered.site_sha256}`"
        yield "Helm values", self.markup.literal(delivered.values_file)

    def _pull_request(self, job: Job) -> str:
        if job.pr_link is not None:
            return self.markup.link(job.pr_link)
        if job.kind.makes_pull_request and job.has_ended:
            return "none"
        return ""

    def _duration(self, job: Job, seconds: float) -> str:
        """Return a duration and how much of it each phase took, in whole seconds."""
        if seconds < 1:
            return ""
        seconds_in: defaultdict[str, int] = defaultdict(int)
        for phase in job.phases:
            seconds_in[job.outcome_of(phase)] += int(phase.seconds(self.monotonic))
        phases = [f"{name} {format_clock(took)}" for name, took in seconds_in.items() if took]
        return join_nonempty(": ", format_clock(seconds), ", ".join(phases))

    def expiry(self, job: Job) -> str:
        """Return until when the job's link is valid, in the API's words if they cannot be read."""
        if job.link is None:
            return ""
        if job.link.expires is not None:
            return format_expiry(job.link.expires, self.now, always_dated=True)
        if job.link.expires_at:
            expires_at = self.markup.literal(job.link.expires_at, max_length=MAX_WORD_LENGTH)
            return f"valid until {expires_at}"
        return ""

    def has_expired_link(self, job: Job) -> bool:
        """Return whether the job's link has expired, as far as is known."""
        return job.link_seconds(self.now) <= 0

    def collecting_hint(self, job: Job) -> str:
        """Return how a later run can collect the job. Empty if none can, or has to."""
        hint = ""
        if job.failure is not None:
            hint = how_to_collect(job, job.failure, subject="The job")
        elif job.verdict == STARTED:
            verb = job.kind.later_verb.capitalize()
            hint = f"{verb} the job in a later step or run with `{job.inputs_to_collect}`."
        elif job.verdict == DONE and self.has_expired_link(job):
            hint = (
                "By this runner's clock, the link has expired. "
                f"To make a new one, use `{job.inputs_to_collect}`."
            )
        return self.markup.prose(hint)


def commits_of(job: Job) -> str:
    """Return what the platform served at the start and, if it differs, at the end."""
    if job.deployed is None:
        return ""
    commit = _commit_link(job.deployed)
    if job.is_deployed_later_unknown:
        return f"{commit}, or a later one (GitHub could not be read at the end of the export)"
    if job.deployed_later is None:
        return commit
    return f"{commit} or {_commit_link(job.deployed_later)} (deployed during the export)"


def _commit_link(deployment: Deployment) -> str:
    return f"[{deployment.name}](<{link_target(deployment.commit_url)}>)"


def _pages_of(job: Job) -> str:
    """Return how many pages the API reported and, if they are fewer, how many the bundle has.

    A bundle usually has one more: `404.html`.
    """
    if job.page_count is None:
        return ""
    html_files = job.delivered.html_files
    if html_files is None or html_files >= job.page_count:
        return f"{job.page_count:,}"
    in_bundle = pluralize(html_files, "`.html` file")
    return f"{job.page_count:,} reported, {in_bundle} in the bundle"


def _start_of(job: Job) -> str:
    """Return how often the start was refused for lack of room."""
    if job.room is None or job.room.refusals == 0:
        return ""
    refused = f"refused {pluralize(job.room.refusals, 'time')} for lack of room"
    if job.was_started_here:
        return f"{refused}, then accepted"
    return refused
