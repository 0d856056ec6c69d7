"""Fetches a bundle whole: resumed where its connection broke off, with a fresh link where that died, hashed on the way."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol
from urllib.parse import parse_qsl, urlsplit

import backoff

from .. import retrying, sizes
from ..clock import Clock
from ..errors import DownloadFailed
from ..model import Bundle
from ..network import NetworkError
from ..retrying import PROXY, Advice, Outage, TemporaryError, keep_trying, read_retry_after, seconds
from .storage import Answer, Storage

MOST_REFUSALS: Final = 5
"""How many links in a row may be refused, each but the first made a moment before; a fresh one has not expired."""

GOOD_BYTES: Final = 64 * 1024
"""What has to come anew for an outage to be over."""

SLOWEST_BYTES_A_SECOND: Final = 1024
SLOW_SECONDS: Final = 60.0
"""A connection that brings less than that over this time is given up: such a bundle would never be there in time."""

LARGEST_BYTES: Final = 50 * 1024**3
"""A bundle that announces no length ends here; no runner of GitHub's has room for more."""

_DEAD: Final = frozenset({400, 401, 403, 404, 410})
"""How storages refuse a link that has expired, early or in time, or leads to what is gone (source: AWS, Google, Azure)."""

_TEMPORARY: Final = frozenset({408, 425, 429, *range(500, 600)})

_STORAGE: Final = Advice(cause=DownloadFailed.cause, remedy=DownloadFailed.remedy)
_CUT_OFF: Final = Advice(
    cause="The runner's network does not let it through to the storage, or the storage is down.",
    remedy="Allow the runner to reach the storage's host, or run the workflow again.",
)
_REFUSED: Final = Advice(
    cause="The storage does not let this runner in, or the platform makes links that it does not accept.",
    remedy="Allow the runner's address at the storage, or report it to the platform.",
)
_CHANGED: Final = Advice(
    cause="The bundle was packed anew while it was fetched, or something between the storage and this runner alters it.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)


@dataclass(frozen=True, kw_only=True)
class Downloaded:
    """A bundle that is there whole: its bytes, and their SHA-256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Where bytes came from: the link without its query, and what tells the object from another one there."""

    address: str
    validator: str


class Listener(retrying.Listener, Protocol):
    """Who wants to know how a download goes."""

    def answered(self, address: str, status: int, asked: str | None, request_id: str | None) -> None:
        """Hear that an answer begins: to which address, without the query, and which range was asked for."""
        ...

    def progressed(self, received: int, size: int | None) -> None:
        """Hear how many bytes are there, and of how many where that is known."""
        ...

    def link_died(self, why: str) -> None:
        """Hear that the link no longer works, and that a fresh one is made."""
        ...

    def started_over(self, why: str) -> None:
        """Hear that what was there is of no use, and that the download starts at the first byte again."""
        ...


class Download:
    """One bundle on its way into a file.

    `renew` makes a fresh link through the API. `outage_tolerance_seconds` is for how long nothing good may come. `check_room`
    gets the bundle's size in bytes as soon as that is known, and raises what is to be raised when there is no room for it.
    """

    def __init__(
        self,
        bundle: Bundle,
        file: BinaryIO,
        *,
        storage: Storage,
        renew: Callable[[], Bundle],
        clock: Clock,
        outage_tolerance_seconds: float,
        listener: Listener,
        check_room: Callable[[int], None],
        jitter: Callable[[float], float] = backoff.full_jitter,
    ) -> None:
        self._bundle = bundle
        self._file = file
        self._storage = storage
        self._renew_link = renew
        self._clock = clock
        self._outage = Outage(clock=clock, tolerance_seconds=outage_tolerance_seconds)
        self._listener = listener
        self._check_room = check_room
        self._jitter = jitter
        self._hash = hashlib.sha256()
        self._received = 0
        self._furthest = 0
        self._size: int | None = None
        self._source: _Source | None = None
        self._refusals = 0
        self._contradicted = False
        self._link_is_dead = False

    def run(self) -> Downloaded:
        """Fetch the bundle.

        Raises `DownloadFailed`, `Cancelled`, what `renew` raises, and `OSError` when the file cannot be written.
        """
        if self._bundle.size is not None:
            self._check_room(self._bundle.size)
        try:
            keep_trying(self._try_once, self._outage, listener=self._listener, jitter=self._jitter)
        except TemporaryError as error:
            raise self._given_up(error) from error
        return Downloaded(size=self._received, sha256=self._hash.hexdigest())

    def _try_once(self) -> None:
        self._outage.begin_try()
        if self._link_is_dead:
            self._renew()
        try:
            while not self._take_what_comes():
                self._renew()
        except NetworkError as error:
            advice = PROXY if error.proxied else _STORAGE if error.sent else _CUT_OFF
            raise TemporaryError(f"{error.what}{self._so_far()}", advice=advice) from error
        if self._received < (self._size or self._bundle.size or 0):
            # it looked whole: the connection ended as one does that announced no length
            raise TemporaryError(f"The storage ended the bundle too early{self._so_far()}", advice=_STORAGE)

    def _take_what_comes(self) -> bool:
        """Ask for what is missing and take it; tell whether the link was good for it."""
        asked = self._what_is_missing()
        with self._storage.get(self._bundle.url, asked) as answer:
            self._listener.answered(_address(self._bundle.url), answer.status, asked.get("Range"), answer.request_id)
            if answer.status in _DEAD:
                return self._refused(answer)
            if answer.status == 416 and asked:
                return self._beyond_the_end(answer)
            if answer.status not in {200, 206}:
                raise self._unexpected(answer)
            if not self._begin(answer, resumed=bool(asked)):
                return False
            self._take(answer)
        return True

    def _what_is_missing(self) -> dict[str, str]:
        """Ask for the rest, of the same object only: an ETag means nothing at another address (RFC 9110, section 8.8.3)."""
        if not self._received or self._source is None or self._source.address != _address(self._bundle.url):
            return {}
        return {"Range": f"bytes={self._received}-", "If-Range": self._source.validator}

    def _begin(self, answer: Answer, *, resumed: bool) -> bool:
        """Set out from where the answer begins; tell whether its size is what the API said."""
        if answer.status == 206:
            size = self._resume(answer, resumed=resumed)
        else:
            same = self._source is not None and answer.validator == self._source.validator
            self._start_over("the storage does not resume it" if same else "what is there is not known to be the same")
            self._source = _Source(address=_address(self._bundle.url), validator=answer.validator) if answer.validator else None
            size = answer.length
        if size is not None:
            if self._size is None and self._bundle.size is None:
                self._check_room(size)
            self._size = size
        if self._size is not None and self._bundle.size is not None and self._size != self._bundle.size:
            return self._contradiction(self._size, self._bundle.size)
        return True

    def _resume(self, answer: Answer, *, resumed: bool) -> int | None:
        """Go on with a part; tell how much there is in all."""
        begins, size = _content_range(answer)
        same = self._source is not None and answer.validator in {None, self._source.validator}
        if not resumed or not same or begins != self._received or (size != self._size and None not in {size, self._size}):
            self._start_over("the storage sent another part than was asked for")
            raise TemporaryError("The storage sent another part of the bundle than was asked for", advice=_CHANGED)
        return size

    def _take(self, answer: Answer) -> None:
        slow_since, slow_bytes = self._clock.monotonic(), 0
        most = self._bundle.size if self._bundle.size is not None else LARGEST_BYTES
        for piece in answer.pieces:
            self._file.write(piece)
            self._hash.update(piece)
            self._received += len(piece)
            self._refusals = 0
            if self._received > most:
                raise _too_large(most)
            if self._received >= self._furthest + GOOD_BYTES:
                self._furthest = self._received
                self._outage.end(self._listener)
            self._listener.progressed(self._received, self._size)
            now, slow_bytes = self._clock.monotonic(), slow_bytes + len(piece)
            if now >= slow_since + SLOW_SECONDS:
                if slow_bytes < SLOWEST_BYTES_A_SECOND * SLOW_SECONDS:
                    what = f"The storage sent almost nothing for {SLOW_SECONDS:g} s{self._so_far()}"
                    raise TemporaryError(what, advice=_STORAGE)
                slow_since, slow_bytes = now, 0

    def _refused(self, answer: Answer) -> bool:
        self._refusals += 1
        what = f"The storage refused the link with {_status(answer, self._bundle.url)}"
        if self._refusals == 1:
            self._listener.link_died(what)
            return False
        self._link_is_dead = True
        if self._refusals > MOST_REFUSALS:
            what = f"{what}, like {MOST_REFUSALS} before it"
            raise self._given_up(TemporaryError(what, advice=_REFUSED, request_id=answer.request_id))
        what = f"{what}, though it was made a moment ago"
        raise TemporaryError(what, advice=_REFUSED, request_id=answer.request_id)

    def _beyond_the_end(self, answer: Answer) -> bool:
        """Take 416 at the full size for what it says: all is there (RFC 9110, section 15.5.17)."""
        if re.fullmatch(rf"bytes \*/{self._received}", answer.headers.get("Content-Range", "")):
            return True
        self._start_over("the bundle there is another now")
        raise TemporaryError("The storage has fewer bytes of the bundle than it sent before", advice=_CHANGED)

    def _contradiction(self, announced: int, promised: int) -> bool:
        """Ask the API once more when its size and the storage's differ: the bundle may have been packed anew in between."""
        if self._contradicted:
            raise DownloadFailed(
                f"the storage has {announced:,} bytes of the bundle, the API speaks of {promised:,}",
                cause=_CHANGED.cause,
                remedy=_CHANGED.remedy,
            )
        self._contradicted = True
        self._start_over("its size is not what the API said")
        return False

    def _unexpected(self, answer: Answer) -> Exception:
        what = f"The storage answered {_status(answer, self._bundle.url)}"
        if 400 <= answer.status < 500 and answer.status not in _TEMPORARY | {416}:
            return DownloadFailed(
                f"the storage answered {answer.status}",
                facts=(f"{what}.",),
                cause=_REFUSED.cause,
                remedy=_REFUSED.remedy,
                request_id=answer.request_id,
            )
        pause = read_retry_after(answer.headers, self._clock.now())
        return TemporaryError(f"{what}{self._so_far()}", advice=_STORAGE, retry_after_seconds=pause, request_id=answer.request_id)

    def _renew(self) -> None:
        self._bundle = self._renew_link()
        self._link_is_dead = False

    def _start_over(self, why: str) -> None:
        if self._received:
            self._listener.started_over(why)
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.sha256()
        self._received, self._size, self._source = 0, None, None

    def _so_far(self) -> str:
        of_all = f" of {sizes.size(self._size)}" if self._size is not None else ""
        return f", after {sizes.size(self._received)}{of_all}" if self._received else ""

    def _given_up(self, error: TemporaryError) -> DownloadFailed:
        return DownloadFailed(
            "the bundle could not be fetched whole",
            facts=(f"Nothing good came for {seconds(self._outage.lasted_seconds())}. The last try: {error.what}.",),
            cause=error.advice.cause,
            remedy=error.advice.remedy,
            request_id=error.request_id,
        )


def _address(url: str) -> str:
    return urlsplit(url)._replace(query="", fragment="").geturl()


def _content_range(answer: Answer) -> tuple[int | None, int | None]:
    """Read where a part begins, and how much there is in all (RFC 9110, section 14.4)."""
    found = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)", answer.headers.get("Content-Range", ""))
    return (int(found[1]), None if found[2] == "*" else int(found[2])) if found else (None, None)


def _too_large(most: int) -> DownloadFailed:
    return DownloadFailed(
        f"the storage sent more than the {most:,} bytes that the bundle may have", cause=_CHANGED.cause, remedy=_CHANGED.remedy
    )


def _status(answer: Answer, url: str) -> str:
    said = answer.said()
    for secret in sorted((value for _, value in parse_qsl(urlsplit(url).query)), key=len, reverse=True):
        said = said.replace(secret, "…") if len(secret) >= 8 else said  # a shorter one may be part of ordinary words
    return f"{answer.status} ({said})" if said else str(answer.status)
