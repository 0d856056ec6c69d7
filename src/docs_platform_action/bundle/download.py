"""Fetches a bundle whole: resumed where its connection broke off, with a fresh link where that died, hashed on the way."""

import contextlib
import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol
from urllib.parse import urlsplit

import backoff

from ..archive.codecs import GZIP, decompressed
from ..archive.formats import START_BYTES, is_archive, looks
from ..archive.tar import begins_tar
from ..clock import Clock
from ..errors import Advice, DownloadFailed, InvalidBundle
from ..http import retry
from ..http.faults import NetworkError
from ..http.retry import PROXY, TEMPORARY_STATUSES, Outage, TemporaryError, keep_trying, read_retry_after, seconds
from ..models import Bundle, Downloaded
from ..text import size
from .storage import Answer, Storage

GOOD_BYTES: Final = 64 * 1024
"""What has to come anew for an outage to be over."""

MOST_START_BYTES: Final = 64 * 1024
"""Compressed bytes in which the first of what they hold have to be."""

LARGEST_BYTES: Final = 50 * 1024**3
"""A bundle that announces no length ends here; no runner of GitHub's has room for more."""

_DEAD: Final = frozenset({400, 401, 403, 404, 410})
"""How storages refuse a link that has expired, early or in time, or leads to what is gone (source: AWS, Google, Azure)."""

_GZIP_TYPES: Final = ("application/gzip", "application/x-gzip")

_STORAGE: Final = Advice(cause=DownloadFailed.cause, remedy=DownloadFailed.remedy)
_CUT_OFF: Final = Advice(
    cause="The runner's network does not let it through to the storage, or the storage is down.",
    remedy="Allow the runner to reach the storage's host, or run the workflow again.",
)
_REFUSED: Final = Advice(
    cause="The storage does not let this runner in, or the platform makes links that it does not accept.",
    remedy="Allow the runner's address at the storage, or report it to the platform.",
)
_GONE: Final = Advice(
    cause="The bundle is not where its link leads: it was removed, or is not there yet.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
_SHORT_LIVED: Final = Advice(
    cause="Links end before they can be used: the platform makes them too short-lived, or its clock and the storage's differ.",
    remedy="Report it to the platform, with the time of the run.",
)
_INTERCEPTED: Final = Advice(
    cause="Something else than the storage answers: a login page, or a gateway before it.",
    remedy="See what the link leads to from this runner's network, and let the runner reach the storage itself.",
)
_CHANGED: Final = Advice(
    cause="The bundle was packed anew while it was fetched, or something between the storage and this runner alters it.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Where bytes came from: the link and, behind redirects, the address, both without query, and the object's name there."""

    link: str
    address: str
    validator: str


class Listener(retry.Listener, Protocol):
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
        self._end: int | None = None
        self._source: _Source | None = None
        self._refusals = 0
        self._contradicted = False
        self._was_longer = False
        self._link_is_dead = False
        self._accepts_gzip = False
        self._tried_gzip = False
        self._is_recoded = False
        self._least_bytes = 0

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
        as_stored = not self._is_recoded or self._received == self._bundle.size
        return Downloaded(size=self._received, sha256=self._hash.hexdigest(), as_stored=as_stored)

    @property
    def _promised(self) -> int | None:
        """The size that the API told for the bundle as it is stored; `None` for one that comes in another form."""
        return None if self._is_recoded else self._bundle.size

    def _try_once(self) -> None:
        within_seconds = self._outage.begin_try()
        try:
            is_taken = False
            while not is_taken:
                if self._link_is_dead:
                    self._renew()
                is_taken = self._take_what_comes(within_seconds)
        except NetworkError as error:
            advice = PROXY if error.proxied else _STORAGE if error.sent else _CUT_OFF
            raise TemporaryError(f"{error.what}{self._so_far()}", advice=advice) from error
        if self._received < max(self._size or self._promised or 0, self._least_bytes):
            # it looked whole: the connection ended as one does that announced no length
            raise TemporaryError(f"The storage ended the bundle too early{self._so_far()}", advice=_STORAGE)

    def _take_what_comes(self, within_seconds: float) -> bool:
        """Ask for what is missing and take it; return whether there was nothing in the way, such as a dead link."""
        asked = self._what_is_missing()
        resuming = bool(asked)
        if self._accepts_gzip:
            asked["Accept-Encoding"] = "gzip"
        with self._storage.get(self._bundle.url, asked, within_seconds=within_seconds) as answer:
            self._listener.answered(_address(self._bundle.url), answer.status, asked.get("Range"), answer.request_id)
            if answer.status in _DEAD and (resuming or not self._accepts_gzip):
                return self._refused(answer, resuming=resuming)
            if answer.status == 416 and resuming:
                return self._beyond_the_end(answer)
            if answer.status not in {200, 206}:
                if self._accepts_gzip and not resuming:
                    self._accepts_gzip = False  # the storage may refuse gzip, not the bundle
                    return False
                raise self._unexpected(answer, resuming=resuming)
            start = b""  # of a part of the bundle, which may begin with anything
            if answer.status == 200:
                start = _archive_start(answer)
                if self._switch_coding(answer, start):
                    return False
            if not self._begin(answer, resumed=resuming):
                return False
            self._take(itertools.chain([start], answer.pieces))
        return True

    def _switch_coding(self, answer: Answer, start: bytes) -> bool:
        """Return whether to ask again, accepting another coding, for the bytes as they are stored.

        Servers change the coding both ways. Accepting none keeps them from compressing on the fly, but some then decompress what
        is stored as gzip (source: Google Cloud Storage, "Transcoding of gzip-compressed files"; nginx, `gunzip`). Where that may
        have happened, gzip is accepted; an answer that is then compressed on the fly, without a length, is not taken.
        """
        was_decompressed = self._was_decompressed(answer, start)
        may_be_decompressed = was_decompressed or (
            begins_tar(start[:START_BYTES]) and answer.length is None and not answer.is_encoded
        )
        if may_be_decompressed and not self._tried_gzip:
            self._accepts_gzip = self._tried_gzip = True
            return True
        if self._accepts_gzip and answer.is_encoded and answer.length is None and not answer.is_stored_as_gzip:
            self._accepts_gzip = False
            return True
        is_whole = answer.length is not None and answer.length == self._bundle.size
        is_compressed = answer.is_encoded and not is_whole and not answer.is_stored_as_gzip
        self._least_bytes = (self._bundle.size or 0) if was_decompressed else 0  # a tar is not smaller than its gzip
        by_proof = was_decompressed and answer.is_stored_as_gzip
        self._is_recoded = by_proof or (self._bundle.size is not None and (was_decompressed or is_compressed))
        return False

    def _was_decompressed(self, answer: Answer, start: bytes) -> bool:
        """Return whether an answer says, or the names it goes by say, that it was gzip before it was sent."""
        if answer.is_encoded:
            return False
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        names = (_address(self._bundle.url), answer.address)
        is_named_gzip = kind in _GZIP_TYPES or any(name.lower().endswith((".gz", ".tgz")) for name in names)
        return answer.is_stored_as_gzip or (is_named_gzip and begins_tar(start[:START_BYTES]))

    def _what_is_missing(self) -> dict[str, str]:
        """Ask for the rest, of the same object only: an ETag means nothing at another address (RFC 9110, section 8.8.3)."""
        if not self._received or self._source is None or self._source.link != _address(self._bundle.url):
            return {}
        return {"Range": f"bytes={self._received}-", "If-Range": self._source.validator}

    def _begin(self, answer: Answer, *, resumed: bool) -> bool:
        """Set out from where the answer begins; tell whether its size is what the API said."""
        if answer.status == 206:
            part = self._resume(answer, resumed=resumed)
            size, self._end = part.size, part.end
        else:
            same = self._source is not None and answer.validator == self._source.validator
            self._start_over("the storage does not resume it" if same else "what is there is not known to be the same")
            # what is compressed on the fly may be resumed as something else
            if answer.validator is not None and not (answer.is_encoded and answer.length is None):
                link = _address(self._bundle.url)
                self._source = _Source(link=link, address=answer.address, validator=answer.validator)
            size = answer.length
            self._end = size if size is not None else self._promised
        if size is not None:
            if self._size is None and self._promised is None:
                self._check_room(size)
            self._size = size
        if self._size is not None and self._promised is not None and self._size != self._promised:
            return self._contradiction(self._size, self._promised, answer.headers.get("Content-Type", ""))
        return True

    def _resume(self, answer: Answer, *, resumed: bool) -> "_Part":
        """See that an answer goes on where the download is."""
        part = _content_range(answer)
        source = self._source
        fits = (
            (resumed and source is not None and part is not None)
            and answer.etag in {None, source.validator}
            and answer.address == source.address
            and part.begin == self._received
            and (part.size == self._size or None in {part.size, self._size})
        )
        if part is None or not fits:
            self._start_over("the storage sent another part than was asked for")
            raise TemporaryError("The storage sent another part of the bundle than was asked for", advice=_CHANGED)
        return part

    def _take(self, pieces: Iterator[bytes]) -> None:
        most = self._end if self._end is not None else LARGEST_BYTES
        for piece in pieces:
            if self._received + len(piece) > most:
                raise _too_large(most)
            self._file.write(piece)
            self._hash.update(piece)
            self._received += len(piece)
            self._refusals = 0
            if self._received >= self._furthest + GOOD_BYTES:
                self._furthest = self._received
                self._outage.end(self._listener)
            self._listener.progressed(self._received, self._size)

    def _refused(self, answer: Answer, *, resuming: bool) -> bool:
        """Have a fresh link made: at once for the first that is refused, after a pause for those that were just made."""
        self._outage.begin()
        self._refusals += 1
        said = answer.said()
        what = f"The storage refused the link with {_status(answer.status, said)}"
        self._link_is_dead = True
        if self._refusals == 1:
            self._listener.link_died(what)
            return False
        if resuming:
            self._start_over("the storage refuses to resume it")
        advice = _GONE if answer.status in {404, 410} else _SHORT_LIVED if "xpired" in said else _REFUSED
        what = f"{what}, though it was made a moment ago"
        raise TemporaryError(what, advice=advice, request_id=answer.request_id)

    def _beyond_the_end(self, answer: Answer) -> bool:
        """Take 416 at the full size for what it says: all is there (RFC 9110, section 15.5.17)."""
        same = self._source is not None and answer.etag in {None, self._source.validator}
        if same and re.fullmatch(rf"bytes \*/{self._received}", answer.headers.get("Content-Range", "")):
            if self._size not in {None, self._received} and not self._was_longer:
                self._was_longer = True
                self._start_over("the storage has less of it than it announced")
                raise TemporaryError("The storage has fewer bytes of the bundle than it announced", advice=_CHANGED)
            self._size = self._received  # it says so for the second time
            if self._promised is not None and self._promised != self._size:
                return self._contradiction(self._size, self._promised, answer.headers.get("Content-Type", ""))
            return True
        self._start_over("the bundle there is another now")
        raise TemporaryError("The storage has fewer bytes of the bundle than it sent before", advice=_CHANGED)

    def _contradiction(self, announced: int, promised: int, kind: str) -> bool:
        """Ask the API once more when its size and the storage's differ: the bundle may have been packed anew in between."""
        what = f"the storage has {announced:,} bytes of the bundle, the API speaks of {promised:,}"
        if self._contradicted:
            named = (f"The storage calls it {kind}.",) if kind else ()
            raise DownloadFailed(what, facts=named, cause=_CHANGED.cause, remedy=_CHANGED.remedy)
        self._contradicted = self._link_is_dead = True
        self._start_over("its size is not what the API said")
        self._listener.link_died(f"{what[0].upper()}{what[1:]}")
        return False

    def _unexpected(self, answer: Answer, *, resuming: bool) -> Exception:
        what = f"The storage answered {_status(answer.status, answer.said())}"
        if 400 <= answer.status < 500 and answer.status not in TEMPORARY_STATUSES | {416}:
            if not resuming:
                return DownloadFailed(
                    f"the storage answered {answer.status}",
                    facts=(f"{what}.",),
                    cause=_REFUSED.cause,
                    remedy=_REFUSED.remedy,
                    request_id=answer.request_id,
                )
            self._start_over("the storage refuses to resume it")
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
        of_all = f" of {size(self._size)}" if self._size is not None else ""
        return f", after {size(self._received)}{of_all}" if self._received else ""

    def _given_up(self, error: TemporaryError) -> DownloadFailed:
        return DownloadFailed(
            "the bundle could not be fetched whole",
            facts=(f"Nothing good came for {seconds(self._outage.lasted_seconds())}. The last try: {error.what}.",),
            cause=error.advice.cause,
            remedy=error.advice.remedy,
            request_id=error.request_id,
        )


def _archive_start(answer: Answer) -> bytes:
    """Read the beginning of a bundle. Raises `TemporaryError` when it is not that of an archive, whatever the answer calls it.

    Pages are compressed on their way too, so where the answer says that it is encoded, what is inside counts as well.
    """
    start = b""
    while len(start) < START_BYTES and (piece := next(answer.pieces, b"")):
        start += piece
    inside = start
    if answer.is_encoded and start.startswith(GZIP.magic):
        while len(inside := _decompressed_start(start)) < START_BYTES and len(start) < MOST_START_BYTES:
            if not (piece := next(answer.pieces, b"")):
                break
            start += piece
    if is_archive(start) and is_archive(inside):
        return start
    kind = answer.headers.get("Content-Type")
    called = f" (Content-Type {kind})" if kind else ""
    raise TemporaryError(f"What the storage sent in place of the bundle {looks(inside)}{called}", advice=_INTERCEPTED)


def _decompressed_start(start: bytes) -> bytes:
    """Return the first bytes of what gzip data holds, as far as its beginning and its checksums allow."""
    inside = b""
    with contextlib.suppress(InvalidBundle):  # it ends too early, or is damaged: what came until then decides
        for chunk in decompressed(GZIP, iter([start])):
            inside += chunk
            if len(inside) >= START_BYTES:
                break
    return inside


def _address(url: str) -> str:
    return urlsplit(url)._replace(query="", fragment="").geturl()


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The bytes from `begin` up to, not including, `end`, and how many there are in all, if that is told."""

    begin: int
    end: int
    size: int | None


def _content_range(answer: Answer) -> _Part | None:
    """Read what part an answer is (RFC 9110, section 14.4); `None` for one that contradicts itself."""
    found = re.fullmatch(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", answer.headers.get("Content-Range", ""))
    if found is None:
        return None
    begin, end, size = int(found[1]), int(found[2]), None if found[3] == "*" else int(found[3])
    if not begin <= end < (end + 1 if size is None else size) or answer.length not in {None, end + 1 - begin}:
        return None
    return _Part(begin=begin, end=end + 1, size=size)


def _too_large(most: int) -> DownloadFailed:
    return DownloadFailed(
        f"the storage sent more than the {most:,} bytes that the bundle may have", cause=_CHANGED.cause, remedy=_CHANGED.remedy
    )


def _status(status: int, said: str) -> str:
    return f"{status} ({said})" if said else str(status)
