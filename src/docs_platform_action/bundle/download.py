"""Download a bundle: resume after a broken connection, and renew the link when it has expired."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from ..context import Context
from ..errors import Advice, DownloadFailed
from ..http.faults import NetworkError
from ..http.retry import TEMPORARY_STATUSES, Retry, TransientError, backoff_pauses, read_retry_after
from ..job import Job
from ..models import STORAGE, Bundle, Downloaded
from ..text import format_seconds
from .disk_space import check_disk_space
from .partial import PartialBundle
from .storage import StorageResponse, address_of, request_bundle
from .transcoding import Transcoding, read_archive_start

MAX_BUNDLE_BYTES: Final = 50 * 1024**3  # of a bundle of unknown size; GitHub's standard runners have no space for more
_MIN_PROGRESS_BYTES: Final = 64 * 1024  # new bytes that end an outage
_LINK_REFUSED: Final = frozenset({400, 401, 403, 404, 410})  # expired or gone (source: AWS, Google and Azure documentation)

_UNAVAILABLE: Final = Advice(cause=DownloadFailed.default_cause, remedy=DownloadFailed.default_remedy)
_UNREACHABLE: Final = Advice(
    cause="The runner's network blocks access to the storage, or the storage is down.",
    remedy="Allow the runner to reach the storage's host, or run the workflow again.",
)
_REFUSED: Final = Advice(
    cause="The storage denies access to this runner, or does not accept the platform's links.",
    remedy="Allow the runner's address at the storage, or report it to the platform.",
)
_GONE: Final = Advice(
    cause="There is no bundle at the link: it was removed, or is not there yet.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
_SHORT_LIVED: Final = Advice(
    cause="Links expire before they can be used: their lifetime is too short, or the platform's and the storage's clocks differ.",
    remedy="Report it to the platform, with the time of the run.",
)
_CHANGED: Final = Advice(
    cause="The bundle was replaced during the download, or something between the storage and this runner changes it.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)

_MAYBE_REPLACED: Final = "the bundle may have been replaced"


class Download:
    """The download of a job's bundle into a file. The archive and the site go to `folders`."""

    def __init__(self, job: Job, file: BinaryIO, context: Context, folders: Sequence[Path]) -> None:
        self._job = job
        self._context = context
        self._events = context.events
        self._folders = folders
        self._begin_retries()
        self._partial = PartialBundle(file)
        self._transcoding = Transcoding()
        self._next_progress_at = _MIN_PROGRESS_BYTES
        self._needs_link = False
        self._refusals = 0
        self._unconfirmed_size: int | None = None

    def run(self) -> Downloaded:
        """Download the bundle. Raises `OSError`, `Cancelled`, `DownloadFailed` and the errors of `AdminApi.make_bundle`."""
        while not self._attempt():
            self._context.clock.sleep(self._retry.begins_at() - self._context.clock.monotonic())
        self._record_progress()
        partial, transcoding = self._partial, self._transcoding
        return Downloaded(size=partial.received, sha256=partial.sha256.hexdigest(), was_transcoded=transcoding.was_decompressed)

    @property
    def _bundle(self) -> Bundle:
        assert self._job.bundle is not None  # noqa: S101  # a job with a bundle to download has a link; for the type checker
        return self._job.bundle

    def _begin_retries(self) -> None:
        self._progressed_at, self._pauses = self._context.clock.monotonic(), backoff_pauses()
        self._retry = Retry(tolerance_seconds=self._context.api.outage_tolerance_seconds, next_attempt_at=self._progressed_at)

    def _attempt(self) -> bool:
        """Return whether the rest of the bundle was received. Raises `DownloadFailed` if there is no further attempt."""
        try:
            self._receive_rest(self._retry.attempt_seconds(self._context.clock.monotonic()))
        except TransientError as error:
            self._record_failure(error)
            return False
        return True

    def _record_failure(self, error: TransientError) -> None:
        now, is_first = self._context.clock.monotonic(), self._retry.error is None
        try:
            self._retry = retry = self._retry.increment(error, now, pause_seconds=next(self._pauses))
        except TransientError:
            outage = format_seconds(now - self._progressed_at)
            raise DownloadFailed(
                "the bundle could not be downloaded completely",
                details=(f"No successful response for {outage}. Last error: {error.message}.",),
                request_id=error.request_id,
                **error.advice,
            ) from error
        if is_first:
            budget, pause = retry.last_attempt_at - now, retry.begins_at() - now
            self._events.retrying(self._job, STORAGE, error.message, budget_seconds=budget, pause_seconds=pause)

    def _record_progress(self) -> None:
        if self._retry.error is not None:
            after_seconds = self._context.clock.monotonic() - self._retry.failing_since
            self._events.recovered(self._job, STORAGE, after_seconds=after_seconds)
        self._begin_retries()

    def _receive_rest(self, within_seconds: float) -> None:
        try:
            while not self._request(within_seconds):
                pass
        except NetworkError as error:
            advice = _UNAVAILABLE if error.maybe_processed else _UNREACHABLE
            advice = error.advice_for("the link, which the platform makes") or advice
            raise TransientError(f"{error.message}{self._partial.error_suffix}", advice=advice) from error
        if self._partial.received < (self._partial.size or 0):  # the storage sent fewer bytes than were requested
            raise TransientError(f"The storage ended the response too early{self._partial.error_suffix}", advice=_UNAVAILABLE)

    def _request(self, within_seconds: float) -> bool:
        """Request the missing bytes. Return whether they were received; if not, they can be requested again without a pause."""
        if self._needs_link:
            self._job.bundle = self._context.api.make_bundle(self._job)
            self._events.link_renewed(self._job)
            self._needs_link = False
        url = self._bundle.url
        headers = self._partial.range_headers(url)
        resuming = bool(headers)
        if self._transcoding.accepts_gzip:
            headers["Accept-Encoding"] = "gzip"
        with request_bundle(url, headers, self._job, self._context, within_seconds=within_seconds) as response:
            self._events.storage_responded(
                self._job, address_of(url), status=response.status, requested=headers.get("Range"), request_id=response.request_id
            )
            if response.status == 200:
                return self._receive_whole(response)
            if response.status == 206:
                return self._receive_range(response, resuming=resuming)
            if self._transcoding.accepts_gzip and not resuming:
                self._transcoding.accepts_gzip = False  # the storage may refuse gzip, not the bundle
                return False
            if response.status in _LINK_REFUSED:
                return self._link_refused(response, resuming=resuming)
            if response.status == 416 and resuming:
                return self._is_complete(response)
            raise self._error_of(response, resuming=resuming)

    def _receive_whole(self, response: StorageResponse) -> bool:
        start = read_archive_start(response)
        if self._transcoding.must_request_again(response, start, self._bundle.url):
            return False
        if self._partial.validator is None:
            self._start_over("the storage sent neither a strong ETag nor a date that can serve as one, so it cannot be resumed")
        else:
            self._start_over("the storage does not resume downloads" if self._partial.is_same(response) else _MAYBE_REPLACED)
        self._partial.set_source(self._bundle.url, response)
        self._receive(itertools.chain([start], response.pieces), size=response.length, end=response.length)
        return True

    def _receive_range(self, response: StorageResponse, *, resuming: bool) -> bool:
        found = self._partial.next_range(response) if resuming else None
        if found is None:
            validator = self._partial.validator
            if resuming and validator is not None and validator.name not in response.headers:
                raise self._mismatch(f"the storage sent the rest without the {validator.name} of the beginning")
            raise self._mismatch("the storage sent a different part than requested")
        end, size = found
        self._receive(response.pieces, size=size, end=end)
        return True

    def _receive(self, pieces: Iterator[bytes], *, size: int | None, end: int | None) -> None:
        """Write the pieces up to `end` to the file. `size` is that of the whole bundle."""
        if size is not None and self._partial.size is None:
            check_disk_space(size, self._folders)
            self._partial.size = size
        max_bytes = end if end is not None else MAX_BUNDLE_BYTES
        for piece in pieces:
            if self._partial.received + len(piece) > max_bytes:
                raise DownloadFailed(f"the storage sent more than the {max_bytes:,} bytes that the bundle may have", **_CHANGED)
            self._partial.write(piece)
            self._refusals = 0
            if self._partial.received >= self._next_progress_at:
                self._next_progress_at = self._partial.received + _MIN_PROGRESS_BYTES
                self._record_progress()
            self._events.download_progressed(self._job, self._partial.received, self._partial.size)

    def _link_refused(self, response: StorageResponse, *, resuming: bool) -> bool:
        """Request a new link: after the first refusal without a pause, later by raising `TransientError`, with one."""
        self._refusals += 1
        self._needs_link = True
        error_text = response.error_text()
        message = f"The storage rejected the link with {error_text}"
        if self._refusals == 1:
            self._events.link_expired(self._job, message)
            return False
        if resuming:
            self._start_over("the storage refuses to resume the download")
        advice = _GONE if response.status in {404, 410} else _SHORT_LIVED if "xpired" in error_text else _REFUSED
        raise TransientError(f"{message}, although it was just made", advice=advice, request_id=response.request_id)

    def _is_complete(self, response: StorageResponse) -> bool:
        """Return whether a 416 says that the bundle is complete.

        It may be about another bundle, so it has to say so twice, unless it has the validator or the size was announced before.
        """
        received, size = self._partial.received, self._partial.size
        if not self._partial.is_at_end(response):
            raise self._mismatch("the storage has fewer bytes of the bundle than it sent before")
        is_confirmed = size == received or (size is None and self._partial.is_same(response))
        if not is_confirmed and self._unconfirmed_size != received:
            self._unconfirmed_size = received
            raise self._mismatch(_MAYBE_REPLACED)
        self._partial.size = received
        return True

    def _error_of(self, response: StorageResponse, *, resuming: bool) -> Exception:
        message = f"The storage returned {response.error_text()}"
        if 400 <= response.status < 500 and response.status not in TEMPORARY_STATUSES | {416}:
            if not resuming:
                summary = f"the storage returned {response.status}"
                return DownloadFailed(summary, details=(f"{message}.",), request_id=response.request_id, **_REFUSED)
            self._start_over("the storage refuses to resume the download")
        return TransientError(
            f"{message}{self._partial.error_suffix}",
            advice=_UNAVAILABLE,
            retry_after_seconds=read_retry_after(response.headers, self._context.clock.now()) or 0.0,
            request_id=response.request_id,
        )

    def _mismatch(self, reason: str) -> TransientError:
        self._start_over(reason)
        return TransientError(f"{reason[0].upper()}{reason[1:]}", advice=_CHANGED)

    def _start_over(self, reason: str) -> None:
        if self._partial.received:
            self._events.download_restarted(self._job, reason)
        self._partial.reset()
