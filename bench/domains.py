"""Requests and memory of a step that exports 1, 10 and 100 domains: `python bench/domains.py`.

Each run is the action's own entry point in a process of its own, on the simulated platform over loopback. It downloads and
unpacks every domain's bundle; 100 domains once by the default `max-parallel` and once all at the same time. The platform counts
what came to it, the process tells its highest resident set (`VmHWM`, proc(5)) when it ends, and its threads are counted from
outside.

Ends with 1 when a run needs more than `MOST_MIB`, makes more requests in a second than the action's own bound, or has more jobs
under way than `max-parallel`. What leaves within a second may arrive within a little less, and more of it within a second: so
no stretch of `STRETCH_SECONDS` may have more than the bound.
"""

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from admin_api_simulator import Simulator
from admin_api_simulator.runner import StartedAction, start_action
from docs_platform_action.health import REQUESTS_A_SECOND

MOST_MIB: Final = 96
DOMAINS: Final = (1, 10, 100)
MOST_PARALLEL: Final = (10, 100)
EXPORT_SECONDS: Final = 5.0
ASSET_BYTES: Final = 1 << 18
STRETCH_SECONDS: Final = 0.9
LOOK_SECONDS: Final = 0.01
LONGEST_RUN_SECONDS: Final = 600.0
ENTRYPOINT: Final = Path(__file__).with_name("measured_entrypoint.py")
HEAD: Final = (
    "domains",
    "`max-parallel`",
    "jobs at once",
    "requests",
    "a domain",
    "most in 1 s",
    f"in {STRETCH_SECONDS:g} s",
    "connections",
    "peak memory",
    "beside the first",
    "threads at most",
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a run cost: requests and connections to the API alone, memory in MiB."""

    domains: int
    max_parallel: int
    jobs_at_once: int
    requests: int
    most_in_a_second: int
    most_in_a_stretch: int
    connections: int
    peak_mib: float
    threads: int

    def row(self, first: "Measured") -> str:
        """Return the table's row."""
        cells = (
            self.domains,
            self.max_parallel,
            self.jobs_at_once,
            f"{self.requests:,}",
            f"{self.requests / self.domains:.1f}",
            self.most_in_a_second,
            self.most_in_a_stretch,
            self.connections,
            f"{self.peak_mib:.1f} MiB",
            f"{self.peak_mib / first.peak_mib:.2f}",
            self.threads,
        )
        return _row(cells)

    def beyond(self) -> list[str]:
        """Return which bounds it passed, in words."""
        bounds = (
            ("MiB", self.peak_mib, MOST_MIB),
            (f"requests in {STRETCH_SECONDS:g} s", self.most_in_a_stretch, REQUESTS_A_SECOND),
            ("jobs at once", self.jobs_at_once, self.max_parallel),
        )
        which = f"{self.domains} domains, {self.max_parallel} at a time"
        return [f"{which}: {value:g} {what}, the bound is {bound}" for what, value, bound in bounds if value > bound]


def main() -> int:
    """Measure every case, and write a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", type=int, nargs="+", default=DOMAINS, metavar="N", help="how many domains a step exports")
    parser.add_argument("--max-parallel", type=int, nargs="+", default=MOST_PARALLEL, metavar="N", help="how many at a time")
    options = parser.parse_args()
    sys.stdout.write(_row(HEAD) + _row(["---"] * len(HEAD)))
    runs: list[Measured] = []
    for domains, max_parallel in cases(options.domains, options.max_parallel):
        runs.append(measure(domains, max_parallel))
        sys.stdout.write(runs[-1].row(runs[0]))
        sys.stdout.flush()
    of_requests = f"{REQUESTS_A_SECOND} requests in {STRETCH_SECONDS:g} s"
    sys.stdout.write(f"\nThe bounds: {MOST_MIB} MiB, {of_requests}, `max-parallel` jobs at once.\n")
    beyond = [line for run in runs for line in run.beyond()]
    sys.stdout.writelines(f"Beyond a bound: {line}\n" for line in beyond)
    return 1 if beyond else 0


def cases(domains: Sequence[int], max_parallel: Sequence[int]) -> list[tuple[int, int]]:
    """Pair each number of domains with each bound, but once only where a bound is no bound for it any more."""
    pairs = {(number, min(number, most)): (number, most) for most in reversed(max_parallel) for number in domains}
    return sorted(pairs.values(), key=lambda pair: (pair[0], pair[1]))


def measure(domains: int, max_parallel: int) -> Measured:
    """Export so many domains in one step."""
    names = [f"docs-{number}.example.com" for number in range(1, domains + 1)]
    with (
        tempfile.TemporaryDirectory(prefix="domains-") as folder,
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
            threads = most_threads(started)
            run = started.collect(timeout_seconds=1.0)
        if run.exit_code != 0:
            raise SystemExit(f"the run failed:\n{run.stdout}{run.stderr}")
        missing = [name for name in names if not (workspace / "sites" / name / "index.html").is_file()]
        if missing:
            raise SystemExit(f"the run left no site of {', '.join(missing)}")
        if platform.count("start_export") != domains:
            raise SystemExit(f"the run made {platform.count('start_export')} start requests for {domains} domains")
        return Measured(
            domains=domains,
            max_parallel=max_parallel,
            jobs_at_once=platform.jobs_at_once,
            requests=platform.count() - platform.count("download"),
            most_in_a_second=platform.most_requests(),
            most_in_a_stretch=platform.most_requests(within_seconds=STRETCH_SECONDS),
            connections=platform.connections.api,
            peak_mib=int(told.read_text()) / 1024,
            threads=threads,
        )


def most_threads(started: StartedAction) -> int:
    """Look at a run until it ends, or has no time left; return how many threads it had at most (`Threads`, proc(5))."""
    status = Path(f"/proc/{started.pid}/status")
    deadline = time.monotonic() + LONGEST_RUN_SECONDS
    most = 0
    while started.poll() is None and time.monotonic() < deadline:
        found = re.search(r"^Threads:\s+([0-9]+)$", status.read_text(encoding="utf-8"), re.MULTILINE)
        most = max(most, int(found[1]) if found else 0)
        time.sleep(LOOK_SECONDS)
    return most


def _row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


if __name__ == "__main__":
    sys.exit(main())
