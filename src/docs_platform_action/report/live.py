"""The log of several exports: live lines for changes, and the whole log of each site at the end."""

from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ..clock import Clock
from ..errors import Cancelled, NoRoom
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, ROOM, STARTED, VERDICTS, Job
from ..text import (
    format_bytes,
    format_clock,
    format_expiry,
    format_time,
    list_first,
    pluralize,
    shortened,
)
from .changes import describe_first_publications
from .console import Console
from .room import describe_wait

RUNNING: Final = "running"
WAITING: Final = "waiting for room"
PENDING: Final = "pending"
STAGES: Final = (*VERDICTS, RUNNING, WAITING, PENDING)  # of a site, in the order of the counts

# between two lines about outages: short failures of many sites would fill the log
QUIET_SECONDS: Final = 30.0

MAX_LISTED_NAMES: Final = 3  # sites that a line lists before it counts the rest

# the last ones of a site: a platform may report something new in each of a day's responses
MAX_KEPT_LINES: Final = 500

_MAX_NAME_WIDTH: Final = 40
_CHANGE_WIDTH: Final = 54


class LiveLines:
    """Writes live lines, and keeps the log of each site. Not safe without the caller's lock."""

    def __init__(
        self, console: Console, clock: Clock, jobs: Sequence[Job], max_parallel: int
    ) -> None:
        self._console = console
        self._clock = clock
        self._stages = dict.fromkeys(jobs, PENDING)
        # to count all sites for each line would take quadratic time
        self._counts = Counter({PENDING: len(jobs)})
        self._kept: dict[Job, deque[str]] = {job: deque(maxlen=MAX_KEPT_LINES) for job in jobs}
        longest_name = max(len(job.domain or "") for job in jobs)
        self._name_width = min(longest_name, _MAX_NAME_WIDTH)
        self._began_at = clock.monotonic()
        self._last_line_at = self._began_at
        self._shown_counts = ""
        # by an outage of the API, in the order in which it reached them, with its text
        self._affected: dict[Job, str] = {}
        self._is_outage_shown = False
        self._outages_quiet_until = float("-inf")
        self._notices_quiet_until = float("-inf")
        self._is_limit_shown = False  # of all starts, since one was accepted
        self._warnings: set[tuple[str, ...]] = set()
        parallel = f"{max_parallel} at a time" if max_parallel < len(jobs) else "all in parallel"
        self._title = f"{jobs[0].kind.name} of {len(jobs):,} sites, {parallel}"

    def begin(self) -> None:
        """Write the title and which sites are new, unless they are written."""
        if not self._title:
            return
        self._console.line(self._title)
        self._title = ""
        first_publications = describe_first_publications(list(self._stages), self._short_name_of)
        if first_publications:
            self._console.line(first_publications)

    def keep(self, job: Job, line: str) -> None:
        """Keep a line of a site for the end."""
        # made safe, and thereby shortened, now: foreign text may be much longer
        self._kept[job].append(self._console.safe(f"{self._clock.now():%H:%M:%S}  {line}"))

    def end(self, job: Job, failure: Sequence[str]) -> None:
        """Show how a site ended, and keep the lines of its failure."""
        verdict = job.verdict
        # a site that has ended may end again: a cancel may come while links are renewed
        if self._stages[job] == verdict:
            return
        self._enter(job, verdict)
        self.end_outage(job)
        if self._kept[job]:
            for line in failure:
                self.keep(job, line)
        if verdict not in {NOT_STARTED, STARTED}:  # other lines show these
            outcome = describe_outcome(job, self._clock.now())
            self.show(job, outcome, counts=verdict != CANCELLED)

    def show(self, job: Job, text: str, *, counts: bool = False) -> None:
        """Show a line about a site, with the counts if they have changed."""
        counted = self._describe_counts()
        if counts and counted != self._shown_counts:
            self._shown_counts = counted
            text = f"{text:<{_CHANGE_WIDTH}}  {counted}"
        self._write(f"{job.domain:<{self._name_width}}  {text}")

    def show_notice(self, job: Job, text: str) -> None:
        """Show a notice about the storage or GitHub, unless one was shown recently.

        All sites probably share them.
        """
        now = self._clock.monotonic()
        if now >= self._notices_quiet_until:
            self._notices_quiet_until = now + QUIET_SECONDS
            self.show(job, text)

    def begin_outage(self, job: Job, text: str) -> None:
        """Show an outage of the API unless one is shown, or its end was shown recently.

        It probably affects all sites.
        """
        self._affected[job] = text
        self._show_outage()

    def end_outage(self, job: Job, text: str = "") -> None:
        """Record that an outage no longer affects a site.

        Its end is shown with a `text`, if the outage was shown.
        """
        self._affected.pop(job, None)
        if not self._is_outage_shown:
            return
        if text:
            self._is_outage_shown = False
            self._outages_quiet_until = self._clock.monotonic() + QUIET_SECONDS
            self.show(job, text)
        elif not self._affected:
            self._is_outage_shown = False

    def begin_wait(self, job: Job, lines: Sequence[str], *, is_new: bool) -> None:
        """Show a new reason for which a site waits for room, or a limit for all sites once."""
        self._enter(job, WAITING)
        is_shown = not is_new
        if _is_limited(job):
            is_shown = self._is_limit_shown
            self._is_limit_shown = True
        if is_shown:
            return
        for line in lines:
            self.show(job, line)

    def start(self, job: Job) -> None:
        """Count a site as running, because the platform has accepted its start."""
        self._is_limit_shown = False
        self._enter(job, RUNNING)

    def warn(self, job: Job, lines: Sequence[str]) -> None:
        """Show a warning, unless the same one was shown."""
        title, *details = lines
        self.keep(job, f"Warning: {title}")
        for detail in details:
            self.keep(job, f"  {detail}")
        warning = tuple(lines)
        if warning not in self._warnings:
            self._warnings.add(warning)
            self._last_line_at = self._clock.monotonic()
            self._console.warning(lines)

    def heartbeat(self, silence_seconds: float) -> None:
        """Show the counts and the running sites if nothing was shown for this long."""
        self._show_outage()
        if self._clock.monotonic() - self._last_line_at < silence_seconds:
            return
        self._shown_counts = self._describe_counts()
        progress = self._describe_progress(self._jobs_in(RUNNING))
        text = self._shown_counts.replace(RUNNING, f"{RUNNING}{progress}")
        if self._affected:
            text += f"    (no successful response from the API{self._describe_affected()})"
        self._write(text)
        self._show_waits()

    def close(self) -> None:
        """Write the final counts, the sites that were not started, and the log of each site."""
        for job, stage in self._stages.items():
            if stage not in VERDICTS and job.failure is not None:  # its end was not announced
                self._enter(job, job.verdict)
            elif stage == PENDING:
                self._enter(job, NOT_STARTED)
        counted = self._describe_counts()
        if counted != self._shown_counts:
            self._write(counted)
        unstarted = self._jobs_in(NOT_STARTED)
        if unstarted:
            self._console.line(f"  {describe_unstarted(unstarted)}")
        self._write_kept_lines()

    def _write_kept_lines(self) -> None:
        if any(self._kept.values()):
            self._console.line("The log of each site, by the time of day in UTC:")
        for job, kept in self._kept.items():
            if not kept:
                continue
            lines = list(kept)
            if len(lines) == MAX_KEPT_LINES:
                lines.insert(0, "… earlier lines left out …")
            ended = describe_duration(job, self._stages[job], self._clock.monotonic())
            self._console.group(f"{job.domain}: {ended}", lines)

    def _short_name_of(self, job: Job) -> str:
        return shortened(self._console.safe(job.domain or ""))

    def _show_outage(self) -> None:
        is_quiet = self._clock.monotonic() < self._outages_quiet_until
        if not self._affected or self._is_outage_shown or is_quiet:
            return
        self._is_outage_shown = True
        first = next(iter(self._affected))
        self.show(first, self._affected[first])

    def _enter(self, job: Job, stage: str) -> None:
        """Count a site in another stage."""
        self._counts[self._stages[job]] -= 1
        self._counts[stage] += 1
        self._stages[job] = stage

    def _jobs_in(self, stage: str) -> list[Job]:
        return [job for job in self._stages if self._stages[job] == stage]

    def _write(self, text: str) -> None:
        self._last_line_at = self._clock.monotonic()
        self._console.line(f"{format_clock(self._last_line_at - self._began_at):>7}  {text}")

    def _describe_counts(self) -> str:
        parts = []
        for stage in STAGES:
            count = self._counts[stage]
            if count:
                parts.append(f"{count:,} {stage}")
        return ", ".join(parts)

    def _describe_progress(self, running: Sequence[Job]) -> str:
        """Return the status and the percentage of a few sites, or from where to where many are."""
        if not running:
            return ""
        if len(running) <= MAX_LISTED_NAMES:
            states = [f"{job.domain} {self._describe_state(job)}" for job in running]
            return f" ({', '.join(states)})"
        percents = []
        for job in running:
            progress = job.progress  # read once: another thread may change it
            if progress is not None:
                percents.append(int(progress))
        if not percents:
            return ""
        return f" ({min(percents)} to {max(percents)} %)"

    def _describe_affected(self) -> str:
        """Return which sites an outage affects, or nothing if it affects all that are under way."""
        under_way = [job for job in self._stages if _is_under_way(job)]
        if len(self._affected) == len(under_way):
            return ""
        return f" for {list_names(list(self._affected))}"

    def _show_waits(self) -> None:
        """Show what the sites wait for: a limit for all of them first, then other exports."""
        now = self._clock.monotonic()
        ready = []
        waiting: dict[str, list[Job]] = {}
        for job in sorted(self._jobs_in(WAITING), key=_is_limited, reverse=True):
            if not job.is_in(ROOM) or job in self._affected:
                continue
            if _next_start_at(job) > now:
                waiting.setdefault(job.lack_of_room, []).append(job)
            else:
                ready.append(job)
        if ready:  # there may be room now, but no place of `max-parallel`
            self._write(f"{list_names(ready)}  next to start")
        groups = list(waiting.values())
        for jobs in groups[:MAX_LISTED_NAMES]:
            self._write(f"{list_names(jobs)}  {self._describe_wait(jobs)}")
        rest = sum(len(jobs) for jobs in groups[MAX_LISTED_NAMES:])
        if rest:
            self._write(f"{pluralize(rest, 'more site')} waiting for other exports")

    def _describe_wait(self, jobs: Sequence[Job]) -> str:
        """Return since when some sites wait, what for, and what happens next."""
        now = self._clock.now()
        monotonic = self._clock.monotonic()
        since = min(_waiting_since(job) for job in jobs)
        next_job = min(jobs, key=_next_start_at)
        next_step = describe_wait(next_job, now=now, monotonic=monotonic)
        return f"waiting for {format_clock(monotonic - since)}. {next_step}"

    def _describe_state(self, job: Job) -> str:
        progress = job.progress  # read once: another thread may change it
        state = shortened(self._console.safe(job.status)) if job.status else "starting"
        if progress is None or job.is_completed:
            return state
        return f"{state} {int(progress)} %"


def _is_under_way(job: Job) -> bool:
    return job.began_at is not None and job.ended_at is None


def _is_limited(job: Job) -> bool:
    return job.room is not None and job.room.refusal.status == NoRoom.LIMIT


def _next_start_at(job: Job) -> float:
    return 0.0 if job.room is None else job.room.next_at


def _waiting_since(job: Job) -> float:
    return 0.0 if job.room is None else job.room.since


def describe_outcome(job: Job, now: datetime) -> str:
    """Return the result of a job, or why it failed."""
    failure = job.failure
    if isinstance(failure, Cancelled):
        return failure.summary
    if failure is not None:
        return f"failed: {failure.failure_reason}, {failure.summary}"
    link = job.link  # read once: another thread may renew it
    archive = job.delivered.archive
    parts = []
    if job.page_count is not None:
        parts.append(pluralize(job.page_count, "page"))
    if archive is not None:
        parts.append(format_bytes(archive.size))
    if link is not None and link.expires is not None:
        parts.append(f"link {_describe_expiry(link.expires, now)}")
    if not parts:
        return DONE
    return f"{DONE}: {', '.join(parts)}"


def _describe_expiry(expires: datetime, now: datetime) -> str:
    """Return what `format_expiry` does, but without the remaining time: a line has counts, too."""
    if expires > now:
        return f"valid until {format_time(expires, now)}"
    return format_expiry(expires, now)


def describe_duration(job: Job, stage: str, now: float) -> str:
    """Return how a job ended, and after how long."""
    if stage == NOT_STARTED:
        return stage
    elapsed = format_clock(job.duration_seconds(now))
    if stage in {DONE, STARTED}:
        return f"{stage} in {elapsed}"
    if stage not in VERDICTS:
        return f"not ended after {elapsed}"
    if stage == FAILED and job.failure is not None:
        return f"{stage} after {elapsed} ({job.failure.failure_reason})"
    return f"{stage} after {elapsed}"


def describe_unstarted(jobs: Sequence[Job]) -> str:
    """Return which jobs were not started, and why."""
    text = f"{pluralize(len(jobs), 'site')} not started ({list_names(jobs)})"
    failure = jobs[0].failure
    if failure is None:
        return text
    if isinstance(failure, Cancelled):
        return f"{text}: the run was cancelled"
    return f"{text}: {failure.summary}"


def list_names(jobs: Sequence[Job]) -> str:
    """Return the sites of some jobs, and the number of the rest."""
    return list_first([job.domain or "" for job in jobs], MAX_LISTED_NAMES)
