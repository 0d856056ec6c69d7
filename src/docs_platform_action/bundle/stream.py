"""The bundle as one stream of bytes: resumed after a broken connection, from a new link when the first one has expired."""

import hashlib
import io
import itertools
import re
from contextlib import ExitStack
from typing import Final

from ..context import Context
from ..errors import DownloadFailed
from ..http.client import Response
from ..http.faults import NetworkError, request_id_of
from ..http.retry import TEMPORARY_STATUSES, Retry, TransientError, backoff_pauses, read_retry_after
from ..job import Job
from ..models import STORAGE, Archive
from ..text import format_bytes, format_seconds
from .archive import CHUNK_BYTES, START_BYTES, describe_content, is_archive
from .faults import (
    BUNDLE_CHANGED,
    BUNDLE_GONE,
    BUNDLE_NOT_RESUMED,
    LINK_INTERCEPTED,
    STORAGE_REFUSED,
    STORAGE_UNAVAILABLE,
    STORAGE_UNREACHABLE,
)
from .staging import Staged
from .storage import address_of, error_text, request_bundle, validator_of

MAX_BUNDLE_BYTES: Final = (
    50 * 1024**3
)  # of a bundle of unknown size; GitHub's standard runners have no space for more
MIN_PROGRESS_BYTES: Final = 64 * 1024  # new bytes that end an outage
SLOW_SECONDS: Final = 60.0  # a connection that makes less progress in this time counts as broken
INCOMPLETE: Final = "the bundle could not be downloaded completely"
_LINK_REFUSED: Final = frozenset(
    {400, 401, 403, 404, 410}
)  # expired or gone (source: AWS, Google and Azure documentation)


class ResumeError(DownloadFailed):
    """The rest of the bundle cannot be received, so the download must begin again. `reason` is a clause."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            INCOMPLETE,
            details=(f"Each attempt was interrupted. The last time, {reason}.",),
            **BUNDLE_NOT_RESUMED,
        )
        self.reason = reason


class BundleStream(io.RawIOBase):
    """The bundle of a job that has a link, from its first byte to its last. `archive` gets the same bytes.

    Whatever reads it raises `ResumeError`, `DownloadFailed`, `Cancelled` and the errors of `AdminApi.make_link`.
    """

    def __init__(self, job: Job, context: Context, archive: Staged | None = None) -> None:
        self.size: int | None = None  # if the storage has announced it
        self.received = 0
        self._job, self._context, self._events, self._archive = (
            job,
            context,
            context.events,
            archive,
        )
        self._sha256 = hashlib.sha256()
        self._identity: tuple[str, ...] | None = None
        self._connection = ExitStack()
        self._response: Response | None = None  # the current one
        self._rest = memoryview(b"")
        self._needs_link = False
        self._next_progress_at = MIN_PROGRESS_BYTES
        self._begin_retries()

    def read(self, size: int = CHUNK_BYTES) -> bytes:
        """Return between one and `size` bytes; none only at the end."""
        if not self._rest:
            self._rest = memoryview(self._next_piece())
        chunk, self._rest = self._rest[:size], self._rest[size:]
        return bytes(chunk)

    def peek(self) -> bytes:
        """Return the first `START_BYTES`, fewer only if the bundle is smaller. They are read again later."""
        if not self.received:
            self._rest = memoryview(self._next_piece())
        return bytes(self._rest[:START_BYTES])

    def drain(self) -> Archive:
        """Read the rest, and return what all of it is."""
        while self.read(CHUNK_BYTES):
            pass
        self._record_progress()
        return Archive(size=self.received, sha256=self._sha256.hexdigest())

    def close(self) -> None:
        """Close the connection."""
        self._disconnect()
        super().close()

    def _next_piece(self) -> bytes:
        while self.size is None or self.received < self.size:
            try:
                return self._take(self._response or self._connect())
            except NetworkError as error:
                advice = error.advice_for("the link, which the platform makes")
                advice = advice or (
                    STORAGE_UNAVAILABLE if error.maybe_processed else STORAGE_UNREACHABLE
                )
                failure = TransientError(f"{error.message}{self._progress()}", advice=advice)
            except TransientError as error:
                failure = error
            self._disconnect()
            self._record_failure(failure)
            self._context.clock.sleep(self._retry.begins_at() - self._context.clock.monotonic())
        return b""

    def _progress(self) -> str:
        of_all = f" of {format_bytes(self.size)}" if self.size is not None else ""
        return f", after {format_bytes(self.received)}{of_all}" if self.received else ""

    def _take(self, response: Response) -> bytes:
        """Return the next piece of the response, an empty one at the end of the bundle."""
        piece = next(response.pieces, b"")
        self._context.clock.cancellation.check()
        max_bytes = MAX_BUNDLE_BYTES if self.size is None else self.size
        if self.received + len(piece) > max_bytes:
            raise DownloadFailed(
                f"the storage sent more than the {max_bytes:,} bytes that the bundle may have",
                **BUNDLE_CHANGED,
            )
        if not piece and self.size is not None:  # the storage sent fewer bytes than were requested
            raise TransientError(
                f"The storage ended the response too early{self._progress()}",
                advice=STORAGE_UNAVAILABLE,
            )
        self.received += len(piece)
        self._sha256.update(piece)
        if self._archive is not None:
            self._archive.write(piece)
        if self.received >= self._next_progress_at:
            self._next_progress_at = self.received + MIN_PROGRESS_BYTES
            response.exchange.remaining_seconds = SLOW_SECONDS
            self._record_progress()
        self._events.download_progressed(self._job, self.received, self.size)
        return piece

    def _connect(self) -> Response:
        """Request the missing bytes, and return the response that has them."""
        if self._needs_link:
            self._job.link = self._context.api.make_link(self._job)
            self._events.link_made(self._job, self._job.link)
            self._needs_link = False
        assert self._job.link is not None  # noqa: S101  # a job with a bundle to download has a link; for the type checker
        url = self._job.link.url
        headers = self._range_headers(address_of(url)) if self.received else {}
        within_seconds = self._retry.attempt_seconds(self._context.clock.monotonic())
        response, address = self._connection.enter_context(
            request_bundle(url, headers, self._context, within_seconds=within_seconds)
        )
        link, status, request_id = address_of(url), response.status, request_id_of(response.headers)
        self._events.storage_responded(
            self._job, link, status=status, requested=headers.get("Range"), request_id=request_id
        )
        identity = _identity_of(response, link, address)
        if status == 200:
            self._begin(response, identity)
        elif status == 206:
            self._resume(response, identity)
        else:
            raise self._error_of(response)
        response.exchange.remaining_seconds = SLOW_SECONDS
        self._response = response
        return response

    def _range_headers(self, link: str) -> dict[str, str]:
        if self._identity is None:
            raise ResumeError(
                "the storage sent neither a strong ETag nor a date that can serve as one"
            )
        validator, known_link, *_ = self._identity
        if link != known_link:
            raise ResumeError("the new link leads to another address")
        return {"Range": f"bytes={self.received}-", "If-Range": validator}

    def _begin(self, response: Response, identity: tuple[str, ...] | None) -> None:
        """Check that a response has the whole bundle."""
        start = b""
        while len(start) < START_BYTES and (piece := next(response.pieces, b"")):
            start += piece
        if not is_archive(start):
            found = {
                name: response.headers.get(name) for name in ("Content-Type", "Content-Encoding")
            }
            suffix = "".join(f", {name} {value}" for name, value in found.items() if value)
            message = (
                f"The storage's response is not a bundle: it {describe_content(start)}{suffix}"
            )
            raise TransientError(message, advice=LINK_INTERCEPTED)
        if self.received:
            is_same = identity == self._identity
            raise ResumeError(
                "the storage does not resume downloads"
                if is_same
                else "the bundle may have been replaced"
            )
        self.size, self._identity = response.length, identity
        response.pieces = itertools.chain([start], response.pieces)

    def _resume(self, response: Response, identity: tuple[str, ...] | None) -> None:
        """Check that a response has the rest of the same bundle (RFC 9110, section 14.4)."""
        content_range = response.headers.get("Content-Range", "")
        found = re.fullmatch(
            rf"bytes {self.received}-[0-9]{{1,18}}/([0-9]{{1,18}}|\*)", content_range
        )
        size = int(found[1]) if found is not None and found[1] != "*" else self.size
        is_rest = (
            found is not None
            and size is not None
            and size > self.received
            and self.size in {None, size}
        )
        if identity is None or identity != self._identity or not is_rest:
            raise ResumeError("the storage sent something else than the rest of the same bundle")
        self.size = size

    def _error_of(self, response: Response) -> Exception:
        reason, request_id = error_text(response), request_id_of(response.headers)
        if response.status in _LINK_REFUSED:
            self._needs_link = True
            advice = BUNDLE_GONE if response.status in {404, 410} else STORAGE_REFUSED
            return TransientError(
                f"The storage rejected the link with {reason}", advice=advice, request_id=request_id
            )
        if 400 <= response.status < 500 and response.status not in TEMPORARY_STATUSES:
            if self.received:
                return ResumeError("the storage refuses to resume the download")
            details = (f"The storage returned {reason}.",)
            return DownloadFailed(
                f"the storage returned {response.status}",
                details=details,
                request_id=request_id,
                **STORAGE_REFUSED,
            )
        return TransientError(
            f"The storage returned {reason}{self._progress()}",
            advice=STORAGE_UNAVAILABLE,
            retry_after_seconds=read_retry_after(response.headers, self._context.clock.now())
            or 0.0,
            request_id=request_id,
        )

    def _disconnect(self) -> None:
        self._response = None
        self._connection.close()

    def _begin_retries(self) -> None:
        self._progressed_at, self._pauses = self._context.clock.monotonic(), backoff_pauses()
        self._retry = Retry(
            tolerance_seconds=self._context.api.outage_tolerance_seconds,
            next_attempt_at=self._progressed_at,
        )

    def _record_failure(self, error: TransientError) -> None:
        """Raise `DownloadFailed` if there is no further attempt."""
        now, is_first = self._context.clock.monotonic(), self._retry.error is None
        try:
            self._retry = retry = self._retry.increment(
                error, now, pause_seconds=next(self._pauses)
            )
        except TransientError:
            outage = format_seconds(now - self._progressed_at)
            details = (f"No successful response for {outage}. Last error: {error.message}.",)
            raise DownloadFailed(
                INCOMPLETE, details=details, request_id=error.request_id, **error.advice
            ) from error
        if is_first:
            budget, pause = retry.last_attempt_at - now, retry.begins_at() - now
            self._events.retrying(
                self._job, STORAGE, error.message, budget_seconds=budget, pause_seconds=pause
            )

    def _record_progress(self) -> None:
        if self._retry.error is not None:
            after_seconds = self._context.clock.monotonic() - self._progressed_at
            self._events.recovered(self._job, STORAGE, after_seconds=after_seconds)
        self._begin_retries()


def _identity_of(response: Response, link: str, address: str) -> tuple[str, ...] | None:
    """Return what all responses with parts of one bundle have in common, if it can be resumed.

    A validator is of one bundle, address and coding (RFC 9110, sections 8.8.2, 8.8.3 and 15.3.7.3). What is compressed on the fly
    has no length, and may be compressed to other bytes the next time.
    """
    validator, coding = validator_of(response), response.headers.get("Content-Encoding", "")
    return (
        None
        if validator is None or (coding and response.length is None)
        else (validator, link, address, coding)
    )
