"""Measures a step of many exports in virtual time: `python -m bench.many_exports DOMAINS MAX_PARALLEL` prints its cost as JSON.

With `alone` as MAX_PARALLEL it exports each domain in a separate step and prints a list of costs.
The whole action runs with the simulated platform, which runs any number of exports at once. The duration and
progress of an export are drawn from the domain's name, so a domain is the same in each step.
"""

import heapq
import io
import json
import math
import random
import re
import statistics
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import requests

from admin_api_simulator import ExportPlan
from tests.action import run_virtually
from tests.virtual_platform import Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

SEED: Final = 1
MEDIAN_SECONDS: Final = 240.0
SIGMA: Final = 1.0
BOUNDS_SECONDS: Final = (8.0, 3600.0)
"""Durations of exports: log-normal, within bounds."""

QUEUE_SHARE: Final = 0.05
ANSWER_SECONDS: Final = (0.05, 0.3)
FAILING: Final = 0.03
"""The share of exports that fail at the platform; never the first, so that a step of one domain succeeds."""

AT_ONCE_IN_A_MATRIX: Final = 20
"""Jobs that GitHub's free plan runs at the same time (source: docs.github.com/en/actions/reference/limits)."""

IDLE_SECONDS: Final = 1.0
LINK: Final = (
    "https://exports.s3.eu-central-1.amazonaws.com/{job}/bundle.tar.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20240601%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20240601T120000Z"
    "&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature={signature:064x}"
)
"""A presigned link of minimum length; one with session credentials also has a token of some hundred characters."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """One export: its seconds in all and in the queue, the exponent of its progress, its pages, and its final status."""

    seconds: float
    queue_seconds: float
    exponent: float
    pages: int
    end: str

    def status_at(self, age: float) -> str:
        """Return the status at an age in seconds."""
        return self.end if age >= self.seconds else "queued" if age < self.queue_seconds else "running"

    def share_at(self, age: float) -> float:
        """Return the completed share at an age in seconds."""
        share = min(max((age - self.queue_seconds) / (self.seconds - self.queue_seconds), 0.0), 1.0)
        return math.pow(share, self.exponent)


def names_of(domains: int) -> Sequence[str]:
    """Return the names of so many domains."""
    return [f"docs-{number}.example.com" for number in range(1, domains + 1)]


def draw(domain: str) -> Export:
    """Draw a domain's export."""
    chance = random.Random(f"{SEED} {domain}")  # noqa: S311  # not for secrets
    shortest, longest = BOUNDS_SECONDS
    seconds = min(max(chance.lognormvariate(math.log(MEDIAN_SECONDS), SIGMA), shortest), longest)
    fails = chance.random() < FAILING and domain != names_of(1)[0]
    return Export(
        seconds=seconds,
        queue_seconds=seconds * QUEUE_SHARE,
        exponent=chance.uniform(0.7, 1.4),
        pages=chance.randint(20, 2000),
        end="failed" if fails else "completed",
    )


def ideal_seconds(seconds: Sequence[float], at_once: int) -> float:
    """Return the total seconds of jobs if each starts as soon as one of `at_once` slots is free."""
    slots = [0.0] * min(at_once, len(seconds))
    for length in seconds:
        heapq.heapreplace(slots, slots[0] + length)
    return max(slots)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a step. Seconds are virtual, except `cpu_seconds`, the CPU time of the process.

    `seconds` is the time to the platform's last response, `ideal_seconds` the time of the jobs alone with the same parallelism,
    `matrix_seconds` their time in a matrix, and `matrix_minutes` what GitHub bills for the matrix. `late_seconds` is the mean
    time between a job's end and the reading that sees it. GitHub counts two bytes for each of the `results_characters`.
    """

    domains: int
    max_parallel: int
    requests: int
    most_in_a_second: int
    max_jobs: int
    seconds: float
    ideal_seconds: float
    matrix_seconds: float
    matrix_minutes: int
    late_seconds: float
    threads: int
    log_lines: int
    log_characters: int
    errors: int
    warnings: int
    summary_bytes: int
    results_characters: int
    failed: int
    cpu_seconds: float
    peak_kib: int


class Platform(VirtualPlatform):
    """Runs the drawn exports, and counts requests without keeping them."""

    def __init__(self, clock: VirtualClock, exports: Mapping[str, Export]) -> None:
        chance = random.Random(SEED)  # noqa: S311  # not for secrets
        super().__init__(clock, seconds=lambda _request: chance.uniform(*ANSWER_SECONDS), keep_requests=False)
        self._exports = exports
        self._threads_before = threading.active_count() - 1
        self._recent: deque[float] = deque()
        self._started: dict[str, float] = {}
        self._seen: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.late_seconds: list[float] = []
        self.seconds = 0.0
        self.most_in_a_second = self.max_jobs = self.threads = 0
        for domain, export in exports.items():
            error = "The site could not be built." if export.end == "failed" else None
            self.simulator.plan_export(domain, ExportPlan(job_id=f"se_{domain}", seconds=export.seconds, error=error, bundle=b""))
        self.simulator.override("start_export", self._start)
        self.simulator.override("read_export", self._read)
        self.simulator.override("make_bundle", self._bundle)

    def respond(self, sent: Sent) -> requests.Response:
        """Count a request, and respond to it."""
        now = self.clock.elapsed
        self._recent.append(now)
        while self._recent[0] < now - 0.999:  # the clock's seconds are rounded
            self._recent.popleft()
        self.most_in_a_second = max(self.most_in_a_second, len(self._recent))
        self.threads = max(self.threads, threading.active_count() - self._threads_before)
        response = super().respond(sent)
        self.seconds = self.clock.elapsed
        return response

    def _start(self, job: dict[str, object]) -> dict[str, object]:
        domain = str(job["jobId"]).removeprefix("se_")
        if domain in self._started:
            raise AssertionError(f"{domain} was started twice")
        self.counts["start"] += 1
        self._started[domain] = self.clock.elapsed
        self.max_jobs = max(self.max_jobs, len(self._started) - len(self._seen))
        return job

    def _read(self, job: dict[str, object]) -> dict[str, object]:
        self.counts["read"] += 1
        domain = str(job["domain"])
        export, age = self._exports[domain], self.clock.elapsed - self._started[domain]
        if job["status"] == export.end:
            if domain in self._seen:
                raise AssertionError(f"{domain} was read after its end was seen")
            self._seen.add(domain)
            self.late_seconds.append(age - export.seconds)
            return job
        share = export.share_at(age)
        return {"status": export.status_at(age), "progress": int(100 * share), "pageCount": int(export.pages * share)}

    def _bundle(self, bundle: dict[str, object]) -> dict[str, object]:
        self.counts["bundle"] += 1
        job = urlsplit(str(bundle["bundleUrl"])).path.split("/")[2]
        return bundle | {"bundleUrl": LINK.format(job=job, signature=random.Random(job).getrandbits(256))}  # noqa: S311  # not for secrets


class _CountedLog(io.StringIO):
    """A log that counts lines, characters and annotations, and keeps nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = self.characters = 0
        self.annotations: Counter[str] = Counter()

    def write(self, text: str) -> int:
        self.lines += text.count("\n")
        self.characters += len(text)
        self.annotations.update(kind for kind in ("error", "warning") if text.startswith((f"::{kind} ", f"::{kind}::")))
        return len(text)


def carry_out(names: Sequence[str], max_parallel: int, *, draw_export: Callable[[str], Export] = draw) -> Cost:
    """Export domains in one step; `draw_export` returns the export of a domain."""
    clock, log = VirtualClock(), _CountedLog()
    exports = {name: draw_export(name) for name in names}
    platform = Platform(clock, exports)
    inputs = {"domain": "\n".join(names), "max-parallel": str(max_parallel), "timeout": "2h"}
    began = time.process_time()
    ended = run_virtually(platform, inputs, seed=SEED, idle_seconds=IDLE_SECONDS, stream=log)
    cpu_seconds = time.process_time() - began
    lengths = [export.seconds for export in exports.values()]
    failed = [row for row in json.loads(ended.outputs["results"]) if row["failureReason"]]
    if any(row["failureReason"] != "job-failed" for row in failed):
        raise AssertionError(failed)
    return Cost(
        domains=len(names),
        max_parallel=max_parallel,
        requests=platform.counts.total(),
        most_in_a_second=platform.most_in_a_second,
        max_jobs=platform.max_jobs,
        seconds=platform.seconds,
        ideal_seconds=ideal_seconds(lengths, max_parallel),
        matrix_seconds=ideal_seconds(lengths, AT_ONCE_IN_A_MATRIX),
        matrix_minutes=sum(math.ceil(length / 60) for length in lengths),
        late_seconds=statistics.fmean(platform.late_seconds),
        threads=platform.threads,
        log_lines=log.lines,
        log_characters=log.characters,
        errors=log.annotations["error"],
        warnings=log.annotations["warning"],
        summary_bytes=len(ended.summary.encode()),
        results_characters=len(ended.outputs["results"]),
        failed=len(failed),
        cpu_seconds=cpu_seconds,
        peak_kib=_peak_kib(),
    )


def _peak_kib() -> int:
    """Return the process's highest resident set (`VmHWM`, proc(5)), or 0 if the system does not report it."""
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+([0-9]+) kB$", status.read_text(encoding="ascii"), re.MULTILINE) if status.exists() else None
    return int(found[1]) if found is not None else 0


def _main(domains: str, max_parallel: str) -> None:
    names = names_of(int(domains))
    if max_parallel == "alone":
        costs: object = [asdict(carry_out([name], 1)) for name in names]
    else:
        costs = asdict(carry_out(names, int(max_parallel)))
    sys.stdout.write(json.dumps(costs))


if __name__ == "__main__":
    _main(*sys.argv[1:])
