"""Measures a step with many domains, and from which number a matrix of jobs is better: `python bench/scale.py`.

In virtual time: the whole action, with its threads, runs with a virtual transport as the platform (`bench/many_exports.py`). It
responds in 0.05 to 0.3 s and runs any number of exports at once. Durations are drawn from the domain's name, log-normal with a
median of 240 s and a sigma of 1, between 8 s and an hour; 3 in 100 fail at the platform. So a domain is the same in each step.
Each of the first hundred is also exported in a separate step. Every step is a separate process, which reports its processor time
and its highest resident set (`VmHWM`, proc(5)).

On real sockets: the action's entry point in a separate process exports one domain, and a hundred in parallel, from the simulated
platform over loopback, with download and unpacking. The platform counts connections; threads (`Threads`, proc(5)) are counted
from outside.

GitHub's limits are from its documentation: docs.github.com/en/actions/reference/limits (6 hours a job, 256 jobs a matrix, 20 jobs
at once on the free plan), docs.github.com/en/actions/reference/runners/github-hosted-runners (14 GB of disk), the syntax of
workflows (1 MB of outputs a job, in UTF-16), and "Viewing job execution time" (each job's time is rounded up to the next minute).

Exits with 3 if a goal is missed.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from admin_api_simulator import Simulator
from admin_api_simulator.runner import StartedAction, start_action
from docs_platform_action.http.pacing import GAP_SECONDS

STEPS: Final = ((1, 10), (10, 10), (100, 10), (100, 100), (1000, 10), (1000, 100))
"""Domains and `max-parallel`."""

MOST: Final = 1000
ALONE: Final = 100
ON_SOCKETS: Final = 100

MAX_REQUESTS: Final = 1.1
MAX_SECONDS: Final = 1.05
MAX_PROCESSOR: Final = 2.0
MAX_MEMORY: Final = 2.0
EXTRA_THREADS: Final = 3
"""Threads besides `max-parallel`: the main thread and two of the clock."""

MAX_SUMMARY_BYTES: Final = 1_048_576
MAX_RESULTS_CHARACTERS: Final = 524_288
MAX_ERRORS: Final = 10
MAX_JOB_SECONDS: Final = 6 * 3600
MAX_IN_A_MATRIX: Final = 256
AT_ONCE_FOR_FREE: Final = 20
DISK_MB: Final = 14_000
SITES_MB: Final = (10, 100, 1000)
MAX_INPUT_BYTES: Final = 131_072
"""The maximum size of a variable on Linux, and so of an input (`MAX_ARG_STRLEN`, execve(2))."""

NAME_CHARACTERS: Final = 25
TOKEN_CHARACTERS: Final = 900
"""The approximate length of a session token in a presigned link."""


EXPORT_SECONDS: Final = 2.0
ASSET_BYTES: Final = 1 << 18
PERIOD_SECONDS: Final = 10.0
"""The period in which arriving requests are counted. On a busy machine, as with a hundred bundles at once, they arrive less
evenly than they are sent, so the period is longer, and the requests of one second may be late."""

REQUESTS_PER_SECOND: Final = round(1 / GAP_SECONDS)
MAX_IN_PERIOD: Final = REQUESTS_PER_SECOND * (PERIOD_SECONDS + 1)

SAMPLE_SECONDS: Final = 0.01
MAX_RUN_SECONDS: Final = 600.0
MAX_MIB: Final = 96
MISSED: Final = 3
"""The exit code for a missed goal; 1 is an error of the benchmark (`page.py`)."""
ROOT: Final = Path(__file__).parents[1]
ENTRYPOINT: Final = Path(__file__).with_name("measured_entrypoint.py")

Cost = Mapping[str, Any]
"""The fields of `Cost` that `bench/many_exports.py` prints for a step."""


def main() -> int:
    """Measure every case, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, default=MOST, metavar="N", help="domains of the largest steps, at least 100")
    parser.add_argument("--alone", type=int, default=ALONE, metavar="N", help="domains that are also exported in separate steps")
    parser.add_argument("--on-sockets", type=int, default=ON_SOCKETS, metavar="N", help="parallel domains on real sockets")
    options = parser.parse_args()
    steps = [_virtual(f"{domains} {max_parallel}") for domains, max_parallel in STEPS if domains <= options.domains]
    alone = _virtual(f"{options.alone} alone")
    real = [_real(1, 1), _real(options.on_sockets, options.on_sockets)]
    section = Section(steps=steps, alone=alone, real=real)
    sys.stdout.write("".join(section.pieces()))
    missed = [*section.missed()]
    sys.stdout.writelines(f"\nMissed: {line}.\n" for line in missed)
    sys.stdout.write("" if missed else "\nEach goal is met.\n")
    return MISSED if missed else 0


def _virtual(arguments: str) -> Any:
    sys.stderr.write(f"in virtual time: {arguments}\n")
    command = [sys.executable, "-m", "bench.many_exports", *arguments.split()]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603  # our own


@dataclass(frozen=True, kw_only=True)
class Real:
    """The cost of a run on real sockets; `connections` are those to the API."""

    domains: int
    requests: int
    most_in_period: int
    connections: int
    threads: int
    peak_mib: float


@dataclass(frozen=True, kw_only=True)
class Section:
    """The section of the page: the costs of the steps, of each domain in a separate step (`alone`), and of the real runs."""

    steps: Sequence[Cost]
    alone: Sequence[Cost]
    real: Sequence[Real]

    def pieces(self) -> Iterator[str]:
        """Yield the section's parts."""
        alone = len(self.alone)
        yield "## Many domains in one step\n"
        yield _paragraph(
            f"""
            The whole action runs in virtual time, on a platform that runs any number of exports at once and responds within
            0.3 s. Exports take 240 s in the median, at least 8 s and at most an hour, drawn for each domain from a seed. Each
            of the first {alone} domains is also exported in a separate step, for comparison: steps of up to {alone} domains are
            compared with the same domains, those of 1,000 with the mean. (The first domain alone is a short job: what must be
            constant is *ratio to alone*.)
            """
        )
        yield _paragraph(
            f"""
            Goal: the requests per domain are constant, at most {MAX_REQUESTS:g} times those alone, and never more than
            {REQUESTS_PER_SECOND} within a second. The step takes at most {MAX_SECONDS:g} times as long as the exports
            themselves with the same parallelism. The processor time per domain does not grow: with 1,000 domains it is at most
            {MAX_PROCESSOR:g} times that with 100. (With quadratic work it would be 10 times.)
            """
        )
        yield _table(_COSTS, map(self._costs, self.steps))
        yield _paragraph(
            """
            With 100 in parallel the exports share the pace, so each is polled less often than alone. *Delay until the end
            is seen* shows how much later the end is noticed; for one or ten domains the difference is random.
            """
        )
        yield _paragraph(
            f"""
            Goal: at most {MAX_MEMORY:g} times the memory of one domain, `max-parallel` threads and {EXTRA_THREADS} more,
            {MAX_ERRORS} errors, and a summary within GitHub's limit. Each of {self._largest["domains"]:,} domains takes
            {self._kib_per_domain:.0f} KiB more: its log, its row and its link are kept until the end.
            """
        )
        yield _table(_SIZES, map(self._sizes, self.steps))
        yield _paragraph(
            f"""
            On real sockets, all domains in parallel, with download and unpacking. Each request under way has a thread of its own.
            Goal: at most {MAX_MIB} MiB, and {MAX_IN_PERIOD:g} requests within {PERIOD_SECONDS:g} s at the platform,
            where they arrive less evenly than they are sent.
            """
        )
        yield _table(_SOCKETS, map(self._sockets, self.real))
        yield from self._matrix()

    def missed(self) -> Iterator[str]:
        """Describe the missed goals."""
        for cost in self.steps:
            for name, value, most in self._goals(cost):
                if value > most:
                    which = f"{cost['domains']:,} domains, {cost['max_parallel']} in parallel"
                    yield f"{which}: {name} {value:.3g}, the goal is {most:g}"
        for run in self.real:
            for name, value, most in (
                ("MiB", run.peak_mib, MAX_MIB),
                (f"requests within {PERIOD_SECONDS:g} s", run.most_in_period, MAX_IN_PERIOD),
            ):
                if value > most:
                    yield f"{run.domains} domains on real sockets: {name} {value:.3g}, the goal is {most:g}"

    def _goals(self, cost: Cost) -> Sequence[tuple[str, float, float]]:
        return (
            ("requests, ratio to alone", self._ratio_to_alone(cost, "requests"), MAX_REQUESTS),
            ("requests within a second", cost["most_in_a_second"], REQUESTS_PER_SECOND),
            ("jobs at once", cost["max_jobs"], cost["max_parallel"]),
            ("step's time, ratio to the minimum", cost["seconds"] / cost["ideal_seconds"], MAX_SECONDS),
            ("processor time, ratio to 100 domains", self._processor(cost), MAX_PROCESSOR),
            ("memory, ratio to one domain", cost["peak_kib"] / self.steps[0]["peak_kib"], MAX_MEMORY),
            ("threads", cost["threads"], cost["max_parallel"] + EXTRA_THREADS),
            ("errors", cost["errors"], MAX_ERRORS),
            ("bytes of summary", cost["summary_bytes"], MAX_SUMMARY_BYTES),
        )

    def _costs(self, cost: Cost) -> Sequence[object]:
        processor = self._processor(cost)
        return (
            f"{cost['domains']:,}",
            cost["max_parallel"],
            f"{cost['requests'] / cost['domains']:.1f}",
            f"{self._ratio_to_alone(cost, 'requests'):.2f}",
            cost["most_in_a_second"],
            cost["max_jobs"],
            f"{cost['seconds'] / cost['ideal_seconds']:.3f}",
            f"{self._ratio_to_alone(cost, 'late_seconds', total=False):.2f}",
            f"{processor:.2f}" if processor else "",
        )

    def _sizes(self, cost: Cost) -> Sequence[object]:
        return (
            f"{cost['domains']:,}",
            cost["max_parallel"],
            f"{cost['peak_kib'] / self.steps[0]['peak_kib']:.2f}",
            cost["threads"],
            f"{cost['log_lines'] / cost['domains']:.0f}",
            f"{cost['summary_bytes'] / MAX_SUMMARY_BYTES:.1%}",
            f"{cost['results_characters'] / MAX_RESULTS_CHARACTERS:.1%}",
            f"{cost['errors']} of {cost['failed']}",
        )

    def _sockets(self, run: Real) -> Sequence[object]:
        first = self.real[0]
        return (
            run.domains,
            f"{run.requests / run.domains:.1f}",
            run.most_in_period,
            run.connections,
            run.threads,
            f"{run.peak_mib:.1f} MiB",
            f"{run.peak_mib / first.peak_mib:.2f}",
        )

    def _ratio_to_alone(self, cost: Cost, name: str, *, total: bool = True) -> float:
        """Return the ratio of a domain's cost to that of the same domains alone, or of all of these if there are fewer."""
        same = self.alone[: cost["domains"]]
        mine = cost[name] / cost["domains"] if total else cost[name]
        return float(mine / (sum(one[name] for one in same) / len(same)))

    def _processor(self, cost: Cost) -> float:
        """Return the ratio of the processor time per domain to that with 100 domains; 0 for fewer domains."""
        like = next(other for other in self.steps if other["domains"] == 100 and other["max_parallel"] == cost["max_parallel"])
        return float(cost["cpu_seconds"] / cost["domains"] / (like["cpu_seconds"] / 100)) if cost["domains"] >= 100 else 0.0

    @property
    def _largest(self) -> Cost:
        return max(self.steps, key=lambda cost: (cost["domains"], cost["peak_kib"]))

    @property
    def _kib_per_domain(self) -> float:
        one, many = self.steps[0], self._largest
        return float((many["peak_kib"] - one["peak_kib"]) / (many["domains"] - 1))

    def _matrix(self) -> Iterator[str]:
        """Yield the comparison with a matrix, from the measurements and GitHub's limits."""
        ten, hundred = (next(cost for cost in reversed(self.steps) if cost["max_parallel"] == most) for most in (10, 100))
        characters = hundred["results_characters"] / hundred["domains"]
        short, long = (_rounded(MAX_RESULTS_CHARACTERS / (characters + token)) for token in (0, TOKEN_CHARACTERS))
        by_ten, by_hundred = (_rounded(MAX_JOB_SECONDS / (cost["seconds"] / cost["domains"])) for cost in (ten, hundred))
        yield "\n### One step, or a matrix of jobs?\n"
        yield _paragraph(
            f"""
            Each step is compared with a matrix of one job per domain, {AT_ONCE_FOR_FREE} jobs in parallel, as on GitHub's free
            plan. The matrix's time excludes the start of runners, requests and delays. Minutes are those that GitHub bills:
            each job's time is rounded up, and a runner waits while its export runs.
            """
        )
        yield _table(_MATRIX, map(self._ratio_to_matrix, self.steps))
        yield _paragraph("The maximum number of domains in one step for each limit:")
        named = _rounded(MAX_INPUT_BYTES / (NAME_CHARACTERS + 1))
        disk = " / ".join(f"{DISK_MB // megabytes:,}" for megabytes in SITES_MB)
        sites = " / ".join(f"{megabytes:,}" for megabytes in SITES_MB)
        yield _table(
            ("limit", "10 in parallel", "100 in parallel"),
            [
                ("1 MB of outputs per job, with links of 350 characters in `results`", *[f"{short:,}"] * 2),
                (f"the same, with session tokens of {TOKEN_CHARACTERS} characters in the links", *[f"{long:,}"] * 2),
                ("6 hours per job on GitHub's runners", f"{by_ten:,}", f"{by_hundred:,}"),
                (f"128 KiB for the input `domain`, with names of {NAME_CHARACTERS} characters", *[f"{named:,}"] * 2),
                (f"{DISK_MB / 1000:g} GB of disk, with {sites} MB per bundle and site", *[disk] * 2),
            ],
        )
        yield _paragraph(
            f"""
            **Recommendation.** Up to about {long:,} domains, if their files fit on the runner's disk, use one step, with
            `max-parallel` as high as the number of exports that the platform runs at once. It takes a fraction of the minutes,
            and sends the platform at most {REQUESTS_PER_SECOND} requests per second, while jobs of a matrix do not know about
            each other's requests and `Retry-After`. With 10 in parallel, half as many as the matrix's jobs, it takes somewhat
            longer than the matrix; with 100 it is faster. If no other job needs all of `results`, one step is enough for
            {by_ten:,} domains with 10 in parallel, and for {by_hundred:,} with 100.
            """
        )
        yield _paragraph(
            f"""
            For more domains, or if bundles and sites do not fit on one runner's disk, use a matrix of chunks, each with as many
            domains as the table allows. To save time, a matrix is only useful if the platform and the plan run more than 100
            exports at once. The platform must run `max-parallel` exports for each parallel job. A matrix with one domain per job
            is for steps after the export, and is limited to {MAX_IN_A_MATRIX} jobs.
            """
        )

    def _ratio_to_matrix(self, cost: Cost) -> Sequence[object]:
        jobs, minutes = cost["domains"], math.ceil(cost["seconds"] / 60)
        return (
            f"{jobs:,}",
            cost["max_parallel"],
            f"{cost['seconds'] / 3600:.2f}",
            f"{cost['seconds'] / MAX_JOB_SECONDS:.2f}",
            f"{cost['matrix_seconds'] / cost['seconds']:.2f}" if jobs <= MAX_IN_A_MATRIX else "too many jobs",
            f"{cost['matrix_minutes'] / minutes:.1f}",
            self._first_limit(cost),
        )

    @staticmethod
    def _first_limit(cost: Cost) -> str:
        exceeded = [
            name
            for name, is_so in (
                ("6 hours", cost["seconds"] > MAX_JOB_SECONDS),
                ("1 MB of outputs", cost["results_characters"] > MAX_RESULTS_CHARACTERS),
            )
            if is_so
        ]
        return ", ".join(exceeded) or "none"


_COSTS: Final = (
    "domains",
    "`max-parallel`",
    "requests per domain",
    "ratio to alone",
    "most in 1 s",
    "parallel jobs",
    "step's time / minimum",
    "delay until the end is seen / alone",
    "processor time per domain / with 100",
)
_SIZES: Final = (
    "domains",
    "`max-parallel`",
    "peak memory / one domain",
    "threads",
    "log lines per domain",
    "summary / limit",
    "`results` / limit of a job's outputs",
    "error annotations of failed domains",
)
_SOCKETS: Final = (
    "domains",
    "requests per domain",
    f"most in {PERIOD_SECONDS:g} s",
    "connections",
    "most threads",
    "peak memory",
    "ratio to one domain",
)
_MATRIX: Final = (
    "domains",
    "`max-parallel`",
    "hours of the step",
    "share of a job's 6 hours",
    "matrix's time / step's time",
    "matrix's minutes / step's minutes",
    "exceeded limits",
)


def _real(domains: int, max_parallel: int) -> Real:
    """Export domains in one step on real sockets, with all files."""
    sys.stderr.write(f"on real sockets: {domains} {max_parallel}\n")
    names = [f"docs-{number}.example.com" for number in range(1, domains + 1)]
    with (
        tempfile.TemporaryDirectory(prefix="scale-") as folder,
        Simulator(export_seconds=EXPORT_SECONDS, asset_bytes=ASSET_BYTES) as platform,
    ):
        workspace, peak_file = Path(folder, "workspace"), Path(folder, "peak")
        workspace.mkdir()
        inputs = {
            "base-url": platform.base_url,
            "admin-key": platform.key,
            "domain": "\n".join(names),
            "max-parallel": str(max_parallel),
            "bundle-path": "bundles/{domain}.tar.gz",
            "site-path": "sites/{domain}",
        }
        with start_action(
            inputs, entrypoint=ENTRYPOINT, workspace=workspace, env={"PEAK_MEMORY_FILE": str(peak_file)}
        ) as started:
            threads = _most_threads(started)
            run = started.collect(timeout_seconds=1.0)
        if run.exit_code != 0:
            raise SystemExit(f"the run failed:\n{run.stdout}{run.stderr}")
        missing = [name for name in names if not (workspace / "sites" / name / "index.html").is_file()]
        if missing or platform.count("start_export") != domains:
            raise SystemExit(f"{platform.count('start_export')} starts for {domains} domains, and no site of {missing}")
        return Real(
            domains=domains,
            requests=platform.count() - platform.count("download"),
            most_in_period=platform.max_requests(within_seconds=PERIOD_SECONDS),
            connections=platform.connections.api,
            threads=threads,
            peak_mib=int(peak_file.read_text()) / 1024,
        )


def _most_threads(started: StartedAction) -> int:
    """Return the maximum number of a run's threads (`Threads`, proc(5)), sampled until it ends or times out."""
    status = Path(f"/proc/{started.pid}/status")
    deadline = time.monotonic() + MAX_RUN_SECONDS
    most = 0
    while started.poll() is None and time.monotonic() < deadline:
        found = re.search(r"^Threads:\s+([0-9]+)$", status.read_text(encoding="utf-8"), re.MULTILINE)
        most = max(most, int(found[1]) if found else 0)
        time.sleep(SAMPLE_SECONDS)
    return most


def _rounded(count: float) -> int:
    """Round a count down to two digits, because it depends on random lengths."""
    digits = 10 ** max(int(math.log10(count)) - 1, 0)
    return int(count // digits * digits)


def _paragraph(text: str) -> str:
    return f"\n{textwrap.fill(' '.join(text.split()), width=130, break_long_words=False, break_on_hyphens=False)}\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n" + "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main())
