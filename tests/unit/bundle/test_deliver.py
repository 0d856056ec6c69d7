"""A bundle is saved, unpacked and written as Helm values. A failure leaves no incomplete result."""

import contextlib
import errno
import gzip
import hashlib
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import pytest
import yaml

from docs_platform_action.bundle import deliver, stream
from docs_platform_action.bundle.archive import Entry, zip_entries
from docs_platform_action.bundle.faults import DISK_FULL, DiskTooSmall
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    DownloadFailed,
    InternalError,
    InvalidBundle,
    NotFound,
    TooFewPages,
    Unavailable,
)
from docs_platform_action.http.client import Response
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.inputs.settings import DeliverySettings, Mode, OutputPath
from docs_platform_action.job import BUNDLE as BUNDLE_PHASE
from docs_platform_action.job import DOWNLOAD, UNPACK, Job
from docs_platform_action.models import Bundle, Downloaded
from docs_platform_action.ownership import Owner
from tests.archives import SEVEN_ZIP, SMALL_SITE, Site, tar, zipped
from tests.folders import files_of_at_most
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import NOON, VirtualClock

BUNDLE = Bundle(
    url="https://storage.example.com/se_1/bundle?X-Signature=s3cr3t",
    expires_at="2026-05-04T13:00:00Z",
    expires=NOON + timedelta(hours=1),
)
FRESH = replace(BUNDLE, url="https://storage.example.com/se_1/bundle?X-Signature=n3w", expires=NOON + timedelta(hours=2))
PIECE = 4096

Pack = Callable[[Site], bytes]
OTHER = Site(files={"other.html": b"mine"} | {f"{number}.html": bytes(PIECE) for number in range(8)})


def zip_stored(site: Site) -> bytes:
    return zipped(site, method=zipfile.ZIP_STORED)


TAR, ZIP = gzip.compress(tar(SMALL_SITE), compresslevel=0), zipped(SMALL_SITE)
TAR_AND_ZIP = pytest.mark.parametrize("archive", [TAR, ZIP], ids=["tar.gz", "zip"])


class Storage:
    """A storage, and the API that makes links to it. `before_end` is called before the last piece of a response.

    It sends one archive after another, the last one repeatedly. As many responses as `lost` end after half of the archive.
    """

    outage_tolerance_seconds = 300.0

    def __init__(self, *archives: bytes) -> None:
        self.archives = [*archives]
        self.headers: Mapping[str, str] = {}
        self.lost = 0
        self.requested: list[str] = []
        self.made: list[Bundle | ActionError] = [FRESH]
        self.before_end: Callable[[], None] = lambda: None

    def make_bundle(self, _job: Job) -> Bundle:
        made = self.made.pop(0)
        if isinstance(made, ActionError):
            raise made
        return made

    @contextlib.contextmanager
    def request(self, url: str, *_: object, within_seconds: float) -> Iterator[tuple[Response, str]]:
        assert within_seconds > 0
        self.requested.append(url)
        archive = self.archives.pop(0) if len(self.archives) > 1 else self.archives[0]
        exchange = cast("Any", SimpleNamespace(host="storage.example.com", remaining_seconds=0.0))
        yield Response(exchange, 200, self.headers, self._pieces(archive)), "https://storage.example.com"

    def _pieces(self, archive: bytes) -> Iterator[bytes]:
        is_lost, self.lost = self.lost > 0, self.lost - 1
        end = len(archive) // 2 if is_lost else len(archive)
        for start in range(0, end, PIECE):
            if start + PIECE >= end:
                self.before_end()
            yield archive[start : min(start + PIECE, end)]
        if is_lost:
            raise NetworkError("The connection was lost", maybe_processed=True)


class CountedCancellation(Cancellation):
    """Cancels after so many checks."""

    checks_left = math.inf

    def check(self) -> None:
        self.checks_left -= 1
        if self.checks_left < 0:
            self.cancel()
        super().check()


class Delivery:
    """The delivery of a bundle to a workspace."""

    def __init__(self, workspace: Path, *archives: bytes) -> None:
        self.workspace = workspace
        self.storage = Storage(*archives or [TAR])
        self.clock = VirtualClock()
        self.clock.cancellation = self.cancellation = CountedCancellation()
        self.job = Job(mode=Mode.EXPORT, domain="docs.example.com", job_id="se_1", link=BUNDLE)
        self.events = RecordedEvents()

    def settings(self, names: Mapping[str, str], min_pages: int | None = None) -> DeliverySettings:
        targets: dict[str, Any] = {
            key: OutputPath(path=self.workspace / name, root=self.workspace, name=name) for key, name in names.items()
        }
        return DeliverySettings(**targets, min_pages=min_pages)

    def of(self, settings: DeliverySettings) -> deliver.Delivery:
        return deliver.Delivery(self.job, settings, context(self.clock, self.events, api=self.storage))

    def __call__(self, names: Mapping[str, str], *, min_pages: int | None = None) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stream, "request_bundle", self.storage.request)
            self.of(self.settings(names, min_pages)).deliver()

    def failure(self, names: Mapping[str, str], *, min_pages: int | None = None) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self(names, min_pages=min_pages)
        return caught.value

    @property
    def names(self) -> list[str]:
        """The names of the events, without those of progress."""
        return [name for name in self.events.names if not name.endswith(("progressed", "responded"))]

    @property
    def warnings(self) -> list[Sequence[str]]:
        return [lines for (lines,) in self.events.of("warning")]

    @property
    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.workspace)) for path in self.workspace.rglob("*"))

    @property
    def paths(self) -> tuple[str | None, str | None, str | None]:
        """What the job says is delivered."""
        return self.job.delivered.bundle_path, self.job.delivered.site_path, self.job.delivered.values_file

    @property
    def link_in_values(self) -> str:
        """The link in the values file `v`."""
        return str(yaml.safe_load((self.workspace / "v").read_text("ascii"))["staticExport"]["bundleUrl"])


@pytest.fixture
def delivery(tmp_path: Path) -> Delivery:
    return Delivery(tmp_path)


ALL = {"bundle_path": "out/bundle", "site_path": "out/site", "values_file": "deploy/values.yaml"}
SAVED = ["out", "out/bundle"]
SITE = ["site", *(f"site/{name}" for name in ("assets", "guide", "guide/empty.txt", "guide/home.html", "guide/start.html"))]
SITE += ["site/index.html", "site/latest"]
LEFT = {
    (None, None, None): [],
    ("out/bundle", None, None): SAVED,
    ("out/bundle", "out/site", None): [*SAVED, *(f"out/{name}" for name in SITE)],
    tuple(ALL.values()): ["deploy", "deploy/values.yaml", *SAVED, *(f"out/{name}" for name in SITE)],
}
"""All files, by the paths that are recorded in the job, in the order in which they are published."""


@pytest.mark.parametrize(
    ("names", "files", "announced"),
    [
        ({}, [], []),
        ({"bundle_path": "out/bundle"}, SAVED, ["downloaded", "archive_saved"]),
        ({"site_path": "site"}, SITE, ["downloaded", "unpacked"]),
        ({"values_file": "v"}, ["v"], ["values_written"]),
        (
            ALL,
            LEFT[tuple(ALL.values())],
            ["downloaded", "archive_saved", "unpacked", "values_written"],
        ),
    ],
    ids=["nothing", "bundle", "site", "values", "all"],
)
@pytest.mark.parametrize("is_announced", [True, False], ids=["size announced", "size unknown"])
@TAR_AND_ZIP
def test_what_is_asked_for_is_delivered_and_recorded(
    delivery: Delivery, archive: bytes, is_announced: bool, names: dict[str, str], files: list[str], announced: list[str]
) -> None:
    downloads, unpacks = "downloaded" in announced, "unpacked" in announced and archive is ZIP
    delivery.storage = Storage(archive)
    delivery.storage.headers = {"Content-Length": str(len(archive))} if is_announced else {}

    delivery(names)

    job = delivery.job
    assert (delivery.files, delivery.warnings) == (files, [])
    assert delivery.paths == tuple(names.get(name) for name in ("bundle_path", "site_path", "values_file"))
    downloaded = Downloaded(size=len(archive), sha256=hashlib.sha256(archive).hexdigest())
    assert job.delivered.downloaded == (downloaded if downloads else None)
    assert job.delivered.site_files == (3 if "site_path" in names else None)
    assert delivery.names == announced
    assert [phase.name for phase in job.phases] == [DOWNLOAD] * downloads + [UNPACK] * unpacks
    assert delivery.storage.requested == [BUNDLE.url] * downloads
    if "bundle_path" in names:
        assert (delivery.workspace / "out" / "bundle").read_bytes() == archive
    if "site_path" in names:
        assert (delivery.workspace / names["site_path"] / "index.html").read_bytes() == SMALL_SITE.files["index.html"]


@TAR_AND_ZIP
def test_after_a_cancel_only_what_was_published_before_is_left(tmp_path: Path, archive: bytes) -> None:
    states: list[tuple[str | None, ...]] = []
    while not states or states[-1] != (*ALL.values(),):
        delivery = Delivery(tmp_path / str(len(states)), archive)
        delivery.workspace.mkdir()
        delivery.cancellation.checks_left = len(states)

        with contextlib.suppress(Cancelled):
            delivery(ALL)

        assert delivery.files == LEFT[delivery.paths]
        states.append(delivery.paths)

    assert archive is TAR or [*dict.fromkeys(states)] == [*LEFT]  # a pipe checks as often as it waits


class TestRestart:
    """A storage that sends no validator: a lost download begins again."""

    @pytest.mark.parametrize("lost", [1, 2, 3])
    @pytest.mark.parametrize("pack", [tar, zip_stored], ids=["tar", "zip"])
    def test_it_begins_again_twice_and_nothing_of_the_first_attempt_is_left(self, tmp_path: Path, pack: Pack, lost: int) -> None:
        delivery = Delivery(tmp_path, *[pack(OTHER)] * lost, pack(SMALL_SITE))
        delivery.storage.lost = lost

        with pytest.raises(DownloadFailed) if lost == 3 else contextlib.nullcontext():
            delivery(ALL)

        assert delivery.files == ([] if lost == 3 else LEFT[tuple(ALL.values())])
        assert (len(delivery.storage.requested), delivery.names.count("download_restarted")) == (min(lost + 1, 3), min(lost, 2))


class TestRefusedArchive:
    @pytest.mark.parametrize("archive", [TAR[:-4], SEVEN_ZIP, tar(Site(files={"../x": b""})) + bytes(9 * PIECE), ZIP[:-1]])
    def test_it_is_read_to_its_end_and_kept_alone(self, delivery: Delivery, archive: bytes) -> None:
        delivery.storage = Storage(archive)

        assert isinstance(delivery.failure(ALL), InvalidBundle)
        assert (delivery.files, delivery.paths) == (SAVED, ("out/bundle", None, None))
        assert (delivery.workspace / "out" / "bundle").read_bytes() == archive
        assert delivery.job.delivered.downloaded == Downloaded(size=len(archive), sha256=hashlib.sha256(archive).hexdigest())
        assert (delivery.names.count("downloaded"), delivery.names.count("archive_saved")) == (1, 1)

    @pytest.mark.parametrize(("names", "min_pages"), [(ALL, 1), ({"site_path": "out/site"}, None)])
    def test_it_is_not_kept_if_its_pages_cannot_be_counted_or_nobody_asks(
        self, delivery: Delivery, names: dict[str, str], min_pages: int | None
    ) -> None:
        delivery.storage = Storage(ZIP[:-1])

        assert isinstance(delivery.failure(names, min_pages=min_pages), InvalidBundle)
        assert (delivery.files, delivery.paths) == ([], (None, None, None))


class TestMinPages:
    SITE = Site(files={**SMALL_SITE.files, "__MACOSX/a.html": b"", "guide/._start.html": b""})

    def test_too_few_pages_leave_nothing(self, delivery: Delivery) -> None:
        assert isinstance(delivery.failure(ALL, min_pages=3), TooFewPages)
        assert (delivery.files, delivery.paths) == ([], (None, None, None))

    def test_files_of_macos_do_not_count(self, delivery: Delivery) -> None:
        delivery.storage = Storage(tar(self.SITE))
        assert isinstance(delivery.failure(ALL, min_pages=3), TooFewPages)

        delivery(ALL, min_pages=2)

        assert delivery.job.delivered.site_files == 3


def test_the_only_folder_of_a_site_is_warned_of(delivery: Delivery) -> None:
    delivery.storage = Storage(tar(Site(files={"docs/index.html": b"", "docs/a/index.html": b""})))

    delivery({"site_path": "out/site"})

    ((_, remedy, _),) = delivery.warnings
    assert "`out/site/docs`" in remedy


Hook = Callable[[Delivery, pytest.MonkeyPatch], None]


def fills(name: str, code: int = errno.ENOSPC) -> Hook:
    """Let writes to files fail whose path contains a name."""

    def prepare(_: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        write = os.write

        def limited(descriptor: int, data: bytes) -> int:
            if name in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
                raise OSError(code, os.strerror(code))
            return write(descriptor, data)

        monkeypatch.setattr(os, "write", limited)

    return prepare


def before_the_end(happens: Callable[[Path], None]) -> Hook:
    """Let another process do something in the workspace before the last bytes arrive."""

    def prepare(delivery: Delivery, _: pytest.MonkeyPatch) -> None:
        delivery.storage.before_end = lambda: happens(delivery.workspace)

    return prepare


def at_once(happens: Callable[[Path], object]) -> Hook:
    return lambda delivery, _: cast("None", happens(delivery.workspace))


def fill_the_site(workspace: Path) -> None:
    (workspace / "out" / "site").mkdir()
    (workspace / "out" / "site" / "other.html").touch()


FAULTS: Mapping[str, tuple[dict[str, str], Hook, type[ActionError], Sequence[str]]] = {
    "The disk is full": ({"bundle_path": "x/b"}, fills(".b."), DownloadFailed, []),
    "The disk is full when the site is written": (ALL, fills("start.html"), InternalError, []),
    "The disk is full when the values are written": ({"values_file": "x/v"}, fills(".v."), InternalError, []),
    "The folder of the bundle became a file": (
        {"bundle_path": "x/y"},
        at_once(lambda w: (w / "x").touch()),
        DownloadFailed,
        ["x"],
    ),
    "The folder of the site became a file": ({"site_path": "x/y"}, at_once(lambda w: (w / "x").touch()), InternalError, ["x"]),
    "The bundle became a folder": ({"bundle_path": "b"}, at_once(lambda w: (w / "b").mkdir()), DownloadFailed, ["b"]),
    "The values became a folder": ({"values_file": "v"}, at_once(lambda w: (w / "v").mkdir()), InternalError, ["v"]),
    "The site was filled": (ALL, before_the_end(fill_the_site), InternalError, [*SAVED, "out/site", "out/site/other.html"]),
    "The site became a file": ({"site_path": "s"}, before_the_end(lambda w: (w / "s").touch()), InternalError, ["s"]),
    "The site became a link": ({"site_path": "s"}, before_the_end(lambda w: (w / "s").symlink_to("x")), InternalError, ["s"]),
}
"""What is delivered, a fault of the file system or another process, the failure, and what is left in the workspace."""


def failed(delivery: Delivery, name: str) -> ActionError:
    """Return the failure of a delivery with this fault."""
    names, prepare, *_ = FAULTS[name]
    with pytest.MonkeyPatch.context() as patch:
        prepare(delivery, patch)
        return delivery.failure(names)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_file_system_fails_its_step_and_leaves_the_files_of_others(delivery: Delivery, name: str) -> None:
    *_, kind, left = FAULTS[name]

    error = failed(delivery, name)

    assert type(error) is kind
    assert isinstance(error.__cause__, OSError)
    assert (delivery.files, delivery.paths) == ([*left], ("out/bundle" if "out/bundle" in left else None, None, None))


class TestDiskSpace:
    def disk(self, monkeypatch: pytest.MonkeyPatch, *free: int) -> None:
        """Let a disk have so many free bytes at each look, the last number also later."""
        left = [*free]

        def statvfs(_: int) -> object:
            return SimpleNamespace(f_bavail=left.pop(0) if len(left) > 1 else left[0], f_bfree=0, f_blocks=1, f_frsize=1)

        monkeypatch.setattr(os, "statvfs", statvfs)

    @pytest.mark.parametrize(
        ("pack", "names", "times"),
        [
            (tar, {"site_path": "s"}, 1),
            (tar, {"bundle_path": "b"}, 1),
            (tar, ALL, 1),
            (zip_stored, {"site_path": "s"}, 2),
            (zip_stored, ALL, 1),
        ],
        ids=["a tar's site", "an archive", "a tar and its site", "a zip's site", "a zip and its site"],
    )
    def test_one_too_small_for_what_is_written_there_is_reported_at_once(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, pack: Pack, names: dict[str, str], times: int
    ) -> None:
        archive = pack(OTHER)
        delivery.storage = Storage(archive)
        delivery.storage.headers = {"Content-Length": str(len(archive))}
        self.disk(monkeypatch, len(archive) * times - 1)

        error = delivery.failure(names)

        assert (type(error), error.cause, delivery.files) == (DiskTooSmall, DISK_FULL["cause"], [])
        self.disk(monkeypatch, len(archive) * times)
        delivery(names)

    def test_one_that_becomes_too_full_is_not_filled_with_the_rest_of_the_archive(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.disk(monkeypatch, *[10**9] * 3, 0)

        assert isinstance(delivery.failure(ALL), DiskTooSmall)
        assert delivery.files == []

    @pytest.mark.parametrize("looks", [1, 2, 3, 5])
    @TAR_AND_ZIP
    def test_one_that_becomes_too_full_is_reported_and_nothing_is_left(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bytes, looks: int
    ) -> None:
        delivery = Delivery(tmp_path, archive)
        self.disk(monkeypatch, *[10**9] * looks, 0)

        error = delivery.failure({"site_path": "x/site"})

        assert (type(error), error.cause, delivery.files) == (DiskTooSmall, DISK_FULL["cause"], [])

    def test_a_zip_archive_that_is_not_kept_and_whose_size_is_unknown_is_counted(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        delivery.storage = Storage(ZIP)
        self.disk(monkeypatch, len(ZIP) - 1)

        assert isinstance(delivery.failure({"site_path": "s"}), InvalidBundle)
        assert "downloaded" not in delivery.names

    def test_a_zip_archive_that_is_not_kept_and_does_not_fit_leaves_nothing(self, delivery: Delivery) -> None:
        delivery.storage = Storage(ZIP)

        with files_of_at_most(len(ZIP) - 1):
            error = delivery.failure({"site_path": "x/site"})

        assert (type(error), error.cause, delivery.files) == (InternalError, DISK_FULL["cause"], [])


def test_a_zip_archive_that_is_not_kept_has_no_name(delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery.storage = Storage(ZIP)
    seen: list[str] = []

    def entries(file: BinaryIO) -> Iterator[Entry]:
        seen.extend(delivery.files)
        yield from zip_entries(file)

    monkeypatch.setattr(deliver, "zip_entries", entries)

    delivery({"site_path": "out/site"})

    assert [name.startswith("out/.site.") for name in seen] == [False, True]
    assert seen[0] == "out"


class TestLink:
    """A link with less than a minute left is replaced before it is written anywhere, once."""

    MODES = pytest.mark.parametrize(
        "names", [{}, {"bundle_path": "b"}, {"values_file": "v"}, {"site_path": "s", "values_file": "v"}]
    )

    @MODES
    @pytest.mark.parametrize("remaining", [59.9, 0, -600])
    def test_one_that_expires_is_replaced(self, delivery: Delivery, names: dict[str, str], remaining: float) -> None:
        delivery.clock.advance(3600 - remaining)

        delivery(names)

        job = delivery.job
        assert (job.link, job.has_short_link, delivery.storage.made, delivery.warnings) == (FRESH, False, [], [])
        assert [name for name in delivery.names if name.startswith("link_")] == ["link_expired", "link_renewed"]
        assert job.phases[-1].name == BUNDLE_PHASE
        if "values_file" in names:
            assert (delivery.link_in_values, delivery.names.count("values_written")) == (FRESH.url, 1)

    def test_one_that_expires_during_the_download_is_replaced_after_the_site_is_published(self, delivery: Delivery) -> None:
        delivery.storage.before_end = lambda: delivery.clock.advance(3600)

        delivery(ALL)

        assert delivery.names[-4:] == ["unpacked", "link_expired", "link_renewed", "values_written"]
        assert [phase.name for phase in delivery.job.phases] == [DOWNLOAD, BUNDLE_PHASE]

    @pytest.mark.parametrize(
        ("bundle", "passed"),
        [(BUNDLE, 3540), (Bundle(url=BUNDLE.url, expires_at="soon"), 1e6), (Bundle(url=BUNDLE.url), 1e6)],
        ids=["a minute", "unknown", "none"],
    )
    def test_any_other_is_kept(self, delivery: Delivery, bundle: Bundle, passed: float) -> None:
        delivery.job.link = bundle
        delivery.clock.advance(passed)

        delivery({"values_file": "v"})

        assert (delivery.job.link, delivery.storage.made) == (bundle, [FRESH])

    @MODES
    @pytest.mark.parametrize("seconds", [59, -5])
    def test_a_new_one_that_lives_no_longer_is_used_and_warned_of_once(
        self, delivery: Delivery, names: dict[str, str], seconds: float
    ) -> None:
        short = replace(FRESH, expires=NOON + timedelta(hours=1, seconds=seconds))
        delivery.storage.made = [short]
        delivery.clock.advance(3600)

        delivery(names)

        assert (delivery.job.link, delivery.job.has_short_link, len(delivery.warnings)) == (short, True, 1)

    @MODES
    @pytest.mark.parametrize("error", [Unavailable("the API is down"), NotFound("the job is gone")])
    def test_one_that_cannot_be_replaced_is_kept_with_a_warning(
        self, delivery: Delivery, names: dict[str, str], error: ActionError
    ) -> None:
        delivery.storage.made = [error]
        delivery.clock.advance(3600)

        delivery(names)

        (lines,) = delivery.warnings
        assert ("se_1" in lines[-1], lines[-1] == error.remedy) == (isinstance(error, Unavailable), isinstance(error, NotFound))
        assert delivery.job.link == BUNDLE
        if "values_file" in names:
            assert f"{BUNDLE.expires:%H:%M:%S}" in (delivery.workspace / "v").read_text()
            assert delivery.link_in_values == BUNDLE.url

    def test_a_cancel_ends_it(self, delivery: Delivery) -> None:
        delivery.storage.made = [Cancelled("cancelled")]
        delivery.clock.advance(3600)

        assert isinstance(delivery.failure({"values_file": "v"}), Cancelled)
        assert (delivery.files, delivery.warnings) == ([], [])

    @pytest.mark.parametrize("is_full", [False, True])
    def test_at_the_end_of_the_run_the_values_file_is_written_again(self, delivery: Delivery, is_full: bool) -> None:
        delivery({"values_file": "v"})
        delivery.clock.advance(3600)

        with files_of_at_most(1) if is_full else contextlib.nullcontext():
            assert delivery.of(delivery.settings({"values_file": "v"})).renew_link() is not is_full

        link = BUNDLE if is_full else FRESH
        assert (delivery.job.link, delivery.link_in_values) == (link, link.url)
        assert (delivery.files, len(delivery.warnings)) == (["v"], int(is_full))


def refuses_to_chown(patch: pytest.MonkeyPatch, *, owner: Owner | None) -> None:
    """Let every folder belong to a user of the runner, to whom nothing can be given."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    patch.setattr(deliver, "owner_of", lambda _root: owner)
    patch.setattr(os, "chown", refuse)


class TestOwner:
    def test_everything_delivered_gets_the_workspaces_owner(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        given: list[str] = []

        def chown(path: bytes | Path | int, uid: int, gid: int, **_: object) -> None:
            assert (uid, gid) == (1001, 127)
            given.append(os.fsdecode(path) if not isinstance(path, int) else str(Path(f"/proc/self/fd/{path}").readlink()))

        monkeypatch.setattr(deliver, "owner_of", lambda _root: Owner(1001, 127))
        monkeypatch.setattr(os, "chown", chown)

        delivery(ALL)

        assert len(given) == len({*given}) == len(delivery.files)
        assert {str(delivery.workspace / "out"), "guide", "guide/empty.txt", "latest"} < {*given}
        assert delivery.warnings == []

    @pytest.mark.parametrize("owner", [Owner(1001, 127), None])
    def test_a_file_system_that_refuses_is_warned_of_once_if_there_is_an_owner(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, owner: Owner | None
    ) -> None:
        refuses_to_chown(monkeypatch, owner=owner)

        delivery(ALL)

        assert (delivery.files, len(delivery.warnings)) == (LEFT[tuple(ALL.values())], int(owner is not None))
