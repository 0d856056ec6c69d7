"""Trying again: for as long as it may take, with growing pauses, told once; and what is likely behind what does not pass."""

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, Protocol, TypeVar

from ..clock import Clock, slept_on
from ..errors import Advice

T = TypeVar("T")

LONGEST_PAUSE_SECONDS: Final = 30.0

SHORTEST_TRY_SECONDS: Final = 2.0
"""What a try may take at least, however little time is left."""

LAST_TRY_SECONDS: Final = 10.0
"""What the one try may take that starts when the time is up."""

TEMPORARY_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)})
"""Statuses that say of themselves that they may pass (RFC 9110, section 15; RFC 8470 for 425)."""


PROXY: Final = Advice(
    cause="The proxy that the environment names, in HTTPS_PROXY or the like, is down, or does not serve this host.",
    remedy="Correct the proxy's address, or except the host with NO_PROXY.",
)


class TemporaryError(Exception):
    """A try failed in a way that may pass.

    `sent` tells whether the server may have acted on it, `worth_seconds` for how long yet it is worth trying again, `of_one_job`
    whether the server is well and it is one job that is not ready, `no_room` whether it is well and takes this once other jobs
    have made room for it.
    """

    def __init__(
        self,
        what: str,
        *,
        advice: Advice,
        sent: bool = True,
        retry_after_seconds: float | None = None,
        worth_seconds: float = float("inf"),
        of_one_job: bool = False,
        no_room: bool = False,
        said: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.sent = sent
        self.advice = advice
        self.retry_after_seconds = retry_after_seconds
        self.worth_seconds = worth_seconds
        self.of_one_job = of_one_job
        self.no_room = no_room
        self.said = said
        self.request_id = request_id


class Listener(Protocol):
    """Who wants to know how the tries go."""

    def trouble(self, what: str, *, budget_seconds: float, pause_seconds: float) -> None:
        """Hear of the first failed try of an outage: how long tries may go on, and when the next one comes.

        There is no end to those that wait for room that other jobs make.
        """
        ...

    def recovered(self, after_seconds: float) -> None:
        """Hear that an outage which was told is over."""
        ...


class Common(Protocol):
    """What all who talk to one server know of its health together."""

    @property
    def troubled_since(self) -> float | None:
        """When the first of the errors came that are the latest news for all; `None` in good times."""
        ...

    @property
    def ceiling_seconds(self) -> float:
        """What the pause may be that the latest failures of all are worth."""
        ...

    def hold(self, pause_seconds: float) -> None:
        """Have the others wait as well while one makes a pause."""
        ...


@dataclass(kw_only=True)
class Outage:
    """The stretch of a piece of work in which nothing good came.

    `began` is when the first try failed, and `last_good` when that try began; the former is what `outage-tolerance` counts from,
    the latter what people are told. `last_try` holds for the one try that begins when the time is up. Where others talk to the
    same server, `common` is what they know together: while nobody gets anything good, the outage is as old as that.
    """

    clock: Clock
    tolerance_seconds: float
    deadline: float | None = None
    common: Common | None = None
    last_good: float | None = None
    began: float | None = None
    told: bool = False
    last_try: bool = False

    def begin_try(self) -> float:
        """Take note that a try begins; tell how many seconds it may take."""
        if self.last_good is None:
            self.last_good = self.clock.monotonic()
        left = self.left_seconds()
        self.last_try = left <= 0
        return LAST_TRY_SECONDS if self.last_try else max(SHORTEST_TRY_SECONDS, left)

    def begin(self) -> bool:
        """Take note that a try failed; tell whether it is the first one of an outage."""
        first = self.began is None
        if first:
            self.began = self.clock.monotonic()
        return first

    def put_off(self) -> None:
        """Count the tolerance from now: what failed is no outage."""
        self.began, self.last_try = self.clock.monotonic(), False

    def end(self, listener: Listener) -> None:
        """Take note that something good came, and say so if the outage was told."""
        if self.began is not None and self.told:
            listener.recovered(self.clock.monotonic() - self.began)
        self.last_good, self.began, self.told, self.last_try = self.clock.monotonic(), None, False, False

    def left_seconds(self) -> float:
        """Tell how long tries may go on from now."""
        ends = [self.deadline] if self.deadline is not None else []
        ends += [began + self.tolerance_seconds for began in (self.began, self._troubled_since()) if began is not None]
        return min(ends) - self.clock.monotonic() if ends else float("inf")

    def lasted_seconds(self) -> float:
        """Tell how long it has been going on."""
        since = [moment for moment in (self.last_good, self._troubled_since()) if moment is not None]
        return self.clock.monotonic() - min(since) if since else 0.0

    def pause_seconds(self, pause: Callable[[float], float], ceiling_seconds: float) -> float:
        """Choose the pause after a failed try, with what draws one below a ceiling, and have the others make one too."""
        if self.common is None:
            return pause(ceiling_seconds)
        seconds = pause(max(ceiling_seconds, self.common.ceiling_seconds))
        self.common.hold(seconds)
        return seconds

    def _troubled_since(self) -> float | None:
        return self.common.troubled_since if self.common is not None else None


def full_jitter(ceiling_seconds: float) -> float:
    """Draw a pause of any length up to a ceiling."""
    import backoff

    return float(backoff.full_jitter(ceiling_seconds))


def keep_trying(
    attempt: Callable[[], T],
    outage: Outage,
    *,
    listener: Listener,
    jitter: Callable[[float], float] = full_jitter,
    gives_up: Callable[[TemporaryError], bool] = lambda _error: False,
) -> T:
    """Repeat `attempt` while it raises `TemporaryError`, with pauses that grow as the outage lasts, and give its result.

    Raises the last `TemporaryError` when the time is up or `gives_up` says so, `Cancelled`, and whatever else `attempt` raises.
    """
    try:
        result = attempt()
    except TemporaryError as error:
        failed = error
    else:
        outage.end(listener)
        return result
    return _try_again(failed, attempt, outage, listener, jitter, gives_up)


def _try_again(
    failed: TemporaryError,
    attempt: Callable[[], T],
    outage: Outage,
    listener: Listener,
    jitter: Callable[[float], float],
    gives_up: Callable[[TemporaryError], bool],
) -> T:
    """Go on after a first try that failed so."""
    import backoff  # brings asyncio, for which no first request is to wait

    first = [failed]

    @backoff.on_exception(
        slept_on(outage.clock, lambda: _pauses(outage, listener, jitter)),
        TemporaryError,
        giveup=lambda error: isinstance(error, TemporaryError) and gives_up(error),
        jitter=None,
        logger=None,
    )
    def trying() -> T:
        if first:
            raise first.pop()
        return attempt()

    result: T = trying()
    outage.end(listener)
    return result


def _pauses(outage: Outage, listener: Listener, jitter: Callable[[float], float]) -> Generator[float, TemporaryError, None]:
    ceilings = _growing()
    error = yield 0.0
    while True:
        if outage.begin():
            ceilings = _growing()
        if error.no_room:
            outage.put_off()
        left = min(outage.left_seconds(), error.worth_seconds)
        if outage.last_try:
            return
        drawn = outage.pause_seconds(jitter, next(ceilings))
        pause = min(max(drawn, error.retry_after_seconds or 0.0), max(left, 0.0))
        if not outage.told and left > 0:
            outage.told = True
            listener.trouble(error.what, budget_seconds=float("inf") if error.no_room else left, pause_seconds=pause)
        error = yield pause


def _growing() -> Generator[float, None, None]:
    import backoff

    ceilings: Generator[float, None, None] = backoff.expo(base=2, factor=1, max_value=LONGEST_PAUSE_SECONDS)
    next(ceilings)
    return ceilings


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read a `Retry-After`, in whole seconds or as a date (RFC 9110, section 10.2.3); `None` when there is no sensible one.

    A date is measured against the answer's own `Date`, so that this machine's clock does not matter.
    """
    value = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    until, since = http_date(value), http_date(headers.get("Date", "")) or now
    return max((until - since).total_seconds(), 0.0) if until is not None else None


def http_date(value: str) -> datetime | None:
    """Read a date of a header; `None` when it is none."""
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
