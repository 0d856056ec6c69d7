"""Downloads in virtual time: whatever the storage does, the bundle is complete or the download fails."""

import contextlib
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import backoff
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docs_platform_action.bundle import download
from docs_platform_action.bundle.download import MAX_BUNDLE_BYTES, Download
from docs_platform_action.bundle.storage import StorageResponse
from docs_platform_action.errors import ActionError, DownloadFailed, Rejected
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.job import Job
from docs_platform_action.models import EXPORT, STORAGE, Bundle, Downloaded
from docs_platform_action.redaction import Redactor
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import NOON, VirtualClock

LINK = "https://storage.example.com/se_1/bundle.tar.gz?X-Signature={number}"
ADDRESS = LINK.partition("?")[0]
GZIP = b"\x1f\x8b\x08"
"""How a bundle begins."""

FIRST = GZIP + bytes(range(256)) * 900
SECOND = GZIP + bytes(reversed(range(256))) * 1100
THIRD = GZIP + bytes(reversed(range(256))) * 900
"""As long as the first one."""

NO_SECRETS = Redactor([])


@dataclass(frozen=True)
class Turn:
    """The storage's response to one request. The connection breaks after `cut_after` bytes of the body."""

    status: int | None = None
    cut_after: int | None = None
    ranges: bool = True
    announces: bool = True
    switches: bool = False
    validator: str = "ETag"
    honors_if_range: bool = True
    repeats_validator: bool = True
    takes_seconds: float = 0.0
    content_type: str | None = None
    encoding: str | None = None


class FakeStorage:
    """Serves a bundle by a script of turns, then without errors, and makes links to it as the API does."""

    def __init__(self, clock: VirtualClock, *turns: Turn, content: bytes = FIRST) -> None:
        self._clock = clock
        self._turns = list(turns)
        self.content = content
        self._version = 0
        self.requested: list[Mapping[str, str]] = []
        self.links = 1

    def make_bundle(self, job: Job) -> Bundle:
        assert job.job_id == "se_1"
        self.links += 1
        return Bundle(url=LINK.format(number=self.links))

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str], *_: object, within_seconds: float) -> Iterator[StorageResponse]:
        assert within_seconds >= 2
        assert url == LINK.format(number=self.links), "the latest link is used"
        self.requested.append(headers)
        turn = self._turns.pop(0) if self._turns else Turn()
        self._clock.advance(turn.takes_seconds)
        if turn.switches:
            self._version += 1
            self.content = (FIRST, THIRD, SECOND)[self._version % 3]
        yield self._answer(turn, headers)

    def _answer(self, turn: Turn, headers: Mapping[str, str]) -> StorageResponse:
        if turn.status is not None:
            return StorageResponse(redactor=NO_SECRETS, status=turn.status, headers={}, address=ADDRESS, pieces=iter(()))
        modified = format_datetime(NOON + timedelta(seconds=self._version), usegmt=True)
        validators = {"ETag": f'"{hashlib.sha256(self.content).hexdigest()}"', "Last-Modified": modified}
        present = {turn.validator: validators[turn.validator]} if turn.validator else {}
        begin = 0
        if turn.ranges and "Range" in headers and (not turn.honors_if_range or headers["If-Range"] in present.values()):
            begin = min(int(headers["Range"].removeprefix("bytes=").removesuffix("-")), len(self.content))
        body = self.content[begin:]
        response_headers = {"Date": format_datetime(NOON + timedelta(hours=1), usegmt=True)}
        if turn.repeats_validator or not begin:
            response_headers |= present
        if turn.announces:
            response_headers["Content-Length"] = str(len(body))
        if turn.content_type is not None:
            response_headers["Content-Type"] = turn.content_type
        if turn.encoding is not None:
            response_headers["Content-Encoding"] = turn.encoding
        pieces = self._pieces(body, turn)
        if begin == len(self.content):
            return StorageResponse(
                redactor=NO_SECRETS,
                status=416,
                headers={"Content-Range": f"bytes */{len(self.content)}"},
                address=ADDRESS,
                pieces=iter(()),
            )
        if not begin:
            return StorageResponse(redactor=NO_SECRETS, status=200, headers=response_headers, address=ADDRESS, pieces=pieces)
        response_headers["Content-Range"] = f"bytes {begin}-{len(self.content) - 1}/{len(self.content)}"
        return StorageResponse(redactor=NO_SECRETS, status=206, headers=response_headers, address=ADDRESS, pieces=pieces)

    def _pieces(self, body: bytes, turn: Turn) -> Iterator[bytes]:
        let_through = body if turn.cut_after is None else body[: turn.cut_after]
        for begin in range(0, len(let_through), 10_000):
            yield let_through[begin : begin + 10_000]
        # noticed by the announced length, or by the framing
        if turn.cut_after is not None and turn.cut_after < len(body):
            raise NetworkError("The connection broke off", maybe_processed=True)


class Disk:
    """Records the sizes that were checked, and raises the `error` if there is one."""

    def __init__(self) -> None:
        self.checked: list[int] = []
        self.error: DownloadFailed | None = None

    def check(self, size: int, folders: Sequence[Path]) -> None:
        assert folders == [Path("archive")]
        self.checked.append(size)
        if self.error is not None:
            raise self.error


class Fetch:
    """One download into memory."""

    def __init__(self, *turns: Turn, tolerance: float = 300) -> None:
        self.clock = VirtualClock()
        self.storage = FakeStorage(self.clock, *turns)
        self.file = io.BytesIO()
        self.events = RecordedEvents()
        self.disk = Disk()
        self.job = Job(mode=EXPORT, job_id="se_1", bundle=Bundle(url=LINK.format(number=1)))
        shared = context(self.clock, self.events, api=self.storage, tolerance=tolerance)
        self._download = Download(self.job, self.file, shared, [Path("archive")])

    def __call__(self) -> Downloaded:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(download, "request_bundle", self.storage.get)
                patch.setattr(download, "check_disk_space", self.disk.check)
                patch.setattr(backoff, "full_jitter", lambda ceiling: ceiling / 2)
                return self._download.run()
        finally:
            for received, size in self.events.of("download_progressed"):
                assert size is None or received <= size
            for server, _, budget_seconds, pause_seconds in self.events.of("retrying"):
                assert server == STORAGE
                assert 0 <= pause_seconds <= budget_seconds

    @property
    def logged(self) -> list[str]:
        """The names of the events that are logged."""
        return [name for name in self.events.names if name not in {"storage_responded", "download_progressed", "link_renewed"}]

    def failure(self) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self()
        return caught.value


def test_an_undisturbed_download_takes_one_request_and_announces_nothing() -> None:
    fetch = Fetch()

    downloaded = fetch()

    assert downloaded == Downloaded(size=len(FIRST), sha256=hashlib.sha256(FIRST).hexdigest())
    assert (fetch.storage.requested, fetch.logged, fetch.clock.pauses) == ([{}], [], [])
    assert fetch.file.getvalue() == FIRST


def test_what_is_not_an_archive_is_not_written() -> None:
    fetch = Fetch(Turn(content_type="application/zip"), tolerance=1)
    fetch.storage.content = b"%PDF-1.7"

    error = fetch.failure()

    assert isinstance(error, DownloadFailed)
    assert "The storage's response is not a bundle: it looks like a PDF document" in error.details[0]
    assert fetch.file.getvalue() == b""


@pytest.mark.parametrize(
    "content", [GZIP + b"\xff" * 600, GZIP + b"\0\0\0\0\0\x04\0" + b"\xff"], ids=["damaged", "too short to tell"]
)
def test_an_encoded_response_that_cannot_be_decompressed_is_requested_again(content: bytes) -> None:
    fetch = Fetch(Turn(encoding="gzip"))
    fetch.storage.content = content

    fetch()

    assert (fetch.file.getvalue(), fetch.logged) == (content, ["retrying", "recovered"])
    assert fetch.events.of("retrying")[0][1] == "The storage's response is not a bundle: it is damaged or empty gzip data"


def test_each_response_is_announced_with_the_range_that_was_requested() -> None:
    fetch = Fetch(Turn(cut_after=100_000))

    fetch()

    assert fetch.events.of("storage_responded") == [
        (ADDRESS, 200, None, None),
        (ADDRESS, 206, "bytes=100000-", None),
    ]


class TestDiskSpace:
    def test_it_is_checked_once_for_the_size_that_the_storage_announces(self) -> None:
        fetch = Fetch(Turn(cut_after=100_000))

        fetch()

        assert fetch.disk.checked == [len(FIRST)]

    def test_without_enough_nothing_is_written(self) -> None:
        fetch = Fetch()
        fetch.disk.error = DownloadFailed("no room")

        assert fetch.failure().summary == "no room"
        assert fetch.file.getvalue() == b""


class TestOutage:
    def test_pauses_grow_until_there_is_progress(self) -> None:
        bad = Turn(status=503)
        fetch = Fetch(bad, bad, bad, Turn(cut_after=100_000), bad, bad)

        fetch()

        assert fetch.clock.pauses == [0.5, 1, 2, 0.5, 1, 2]
        assert fetch.logged == ["retrying", "recovered"] * 2

    def test_a_trickle_is_not_progress(self) -> None:
        fetch = Fetch(*[Turn(cut_after=10, takes_seconds=9)] * 1000, tolerance=60)

        error = fetch.failure()

        assert isinstance(error, DownloadFailed)
        assert 60 <= fetch.clock.elapsed <= 60 + 30 + 9
        assert "No successful response for " in error.details[0]

    def test_the_last_attempt_may_succeed_after_the_tolerance(self) -> None:
        fetch = Fetch(Turn(status=503, takes_seconds=50), Turn(status=503, takes_seconds=50), tolerance=40)

        assert fetch().size == len(FIRST)

    def test_progress_in_the_last_attempt_begins_a_new_outage(self) -> None:
        fetch = Fetch(Turn(status=503), Turn(cut_after=100_000, takes_seconds=50), tolerance=0.1)

        assert fetch().size == len(FIRST)

    def test_a_proxy_at_fault_is_named(self) -> None:
        fetch = Fetch(tolerance=1)

        def refuse(*_: object, **__: object) -> Iterator[StorageResponse]:
            raise NetworkError("The proxy refused the connection", maybe_processed=False, is_proxy_error=True)

        fetch.storage.get = refuse  # type: ignore[method-assign,assignment]

        assert "HTTPS_PROXY" in fetch.failure().cause


class TestRefusal:
    def test_the_first_is_retried_without_a_pause(self) -> None:
        fetch = Fetch(Turn(status=403))

        fetch()

        assert (fetch.clock.pauses, fetch.storage.links) == ([], 2)
        assert fetch.logged == ["link_expired"]
        assert fetch.events.of("link_expired") == [("The storage rejected the link with 403",)]

    def test_the_fresh_link_is_in_the_job_and_announced(self) -> None:
        fetch, links = Fetch(Turn(status=403)), list[Bundle | None]()
        fetch.events.link_renewed = lambda job: links.append(job.bundle)  # type: ignore[method-assign]

        fetch()

        assert links == [Bundle(url=LINK.format(number=2))]

    def test_later_ones_are_retried_with_pauses(self) -> None:
        fetch = Fetch(*[Turn(status=403)] * 5)

        fetch()

        assert fetch.clock.pauses == [0.5, 1, 2, 4]
        assert "although it was just made" in fetch.events.of("retrying")[0][1]

    def test_the_next_one_after_progress_counts_as_the_first(self) -> None:
        fetch = Fetch(*[Turn(status=403), Turn(cut_after=100_000)] * 2)

        fetch()

        assert fetch.clock.pauses == [0.5, 0.5]

    @pytest.mark.parametrize(
        ("status", "cause"),
        [(403, "denies access to this runner"), (404, "There is no bundle at the link"), (410, "There is no bundle at the link")],
    )
    def test_endless_ones_fail_with_their_likely_cause(self, status: int, cause: str) -> None:
        fetch = Fetch(*[Turn(status=status)] * 1000, tolerance=60)

        error = fetch.failure()

        assert isinstance(error, DownloadFailed)
        assert cause in error.cause
        assert fetch.clock.elapsed == 60
        assert fetch.storage.links <= 12

    def test_the_apis_error_is_raised(self) -> None:
        def refuse(_job: Job) -> Bundle:
            raise Rejected("the job is gone")

        fetch = Fetch(Turn(status=404))
        fetch.storage.make_bundle = refuse  # type: ignore[method-assign]

        assert isinstance(fetch.failure(), Rejected)


def test_an_endless_response_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs_platform_action.bundle.download.MAX_BUNDLE_BYTES", 50_000)
    assert MAX_BUNDLE_BYTES > 10**9

    error = Fetch(Turn(announces=False)).failure()

    assert error.summary == "the storage sent more than the 50,000 bytes that the bundle may have"


turns = st.builds(
    Turn,
    status=st.sampled_from([None] * 6 + [403, 404, 503, 500, 429, 416, 206]),
    cut_after=st.none() | st.integers(0, len(SECOND) + 10),
    ranges=st.booleans(),
    announces=st.booleans(),
    validator=st.sampled_from(["ETag", "Last-Modified", ""]),
    honors_if_range=st.booleans(),
    repeats_validator=st.booleans(),
    takes_seconds=st.sampled_from([0.0, 1.0, 30.0]),
)


@given(st.lists(turns, max_size=25), st.sampled_from([1.0, 30.0, 300.0]))
def test_whatever_the_storage_does_the_bundle_is_complete_or_the_download_fails(script: list[Turn], tolerance: float) -> None:
    fetch = Fetch(*script, tolerance=tolerance)

    with contextlib.suppress(DownloadFailed):
        downloaded = fetch()
        assert fetch.file.getvalue() == FIRST
        assert downloaded == Downloaded(size=len(FIRST), sha256=hashlib.sha256(FIRST).hexdigest())


cuts = st.builds(
    Turn,
    switches=st.booleans(),
    cut_after=st.integers(0, len(FIRST)),
    announces=st.booleans(),
    validator=st.sampled_from(["ETag", "Last-Modified"]),
    honors_if_range=st.booleans(),
    repeats_validator=st.booleans(),
)


@given(st.lists(cuts, max_size=10))
@example([Turn(cut_after=100_000), Turn(switches=True, honors_if_range=False, repeats_validator=False)])
def test_two_bundles_are_never_mixed(script: list[Turn]) -> None:
    fetch = Fetch(*script)

    with contextlib.suppress(DownloadFailed):
        downloaded = fetch()
        assert fetch.file.getvalue() in {FIRST, SECOND, THIRD}
        assert downloaded.sha256 == hashlib.sha256(fetch.file.getvalue()).hexdigest()
