"""Measures a step with many domains, and when a matrix of jobs is better: `python -m bench.scale`.

In virtual time, the whole action runs with the simulated platform. The duration of an export is
drawn from the domain's name, so a domain is the same in each step. Every step is a separate
process, which reports its peak memory. On real sockets, the action's entry point exports many
domains in parallel, with download and unpacking.

GitHub's limits are from docs.github.com/en/actions/reference/limits (6 hours per job, 20 parallel
jobs on the free plan), the syntax of workflows (1 MB of outputs per job, in UTF-16), and "Viewing
job execution time" (each job's time is rounded up to the next minute).
"""

import heapq
import io
import math
import random
import re
import sys
import tempfile
import threading
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import requests
from bench.common import options_of, table, write_section

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.runner import run_action
from docs_platform_action.http.pacing import GAP_SECONDS
from tests.action import run_virtually
from tests.virtual_platform import Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

STEPS: Final = ((1, 10), (100, 10), (100, 100), (1000, 10), (1000, 100))
"""Domains and `max-parallel`."""
ALONE: Final = 100
"""Domains that are also exported in separate steps, and on real sockets."""
MAX_RUN_SECONDS: Final = 120.0

MAX_REQUESTS: Final = 1.1
MAX_MEMORY: Final = 2.0
EXTRA_THREADS: Final = 3
"""Threads besides `max-parallel`: the main thread and two of the clock."""
REQUESTS_PER_SECOND: Final = round(1 / GAP_SECONDS)
MAX_MIB: Final = 96
PERIOD_SECONDS: Final = 10.0
MAX_IN_PERIOD: Final = REQUESTS_PER_SECOND * (PERIOD_SECONDS + 1)
"""The period is longer than a second: on a busy machine, requests arrive less evenly than sent."""

MAX_RESULTS_CHARACTERS: Final = 524_288
TOKEN_CHARACTERS: Final = 900
"""The approximate length of a session token in a presigned link."""
MAX_JOB_SECONDS: Final = 6 * 3600
MAX_MATRIX: Final = 256
MATRIX_JOBS: Final = 20

LINK: Final = (
    f"https://exports.s3.eu-central-1.amazonaws.com/bundle.tar.gz?X-Amz-Signature={'0' * 274}"
)
"""A link as long as a presigned one without a session token: 350 characters."""
ENTRYPOINT: Final = Path(__file__).with_name("measured_entrypoint.py")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a step in virtual time."""

    domains: int
    max_parallel: int
    requests: int
    most_in_a_second: int
    threads: int
    seconds: float
    results_characters: int
    peak_mib: float

    @property
    def requests_per_domain(self) -> float:
        """The mean number of requests."""
        return self.requests / self.domains


@dataclass(frozen=True, kw_only=True)
class RealRun:
    """The cost of a step on real sockets."""

    peak_mib: float
    requests: int
    most_in_period: int


class NoLog(io.StringIO):
    """A log that keeps nothing."""

    def write(self, text: str) -> int:
        """Drop the text."""
        return len(text)


class Platform(VirtualPlatform):
    """Counts requests and threads without keeping requests."""

    def __init__(self, clock: VirtualClock, domains: Sequence[str]) -> None:
        chance = random.Random(1)  # noqa: S311  # not for secrets
        super().__init__(
            clock,
            seconds=lambda _: chance.uniform(0.05, 0.3),
            keep_requests=False,
            queue_share=0.05,
        )
        for domain in domains:
            plan = ExportPlan(seconds=export_seconds(domain), bundle=b"")
            self.simulator.plan_export(domain, plan)
        self.simulator.override("make_bundle", lambda bundle: bundle | {"bundleUrl": LINK})
        self._threads_before = threading.active_count() - 1
        self.threads = 0
        self.moments: list[float] = []

    def respond(self, sent: Sent) -> requests.Response:
        """Count a request, and respond to it."""
        self.moments.append(self.clock.elapsed)
        self.threads = max(self.threads, threading.active_count() - self._threads_before)
        return super().respond(sent)


def main() -> int:
    """Measure every step, and write the section."""
    options = options_of(__doc__).parse_args()
    share = 0.01 if options.smallest else 1.0
    names = names_of(2 if options.smallest else ALONE)
    # a new process for each step
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        steps = []
        for domains, max_parallel in STEPS:
            step_names = names_of(max(int(domains * share), 1))
            steps.append(pool.submit(cost_of_step, step_names, max_parallel))
        costs = [step.result() for step in steps]
        alone = pool.submit(requests_alone, names).result()
    return report(costs, alone, on_real_sockets(len(names)))


def names_of(domains: int) -> list[str]:
    """Return the names of so many domains."""
    return [f"docs-{number}.example.com" for number in range(1, domains + 1)]


def export_seconds(domain: str) -> float:
    """Draw the duration of a domain's export: log-normal, from 8 s to an hour."""
    chance = random.Random(f"1 {domain}")  # noqa: S311  # not for secrets
    return min(max(chance.lognormvariate(math.log(240.0), 1.0), 8.0), 3600.0)


def matrix_seconds(domains: int) -> float:
    """Return the total seconds of a matrix.

    Each export starts as soon as another job ends.
    """
    slots = [0.0] * MATRIX_JOBS
    for name in names_of(domains):
        heapq.heapreplace(slots, slots[0] + export_seconds(name))
    return max(slots)


def cost_of_step(names: Sequence[str], max_parallel: int) -> Cost:
    """Export domains in one step in virtual time."""
    platform = Platform(VirtualClock(), names)
    inputs = {"domain": "\n".join(names), "max-parallel": str(max_parallel), "timeout": "2h"}
    ended = run_virtually(platform, inputs, idle_seconds=1.0, stream=NoLog())
    if ended.exit_code != 0:
        raise SystemExit(f"the run failed: {ended.outputs}")
    process_status = Path("/proc/self/status").read_text()  # proc(5)
    (peak_kib,) = re.findall(r"(?m)^VmHWM:\s+([0-9]+)", process_status)
    return Cost(
        domains=len(names),
        max_parallel=max_parallel,
        requests=len(platform.moments),
        most_in_a_second=most_within(platform.moments, 0.999),  # the clock's seconds are rounded
        threads=platform.threads,
        seconds=platform.moments[-1],
        results_characters=len(ended.outputs["results"]),
        peak_mib=int(peak_kib) / 1024,
    )


def requests_alone(names: Sequence[str]) -> list[int]:
    """Return the number of requests of each domain in a separate step."""
    return [cost_of_step([name], 1).requests for name in names]


def on_real_sockets(domains: int) -> RealRun:
    """Export domains in parallel on real sockets, with all files."""
    names = names_of(domains)
    with (
        tempfile.TemporaryDirectory(prefix="scale-") as folder,
        Simulator(export_seconds=2.0, asset_bytes=1 << 18) as platform,
    ):
        inputs = {
            "base-url": platform.base_url,
            "admin-key": platform.key,
            "domain": "\n".join(names),
            "max-parallel": str(domains),
            "bundle-path": "bundles/{domain}.tar.gz",
            "site-path": "sites/{domain}",
        }
        peak_file = Path(folder, "peak")
        env = {"PEAK_MEMORY_FILE": str(peak_file)}
        run = run_action(
            inputs,
            entrypoint=ENTRYPOINT,
            workspace=Path(folder),
            env=env,
            timeout_seconds=MAX_RUN_SECONDS,
        )
        sites = Path(folder, "sites")
        missing = [name for name in names if not (sites / name / "index.html").is_file()]
        if run.exit_code != 0 or missing or platform.count("start_export") != domains:
            raise SystemExit(
                f"the run failed, and has no site of {missing}:\n{run.stdout}{run.stderr}"
            )
        times = [request.at for request in platform.requests if request.operation != "download"]
        return RealRun(
            peak_mib=int(peak_file.read_text()) / 1024,
            requests=len(times),
            most_in_period=most_within(times, PERIOD_SECONDS),
        )


def most_within(moments: Iterable[float], seconds: float) -> int:
    """Return the maximum number of moments in a window of so many seconds.

    The window excludes its end.
    """
    times = sorted(moments)
    return max(bisect_left(times, at + seconds) - index for index, at in enumerate(times))


def report(costs: list[Cost], alone: list[int], real: RealRun) -> int:
    """Write the section."""
    one = costs[0]
    missed = []
    for cost in costs:
        goals = (
            ("requests, ratio to alone", ratio_to_alone(cost, alone), MAX_REQUESTS),
            ("requests within a second", cost.most_in_a_second, REQUESTS_PER_SECOND),
            ("memory, ratio to one domain", cost.peak_mib / one.peak_mib, MAX_MEMORY),
            ("threads", cost.threads, cost.max_parallel + EXTRA_THREADS),
        )
        for name, value, most in goals:
            if value > most:
                missed.append(f"{cost.domains} domains: {name} {value:.3g}, not {most:g}")
    if real.peak_mib > MAX_MIB:
        missed.append(f"{real.peak_mib:.1f} MiB on real sockets")
    if real.most_in_period > MAX_IN_PERIOD:
        missed.append(f"{real.most_in_period} requests within a period on real sockets")
    return write_section(*one_step_parts(costs, alone, real), *matrix_parts(costs), missed=missed)


def ratio_to_alone(cost: Cost, alone: list[int]) -> float:
    """Return the ratio of the requests per domain to those of the same domains alone."""
    same_domains = alone[: cost.domains]
    return cost.requests_per_domain / (sum(same_domains) / len(same_domains))


def one_step_parts(costs: list[Cost], alone: list[int], real: RealRun) -> list[str]:
    """Return what the section says about steps."""
    one = costs[0]
    rows = [
        f"{cost.domains:,} | {cost.max_parallel} | {cost.requests_per_domain:.1f}"
        f" | {ratio_to_alone(cost, alone):.2f} | {cost.most_in_a_second}"
        f" | {cost.peak_mib / one.peak_mib:.2f} | {cost.threads}"
        for cost in costs
    ]
    head = (
        "domains | `max-parallel` | requests per domain | ratio to alone | most in 1 s"
        " | peak memory / one domain | threads"
    )
    return [
        "## Many domains in one step",
        f"""
        The whole action runs in virtual time. The platform runs any number of exports at once and
        responds within 0.3 s. Exports take 240 s in the median, and from 8 s to an hour. *Ratio to
        alone* compares with separate steps of the same domains, or of the first {len(alone)}.
        """,
        f"""
        Goals: at most {MAX_REQUESTS:g} times the requests alone, {REQUESTS_PER_SECOND} requests
        within a second, {MAX_MEMORY:g} times the memory of one domain, and `max-parallel` threads
        and {EXTRA_THREADS} more.
        """,
        table(head, rows),
        """
        With 100 in parallel, the exports share the pace, so each is polled less often than alone.
        The log, the row and the link of each domain stay in memory until the end.
        """,
        f"""
        On real sockets, {len(alone)} domains in parallel, with download and unpacking, take
        {real.peak_mib:.1f} MiB (goal: {MAX_MIB} MiB) and {real.requests / len(alone):.1f} requests
        per domain, at most {real.most_in_period} within {PERIOD_SECONDS:g} s (goal:
        {MAX_IN_PERIOD:g}).
        """,
    ]


def matrix_parts(costs: list[Cost]) -> list[str]:
    """Return what the section says about a matrix."""
    rows = [matrix_row(cost) for cost in costs if cost.domains > 1]
    by_ten = domains_in_a_job(costs[-2])
    by_hundred = domains_in_a_job(costs[-1])
    characters = costs[-1].results_characters / costs[-1].domains
    short = in_tens(MAX_RESULTS_CHARACTERS / characters)
    long = in_tens(MAX_RESULTS_CHARACTERS / (characters + TOKEN_CHARACTERS))
    head = (
        "domains | `max-parallel` | hours of the step | matrix's time / step's"
        " | matrix's minutes / step's"
    )
    return [
        "### One step, or a matrix of jobs?",
        f"""
        Each step is compared with a matrix of one job per domain, {MATRIX_JOBS} jobs in parallel,
        as on GitHub's free plan. Its time excludes the start of runners and all requests. Minutes
        are billed minutes: each job's time is rounded up.
        """,
        table(head, rows),
        f"""
        In one step, the 6 hours of a job on GitHub's runners are enough for {by_ten:,} domains with
        10 in parallel, and for {by_hundred:,} with 100. The 1 MB of outputs per job is enough for
        the `results` of {short:,} domains, or of {long:,} with session tokens in the links.
        """,
        f"""
        **Recommendation.** Up to about {long:,} domains, use one step, with `max-parallel` as high
        as the number of exports that the platform runs at once. It takes a fraction of the minutes,
        and its domains share one pace. For more domains, or if the sites do not fit on one runner's
        disk, use a matrix in which each job exports a part of the domains.
        """,
    ]


def matrix_row(cost: Cost) -> str:
    """Return the row that compares a step with a matrix of the same domains."""
    matrix_time = "too many jobs"
    if cost.domains <= MAX_MATRIX:
        matrix_time = f"{matrix_seconds(cost.domains) / cost.seconds:.2f}"
    matrix_minutes = sum(billed_minutes(export_seconds(name)) for name in names_of(cost.domains))
    minutes = matrix_minutes / billed_minutes(cost.seconds)
    hours = cost.seconds / 3600
    return f"{cost.domains:,} | {cost.max_parallel} | {hours:.2f} | {matrix_time} | {minutes:.1f}"


def billed_minutes(seconds: float) -> int:
    """Return the minutes that GitHub bills for a job."""
    return math.ceil(seconds / 60)


def domains_in_a_job(cost: Cost) -> int:
    """Return for about how many domains a job's six hours are enough."""
    return in_tens(MAX_JOB_SECONDS / (cost.seconds / cost.domains))


def in_tens(number: float) -> int:
    """Round down to a multiple of ten."""
    return int(number) // 10 * 10


if __name__ == "__main__":
    sys.exit(main())
