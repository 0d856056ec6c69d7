"""Draws a simulated wait from a seed: the inputs, the jobs, and the faults."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MAX_JOB_SECONDS: Final = 6 * 3600.0
FAULT_RATE: Final = 0.2
"""The share of requests that fail at random, in addition to those in an outage."""

SETTLING_SECONDS: Final = 30.0
"""From the contract: how long after this run started a job a 404 is temporary."""

UNSENT: Final = ("refused", "unreachable", "no such host")
LOST: Final = ("reset", "cut", "stalled", "dripping", "no http")
SERVER_ERRORS: Final = ("500", "502", "503", "504", "408", "425")
THROTTLED: Final = ("429", "429 for a while", "503 for a while", "503 until a date")
MALFORMED: Final = ("html", "truncated", "list", "empty")
KINDS: Final = (*UNSENT, *LOST, *SERVER_ERRORS, *THROTTLED, *MALFORMED)
"""The kinds of faults, in the classes that the interface distinguishes."""

FINAL_STATUSES: Final = {401: "unauthorized", 403: "forbidden", 404: "not-found", 410: "rejected"}
SHAPES: Final = ("steady", "bursts", "stalls", "backwards", "nothing", "pages alone", "odd types")


@dataclass(frozen=True, kw_only=True)
class Outage:
    """A period, in seconds of the run, in which every request fails with one of `kinds`."""

    began: float
    ended: float
    kinds: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job: the seconds after its start until it leaves the queue and ends, and its final status.

    The platform returns 404 for `settles_after` seconds after the start, and 409 for `packs_for` seconds after the first request
    for the bundle; `others` are undocumented statuses of the running job.
    """

    name: str
    queue_seconds: float
    seconds: float
    end: str
    shape: str
    pages: int
    settles_after: float
    packs_for: float
    others: tuple[str, ...]
    has_pr: bool


@dataclass(frozen=True, kw_only=True)
class Wait:
    """One run: the inputs in seconds, the jobs, and the faults. `refuses` is the start and the status of a final rejection."""

    seed: int
    mode: str
    attached: bool
    waits: bool
    writes_values: bool
    require_pr: bool
    timeout: int
    poll: int
    longest_poll: int
    tolerance: int
    jobs: tuple[Job, ...]
    outages: tuple[Outage, ...]
    refuses: tuple[float, int] | None
    fault_rate: float = FAULT_RATE


def draw(seed: int, *, jobs: int = 1) -> Wait:
    """Draw a wait of up to six hours, for one job or for several domains."""
    chance = random.Random(seed * 1000 + jobs)  # noqa: S311  # not for secrets
    mode = "agent" if jobs == 1 and chance.random() < 0.25 else "export"
    poll, longest_poll = chance.choices(
        [(1, 30), (5, 300), (30, 600), (60, 900), (120, 900), (300, 300)],
        weights=[4, 10, 26, 26, 24, 10] if jobs == 1 else [0, 0, 1, 3, 4, 2],
    )[0]
    tolerance = chance.choice([60, 300, 300, 900])
    drawn = tuple(_draw_job(chance, mode, number, poll) for number in range(1, jobs + 1))
    longest = max(job.seconds for job in drawn)
    factor = chance.choices([chance.uniform(1.05, 2.0), chance.uniform(0.3, 1.0), chance.uniform(0.99, 1.01)], [14, 5, 1])[0]
    attached = mode == "agent" or (jobs == 1 and chance.random() < 0.2)
    refuses = (chance.uniform(0, longest), chance.choice([*FINAL_STATUSES])) if chance.random() < 0.05 else None
    return Wait(
        seed=seed,
        mode=mode,
        attached=attached,
        waits=attached or jobs > 1 or chance.random() < 0.97,
        writes_values=mode == "export" and jobs == 1 and chance.random() < 0.2,
        require_pr=mode == "agent" and chance.random() < 0.5,
        timeout=max(int(longest * factor), 60),
        poll=poll,
        longest_poll=longest_poll,
        tolerance=tolerance,
        jobs=drawn,
        outages=tuple(_draw_outages(chance, longest, tolerance, weights=[5, 3, 1, 1] if jobs == 1 else [7, 3, 0, 0])),
        refuses=refuses,
        fault_rate=FAULT_RATE,
    )


def _draw_job(chance: random.Random, mode: str, number: int, poll: int) -> Job:
    seconds = chance.uniform(0.1, 1.0) * MAX_JOB_SECONDS
    ends = {"completed": 8, "failed": 2} if mode == "export" else {"completed": 5, "archived": 3, "failed": 2}
    flaps = poll >= 60 and chance.random() < 0.03
    return Job(
        name=f"docs-{number}.example.com",
        queue_seconds=seconds * chance.choice([0.0, 0.01, 0.3]),
        seconds=seconds,
        end=chance.choices([*ends], [*ends.values()])[0],
        shape=chance.choice(SHAPES),
        pages=chance.randint(1, 5000),
        settles_after=chance.choices([0.0, chance.uniform(0, 25), chance.uniform(25, 60)], [5, 4, 1])[0],
        packs_for=chance.choices([0.0, chance.uniform(0, 60), chance.uniform(60, 1200)], [5, 4, 1])[0],
        others=("rendering", "packing") if flaps else ("rendering",) if chance.random() < 0.2 else (),
        has_pr=chance.random() < 0.6,
    )


def _draw_outages(chance: random.Random, longest: float, tolerance: int, *, weights: Sequence[int]) -> Sequence[Outage]:
    found = []
    for _ in range(chance.choices([0, 1, 2, 3], weights)[0]):
        began = chance.uniform(-0.02, 1.0) * longest
        lasts = (
            tolerance
            * chance.choices([chance.uniform(0.1, 0.95), chance.uniform(0.95, 1.1), chance.uniform(1.1, 4)], [7, 1, 2])[0]
        )
        kinds = chance.choice([UNSENT, LOST, SERVER_ERRORS, THROTTLED, MALFORMED, KINDS])
        found.append(Outage(began=max(began, 0.0), ended=max(began, 0.0) + lasts, kinds=kinds))
    return found
