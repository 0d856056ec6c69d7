"""Measures how late a job's end is seen, and after how many requests: `python -m bench.schedules`.

In virtual time: a job is a duration and a progress curve, and a request takes no time. The jobs are
polled by the action's own code with the default settings, and by schedules in use elsewhere.
Durations are drawn from `SEED`. `--plot FILE` draws the picture of docs/evidence.md.
"""

import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate, count, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

from bench.common import exit_without, options_of, table, write_section

from docs_platform_action.context import PlatformContext
from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.jobs.polling import poll
from docs_platform_action.models import ExportJob
from tests.virtual_time import VirtualClock

SEED: Final = 20261121
JOBS: Final = 4000
MEDIAN_SECONDS: Final = 240.0
BOUNDS_SECONDS: Final = (8.0, 3600.0)
"""Durations of jobs: log-normal with a sigma of 1, within bounds."""
SETTINGS: Final = WaitSettings(
    timeout_seconds=7200.0, poll_interval_seconds=1.0, max_poll_interval_seconds=30.0
)
"""The defaults, but a timeout that is longer than any job."""

Shape = Callable[[float], float | None]
"""The reported progress, 0 to 100, after a share of the job's time; None in the queue."""
Pauses = Callable[[], Iterator[float]]


def queued_then_faster(share: float) -> float | None:
    """Return accelerating progress in whole percent, after a fifth of the time in the queue."""
    if share < 0.2:
        return None
    return math.floor(100 * ((share - 0.2) / 0.8) ** 2)


def silent(_: float) -> None:
    """Return no progress."""


SHAPES: Final[dict[str, Shape]] = {
    "this action, linear": lambda share: 100 * share,
    "this action, convex": queued_then_faster,
    "this action, none": silent,
    "this action, linear in tens": lambda share: 10.0 * math.floor(10 * share),
    "this action, ends at 60 %": lambda share: 60 * share,
}
PLOTTED: Final = ("this action, linear", "this action, convex", "this action, none")
FIXED: Final = "fixed 5 s (actions/deploy-pages)"
OTHERS: Final[Mapping[str, Pauses]] = {
    FIXED: lambda: repeat(5.0),
    "fixed 10 s (the usual curl loop)": lambda: repeat(10.0),
    "fixed 30 s (aws-codebuild-run-build)": lambda: repeat(30.0),
    "15 s, doubling (a common backoff)": lambda: (15.0 * 2**number for number in count()),
    "5 s, growing to 30 s (a newer actions/deploy-pages)": lambda: (
        min(5 * 1.5**number, 30.0) for number in count()
    ),
}
"""Pauses of schedules, and where they are used."""


@dataclass(frozen=True)
class Figures:
    """The cost of a schedule: seconds from a job's end until it is seen, and requests per job."""

    mean_delay: float
    p95_delay: float
    requests: float


def main() -> int:
    """Measure all schedules, and write the section."""
    parser = options_of(__doc__)
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="write the picture to this SVG file"
    )
    options = parser.parse_args()
    if options.plot is not None and find_spec("matplotlib") is None:
        exit_without("matplotlib, which `make .venv/drawing` installs")
    durations = drawn_durations(10 if options.smallest else JOBS)
    ours = {}
    for name, shape in SHAPES.items():
        polls = [polls_of_the_action(seconds, shape) for seconds in durations]
        ours[name] = figures(durations, polls)
    others = {}
    for name, pauses in OTHERS.items():
        polls = [polls_of(seconds, pauses) for seconds in durations]
        others[name] = figures(durations, polls)
    if options.plot is not None:
        draw_plot(options.plot, {name: ours[name] for name in PLOTTED} | others)
    return report(len(durations), ours, others)


def drawn_durations(jobs: int) -> list[float]:
    """Draw durations of jobs within the bounds."""
    chance = random.Random(SEED)  # noqa: S311  # reproducible, and not for secrets
    shortest, longest = BOUNDS_SECONDS
    drawn: list[float] = []
    while len(drawn) < jobs:
        seconds = chance.lognormvariate(math.log(MEDIAN_SECONDS), 1)
        if shortest <= seconds <= longest:
            drawn.append(seconds)
    return drawn


def polls_of_the_action(seconds: float, shape: Shape) -> list[float]:
    """Poll a job like the action; return the seconds from its start to each poll.

    The last poll is after its end.
    """
    platform = Platform(seconds, shape)
    job = Job(kind=Export(), job_id="se_1", started_at=platform.clock.monotonic())
    poll(job, SETTINGS, platform.context, platform.read_export)
    return platform.polled_at


class Platform:
    """A fake API with one job that records when it is polled."""

    def __init__(self, seconds: float, shape: Shape) -> None:
        self.clock = VirtualClock()
        self.polled_at: list[float] = []
        self._seconds = seconds
        self._shape = shape
        events = SimpleNamespace(status_read=lambda _job: None)
        parts = SimpleNamespace(clock=self.clock, platform=self, listener=events)
        self.context = cast(PlatformContext, parts)

    def read_export(self, _job: Job, _deadline: float) -> ExportJob:
        """Return the job's state, and record the poll. The action calls it."""
        now = self.clock.elapsed
        self.polled_at.append(now)
        if now >= self._seconds:
            return ExportJob(status=ExportJob.COMPLETED)
        percent = self._shape(now / self._seconds)
        is_queued = percent is None and self._shape is not silent
        status = ExportJob.QUEUED if is_queued else ExportJob.RUNNING
        return ExportJob(status=status, progress=percent)


def polls_of(seconds: float, pauses: Pauses) -> list[float]:
    """Poll a job like the other schedules; return the seconds from its start to each poll.

    There is a pause before each request.
    """
    polled_at = [0.0]
    moments = accumulate(pauses())
    while polled_at[-1] < seconds:
        polled_at.append(next(moments))
    return polled_at[1:]


def figures(durations: Sequence[float], polls: Sequence[list[float]]) -> Figures:
    """Return the cost of polling jobs of these durations at these moments."""
    delays = []
    requests = 0
    for seconds, polled_at in zip(durations, polls, strict=True):
        delays.append(polled_at[-1] - seconds)
        requests += len(polled_at)
    delays.sort()
    return Figures(
        mean_delay=sum(delays) / len(delays),
        p95_delay=delays[math.ceil(0.95 * len(delays)) - 1],
        requests=requests / len(polls),
    )


def report(jobs: int, ours: dict[str, Figures], others: dict[str, Figures]) -> int:
    """Write the section."""
    fixed = others[FIXED]
    linear = ours["this action, linear"]
    convex = ours["this action, convex"]
    none = ours["this action, none"]
    goals = (
        ("linear: mean seconds", linear.mean_delay, 0.6),
        ("linear: requests", linear.requests, fixed.requests / 3),
        ("convex: mean seconds", convex.mean_delay, 1.3),
        ("convex: requests", convex.requests, 0.6 * fixed.requests),
        ("none: mean seconds", none.mean_delay, fixed.mean_delay),
        ("none: seconds within which 95 % are seen", none.p95_delay, fixed.p95_delay),
        ("none: requests", none.requests, fixed.requests),
    )
    rows = [
        f"{name} | {cost.mean_delay:.2f} ({cost.mean_delay / fixed.mean_delay:.3f})"
        f" | {cost.p95_delay:.2f} ({cost.p95_delay / fixed.p95_delay:.3f})"
        f" | {cost.requests:.1f} ({cost.requests / fixed.requests:.3f})"
        for name, cost in (ours | others).items()
    ]
    missed = [
        f"{name} {value:.3f}, the goal is {most:.3f}" for name, value, most in goals if value > most
    ]
    head = (
        "schedule | mean seconds until the end is seen | 95 % seen within seconds"
        " | requests per job"
    )
    return write_section(
        "## Seeing the end sooner with fewer requests",
        f"""
        {jobs:,} jobs in virtual time, in which a request takes no time. Their durations are
        log-normal (median 240 s, sigma 1), from 8 s to 1 h. *Linear* has constant progress;
        *convex* is in the queue for the first fifth, then accelerates; *none* reports no progress,
        like exports by project. The other schedules ignore progress. Ratios to fixed 5 s are in
        parentheses.
        """,
        """
        Goals: for linear, a mean of at most 0.6 s with a third of the requests of fixed 5 s; for
        convex, 1.3 s with 60 % of them; for none, better in all three figures.
        """,
        table(head, rows),
        """
        Without progress, no schedule that depends only on the age of such a job is more than 2.6 %
        better than a regular one in both mean and requests (Cauchy's inequality). The end is seen
        later than with fixed 5 s if progress comes in tens, or if a job ends at 60 %, but never
        later than `max-poll-interval`.
        """,
        missed=missed,
    )


def draw_plot(file: Path, costs: Mapping[str, Figures]) -> None:
    """Draw the delays and requests of the schedules, and the polls of a job.

    The same figures give the same file.
    """
    import matplotlib as mpl  # slow to import, and only needed for the picture

    mpl.use("svg")
    mpl.rcParams.update(
        {"svg.hashsalt": "schedules", "svg.fonttype": "none", "font.family": "sans-serif"}
    )
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(
        2, 1, figsize=(8, 7.5), height_ratios=(3, 2), layout="constrained"
    )
    figure.patch.set_facecolor("white")
    for name, cost in costs.items():
        above.plot(cost.requests, cost.mean_delay, "o", color=color_of(name))
        above.annotate(
            name.partition(" (")[0],
            (cost.requests, cost.mean_delay),
            xytext=place_of_label(name),
            textcoords="offset points",
            color=color_of(name),
        )
    above.set(
        yscale="log", xlabel="requests a job", ylabel="mean delay until the end is seen, in seconds"
    )
    above.set_xlim(0, 1.25 * max(cost.requests for cost in costs.values()))
    above.set_ylim(0.05, 500)
    above.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    above.grid(visible=True, alpha=0.3)
    polled_at = {name: polls_of_the_action(MEDIAN_SECONDS, SHAPES[name]) for name in PLOTTED}
    for name, pauses in OTHERS.items():
        if name.startswith("fixed"):
            polled_at[name.partition(" (")[0]] = polls_of(MEDIAN_SECONDS, pauses)
    colors = [color_of(name) for name in polled_at]
    below.eventplot(list(polled_at.values()), colors=colors, linelengths=0.7)
    below.set_yticks(range(len(polled_at)), list(polled_at))
    below.invert_yaxis()
    below.set_xlabel("when a job of four minutes is read, in seconds")
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def color_of(schedule: str) -> str:
    """Return the color of a schedule: the action's stand out."""
    return "tab:blue" if schedule in SHAPES else "tab:gray"


def place_of_label(schedule: str) -> tuple[int, int]:
    """Return where a schedule's label is, in points from its dot, so that no two overlap."""
    if schedule in SHAPES:
        return (7, -13)
    if "growing" in schedule:
        return (9, -4)
    return (-4, 8)


if __name__ == "__main__":
    sys.exit(main())
