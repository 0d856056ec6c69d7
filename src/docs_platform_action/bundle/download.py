"""Download a bundle: resumed after a broken connection, with a fresh link where the old one expired."""

import itertools
from collections.abc import Iterator
from typing import BinaryIO, Final

from ..context import Context
from ..errors import Advice, DownloadFailed
from ..http.faults import NetworkError
from ..http.retry import PROXY, TEMPORARY_STATUSES, RetryState, TransientError, read_retry_after, retry
from ..job import Job
from ..models import STORAGE, Bundle, Downloaded
from ..text import format_seconds
from .disk_space import DiskSpace
from .partial import PartialBundle, address_of
from .storage import StorageResponse, request_bundle
from .transcoding import Transcoding, read_archive_start

GOOD_BYTES: Final = 64 * 1024
"""Minimum of new bytes that end an outage."""

MAX_BUNDLE_BYTES: Final = 50 * 1024**3
"""Maximum size of a bundle that announces no length; no runner of GitHub's has room for more."""

_LINK_REFUSED: Final = frozenset({400, 401, 403, 404, 410})
"""Statuses of storages for a link that has expired or whose object is gone (source: AWS, Google and Azure documentation)."""

_STORAGE: Final = Advice(cause=DownloadFailed.default_cause, remedy=DownloadFailed.default_remedy)
_CUT_OFF: Final = Advice(
    cause="The runner's network blocks the way to the storage, or the storage is down.",
    remedy="Allow the runner to reach the storage's host, or run the workflow again.",
)
_REFUSED: Final = Advice(
    cause="The storage denies access to this runner, or the platform makes links that the storage does not accept.",
    remedy="Allow the runner's address at the storage, or report it to the platform.",
)
_GONE: Final = Advice(
    cause="The link leads to no bundle: it was removed, or is not there yet.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
_SHORT_LIVED: Final = Advice(
    cause="Links expire before they can be used: their lifetime is too short, or the clocks of the platform and "
    "the storage differ.",
    remedy="Report it to the platform, with the time of the run.",
)
_CHANGED: Final = Advice(
    cause="The bundle was repackaged while it was being downloaded, or something between the storage and this runner changes it.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)


class Download:
    """The download of a job's bundle into a file.

    `disk_space` is checked as soon as the bundle's size is known. `masked` links are masked in the runner's log.
    """

    def __init__(self, job: Job, file: BinaryIO, context: Context, *, disk_space: DiskSpace, masked: bool) -> None:
        self._job = job
        self._context = context
        self._events = context.events
        self._disk_space = disk_space
        self._masked = masked
        self._retries = RetryState(
            job=job,
            events=context.events,
            clock=context.clock,
            tolerance_seconds=context.outage_tolerance_seconds,
            server=STORAGE,
        )
        self._partial = PartialBundle(file)
        self._transcoding = Transcoding()
        self._good_bytes = GOOD_BYTES  # the next time that so many are there is progress
        self._needs_link = False
        self._refusals = 0
        self._contradicted = False
        self._was_shorter = False

    def run(self) -> Downloaded:
        """Download the bundle.

        Raises `DownloadFailed`, `Cancelled`, what making a fresh link raises, and `OSError` if the file cannot be written.
        """
        if self._bundle.size is not None:
            self._disk_space.check(self._bundle.size)
        try:
            retry(self._attempt, self._retries)
        except TransientError as error:
            raise DownloadFailed(
                "the bundle could not be downloaded completely",
                details=(
                    f"No successful response for {format_seconds(self._retries.outage_seconds())}. Last error: {error.message}.",
                ),
                cause=error.advice.cause,
                remedy=error.advice.remedy,
                request_id=error.request_id,
            ) from error
        received = self._partial.received
        as_stored = not self._transcoding.is_transcoded or received == self._bundle.size
        return Downloaded(size=received, sha256=self._partial.sha256.hexdigest(), as_stored=as_stored)

    @property
    def _bundle(self) -> Bundle:
        """The freshest link."""
        assert self._job.bundle is not None  # noqa: S101  # a job with a bundle to download has a link; for the type checker
        return self._job.bundle

    @property
    def _promised(self) -> int | None:
        """The size that the API reported; `None` for a bundle that is not downloaded as it is stored."""
        return None if self._transcoding.is_transcoded else self._bundle.size

    def _attempt(self) -> None:
        within_seconds = self._retries.start_attempt()
        try:
            while not self._request(within_seconds):
                pass
        except NetworkError as error:
            advice = PROXY if error.is_proxy_error else _STORAGE if error.maybe_processed else _CUT_OFF
            raise TransientError(f"{error.message}{self._partial.so_far}", advice=advice) from error
        if self._partial.received < max(self._partial.size or self._promised or 0, self._transcoding.least_bytes):
            # a response without a length looks complete when its connection breaks
            raise TransientError(f"The storage ended the response too early{self._partial.so_far}", advice=_STORAGE)

    def _request(self, within_seconds: float) -> bool:
        """Request what is missing, and return whether it was taken; if not, the next request follows without a pause."""
        if self._needs_link:
            self._job.bundle = self._context.api.make_bundle(self._job)
            self._events.link_renewed(self._job, masked=self._masked)
            self._needs_link = False
        url = self._bundle.url
        headers = self._partial.range_headers(url)
        resuming = bool(headers)
        if self._transcoding.accepts_gzip:
            headers["Accept-Encoding"] = "gzip"
        with request_bundle(url, headers, self._job, self._context, within_seconds=within_seconds) as response:
            requested = headers.get("Range")
            self._events.storage_responded(
                self._job, address_of(url), status=response.status, requested=requested, request_id=response.request_id
            )
            if response.status == 200:
                return self._take_whole(response)
            if response.status == 206:
                return self._take_range(response, resuming=resuming)
            if self._transcoding.accepts_gzip and not resuming:
                self._transcoding.accepts_gzip = False  # the storage may refuse gzip, not the bundle
                return False
            if response.status in _LINK_REFUSED:
                return self._refused(response, resuming=resuming)
            if response.status == 416 and resuming:
                return self._beyond_the_end(response)
            raise self._unexpected(response, resuming=resuming)

    def _take_whole(self, response: StorageResponse) -> bool:
        start = read_archive_start(response)
        if self._transcoding.must_request_again(response, start, self._bundle):
            return False
        same = self._partial.has_etag(response.validator)
        self._start_over("the storage does not resume downloads" if same else "the stored part may belong to a different bundle")
        self._partial.set_source(self._bundle.url, response)
        end = response.length if response.length is not None else self._promised
        return self._take(response, itertools.chain([start], response.pieces), size=response.length, end=end)

    def _take_range(self, response: StorageResponse, *, resuming: bool) -> bool:
        found = self._partial.next_range(response) if resuming else None
        if found is None:
            self._start_over("the storage sent a different part than requested")
            raise TransientError("The storage sent a different part of the bundle than requested", advice=_CHANGED)
        return self._take(response, response.pieces, size=found.size, end=found.end)

    def _take(self, response: StorageResponse, pieces: Iterator[bytes], *, size: int | None, end: int | None) -> bool:
        """Write the pieces of a response to the file; return `False` if the bundle's `size` is not what the API reported.

        Raises `DownloadFailed` for bytes behind the `end` of the response.
        """
        if size is not None:
            if self._partial.size is None and self._promised is None:
                self._disk_space.check(size)
            self._partial.size = size
        if not self._has_promised_size(response):
            return False
        most = end if end is not None else MAX_BUNDLE_BYTES
        for piece in pieces:
            if self._partial.received + len(piece) > most:
                summary = f"the storage sent more than the {most:,} bytes that the bundle may have"
                raise DownloadFailed(summary, cause=_CHANGED.cause, remedy=_CHANGED.remedy)
            self._partial.write(piece)
            self._refusals = 0
            if self._partial.received >= self._good_bytes:
                self._good_bytes = self._partial.received + GOOD_BYTES
                self._retries.record_success()
            self._events.download_progressed(self._job, self._partial.received, self._partial.size)
        return True

    def _has_promised_size(self, response: StorageResponse) -> bool:
        """Return whether the storage and the API report the same size, as far as they do.

        If not, the bundle may have been packed again in between, so the API is asked once more. Raises `DownloadFailed` the
        second time.
        """
        announced, promised = self._partial.size, self._promised
        if announced is None or promised is None or announced == promised:
            return True
        what = f"the storage has {announced:,} bytes of the bundle, the API speaks of {promised:,}"
        if self._contradicted:
            kind = response.headers.get("Content-Type", "")
            named = (f"The storage calls it {kind}.",) if kind else ()
            raise DownloadFailed(what, details=named, cause=_CHANGED.cause, remedy=_CHANGED.remedy)
        self._contradicted = self._needs_link = True
        self._start_over("its size differs from what the API said")
        self._events.link_expired(self._job, f"{what[0].upper()}{what[1:]}")
        return False

    def _refused(self, response: StorageResponse, *, resuming: bool) -> bool:
        """Request a fresh link: without a pause for the first refusal, later with one, which `TransientError` asks for."""
        self._retries.record_failure()
        self._refusals += 1
        self._needs_link = True
        said = response.error_text()
        what = f"The storage rejected the link with {said}"
        if self._refusals == 1:
            self._events.link_expired(self._job, what)
            return False
        if resuming:
            self._start_over("the storage refuses to resume the download")
        advice = _GONE if response.status in {404, 410} else _SHORT_LIVED if "xpired" in said else _REFUSED
        raise TransientError(f"{what}, although it was just made", advice=advice, request_id=response.request_id)

    def _beyond_the_end(self, response: StorageResponse) -> bool:
        """Return whether the bundle is complete, which a 416 may say; the storage has to say it twice if it announced more."""
        if not self._partial.is_whole(response):
            self._start_over("the bundle was replaced by another")
            raise TransientError("The storage has fewer bytes of the bundle than it sent before", advice=_CHANGED)
        if self._partial.size not in {None, self._partial.received} and not self._was_shorter:
            self._was_shorter = True
            self._start_over("the storage has less of it than it declared")
            raise TransientError("The storage has fewer bytes of the bundle than it declared", advice=_CHANGED)
        self._partial.size = self._partial.received
        return self._has_promised_size(response)

    def _unexpected(self, response: StorageResponse, *, resuming: bool) -> Exception:
        what = f"The storage returned {response.error_text()}"
        if 400 <= response.status < 500 and response.status not in TEMPORARY_STATUSES | {416}:
            if not resuming:
                return DownloadFailed(
                    f"the storage returned {response.status}",
                    details=(f"{what}.",),
                    cause=_REFUSED.cause,
                    remedy=_REFUSED.remedy,
                    request_id=response.request_id,
                )
            self._start_over("the storage refuses to resume the download")
        pause = read_retry_after(response.headers, self._context.clock.now())
        what = f"{what}{self._partial.so_far}"
        return TransientError(what, advice=_STORAGE, retry_after_seconds=pause, request_id=response.request_id)

    def _start_over(self, why: str) -> None:
        if self._partial.received:
            self._events.download_restarted(self._job, why)
        self._partial.reset()
