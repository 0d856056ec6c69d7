"""The summary's timeline of several sites: a Mermaid gantt chart of the phases of each job.

GitHub draws it. Source of its syntax: Mermaid's gantt grammar and documentation. Mermaid reads and
shows times in the reader's time zone, so times written in UTC show as UTC. A chart of more than
50,000 characters shows as an error.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Final, NamedTuple

from ..job import FAILED, ROOM, RUN, Job
from ..models import Phase
from ..text import format_approx, shortened

_MIN_SECONDS: Final = 1.0  # a run without a longer phase is better read in the table
_MAX_SITES: Final = 40  # that can be told apart on one screen
_MAX_BARS: Final = 8  # of one site; times `_MAX_SITES` it keeps the text below Mermaid's limit
_MAX_LABEL_LENGTH: Final = 50

# The width of a diagram on GitHub, the padding at its right (Mermaid's default), and the widest
# character of Mermaid's font. They affect only the looks, as do the margins.
_WIDTH_PIXELS: Final = 850
_RIGHT_PADDING_PIXELS: Final = 75
_CHARACTER_PIXELS: Final = 6.5
_LABEL_MARGIN_PIXELS: Final = 25
_NAME_MARGIN_PIXELS: Final = 10

# A zero-width space in Mermaid's syntax: a bar must have a name, and one that does not fit covers
# the next bar.
_NO_NAME: Final = "#8203;"

# legible on white and on GitHub's dark background, whose themes would otherwise differ
_COLORS: Final = {
    "titleColor": "#848d97",
    "textColor": "#848d97",
    "taskTextOutsideColor": "#848d97",
    "taskTextDarkColor": "#848d97",
    "taskTextColor": "#ffffff",
    "taskTextLightColor": "#ffffff",
    "taskBkgColor": "#316dca",
    "taskBorderColor": "#316dca",
    "doneTaskBkgColor": "#6e7681",
    "doneTaskBorderColor": "#6e7681",
    "critBkgColor": "#cf222e",
    "critBorderColor": "#cf222e",
    "sectionBkgColor": "#848d9722",
    "sectionBkgColor2": "#848d9722",
    "altSectionBkgColor": "#848d9722",
    "gridColor": "#848d9755",
}


class _Tick(NamedTuple):
    seconds: int
    interval: str
    axis_format: str


_MAX_TICKS: Final = 8
_TICKS: Final = (
    _Tick(1, "1second", "%H:%M:%S"),
    _Tick(2, "2second", "%H:%M:%S"),
    _Tick(5, "5second", "%H:%M:%S"),
    _Tick(10, "10second", "%H:%M:%S"),
    _Tick(15, "15second", "%H:%M:%S"),
    _Tick(30, "30second", "%H:%M:%S"),
    _Tick(60, "1minute", "%H:%M"),
    _Tick(2 * 60, "2minute", "%H:%M"),
    _Tick(5 * 60, "5minute", "%H:%M"),
    _Tick(10 * 60, "10minute", "%H:%M"),
    _Tick(15 * 60, "15minute", "%H:%M"),
    _Tick(30 * 60, "30minute", "%H:%M"),
    _Tick(3600, "1hour", "%H:%M"),
    _Tick(2 * 3600, "2hour", "%H:%M"),
    _Tick(3 * 3600, "3hour", "%m-%d %H:%M"),
    _Tick(6 * 3600, "6hour", "%m-%d %H:%M"),
    _Tick(12 * 3600, "12hour", "%m-%d %H:%M"),
    _Tick(86_400, "1day", "%m-%d"),
    _Tick(2 * 86_400, "2day", "%m-%d"),
    _Tick(7 * 86_400, "1week", "%m-%d"),
)


class _Bar(NamedTuple):
    job: Job
    phase: Phase
    seconds: float

    @property
    def began_at(self) -> float:
        return self.phase.began_at

    @property
    def ended_at(self) -> float:
        """When the phase ended, or the end of the run."""
        return self.began_at + self.seconds

    @property
    def label(self) -> str:
        """The site as the name of a section, which cannot have a colon."""
        return shortened(re.sub(r"[^\w.-]+", " ", self.job.domain or ""), _MAX_LABEL_LENGTH)

    @property
    def name(self) -> str:
        return f"{self.job.outcome_of(self.phase)} {format_approx(self.seconds)}"

    @property
    def tag(self) -> str:
        """What colors the bar: red where the job failed, blue for its export, else gray."""
        if self.job.verdict == FAILED and self.phase is self.job.phases[-1]:
            return "crit, "
        if self.phase.name == RUN:
            return ""
        return "done, "


def timeline_of(jobs: Sequence[Job], *, now: datetime, monotonic: float) -> str:
    """Return the chart, and how to read it. Empty if no phase took `_MIN_SECONDS`.

    `now` and `monotonic` are the same time.
    """
    begun = [job for job in jobs if job.phases]
    if not _have_long_phase(begun, monotonic):
        return ""
    shown = _failed_and_longest(begun, monotonic)
    bars: list[_Bar] = []
    for job in begun:
        if job in shown:
            bars += _bars_of(job, monotonic)

    phases = "queued, exported, packed, downloaded, unpacked"
    if any(bar.phase.name == ROOM for bar in bars):
        phases = f"{ROOM}, {phases}"
    notes = f"Each line shows the phases of a site: {phases}. A failed one is red."
    if len(shown) < len(begun):
        notes += (
            f" The timeline shows {len(shown)} of {len(jobs):,} sites: "
            "those that failed, then the longest."
        )
    chart = _chart(bars, now - timedelta(seconds=monotonic))
    return "\n".join(["", "```mermaid", *chart, "```", "", notes, ""])


def _have_long_phase(jobs: Sequence[Job], monotonic: float) -> bool:
    for job in jobs:
        for phase in job.phases:
            if phase.seconds(monotonic) >= _MIN_SECONDS:
                return True
    return False


def _failed_and_longest(jobs: Sequence[Job], monotonic: float) -> Sequence[Job]:
    """Return the jobs that failed and then the longest, at most `_MAX_SITES`."""

    def rank(job: Job) -> tuple[bool, float]:
        return job.verdict == FAILED, job.duration_seconds(monotonic)

    return nlargest(_MAX_SITES, jobs, key=rank)


def _bars_of(job: Job, monotonic: float) -> list[_Bar]:
    """Return the longest phases of a job in the order of their beginnings, at most `_MAX_BARS`."""
    bars: list[_Bar] = []
    for phase in job.phases:
        seconds = phase.seconds(monotonic)
        if seconds > 0:
            bars.append(_Bar(job, phase, seconds))
    longest = nlargest(_MAX_BARS, bars, key=lambda bar: bar.seconds)
    return sorted(longest, key=lambda bar: bar.began_at)


def _chart(bars: Sequence[_Bar], epoch: datetime) -> Iterator[str]:
    """Yield the lines of the chart. Phases are measured in seconds after `epoch`."""
    first_at = min(bar.began_at for bar in bars)
    last_at = max(bar.ended_at for bar in bars)
    span_seconds = last_at - first_at
    label_length = max(len(bar.label) for bar in bars)
    left_padding = round(_LABEL_MARGIN_PIXELS + _CHARACTER_PIXELS * label_length)
    chart_pixels = _WIDTH_PIXELS - left_padding - _RIGHT_PADDING_PIXELS

    yield from ("---", "displayMode: compact", "config:", "  theme: base", "  themeVariables:")
    for name, color in _COLORS.items():
        yield f'    {name}: "{color}"'
    yield from ("  gantt:", f"    leftPadding: {left_padding}", "---", "gantt")
    yield f"    title Timeline of {epoch + timedelta(seconds=first_at):%Y-%m-%d}, times in UTC"
    yield "    dateFormat YYYY-MM-DDTHH:mm:ss.SSS"
    yield from _axis(span_seconds)
    yield "    todayMarker off"
    section_job: Job | None = None
    for bar in bars:
        if bar.job is not section_job:
            section_job = bar.job
            yield f"    section {bar.label}"
        bar_pixels = bar.seconds * chart_pixels / span_seconds
        yield f"    {_task(bar, bar_pixels, epoch)}"


def _task(bar: _Bar, bar_pixels: float, epoch: datetime) -> str:
    """Return the line of a bar, in which the name ends at the first colon."""
    began = _iso_time(epoch, bar.began_at)
    ended = _iso_time(epoch, bar.ended_at)
    name_pixels = _NAME_MARGIN_PIXELS + _CHARACTER_PIXELS * len(bar.name)
    name = bar.name if name_pixels <= bar_pixels else _NO_NAME
    return f"{name} :{bar.tag}{began}, {ended}"


def _iso_time(epoch: datetime, at: float) -> str:
    time = epoch + timedelta(seconds=at)
    return time.replace(tzinfo=None).isoformat(timespec="milliseconds")


def _axis(span_seconds: float) -> Sequence[str]:
    """Return the axis, with ticks at round times."""
    if span_seconds < 3:
        return ["    axisFormat %H:%M:%S.%L"]
    tick = _tick_for(span_seconds)
    return [f"    axisFormat {tick.axis_format}", f"    tickInterval {tick.interval}"]


def _tick_for(span_seconds: float) -> _Tick:
    """Return the shortest tick of which at most `_MAX_TICKS` are in the span, or the longest."""
    for tick in _TICKS:
        if span_seconds / tick.seconds <= _MAX_TICKS:
            return tick
    return _TICKS[-1]
