"""Entries are the same with and without a thread that reads ahead."""

import threading
from collections.abc import Iterator

import pytest

from docs_platform_action.archive.entries import Entry, EntryType
from docs_platform_action.archive.prefetch import BATCH_BYTES, BATCH_ITEMS, MAX_BATCHES, prefetch
from docs_platform_action.archive.reading import CHUNK_BYTES
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import Cancelled, InvalidBundle

MAX_QUEUED_BYTES = MAX_BATCHES * BATCH_BYTES + CHUNK_BYTES
"""With a last chunk that is larger than the space."""


def file(name: bytes, *chunks: bytes) -> Entry:
    return Entry(name=name, type=EntryType.FILE, mode=0o644, size=sum(map(len, chunks)), content=chunks)


def taken(entries: Iterator[Entry]) -> list[tuple[bytes, list[bytes]]]:
    return [(entry.name, list(entry.content)) for entry in entries]


class Endless:
    """Entries or chunks without an end, and a count of the requested ones."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.beyond = threading.Event()
        self._most = most

    def chunks(self) -> Iterator[bytes]:
        while True:
            self._one_more()
            yield bytes(CHUNK_BYTES)

    def entries(self) -> Iterator[Entry]:
        while True:
            self._one_more()
            yield Entry(name=b"folder", type=EntryType.FOLDER, mode=0)

    def _one_more(self) -> None:
        self.count += 1
        if self.count > self._most:
            self.beyond.set()


class TestWhatIsReadAhead:
    def test_comes_out_as_it_went_in(self) -> None:
        folder = Entry(name=b"folder", type=EntryType.FOLDER, mode=0o755)
        link = Entry(name=b"link", type=EntryType.SYMBOLIC_LINK, mode=0o777, target=b"folder")
        files = [file(b"empty"), file(b"a", b"1", b"23"), file(b"large", *[bytes(CHUNK_BYTES)] * 40)]
        many = [file(b"%d" % number, b"x") for number in range(5 * BATCH_ITEMS)]

        with prefetch(iter([folder, link, *files, *many]), Cancellation()) as entries:
            found = [(entry, list(entry.content)) for entry in entries]

        assert found[0][0].type is EntryType.FOLDER
        assert found[1][0].target == b"folder"
        assert found[2][0].size == 0
        assert [content for _, content in found] == [list(entry.content) for entry in (folder, link, *files, *many)]
        assert [entry.name for entry, _ in found] == [entry.name for entry in (folder, link, *files, *many)]

    def test_is_read_by_another_thread_which_ends_with_it(self) -> None:
        readers: list[threading.Thread] = []

        def read() -> Iterator[Entry]:
            readers.append(threading.current_thread())
            yield file(b"a", b"1")

        with prefetch(read(), Cancellation()) as entries:
            assert taken(entries) == [(b"a", [b"1"])]

        assert readers[0] is not threading.current_thread()
        assert not readers[0].is_alive()

    def test_does_not_include_the_content_of_a_folder(self) -> None:
        def unread() -> Iterator[bytes]:
            raise AssertionError
            yield b""

        folder = Entry(name=b"folder", type=EntryType.FOLDER, mode=0, content=unread())

        with prefetch(iter([folder]), Cancellation()) as entries:
            assert taken(entries) == [(b"folder", [])]


class TestAFailure:
    def test_comes_after_what_was_read_before_it(self) -> None:
        def read() -> Iterator[Entry]:
            yield file(b"a", b"1")
            yield Entry(name=b"b", type=EntryType.FILE, mode=0, content=broken())

        def broken() -> Iterator[bytes]:
            yield b"2"
            raise InvalidBundle("broken")

        found: list[tuple[bytes, bytes]] = []
        with prefetch(read(), Cancellation()) as entries:
            for entry in entries:
                content = iter(entry.content)
                found.append((entry.name, next(content)))
                with pytest.raises((StopIteration, InvalidBundle)) as ended:
                    next(content)

        assert found == [(b"a", b"1"), (b"b", b"2")]
        assert str(ended.value) == "broken"

    def test_of_the_writer_is_not_delayed_by_what_comes_before_the_next_entry(self) -> None:
        cancellation = Cancellation()

        def read() -> Iterator[Entry]:
            yield Entry(name=b"../evil", type=EntryType.FOLDER, mode=0)
            while True:  # as zeros without an end are read
                cancellation.check()

        def refuse() -> None:
            with prefetch(read(), cancellation) as entries:
                assert next(entries).name == b"../evil"
                raise InvalidBundle("refused")

        with pytest.raises(InvalidBundle, match="refused"):
            refuse()

        assert "reader" not in {thread.name for thread in threading.enumerate()}

    def test_of_the_writer_ends_the_reading(self) -> None:
        endless = Endless(0)

        def refuse() -> None:
            with prefetch(endless.entries(), Cancellation()) as entries:
                next(entries)
                raise InvalidBundle("refused")

        with pytest.raises(InvalidBundle, match="refused"):
            refuse()

        assert endless.count <= 2 * MAX_BATCHES * BATCH_ITEMS + 1
        assert "reader" not in {thread.name for thread in threading.enumerate()}

    @pytest.mark.parametrize("failure", [Cancelled("cancelled"), InvalidBundle("broken"), KeyboardInterrupt()])
    def test_of_the_reader_is_raised_in_the_writer(self, failure: BaseException) -> None:
        def read() -> Iterator[Entry]:
            raise failure
            yield

        with pytest.raises(type(failure)) as raised, prefetch(read(), Cancellation()) as entries:
            next(entries)

        assert raised.value is failure

    def test_of_the_reader_is_ignored_if_nothing_is_taken(self) -> None:
        raised = threading.Event()

        def read() -> Iterator[Entry]:
            raised.set()
            raise InvalidBundle("broken")
            yield

        with prefetch(read(), Cancellation()):
            assert raised.wait(60)


class TestWhatWaits:
    def test_is_bounded_in_bytes(self) -> None:
        endless = Endless(MAX_QUEUED_BYTES // CHUNK_BYTES)
        one = Entry(name=b"a", type=EntryType.FILE, mode=0, content=endless.chunks())

        with prefetch(iter([one]), Cancellation()):
            assert not endless.beyond.wait(0.02)

    def test_is_bounded_in_entries(self) -> None:
        endless = Endless(MAX_BATCHES * BATCH_ITEMS + 1)

        with prefetch(endless.entries(), Cancellation()):
            assert not endless.beyond.wait(0.02)

    def test_takes_less_than_a_mebibyte(self) -> None:
        assert 2 * MAX_QUEUED_BYTES < 1024**2  # with what was taken last
