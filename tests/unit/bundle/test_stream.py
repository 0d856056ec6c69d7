"""The stream of a bundle in virtual time: whatever the storage does, it is the whole bundle, or an error."""

import contextlib
import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from typing import Any, cast

import backoff
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from docs_platform_action.bundle import stream
from docs_platform_action.bundle.archive import START_BYTES
from docs_platform_action.bundle.stream import MAX_BUNDLE_BYTES, MIN_PROGRESS_BYTES, BundleStream, ResumeError
from docs_platform_action.errors import ActionError, Advice, Cancelled, DownloadFailed, Rejected
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.http.transport import Exchange, Received, Transport
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import STORAGE, Bundle, Downloaded
from tests.unit.bundle.test_storage import NOW, PAST, RECENT, sleep_within
from tests.unit.fakes import RecordedEvents, context, http_client
from tests.virtual_time import NOON, VirtualClock

ADDRESS = "https://storage.example.com/se_{place}/bundle"
GZIP = b"\x1f\x8b\x08"
"""How a bundle begins."""

FIRST = GZIP + bytes(range(256)) * 900
SECOND = GZIP + bytes(reversed(range(256))) * 1100
THIRD = GZIP + bytes(reversed(range(256))) * 900
"""As long as the first one."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response, or an error in place of one. Each piece takes `seconds`, and after `cut` bytes the connection breaks."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None
    is_length_known: bool = True
    piece_bytes: int = 10_000
    seconds: float = 0.0
    error: NetworkError | None = None

    def received(self, exchange: Exchange) -> Received:
        if self.error is not None:
            raise self.error
        length = {"Content-Length": str(len(self.body))} if self.is_length_known else {}
        return self.status, {**length, **self.headers}, self._pieces(exchange)

    def _pieces(self, exchange: Exchange) -> Iterator[bytes]:
        let_through = self.body[: self.cut]
        for begin in range(0, len(let_through), self.piece_bytes):
            sleep_within(exchange, self.seconds)
            yield let_through[begin : begin + self.piece_bytes]
        if self.cut is not None:
            raise lost()


def lost() -> NetworkError:
    return NetworkError("An example of an error", maybe_processed=True)


@dataclass(frozen=True)
class Turn:
    """A correct response to whatever is requested, but for what is set. The connection breaks after `cut_after` bytes."""

    status: int | None = None
    cut_after: int | None = None
    ranges: bool = True
    announces: bool = True
    switches: bool = False
    validator: str = "ETag"
    honors_if_range: bool = True
    repeats_validator: bool = True
    takes_seconds: float = 0.0


class FakeStorage(Transport):
    """Serves a bundle by a script, then without errors, and makes links to it as the API does."""

    def __init__(self, clock: VirtualClock, script: Sequence[Turn | Answer], tolerance: float) -> None:
        self.outage_tolerance_seconds = tolerance
        self.content = FIRST
        self.place = 1
        self.exchanges: list[Exchange] = []
        self.links = [self._link()]
        self._clock, self._script, self._version = clock, [*script], 0

    def _link(self) -> str:
        return f"{ADDRESS.format(place=self.place)}?X-Signature={len(self.exchanges)}"

    @property
    def requested(self) -> list[Mapping[str, str]]:
        """The headers of each request that are about a range."""
        sent = [exchange.unprepared.headers for exchange in self.exchanges]
        return [{name: headers[name] for name in ("Range", "If-Range") if name in headers} for headers in sent]

    def make_bundle(self, job: Job) -> Bundle:
        assert job.job_id == "se_1"
        self.links.append(self._link())
        return Bundle(url=self.links[-1])

    def send(self, exchange: Exchange) -> Received:
        self.exchanges.append(exchange)
        assert exchange.host != "storage.example.com" or self.links[-1].endswith(exchange.target), "the latest link is used"
        turn = self._script.pop(0) if self._script else Turn()
        return (turn if isinstance(turn, Answer) else self._answer(turn, self.requested[-1])).received(exchange)

    def _answer(self, turn: Turn, headers: Mapping[str, str]) -> Answer:
        self._clock.advance(turn.takes_seconds)
        if turn.switches:
            self._version += 1
            self.content = (FIRST, THIRD, SECOND)[self._version % 3]
        if turn.status is not None:
            return Answer(status=turn.status)
        modified = format_datetime(NOON + timedelta(seconds=self._version), usegmt=True)
        validators = {"ETag": f'"{hashlib.sha256(self.content).hexdigest()}"', "Last-Modified": modified}
        present = {turn.validator: validators[turn.validator]} if turn.validator else {}
        begin = 0
        if turn.ranges and "Range" in headers and (not turn.honors_if_range or headers["If-Range"] in present.values()):
            begin = min(int(headers["Range"].removeprefix("bytes=").removesuffix("-")), len(self.content))
        if begin == len(self.content):
            return Answer(status=416, headers={"Content-Range": f"bytes */{begin}"})
        found = {"Date": format_datetime(NOON + timedelta(hours=1), usegmt=True)}
        if turn.repeats_validator or not begin:
            found |= present
        if begin:
            found["Content-Range"] = f"bytes {begin}-{len(self.content) - 1}/{len(self.content)}"
        body = self.content[begin:]
        cut = turn.cut_after if turn.cut_after is not None and turn.cut_after < len(body) else None
        return Answer(status=206 if begin else 200, headers=found, body=body, cut=cut, is_length_known=turn.announces)


class Fetch:
    """One stream, read to its end. `read` has what came of it."""

    def __init__(self, *script: Turn | Answer, tolerance: float = 300.0) -> None:
        self.clock, self.events = VirtualClock(), RecordedEvents()
        self.storage = FakeStorage(self.clock, script, tolerance)
        self.archive, self.read = io.BytesIO(), b""
        self.job = Job(mode=Mode.EXPORT, job_id="se_1", link=Bundle(url=self.storage.links[0]))
        client = http_client(self.storage, clock=self.clock)
        shared = context(self.clock, self.events, api=self.storage, client=client)
        self.stream = BundleStream(self.job, shared, cast("Any", self.archive))

    def __call__(self) -> Downloaded:
        try:
            with pytest.MonkeyPatch.context() as patch, contextlib.closing(self.stream):
                patch.setattr(backoff, "full_jitter", lambda ceiling: ceiling / 2)
                while chunk := self.stream.read(70_000):
                    self.read += chunk
                return self.stream.drain()
        finally:
            assert self.archive.getvalue().startswith(self.read)
            assert all(exchange.is_over for exchange in self.storage.exchanges), "each connection is closed"
            for received, size in self.events.of("download_progressed"):
                assert size is None or received <= size
            for server, _, budget_seconds, pause_seconds in self.events.of("retrying"):
                assert server == STORAGE
                assert 0 <= pause_seconds <= budget_seconds

    @property
    def logged(self) -> list[str]:
        """The names of the events that are logged."""
        return [name for name in self.events.names if name not in {"storage_responded", "download_progressed"}]

    def failure(self) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self()
        return caught.value


def of_first() -> Downloaded:
    return Downloaded(size=len(FIRST), sha256=hashlib.sha256(FIRST).hexdigest())


def test_an_undisturbed_stream_takes_one_request_and_announces_its_progress() -> None:
    fetch = Fetch()

    downloaded = fetch()

    assert downloaded == of_first()
    assert fetch.read == fetch.archive.getvalue() == FIRST
    assert (fetch.storage.requested, fetch.logged, fetch.clock.pauses) == ([{}], [], [])
    assert fetch.events.of("download_progressed")[-1] == (len(FIRST), len(FIRST))


@pytest.mark.parametrize("content", [FIRST, b"PK\x05\x06" + bytes(18)], ids=["large", "small"])
def test_the_start_is_there_before_it_is_read(content: bytes) -> None:
    fetch = Fetch(Answer(body=content, piece_bytes=100))

    starts = [fetch.stream.peek(), fetch.stream.peek()]
    fetch()

    assert starts == [content[:START_BYTES]] * 2
    assert fetch.read == content


def test_each_response_is_announced_with_the_range_that_was_requested() -> None:
    fetch = Fetch(Turn(cut_after=100_000))

    fetch()

    address = ADDRESS.format(place=1)
    assert fetch.events.of("storage_responded") == [(address, 200, None, None), (address, 206, "bytes=100000-", None)]


HALF = 99_903
"""Where the connection breaks."""

WHOLE: Mapping[str, str] = {}
ETAG = {"ETag": '"1"'}
DATED = {"Last-Modified": PAST, "Date": NOW}
GZIPPED = {"Content-Encoding": "gzip"}
PAGE = b"<!doctype html><title>Sign in</title>"
REFUSED = Answer(status=403)
TOO_LONG = {**ETAG, "Content-Length": str(len(FIRST) + 1000)}
CUTS = (100_001, 1, 7000, 30_000, 10_000, 5, 25_003, 9999, 40_000, 1234)


def after(received: int, validator: str = ETAG["ETag"]) -> Mapping[str, str]:
    """Return the headers of a request for the bytes after those that were received."""
    return {"Range": f"bytes={received}-", "If-Range": validator}


def half(headers: Mapping[str, str] = ETAG, *, size: int = HALF, is_length_known: bool = True) -> Answer:
    """Return a response that breaks off within the first bundle."""
    return Answer(headers=headers, body=FIRST, cut=size, is_length_known=is_length_known)


def rest(
    headers: Mapping[str, str] = ETAG,
    *,
    of: bytes = FIRST,
    begin: int = HALF,
    end: int = len(FIRST),
    size: object = len(FIRST),
    cut: int | None = None,
) -> Answer:
    """Return a part of a bundle."""
    content_range = {"Content-Range": f"bytes {begin}-{end - 1}/{size}"}
    return Answer(status=206, headers={**content_range, **headers}, body=of[begin:end], cut=cut)


@dataclass(frozen=True)
class Case:
    """Responses, and the requests that they follow."""

    answers: Sequence[Answer | Turn]
    requests: Sequence[Mapping[str, str]]
    _: KW_ONLY
    links: int = 1


def _resumed(headers: Mapping[str, str], of_rest: Mapping[str, str], validator: str) -> Case:
    return Case([half(headers), rest(of_rest)], [WHOLE, after(HALF, validator)])


CONTINUED: Mapping[str, Case] = {
    "The connection breaks": _resumed(ETAG, {**ETAG, "Content-Type": "text/html"}, '"1"'),
    "An ETag and a date": _resumed(DATED | ETAG, DATED | ETAG, '"1"'),
    "A date": _resumed(DATED, DATED, PAST),
    "A date of a second ago": _resumed(DATED | {"Last-Modified": RECENT}, DATED | {"Last-Modified": RECENT}, RECENT),
    "A coding and a length": _resumed(ETAG | GZIPPED, ETAG | GZIPPED, '"1"'),
    "The rest has the size": Case([half(is_length_known=False), rest()], [WHOLE, after(HALF)]),
    "The rest comes in two parts": Case([half(), rest(end=150_000), rest(begin=150_000)], [WHOLE, after(HALF), after(150_000)]),
    "The rest comes in two parts without the size": Case(
        [half(), rest(end=150_000, size="*"), rest(begin=150_000, size="*")], [WHOLE, after(HALF), after(150_000)]
    ),
    "The response ends too early": Case(
        [Answer(headers=ETAG | {"Content-Length": str(len(FIRST))}, body=FIRST[:HALF]), rest()], [WHOLE, after(HALF)]
    ),
    "The link is refused": Case([REFUSED], [WHOLE, WHOLE], links=2),
    "The link expires midway": Case([half(), REFUSED, rest()], [WHOLE, after(HALF), after(HALF)], links=2),
    "A gateway fails midway": Case([half(), Answer(status=502), rest()], [WHOLE, after(HALF), after(HALF)]),
    "No validator and no size": Case([Answer(body=FIRST, is_length_known=False)], [WHOLE]),
    "A web page in place of the bundle": Case([Answer(body=PAGE)], [WHOLE, WHOLE]),
    "A web page in place of the rest": Case([half(), Answer(body=PAGE), rest()], [WHOLE, after(HALF), after(HALF)]),
    "It nearly stops": Case(
        [Answer(body=FIRST, headers=ETAG, piece_bytes=600, seconds=50), rest(begin=1200)], [WHOLE, after(1200)]
    ),
    "The connection breaks ten times": Case(
        [Turn(cut_after=cut) for cut in CUTS],
        [WHOLE, *(after(sum(CUTS[: number + 1]), f'"{hashlib.sha256(FIRST).hexdigest()}"') for number in range(len(CUTS)))],
    ),
}
"""Streams that are the first bundle."""


def _other(headers: Mapping[str, str], part: Answer, *, is_length_known: bool = True) -> Case:
    return Case([half(headers, is_length_known=is_length_known), part], [WHOLE, after(HALF, headers.get("ETag", PAST))])


BEGUN_AGAIN: Mapping[str, Case] = {
    "No ETag": _other(ETAG, rest({}, of=THIRD)),
    "Another ETag": _other(ETAG, rest({"ETag": '"2"'}, of=THIRD)),
    "A weak ETag": _other(ETAG, rest({"ETag": 'W/"1"'}, of=THIRD)),
    "Only the date": _other(DATED | ETAG, rest(DATED, of=THIRD)),
    "No date": _other(DATED, rest({"Date": NOW}, of=THIRD)),
    "An ETag, too": _other(DATED, rest(DATED | ETAG, of=THIRD)),
    "Another date": _other(DATED, rest(DATED | {"Last-Modified": RECENT}, of=THIRD)),
    "Another coding": _other(ETAG, rest(ETAG | GZIPPED, of=THIRD)),
    "An earlier part": _other(ETAG, rest(begin=HALF - 1)),
    "A later part": _other(ETAG, rest(begin=HALF + 1)),
    "Another size": _other(ETAG, rest(size=len(FIRST) + 1)),
    "No size": _other(ETAG, rest(size="*"), is_length_known=False),
    "No more bytes": _other(ETAG, rest(size=HALF), is_length_known=False),
    "Another unit": _other(ETAG, rest({**ETAG, "Content-Range": f"pages {HALF}-{len(FIRST) - 1}/{len(FIRST)}"})),
    "Several ranges": _other(ETAG, Answer(status=206, headers={**ETAG, "Content-Type": "multipart/byteranges; boundary=x"})),
    "Of another address": Case(
        [half(), Answer(status=302, headers={"Location": "https://mirror.example.com/"}), rest(of=THIRD)],
        [WHOLE, after(HALF), after(HALF)],
    ),
    "The whole bundle": _other(ETAG, Answer(headers=ETAG, body=FIRST)),
    "Another bundle": _other(ETAG, Answer(headers={"ETag": '"2"'}, body=THIRD)),
    "The end is not marked": Case([half(size=len(FIRST), is_length_known=False)], [WHOLE, after(len(FIRST))]),
    "The announced size is too large": Case([half(TOO_LONG, size=len(FIRST)), Answer(status=416)], [WHOLE, after(len(FIRST))]),
    "The range is refused": _other(ETAG, Answer(status=412)),
    "A part in place of the bundle": Case([rest(begin=0)], [WHOLE]),
    "No validator": Case([half({})], [WHOLE]),
    "Only a weak ETag": Case([half({"ETag": 'W/"1"'})], [WHOLE]),
    "Compressed on the way": Case([half(ETAG | GZIPPED, is_length_known=False)], [WHOLE]),
}
"""Streams that cannot be resumed: the response to the request for the rest, or the first one."""


class BadHandshake(NetworkError):
    """A failed TLS handshake."""

    def advice_for(self, address: str) -> Advice:
        return Advice(cause="An example of a cause.", remedy=f"An example of a remedy for {address}.")


def _twice(answer: Answer, *, links: int = 1) -> Case:
    return Case([answer] * 2, [WHOLE] * 2, links=links)


FAILED: Mapping[str, Case] = {
    "The storage does not respond": _twice(Answer(error=lost())),
    "The storage cannot be reached": _twice(Answer(error=NetworkError("An example of an error", maybe_processed=False))),
    "The TLS handshake fails": _twice(Answer(error=BadHandshake("An example of an error", maybe_processed=False))),
    "The connection breaks again": Case([half(), rest(cut=10)], [WHOLE, after(HALF)]),
    "The connection breaks again, and the size is unknown": Case(
        [half(is_length_known=False), Answer(error=lost())], [WHOLE, after(HALF)]
    ),
    "The storage is overloaded": _twice(
        Answer(status=503, body=b"<Code>SlowDown</Code>", headers={"X-Request-Id": "req-7"}),
    ),
    "The new link is refused": _twice(REFUSED, links=2),
    "The new link has expired": _twice(Answer(status=403, body=b"<Message>Request has expired</Message>"), links=2),
    "The new link leads nowhere": _twice(Answer(status=404), links=2),
    "The new link leads to what was removed": _twice(Answer(status=410), links=2),
    "The storage refuses the request": Case([Answer(status=451)], [WHOLE]),
    "The rest is longer than its range": Case(
        [
            half(),
            rest({**ETAG, "Content-Range": f"bytes {HALF}-{len(FIRST) - 1}/{len(FIRST)}"}, of=FIRST + b"x", end=len(FIRST) + 1),
        ],
        [WHOLE, after(HALF)],
    ),
}
"""Streams that fail, with a tolerance that allows two attempts."""

NOT_BUNDLES: Mapping[str, Answer] = {
    "A web page": Answer(body=PAGE, headers={"Content-Type": "text/html"}),
    "JSON": Answer(body=b'{"error": "no"}'),
    "XML": Answer(body=b"<?xml version='1.0'?><Error/>"),
    "Nothing": Answer(),
    "Brotli": Answer(
        body=bytes.fromhex("1b7b00f88d94d8a0"), headers={"Content-Type": "application/zip", "Content-Encoding": "br"}
    ),
    "A program behind a few bytes": Answer(body=b"MZ" + bytes(600) + b"PK\x03\x04", piece_bytes=1),
}
"""Responses with something else than an archive."""


def continued(name: str) -> Fetch:
    """Return a stream after its end."""
    fetch = Fetch(*CONTINUED[name].answers)
    assert fetch() == of_first()
    return fetch


def begun_again(name: str) -> tuple[Fetch, ResumeError]:
    """Return a stream that cannot be resumed."""
    fetch = Fetch(*BEGUN_AGAIN[name].answers)
    with pytest.raises(ResumeError) as caught:
        fetch()
    return fetch, caught.value


def failed(name: str) -> tuple[Fetch, ActionError]:
    """Return a stream after its failure."""
    fetch = Fetch(*FAILED[name].answers, tolerance=0.1)
    return fetch, fetch.failure()


def refused(name: str) -> ActionError:
    """Return the failure of a stream that is not a bundle."""
    return Fetch(*[NOT_BUNDLES[name]] * 2, tolerance=0.1).failure()


def endless() -> ActionError:
    """Return the failure of a stream that is too large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "MAX_BUNDLE_BYTES", 50_000)
        return Fetch(Turn(announces=False)).failure()


@pytest.mark.parametrize("name", CONTINUED)
def test_a_stream_makes_the_requests_that_lead_to_the_whole_bundle(name: str) -> None:
    fetch = continued(name)

    assert fetch.read == fetch.archive.getvalue() == FIRST
    assert (fetch.storage.requested, len(fetch.storage.links)) == ([*CONTINUED[name].requests], CONTINUED[name].links)
    assert fetch.job.link == Bundle(url=fetch.storage.links[-1])


@pytest.mark.parametrize("name", BEGUN_AGAIN)
def test_a_stream_that_may_be_of_two_bundles_ends(name: str) -> None:
    fetch, _ = begun_again(name)

    assert fetch.storage.requested == [*BEGUN_AGAIN[name].requests]
    assert FIRST.startswith(fetch.archive.getvalue())


@pytest.mark.parametrize("name", FAILED)
def test_a_stream_fails_after_the_last_attempt_that_makes_sense(name: str) -> None:
    fetch, error = failed(name)

    assert isinstance(error, DownloadFailed)
    assert (fetch.storage.requested, len(fetch.storage.links)) == ([*FAILED[name].requests], FAILED[name].links)


@pytest.mark.parametrize("name", NOT_BUNDLES)
def test_what_is_not_an_archive_is_not_passed_on(name: str) -> None:
    assert isinstance(refused(name), DownloadFailed)


def test_an_endless_bundle_fails() -> None:
    assert MAX_BUNDLE_BYTES == 50 * 1024**3
    assert isinstance(endless(), DownloadFailed)


def test_a_new_link_to_another_address_is_not_resumed() -> None:
    fetch = Fetch(half(), Answer(status=404))
    fetch.storage.place = 2

    with pytest.raises(ResumeError):
        fetch()

    assert fetch.storage.requested == [WHOLE, after(HALF)]


@pytest.mark.parametrize(("status", "attempts"), [(405, 1), (406, 1), (416, 1), (499, 1), (408, 2), (429, 2), (204, 2), (304, 2)])
def test_a_refusal_that_is_neither_temporary_nor_about_the_link_is_final(status: int, attempts: int) -> None:
    fetch = Fetch(*[Answer(status=status)] * 2, tolerance=0.1)

    assert isinstance(fetch.failure(), DownloadFailed)
    assert len(fetch.storage.requested) == attempts


def test_a_proxy_at_fault_is_named() -> None:
    error = NetworkError("The proxy refused the connection", maybe_processed=False, is_proxy_error=True)

    failure = Fetch(*[Answer(error=error)] * 2, tolerance=0.1).failure()

    assert error.advice_for("x") == {"cause": failure.cause, "remedy": failure.remedy}


def test_the_request_id_of_the_last_response_is_in_the_failure() -> None:
    _, error = failed("The storage is overloaded")

    assert error.request_id == "req-7"


@pytest.mark.parametrize(
    ("piece_bytes", "seconds", "attempts"),
    [
        (MIN_PROGRESS_BYTES, 59, 1),
        (MIN_PROGRESS_BYTES // 2, 29, 1),
        (MIN_PROGRESS_BYTES // 2, 31, 2),
        (MIN_PROGRESS_BYTES - 1, 31, 2),
        (MIN_PROGRESS_BYTES, 60, 2),
    ],
)
def test_a_connection_that_is_too_slow_counts_as_broken(piece_bytes: int, seconds: float, attempts: int) -> None:
    fetch = Fetch(Answer(headers={"ETag": f'"{of_first().sha256}"'}, body=FIRST, piece_bytes=piece_bytes, seconds=seconds))

    fetch()

    assert (fetch.read, len(fetch.storage.requested)) == (FIRST, attempts)


@pytest.mark.parametrize("moment", ["progress", "pause"])
def test_a_cancel_ends_the_stream(moment: str) -> None:
    fetch = Fetch(Turn(cut_after=100_000))
    event = {"progress": "download_progressed", "pause": "retrying"}[moment]
    setattr(fetch.events, event, lambda *_, **__: fetch.clock.cancellation.cancel())

    with pytest.raises(Cancelled):
        fetch()

    assert len(fetch.storage.requested) == 1


class TestOutage:
    def test_pauses_grow_until_there_is_progress(self) -> None:
        bad = Turn(status=503)
        fetch = Fetch(bad, bad, bad, Turn(cut_after=100_000), bad, bad)

        fetch()

        assert fetch.clock.pauses == [0.5, 1, 2, 0.5, 1, 2]
        assert fetch.logged == ["retrying", "recovered"] * 2
        assert fetch.events.of("recovered") == [(STORAGE, 3.5), (STORAGE, 3.5)]

    @pytest.mark.parametrize("asked", ["17", format_datetime(NOON + timedelta(seconds=17), usegmt=True)])
    def test_a_pause_is_as_long_as_the_storage_asks_for(self, asked: str) -> None:
        fetch = Fetch(Answer(status=503, headers={"Retry-After": asked}))

        fetch()

        assert fetch.clock.pauses == [17]

    def test_a_trickle_is_not_progress(self) -> None:
        fetch = Fetch(*[Turn(cut_after=600, takes_seconds=9)] * 1000, tolerance=60)

        assert isinstance(fetch.failure(), DownloadFailed)
        assert 60 <= fetch.clock.elapsed <= 60 + 30 + 9

    def test_the_last_attempt_may_succeed_after_the_tolerance(self) -> None:
        fetch = Fetch(Turn(status=503, takes_seconds=50), Turn(status=503, takes_seconds=50), tolerance=40)

        assert fetch() == of_first()

    def test_progress_in_the_last_attempt_begins_a_new_outage(self) -> None:
        fetch = Fetch(Turn(status=503), Turn(cut_after=100_000, takes_seconds=50), tolerance=0.1)

        assert fetch() == of_first()


class TestRefusal:
    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
    def test_a_new_link_is_made_after_a_pause_and_announced_in_the_job(self, status: int) -> None:
        fetch, links = Fetch(*[Turn(status=status)] * 3), list[Bundle | None]()
        fetch.events.link_renewed = lambda job: links.append(job.link)  # type: ignore[method-assign]

        fetch()

        assert (fetch.clock.pauses, fetch.logged) == ([0.5, 1, 2], ["retrying", "recovered"])
        assert links == [Bundle(url=link) for link in fetch.storage.links[1:]]

    def test_endless_ones_fail_after_the_tolerance(self) -> None:
        fetch = Fetch(*[REFUSED] * 1000, tolerance=60)

        assert isinstance(fetch.failure(), DownloadFailed)
        assert (fetch.clock.elapsed, len(fetch.storage.links) <= 12) == (60, True)

    def test_the_apis_error_is_raised(self) -> None:
        def refuse(_job: Job) -> Bundle:
            raise Rejected("the job is gone")

        fetch = Fetch(Turn(status=404))
        fetch.storage.make_bundle = refuse  # type: ignore[method-assign,assignment]

        assert isinstance(fetch.failure(), Rejected)


turns = st.builds(
    Turn,
    status=st.sampled_from([None] * 8 + [403, 404, 503, 429, 416, 206]),
    cut_after=st.none() | st.integers(0, len(SECOND) + 10),
    ranges=st.booleans(),
    announces=st.booleans(),
    switches=st.sampled_from([False, False, True]),
    validator=st.sampled_from(["ETag", "ETag", "Last-Modified", ""]),
    honors_if_range=st.booleans(),
    repeats_validator=st.booleans(),
    takes_seconds=st.sampled_from([0.0, 1.0, 30.0]),
)


@given(st.lists(turns, max_size=25), st.sampled_from([1.0, 30.0, 300.0]))
@example([Turn(cut_after=100_000), Turn(switches=True, honors_if_range=False, repeats_validator=False)], 300.0)
def test_whatever_the_storage_does_the_stream_is_one_bundle_or_an_error(script: list[Turn], tolerance: float) -> None:
    fetch = Fetch(*script, tolerance=tolerance)

    with contextlib.suppress(DownloadFailed, ResumeError):
        downloaded = fetch()
        assert fetch.read in {FIRST, SECOND, THIRD}
        assert downloaded == Downloaded(size=len(fetch.read), sha256=hashlib.sha256(fetch.read).hexdigest())
        assert fetch.archive.getvalue() == fetch.read
