"""A step of many exports in virtual time, and what it cost: `python -m tests.many_exports DOMAINS MAX_PARALLEL` tells it in JSON.

With `alone` for the latter it prints a list, with what a step of its own costs for each of the domains.
The whole action runs on a platform below requests, which runs any number of exports at once. How long each takes, and how its
progress goes, is drawn from the domain's name, so a domain is the same in each step, whoever stands beside it.
"""

import functools
import heapq
import io
import json
import math
import random
import re
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import requests
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse

from admin_api_simulator.runner import parse_outputs, runner_environment, with_defaults
from docs_platform_action import main
from docs_platform_action.http.connection import AbortableRequest
from tests.keys import ADMIN_KEY
from tests.unit.virtual_time import VirtualClock
from tests.virtual_run import Beside, in_virtual_time

SEED: Final = 1
BASE_URL: Final = "https://api.example.com"
MEDIAN_SECONDS: Final = 240.0
SIGMA: Final = 1.0
BOUNDS_SECONDS: Final = (8.0, 3600.0)
"""How long exports take: log-normal, within bounds."""

QUEUE_SHARE: Final = 0.05
ANSWER_SECONDS: Final = (0.05, 0.3)
FAILING: Final = 0.03
"""The share of exports that fail at the platform; never the first, so that a step of one domain is a good one."""

AT_ONCE_IN_A_MATRIX: Final = 20
"""Jobs that GitHub's free plan runs at the same time (source: docs.github.com/en/actions/reference/limits)."""

IDLE_SECONDS: Final = 1.0
LINK: Final = (
    "https://exports.s3.eu-central-1.amazonaws.com/{job}/bundle.tar.gz?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20240601%2Feu-central-1%2Fs3%2Faws4_request&X-Amz-Date=20240601T120000Z"
    "&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature={signature:064x}"
)
"""As long as a presigned link is at least: one of a session's has a token of some hundred characters, too."""

_PATH: Final = re.compile(r"/v1/static-export/jobs(?:/se_(?P<domain>[^/]+)(?P<bundle>/bundle)?)?")


@dataclass(frozen=True, kw_only=True)
class Export:
    """The truth about one export: how many seconds it takes and queues, how its progress bends, how many pages, how it ends."""

    seconds: float
    queue_seconds: float
    bend: float
    pages: int
    end: str

    def status_at(self, age: float) -> str:
        """Tell what the platform reports so many seconds after the start."""
        return self.end if age >= self.seconds else "queued" if age < self.queue_seconds else "running"

    def share_at(self, age: float) -> float:
        """Tell how much of it is done."""
        share = min(max((age - self.queue_seconds) / (self.seconds - self.queue_seconds), 0.0), 1.0)
        return math.pow(share, self.bend)


def names_of(domains: int) -> Sequence[str]:
    """Name so many domains."""
    return [f"docs-{number}.example.com" for number in range(1, domains + 1)]


def draw(domain: str) -> Export:
    """Draw the truth about a domain's export."""
    chance = random.Random(f"{SEED} {domain}")  # noqa: S311  # nothing is to be kept secret
    shortest, longest = BOUNDS_SECONDS
    seconds = min(max(chance.lognormvariate(math.log(MEDIAN_SECONDS), SIGMA), shortest), longest)
    fails = chance.random() < FAILING and domain != names_of(1)[0]
    return Export(
        seconds=seconds,
        queue_seconds=seconds * QUEUE_SHARE,
        bend=chance.uniform(0.7, 1.4),
        pages=chance.randint(20, 2000),
        end="failed" if fails else "completed",
    )


def ideal_seconds(seconds: Sequence[float], at_once: int) -> float:
    """Tell how long jobs take of which each begins the moment that one of `at_once` places is free."""
    places = [0.0] * min(at_once, len(seconds))
    for length in seconds:
        heapq.heapreplace(places, places[0] + length)
    return max(places)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a step cost. Seconds are virtual but for `cpu_seconds`, which are those of the process, as is its peak memory.

    `seconds` is how long the step took, to the platform's last answer; `ideal_seconds` what the jobs by themselves would have
    taken side by side, `matrix_seconds` the same in a matrix, and `matrix_minutes` what GitHub bills for that. `late_seconds` is
    how long after its end a job was seen to have ended, on average; `results_characters` are what GitHub counts two bytes for.
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
    errors: int
    warnings: int
    summary_bytes: int
    results_characters: int
    failed: int
    cpu_seconds: float
    peak_kib: int


class Platform(BaseAdapter):
    """What the action's requests meet: answers by the truth, and counts; of no request more is kept."""

    def __init__(self, clock: VirtualClock, truth: Callable[[str], Export]) -> None:
        super().__init__()
        self._clock, self._truth = clock, truth
        self._threads_before = threading.active_count() - 1
        self._chance = random.Random(SEED)  # noqa: S311  # nothing is to be kept secret
        self._exports: dict[str, Export] = {}
        self._started: dict[str, float] = {}
        self._recent: deque[float] = deque()
        self._seen: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.late_seconds: list[float] = []
        self.seconds = 0.0
        self.most_in_a_second = self.jobs = self.max_jobs = self.threads = 0

    def close(self) -> None:
        """Hold nothing."""

    def send(self, request: requests.PreparedRequest, **_options: Any) -> requests.Response:  # type: ignore[override]
        """Take a request, let time pass, and answer."""
        assert isinstance(request, AbortableRequest)
        request.mark_connected()
        self._note()
        self._clock.sleep(self._chance.uniform(*ANSWER_SECONDS))
        self.seconds = self._clock.elapsed
        found = _PATH.fullmatch(request.path_url)
        assert found is not None, request.path_url
        if found["domain"] is None:
            assert isinstance(request.body, bytes)
            return self._start(json.loads(request.body)["domain"])
        return self._bundle(found["domain"]) if found["bundle"] else self._read(found["domain"])

    def _note(self) -> None:
        now = self._clock.elapsed
        self._recent.append(now)
        while self._recent[0] <= now - 1.0:
            self._recent.popleft()
        self.most_in_a_second = max(self.most_in_a_second, len(self._recent))
        self.threads = max(self.threads, threading.active_count() - self._threads_before)

    def _start(self, domain: str) -> requests.Response:
        assert domain not in self._started, f"{domain} was started twice"
        self.counts["start"] += 1
        self._exports[domain], self._started[domain] = self._truth(domain), self._clock.elapsed
        self.jobs += 1
        self.max_jobs = max(self.max_jobs, self.jobs)
        return _answer(202, {"jobId": f"se_{domain}", "status": "queued"})

    def _read(self, domain: str) -> requests.Response:
        self.counts["read"] += 1
        export, age = self._exports[domain], self._clock.elapsed - self._started[domain]
        status, share = export.status_at(age), export.share_at(age)
        if status == export.end:
            assert domain not in self._seen, f"{domain} was read after its end was seen"
            self._seen.add(domain)
            self.jobs -= 1
            self.late_seconds.append(age - export.seconds)
        if status == "failed":
            return _answer(200, {"status": status, "error": "The site could not be built."})
        return _answer(200, {"status": status, "progress": int(100 * share), "pageCount": int(export.pages * share)})

    def _bundle(self, domain: str) -> requests.Response:
        self.counts["bundle"] += 1
        link = LINK.format(job=f"se_{domain}", signature=random.Random(domain).getrandbits(256))  # noqa: S311  # the same
        return _answer(200, {"bundleUrl": link, "expiresAt": (self._clock.now() + timedelta(hours=1)).isoformat()})


def _answer(status: int, body: Mapping[str, object]) -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.raw = HTTPResponse(io.BytesIO(json.dumps(body).encode()), headers={}, status=status, preload_content=False)
    return response


class _CountedLog(io.StringIO):
    """A log that is counted and not kept."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = 0
        self.annotations: Counter[str] = Counter()

    def write(self, text: str) -> int:
        """Count."""
        self.lines += text.count("\n")
        self.annotations.update(kind for kind in ("error", "warning") if text.startswith(f"::{kind} "))
        return len(text)


@functools.cache
def _defaults() -> Mapping[str, str]:
    return with_defaults({}, Path(__file__).parents[1] / "action.yml")


def carry_out(names: Sequence[str], max_parallel: int, *, truth: Callable[[str], Export] = draw) -> Cost:
    """Export domains in one step; `truth` tells how each one's export goes."""
    clock, log = VirtualClock(), _CountedLog()
    platform = Platform(clock, truth)
    inputs = {
        "base-url": BASE_URL,
        "admin-key": ADMIN_KEY,
        "domain": "\n".join(names),
        "max-parallel": str(max_parallel),
        "timeout": "2h",
    }
    with (
        tempfile.TemporaryDirectory(prefix="many-exports-") as temporary,
        in_virtual_time(platform, clock, seed=SEED, thread=clock.Thread),
    ):
        folder = Path(temporary)
        environ = runner_environment(inputs={**_defaults(), **inputs}, folder=folder, workspace=folder, debug=False)
        began = time.process_time()
        main.run(environ, log, Beside(clock, idle_seconds=IDLE_SECONDS), clock=clock)  # type: ignore[arg-type]
        cpu_seconds = time.process_time() - began
        outputs, summary = parse_outputs((folder / "output").read_text()), (folder / "summary").stat().st_size
    lengths = [truth(name).seconds for name in names]
    failed = [row for row in json.loads(outputs["results"]) if row["failureReason"]]
    assert all(row["failureReason"] == "job-failed" for row in failed), failed
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
        errors=log.annotations["error"],
        warnings=log.annotations["warning"],
        summary_bytes=summary,
        results_characters=len(outputs["results"]),
        failed=len(failed),
        cpu_seconds=cpu_seconds,
        peak_kib=_peak_kib(),
    )


def _peak_kib() -> int:
    """Tell the process's highest resident set (`VmHWM`, proc(5)); 0 where the system does not tell."""
    status = Path("/proc/self/status")
    found = re.search(r"^VmHWM:\s+([0-9]+) kB$", status.read_text(encoding="ascii"), re.MULTILINE) if status.exists() else None
    return int(found[1]) if found is not None else 0


def _main(domains: str, max_parallel: str) -> None:
    names = names_of(int(domains))
    if max_parallel == "alone":
        told: object = [asdict(carry_out([name], 1)) for name in names]
    else:
        told = asdict(carry_out(names, int(max_parallel)))
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    _main(*sys.argv[1:])
