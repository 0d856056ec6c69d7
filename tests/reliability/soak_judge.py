"""Computes how a wait must end from the exchanges that the platform recorded: a second implementation of the contract.

It uses no code of the action. The judge goes through the exchanges of one job in order, and determines after each whether the run
must end, and how, or continue. A run that does something else is an error.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.reliability.soak_platform import Seen
from tests.reliability.soak_truth import FINAL_STATUSES, SETTLING_SECONDS, THROTTLED, UNSENT, Wait

EPSILON: Final = 1e-6
"""Tolerance for rounding, in seconds."""

RATE_LIMIT_SECONDS: Final = 1.2
"""How long the pace may delay a request of a single job, and a read that has just begun."""

RECHECK_SECONDS: Final = 1.0
"""How often a start that waits for room checks whether it has some."""

MAX_PAUSE_SECONDS: Final = 30.0
LAST_ATTEMPT_SECONDS: Final = 10.0
MIN_ATTEMPT_SECONDS: Final = 2.0
FIRST_SECONDS: Final = 3
UNKNOWN_HOST_SECONDS: Final = 30.0
YOUNG_SECONDS: Final = 7.5
EVEN_SECONDS: Final = 4.75
PATIENCE: Final = 250
"""Polling of a job without progress (docs/how-it-waits.md): first after 3 s, then every 7.5 s in its first 40 s, then every
4.75 s, or a 250th of the time since its last status change if that is more."""

WITHOUT_PROGRESS: Final = ("nothing", "pages alone", "odd types")
POLLS_PER_ESTIMATE: Final = 25
"""Maximum polls that follow one estimate up to the estimated end."""

MAX_ESTIMATES: Final = 6
"""How often the progress of a job restarts or stalls at most."""


class WrongError(AssertionError):
    """The run did something forbidden."""


@dataclass
class Verdict:
    """The allowed results of a job, a `failureReason` or None for success, and what must be known at the end."""

    ends: frozenset[str | None]
    job_known: bool = False
    status: str | None = None
    good_reads: int = 0
    stretches: int = 0
    faults: int = 0


@dataclass
class _Walk:
    """The state of the judge.

    `outage_began` is the end of the current operation's first failed attempt, `reading_since` the start of its first attempt.
    `retry_after_received` and `retry_after_ends` are the times of the latest `Retry-After`. `is_host_known` is false while each
    request of the run has failed because the host does not exist, `has_answered` until one had a good response. `rounding` is how
    exactly the limit is known, in seconds.
    """

    wait: Wait
    has_pr: bool
    verdict: Verdict = field(default_factory=lambda: Verdict(ends=frozenset()))
    outage_began: float | None = None
    reading_since: float | None = None
    known_at: float = 0.0
    entered_at: float = 0.0
    retry_after_received: float = -math.inf
    retry_after_ends: float = -math.inf
    is_host_known: bool = False
    has_answered: bool = False
    rounding: float = EPSILON

    def deadline(self, operation: str) -> float:
        return self.known_at + self.wait.timeout if operation == "read" else math.inf

    def limit(self, operation: str) -> float:
        """Return the latest start of the last attempt."""
        tolerance = self.wait.tolerance if self.is_host_known else min(self.wait.tolerance, UNKNOWN_HOST_SECONDS)
        tolerated = math.inf if self.outage_began is None else self.outage_began + tolerance
        return min(self.deadline(operation), tolerated)


def judge(wait: Wait, seen: Sequence[Seen], *, has_pr: bool) -> Verdict:
    """Return how a run for one job must end, and check each exchange. Raises `WrongError`."""
    walk = _Walk(wait=wait, has_pr=has_pr)
    verdict = walk.verdict
    verdict.job_known = wait.attached
    for number, exchange in enumerate(seen):
        if verdict.ends:
            raise WrongError(f"continued with {exchange} instead of ending with {set(verdict.ends)}")
        ends, may_continue = _step(walk, exchange)
        is_last = number == len(seen) - 1
        if is_last or not may_continue:
            verdict.ends = ends
        if not is_last and may_continue:
            _check_pause(walk, exchange, seen[number + 1])
    if seen and not verdict.ends:
        raise WrongError(f"ended after {seen[-1]} instead of continuing")
    return verdict


def _step(walk: _Walk, exchange: Seen) -> tuple[frozenset[str | None], bool]:
    """Return how a run may end after an exchange, empty if it must continue, and whether it may continue."""
    if walk.reading_since is None:
        walk.reading_since = exchange.began
    walk.is_host_known = walk.is_host_known or exchange.result != "no such host"
    if exchange.result == "html" and not walk.has_answered:
        walk.verdict.faults += 1
        return _only("bad-response")
    if exchange.result == "good":
        walk.has_answered = True
        since, walk.outage_began, walk.reading_since = walk.reading_since, None, None
        return _good(walk, exchange, since=since)
    walk.verdict.faults += 1
    if exchange.result.isdigit() and int(exchange.result) in FINAL_STATUSES and not _is_settling(walk, exchange):
        return _only(FINAL_STATUSES[int(exchange.result)])
    if exchange.operation == "start" and exchange.result not in {*UNSENT, *THROTTLED}:
        return _only("start-unconfirmed")
    limit, deadline = walk.limit(exchange.operation), walk.deadline(exchange.operation)
    if walk.outage_began is None:
        walk.verdict.stretches += 1
        walk.outage_began = exchange.ended
    if exchange.began < limit - walk.rounding:
        return frozenset(), True
    late = {"timeout"} if exchange.ended >= deadline - EPSILON else set()
    early = {"unavailable"} if exchange.ended < deadline + EPSILON else set()
    # at the limit itself rounding determines whether this was the last attempt
    return frozenset(late | early), exchange.began < limit + walk.rounding


def _good(walk: _Walk, exchange: Seen, *, since: float) -> tuple[frozenset[str | None], bool]:
    verdict = walk.verdict
    if exchange.operation == "bundle":
        return _only(None)
    if exchange.operation == "start":
        walk.known_at = walk.entered_at = exchange.ended
        verdict.job_known, verdict.status = True, exchange.job_status
        return (frozenset(), True) if walk.wait.waits else _only(None)
    verdict.good_reads += 1
    if verdict.good_reads > 1 and verdict.status != exchange.job_status:
        walk.entered_at = exchange.ended
    verdict.status = exchange.job_status
    if exchange.job_status == "failed":
        return _only("job-failed")
    if exchange.job_status in {"completed", "archived"}:
        if walk.wait.mode == "export":
            return frozenset(), True
        return _only("no-pull-request" if walk.wait.require_pr and not walk.has_pr else None)
    deadline = walk.deadline("read")
    if exchange.began < deadline - EPSILON:
        return frozenset(), True
    # a poll that began before the deadline and was retried after it is followed by a last poll
    return frozenset({"timeout"}), since < deadline + EPSILON


def _only(end: str | None) -> tuple[frozenset[str | None], bool]:
    return frozenset({end}), False


def _is_settling(walk: _Walk, exchange: Seen) -> bool:
    """Whether a 404 is for a job that this run has just started, or begun to wait for."""
    is_new = exchange.operation != "start" and exchange.ended < walk.known_at + SETTLING_SECONDS
    return exchange.result == "404" and is_new


def _check_pause(walk: _Walk, last: Seen, following: Seen) -> None:
    """Check that the pause is within the limits of the interface."""
    pause = following.began - last.ended
    if pause < -EPSILON:
        raise WrongError(f"two exchanges at a time: {last} and {following}")
    if last.retry_after:
        walk.retry_after_received, walk.retry_after_ends = last.ended, last.ended + last.retry_after
    if last.result == "good":
        shortest, longest = _pauses_after(walk, last, following)
        if last.began == walk.retry_after_received:  # in virtual time the order of two events at the same time is unknown
            longest = max(longest, walk.retry_after_ends - last.ended)
    else:
        shortest, longest = last.retry_after, max(MAX_PAUSE_SECONDS, last.retry_after)
    limit = walk.limit(following.operation)
    if pause < shortest - EPSILON and following.began < limit - EPSILON:
        raise WrongError(f"a pause of {pause} s between {last} and {following}, shorter than {shortest}")
    if pause > longest + RATE_LIMIT_SECONDS:
        raise WrongError(f"a pause of {pause} s between {last} and {following}, longer than {longest}")
    if following.began > max(limit, last.ended) + RATE_LIMIT_SECONDS:
        raise WrongError(f"no attempt at the limit {limit}, but {following}")
    left = max(limit - following.began, MIN_ATTEMPT_SECONDS) if following.began < limit - EPSILON else LAST_ATTEMPT_SECONDS
    if (
        following.ended - following.began
        > max(left, LAST_ATTEMPT_SECONDS if following.began > limit - EPSILON else 0.0) + EPSILON
    ):
        raise WrongError(f"{following} took longer than the remaining {left} s")


def _pauses_after(walk: _Walk, last: Seen, following: Seen) -> tuple[float, float]:
    """Return the shortest and the longest pause allowed after a good response."""
    wait = walk.wait
    if following.operation != "read":
        return 0.0, 0.0
    if last.operation == "start":
        first = min(FIRST_SECONDS, wait.longest_poll)
        return first, first
    if not _has_no_progress(wait):
        return wait.poll, wait.longest_poll
    share = (max(last.ended - walk.entered_at, 0.0) + last.ended - last.began) / PATIENCE
    return wait.poll, min(max(share, wait.poll, YOUNG_SECONDS), wait.longest_poll)


def _has_no_progress(wait: Wait) -> bool:
    return wait.mode == "agent" or wait.jobs[0].shape in WITHOUT_PROGRESS


def most_good_reads(wait: Wait, seconds: float) -> float:
    """Return the maximum number of good polls of a job in the given time.

    Without progress pauses are at least regular; each estimate from progress adds closer polls. There is never more than one poll
    per `poll-interval`.
    """
    even = seconds / max(min(EVEN_SECONDS, wait.longest_poll), wait.poll) + 3
    return min(even + (0 if _has_no_progress(wait) else MAX_ESTIMATES * POLLS_PER_ESTIMATE), seconds / wait.poll + 3)


def judge_of_many(wait: Wait, seen: Sequence[Seen]) -> dict[str, Verdict]:
    """Return how the jobs of several domains must end, from exchanges in the order of their starts. Raises `WrongError`.

    Jobs share the pace and the pauses of starts, so these depend on other jobs. Only the results are checked, and that no job
    gives up too early or too late.
    """
    of = {job.name: [exchange for exchange in seen if exchange.job == job.name] for job in wait.jobs}
    return {job: _judge_one_of_many(wait, own, seen, of) for job, own in of.items()}


def _judge_one_of_many(wait: Wait, own: Sequence[Seen], seen: Sequence[Seen], of: Mapping[str, Sequence[Seen]]) -> Verdict:
    walk = _Walk(wait=wait, has_pr=False, rounding=RECHECK_SECONDS)
    verdict = walk.verdict
    for number, exchange in enumerate(own):
        if verdict.ends:
            raise WrongError(f"continued with {exchange} instead of ending with {set(verdict.ends)}")
        if number and walk.outage_began is not None and _is_refused(own[number - 1]):  # the tolerance counts from the last end
            walk.outage_began = max(walk.outage_began, min(_others_end_at(exchange, exchange.began, of), exchange.began))
        walk.is_host_known = any(other.result != "no such host" and other.ended <= exchange.ended for other in seen)
        walk.has_answered = any(other.result == "good" and other.ended < exchange.ended for other in seen)
        ends, may_continue = _step(walk, exchange)
        if _is_refused(exchange) and _others_end_at(exchange, exchange.ended, of) > exchange.ended:
            ends, may_continue, walk.outage_began = frozenset(), True, exchange.ended
        if number == len(own) - 1 or not may_continue:
            verdict.ends = ends
    if own and not verdict.ends:
        raise WrongError(f"ended after {own[-1]} instead of continuing")
    return verdict


def _is_refused(exchange: Seen) -> bool:
    """Whether the platform has refused a start, perhaps for lack of room."""
    return exchange.operation == "start" and exchange.result.startswith("429")


def _others_end_at(exchange: Seen, now: float, of: Mapping[str, Sequence[Seen]]) -> float:
    """Return when the last of the other jobs that have been started by now ends, as far as the run knows."""
    started = [
        others
        for job, others in of.items()
        if job != exchange.job and any(other.result == "good" and other.ended < now for other in others)
    ]
    return max(map(_ends_at, started), default=-math.inf)


def _ends_at(exchanges: Sequence[Seen]) -> float:
    ends = (exchange.ended for exchange in exchanges if exchange.job_status in {"completed", "failed"})
    return next(ends, exchanges[-1].ended)
