"""Measures a step with many domains, and when a matrix of jobs is better: `python -m bench.scale`.

In virtual time, the whole action runs with the simulated platform. The duration of an export is drawn from the domain's name, so
a domain is the same in each step. Every step is a separate process, which reports its peak memory. On real sockets, the action's
entry point exports many domains in parallel, with download and unpacking.

GitHub's limits are from docs.github.com/en/actions/reference/limits (6 hours per job, 20 parallel jobs on the free plan), the
syntax of workflows (1 MB of outputs per job, in UTF-16), and "Viewing job execution time" (each job's time is rounded up to the
next minute).
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
"""On a busy machine, requests arrive less evenly than they are sent, so the period is longer than a second."""

MAX_RESULTS_CHARACTERS: Final = 524_288
TOKEN_CHARACTERS: Final = 900
"""The approximate length of a session token in a presigned link."""
MAX_JOB_SECONDS: Final = 6 * 3600
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
            self.simulator.plan_export(
                domain, ExportPlan(seconds=export_seconds(domain), bundle=b"")
            )
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
    steps = (
        [(max(domains // 100, 1), most) for domains, most in STEPS] if options.smallest else STEPS
    )
    names = names_of(2 if options.smallest else ALONE)
    # a new process for each step
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        costs = list(
            pool.map(
                cost_of_step,
                *zip(*((names_of(domains), most) for domains, most in steps), strict=True),
            )
        )
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
    """Return the total seconds of a matrix in which each export starts as soon as another job ends."""
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
    (peak_kib,) = re.findall(
        r"(?m)^VmHWM:\s+([0-9]+)", Path("/proc/self/status").read_text()
    )  # proc(5)
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


def on_real_sockets(domains: int) -> tuple[float, int, int]:
    """Export domains in parallel on real sockets, with all files; return the peak memory, all requests, and most in a period."""
    names = names_of(domains)
    with (
        tempfile.TemporaryDirectory(prefix="scale-") as folder,
        Simulator(export_seconds=2.0, asset_bytes=1 << 18) as platform,
    ):
        inputs = {
            "base-url": platform.base_url,
            "admin-key": platform.key,
            "domain": "\n".join(names),
        }
        inputs |= {
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
        missing = [
            name for name in names if not Path(folder, "sites", name, "index.html").is_file()
        ]
        if run.exit_code != 0 or missing or platform.count("start_export") != domains:
            raise SystemExit(
                f"the run failed, and has no site of {missing}:\n{run.stdout}{run.stderr}"
            )
        times = [request.at for request in platform.requests if request.operation != "download"]
        return int(peak_file.read_text()) / 1024, len(times), most_within(times, PERIOD_SECONDS)


def most_within(moments: Iterable[float], seconds: float) -> int:
    """Return the maximum number of moments in a window of so many seconds, which excludes its end."""
    times = sorted(moments)
    return max(bisect_left(times, at + seconds) - index for index, at in enumerate(times))


def report(costs: list[Cost], alone: list[int], real: tuple[float, int, int]) -> int:
    """Write the section."""
    one, *_, ten, hundred = costs
    characters = hundred.results_characters / hundred.domains
    short, long = (
        int(MAX_RESULTS_CHARACTERS / (characters + token)) // 10 * 10
        for token in (0, TOKEN_CHARACTERS)
    )
    by_ten, by_hundred = (
        int(MAX_JOB_SECONDS / (cost.seconds / cost.domains)) // 10 * 10 for cost in (ten, hundred)
    )
    real_mib, real_requests, most_in_period = real
    rows, matrix_rows, missed = [], [], []
    for cost in costs:
        same = alone[: cost.domains]
        ratio = cost.requests / cost.domains / (sum(same) / len(same))
        memory = cost.peak_mib / one.peak_mib
        step = f"{cost.domains:,} | {cost.max_parallel}"
        rows.append(
            f"{step} | {cost.requests / cost.domains:.1f} | {ratio:.2f} | {cost.most_in_a_second} | {memory:.2f} | {cost.threads}"
        )
        matrix_time = (
            f"{matrix_seconds(cost.domains) / cost.seconds:.2f}"
            if cost.domains <= 256
            else "too many jobs"
        )
        minutes = sum(
            math.ceil(export_seconds(name) / 60) for name in names_of(cost.domains)
        ) / math.ceil(cost.seconds / 60)
        matrix_rows += (
            [f"{step} | {cost.seconds / 3600:.2f} | {matrix_time} | {minutes:.1f}"]
            if cost.domains > 1
            else []
        )
        goals = (
            ("requests, ratio to alone", ratio, MAX_REQUESTS),
            ("requests within a second", cost.most_in_a_second, REQUESTS_PER_SECOND),
            ("memory, ratio to one domain", memory, MAX_MEMORY),
            ("threads", cost.threads, cost.max_parallel + EXTRA_THREADS),
        )
        missed += [
            f"{cost.domains} domains: {name} {value:.3g}, not {most:g}"
            for name, value, most in goals
            if value > most
        ]
    missed += [f"{real_mib:.1f} MiB on real sockets"] if real_mib > MAX_MIB else []
    missed += (
        [f"{most_in_period} requests within a period on real sockets"]
        if most_in_period > MAX_IN_PERIOD
        else []
    )
    return write_section(
        "## Many domains in one step",
        f"""
        The whole action runs in virtual time. The platform runs any number of exports at once and responds within 0.3 s. Exports
        take 240 s in the median, and from 8 s to an hour. *Ratio to alone* compares with separate steps of the same domains, or
        of the first {len(alone)}.
        """,
        f"""
        Goals: at most {MAX_REQUESTS:g} times the requests alone, {REQUESTS_PER_SECOND} requests within a second, {MAX_MEMORY:g}
        times the memory of one domain, and `max-parallel` threads and {EXTRA_THREADS} more.
        """,
        table(
            "domains | `max-parallel` | requests per domain | ratio to alone | most in 1 s | peak memory / one domain | threads",
            rows,
        ),
        """
        With 100 in parallel, the exports share the pace, so each is polled less often than alone. The log, the row and the link
        of each domain stay in memory until the end.
        """,
        f"""
        On real sockets, {len(alone)} domains in parallel, with download and unpacking, take {real_mib:.1f} MiB (goal: {MAX_MIB}
        MiB) and {real_requests / len(alone):.1f} requests per domain, at most {most_in_period} within {PERIOD_SECONDS:g} s (goal:
        {MAX_IN_PERIOD:g}).
        """,
        "### One step, or a matrix of jobs?",
        f"""
        Each step is compared with a matrix of one job per domain, {MATRIX_JOBS} jobs in parallel, as on GitHub's free plan. Its
        time excludes the start of runners and all requests. Minutes are billed minutes: each job's time is rounded up.
        """,
        table(
            "domains | `max-parallel` | hours of the step | matrix's time / step's | matrix's minutes / step's",
            matrix_rows,
        ),
        f"""
        In one step, the 6 hours of a job on GitHub's runners are enough for {by_ten:,} domains with 10 in parallel, and for
        {by_hundred:,} with 100. The 1 MB of outputs per job is enough for the `results` of {short:,} domains, or of {long:,} with
        session tokens in the links.
        """,
        f"""
        **Recommendation.** Up to about {long:,} domains, use one step, with `max-parallel` as high as the number of exports that
        the platform runs at once. It takes a fraction of the minutes, and its domains share one pace. For more domains, or if the
        sites do not fit on one runner's disk, use a matrix in which each job exports a part of the domains.
        """,
        missed=missed,
    )


if __name__ == "__main__":
    sys.exit(main())
