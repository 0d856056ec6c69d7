"""Measures how late a job's end is seen and the requests, for the action's schedule and others: `python bench/schedules.py`.

In virtual time: a job is a duration and a progress curve, and a request takes no time. The jobs are polled by the action's own
code (`poll` with its schedule and the default settings) and by schedules in use elsewhere. The `JOBS` durations are drawn from
`SEED`. `--plot FILE` draws the picture in docs/evidence/.

Exits with 3 if a goal is missed.
"""

import argparse
import math
import random
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate, repeat
from pathlib import Path
from statistics import NormalDist
from textwrap import fill
from types import SimpleNamespace
from typing import Final, cast

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests import this module from there

from bench.needs import exit_without

from docs_platform_action.context import Context
from docs_platform_action.inputs.settings import Mode, WaitSettings
from docs_platform_action.job import Job
from docs_platform_action.jobs.polling import poll
from docs_platform_action.models import ExportJob
from tests.virtual_time import VirtualClock

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
"""The exit code for a missed goal; 1 is an error of the benchmark (`page.py`)."""

MIN_PAUSE_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 30.0
TIMEOUT_SECONDS: Final = 2 * MAX_JOB_SECONDS
"""The default settings, except for a `timeout` longer than any job."""

Shape = Callable[[float], float | None]
"""The reported progress, 0 to 100, after a share of the job's time; None in the queue."""

Pauses = Callable[[], Iterator[float]]


def steady(share: float) -> float:
    """Return constant progress."""
    return 100 * share


def queued_then_faster(share: float) -> float | None:
    """Return None in the queue for a fifth of the time, then accelerating progress in whole percent."""
    return None if share < 0.2 else math.floor(100 * ((share - 0.2) / 0.8) ** 2)


def silent(_: float) -> None:
    """Return no progress."""


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
"""Progress curves for which an estimate is wrong."""


def every(seconds: float) -> Pauses:
    """Return constant pauses."""
    return lambda: repeat(seconds)


def growing(seconds: float, *, factor: float, longest_seconds: float = math.inf, jitter: float = 0.0) -> Pauses:
    """Return pauses that grow by a factor up to a maximum, with jitter."""

    def pauses() -> Iterator[float]:
        chance = random.Random(SEED)  # noqa: S311  # reproducible, and not for secrets
        pause = seconds
        while True:
            yield pause * chance.uniform(1 - jitter, 1 + jitter)
            pause = min(pause * factor, longest_seconds)

    return pauses


LINEAR_LAG: Final = 0.6
LINEAR_REQUESTS: Final = 1 / 3
CONVEX_LAG: Final = 1.3
CONVEX_REQUESTS: Final = 0.6
"""The goals: the maximum mean delay in seconds, and the share of the requests of fixed 5 s."""

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
    """The cost of a schedule: seconds from a job's end until it is seen, and requests per job."""

    mean_lag: float
    p95_lag: float
    requests: float


def drawn_durations(jobs: int, seed: int = SEED) -> list[float]:
    """Draw durations of jobs within the bounds."""
    chance = random.Random(seed)  # noqa: S311  # reproducible, and not for secrets
    drawn: list[float] = []
    while len(drawn) < jobs:
        seconds = chance.lognormvariate(math.log(MEDIAN_SECONDS), SIGMA)
        if MIN_JOB_SECONDS <= seconds <= MAX_JOB_SECONDS:
            drawn.append(seconds)
    return drawn


def even_durations(jobs: int) -> list[float]:
    """Return evenly spaced quantiles of the same distribution, which have no random error."""
    normal = NormalDist(math.log(MEDIAN_SECONDS), SIGMA)
    least, most = (normal.cdf(math.log(bound)) for bound in (MIN_JOB_SECONDS, MAX_JOB_SECONDS))
    return [math.exp(normal.inv_cdf(least + (most - least) * (number + 0.5) / jobs)) for number in range(jobs)]


def polls_of_the_action(seconds: float, shape: Shape, *, collected: bool = False) -> list[float]:
    """Poll a job like the action by default; return the seconds from its start to each poll, the last after its end."""
    platform = _Platform(seconds, shape)
    job = Job(mode=Mode.EXPORT, job_id="se_1", started_at=None if collected else platform.clock.monotonic())
    settings = WaitSettings(
        timeout_seconds=TIMEOUT_SECONDS,
        poll_interval_seconds=MIN_PAUSE_SECONDS,
        max_poll_interval_seconds=MAX_PAUSE_SECONDS,
    )
    poll(job, settings, platform.context)
    return platform.polled_at


class _Platform:
    """A fake API with one job that records when it is polled."""

    def __init__(self, seconds: float, shape: Shape) -> None:
        self.clock = VirtualClock()
        self.polled_at: list[float] = []
        self._seconds = seconds
        self._shape = shape
        events = SimpleNamespace(status_read=lambda _job: None)
        self.context = cast(Context, SimpleNamespace(clock=self.clock, api=self, events=events))

    def read_export(self, _job: Job, *, deadline: float) -> ExportJob:  # noqa: ARG002  # called by the action
        """Return the job's state, and record the poll."""
        now = self.clock.elapsed
        self.polled_at.append(now)
        if now >= self._seconds:
            return ExportJob(status=ExportJob.COMPLETED)
        percent = self._shape(now / self._seconds)
        is_queued = percent is None and self._shape is not silent
        return ExportJob(status=ExportJob.QUEUED if is_queued else ExportJob.RUNNING, progress=percent)


def polls_of(pauses: Pauses, seconds: float) -> list[float]:
    """Poll a job like the other schedules, with a pause before each request; return the seconds from its start to each poll."""
    polled_at = [0.0]
    moments = accumulate(pauses())
    while polled_at[-1] < seconds:
        polled_at.append(next(moments))
    return polled_at[1:]


def delay_and_requests(seconds: float, polled_at: Sequence[float]) -> tuple[float, int]:
    """Return the seconds from a job's end until it is seen, and the number of requests."""
    return polled_at[-1] - seconds, len(polled_at)


def figures(waits: Sequence[tuple[float, int]]) -> Figures:
    """Return the mean cost of waits."""
    lags = sorted(lag for lag, _ in waits)
    return Figures(
        mean_lag=sum(lags) / len(lags),
        p95_lag=lags[math.ceil(0.95 * len(lags)) - 1],
        requests=sum(requests for _, requests in waits) / len(waits),
    )


def of_the_action(durations: Sequence[float], shape: Shape, *, collected: bool = False) -> Figures:
    """Return the cost of the action's schedule."""
    if shape is silent:  # without progress all jobs are polled at the same times
        moments = polls_of_the_action(max(durations), shape, collected=collected)
        ends = [bisect_left(moments, seconds) for seconds in durations]
        return figures([(moments[end] - seconds, end + 1) for seconds, end in zip(durations, ends, strict=True)])
    return figures(
        [delay_and_requests(seconds, polls_of_the_action(seconds, shape, collected=collected)) for seconds in durations]
    )


def of(pauses: Pauses, durations: Sequence[float]) -> Figures:
    """Return the cost of another schedule."""
    return figures([delay_and_requests(seconds, polls_of(pauses, seconds)) for seconds in durations])


def missed(ours: Mapping[str, Figures], fixed: Figures) -> list[str]:
    """Describe the missed goals."""
    linear, convex, none = ours["linear"], ours["convex"], ours["none"]
    limits = (
        ("linear: mean seconds", linear.mean_lag, LINEAR_LAG),
        ("linear: requests", linear.requests, LINEAR_REQUESTS * fixed.requests),
        ("convex: mean seconds", convex.mean_lag, CONVEX_LAG),
        ("convex: requests", convex.requests, CONVEX_REQUESTS * fixed.requests),
        ("none: mean seconds", none.mean_lag, math.nextafter(fixed.mean_lag, 0)),
        ("none: seconds within which 95 % are seen", none.p95_lag, math.nextafter(fixed.p95_lag, 0)),
        ("none: requests", none.requests, math.nextafter(fixed.requests, 0)),
    )
    return [f"{name} {value:.3f}, the goal is {limit:.3f}" for name, value, limit in limits if value > limit]


Costs = Mapping[str, Figures]


@dataclass(frozen=True, kw_only=True)
class Results:
    """All figures of the section: costs of drawn jobs, of odd ones, and of silent jobs with evenly spaced durations."""

    jobs: int
    seed: int
    ours: Costs
    others: Costs
    odd_jobs: int
    odd: Costs
    odd_fixed: Figures
    even_none: Figures
    even_fixed: Figures


def section(results: Results) -> str:
    """Return the page's section."""
    fixed, even, even_fixed = results.others[FIXED_5_S], results.even_none, results.even_fixed
    rows = [_row(f"this action, {name}", cost, fixed) for name, cost in results.ours.items()]
    rows += [_row(f"{name} ({_USED_BY[name]})", cost, fixed) for name, cost in results.others.items()]
    odd_rows = [_row(name, cost, results.odd_fixed) for name, cost in results.odd.items()]
    paragraphs = (
        "## Seeing the end sooner with fewer requests",
        f"""
        {results.jobs:,} jobs in virtual time, in which a request takes no time. Their durations are drawn from a log-normal
        distribution (seed {results.seed}, median {MEDIAN_SECONDS:.0f} s, sigma {SIGMA:.0f}), from {MIN_JOB_SECONDS:.0f} s to
        {MAX_JOB_SECONDS / 3600:.0f} h, and the action's own code polls them with the default settings. Of three kinds of job,
        *linear* has constant progress; *convex* is in the queue for the first fifth, then accelerates, and reports whole percent;
        *none* reports no progress. The other schedules ignore progress, so they have one row each. They pause before their first
        request; the action polls first after 3 s. Ratios to fixed 5 s are in parentheses.
        """,
        f"""
        Goals: for linear, a mean of at most {LINEAR_LAG} s with a third of the requests of fixed 5 s; for convex,
        {CONVEX_LAG} s with {100 * CONVEX_REQUESTS:.0f} % of them; for none, better in all three figures.
        """,
        "![The delay until the end is seen and the requests of each schedule, and the polls of a four-minute job](schedules.svg)",
    )
    without_progress = f"""
        Without progress little can be gained. For jobs with this distribution, no schedule that depends only on the age is more
        than 2.6 % better than a regular one in both mean and requests (Cauchy's inequality), and most of that is lost if the 95th
        percentile must not be worse. The random error is larger: with other seeds the mean is up to 3 % better or 2 % worse.
        Without random error, with {EVEN_JOBS:,} evenly spaced quantiles, the three figures are
        {even.mean_lag / even_fixed.mean_lag:.3f}, {even.p95_lag / even_fixed.p95_lag:.3f} and
        {even.requests / even_fixed.requests:.3f} of those of fixed 5 s; the last goal applies to these as well.
        """
    mistaken = f"""
        Cases in which the estimate is wrong, with the first {results.odd_jobs:,} of the jobs. With progress *in tens*, and for
        jobs that *end at 60 %*, the end is seen later than with fixed 5 s, but never later than `max-poll-interval`.
        """
    pieces = (*paragraphs, _table("schedule", rows), without_progress, mistaken, _table("progress", odd_rows))
    return "\n\n".join(map(_filled, pieces)) + "\n"


def _filled(piece: str) -> str:
    """Wrap a paragraph, but not headings, images and tables."""
    return piece if piece.startswith(("#", "!", "|")) else fill(" ".join(piece.split()), WIDTH, break_on_hyphens=False)


def _table(first: str, rows: Sequence[str]) -> str:
    return "\n".join((_HEAD.format(first), "| --- | --- | --- | --- |", *rows))


def _row(name: str, cost: Figures, fixed: Figures) -> str:
    mean = f"{cost.mean_lag:.2f} s ({cost.mean_lag / fixed.mean_lag:.3f})"
    p95 = f"{cost.p95_lag:.2f} s ({cost.p95_lag / fixed.p95_lag:.3f})"
    return f"| {name} | {mean} | {p95} | {cost.requests:.1f} ({cost.requests / fixed.requests:.3f}) |"


_HEAD: Final = "| {} | mean delay until the end is seen | 95 % seen within | requests per job |"

_USED_BY: Final = {
    FIXED_5_S: "actions/deploy-pages",
    "fixed 10 s": "the usual curl loop",
    "fixed 30 s": "aws-codebuild-run-build",
    "15 s, doubling": "a common backoff",
    "5 s, growing to 30 s": "a newer actions/deploy-pages: a factor of 1.5, with 20 % jitter",
}


def draw_plot(file: Path, costs: Mapping[str, Figures]) -> None:
    """Draw the delays and requests of the schedules, and the polls of a job. The same figures give the same file."""
    import matplotlib as mpl  # slow to import, and only needed for the picture

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "schedules", "svg.fonttype": "none", "font.family": "sans-serif"})
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, figsize=(8, 7.5), height_ratios=(3, 2), layout="constrained")
    figure.patch.set_facecolor("white")
    for name, cost in costs.items():
        place = (7, -13) if name in SHAPES else (9, -4) if "growing" in name else (-4, 8)
        color, label = ("tab:blue", f"this action, {name}") if name in SHAPES else ("tab:gray", name)
        above.plot(cost.requests, cost.mean_lag, "o", color=color)
        above.annotate(label, (cost.requests, cost.mean_lag), xytext=place, textcoords="offset points", color=color)
    above.set(yscale="log", xlabel="requests a job", ylabel="mean delay until the end is seen, in seconds")
    above.set_xlim(0, 1.25 * max(cost.requests for cost in costs.values()))
    above.set_ylim(0.05, 500)
    above.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
    above.grid(visible=True, alpha=0.3)
    polled_at = {f"this action, {name}": polls_of_the_action(MEDIAN_SECONDS, shape) for name, shape in SHAPES.items()}
    polled_at |= {name: polls_of(OTHERS[name], MEDIAN_SECONDS) for name in (FIXED_5_S, "fixed 10 s", "fixed 30 s")}
    colors = ["tab:blue" if name.startswith("this action") else "tab:gray" for name in polled_at]
    below.eventplot([*polled_at.values()], colors=colors, linelengths=0.7)
    below.set_yticks(range(len(polled_at)), [*polled_at])
    below.invert_yaxis()
    below.set_xlabel("when a job of four minutes is read, in seconds")
    figure.savefig(file, metadata={"Date": None, "Creator": None})


def main() -> int:
    """Measure all schedules, and write the page's section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help="number of jobs")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help="seed of their durations")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the picture to this SVG file")
    options = parser.parse_args()
    if options.plot is not None and find_spec("matplotlib") is None:
        exit_without("matplotlib, which `make .venv/drawing` installs")
    durations = drawn_durations(options.jobs, options.seed)
    others = {name: of(pauses, durations) for name, pauses in OTHERS.items()}
    ours = {name: of_the_action(durations, shape) for name, shape in SHAPES.items()}
    few, even = durations[:ODD_JOBS], even_durations(EVEN_JOBS)
    odd = {name: of_the_action(few, shape) for name, shape in ODD_SHAPES.items()}
    odd["none, `mode: collect`"] = of_the_action(few, silent, collected=True)
    results = Results(
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
    sys.stdout.write(section(results))
    misses = missed(ours, others[FIXED_5_S])
    misses += [miss for miss in missed(ours | {"none": results.even_none}, results.even_fixed) if miss.startswith("none")]
    sys.stdout.writelines(["\n", *(f"Goal missed: {miss}\n" for miss in misses)] if misses else ["\nEach goal is met.\n"])
    return MISSED if misses else 0


if __name__ == "__main__":
    sys.exit(main())
