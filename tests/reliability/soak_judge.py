"""How a wait is to end, told from what its platform saw: the contract once more, in other words than the action's.

Nothing here is the action's own code. The judge walks through the exchanges of one job as they came, and at each one either knows
how the run must end there, or that it must go on; a run that does otherwise is told apart by what it did.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.reliability.soak_truth import FINAL_STATUSES, GARBLED, SETTLING_SECONDS, UNSENT, WAIT_ASKED, Wait
from tests.reliability.soak_wire import Seen

NOTHING: Final = 1e-6
"""What the rounding of numbers makes of a moment."""

ROW_SECONDS: Final = 1.2
"""How long the bound on requests a second may hold one up where there is one job, which makes few."""

MAX_PAUSE_SECONDS: Final = 30.0
LAST_TRY_SECONDS: Final = 10.0
MIN_TRY_SECONDS: Final = 2.0
FIRST_SECONDS: Final = 3
YOUNG_SECONDS: Final = 7.5
EVEN_SECONDS: Final = 4.75
PATIENCE: Final = 250
"""How a job is read that tells nothing (README): first after three seconds, then every 7.5 in its first 40, then every 4.75, or
after a 250th part of the time that it has been in its state if that is more."""

TELLS_NOTHING: Final = ("nothing", "pages alone", "odd types")
CLOSING_IN: Final = 25
"""The readings that it takes at most to follow a pace from its beginning to the end of the job that it promises."""

PACES: Final = 6
"""How often the progress of a job that tells any begins anew, or stands still, at most."""


class WrongError(AssertionError):
    """The run did what it should not have done."""


@dataclass
class Verdict:
    """How a job's exchanges are to end: with this `failureReason`, or well; what is known by then."""

    ends: frozenset[str | None]
    job_known: bool = False
    status: str | None = None
    good_reads: int = 0
    stretches: int = 0
    faults: int = 0


@dataclass
class _Walk:
    """The state of one walk.

    `troubled` is when the first fault of the operation that goes on had come, `reading_since` when its first try began.
    `asked_at` is when the latest `Retry-After` came, and `asked_until` when it ends.
    """

    wait: Wait
    has_pr: bool
    verdict: Verdict = field(default_factory=lambda: Verdict(ends=frozenset()))
    troubled: float | None = None
    reading_since: float | None = None
    known_at: float = 0.0
    entered_at: float = 0.0
    asked_at: float = -math.inf
    asked_until: float = -math.inf

    def deadline(self, operation: str) -> float:
        return self.known_at + self.wait.timeout if operation == "read" else math.inf

    def limit(self, operation: str) -> float:
        """When the try begins, at the latest, that decides."""
        tolerated = math.inf if self.troubled is None else self.troubled + self.wait.tolerance
        return min(self.deadline(operation), tolerated)


def judge(wait: Wait, seen: Sequence[Seen], *, has_pr: bool) -> Verdict:
    """Tell how the exchanges of a run for one job are to end, and check each step of the way. Raises `WrongError`."""
    walk = _Walk(wait=wait, has_pr=has_pr)
    verdict = walk.verdict
    verdict.job_known = wait.attached
    for number, exchange in enumerate(seen):
        if verdict.ends:
            raise WrongError(f"went on with {exchange} though it was to end with {set(verdict.ends)}")
        ends, may_go_on = _step(walk, exchange)
        is_last = number == len(seen) - 1
        if is_last or not may_go_on:
            verdict.ends = ends
        if not is_last and may_go_on:
            _check_pause(walk, exchange, seen[number + 1])
    if seen and not verdict.ends:
        raise WrongError(f"ended after {seen[-1]}, at which it was to go on")
    return verdict


def _step(walk: _Walk, exchange: Seen) -> tuple[frozenset[str | None], bool]:
    """Tell how a run may end with an exchange, none if it must go on, and whether it may go on."""
    if walk.reading_since is None:
        walk.reading_since = exchange.began
    if exchange.got == "good":
        since, walk.troubled, walk.reading_since = walk.reading_since, None, None
        return _good(walk, exchange, since=since)
    walk.verdict.faults += 1
    if exchange.got.isdigit() and int(exchange.got) in FINAL_STATUSES and not _settles(walk, exchange):
        return _only(FINAL_STATUSES[int(exchange.got)])
    if exchange.operation == "start" and exchange.got not in {*UNSENT, *WAIT_ASKED}:
        return _only("bad-response" if exchange.got in GARBLED else "start-unconfirmed")
    limit, deadline = walk.limit(exchange.operation), walk.deadline(exchange.operation)
    if walk.troubled is None:
        walk.verdict.stretches += 1
        walk.troubled = exchange.ended
    if exchange.began < limit - NOTHING:
        return frozenset(), True
    late = {"timeout"} if exchange.ended >= deadline - NOTHING else set()
    early = {"unavailable"} if exchange.ended < deadline + NOTHING else set()
    # on the very edge of the limit rounding decides whether this was the last try
    return frozenset(late | early), exchange.began < limit + NOTHING


def _good(walk: _Walk, exchange: Seen, *, since: float) -> tuple[frozenset[str | None], bool]:
    verdict = walk.verdict
    if exchange.operation == "bundle":
        return _only(None)
    if exchange.operation == "start":
        walk.known_at = walk.entered_at = exchange.ended
        verdict.job_known, verdict.status = True, exchange.answered
        return (frozenset(), True) if walk.wait.waits else _only(None)
    verdict.good_reads += 1
    if verdict.good_reads > 1 and verdict.status != exchange.answered:
        walk.entered_at = exchange.ended
    verdict.status = exchange.answered
    if exchange.answered == "failed":
        return _only("job-failed")
    if exchange.answered in {"completed", "archived"}:
        if walk.wait.mode == "export":
            return frozenset(), True
        return _only("no-pull-request" if walk.wait.require_pr and not walk.has_pr else None)
    deadline = walk.deadline("read")
    if exchange.began < deadline - NOTHING:
        return frozenset(), True
    # a reading that began in time and was repeated beyond it is followed by the one that decides
    return frozenset({"timeout"}), since < deadline + NOTHING


def _only(end: str | None) -> tuple[frozenset[str | None], bool]:
    return frozenset({end}), False


def _settles(walk: _Walk, exchange: Seen) -> bool:
    """Whether a 404 is one of a job that this run has just started."""
    is_new = exchange.operation == "read" and not walk.wait.attached and exchange.ended < walk.known_at + SETTLING_SECONDS
    return exchange.got == "404" and is_new


def _check_pause(walk: _Walk, last: Seen, following: Seen) -> None:
    """See that the pause was neither shorter nor longer than the interface allows."""
    pause = following.began - last.ended
    if pause < -NOTHING:
        raise WrongError(f"two exchanges at a time: {last} and {following}")
    if last.asked:
        walk.asked_at, walk.asked_until = last.ended, last.ended + last.asked
    if last.got == "good":
        shortest, longest = _pauses_after(walk, last, following)
        if last.began == walk.asked_at:  # only in virtual time: whether it began before or after cannot be told
            longest = max(longest, walk.asked_until - last.ended)
    else:
        shortest, longest = last.asked, max(MAX_PAUSE_SECONDS, last.asked)
    limit = walk.limit(following.operation)
    if pause < shortest - NOTHING and following.began < limit - NOTHING:
        raise WrongError(f"only {pause} s between {last} and {following}, not {shortest}")
    if pause > longest + ROW_SECONDS:
        raise WrongError(f"as much as {pause} s between {last} and {following}, not {longest}")
    if following.began > max(limit, last.ended) + ROW_SECONDS:
        raise WrongError(f"nothing began when the time was up at {limit}, but {following}")
    left = max(limit - following.began, MIN_TRY_SECONDS) if following.began < limit - NOTHING else LAST_TRY_SECONDS
    if following.ended - following.began > max(left, LAST_TRY_SECONDS if following.began > limit - NOTHING else 0.0) + NOTHING:
        raise WrongError(f"{following} took longer than the {left} s that were left")


def _pauses_after(walk: _Walk, last: Seen, following: Seen) -> tuple[float, float]:
    """Tell the shortest and the longest pause that may follow a good answer."""
    wait = walk.wait
    if following.operation != "read":
        return 0.0, 0.0
    if last.operation == "start":
        first = min(FIRST_SECONDS, wait.longest_poll)
        return first, first
    if not _tells_nothing(wait):
        return wait.poll, wait.longest_poll
    share = (max(last.ended - walk.entered_at, 0.0) + last.ended - last.began) / PATIENCE
    return wait.poll, min(max(share, wait.poll, YOUNG_SECONDS), wait.longest_poll)


def _tells_nothing(wait: Wait) -> bool:
    return wait.mode == "agent" or wait.jobs[0].shape in TELLS_NOTHING


def most_good_reads(wait: Wait, seconds: float) -> float:
    """Bound the good readings of one job in so many seconds, whatever it does.

    Without progress pauses are even at least; progress brings closer ones for as often as it promises an end. More than one
    reading in `poll-interval` there is never.
    """
    even = seconds / max(min(EVEN_SECONDS, wait.longest_poll), wait.poll) + 3
    return min(even + (0 if _tells_nothing(wait) else PACES * CLOSING_IN), seconds / wait.poll + 3)


def judge_of_many(wait: Wait, seen: Sequence[Seen]) -> dict[str, Verdict]:
    """Tell how the exchanges of several domains, in the order in which they began, are to end. Raises `WrongError`.

    Jobs that share a platform wait for each other when it is in trouble, so pauses are the jobs' own no more, and an outage is as
    old as the trouble of all. What is left is each end, and that nobody gives up early or goes on for too long.
    """
    of = {job.name: [exchange for exchange in seen if exchange.job == job.name] for job in wait.jobs}
    return {job: _judge_one_of_many(wait, own, seen, of) for job, own in of.items()}


def _judge_one_of_many(wait: Wait, own: Sequence[Seen], seen: Sequence[Seen], of: Mapping[str, Sequence[Seen]]) -> Verdict:
    walk = _Walk(wait=wait, has_pr=False)
    verdict = walk.verdict
    for number, exchange in enumerate(own):
        if verdict.ends:
            raise WrongError(f"went on with {exchange} though it was to end with {set(verdict.ends)}")
        ends, may_go_on = _step(walk, exchange)
        is_last = number == len(own) - 1
        if _finds_no_room(exchange, of):
            ends, may_go_on, walk.troubled = frozenset(), True, exchange.ended
        elif is_last and not ends and exchange.got != "good" and _tolerated(wait, exchange, seen, of):
            ends = frozenset({"unavailable"})
        if is_last or not may_go_on:
            verdict.ends = ends
    if own and not verdict.ends:
        raise WrongError(f"ended after {own[-1]}, at which it was to go on")
    return verdict


def _finds_no_room(exchange: Seen, of: Mapping[str, Sequence[Seen]]) -> bool:
    """Whether a start was turned away by a platform that runs other jobs of this run, at whose end there is room."""
    if exchange.operation != "start" or not exchange.got.startswith("429"):
        return False
    under_way = [
        others
        for job, others in of.items()
        if job != exchange.job and any(other.got == "good" and other.ended < exchange.ended for other in others)
    ]
    return any(others[-1].ended > exchange.ended for others in under_way)


def _tolerated(wait: Wait, last: Seen, seen: Sequence[Seen], of: Mapping[str, Sequence[Seen]]) -> bool:
    """Whether nobody got any answer for as long as an outage is tolerated, when a last try began."""
    before = sorted((other for other in seen if other.ended <= last.began), key=lambda other: other.ended)
    faults = list(itertools.takewhile(lambda other: not _is_answer(other, of), reversed(before)))
    return bool(faults) and last.began >= faults[-1].ended + wait.tolerance - NOTHING


def _is_answer(exchange: Seen, of: Mapping[str, Sequence[Seen]]) -> bool:
    """Whether the platform was well, if perhaps one job was not."""
    return exchange.got in {"good", "409", *map(str, FINAL_STATUSES)} or _finds_no_room(exchange, of)
