"""The stream of a bundle: which requests lead to all of its bytes, and when it fails."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Final

import pytest

from docs_platform_action.bundle.stream import BundleStream, ResumeError
from docs_platform_action.errors import DownloadFailed
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import BundleLink
from tests.unit.fakes import Answer, FakeTransport, RecordedEvents, context, http_client
from tests.virtual_time import VirtualClock

LINK: Final = "https://s.example.com/b?sig=1"
BUNDLE: Final = b"\x1f\x8b\x08" + bytes(range(256)) * 800
SIZE: Final = len(BUNDLE)
MODIFIED: Final = {
    "Last-Modified": "Mon, 04 May 2026 11:00:00 GMT",
    "Date": "Mon, 04 May 2026 12:00:00 GMT",
}


def whole(*, etag: str = '"a"') -> Answer:
    return Answer(headers={"Content-Length": str(SIZE), "ETag": etag}, body=BUNDLE)


def half(at: int = 100_000, *, etag: str = '"a"') -> Answer:
    return replace(whole(etag=etag), body=BUNDLE[:at], is_cut=True)


def rest(at: int = 100_000, *, span: str | None = None, etag: str = '"a"') -> Answer:
    span = span or f"bytes {at}-{SIZE - 1}/{SIZE}"
    return Answer(
        status=206,
        headers={"Content-Range": span, "Content-Length": str(SIZE - at), "ETag": etag},
        body=BUNDLE[at:],
    )


def of_unknown_length(answer: Answer) -> Answer:
    headers = {name: value for name, value in answer.headers.items() if name != "Content-Length"}
    return replace(answer, headers=headers)


def compressed(answer: Answer) -> Answer:
    return replace(answer, headers={**answer.headers, "Content-Encoding": "gzip"})


def dated(answer: Answer) -> Answer:
    """Return a response with a date in place of an ETag."""
    return replace(answer, headers={**answer.headers, "ETag": "", **MODIFIED})


def refused(status: int, **headers: str) -> Answer:
    return Answer(status=status, headers=headers, body=b"<Error><Code>No</Code></Error>")


LOST: Final = Answer(status=0)
"""A connection that breaks before its response has begun."""


class Download:
    """A stream on a storage with these answers."""

    def __init__(
        self,
        *answers: Answer,
        tolerance: float = 60.0,
        links: Callable[[int], str] = lambda _number: LINK,
        proxy: str | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.links = 0
        self.storage = FakeTransport(*answers, clock=self.clock)
        self.job = Job(kind=Export(), link=BundleLink(url=LINK))

        def make_link(_job: Job) -> BundleLink:
            self.links += 1
            return BundleLink(url=links(self.links))

        platform = SimpleNamespace(make_link=make_link, outage_tolerance_seconds=tolerance)
        proxies = {"https": proxy} if proxy is not None else {}
        client = http_client(self.storage, clock=self.clock, proxies=proxies)
        parts = context(self.clock, self.events, client=client, platform=platform)
        self.stream = BundleStream(self.job, parts)

    def sent(self, header: str) -> list[str | None]:
        return [request.headers.get(header) for request in self.storage.requests]


@pytest.fixture(autouse=True)
def _half_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backoff.full_jitter", lambda ceiling: ceiling / 2)


RESUMED: Final = "bytes=100000-"
PART: Final = of_unknown_length(rest(span=f"bytes 100000-149999/{SIZE}"))
COMPLETE: Final[dict[str, tuple[list[Answer], list[str | None]]]] = {
    "at once": ([whole()], [None]),
    "of unknown length": ([of_unknown_length(whole())], [None]),
    "of unknown length, and cut": ([of_unknown_length(half()), rest()], [None, RESUMED]),
    "compressed": ([compressed(half()), compressed(rest())], [None, RESUMED]),
    "cut": ([half(), rest()], [None, RESUMED]),
    "cut, and resumed without the size": (
        [half(), rest(span=f"bytes 100000-{SIZE - 1}/*")],
        [None, RESUMED],
    ),
    "cut, and resumed with a part": (
        [half(), replace(PART, body=BUNDLE[100_000:150_000]), rest(150_000)],
        [None, RESUMED, "bytes=150000-"],
    ),
    "cut, and not reached": ([half(), LOST, rest()], [None, RESUMED, RESUMED]),
    "cut, and expired": ([half(), refused(403), rest()], [None, RESUMED, RESUMED]),
}


@pytest.mark.parametrize(("answers", "ranges"), COMPLETE.values(), ids=COMPLETE)
def test_these_requests_lead_to_the_whole_bundle(
    answers: list[Answer], ranges: list[str | None]
) -> None:
    download = Download(*answers)

    done = download.stream.drain()

    assert done.size == SIZE
    assert done.sha256 == hashlib.sha256(BUNDLE).hexdigest()
    assert download.sent("Range") == ranges


@pytest.mark.parametrize("size", [1, 1000, 10 * SIZE])
def test_reads_of_any_size_return_the_bytes_in_order(size: int) -> None:
    stream = Download(half(1000), rest(1000)).stream

    starts = [stream.peek(), stream.peek()]
    chunks = iter(lambda: stream.read(size), b"")

    assert starts == [BUNDLE[:512], BUNDLE[:512]]
    assert b"".join(chunks) == BUNDLE


def test_a_connection_is_closed_before_the_next_attempt_and_with_the_stream() -> None:
    download = Download(half(), rest())

    download.stream.drain()
    first, second = (request.exchange for request in download.storage.requests)
    assert first.is_over
    assert not second.is_over
    download.stream.close()
    assert second.is_over


def test_each_response_and_the_progress_are_announced() -> None:
    download = Download(half(), refused(503, **{"X-Request-Id": "r-1"}), rest())

    download.stream.drain()

    address = "https://s.example.com/b"
    assert download.events.of("storage_responded") == [
        (address, 200, None, None),
        (address, 503, RESUMED, "r-1"),
        (address, 206, RESUMED, None),
    ]
    assert download.events.of("download_progressed") == [(100_000, SIZE), (SIZE, SIZE)]


@pytest.mark.parametrize(
    ("first", "progress"),
    [
        (LOST, ""),
        (half(), ", after 97.7 KiB of 200.0 KiB"),
        (of_unknown_length(half()), ", after 97.7 KiB"),
    ],
    ids=["nothing", "a part", "a part of an unknown size"],
)
def test_an_interruption_is_announced_with_what_was_received(first: Answer, progress: str) -> None:
    download = Download(first, rest() if progress else whole())

    download.stream.drain()

    message = download.events.of("retrying")[0][1]
    assert message.partition(" complete")[2] == progress


@pytest.mark.parametrize(
    ("answers", "validator"),
    [([half(), rest()], '"a"'), ([dated(half()), dated(rest())], MODIFIED["Last-Modified"])],
    ids=["etag", "date"],
)
def test_the_rest_is_requested_only_of_the_same_bundle(
    answers: list[Answer], validator: str
) -> None:
    download = Download(*answers)

    assert download.stream.drain().size == SIZE
    assert download.sent("Range") == [None, RESUMED]
    assert download.sent("If-Range") == [None, validator]


NOT_THE_REST: Final = "something else"
NOT_RESUMED: Final[dict[str, tuple[list[Answer], str]]] = {
    "all of it": ([half(), whole()], "does not resume"),
    "all of another bundle": ([half(), whole(etag='"b"')], "replaced"),
    "the rest of another bundle": ([half(), rest(etag='"b"')], NOT_THE_REST),
    "the rest, compressed": ([half(), compressed(rest())], NOT_THE_REST),
    "the rest without a validator": ([half(), rest(etag="")], NOT_THE_REST),
    "another part": ([half(), rest(span=f"bytes 0-{SIZE - 1}/{SIZE}")], NOT_THE_REST),
    "another size": ([half(), rest(span=f"bytes 100000-{SIZE}/{SIZE + 1}")], NOT_THE_REST),
    "an unknown size": (
        [of_unknown_length(half()), rest(span=f"bytes 100000-{SIZE - 1}/*")],
        NOT_THE_REST,
    ),
    "no range": ([half(), Answer(status=206, headers={"ETag": '"a"'})], NOT_THE_REST),
    "416": ([half(), refused(416)], "refuses"),
    "451": ([half(), refused(451)], "refuses"),
    "no validator": ([half(etag="")], "ETag"),
    "compressed on the fly": ([compressed(of_unknown_length(half()))], "ETag"),
    "a new link to another address": ([half(), refused(403)], "another address"),
}


@pytest.mark.parametrize(("answers", "reason"), NOT_RESUMED.values(), ids=NOT_RESUMED)
def test_what_may_not_be_the_rest_of_the_same_bundle_is_not_added_to_it(
    answers: list[Answer], reason: str
) -> None:
    download = Download(*answers, rest(), links=lambda _number: "https://other.example.com/b")

    with pytest.raises(ResumeError) as caught:
        download.stream.drain()

    assert reason in caught.value.reason
    assert len(download.sent("Range")) == len(answers)


FAILURES: Final[dict[str, tuple[list[Answer], int, float]]] = {
    "more than announced": ([Answer(headers={"Content-Length": "10"}, body=BUNDLE)], 1, 1),
    "451": ([refused(451)], 1, 1),
    "503": ([refused(503)], 9, 62),
    "no bundle": ([Answer(body=b"<html>")], 9, 62),
    "no rest": ([half(50_000), LOST], 9, 62),
    "a long pause": ([refused(503, **{"Retry-After": "40"})], 3, 63),
}


@pytest.mark.parametrize(("answers", "count", "seconds"), FAILURES.values(), ids=FAILURES)
def test_it_fails_at_once_or_after_the_tolerance(
    answers: list[Answer], count: int, seconds: float
) -> None:
    download = Download(*answers)

    with pytest.raises(DownloadFailed):
        download.stream.drain()

    assert len(download.sent("Range")) == count
    assert download.clock.elapsed == pytest.approx(seconds, abs=3)


def test_a_rejected_link_is_replaced_before_each_attempt_and_the_job_has_the_last_one() -> None:
    answers = (refused(403), refused(410), whole())
    download = Download(*answers, links=lambda number: f"{LINK}&n={number}")

    download.stream.drain()

    assert download.links == 2
    assert download.job.link == BundleLink(url=f"{LINK}&n=2")
    assert download.events.names.count("link_made") == 2


@pytest.mark.parametrize(
    ("is_reached", "proxy", "cause"),
    [
        (True, None, "overloaded"),
        (False, None, "network blocks"),
        (False, "http://proxy.example.com:3128", "proxy"),
    ],
)
def test_the_cause_of_an_outage_depends_on_how_far_the_requests_came(
    is_reached: bool, proxy: str | None, cause: str
) -> None:
    download = Download(LOST, proxy=proxy)
    download.storage.is_reached = is_reached

    with pytest.raises(DownloadFailed) as caught:
        download.stream.drain()

    assert cause in caught.value.cause


@pytest.mark.parametrize("status", [201, 202, 204, 205, 207, 300, 304, 306])
def test_a_response_that_was_not_asked_for_is_followed_by_another_attempt(status: int) -> None:
    download = Download(Answer(status=status), whole())

    assert download.stream.drain().size == SIZE
    (retrying,) = download.events.of("retrying")
    assert f"The storage returned {status}" in retrying


@pytest.mark.parametrize(
    ("answer", "message", "cause"),
    [
        (Answer(status=304), "The storage returned 304", "A gateway responded"),
        (Answer(status=204), "The storage returned 204", "A gateway responded"),
        (Answer(status=500), "The storage returned 500", "overloaded"),
        (Answer(body=b"<html>"), "looks like a web page", "A login page"),
        (Answer(body=b"<?xml?><Error><Code>Slow</Code></Error>"), "(Slow)", "reports an error"),
        (Answer(body=b'{"message": "Later"}'), "(Later)", "reports an error"),
    ],
)
def test_the_cause_fits_what_was_sent_in_place_of_the_bundle(
    answer: Answer, message: str, cause: str
) -> None:
    download = Download(answer)

    with pytest.raises(DownloadFailed) as caught:
        download.stream.drain()

    assert message in caught.value.details[0]
    assert cause in caught.value.cause


@pytest.mark.parametrize("received", [70_000, SIZE - 1])
def test_an_outage_is_announced_once_and_ends_with_enough_progress_or_all_of_the_bundle(
    received: int,
) -> None:
    download = Download(half(received), LOST, LOST, rest(received))

    download.stream.drain()

    assert download.events.of("retrying")[0][0] == "storage"
    assert download.events.names.count("retrying") == 1
    assert download.events.names.count("recovered") == 1


@pytest.mark.parametrize(
    ("piece", "outcome", "ranges"),
    [
        (66_000, nullcontext(), [None, "bytes=66000-", "bytes=132000-", "bytes=198000-"]),
        (1000, pytest.raises(DownloadFailed), [None, "bytes=1000-", "bytes=2000-"]),
    ],
)
def test_only_a_connection_with_enough_progress_begins_a_new_outage(
    piece: int, outcome: AbstractContextManager[object], ranges: list[str | None]
) -> None:
    parts = [
        replace(rest(at), body=BUNDLE[at : at + piece], is_cut=True)
        for at in range(piece, 20 * piece, piece)
    ]
    download = Download(half(piece), *parts, tolerance=2.0)

    with outcome:
        download.stream.drain()

    assert download.sent("Range") == ranges


@pytest.mark.parametrize(("answer", "times"), [(whole(), 1), (of_unknown_length(whole()), 2)])
def test_the_end_of_a_bundle_of_unknown_length_is_announced_too(answer: Answer, times: int) -> None:
    download = Download(answer)

    download.stream.drain()

    progress = download.events.of("download_progressed")
    assert [received for received, _ in progress] == [SIZE] * times
