"""Downloads in virtual time: whatever the storage does, the bundle is complete or the download fails."""

import contextlib
import gzip
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
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
from docs_platform_action.errors import ActionError, Advice, DownloadFailed, Rejected
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.job import Job
from docs_platform_action.models import EXPORT, STORAGE, Bundle, Downloaded
from docs_platform_action.redaction import Redactor
from tests.archives import KINDS, Site
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import NOON, VirtualClock

LINK = "https://storage.example.com/se_{place}/bundle?X-Signature={number}"
ADDRESS = "https://storage.example.com/se_1/bundle"
GZIP = b"\x1f\x8b\x08"
"""How a bundle begins."""

FIRST = GZIP + bytes(range(256)) * 900
SECOND = GZIP + bytes(reversed(range(256))) * 1100
THIRD = GZIP + bytes(reversed(range(256))) * 900
"""As long as the first one."""

NO_SECRETS = Redactor([])


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response of the storage, or an error instead of one. The connection breaks after `cut` bytes of the body."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    is_length_known: bool = True
    address: str = ADDRESS
    error: NetworkError | None = None

    def response(self) -> StorageResponse:
        length = {"Content-Length": str(len(self.body))} if self.is_length_known else {}
        return StorageResponse(
            redactor=NO_SECRETS,
            status=self.status,
            headers={**length, **self.headers},
            address=self.address,
            pieces=self._pieces(),
        )

    def _pieces(self) -> Iterator[bytes]:
        let_through = self.body if self.cut is None else self.body[: self.cut]
        for begin in range(0, len(let_through), 10_000):
            yield let_through[begin : begin + 10_000]
        # noticed by the announced length, or by the framing
        if self.cut is not None:
            raise NetworkError("An example of an error", maybe_processed=True)


@dataclass(frozen=True)
class Turn:
    """A response to whatever is requested. The connection breaks after `cut_after` bytes of the body."""

    status: int | None = None
    cut_after: int | None = None
    ranges: bool = True
    announces: bool = True
    switches: bool = False
    validator: str = "ETag"
    honors_if_range: bool = True
    repeats_validator: bool = True
    takes_seconds: float = 0.0


class FakeStorage:
    """Serves a bundle by a script, then without errors, and makes links to it as the API does."""

    def __init__(self, clock: VirtualClock, *script: Turn | Answer) -> None:
        self._clock = clock
        self._script = list(script)
        self.outage_tolerance_seconds = 300.0
        self.content = FIRST
        self._version = 0
        self.place = 1
        self.requested: list[Mapping[str, str]] = []
        self.links = [LINK.format(place=1, number=1)]

    def make_bundle(self, job: Job) -> Bundle:
        assert job.job_id == "se_1"
        self.links.append(LINK.format(place=self.place, number=len(self.links) + 1))
        return Bundle(url=self.links[-1])

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str], *_: object, within_seconds: float) -> Iterator[StorageResponse]:
        assert within_seconds >= 2
        assert url == self.links[-1], "the latest link is used"
        self.requested.append({**headers})
        turn = self._script.pop(0) if self._script else Turn()
        answer = turn if isinstance(turn, Answer) else self._answer(turn, headers)
        if answer.error is not None:
            raise answer.error
        yield answer.response()

    def _answer(self, turn: Turn, headers: Mapping[str, str]) -> Answer:
        self._clock.advance(turn.takes_seconds)
        if turn.switches:
            self._version += 1
            self.content = (FIRST, THIRD, SECOND)[self._version % 3]
        if turn.status is not None:
            return Answer(status=turn.status, is_length_known=False)
        modified = format_datetime(NOON + timedelta(seconds=self._version), usegmt=True)
        validators = {"ETag": f'"{hashlib.sha256(self.content).hexdigest()}"', "Last-Modified": modified}
        present = {turn.validator: validators[turn.validator]} if turn.validator else {}
        begin = 0
        if turn.ranges and "Range" in headers and (not turn.honors_if_range or headers["If-Range"] in present.values()):
            begin = min(int(headers["Range"].removeprefix("bytes=").removesuffix("-")), len(self.content))
        if begin == len(self.content):
            return Answer(status=416, headers={"Content-Range": f"bytes */{begin}"}, is_length_known=False)
        found = {"Date": format_datetime(NOON + timedelta(hours=1), usegmt=True)}
        if turn.repeats_validator or not begin:
            found |= present
        if begin:
            found["Content-Range"] = f"bytes {begin}-{len(self.content) - 1}/{len(self.content)}"
        body = self.content[begin:]
        return Answer(
            status=206 if begin else 200,
            headers=found,
            body=body,
            cut=turn.cut_after if turn.cut_after is not None and turn.cut_after < len(body) else None,
            is_length_known=turn.announces,
        )


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

    def __init__(self, *script: Turn | Answer, tolerance: float = 300) -> None:
        self.clock = VirtualClock()
        self.storage = FakeStorage(self.clock, *script)
        self.storage.outage_tolerance_seconds = tolerance
        self.file = io.BytesIO()
        self.events = RecordedEvents()
        self.disk = Disk()
        self.job = Job(mode=EXPORT, job_id="se_1", bundle=Bundle(url=self.storage.links[0]))
        shared = context(self.clock, self.events, api=self.storage)
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
    assert fetch.events.of("download_progressed")[-1] == (len(FIRST), len(FIRST))
    assert fetch.file.getvalue() == FIRST


def test_each_response_is_announced_with_the_range_that_was_requested() -> None:
    fetch = Fetch(Turn(cut_after=100_000))

    fetch()

    assert fetch.events.of("storage_responded") == [(ADDRESS, 200, None, None), (ADDRESS, 206, "bytes=100000-", None)]


HALF = 3 + 256 * 390 + ord("<")
"""Where the connection breaks; the rest of the first bundle begins like a web page."""

PAST, RECENT, NOW = (f"Mon, 04 May 2026 {time} GMT" for time in ("12:00:00", "12:59:59", "13:00:00"))
ETAG = {"ETag": '"1"'}
DATED = {"Last-Modified": PAST, "Date": NOW}
GZIPPED = {"Content-Encoding": "gzip"}
WHOLE: Mapping[str, str] = {}
ACCEPTING_GZIP = {"Accept-Encoding": "gzip"}


def after(received: int, validator: str = ETAG["ETag"]) -> Mapping[str, str]:
    """Return the headers of a request for the bytes after those that were received."""
    return {"Range": f"bytes={received}-", "If-Range": validator}


def half(headers: Mapping[str, str] = ETAG, *, size: int = HALF, is_length_known: bool = True) -> Answer:
    """Return a response that breaks off within the first bundle."""
    return Answer(headers=headers, body=FIRST, cut=size, is_length_known=is_length_known)


def rest(
    headers: Mapping[str, str] = ETAG, *, of: bytes = FIRST, begin: int = HALF, end: int = len(FIRST), size: object = len(FIRST)
) -> Answer:
    """Return a part of a bundle."""
    content_range = {"Content-Range": f"bytes {begin}-{end - 1}/{size}"}
    return Answer(status=206, headers={**content_range, **headers}, body=of[begin:end])


def refused_range(size: int, headers: Mapping[str, str] = WHOLE) -> Answer:
    """Return a 416 of a bundle of this size."""
    return Answer(status=416, headers={"Content-Range": f"bytes */{size}", **headers})


@pytest.mark.parametrize(
    ("headers", "of_rest", "validator"),
    [
        (ETAG, ETAG, '"1"'),
        (ETAG, {**ETAG, "Content-Type": "text/html"}, '"1"'),
        (DATED | ETAG, DATED | ETAG, '"1"'),
        (DATED, DATED, PAST),
        (DATED, {"Last-Modified": PAST}, PAST),
        (DATED | {"Last-Modified": RECENT}, {"Last-Modified": RECENT}, RECENT),
    ],
)
def test_a_part_with_the_same_validator_is_appended(
    headers: Mapping[str, str], of_rest: Mapping[str, str], validator: str
) -> None:
    fetch = Fetch(half(headers), rest(of_rest))

    fetch()

    assert fetch.file.getvalue() == FIRST
    assert fetch.storage.requested == [WHOLE, after(HALF, validator)]
    assert "download_restarted" not in fetch.logged


OTHER_PARTS: Mapping[str, tuple[Mapping[str, str], Answer]] = {
    "a part has no ETag": (ETAG, rest({}, of=THIRD)),
    "another ETag": (ETAG, rest({"ETag": '"2"'}, of=THIRD)),
    "a weak ETag": (ETAG, rest({"ETag": 'W/"1"'}, of=THIRD)),
    "an ETag without quotes": (ETAG, rest({"ETag": "1"}, of=THIRD)),
    "only the date": (DATED | ETAG, rest(DATED, of=THIRD)),
    "a part has no date": (DATED, rest({"Date": NOW}, of=THIRD)),
    "only an ETag": (DATED, rest({**ETAG, "Date": NOW}, of=THIRD)),
    "an ETag, too": (DATED, rest(DATED | ETAG, of=THIRD)),
    "another date": (DATED, rest({"Last-Modified": RECENT, "Date": NOW}, of=THIRD)),
    "another form of the date": (DATED, rest({"Last-Modified": "Monday, 04-May-26 12:00:00 GMT", "Date": NOW}, of=THIRD)),
    "compressed": (ETAG, rest(ETAG | GZIPPED, of=THIRD)),
    "several ranges": (ETAG, rest({**ETAG, "Content-Type": "Multipart/Byteranges; boundary=x"}, of=THIRD)),
    "of another address": (ETAG, replace(rest(of=THIRD), address="https://mirror.example.com/")),
    "an earlier part": (ETAG, rest(of=THIRD, begin=HALF - 1)),
    "a later part": (ETAG, rest(of=THIRD, begin=HALF + 1)),
    "beyond the end": (ETAG, rest({**ETAG, "Content-Range": f"bytes {HALF}-{len(FIRST)}/{len(FIRST)}"}, of=THIRD)),
    "backwards": (ETAG, rest({**ETAG, "Content-Range": f"bytes {HALF}-{HALF - 1}/{len(FIRST)}"}, of=b"")),
    "shorter than its range": (
        ETAG,
        rest({**ETAG, "Content-Range": f"bytes {HALF}-{len(FIRST) - 1}/{len(FIRST)}"}, end=HALF + 9),
    ),
    "no size": (ETAG, rest({**ETAG, "Content-Range": "bytes */10"}, of=THIRD)),
    "no bytes": (ETAG, rest({**ETAG, "Content-Range": f"pages {HALF}-{len(FIRST) - 1}/{len(FIRST)}"}, of=THIRD)),
    "no range": (ETAG, Answer(status=206, headers=ETAG, body=THIRD[HALF:])),
}
"""The headers of a bundle, and a response to the request for the rest of it that must not be appended."""


@pytest.mark.parametrize("name", OTHER_PARTS)
@pytest.mark.parametrize("is_length_known", [True, False])
def test_any_other_part_starts_the_download_again(name: str, is_length_known: bool) -> None:
    headers, part = OTHER_PARTS[name]
    fetch = Fetch(half(headers, is_length_known=is_length_known), part)
    fetch.storage.content = THIRD

    fetch()

    assert fetch.file.getvalue() == THIRD
    assert fetch.storage.requested == [WHOLE, after(HALF, headers.get("ETag", PAST)), WHOLE]
    assert fetch.logged == ["retrying", "download_restarted", "recovered"]


TAR = KINDS["tar"](Site(files={"index.html": b"<h1>Docs</h1>" * 1000}))
PACKED = gzip.compress(TAR, compresslevel=0)
DECOMPRESSED = Answer(headers={"X-Goog-Stored-Content-Encoding": "gzip"}, body=TAR, is_length_known=False)
"""A bundle that the storage has decompressed."""


@dataclass(frozen=True)
class Case:
    """Responses, the requests that they follow, and what is saved if the download succeeds."""

    answers: Sequence[Answer]
    requests: Sequence[Mapping[str, str]]
    _: KW_ONLY
    saved: bytes = FIRST
    links: int = 1
    was_transcoded: bool = False


NO_END = half(size=len(FIRST), is_length_known=False)
TOO_LONG = half({**ETAG, "Content-Length": str(len(FIRST) + 1000)}, size=len(FIRST))

RESUMED: Mapping[str, Case] = {
    "The storage does not resume": Case([half(), Answer(headers=ETAG, body=FIRST)], [WHOLE, after(HALF)]),
    "The bundle is another one": Case(
        [half(), Answer(headers={"ETag": '"2"'}, body=THIRD[:50_000])], [WHOLE, after(HALF)], saved=THIRD[:50_000]
    ),
    "The bundle has no strong validator": Case([half({"ETag": 'W/"1"'})], [WHOLE, WHOLE]),
    "The rest comes in two parts": Case([half(), rest(end=150_000), rest(begin=150_000)], [WHOLE, after(HALF), after(150_000)]),
    "The rest comes in two parts without the size": Case(
        [half(), rest(end=150_000, size="*"), rest(begin=150_000, size="*")], [WHOLE, after(HALF), after(150_000)]
    ),
    "The size is unknown, and the part's may be that of the bundle": Case(
        [half(is_length_known=False), rest(size="*")], [WHOLE, after(HALF), WHOLE]
    ),
    "A part although the bundle was requested": Case(
        [Answer(status=206, headers={"Content-Range": "bytes 0-9/10"}, body=FIRST[:10])], [WHOLE, WHOLE]
    ),
    "A page in place of the rest": Case([half(), Answer(body=b"<html>"), rest()], [WHOLE, after(HALF), after(HALF)]),
    "The end is not marked": Case([NO_END, refused_range(len(FIRST))] * 2, [WHOLE, after(len(FIRST))] * 2),
    "The announced size is too large": Case([TOO_LONG, refused_range(len(FIRST))] * 2, [WHOLE, after(len(FIRST))] * 2),
    "The announced size is that of the bundle, and all is there": Case(
        [half(size=len(FIRST)), refused_range(len(FIRST))], [WHOLE, after(len(FIRST))]
    ),
    "The end is not marked, but the 416 has the ETag": Case(
        [NO_END, refused_range(len(FIRST), ETAG)], [WHOLE, after(len(FIRST))]
    ),
    "A 416 may be about another bundle": Case([half(is_length_known=False), refused_range(HALF)], [WHOLE, after(HALF), WHOLE]),
    "A 416 is about another bundle": Case(
        [half(is_length_known=False), refused_range(HALF, {"ETag": '"2"'})], [WHOLE, after(HALF), WHOLE]
    ),
    "A 416 is about a shorter bundle": Case([half(), refused_range(100)] * 2, [WHOLE, after(HALF)] * 2 + [WHOLE]),
    "Two 416s contradict each other": Case(
        [NO_END, refused_range(len(FIRST)), half(is_length_known=False), refused_range(HALF)],
        [WHOLE, after(len(FIRST)), WHOLE, after(HALF), WHOLE],
    ),
    "A range is refused with 412": Case([half(), Answer(status=412)], [WHOLE, after(HALF), WHOLE]),
    "A range is refused with 403": Case(
        [half(), Answer(status=403), Answer(status=403)], [WHOLE, after(HALF), after(HALF), WHOLE], links=3
    ),
    "The response ends too early": Case(
        [Answer(headers={**ETAG, "Content-Length": str(len(FIRST))}, body=FIRST[:HALF]), rest()], [WHOLE, after(HALF)]
    ),
    "The storage has decompressed the bundle": Case(
        [DECOMPRESSED, Answer(headers=GZIPPED, body=PACKED)], [WHOLE, ACCEPTING_GZIP], saved=PACKED
    ),
    "The storage always decompresses the bundle": Case(
        [DECOMPRESSED] * 2, [WHOLE, ACCEPTING_GZIP], saved=TAR, was_transcoded=True
    ),
    "The storage compresses the bundle": Case(
        [
            Answer(body=TAR, is_length_known=False),
            Answer(headers=GZIPPED, body=PACKED, is_length_known=False),
            Answer(body=TAR, is_length_known=False),
        ],
        [WHOLE, ACCEPTING_GZIP, WHOLE],
        saved=TAR,
    ),
    **{
        f"A request that accepts gzip is answered with {status}": Case(
            [Answer(body=TAR, is_length_known=False), Answer(status=status), Answer(body=TAR, is_length_known=False)],
            [WHOLE, ACCEPTING_GZIP, WHOLE],
            saved=TAR,
        )
        for status in (400, 406, 500)
    },
    "The bundle is stored with a coding": Case(
        [Answer(headers=GZIPPED, body=PACKED, is_length_known=False)], [WHOLE], saved=PACKED
    ),
    "The bundle may have been compressed on the way": Case(
        [
            Answer(headers=ETAG | GZIPPED, body=PACKED, cut=2000, is_length_known=False),
            Answer(headers=GZIPPED, body=PACKED),
        ],
        [WHOLE, WHOLE],
        saved=PACKED,
    ),
    "The bundle is resumed with its coding": Case(
        [
            DECOMPRESSED,
            Answer(headers=ETAG | GZIPPED, body=PACKED, cut=2000),
            rest(ETAG | GZIPPED, of=PACKED, begin=2000, end=len(PACKED), size=len(PACKED)),
        ],
        [WHOLE, ACCEPTING_GZIP, {**ACCEPTING_GZIP, **after(2000)}],
        saved=PACKED,
    ),
    "The rest has no coding": Case(
        [
            Answer(headers=ETAG | GZIPPED, body=PACKED, cut=2000),
            rest(of=PACKED, begin=2000, end=len(PACKED), size=len(PACKED)),
            Answer(headers=GZIPPED, body=PACKED),
        ],
        [WHOLE, after(2000), WHOLE],
        saved=PACKED,
    ),
    "The link is refused": Case([Answer(status=403)], [WHOLE, WHOLE], links=2),
}
"""Downloads that succeed."""


class BadHandshake(NetworkError):
    """A failed TLS handshake."""

    def advice_for(self, address: str) -> Advice:
        return Advice(cause="An example of a cause.", remedy=f"An example of a remedy for {address}.")


FAILED: Mapping[str, Case] = {
    "The storage does not respond": Case(
        [Answer(error=NetworkError("An example of an error", maybe_processed=True))] * 2, [WHOLE] * 2
    ),
    "The storage cannot be reached": Case(
        [Answer(error=NetworkError("An example of an error", maybe_processed=False))] * 2, [WHOLE] * 2
    ),
    "The TLS handshake fails": Case(
        [Answer(error=BadHandshake("An example of an error", maybe_processed=False))] * 2, [WHOLE] * 2
    ),
    "The connection breaks again and again": Case([half({})] * 2, [WHOLE] * 2),
    "The connection breaks, and the size is unknown": Case([half({}, is_length_known=False)] * 2, [WHOLE] * 2),
    "The storage is overloaded": Case(
        [Answer(status=503, body=b"<Code>SlowDown</Code>", headers={"X-Request-Id": "req-7"})] * 2, [WHOLE] * 2
    ),
    "Each new link is refused": Case([Answer(status=403)] * 3, [WHOLE] * 3, links=3),
    "Each new link has expired": Case(
        [Answer(status=403, body=b"<Message>Request has expired</Message>")] * 3, [WHOLE] * 3, links=3
    ),
    "Each new link leads nowhere": Case([Answer(status=404)] * 3, [WHOLE] * 3, links=3),
    "Each new link leads to what was removed": Case([Answer(status=410)] * 3, [WHOLE] * 3, links=3),
    "The storage refuses the request": Case([Answer(status=451)], [WHOLE]),
    "The rest is not of the bundle": Case([half(), rest({})], [WHOLE, after(HALF)]),
    "A part is longer than its range": Case(
        [
            half(),
            Answer(
                status=206,
                headers={**ETAG, "Content-Range": f"bytes {HALF}-{len(FIRST) - 1}/{len(FIRST)}"},
                body=FIRST[HALF:] + b"x",
                is_length_known=False,
            ),
        ],
        [WHOLE, after(HALF)],
    ),
}
"""Downloads that fail, with a tolerance that allows two attempts."""


def failed(name: str) -> tuple[Fetch, ActionError]:
    """Return a download after its failure."""
    fetch = Fetch(*FAILED[name].answers, tolerance=0.1)
    return fetch, fetch.failure()


@pytest.mark.parametrize("name", RESUMED)
def test_a_download_makes_the_requests_that_lead_to_the_whole_bundle(name: str) -> None:
    case = RESUMED[name]
    fetch = Fetch(*case.answers)

    downloaded = fetch()

    assert fetch.file.getvalue() == case.saved
    assert downloaded.sha256 == hashlib.sha256(case.saved).hexdigest()
    assert (fetch.storage.requested, len(fetch.storage.links)) == ([*case.requests], case.links)
    assert downloaded.was_transcoded == case.was_transcoded


@pytest.mark.parametrize("name", FAILED)
def test_a_download_fails_after_the_last_attempt_that_makes_sense(name: str) -> None:
    fetch, error = failed(name)

    assert isinstance(error, DownloadFailed)
    assert (fetch.storage.requested, len(fetch.storage.links)) == ([*FAILED[name].requests], FAILED[name].links)


@pytest.mark.parametrize("status", [405, 406, 412, 416, 499])
def test_a_refusal_that_is_not_about_the_link_is_final_unless_it_is_about_a_range(status: int) -> None:
    fetch = Fetch(*[Answer(status=status)] * 2, tolerance=0.1)

    assert isinstance(fetch.failure(), DownloadFailed)
    assert len(fetch.storage.requested) == (2 if status == 416 else 1)


def test_a_proxy_at_fault_is_named() -> None:
    error = NetworkError("The proxy refused the connection", maybe_processed=False, is_proxy_error=True)

    failure = Fetch(*[Answer(error=error)] * 2, tolerance=0.1).failure()

    assert error.advice_for("x") == {"cause": failure.cause, "remedy": failure.remedy}


def test_the_request_id_of_the_last_response_is_in_the_failure() -> None:
    _, error = failed("The storage is overloaded")

    assert error.request_id == "req-7"


def test_a_bundle_that_has_moved_is_not_resumed() -> None:
    fetch = Fetch(half(), Answer(status=404))
    fetch.storage.place = 2

    fetch()

    assert fetch.storage.requested == [WHOLE, after(HALF), WHOLE]


def test_what_is_not_an_archive_is_not_written() -> None:
    fetch = Fetch(tolerance=1)
    fetch.storage.content = b"%PDF-1.7"

    assert isinstance(fetch.failure(), DownloadFailed)
    assert fetch.file.getvalue() == b""


def test_an_endless_response_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_BUNDLE_BYTES == 50 * 1024**3
    monkeypatch.setattr(download, "MAX_BUNDLE_BYTES", len(FIRST) - 1)
    fetch = Fetch(Turn(announces=False))

    assert isinstance(fetch.failure(), DownloadFailed)
    assert len(fetch.storage.requested) == 1


class TestDiskSpace:
    def test_it_is_checked_once_for_the_size_that_the_storage_announces(self) -> None:
        fetch = Fetch(Turn(cut_after=100_000))

        fetch()

        assert fetch.disk.checked == [len(FIRST)]

    def test_without_enough_nothing_is_written(self) -> None:
        fetch = Fetch()
        fetch.disk.error = DownloadFailed("no room")

        assert fetch.failure() is fetch.disk.error
        assert fetch.file.getvalue() == b""


class TestOutage:
    def test_pauses_grow_until_there_is_progress(self) -> None:
        bad = Turn(status=503)
        fetch = Fetch(bad, bad, bad, Turn(cut_after=100_000), bad, bad)

        fetch()

        assert fetch.clock.pauses == [0.5, 1, 2, 0.5, 1, 2]
        assert fetch.logged == ["retrying", "recovered"] * 2
        assert fetch.events.of("recovered") == [(STORAGE, 3.5), (STORAGE, 3.5)]

    def test_a_pause_is_as_long_as_the_storage_asks_for(self) -> None:
        fetch = Fetch(Answer(status=503, headers={"Retry-After": "17"}))

        fetch()

        assert fetch.clock.elapsed >= 17

    def test_a_trickle_is_not_progress(self) -> None:
        fetch = Fetch(*[Turn(cut_after=10, takes_seconds=9)] * 1000, tolerance=60)

        assert isinstance(fetch.failure(), DownloadFailed)
        assert 60 <= fetch.clock.elapsed <= 60 + 30 + 9

    def test_the_last_attempt_may_succeed_after_the_tolerance(self) -> None:
        fetch = Fetch(Turn(status=503, takes_seconds=50), Turn(status=503, takes_seconds=50), tolerance=40)

        assert fetch().size == len(FIRST)

    def test_progress_in_the_last_attempt_begins_a_new_outage(self) -> None:
        fetch = Fetch(Turn(status=503), Turn(cut_after=100_000, takes_seconds=50), tolerance=0.1)

        assert fetch().size == len(FIRST)


class TestRefusal:
    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
    def test_the_first_is_retried_without_a_pause_with_the_new_link_in_the_job(self, status: int) -> None:
        fetch, links = Fetch(Turn(status=status)), list[Bundle | None]()
        fetch.events.link_renewed = lambda job: links.append(job.bundle)  # type: ignore[method-assign]

        fetch()

        assert (fetch.clock.pauses, fetch.logged) == ([], ["link_expired"])
        assert links == [Bundle(url=fetch.storage.links[1])]

    def test_later_ones_are_retried_with_pauses(self) -> None:
        fetch = Fetch(*[Turn(status=403)] * 5)

        fetch()

        assert fetch.clock.pauses == [0.5, 1, 2, 4]

    def test_the_next_one_after_progress_counts_as_the_first(self) -> None:
        fetch = Fetch(*[Turn(status=403), Turn(cut_after=100_000)] * 2)

        fetch()

        assert fetch.clock.pauses == [0.5, 0.5]

    def test_endless_ones_fail_after_the_tolerance(self) -> None:
        fetch = Fetch(*[Turn(status=403)] * 1000, tolerance=60)

        assert isinstance(fetch.failure(), DownloadFailed)
        assert fetch.clock.elapsed == 60
        assert len(fetch.storage.links) <= 12

    def test_the_apis_error_is_raised(self) -> None:
        def refuse(_job: Job) -> Bundle:
            raise Rejected("the job is gone")

        fetch = Fetch(Turn(status=404))
        fetch.storage.make_bundle = refuse  # type: ignore[method-assign,assignment]

        assert isinstance(fetch.failure(), Rejected)


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
