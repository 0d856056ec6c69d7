"""The log of several exports: live lines when something changes, and the whole log of each site at the end."""

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ..clock import Clock
from ..errors import Cancelled, NoRoom
from ..job import CANCELLED, DONE, FAILED, NOT_STARTED, ROOM, STARTED, VERDICTS, Job
from ..models import ExportJob
from ..text import format_bytes, format_clock, format_expiry, format_time, pluralize, shortened
from .console import Console
from .room import describe_wait

RUNNING: Final = "running"
WAITING: Final = "waiting for room"
PENDING: Final = "pending"
STAGES: Final = (*VERDICTS, RUNNING, WAITING, PENDING)  # of a site, in the order of the counts

QUIET_SECONDS: Final = (
    30.0  # between two lines about outages: short failures of many sites would fill the log
)
MAX_LISTED_NAMES: Final = 3  # sites that a line lists before it counts the rest
MAX_KEPT_LINES: Final = (
    500  # the last ones of a site: a platform may report something new in each of a day's responses
)

_MAX_NAME_WIDTH: Final = 40
_CHANGE_WIDTH: Final = 54


class LiveLines:
    """Writes live lines, and keeps those of each site. The caller's lock protects it."""

    def __init__(
        self, console: Console, clock: Clock, jobs: Sequence[Job], max_parallel: int
    ) -> None:
        self._console = console
        self._clock = clock
        self._stages = dict.fromkeys(jobs, PENDING)
        self._counts = Counter(
            {PENDING: len(jobs)}
        )  # to count all sites for each line would take quadratic time
        self._kept: dict[Job, deque[str]] = {job: deque(maxlen=MAX_KEPT_LINES) for job in jobs}
        self._name_width = min(max(len(job.domain or "") for job in jobs), _MAX_NAME_WIDTH)
        self._began = self._last_line_at = clock.monotonic()
        self._shown_counts = ""
        self._affected: dict[
            Job, str
        ] = {}  # by an outage of the API, in the order in which it reached them, with its text
        self._is_outage_shown = False
        self._outages_quiet_until = self._notices_quiet_until = float("-inf")
        self._is_limit_shown = False  # of all starts, since one was accepted
        self._warnings: set[tuple[str, ...]] = set()
        parallel = f"{max_parallel} at a time" if max_parallel < len(jobs) else "all in parallel"
        self._title = f"Static export of {len(jobs):,} sites, {parallel}"

    def begin(self) -> None:
        """Write the title, unless it is written."""
        if self._title:
            self._console.line(self._title)
            self._title = ""

    def keep(self, job: Job, line: str) -> None:
        """Keep a line of a site for the end."""
        # made safe, and thereby shortened, now: foreign text may be much longer
        self._kept[job].append(self._console.safe(f"{self._clock.now():%H:%M:%S}  {line}"))

    def end(self, job: Job, failure: Sequence[str]) -> None:
        """Show how a site ended, and keep the lines of its failure."""
        if (
            self._stages[job] == job.verdict
        ):  # a cancel may come after the end, while links are renewed
            return
        self.enter(job, job.verdict)
        self.end_outage(job)
        for line in failure if self._kept[job] else ():
            self.keep(job, line)
        if self._stages[job] not in {NOT_STARTED, STARTED}:  # other lines show these
            self.show(
                job, describe_outcome(job, self._clock.now()), counts=self._stages[job] != CANCELLED
            )

    def show(self, job: Job, text: str, *, counts: bool = False) -> None:
        """Show a line about a site, with the counts if they have changed."""
        counted = self._describe_counts()
        if counts and counted != self._shown_counts:
            self._shown_counts = counted
            text = f"{text:<{_CHANGE_WIDTH}}  {counted}"
        self._write(f"{job.domain:<{self._name_width}}  {text}")

    def show_notice(self, job: Job, text: str) -> None:
        """Show a notice about a bundle, unless one was shown recently: all sites probably share the storage."""
        now = self._clock.monotonic()
        if now >= self._notices_quiet_until:
            self._notices_quiet_until = now + QUIET_SECONDS
            self.show(job, text)

    def begin_outage(self, job: Job, text: str) -> None:
        """Show an outage of the API unless one is shown, or its end was shown recently: it probably affects all sites."""
        self._affected[job] = text
        self._show_outage()

    def end_outage(self, job: Job, text: str = "") -> None:
        """Record that an outage no longer affects a site, and show its end if the outage was shown."""
        self._affected.pop(job, None)
        if self._is_outage_shown and (text or not self._affected):
            self._is_outage_shown = False
            if text:
                self._outages_quiet_until = self._clock.monotonic() + QUIET_SECONDS
                self.show(job, text)

    def begin_wait(self, job: Job, lines: Sequence[str], *, is_new: bool) -> None:
        """Show a new reason for which a site waits for room, or a limit for all sites once."""
        self.enter(job, WAITING)
        is_shown = not is_new
        if _is_limited(job):
            is_shown = self._is_limit_shown
            self._is_limit_shown = True
        for line in () if is_shown else lines:
            self.show(job, line)

    def start(self, job: Job) -> None:
        """Count a site as running, because the platform has accepted its start."""
        self._is_limit_shown = False
        self.enter(job, RUNNING)

    def warn(self, job: Job, lines: Sequence[str]) -> None:
        """Show a warning, unless the same one was shown."""
        title, *details = lines
        for line in (f"Warning: {title}", *(f"  {detail}" for detail in details)):
            self.keep(job, line)
        if tuple(lines) not in self._warnings:
            self._warnings.add(tuple(lines))
            self._last_line_at = self._clock.monotonic()
            self._console.warning(lines)

    def heartbeat(self, silence_seconds: float) -> None:
        """Show the counts and the running sites if nothing was shown for this long."""
        self._show_outage()
        if self._clock.monotonic() - self._last_line_at < silence_seconds:
            return
        running = [job for job, stage in self._stages.items() if stage == RUNNING]
        self._shown_counts = self._describe_counts()
        text = self._shown_counts.replace(RUNNING, f"{RUNNING}{self._describe_progress(running)}")
        if self._affected:
            begun = [job for job in self._stages if job.began_at is not None]
            is_for_all = len(self._affected) == sum(job.ended_at is None for job in begun)
            names = "" if is_for_all else f" for {list_names([*self._affected])}"
            text += f"    (no successful response from the API{names})"
        self._write(text)
        self._show_waits()

    def close(self) -> None:
        """Write the final counts, the sites that were not started, and the log of each site."""
        for job, stage in self._stages.items():
            if stage not in VERDICTS and job.failure is not None:  # its end was not announced
                self.enter(job, job.verdict)
            elif stage == PENDING:
                self.enter(job, NOT_STARTED)
        if self._describe_counts() != self._shown_counts:
            self._write(self._describe_counts())
        if unstarted := [job for job, stage in self._stages.items() if stage == NOT_STARTED]:
            self._console.line(f"  {describe_unstarted(unstarted)}")
        logged = {job: kept for job, kept in self._kept.items() if kept}
        if logged:
            self._console.line("The log of each site, by the time of day in UTC:")
        for job, kept in logged.items():
            title = describe_duration(job, self._stages[job], self._clock.monotonic())
            left_out = ["… earlier lines left out …"] if len(kept) == MAX_KEPT_LINES else []
            self._console.group(f"{job.domain}: {title}", [*left_out, *kept])

    def _show_outage(self) -> None:
        if (
            self._affected
            and not self._is_outage_shown
            and self._clock.monotonic() >= self._outages_quiet_until
        ):
            self._is_outage_shown = True
            self.show(*next(iter(self._affected.items())))

    def enter(self, job: Job, stage: str) -> None:
        """Count a site in another stage."""
        self._counts[self._stages[job]] -= 1
        self._counts[stage] += 1
        self._stages[job] = stage

    def _write(self, text: str) -> None:
        self._last_line_at = self._clock.monotonic()
        self._console.line(f"{format_clock(self._last_line_at - self._began):>7}  {text}")

    def _describe_counts(self) -> str:
        return ", ".join(
            f"{self._counts[stage]:,} {stage}" for stage in STAGES if self._counts[stage]
        )

    def _describe_progress(self, running: Sequence[Job]) -> str:
        """Return the status and the percentage of a few sites, or from where to where many are."""
        if len(running) <= MAX_LISTED_NAMES:
            states = (f"{job.domain} {self._describe_state(job)}" for job in running)
            return f" ({', '.join(states)})" if running else ""
        percents = [int(progress) for job in running if (progress := job.progress) is not None]
        return f" ({min(percents)} to {max(percents)} %)" if percents else ""

    def _show_waits(self) -> None:
        """Show what the sites wait for: a limit for all of them first, then other exports."""
        now = self._clock.monotonic()
        waiting = [job for job, stage in self._stages.items() if stage == WAITING]
        waiting = [job for job in waiting if job.is_in(ROOM) and job not in self._affected]
        waits: defaultdict[str, list[Job]] = defaultdict(list)
        for job in sorted(waiting, key=_is_limited, reverse=True):
            lack = job.lack_of_room if _next_start_at(job) > now else ""
            waits[lack].append(job)
        if ready := waits.pop("", []):  # there may be room now, but no place of `max-parallel`
            self._write(f"{list_names(ready)}  next to start")
        for jobs in [*waits.values()][:MAX_LISTED_NAMES]:
            self._write(f"{list_names(jobs)}  {self._describe_wait(jobs)}")
        if rest := sum(map(len, [*waits.values()][MAX_LISTED_NAMES:])):
            self._write(f"{pluralize(rest, 'more site')} waiting for other exports")

    def _describe_wait(self, jobs: Sequence[Job]) -> str:
        """Return since when some sites wait, what for, and what happens next."""
        now = self._clock.now()
        monotonic = self._clock.monotonic()
        waited = format_clock(max(monotonic - _waiting_since(job) for job in jobs))
        job = min(jobs, key=_next_start_at)
        return f"waiting for {waited}. {describe_wait(job, now=now, monotonic=monotonic)}"

    def _describe_state(self, job: Job) -> str:
        status, progress = job.status, job.progress  # read once: another thread may change them
        percent = (
            f" {int(progress)} %" if progress is not None and status != ExportJob.COMPLETED else ""
        )
        return f"{shortened(self._console.safe(status)) if status else 'starting'}{percent}"


def _is_limited(job: Job) -> bool:
    return job.room is not None and job.room.refusal.status == NoRoom.LIMIT


def _next_start_at(job: Job) -> float:
    return 0.0 if job.room is None else job.room.next_at


def _waiting_since(job: Job) -> float:
    return 0.0 if job.room is None else job.room.since


def describe_outcome(job: Job, now: datetime) -> str:
    """Return the result of a job, or why it failed."""
    failure, link, parts = job.failure, job.link, []
    if failure is not None:
        return (
            failure.summary
            if isinstance(failure, Cancelled)
            else f"failed: {failure.failure_reason}, {failure.summary}"
        )
    if job.page_count is not None:
        parts.append(pluralize(job.page_count, "page"))
    if job.delivered.archive is not None:
        parts.append(format_bytes(job.delivered.archive.size))
    if link is not None and link.expires is not None:
        valid_until = f"valid until {format_time(link.expires, now)}"  # shorter than `format_expiry`: a line has counts, too
        parts.append(
            f"link {valid_until if link.expires > now else format_expiry(link.expires, now)}"
        )
    return f"{DONE}: {', '.join(parts)}" if parts else DONE


def describe_duration(job: Job, stage: str, now: float) -> str:
    """Return how a job ended, and after how long."""
    if stage == NOT_STARTED:
        return stage
    elapsed = format_clock(job.duration_seconds(now))
    if stage in {DONE, STARTED}:
        return f"{stage} in {elapsed}"
    reason = (
        f" ({job.failure.failure_reason})" if stage == FAILED and job.failure is not None else ""
    )
    return f"{stage if stage in VERDICTS else 'not ended'} after {elapsed}{reason}"


def describe_unstarted(jobs: Sequence[Job]) -> str:
    """Return which jobs were not started, and why."""
    failure = jobs[0].failure
    reason = (
        f": {'the run was cancelled' if isinstance(failure, Cancelled) else failure.summary}"
        if failure is not None
        else ""
    )
    return f"{pluralize(len(jobs), 'site')} not started ({list_names(jobs)}){reason}"


def list_names(jobs: Sequence[Job]) -> str:
    """Return the sites of some jobs, and the number of the rest."""
    rest = f" and {len(jobs) - MAX_LISTED_NAMES:,} more" if len(jobs) > MAX_LISTED_NAMES else ""
    return ", ".join(job.domain or "" for job in jobs[:MAX_LISTED_NAMES]) + rest
