"""What many domains in one step cost, and from where on a matrix of jobs is the better tool: `python bench/scale.py`.

In virtual time: the whole action, with its own threads, runs on a platform below requests (`tests/many_exports.py`) which answers
in 0.05 to 0.3 s and runs any number of exports at once. How long each takes is drawn from its domain's name, log-normal with a
median of 240 s and a sigma of 1, between 8 s and an hour; 3 in 100 fail at the platform. So a domain is the same in each step,
and each of the first hundred is exported in a step of its own as well. Every step is a process of its own, which tells its
processor time and its highest resident set (`VmHWM`, proc(5)).

On real sockets: the action's own entry point in a process of its own exports one domain, and a hundred all at once, from the
simulated platform over loopback, with download and unpacking. The platform counts connections; threads (`Threads`, proc(5)) are
counted from outside.

GitHub's limits are from its documentation: docs.github.com/en/actions/reference/limits (6 hours a job, 256 jobs a matrix, 20 jobs
at once on the free plan), docs.github.com/en/actions/reference/runners/github-hosted-runners (14 GB of disk), the syntax of
workflows (1 MB of outputs a job, in UTF-16), and "Viewing job execution time" (each job's time is rounded up to the next minute).

Ends with 3 when a goal is missed.
"""

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
from docs_platform_action.http.rate_limit import REQUESTS_PER_SECOND

STEPS: Final = ((1, 10), (10, 10), (100, 10), (100, 100), (1000, 10), (1000, 100))
"""Domains, and how many of them at the same time."""

ALONE: Final = 100

MAX_REQUESTS: Final = 1.1
MAX_SECONDS: Final = 1.05
MAX_PROCESSOR: Final = 2.0
MAX_MEMORY: Final = 2.0
FURTHER_THREADS: Final = 3
"""Beside `max-parallel`: the process's first one, and two of the clock's."""

MAX_SUMMARY_BYTES: Final = 1_048_576
MAX_RESULTS_CHARACTERS: Final = 524_288
MAX_ERRORS: Final = 10
MAX_JOB_SECONDS: Final = 6 * 3600
MAX_IN_A_MATRIX: Final = 256
AT_ONCE_FOR_FREE: Final = 20
DISK_MB: Final = 14_000
SITES_MB: Final = (10, 100, 1000)
MAX_INPUT_BYTES: Final = 131_072
"""What Linux takes in one variable, in which an input comes to the container (`MAX_ARG_STRLEN`, execve(2))."""

NAME_CHARACTERS: Final = 25
TOKEN_CHARACTERS: Final = 900
"""What the token of a session adds to a presigned link, about."""


EXPORT_SECONDS: Final = 2.0
ASSET_BYTES: Final = 1 << 18
STRETCH_SECONDS: Final = 10.0
"""Requests arrive closer together than they left when the machine is busy, which a hundred bundles at once keep it: so those that
arrive are counted over longer than those that leave, and a second's worth of them may be late."""

MAX_IN_A_STRETCH: Final = REQUESTS_PER_SECOND * (STRETCH_SECONDS + 1)

LOOK_SECONDS: Final = 0.01
MAX_RUN_SECONDS: Final = 600.0
MAX_MIB: Final = 96
MISSED: Final = 3
"""What a benchmark ends with when a goal is missed; 1 is a fault of its own (`page.py`)."""
ROOT: Final = Path(__file__).parents[1]
ENTRYPOINT: Final = Path(__file__).with_name("measured_entrypoint.py")

Cost = Mapping[str, Any]
"""What `tests/many_exports.py` tells of a step: its `Cost`, by name."""


def main() -> int:
    """Measure every case, and write the section."""
    told = [_told(f"{domains} {max_parallel}") for domains, max_parallel in STEPS]
    alone = _told(f"{ALONE} alone")
    real = [_real(1, 1), _real(100, 100)]
    section = Section(steps=told, alone=alone, real=real)
    sys.stdout.write("".join(section.pieces()))
    missed = [*section.missed()]
    sys.stdout.writelines(f"\nMissed: {line}.\n" for line in missed)
    sys.stdout.write("" if missed else "\nEach goal is met.\n")
    return MISSED if missed else 0


def _told(arguments: str) -> Any:
    sys.stderr.write(f"in virtual time: {arguments}\n")
    command = [sys.executable, "-m", "tests.many_exports", *arguments.split()]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603  # our own


@dataclass(frozen=True, kw_only=True)
class Real:
    """What a run on real sockets cost: connections to the API alone, memory in MiB."""

    domains: int
    requests: int
    most_in_a_stretch: int
    connections: int
    threads: int
    peak_mib: float


@dataclass(frozen=True, kw_only=True)
class Section:
    """The section of the page: of each step its cost, `alone` of each domain in a step of its own, and the real runs."""

    steps: Sequence[Cost]
    alone: Sequence[Cost]
    real: Sequence[Real]

    def pieces(self) -> Iterator[str]:
        """Write it, piece by piece."""
        yield "## Many domains in one step\n"
        yield _paragraph(
            f"""
            The whole action runs in virtual time, on a platform that runs any number of exports at once and takes up to 0.3 s
            for an answer. Exports take 240 s in the median, at least 8 s and at most an hour, drawn for each domain from a
            seed. Each of the first {ALONE} domains is exported in a step of its own as well: with that the first {ALONE} are
            compared one by one, and 1,000 with the mean. (The first alone is a short job: what is to be flat is *beside alone*.)
            """
        )
        yield _paragraph(
            f"""
            Goal: requests a domain are flat, at most {MAX_REQUESTS:g} times those alone, and never more than
            {REQUESTS_PER_SECOND} within a second. The step takes at most {MAX_SECONDS:g} times what the exports take by
            themselves, so many at a time. The processor's work for a domain does not grow: at 1,000 it is at most
            {MAX_PROCESSOR:g} times that at 100. (Work in the square of the domains would be 10 times that.)
            """
        )
        yield _table(_COSTS, map(self._costs, self.steps))
        yield _paragraph(
            """
            By 100 at a time the bound on requests is what the exports share, so each is read less often than it would be alone.
            How much later its end is seen for that, *delay of seeing the end* tells; of ten domains or one it is chance.
            """
        )
        yield _paragraph(
            f"""
            Goal: at most {MAX_MEMORY:g} times the memory of one domain, `max-parallel` threads and {FURTHER_THREADS} more,
            {MAX_ERRORS} errors, and a summary that GitHub takes. Each of 1,000 domains takes {self._kib_a_domain:.0f} KiB
            more: its log, its record and its link are kept until the end.
            """
        )
        yield _table(_SIZES, map(self._sizes, self.steps))
        yield _paragraph(
            f"""
            On real sockets, all domains at once, with download and unpacking. One thread ends every exchange that takes too
            long. Goal: at most {MAX_MIB} MiB, and {MAX_IN_A_STRETCH:g} requests within {STRETCH_SECONDS:g} s at the platform,
            where they arrive less evenly than they left.
            """
        )
        yield _table(_SOCKETS, map(self._sockets, self.real))
        yield from self._matrix()

    def missed(self) -> Iterator[str]:
        """Name the goals that are missed, in words."""
        for cost in self.steps:
            for name, value, most in self._goals(cost):
                if value > most:
                    which = f"{cost['domains']:,} domains, {cost['max_parallel']} at a time"
                    yield f"{which}: {name} {value:.3g}, the goal is {most:g}"
        for run in self.real:
            for name, value, most in (
                ("MiB", run.peak_mib, MAX_MIB),
                (f"requests within {STRETCH_SECONDS:g} s", run.most_in_a_stretch, MAX_IN_A_STRETCH),
            ):
                if value > most:
                    yield f"{run.domains} domains on real sockets: {name} {value:.3g}, the goal is {most:g}"

    def _goals(self, cost: Cost) -> Sequence[tuple[str, float, float]]:
        return (
            ("requests beside alone", self._beside_alone(cost, "requests"), MAX_REQUESTS),
            ("requests within a second", cost["most_in_a_second"], REQUESTS_PER_SECOND),
            ("jobs at once", cost["max_jobs"], cost["max_parallel"]),
            ("step beside the shortest", cost["seconds"] / cost["ideal_seconds"], MAX_SECONDS),
            ("processor beside 100 domains", self._processor(cost), MAX_PROCESSOR),
            ("memory beside one", cost["peak_kib"] / self.steps[0]["peak_kib"], MAX_MEMORY),
            ("threads", cost["threads"], cost["max_parallel"] + FURTHER_THREADS),
            ("errors", cost["errors"], MAX_ERRORS),
            ("bytes of summary", cost["summary_bytes"], MAX_SUMMARY_BYTES),
        )

    def _costs(self, cost: Cost) -> Sequence[object]:
        processor = self._processor(cost)
        return (
            f"{cost['domains']:,}",
            cost["max_parallel"],
            f"{cost['requests'] / cost['domains']:.1f}",
            f"{self._beside_alone(cost, 'requests'):.2f}",
            cost["most_in_a_second"],
            cost["max_jobs"],
            f"{cost['seconds'] / cost['ideal_seconds']:.3f}",
            f"{self._beside_alone(cost, 'late_seconds', total=False):.2f}",
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
            run.most_in_a_stretch,
            run.connections,
            run.threads,
            f"{run.peak_mib:.1f} MiB",
            f"{run.peak_mib / first.peak_mib:.2f}",
        )

    def _beside_alone(self, cost: Cost, name: str, *, total: bool = True) -> float:
        """Compare what a domain costs with what the same domains cost alone, or all of these where there are not as many."""
        same = self.alone[: cost["domains"]]
        mine = cost[name] / cost["domains"] if total else cost[name]
        return float(mine / (sum(one[name] for one in same) / len(same)))

    def _processor(self, cost: Cost) -> float:
        """Compare the processor's work for each domain with that of 100 domains, as many at a time; 0 where there are fewer."""
        like = next(other for other in self.steps if other["domains"] == 100 and other["max_parallel"] == cost["max_parallel"])
        return float(cost["cpu_seconds"] / cost["domains"] / (like["cpu_seconds"] / 100)) if cost["domains"] >= 100 else 0.0

    @property
    def _kib_a_domain(self) -> float:
        one, many = self.steps[0], max(self.steps, key=lambda cost: (cost["domains"], cost["peak_kib"]))
        return float((many["peak_kib"] - one["peak_kib"]) / (many["domains"] - 1))

    def _matrix(self) -> Iterator[str]:
        """Tell from where on a matrix is better, by what was measured and GitHub's limits."""
        ten, hundred = (next(cost for cost in reversed(self.steps) if cost["max_parallel"] == most) for most in (10, 100))
        characters = hundred["results_characters"] / hundred["domains"]
        short, long = (_rounded(MAX_RESULTS_CHARACTERS / (characters + token)) for token in (0, TOKEN_CHARACTERS))
        by_ten, by_hundred = (_rounded(MAX_JOB_SECONDS / (cost["seconds"] / cost["domains"])) for cost in (ten, hundred))
        yield "\n### One step, or a matrix of jobs?\n"
        yield _paragraph(
            f"""
            Beside each step a matrix of one job a domain, {AT_ONCE_FOR_FREE} jobs at once, as GitHub's free plan has. No start
            of a runner is counted there, no request and no delay, which would only add to it. Minutes are those that GitHub
            bills: each job's time is rounded up, and a runner stands idle for as long as its export runs.
            """
        )
        yield _table(_MATRIX, map(self._beside_matrix, self.steps))
        yield _paragraph("How many domains each limit of one step takes:")
        named = _rounded(MAX_INPUT_BYTES / (NAME_CHARACTERS + 1))
        disk = " / ".join(f"{DISK_MB // megabytes:,}" for megabytes in SITES_MB)
        sites = " / ".join(f"{megabytes:,}" for megabytes in SITES_MB)
        yield _table(
            ("limit", "10 at a time", "100 at a time"),
            [
                ("1 MB of outputs a job, with links of 350 characters in `results`", *[f"{short:,}"] * 2),
                (f"the same, with a token of {TOKEN_CHARACTERS} more in each", *[f"{long:,}"] * 2),
                ("6 hours that a job may take on GitHub's runners", f"{by_ten:,}", f"{by_hundred:,}"),
                (f"128 KiB of the input `domain`, with names of {NAME_CHARACTERS} characters", *[f"{named:,}"] * 2),
                (f"{DISK_MB / 1000:g} GB of disk, where bundle and site take {sites} MB together", *[disk] * 2),
            ],
        )
        yield _paragraph(
            f"""
            **The rule.** Up to about {long:,} domains, if what they become fits on the runner's disk, one step is the better
            tool, with `max-parallel` as high as the number of exports that the platform runs at once. It takes a fraction of
            the minutes, and asks the platform {REQUESTS_PER_SECOND} times a second at most, where jobs of a matrix know nothing
            of each other's requests and `Retry-After`. By 10 at a time, half as many as the matrix's jobs, it takes somewhat
            longer than the matrix; by 100 it is sooner over. Where no other job needs the whole of `results`, one step does for
            {by_ten:,} domains by 10 at a time, and for {by_hundred:,} by 100.
            """
        )
        yield _paragraph(
            f"""
            Beyond that, or where bundles and sites do not fit on one runner's disk, take a matrix of chunks, each with as many
            domains as the table allows; for time alone it is worth one where platform and plan run more than 100 exports at
            once. The platform has to run `max-parallel` exports for each job that runs at once. A matrix of one domain a job is
            for what comes after the export, and ends at {MAX_IN_A_MATRIX} jobs.
            """
        )

    def _beside_matrix(self, cost: Cost) -> Sequence[object]:
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
        passed = [
            name
            for name, is_so in (
                ("6 hours", cost["seconds"] > MAX_JOB_SECONDS),
                ("1 MB of outputs", cost["results_characters"] > MAX_RESULTS_CHARACTERS),
            )
            if is_so
        ]
        return ", ".join(passed) or "none"


_COSTS: Final = (
    "domains",
    "`max-parallel`",
    "requests a domain",
    "beside alone",
    "most in 1 s",
    "jobs at once",
    "step's time / the least possible",
    "delay of seeing the end / alone",
    "processor time a domain / that at 100",
)
_SIZES: Final = (
    "domains",
    "`max-parallel`",
    "peak memory beside one",
    "threads",
    "log lines a domain",
    "summary, of what GitHub takes",
    "`results`, of what a job hands on",
    "error annotations, of failed",
)
_SOCKETS: Final = (
    "domains",
    "requests a domain",
    f"most in {STRETCH_SECONDS:g} s",
    "connections",
    "threads at most",
    "peak memory",
    "beside one",
)
_MATRIX: Final = (
    "domains",
    "`max-parallel`",
    "hours of the step",
    "of the 6 a job has",
    "a matrix's time beside it",
    "a matrix's minutes beside it",
    "limits passed",
)


def _real(domains: int, max_parallel: int) -> Real:
    """Export so many domains in one step, on real sockets, with everything delivered."""
    sys.stderr.write(f"on real sockets: {domains} {max_parallel}\n")
    names = [f"docs-{number}.example.com" for number in range(1, domains + 1)]
    with (
        tempfile.TemporaryDirectory(prefix="scale-") as folder,
        Simulator(export_seconds=EXPORT_SECONDS, asset_bytes=ASSET_BYTES) as platform,
    ):
        workspace, told = Path(folder, "workspace"), Path(folder, "peak")
        workspace.mkdir()
        inputs = {
            "base-url": platform.base_url,
            "admin-key": platform.key,
            "domain": "\n".join(names),
            "max-parallel": str(max_parallel),
            "bundle-path": "bundles/{domain}.tar.gz",
            "site-path": "sites/{domain}",
        }
        with start_action(inputs, entrypoint=ENTRYPOINT, workspace=workspace, env={"PEAK_MEMORY_FILE": str(told)}) as started:
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
            most_in_a_stretch=platform.max_requests(within_seconds=STRETCH_SECONDS),
            connections=platform.connections.api,
            threads=threads,
            peak_mib=int(told.read_text()) / 1024,
        )


def _most_threads(started: StartedAction) -> int:
    """Look at a run until it ends, or has no time left; tell how many threads it had at most (`Threads`, proc(5))."""
    status = Path(f"/proc/{started.pid}/status")
    deadline = time.monotonic() + MAX_RUN_SECONDS
    most = 0
    while started.poll() is None and time.monotonic() < deadline:
        found = re.search(r"^Threads:\s+([0-9]+)$", status.read_text(encoding="utf-8"), re.MULTILINE)
        most = max(most, int(found[1]) if found else 0)
        time.sleep(LOOK_SECONDS)
    return most


def _rounded(count: float) -> int:
    """Round a count down to two digits: it depends on lengths that are drawn."""
    digits = 10 ** max(int(math.log10(count)) - 1, 0)
    return int(count // digits * digits)


def _paragraph(text: str) -> str:
    return f"\n{textwrap.fill(' '.join(text.split()), width=130, break_long_words=False, break_on_hyphens=False)}\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n" + "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    sys.exit(main())
