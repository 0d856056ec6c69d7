"""Thousands of waits of up to six hours in virtual time, in which one request in five fails and outages occur as well.

Each run is the whole action, `main.run`, with a clock that `sleep` advances, and a virtual transport as the platform. Everything
about a run is drawn from its seed, so it is reproducible; `SOAK_SEED=17 pytest tests/reliability/test_soak.py` runs one seed.
"""

import functools
import io
import json
import os
import re
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from docs_platform_action.report.log import HEARTBEAT_SECONDS
from tests.inside import unmeasured
from tests.keys import ADMIN_KEY
from tests.reliability.soak_judge import EPSILON, Verdict, WrongError, judge, judge_of_many, most_good_reads
from tests.reliability.soak_platform import SIGNATURE, Seen, SoakPlatform
from tests.reliability.soak_truth import Wait, draw
from tests.virtual_run import run_virtually
from tests.virtual_time import VirtualClock

USUAL_RUNS: Final = 600
RUNS: Final = int(os.environ.get("SOAK_RUNS", USUAL_RUNS))
RUNS_OF_MANY: Final = max(RUNS // 100, 1)
"""Runs with 10 to 30 domains each."""

ONE: Final = os.environ.get("SOAK_SEED")
"""The single seed to run."""

MAX_CONCURRENT_UNPACKS: Final = 10
MAX_A_SECOND: Final = 10
"""From docs/many-domains.md: the default of `max-parallel`, and the pace of a run's requests to one API."""

MAX_ERRORS: Final = 10


@dataclass(kw_only=True)
class Run:
    """The result of one run."""

    wait: Wait
    exit_code: int
    log: str
    outputs: dict[str, str]
    summary: str
    values: str | None
    seen: list[Seen]
    seconds: float
    starts: dict[str, int]
    most_under_way: int

    @property
    def results(self) -> list[dict[str, Any]]:
        return list(json.loads(self.outputs["results"]))


def inputs_of(wait: Wait) -> dict[str, str]:
    """Return the inputs of a wait."""
    given = {
        "mode": wait.mode,
        "wait": str(wait.waits).lower(),
        "timeout": f"{wait.timeout}s",
        "poll-interval": f"{wait.poll}s",
        "max-poll-interval": f"{wait.longest_poll}s",
        "outage-tolerance": f"{wait.tolerance}s",
        "domain": "" if wait.attached else "\n".join(job.name for job in wait.jobs),
    }
    if wait.mode == "agent":
        given |= {"project-id": "prj_1", "job-id": wait.jobs[0].name, "require-pr": str(wait.require_pr).lower()}
    elif wait.attached:
        given |= {"mode": "collect", "job-id": f"se_{wait.jobs[0].name}"}
    if wait.writes_values:
        given["values-file"] = "values.yaml"
    return given


class DiscardedLog(io.StringIO):
    """A log that keeps nothing."""

    def write(self, text: str) -> int:
        return len(text)


def carry_out(wait: Wait, *, on_seen: Callable[[Seen], None] | None = None) -> Run:
    """Run the whole action for a wait. With `on_seen`, which is called with each exchange, no log and no exchange is kept."""
    clock = VirtualClock(seed=wait.seed)
    seen: list[Seen] = []
    platform = SoakPlatform(wait, clock, on_seen or seen.append)
    ended = run_virtually(platform, clock, inputs_of(wait), seed=wait.seed, stream=DiscardedLog() if on_seen else io.StringIO())
    values = ended.left.get("workspace/values.yaml")
    return Run(
        wait=wait,
        exit_code=ended.exit_code,
        log=ended.stdout,
        outputs=dict(ended.outputs),
        summary=ended.summary,
        values=values.decode() if values is not None else None,
        seen=seen,
        seconds=clock.elapsed,
        starts=platform.starts,
        most_under_way=platform.max_under_way,
    )


def check(run: Run) -> Verdict:
    """Check the result of a run with one job. Raises `WrongError`."""
    job = run.wait.jobs[0]
    verdict = judge(run.wait, run.seen, has_pr=job.has_pr)
    reason = run.outputs.get("failureReason")
    _check(reason in verdict.ends, f"ended with {reason}, not {set(verdict.ends)}")
    _check(run.exit_code == (0 if reason is None else 1), f"exit code {run.exit_code} with {reason}")
    _check(run.starts[job.name] <= 1, f"{run.starts[job.name]} jobs were started")
    _check_outputs(run, verdict, reason)
    _check_shown(run, errors=0 if reason is None else 1)
    _check_bounds(run, verdict)
    return verdict


def _check_outputs(run: Run, verdict: Verdict, reason: str | None) -> None:
    wait, job, outputs = run.wait, run.wait.jobs[0], run.outputs
    job_id = (job.name if wait.mode == "agent" else f"se_{job.name}") if verdict.job_known else None
    link = run.seen[-1].operation == "bundle" and reason is None
    expected = {
        "jobId": job_id,
        "status": verdict.status,
        "bundleUrl": f"https://storage.example.com/se_{job.name}/bundle.tar.gz?X-Signature={SIGNATURE}" if link else None,
        "durationSeconds": str(int(run.seconds + EPSILON)),
    }
    _check({name: outputs.get(name) for name in expected} == expected, f"the outputs are {outputs}, not {expected}")
    (row,) = run.results
    values = {name: outputs.get(name) for name in ("jobId", "status", "bundleUrl", "failureReason")}
    _check({name: row[name] for name in values} == values, f"the result {row} is not {values}")
    _check((outputs.get("prLink") is not None) == _has_link(run, verdict), f"the pull request is {outputs.get('prLink')}")
    _check((run.values is not None) == (wait.writes_values and link), f"the values file holds {run.values}")


def _has_link(run: Run, verdict: Verdict) -> bool:
    return run.wait.mode == "agent" and verdict.status in {"completed", "archived"} and run.wait.jobs[0].has_pr


def _check_shown(run: Run, *, errors: int) -> None:
    found = len(re.findall(r"^::error ", run.log, re.MULTILINE))
    _check(found == errors, f"{found} error annotations, not {errors}")
    _check("Traceback" not in run.log, "the log holds a stack trace")
    shown = run.log.replace(f"::add-mask::{ADMIN_KEY}", "", 1) + run.summary
    _check(ADMIN_KEY not in shown and SIGNATURE not in shown, "a secret is shown")
    _check(ADMIN_KEY not in json.dumps(run.outputs), "a secret is among the outputs")
    _check(bool(run.summary), "there is no summary")


def max_requests(run: Run, verdict: Verdict) -> float:
    """Return the maximum requests of a run: the good polls that its time allows, one for each fault, a start and a bundle."""
    return most_good_reads(run.wait, run.seconds) + verdict.faults + 2


def most_lines(run: Run, verdict: Verdict) -> float:
    """Return the maximum lines of a log: one per poll, two per outage, a heartbeat per minute, and 20 others."""
    return verdict.good_reads + 2 * verdict.stretches + run.seconds / HEARTBEAT_SECONDS + 20


def _check_bounds(run: Run, verdict: Verdict) -> None:
    requests, lines = max_requests(run, verdict), most_lines(run, verdict)
    _check(len(run.seen) <= requests, f"{len(run.seen)} requests, more than {requests:.0f}")
    _check(run.log.count("\n") <= lines, f"{run.log.count(chr(10))} lines, more than {lines:.0f}")
    _check(run.most_under_way <= 1, f"{run.most_under_way} requests at a time")


def check_many(run: Run) -> dict[str, Verdict]:
    """Check the result of a run with several domains. Raises `WrongError`."""
    in_order = sorted(run.seen, key=lambda exchange: exchange.began)
    verdicts = judge_of_many(run.wait, in_order)
    rows = {row["domain"]: row for row in run.results}
    _check([*rows] == [job.name for job in run.wait.jobs], f"the domains of the results are {[*rows]}")
    first = run.results[0]["failureReason"]
    is_host_unknown = {exchange.result for exchange in in_order} == {"no such host"}
    shared = {first} & {
        "unauthorized",
        "forbidden",
        "unavailable" if is_host_unknown else "",
    }  # of the first domain
    for domain, row in rows.items():
        ends = verdicts[domain].ends or shared
        _check(row["failureReason"] in ends, f"{domain} ended with {row['failureReason']}, not {set(ends)}")
        _check(run.starts[domain] <= 1, f"{run.starts[domain]} jobs were started for {domain}")
        values = (row["jobId"], row["status"])
        expected = (f"se_{domain}" if verdicts[domain].job_known else None, verdicts[domain].status)
        _check(values == expected, f"the result of {domain} is {values}, not {expected}")
        _check((row["bundleUrl"] is not None) == (row["failureReason"] is None), f"the link of {domain} is {row['bundleUrl']}")
    failed = [row["failureReason"] for row in run.results if row["failureReason"]]
    _check(run.outputs.get("failureReason") == next(iter(failed), None), f"failureReason is not the first of {failed}")
    _check(run.exit_code == bool(failed), f"exit code {run.exit_code}")
    _check_shown(run, errors=min(len(failed), MAX_ERRORS))
    _check(run.most_under_way <= MAX_CONCURRENT_UNPACKS, f"{run.most_under_way} requests at a time")
    within = _most_within_a_second([exchange.began for exchange in in_order])
    _check(within <= MAX_A_SECOND, f"{within} requests within a second")
    lines = sum(most_lines(run, verdict) for verdict in verdicts.values())
    _check(run.log.count("\n") <= lines, f"{run.log.count(chr(10))} lines, more than {lines:.0f}")
    return verdicts


def _most_within_a_second(began: Sequence[float]) -> int:
    most, first = 0, 0
    for last, moment in enumerate(began):
        while began[first] <= moment - 1.0 + EPSILON:
            first += 1
        most = max(most, last - first + 1)
    return most


@dataclass(frozen=True, kw_only=True)
class Soak:
    """The result of a soak. `ends` counts jobs by `failureReason` or `success`; `wrong` describes failed runs."""

    runs: int
    runs_of_many: int
    hours: int
    exchanges: int
    faults: int
    faults_by_kind: tuple[tuple[str, int], ...]
    ends: tuple[tuple[str, int], ...]
    max_requests: int
    most_lines: int
    wrong: tuple[str, ...]


@dataclass
class _Tally:
    """The counters of a running soak."""

    seconds: float = 0.0
    exchanges: int = 0
    max_requests: int = 0
    most_lines: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, run: Run) -> None:
        self.seconds += run.seconds
        self.exchanges += len(run.seen)
        self.kinds.update(exchange.result for exchange in run.seen if exchange.result != "good")
        self.ends.update(row["failureReason"] or "success" for row in run.results)
        if len(run.wait.jobs) == 1:
            self.max_requests = max(self.max_requests, len(run.seen))
            self.most_lines = max(self.most_lines, run.log.count("\n"))


@functools.cache
def soaked(runs: int = RUNS, runs_of_many: int = RUNS_OF_MANY) -> Soak:
    """Run all waits once per process. The result is the same on every machine."""
    tally = _Tally()
    single = [int(ONE)] if ONE else range(runs)
    many = [int(ONE)] if ONE else range(runs_of_many)
    with unmeasured():
        for seed in single:
            _soak_in(tally, draw(seed), check)
        for seed in many:
            _soak_in(tally, draw_many(seed), check_many)
    return Soak(
        runs=len(single),
        runs_of_many=len(many),
        hours=int(tally.seconds / 3600),
        exchanges=tally.exchanges,
        faults=tally.kinds.total(),
        faults_by_kind=tuple(sorted(tally.kinds.items())),
        ends=tuple(sorted(tally.ends.items())),
        max_requests=tally.max_requests,
        most_lines=tally.most_lines,
        wrong=tuple(tally.wrong),
    )


def draw_many(seed: int) -> Wait:
    """Draw a wait for 10 to 30 domains."""
    return draw(seed, jobs=10 + seed % 21)


def _soak_in(tally: _Tally, wait: Wait, check_run: Callable[[Run], object]) -> None:
    try:
        run = carry_out(wait)
        tally.add(run)
        check_run(run)
    except Exception as error:  # noqa: BLE001  # every error is recorded with its seed
        where = traceback.format_exception_only(error)[-1].strip()
        tally.wrong.append(f"SOAK_SEED={wait.seed}, {len(wait.jobs)} job(s): {where}")


def _check(is_right: bool, message: str) -> None:
    if not is_right:
        raise WrongError(message)
