"""The stream of a bundle: which requests lead to all of its bytes, and when it fails."""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import pytest
import requests
from urllib3 import HTTPResponse

from docs_platform_action.bundle import stream as module
from docs_platform_action.bundle.stream import BundleStream, ResumeError
from docs_platform_action.errors import DownloadFailed
from docs_platform_action.http.transport import Received
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from tests.unit.fakes import RecordedEvents, context, http_client
from tests.virtual_platform import Sent, VirtualTransport
from tests.virtual_time import VirtualClock

LINK: Final = "https://s.example.com/b?sig=1"
BUNDLE: Final = b"\x1f\x8b\x08" + bytes(range(256)) * 800
SIZE: Final = len(BUNDLE)
MODIFIED: Final = {"Last-Modified": "Mon, 04 May 2026 11:00:00 GMT", "Date": "Mon, 04 May 2026 12:00:00 GMT"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response with `body`, which is cut after it if `lost`."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = BUNDLE
    lost: bool = False


def whole(**headers: str) -> Answer:
    return Answer(
        headers={"Content-Length": str(SIZE), "ETag": '"a"', **{name.replace("_", "-"): text for name, text in headers.items()}}
    )


def half(at: int = 100_000, **headers: str) -> Answer:
    answer = whole(**headers)
    return Answer(headers=answer.headers, body=BUNDLE[:at], lost=True)


def rest(at: int = 100_000, *, span: str | None = None, etag: str = '"a"') -> Answer:
    span = span or f"bytes {at}-{SIZE - 1}/{SIZE}"
    return Answer(status=206, headers={"Content-Range": span, "Content-Length": str(SIZE - at), "ETag": etag}, body=BUNDLE[at:])


def refused(status: int, **headers: str) -> Answer:
    return Answer(status=status, headers=headers, body=b"<Error><Code>No</Code></Error>")


LOST: Final = Answer(body=b"", lost=True)
"""A connection that breaks before its response has begun."""


class Storage(VirtualTransport):
    """Gives one answer after another; the last repeats. Each request takes a second."""

    def __init__(self, clock: VirtualClock, answers: tuple[Answer, ...]) -> None:
        super().__init__()
        self._clock, self._answers = clock, list(answers)
        self.ranges: list[str | None] = []

    def send(self, exchange: Any) -> Received:
        self.ranges.append(exchange.unprepared.headers.get("Range"))
        return super().send(exchange)

    def respond(self, sent: Sent) -> requests.Response:
        sent.exchange.begin()
        self._clock.sleep(1.0)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is LOST:
            raise requests.ConnectionError(ConnectionResetError())
        response = requests.Response()
        response.status_code = answer.status
        response.headers.update(answer.headers)
        response.raw = HTTPResponse(Broken(answer.body) if answer.lost else io.BytesIO(answer.body), preload_content=False)
        return response


class Broken(io.BytesIO):
    """A body whose connection breaks at its end."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size) or self._fail()

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(size) or self._fail()

    def _fail(self) -> bytes:
        raise ConnectionResetError


class Download:
    """A stream on a storage with these answers."""

    def __init__(self, *answers: Answer, tolerance: float = 60.0, links: Callable[[int], str] = lambda _number: LINK) -> None:
        self.clock, self.events, self.links = VirtualClock(), RecordedEvents(), 0
        self.storage = Storage(self.clock, answers)
        self.job = Job(mode="export", link=Bundle(url=LINK))

        def make_bundle(_job: Job) -> Bundle:
            self.links += 1
            return Bundle(url=links(self.links))

        api = SimpleNamespace(make_bundle=make_bundle, outage_tolerance_seconds=tolerance)
        parts = context(self.clock, self.events, client=http_client(self.storage, clock=self.clock), api=api)
        self.stream = BundleStream(self.job, parts)

    @property
    def ranges(self) -> list[str | None]:
        return self.storage.ranges


@pytest.fixture(autouse=True)
def _half_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backoff.full_jitter", lambda ceiling: ceiling / 2)


RESUMED: Final = "bytes=100000-"


@pytest.mark.parametrize(
    ("answers", "ranges"),
    [
        ([whole()], [None]),
        ([Answer(headers={"ETag": '"a"'})], [None]),
        ([half(), rest()], [None, RESUMED]),
        (
            [
                half(ETag="", **MODIFIED),
                Answer(status=206, headers={**rest().headers, "ETag": "", **MODIFIED}, body=BUNDLE[100_000:]),
            ],
            [None, RESUMED],
        ),
        ([half(), rest(span=f"bytes 100000-{SIZE - 1}/*")], [None, RESUMED]),
        ([half(), LOST, rest()], [None, RESUMED, RESUMED]),
        ([half(), refused(503), rest()], [None, RESUMED, RESUMED]),
        ([half(), refused(403), rest()], [None, RESUMED, RESUMED]),
        ([LOST, refused(500), refused(408), whole()], [None] * 4),
        ([Answer(body=b"<html>login</html>"), whole()], [None, None]),
        ([Answer(headers={"Content-Length": str(SIZE)}, body=BUNDLE[:500]), rest(500)], [None]),
    ],
    ids=[
        "at once",
        "unknown length",
        "cut",
        "cut, by its date",
        "rest of unknown size",
        "cut twice",
        "503",
        "403",
        "not begun",
        "a page",
        "no validator",
    ],
)
def test_these_requests_lead_to_the_whole_bundle(answers: list[Answer], ranges: list[str | None]) -> None:
    download = Download(*answers)

    if len(ranges) == 1 and len(answers) == 2:
        with pytest.raises(ResumeError):
            download.stream.drain()
    else:
        done = download.stream.drain()
        assert (done.size, done.sha256) == (SIZE, hashlib.sha256(BUNDLE).hexdigest())
    assert download.ranges == ranges


@pytest.mark.parametrize(
    "answer",
    [
        whole(),
        whole(ETag='"b"'),
        rest(etag='"b"'),
        rest(span=f"bytes 0-{SIZE - 1}/{SIZE}"),
        rest(span=f"bytes 100000-{SIZE}/{SIZE + 1}"),
        Answer(status=206, headers={"ETag": '"a"'}),
        refused(416),
        refused(451),
    ],
    ids=["ignores the range", "another bundle", "another validator", "another part", "another size", "no range", "416", "451"],
)
def test_what_is_not_the_rest_of_the_same_bundle_is_not_added_to_it(answer: Answer) -> None:
    download = Download(half(), answer)

    with pytest.raises(ResumeError):
        download.stream.drain()

    assert download.ranges == [None, RESUMED]


def test_a_new_link_to_another_address_is_not_resumed() -> None:
    download = Download(half(), refused(403), links=lambda _number: "https://other.example.com/b")

    with pytest.raises(ResumeError):
        download.stream.drain()


@pytest.mark.parametrize(
    ("answers", "requests_", "seconds"),
    [
        ([refused(451)], 1, 1),
        ([Answer(headers={"Content-Length": "10"}, body=BUNDLE)], 1, 1),
        ([refused(503)], 9, 62),
        ([LOST], 9, 62),
        ([half(50_000), LOST], 9, 62),
        ([Answer(body=b"<html>")], 9, 62),
        ([refused(503, **{"Retry-After": "40"})], 3, 63),
        ([refused(404)], 9, 62),
    ],
    ids=["451", "more than announced", "503", "no response", "after a part", "a page", "a long pause", "404"],
)
def test_it_fails_at_once_or_after_the_tolerance(answers: list[Answer], requests_: int, seconds: float) -> None:
    download = Download(*answers)

    with pytest.raises(DownloadFailed):
        download.stream.drain()

    assert len(download.ranges) == requests_
    assert download.clock.elapsed == pytest.approx(seconds, abs=3)


def test_a_rejected_link_is_replaced_before_each_further_attempt_and_the_job_has_the_new_one() -> None:
    download = Download(refused(403), refused(410), whole(), links=lambda number: f"{LINK}&n={number}")

    download.stream.drain()

    assert download.links == 2
    assert download.job.link == Bundle(url=f"{LINK}&n=2")
    assert download.events.names.count("link_renewed") == 2


def test_an_outage_is_announced_once_and_ends_with_enough_progress() -> None:
    download = Download(half(70_000), LOST, LOST, rest(70_000))

    download.stream.drain()

    assert download.events.of("retrying")[0][0] == "storage"
    assert (download.events.names.count("retrying"), download.events.names.count("recovered")) == (1, 1)


def test_progress_begins_a_new_outage_and_a_trickle_does_not() -> None:
    parts = [
        half(70_000),
        *(Answer(status=206, headers=rest(at).headers, body=BUNDLE[at : at + 70_000], lost=True) for at in (70_000, 140_000)),
    ]
    trickle = [
        half(10),
        *(Answer(status=206, headers=rest(at).headers, body=BUNDLE[at : at + 10], lost=True) for at in range(10, 200, 10)),
    ]

    steady, failing = Download(*parts, tolerance=2.0), Download(*trickle, tolerance=2.0)
    steady.stream.drain()
    with pytest.raises(DownloadFailed):
        failing.stream.drain()

    assert steady.ranges == [None, "bytes=70000-", "bytes=140000-"]
    assert len(failing.ranges) <= 4


def test_a_bundle_of_unknown_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BUNDLE_BYTES", SIZE - 1)

    with pytest.raises(DownloadFailed):
        Download(Answer()).stream.drain()
