"""The bundle as one stream of bytes.

It is resumed after a broken connection, from a new link when the first one has expired.
"""

import hashlib
import io
import itertools
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from ..context import PlatformContext
from ..errors import DownloadFailed
from ..http.attempts import TEMPORARY_STATUSES, Attempts, Pause, TransientError
from ..http.client import Response
from ..http.faults import NetworkError
from ..http.headers import read_retry_after, request_id_of
from ..job import Job
from ..models import STORAGE, Archive
from ..text import format_bytes, format_seconds
from .archive import CHUNK_BYTES, START_BYTES, describe_content, is_archive
from .faults import (
    BUNDLE_CHANGED,
    BUNDLE_GONE,
    BUNDLE_NOT_RESUMED,
    LINK_INTERCEPTED,
    RESPONSE_IS_ERROR,
    RESPONSE_UNEXPECTED,
    STORAGE_REFUSED,
    STORAGE_UNAVAILABLE,
    STORAGE_UNREACHABLE,
)
from .link import replace_link
from .staging import Staged
from .storage import address_of, error_reason, error_text, request_bundle, validator_of

# for a bundle of unknown size; GitHub's standard runners have no space for more
MAX_BUNDLE_BYTES: Final = 50 * 1024**3
MIN_PROGRESS_BYTES: Final = 64 * 1024  # new bytes that end an outage
SLOW_SECONDS: Final = 60.0  # a connection with fewer new bytes in this time counts as broken
INCOMPLETE: Final = "the bundle could not be downloaded completely"

# the link has expired, or the bundle is gone (source: AWS, Google and Azure documentation)
_LINK_REFUSED: Final = frozenset({400, 401, 403, 404, 410})


class ResumeError(DownloadFailed):
    """The rest of the bundle cannot be received, so the download must begin again.

    `reason` is a clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(
            INCOMPLETE,
            details=(f"Each attempt was interrupted. The last time, {reason}.",),
            **BUNDLE_NOT_RESUMED,
        )
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class _Identity:
    """What all responses with parts of one bundle have in common.

    A validator is of one bundle, address and coding (RFC 9110, sections 8.8.2, 8.8.3 and 15.3.7.3).
    """

    validator: str  # sent as `If-Range`
    link: str  # without its query
    address: str  # where its redirects lead, without the query
    coding: str


class BundleStream(io.RawIOBase):
    """The bundle of a job that has a link, from its first byte to its last.

    `archive` gets the same bytes. Whatever reads the stream raises `ResumeError`, `DownloadFailed`,
    `Cancelled` and the errors of `Platform.make_link`.
    """

    def __init__(self, job: Job, context: PlatformContext, archive: Staged | None = None) -> None:
        self.size: int | None = None  # if the storage has announced it
        self.received = 0
        self.coding = ""  # the response's `Content-Encoding`, which is not undone
        self._job = job
        self._context = context
        self._listener = context.listener
        self._archive = archive
        self._sha256 = hashlib.sha256()
        self._identity: _Identity | None = None  # `None` if the download cannot be resumed
        self._connection = ExitStack()
        self._pieces = self._receive()
        self._unread = memoryview(b"")  # of the last piece
        self._needs_link = False
        self._next_progress_at = MIN_PROGRESS_BYTES
        self._attempts = Attempts(
            context.clock,
            tolerance_seconds=context.platform.outage_tolerance_seconds,
        )

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return between one and `size` bytes; none only at the end."""
        if not self._unread:
            self._unread = memoryview(next(self._pieces, b""))
        chunk = bytes(self._unread[:size])
        self._unread = self._unread[size:]
        return chunk

    def peek(self) -> bytes:
        """Return the first `START_BYTES`, fewer only if the bundle is smaller.

        They are read again later. To be called before any `read`: the first piece has them.
        """
        if not self.received:
            self._unread = memoryview(next(self._pieces, b""))
        return bytes(self._unread[:START_BYTES])

    def drain(self) -> Archive:
        """Read the rest, and return what all of it is."""
        while self.read(CHUNK_BYTES):
            pass
        self._record_progress()
        return Archive(size=self.received, sha256=self._sha256.hexdigest())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        super().close()

    @property
    def is_complete(self) -> bool:
        """Whether as many bytes were received as the storage has announced."""
        return self.size is not None and self.received >= self.size

    def _receive(self) -> Iterator[bytes]:
        """Yield the bundle piece by piece, in as many attempts as it takes."""
        for _ in self._attempts:
            try:
                yield from self._pieces_of(self._connect())
            except NetworkError as error:
                failure = self._transient_error(error)
            except TransientError as error:
                failure = error
            else:
                return
            self._connection.close()
            self._announce_outage(failure, self._attempts.failed(failure))
        raise self._failure() from self._attempts.error

    def _pieces_of(self, response: Response) -> Iterator[bytes]:
        """Yield the pieces of a response, up to the end of the bundle."""
        while not self.is_complete:
            piece = next(response.pieces, b"")
            self._context.clock.cancellation.check()
            self._check_length(piece)
            self._record(piece, response)
            if not piece:
                return
            yield piece

    def _record(self, piece: bytes, response: Response) -> None:
        self.received += len(piece)
        self._sha256.update(piece)
        if self._archive is not None:
            self._archive.write(piece)
        if self.received >= self._next_progress_at:
            self._next_progress_at = self.received + MIN_PROGRESS_BYTES
            response.exchange.remaining_seconds = SLOW_SECONDS
            self._record_progress()
        self._listener.download_progressed(self._job, self.received, self.size)

    def _check_length(self, piece: bytes) -> None:
        """Check that the bundle does not end too early, or continue beyond its size."""
        if not piece and self.size is not None:
            raise TransientError(
                f"The storage ended the response too early{self._progress()}",
                advice=STORAGE_UNAVAILABLE,
            )
        max_bytes = MAX_BUNDLE_BYTES if self.size is None else self.size
        if self.received + len(piece) > max_bytes:
            raise DownloadFailed(
                f"the storage sent more than the {max_bytes:,} bytes that the bundle may have",
                **BUNDLE_CHANGED,
            )

    def _connect(self) -> Response:
        """Request the missing bytes, and return the response that has them."""
        url = self._current_url()
        link = address_of(url)
        headers = self._range_headers(link)
        attempt = request_bundle(
            url, headers, self._context, within_seconds=self._attempts.time_limit_seconds
        )
        response, address = self._connection.enter_context(attempt)
        self._listener.storage_responded(
            self._job,
            link,
            status=response.status,
            requested=headers.get("Range"),
            request_id=request_id_of(response.headers),
        )
        identity = _identity_of(response, link, address)
        if response.status == 200:
            self._begin(response, identity)
        elif response.status == 206:
            self._resume(response, identity)
        else:
            self._needs_link = response.status in _LINK_REFUSED
            raise self._error_of(response)
        response.exchange.remaining_seconds = SLOW_SECONDS
        return response

    def _current_url(self) -> str:
        """Return the job's link, or a new one if the storage has rejected it."""
        link = self._job.link
        if link is None or self._needs_link:
            link = replace_link(self._job, self._context)
            self._needs_link = False
        return link.url

    def _range_headers(self, link: str) -> dict[str, str]:
        """Return the headers that request the rest of the same bundle, if a part is received."""
        if not self.received:
            return {}
        if self._identity is None:
            raise ResumeError(
                "the storage sent neither a strong ETag nor a date that can serve as one"
            )
        if link != self._identity.link:
            raise ResumeError("the new link leads to another address")
        return {"Range": f"bytes={self.received}-", "If-Range": self._identity.validator}

    def _begin(self, response: Response, identity: _Identity | None) -> None:
        """Begin the bundle with a response that has all of it."""
        start = _peek_start(response)
        if not is_archive(start):
            raise _not_a_bundle(start, response)
        if self.received and identity == self._identity:
            raise ResumeError("the storage does not resume downloads")
        if self.received:
            raise ResumeError("the bundle may have been replaced")
        self.size = response.length
        self.coding = _coding_of(response)
        self._identity = identity

    def _resume(self, response: Response, identity: _Identity | None) -> None:
        """Check that a response continues the same bundle."""
        is_same = identity is not None and identity == self._identity
        size = self._complete_length(response.headers.get("Content-Range", ""))
        if not is_same or size is None:
            raise ResumeError("the storage sent something else than the rest of the same bundle")
        self.size = size

    def _complete_length(self, content_range: str) -> int | None:
        """Return the bundle's size, if the range begins at the first missing byte.

        It may end early: then the next request asks for the rest (RFC 9110, section 14.4).
        """
        found = re.fullmatch(
            rf"bytes {self.received}-[0-9]{{1,18}}/([0-9]{{1,18}}|\*)", content_range
        )
        if found is None:
            return None
        size = self.size if found[1] == "*" else int(found[1])
        if size is None or size <= self.received:
            return None
        if self.size is not None and size != self.size:
            return None
        return size

    def _transient_error(self, error: NetworkError) -> TransientError:
        advice = error.advice_for("the link, which the platform makes")
        if advice is None:
            advice = STORAGE_UNAVAILABLE if error.was_sent else STORAGE_UNREACHABLE
        return TransientError(f"{error.message}{self._progress()}", advice=advice)

    def _error_of(self, response: Response) -> DownloadFailed | TransientError:
        """Return the error for a response that has no part of the bundle."""
        reason = error_text(response)
        request_id = request_id_of(response.headers)
        if response.status in _LINK_REFUSED:
            return TransientError(
                f"The storage rejected the link with {reason}",
                advice=BUNDLE_GONE if response.status in {404, 410} else STORAGE_REFUSED,
                request_id=request_id,
            )
        is_final = 400 <= response.status < 500 and response.status not in TEMPORARY_STATUSES
        if is_final and self.received:
            return ResumeError("the storage refuses to resume the download")
        if is_final:
            return DownloadFailed(
                f"the storage returned {response.status}",
                details=(f"The storage returned {reason}.",),
                request_id=request_id,
                **STORAGE_REFUSED,
            )
        retry_after_seconds = read_retry_after(response.headers, self._context.clock.now())
        # a success or a 304 without the bundle was not asked for
        is_unexpected = response.status < 400
        return TransientError(
            f"The storage returned {reason}{self._progress()}",
            advice=RESPONSE_UNEXPECTED if is_unexpected else STORAGE_UNAVAILABLE,
            retry_after_seconds=retry_after_seconds or 0.0,
            request_id=request_id,
        )

    def _progress(self) -> str:
        """Return after how many bytes an error occurred, as the end of its message."""
        if not self.received:
            return ""
        received = format_bytes(self.received)
        if self.size is None:
            return f", after {received}"
        return f", after {received} of {format_bytes(self.size)}"

    def _announce_outage(self, error: TransientError, pause: Pause | None) -> None:
        if pause is not None and pause.is_first:
            self._listener.retrying(
                self._job,
                STORAGE,
                error.message,
                budget_seconds=pause.budget_seconds,
                pause_seconds=pause.seconds,
            )

    def _failure(self) -> DownloadFailed:
        """Return the failure of a download that is not resumed again."""
        error = self._attempts.error
        outage = format_seconds(self._attempts.elapsed_seconds)
        return DownloadFailed(
            INCOMPLETE,
            details=(f"No successful response for {outage}. Last error: {error.message}.",),
            request_id=error.request_id,
            **error.advice,
        )

    def _record_progress(self) -> None:
        """End the outage, if there is one. The next one has the whole tolerance again."""
        if self._attempts.has_failed:
            after_seconds = self._attempts.elapsed_seconds
            self._listener.recovered(self._job, STORAGE, after_seconds=after_seconds)
        self._attempts.reset()


def _identity_of(response: Response, link: str, address: str) -> _Identity | None:
    """Return what the response shares with others that have parts of the same bundle.

    Without it, the download cannot be resumed.
    """
    validator = validator_of(response)
    coding = _coding_of(response)
    # such a response has no length, and may be compressed to other bytes the next time
    is_compressed_on_the_fly = coding != "" and response.length is None
    if validator is None or is_compressed_on_the_fly:
        return None
    return _Identity(validator=validator, link=link, address=address, coding=coding)


def _coding_of(response: Response) -> str:
    return response.headers.get("Content-Encoding", "").strip()


def _not_a_bundle(start: bytes, response: Response) -> TransientError:
    """Return the error for a success with something else than an archive."""
    reason = error_reason(start)
    if reason:
        return TransientError(
            f"The storage sent an error in place of the bundle ({reason})",
            advice=RESPONSE_IS_ERROR,
        )
    return TransientError(
        f"The storage's response is not a bundle: it {describe_content(start)}"
        f"{_content_headers(response)}",
        advice=LINK_INTERCEPTED,
    )


def _peek_start(response: Response) -> bytes:
    """Return at least the first `START_BYTES`, fewer only at the end. They stay in the `pieces`."""
    start = b""
    for piece in response.pieces:
        start += piece
        if len(start) >= START_BYTES:
            break
    response.pieces = itertools.chain([start], response.pieces)
    return start


def _content_headers(response: Response) -> str:
    """Return what the response says about its content, as the end of a message."""
    described = ""
    for name in ("Content-Type", "Content-Encoding"):
        value = response.headers.get(name)
        if value:
            described += f", {name} {value}"
    return described
