"""How soon a job's end is seen, and for how many requests, by the action's schedule and by others: `python bench/schedules.py`.

In virtual time: a job is a number of seconds and what it tells on the way, and a request takes no time. The action's own wait
(`poll` with its schedule and the default settings) reads the jobs; so do the schedules that are in use elsewhere. The
`JOBS` durations are drawn from `SEED`. `--plot FILE` draws the picture in docs/evidence/.

Ends with 3 when a goal is missed.
"""

import argparse
import math
import random
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, repeat
from pathlib import Path
from statistics import NormalDist
from textwrap import fill
from types import SimpleNamespace
from typing import Final, cast

from docs_platform_action.context import Context
from docs_platform_action.events import Events
from docs_platform_action.inputs.settings import WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.polling import poll
from docs_platform_action.models import EXPORT, ExportJob

SEED: Final = 20261121
JOBS: Final = 4000
ODD_JOBS: Final = 1000
EVEN_JOBS: Final = 20_000
WIDTH: Final = 130
MEDIAN_SECONDS: Final = 240.0
SIGMA: Final = 1.0
MIN_JOB_SECONDS: Final = 8.0
MAX_JOB_SECONDS: Final = 3600.0

MISSED: Final = 3
"""What a benchmark ends with when a goal is missed; 1 is a fault of its own (`page.py`)."""

MIN_PAUSE_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 30.0
TIMEOUT_SECONDS: Final = 2 * MAX_JOB_SECONDS
"""The default settings, but a `timeout` that no job outlasts."""

Shape = Callable[[float], float | None]
"""What a job tells of its progress, 0 to 100, after a share of its time; nothing while it is in the queue."""

Pauses = Callable[[], Iterator[float]]


def steady(share: float) -> float:
    """Go at one pace."""
    return 100 * share


def queued_then_faster(share: float) -> float | None:
    """Wait in the queue for a fifth of the time, then go faster and faster, told in whole percents."""
    return None if share < 0.2 else math.floor(100 * ((share - 0.2) / 0.8) ** 2)


def silent(_: float) -> None:
    """Tell nothing."""


SHAPES: Final[Mapping[str, Shape]] = {"linear": steady, "convex": queued_then_faster, "none": silent}

ODD_SHAPES: Final[Mapping[str, Shape]] = {
    "linear, whole percents": lambda share: math.floor(100 * share),
    "linear, in tens": lambda share: 10.0 * math.floor(10 * share),
    "slower and slower": lambda share: math.floor(100 * (1 - (1 - share) ** 2)),
    "much faster at the end": lambda share: math.floor(100 * share**4),
    "unsteady, up and down by a few": lambda share: min(99, max(0, math.floor(100 * share + 4 * math.sin(97 * share)))),
    "stands at 50 % for a third": lambda share: 150 * share if share < 1 / 3 else 50.0 if share < 2 / 3 else 150 * share - 50,
    "starts late, after three fifths": lambda share: max(0.0, 250 * share - 150),
    "leaps from 30 to 90 %, stays there": lambda share: 100 * share if share < 0.3 else 90.0,
    "runs back, from 80 to 0 %": lambda share: 200 * share if share < 0.4 else (share - 0.4) / 0.006,
    "at 100 % for the last fifth": lambda share: min(100.0, 125 * share),
    "ends at 60 %": lambda share: 60 * share,
}
"""What an estimate may be wrong about."""


def every(seconds: float) -> Pauses:
    """Pause evenly."""
    return lambda: repeat(seconds)


def growing(seconds: float, *, factor: float, longest_seconds: float = math.inf, jitter: float = 0.0) -> Pauses:
    """Begin with so many seconds, and multiply up to a longest pause; each is drawn from around its value."""

    def pauses() -> Iterator[float]:
        chance = random.Random(SEED)  # noqa: S311  # the same in every run, and no secret
        pause = seconds
        while True:
            yield pause * chance.uniform(1 - jitter, 1 + jitter)
            pause = min(pause * factor, longest_seconds)

    return pauses


LINEAR_LAG: Final = 0.6
LINEAR_REQUESTS: Final = 1 / 3
CONVEX_LAG: Final = 1.3
CONVEX_REQUESTS: Final = 0.6
"""The goals: seconds from the end to our knowing at most, and the share of the requests of fixed 5 s."""

FIXED_5_S: Final = "fixed 5 s"
OTHERS: Final[Mapping[str, Pauses]] = {
    FIXED_5_S: every(5),
    "fixed 10 s": every(10),
    "fixed 30 s": every(30),
    "15 s, doubling": growing(15, factor=2),
    "5 s, growing to 30 s": growing(5, factor=1.5, longest_seconds=30, jitter=0.2),
}


@dataclass(frozen=True)
class Figures:
    """What a schedule costs: seconds from the end of a job to its being seen, requests a job."""

    mean_lag: float
    p95_lag: float
    requests: float


class VirtualClock:
    """Only `sleep` makes time pass."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        """Seconds since the job's start."""
        return self.seconds

    def now(self) -> datetime:
        """Tell the time of day, which nothing here depends on."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def sleep(self, seconds: float) -> None:
        """Pause."""
        self.seconds += seconds


def drawn_durations(jobs: int, seed: int = SEED) -> list[float]:
    """Draw how many seconds jobs take; what is beyond the bounds is drawn anew."""
    chance = random.Random(seed)  # noqa: S311  # the same in every run, and no secret
    drawn: list[float] = []
    while len(drawn) < jobs:
        seconds = chance.lognormvariate(math.log(MEDIAN_SECONDS), SIGMA)
        if MIN_JOB_SECONDS <= seconds <= MAX_JOB_SECONDS:
            drawn.append(seconds)
    return drawn


def even_durations(jobs: int) -> list[float]:
    """Give the durations that cut the same distribution into parts alike: what draws come to, without their chance."""
    normal = NormalDist(math.log(MEDIAN_SECONDS), SIGMA)
    least, most = (normal.cdf(math.log(bound)) for bound in (MIN_JOB_SECONDS, MAX_JOB_SECONDS))
    return [math.exp(normal.inv_cdf(least + (most - least) * (number + 0.5) / jobs)) for number in range(jobs)]


def read_by_the_action(seconds: float, shape: Shape, *, attached: bool = False) -> list[float]:
    """Wait for a job as the action does by default; give the seconds from its start to each reading, the last after its end."""
    platform = _Platform(seconds, shape)
    job = Job(mode=EXPORT, job_id="se_1", started_at=None if attached else platform.clock.monotonic())
    settings = WaitSettings(
        timeout_seconds=TIMEOUT_SECONDS,
        shortest_pause_seconds=MIN_PAUSE_SECONDS,
        longest_pause_seconds=MAX_PAUSE_SECONDS,
    )
    poll(job, settings, platform.context)
    return platform.read_at


class _Platform:
    """Stands in for the API: one job, and when it was read."""

    def __init__(self, seconds: float, shape: Shape) -> None:
        self.clock = VirtualClock()
        self.read_at: list[float] = []
        self._seconds = seconds
        self._shape = shape
        self.context = cast(Context, SimpleNamespace(clock=self.clock, api=self, events=Events()))

    def read_export(self, _job: Job, *, deadline: float) -> ExportJob:  # noqa: ARG002  # as the action calls it
        """Read the job."""
        now = self.clock.seconds
        self.read_at.append(now)
        if now >= self._seconds:
            return ExportJob(status=ExportJob.COMPLETED)
        percent = self._shape(now / self._seconds)
        is_queued = percent is None and self._shape is not silent
        return ExportJob(status=ExportJob.QUEUED if is_queued else ExportJob.RUNNING, progress=percent)


def read_by(pauses: Pauses, seconds: float) -> list[float]:
    """Wait for a job as the others do, with a pause before each request; give the seconds from its start to each reading."""
    read_at = [0.0]
    moments = accumulate(pauses())
    while read_at[-1] < seconds:
        read_at.append(next(moments))
    return read_at[1:]


def summed_up(seconds: float, read_at: Sequence[float]) -> tuple[float, int]:
    """Give the seconds from a job's end to its being seen, and the requests."""
    return read_at[-1] - seconds, len(read_at)


def figures(waits: Sequence[tuple[float, int]]) -> Figures:
    """Sum up what waits cost."""
    lags = sorted(lag for lag, _ in waits)
    return Figures(
        mean_lag=sum(lags) / len(lags),
        p95_lag=lags[math.ceil(0.95 * len(lags)) - 1],
        requests=sum(requests for _, requests in waits) / len(waits),
    )


def of_the_action(durations: Sequence[float], shape: Shape, *, attached: bool = False) -> Figures:
    """Judge the action's schedule."""
    if shape is silent:  # it cannot tell how long a job takes, so the longest is read at the same moments as all
        moments = read_by_the_action(max(durations), shape, attached=attached)
        ends = [bisect_left(moments, seconds) for seconds in durations]
        return figures([(moments[end] - seconds, end + 1) for seconds, end in zip(durations, ends, strict=True)])
    return figures([summed_up(seconds, read_by_the_action(seconds, shape, attached=attached)) for seconds in durations])


def of(pauses: Pauses, durations: Sequence[float]) -> Figures:
    """Judge another schedule."""
    return figures([summed_up(seconds, read_by(pauses, seconds)) for seconds in durations])


def missed(ours: Mapping[str, Figures], fixed: Figures) -> list[str]:
    """Tell which goals are missed, in words."""
    linear, convex, none = ours["linear"], ours["convex"], ours["none"]
    goals = (
        ("linear: mean seconds", linear.mean_lag, LINEAR_LAG),
        ("linear: requests", linear.requests, LINEAR_REQUESTS * fixed.requests),
        ("convex: mean seconds", convex.mean_lag, CONVEX_LAG),
        ("convex: requests", convex.requests, CONVEX_REQUESTS * fixed.requests),
        ("none: mean seconds", none.mean_lag, math.nextafter(fixed.mean_lag, 0)),
        ("none: seconds within which 95 % are seen", none.p95_lag, math.nextafter(fixed.p95_lag, 0)),
        ("none: requests", none.requests, math.nextafter(fixed.requests, 0)),
    )
    return [f"{what} {value:.3f}, the goal is {goal:.3f}" for what, value, goal in goals if value > goal]


Costs = Mapping[str, Figures]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """All that the section tells: costs of drawn jobs, of odd ones, and of a silent job whose durations are cut evenly."""

    jobs: int
    seed: int
    ours: Costs
    others: Costs
    odd_jobs: int
    odd: Costs
    odd_fixed: Figures
    even_none: Figures
    even_fixed: Figures


def section(judged: Judged) -> str:
    """Write the page's section."""
    fixed, even, even_fixed = judged.others[FIXED_5_S], judged.even_none, judged.even_fixed
    rows = [_row(f"this action, {name}", cost, fixed) for name, cost in judged.ours.items()]
    rows += [_row(f"{name} ({_USED_BY[name]})", cost, fixed) for name, cost in judged.others.items()]
    odd_rows = [_row(name, cost, judged.odd_fixed) for name, cost in judged.odd.items()]
    paragraphs = (
        "## Seeing the end sooner with fewer requests",
        f"""
        {judged.jobs:,} jobs in virtual time, where a request takes none. Their durations are drawn from a log-normal curve (seed
        {judged.seed}, median {MEDIAN_SECONDS:.0f} s, sigma {SIGMA:.0f}), from {MIN_JOB_SECONDS:.0f} s to
        {MAX_JOB_SECONDS / 3600:.0f} h, and the action's own code reads them with the default settings. Of three kinds of job,
        *linear* goes at one pace; *convex* is in the queue for the first fifth, then goes faster and faster, and tells whole
        percents; *none* tells nothing. The other schedules do not look at progress, so one row each is enough. They pause before
        their first request; the action asks first after 3 s. In brackets: beside fixed 5 s.
        """,
        f"""
        Goals: linear, a mean of {LINEAR_LAG} s at most with a third of the requests of fixed 5 s; convex, {CONVEX_LAG} s with
        {100 * CONVEX_REQUESTS:.0f} % of them; none, better in all three figures.
        """,
        "![How late an end is seen beside the requests that it takes, and when a job of four minutes is read](schedules.svg)",
    )
    without_progress = f"""
        Without progress there is not much to win. For jobs whose durations spread like this, no schedule that goes by age alone
        is more than 2.6 % better than an even one in mean and requests at once (Cauchy's inequality on the curve), and to be no
        worse in the 95th percentile takes most of that. Chance is larger: with other seeds the mean is up to 3 % better or 2 %
        worse.
        Without chance, with {EVEN_JOBS:,} durations that cut the curve evenly, the three figures are
        {even.mean_lag / even_fixed.mean_lag:.3f}, {even.p95_lag / even_fixed.p95_lag:.3f} and
        {even.requests / even_fixed.requests:.3f} of those of fixed 5 s; the last goal is held against these as well.
        """
    mistaken = f"""
        What an estimate may be wrong about, with the first {judged.odd_jobs:,} of the jobs. Trusting progress has its price: told
        *in tens*, it makes ends seen later than by fixed 5 s, and so do jobs that *end at 60 %*; but never later than
        `max-poll-interval`.
        """
    pieces = (*paragraphs, _table("schedule", rows), without_progress, mistaken, _table("progress", odd_rows))
    return "\n\n".join(map(_filled, pieces)) + "\n"


def _filled(piece: str) -> str:
    """Fill the lines of a paragraph, and leave what begins with a mark as it is."""
    return piece if piece.startswith(("#", "!", "|")) else fill(" ".join(piece.split()), WIDTH, break_on_hyphens=False)


def _table(first: str, rows: Sequence[str]) -> str:
    return "\n".join((_HEAD.format(first), "| --- | --- | --- | --- |", *rows))


def _row(name: str, cost: Figures, fixed: Figures) -> str:
    mean = f"{cost.mean_lag:.2f} s ({cost.mean_lag / fixed.mean_lag:.3f})"
    p95 = f"{cost.p95_lag:.2f} s ({cost.p95_lag / fixed.p95_lag:.3f})"
    return f"| {name} | {mean} | {p95} | {cost.requests:.1f} ({cost.requests / fixed.requests:.3f}) |"


_HEAD: Final = "| {} | mean delay until the end is seen | 95 % seen within | requests a job |"

_USED_BY: Final = {
    FIXED_5_S: "actions/deploy-pages",
    "fixed 10 s": "the usual curl loop",
    "fixed 30 s": "aws-codebuild-run-build",
    "15 s, doubling": "a common backoff",
    "5 s, growing to 30 s": "a newer actions/deploy-pages: half as much more each, drawn from 20 % around",
}


def draw_plot(file: Path, costs: Mapping[str, Figures]) -> None:
    """Draw how late an end is seen beside what that costs, and when a job is read. The same figures make the same file."""
    import matplotlib as mpl  # heavy, and for the picture alone

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "schedules", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 7.5), height_ratios=(3, 2), layout="constrained")
    figure.patch.set_facecolor("white")
    for name, cost in costs.items():
        place = (7, -13) if name in SHAPES else (9, -4) if "growing" in name else (-4, 8)
        colour, label = ("tab:blue", f"this action, {name}") if name in SHAPES else ("tab:gray", name)
        above.plot(cost.requests, cost.mean_lag, "o", color=colour)
        above.annotate(label, (cost.requests, cost.mean_lag), xytext=place, textcoords="offset points", color=colour)
    above.set(yscale="log", xlabel="requests a job", ylabel="mean delay until the end is seen, in seconds")
    above.set_xlim(0, 1.25 * max(cost.requests for cost in costs.values()))
    above.set_ylim(0.05, 500)
    above.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    above.grid(visible=True, alpha=0.3)
    read_at = {f"this action, {name}": read_by_the_action(MEDIAN_SECONDS, shape) for name, shape in SHAPES.items()}
    read_at |= {name: read_by(OTHERS[name], MEDIAN_SECONDS) for name in (FIXED_5_S, "fixed 10 s", "fixed 30 s")}
    colours = ["tab:blue" if name.startswith("this action") else "tab:gray" for name in read_at]
    below.eventplot([*read_at.values()], colors=colours, linelengths=0.7)
    below.set_yticks(range(len(read_at)), [*read_at])
    below.invert_yaxis()
    below.set_xlabel("when a job of four minutes is read, in seconds")
    figure.savefig(file, metadata={"Date": None, "Creator": None})


def main() -> int:
    """Judge all schedules, and write the page's section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help="how many jobs are drawn")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="what they are drawn from")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the picture into this file, as SVG")
    options = parser.parse_args()
    durations = drawn_durations(options.jobs, options.seed)
    others = {name: of(pauses, durations) for name, pauses in OTHERS.items()}
    ours = {name: of_the_action(durations, shape) for name, shape in SHAPES.items()}
    few, even = durations[:ODD_JOBS], even_durations(EVEN_JOBS)
    odd = {name: of_the_action(few, shape) for name, shape in ODD_SHAPES.items()}
    odd["none, attached to with `job-id`"] = of_the_action(few, silent, attached=True)
    judged = Judged(
        jobs=options.jobs,
        seed=options.seed,
        ours=ours,
        others=others,
        odd_jobs=len(few),
        odd=odd,
        odd_fixed=of(OTHERS[FIXED_5_S], few),
        even_none=of_the_action(even, silent),
        even_fixed=of(OTHERS[FIXED_5_S], even),
    )
    if options.plot is not None:
        draw_plot(options.plot, ours | others)
    sys.stdout.write(section(judged))
    misses = missed(ours, others[FIXED_5_S])
    misses += [miss for miss in missed(ours | {"none": judged.even_none}, judged.even_fixed) if miss.startswith("none")]
    sys.stdout.writelines(["\n", *(f"Goal missed: {miss}\n" for miss in misses)] if misses else ["\nEach goal is met.\n"])
    return MISSED if misses else 0


if __name__ == "__main__":
    sys.exit(main())
