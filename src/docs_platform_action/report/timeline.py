"""The summary's timeline: a Mermaid gantt of the phases of each job, for GitHub to draw.

Source of what a diagram may hold: Mermaid's gantt grammar and its documentation. A task's name ends at its colon; dates and axis
are both in the reader's time zone, so what is written in UTC shows as UTC; more than 50,000 characters are shown as an error.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from operator import itemgetter
from typing import Final

from ..errors import Cancelled
from ..job import QUEUE, RUN, Job, Phase
from ..text import format_approx, format_seconds
from .view import View

MAX_LANES: Final = 40
"""Jobs in the picture: more of them cannot be told apart on one screen."""

MAX_EXPANDED_LANES: Final = 8
"""Jobs whose phases stand below each other, each with its label; of more jobs each has one line."""

MAX_BARS: Final = 8
"""Phases of one job: the longest ones. With the above this keeps a diagram below the 50,000 characters that Mermaid draws."""

MAX_LABEL_LENGTH: Final = 40

_WIDTH_PIXELS: Final = 850
_CHARACTER_PIXELS: Final = 6.5
"""How wide GitHub shows a diagram, and a character of Mermaid's label font at most; both only make it look well."""

_NO_NAME: Final = "#8203;"
"""A zero-width space as Mermaid writes it: a bar cannot go without a name, but one that does not fit covers the next bar."""


@dataclass(frozen=True, kw_only=True)
class _Bar:
    name: str
    seconds: float
    began: datetime
    ended: datetime
    failed: bool


def timeline_of(jobs: Sequence[Job], view: View) -> str:
    """Draw when each job was in which phase, and say what is not shown. Empty if no phase took any time."""
    lengths = [sum(_length(phase, view.monotonic) for phase in job.phases) for job in jobs]
    measured = [(_has_failed(jobs[place]), seconds, place) for place, seconds in enumerate(lengths) if seconds > 0]
    if not measured:
        return ""
    chosen = [jobs[place] for place in sorted(place for *_, place in nlargest(MAX_LANES, measured))]
    labels = _labels((job.domain or job.job_id or "" for job in chosen), view)
    lanes = {label: list(_bars(job, view)) for label, job in zip(labels, chosen, strict=True)}
    below = []
    if len(chosen) < len(measured):
        kind = "domains" if all(job.domain for job in jobs) else "jobs"
        failed = "those that failed, then " if any(map(_has_failed, chosen)) else ""
        below.append(f"The timeline shows {len(chosen)} of {len(jobs):,} {kind}: {failed}the longest.")
    if len(lanes) > MAX_EXPANDED_LANES:
        below.append("Each line shows queue, run, bundle, download and unpacking in order; red is what failed.")
    return "\n".join(["```mermaid", *_diagram(lanes), "```", *(["", " ".join(below)] if below else [])]) + "\n"


def _length(phase: Phase, monotonic: float) -> float:
    """Return how many seconds a phase took; what rounds to no millisecond took none."""
    seconds = _milliseconds(phase.ended_at, monotonic) - _milliseconds(phase.began_at, monotonic)
    return max(seconds, 0) / 1000


def _milliseconds(at: float | None, monotonic: float) -> int:
    return 0 if at is None else round((at - monotonic) * 1000)


def _has_failed(job: Job) -> bool:
    return job.failure is not None and not isinstance(job.failure, Cancelled)


def _bars(job: Job, view: View) -> Iterator[_Bar]:
    lengths = [(_length(phase, view.monotonic), place) for place, phase in enumerate(job.phases)]
    for seconds, place in sorted(nlargest(MAX_BARS, lengths), key=itemgetter(1)):
        phase = job.phases[place]
        began = view.now + timedelta(milliseconds=_milliseconds(phase.began_at, view.monotonic))
        if seconds:
            yield _Bar(
                name=phase.name,
                seconds=seconds,
                began=began,
                ended=began + timedelta(seconds=seconds),
                failed=_has_failed(job) and place == len(job.phases) - 1,
            )


def _labels(names: Iterable[str], view: View) -> Sequence[str]:
    """Return a label for each job, of letters, digits and what host names hold.

    No two are alike, as two sections of one name would be one. None is a single word: Mermaid keeps sections in a plain object,
    where `constructor` is something else.
    """
    labels: list[str] = []
    for name in names:
        kept = re.sub(r"[^\w.-]+", " ", view.console.safe(name)).strip()
        kept = f"job {kept}".strip() if re.fullmatch(r"\w*", kept) else kept
        label = first = kept[: MAX_LABEL_LENGTH - 1] + "…" if len(kept) > MAX_LABEL_LENGTH else kept
        number = 1
        while label in labels:
            number += 1
            label = f"{first} {number}"
        labels.append(label)
    return labels


def _diagram(lanes: Mapping[str, Sequence[_Bar]]) -> Iterator[str]:
    is_compact = len(lanes) > MAX_EXPANDED_LANES
    first = min(bar.began for bars in lanes.values() for bar in bars)
    span_seconds = (max(bar.ended for bars in lanes.values() for bar in bars) - first).total_seconds()
    padding = round(25 + _CHARACTER_PIXELS * max(map(len, lanes)))
    yield "---"
    if is_compact:
        yield "displayMode: compact"
    yield from ("config:", "  gantt:", f"    leftPadding: {padding}", "---", "gantt")
    yield f"    title Timeline of {first:%Y-%m-%d}, times in UTC"
    yield "    dateFormat YYYY-MM-DDTHH:mm:ss.SSS"
    yield from _axis(span_seconds)
    yield "    todayMarker off"
    pixels = (_WIDTH_PIXELS - padding - 75) / span_seconds if is_compact else None
    for label, bars in lanes.items():
        yield f"    section {label}"
        for bar in bars:
            tag = "crit, " if bar.failed else _TAGS.get(bar.name, "active, ")
            times = [at.replace(tzinfo=None).isoformat(timespec="milliseconds") for at in (bar.began, bar.ended)]
            yield f"    {_name(bar, pixels)} :{tag}{', '.join(times)}"


_TAGS: Final = {QUEUE: "done, ", RUN: ""}


def _name(bar: _Bar, pixels_a_second: float | None) -> str:
    """Return phase and length, where they fit into the bar or beside it."""
    length = (
        "under 0.1 s" if bar.seconds < 0.1 else format_seconds(bar.seconds) if bar.seconds < 9.95 else format_approx(bar.seconds)
    )
    name = f"{bar.name} {length}"
    fits = pixels_a_second is None or 10 + _CHARACTER_PIXELS * len(name) <= bar.seconds * pixels_a_second
    return name if fits else _NO_NAME


_DAY_SECONDS: Final = 24 * 3600

_TICKS: Final = (
    *((count, f"{count}second") for count in (1, 2, 5, 10, 15, 30)),
    *((60 * count, f"{count}minute") for count in (1, 2, 5, 10, 15, 30)),
    *((3600 * count, f"{count}hour") for count in (1, 2, 3, 6, 12)),
    *((_DAY_SECONDS * count, f"{count}day") for count in (1, 2)),
    (7 * _DAY_SECONDS, "1week"),
)

_MAX_TICKS: Final = 8


def _axis(span_seconds: float) -> Iterator[str]:
    """Divide the axis into a few parts of a round length, and write no more of the time than tells them apart."""
    if span_seconds < 3:
        yield "    axisFormat %H:%M:%S.%L"
        return
    step_seconds, interval = next((tick for tick in _TICKS if span_seconds / tick[0] <= _MAX_TICKS), _TICKS[-1])
    if step_seconds < 60:
        yield "    axisFormat %H:%M:%S"
    elif span_seconds < _DAY_SECONDS:
        yield "    axisFormat %H:%M"
    else:
        yield "    axisFormat %m-%d %H:%M" if step_seconds < _DAY_SECONDS else "    axisFormat %m-%d"
    yield f"    tickInterval {interval}"
