"""The summary's timeline of several sites: a Mermaid gantt chart of the phases of each job, which GitHub draws.

Source of its syntax: Mermaid's gantt grammar and documentation. Mermaid reads and shows times in the reader's time zone, so times
written in UTC show as UTC. A chart of more than 50,000 characters shows as an error.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import groupby
from typing import Final, NamedTuple

from ..job import FAILED, ROOM, RUN, Job, Phase
from ..text import format_approx, shortened

_MIN_SECONDS: Final = 1.0  # a run without a longer phase is better read in the table
_MAX_LANES: Final = 40  # jobs that can be told apart on one screen
_MAX_BARS: Final = 8  # phases of one job; with the lanes it keeps the text below Mermaid's limit
_MAX_LABEL_LENGTH: Final = 50

# the width of a diagram on GitHub, and the widest character of Mermaid's font: both affect only the looks
_WIDTH_PIXELS: Final = 850
_CHARACTER_PIXELS: Final = 6.5

# a zero-width space in Mermaid's syntax: a bar must have a name, and one that does not fit covers the next bar
_NO_NAME: Final = "#8203;"

# legible on white and on GitHub's dark background, whose themes would otherwise differ
_COLORS: Final = {
    **dict.fromkeys(
        ("titleColor", "textColor", "taskTextOutsideColor", "taskTextDarkColor"), "#848d97"
    ),
    **dict.fromkeys(("taskTextColor", "taskTextLightColor"), "#ffffff"),
    **dict.fromkeys(("taskBkgColor", "taskBorderColor"), "#316dca"),
    **dict.fromkeys(("doneTaskBkgColor", "doneTaskBorderColor"), "#6e7681"),
    **dict.fromkeys(("critBkgColor", "critBorderColor"), "#cf222e"),
    **dict.fromkeys(("sectionBkgColor", "sectionBkgColor2", "altSectionBkgColor"), "#848d9722"),
    "gridColor": "#848d9755",
}

_MAX_TICKS: Final = 8
_TICKS: Final = (
    *((number, f"{number}second", "%H:%M:%S") for number in (1, 2, 5, 10, 15, 30)),
    *((60 * number, f"{number}minute", "%H:%M") for number in (1, 2, 5, 10, 15, 30)),
    *((3600 * number, f"{number}hour", "%H:%M") for number in (1, 2)),
    *((3600 * number, f"{number}hour", "%m-%d %H:%M") for number in (3, 6, 12)),
    *((86_400 * number, f"{number}day", "%m-%d") for number in (1, 2)),
    (7 * 86_400, "1week", "%m-%d"),
)


def timeline_of(jobs: Sequence[Job], *, now: datetime, monotonic: float) -> str:
    """Return the chart, and how to read it. Empty if no phase took `_MIN_SECONDS`. `now` and `monotonic` are the same time."""
    if not any(phase.seconds(monotonic) >= _MIN_SECONDS for job in jobs for phase in job.phases):
        return ""
    begun = [job for job in jobs if job.phases]
    lanes = nlargest(
        _MAX_LANES, begun, key=lambda job: (job.verdict == FAILED, job.duration_seconds(monotonic))
    )
    bars: list[_Bar] = []
    for job in filter(lanes.__contains__, begun):
        own = [
            _Bar(job, phase, phase.seconds(monotonic))
            for phase in job.phases
            if phase.seconds(monotonic) > 0
        ]
        bars += sorted(
            nlargest(_MAX_BARS, own, key=lambda bar: bar.seconds),
            key=lambda bar: bar.phase.began_at,
        )
    phases = "queued, exported, packed, downloaded, unpacked"
    if any(bar.phase.name == ROOM for bar in bars):
        phases = f"{ROOM}, {phases}"
    notes = f"Each line shows the phases of a site: {phases}. A failed one is red."
    if len(lanes) < len(begun):
        notes += f" The timeline shows {len(lanes)} of {len(jobs):,} sites: those that failed, then the longest."
    return "\n".join(
        ["", "```mermaid", *_chart(bars, now - timedelta(seconds=monotonic)), "```", "", notes, ""]
    )


class _Bar(NamedTuple):
    job: Job
    phase: Phase
    seconds: float

    @property
    def label(self) -> str:
        """The site as the name of a section, which cannot have a colon."""
        return shortened(re.sub(r"[^\w.-]+", " ", self.job.domain or ""), _MAX_LABEL_LENGTH)


def _chart(bars: Sequence[_Bar], epoch: datetime) -> Iterator[str]:
    """Yield the lines of the chart, in which a name ends at the first colon. Phases are measured in seconds after `epoch`."""
    first = min(bar.phase.began_at for bar in bars)
    span_seconds = max(bar.phase.began_at + bar.seconds for bar in bars) - first
    padding = round(25 + _CHARACTER_PIXELS * max(len(bar.label) for bar in bars))
    yield from ("---", "displayMode: compact", "config:", "  theme: base", "  themeVariables:")
    yield from (f'    {name}: "{color}"' for name, color in _COLORS.items())
    yield from ("  gantt:", f"    leftPadding: {padding}", "---", "gantt")
    yield f"    title Timeline of {epoch + timedelta(seconds=first):%Y-%m-%d}, times in UTC"
    yield "    dateFormat YYYY-MM-DDTHH:mm:ss.SSS"
    yield from _axis(span_seconds)
    yield "    todayMarker off"
    for _, group in groupby(bars, key=lambda bar: bar.job):
        own = [*group]
        yield f"    section {own[0].label}"
        for bar in own:
            times = (
                epoch + timedelta(seconds=at)
                for at in (bar.phase.began_at, bar.phase.began_at + bar.seconds)
            )
            began, ended = (
                time.replace(tzinfo=None).isoformat(timespec="milliseconds") for time in times
            )
            has_failed = bar.job.verdict == FAILED and bar.phase is bar.job.phases[-1]
            tag = "crit, " if has_failed else "" if bar.phase.name == RUN else "done, "
            name = f"{bar.job.outcome_of(bar.phase)} {format_approx(bar.seconds)}"
            fits = (
                10 + _CHARACTER_PIXELS * len(name)
                <= bar.seconds * (_WIDTH_PIXELS - padding - 75) / span_seconds
            )
            yield f"    {name if fits else _NO_NAME} :{tag}{began}, {ended}"


def _axis(span_seconds: float) -> Sequence[str]:
    """Return the axis, with at most `_MAX_TICKS` ticks at round times."""
    if span_seconds < 3:
        return ["    axisFormat %H:%M:%S.%L"]
    _, interval, axis_format = next(
        (tick for tick in _TICKS if span_seconds / tick[0] <= _MAX_TICKS), _TICKS[-1]
    )
    return [f"    axisFormat {axis_format}", f"    tickInterval {interval}"]
