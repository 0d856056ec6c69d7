"""The summary's timeline: a Mermaid gantt chart of the phases of each job, which GitHub draws.

Source of its syntax: Mermaid's gantt grammar and documentation. Mermaid reads and shows times in the reader's time zone, so times
written in UTC show as UTC. A chart of more than 50,000 characters shows as an error.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import chain, count
from typing import Final

from ..job import FAILED, RUN, Job
from ..text import format_approx
from .view import View

_MIN_SECONDS: Final = 1.0  # a run without a longer phase is better read in the table
_MAX_LANES: Final = 40  # jobs that can be told apart on one screen
_MAX_EXPANDED_LANES: Final = 8  # jobs with one line per phase; with more jobs, each job has one line
_MAX_BARS: Final = 8  # phases of one job; with the lanes it keeps the text below Mermaid's limit
_MAX_LABEL_LENGTH: Final = 40

# the width of a diagram on GitHub, and the widest character of Mermaid's font: both affect only the looks
_WIDTH_PIXELS: Final = 850
_CHARACTER_PIXELS: Final = 6.5

# a zero-width space in Mermaid's syntax: a bar must have a name, and one that does not fit covers the next bar
_NO_NAME: Final = "#8203;"

_MAX_TICKS: Final = 8
_TICKS: Final = (
    *((number, f"{number}second", "%H:%M:%S") for number in (1, 2, 5, 10, 15, 30)),
    *((60 * number, f"{number}minute", "%H:%M") for number in (1, 2, 5, 10, 15, 30)),
    *((3600 * number, f"{number}hour", "%H:%M") for number in (1, 2)),
    *((3600 * number, f"{number}hour", "%m-%d %H:%M") for number in (3, 6, 12)),
    *((86_400 * number, f"{number}day", "%m-%d") for number in (1, 2)),
    (7 * 86_400, "1week", "%m-%d"),
)


@dataclass(frozen=True, kw_only=True)
class _Bar:
    name: str
    began: datetime
    ended: datetime
    tag: str

    @property
    def seconds(self) -> float:
        return (self.ended - self.began).total_seconds()


def timeline_of(jobs: Sequence[Job], view: View) -> str:
    """Return the chart, and a note on what it omits. Empty if no phase took `_MIN_SECONDS`."""
    measured = [(job, bars) for job in jobs if (bars := [*_bars(job, view)])]
    if not any(bar.seconds >= _MIN_SECONDS for _, bars in measured for bar in bars):
        return ""
    largest = nlargest(_MAX_LANES, measured, key=lambda lane: (lane[0].verdict == FAILED, sum(bar.seconds for bar in lane[1])))
    shown = sorted(largest, key=measured.index)
    labels = _labels((job.domain or job.job_id or "" for job, _ in shown), view)
    lanes = {label: _longest(bars) for label, (_, bars) in zip(labels, shown, strict=True)}
    notes = []
    if len(shown) < len(measured):
        failed = "those that failed, then " if any(job.verdict == FAILED for job, _ in shown) else ""
        notes.append(f"The timeline shows {len(shown)} of {len(jobs):,} domains: {failed}the longest.")
    if len(lanes) > _MAX_EXPANDED_LANES:
        notes.append("Each line shows queue, run, bundle, download and unpacking in order; a failed phase is red.")
    return "\n".join(["```mermaid", *_chart(lanes), "```", *(["", " ".join(notes)] if notes else [])]) + "\n"


def _bars(job: Job, view: View) -> Iterator[_Bar]:
    def time_of(monotonic: float) -> datetime:
        return view.now + timedelta(milliseconds=round((monotonic - view.monotonic) * 1000))

    for phase in job.phases:
        has_failed = job.verdict == FAILED and phase is job.phases[-1]
        # not "active", whose names are unreadable in Mermaid's dark theme
        tag = "crit, " if has_failed else "" if phase.name == RUN else "done, "
        ended_at = view.monotonic if phase.ended_at is None else phase.ended_at
        bar = _Bar(name=phase.name, began=time_of(phase.began_at), ended=time_of(ended_at), tag=tag)
        if bar.seconds > 0:
            yield bar


def _longest(bars: Sequence[_Bar]) -> Sequence[_Bar]:
    return sorted(nlargest(_MAX_BARS, bars, key=lambda bar: bar.seconds), key=bars.index)


def _labels(names: Iterable[str], view: View) -> Sequence[str]:
    """Return a unique label for each name, of letters, digits and the punctuation of host names.

    No label is a single word: Mermaid keeps sections in a plain JavaScript object, which already has a `constructor`.
    """
    labels: list[str] = []
    for name in names:
        kept = re.sub(r"[^\w.-]+", " ", view.console.safe(name)).strip()
        kept = f"job {kept}".strip() if re.fullmatch(r"\w*", kept) else kept
        kept = kept[: _MAX_LABEL_LENGTH - 1] + "…" if len(kept) > _MAX_LABEL_LENGTH else kept
        candidates = chain([kept], (f"{kept} {number}" for number in count(2)))
        labels.append(next(label for label in candidates if label not in labels))
    return labels


def _chart(lanes: Mapping[str, Sequence[_Bar]]) -> Iterator[str]:
    is_compact = len(lanes) > _MAX_EXPANDED_LANES
    began = min(bar.began for bars in lanes.values() for bar in bars)
    span_seconds = (max(bar.ended for bars in lanes.values() for bar in bars) - began).total_seconds()
    padding = round(25 + _CHARACTER_PIXELS * max(map(len, lanes)))
    yield "---"
    if is_compact:
        yield "displayMode: compact"
    yield from ("config:", "  gantt:", f"    leftPadding: {padding}", "---", "gantt")
    yield f"    title Timeline of {began:%Y-%m-%d}, times in UTC"
    yield "    dateFormat YYYY-MM-DDTHH:mm:ss.SSS"
    yield from _axis(span_seconds)
    yield "    todayMarker off"
    pixels_per_second = (_WIDTH_PIXELS - padding - 75) / span_seconds if is_compact else None
    for label, bars in lanes.items():
        yield f"    section {label}"
        for bar in bars:
            times = [time.replace(tzinfo=None).isoformat(timespec="milliseconds") for time in (bar.began, bar.ended)]
            yield f"    {_name_of(bar, pixels_per_second)} :{bar.tag}{', '.join(times)}"


def _name_of(bar: _Bar, pixels_per_second: float | None) -> str:
    """Return phase and duration if they fit: into the bar, or beside it where it has a line of its own."""
    name = f"{bar.name} {format_approx(bar.seconds)}"
    fits = pixels_per_second is None or 10 + _CHARACTER_PIXELS * len(name) <= bar.seconds * pixels_per_second
    return name if fits else _NO_NAME


def _axis(span_seconds: float) -> Sequence[str]:
    """Return the axis, with at most `_MAX_TICKS` ticks at round times."""
    if span_seconds < 3:
        return ["    axisFormat %H:%M:%S.%L"]
    _, interval, axis_format = next((tick for tick in _TICKS if span_seconds / tick[0] <= _MAX_TICKS), _TICKS[-1])
    return [f"    axisFormat {axis_format}", f"    tickInterval {interval}"]
