"""A bundle is downloaded, unpacked and written as Helm values. A failure leaves no incomplete result."""

import contextlib
import errno
import gzip
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from docs_platform_action.bundle import download, helm_values, overlap
from docs_platform_action.bundle.deliver import deliver, renew_link
from docs_platform_action.bundle.storage import StorageResponse
from docs_platform_action.cleanups import Cleanups
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import (
    DENIED_CAUSE,
    DENIED_REMEDY,
    ActionError,
    Cancelled,
    DownloadFailed,
    InternalError,
    InvalidBundle,
    NotFound,
    TooFewPages,
    Unavailable,
)
from docs_platform_action.inputs.settings import DeliverySettings, OutputPath
from docs_platform_action.job import BUNDLE as BUNDLE_PHASE
from docs_platform_action.job import DOWNLOAD, UNPACK, Job
from docs_platform_action.models import EXPORT, Bundle, Downloaded
from docs_platform_action.ownership import Owner
from docs_platform_action.redaction import Redactor
from tests.archives import HOSTILE, SEVEN_ZIP, SMALL_SITE, Site, tar
from tests.unit.fakes import RecordedEvents, context
from tests.unit.report.test_outputs import files_of_at_most
from tests.virtual_time import NOON, VirtualClock

BUNDLE = Bundle(
    url="https://storage.example.com/se_1/bundle.tar?X-Signature=s3cr3t",
    expires_at="2026-05-04T13:00:00Z",
    expires=NOON + timedelta(hours=1),
)
FRESH = Bundle(
    url="https://storage.example.com/fresh?X-Signature=n3w", expires_at="2026-05-04T14:00:00Z", expires=NOON + timedelta(hours=2)
)
ARCHIVE = gzip.compress(tar(SMALL_SITE), compresslevel=0)
"""Stored gzip: as large as the tar archive, which would be requested twice, because it may have been decompressed."""

NO_SECRETS = Redactor([])


class FakeStorage:
    """A storage with one archive, and the API that makes links to it. `before` and `after` are called around a response."""

    def __init__(self, archive: bytes) -> None:
        self.archive = archive
        self.outage_tolerance_seconds = 300.0
        self.headers: Mapping[str, str] = {}
        self.expired: set[str] = set()
        self.requested: list[str] = []
        self.made: list[Bundle | ActionError] = [FRESH]
        self.made_for: list[Job] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def make_bundle(self, job: Job) -> Bundle:
        self.made_for.append(job)
        made = self.made[len(self.made_for) - 1]
        if isinstance(made, ActionError):
            raise made
        return made

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str], *_: object, within_seconds: float) -> Iterator[StorageResponse]:
        assert within_seconds > 0
        assert not {*headers} - {"Accept-Encoding"}
        self.requested.append(url)
        self.before()
        yield StorageResponse(
            redactor=NO_SECRETS,
            status=403 if url in self.expired else 200,
            headers=self.headers,
            address="storage",
            pieces=self._pieces(),
        )

    def _pieces(self) -> Iterator[bytes]:
        yield self.archive
        self.after()


class HookedCancellation(Cancellation):
    """Calls `on_check` at each check."""

    def __init__(self) -> None:
        super().__init__()
        self.on_check: Callable[[], None] = lambda: None

    def check(self) -> None:
        self.on_check()
        super().check()


class Delivery:
    """The delivery of a bundle to a workspace, with the runner's temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temporary = folder / "workspace", folder / "temporary"
        self.workspace.mkdir()
        self.temporary.mkdir()
        self.storage = FakeStorage(ARCHIVE)
        self.clock = VirtualClock()
        self.clock.cancellation = self.cancellation = HookedCancellation()
        self.job = Job(mode=EXPORT, domain="docs.example.com", job_id="se_1", status="completed", bundle=BUNDLE)
        self.events = RecordedEvents()
        self.cleanups = Cleanups()

    @property
    def is_unpacking(self) -> bool:
        return any(part.is_dir() for part in self.workspace.rglob(".*.part"))

    def target(self, name: str) -> OutputPath:
        return OutputPath(path=self.workspace / name, root=self.workspace, name=name)

    def settings_for(self, **names: str) -> DeliverySettings:
        return DeliverySettings(**{name: self.target(value) for name, value in names.items()}, scratch=self.temporary)

    def all_settings(self) -> DeliverySettings:
        return self.settings_for(**ALL)

    def __call__(self, settings: DeliverySettings, bundle: Bundle = BUNDLE) -> None:
        self.job.bundle = bundle
        shared = context(self.clock, self.events, api=self.storage)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(download, "request_bundle", self.storage.get)
            deliver(self.job, settings, replace(shared, cleanups=self.cleanups))

    def renew_link(self, settings: DeliverySettings) -> bool:
        return renew_link(self.job, settings, replace(context(self.clock, self.events, api=self.storage), cleanups=self.cleanups))

    def failure(self, settings: DeliverySettings, bundle: Bundle = BUNDLE) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self(settings, bundle)
        assert not self.cleanups
        assert tree(self.temporary) == []
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
        return tree(self.workspace)

    @property
    def paths(self) -> tuple[str | None, str | None, str | None]:
        """What the job says is delivered."""
        return self.job.bundle_path, self.job.site_path, self.job.values_file


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def delivery(tmp_path: Path) -> Delivery:
    return Delivery(tmp_path)


def unpack_during_the_download(monkeypatch: pytest.MonkeyPatch, delivery: Delivery) -> None:
    """Unpack every bundle during its download, as large ones are."""
    monkeypatch.setattr(overlap, "MIN_RECEIVED_BYTES", 1)
    delivery.storage.headers = {"Content-Length": str(len(delivery.storage.archive))}


@pytest.fixture(params=[False, True], ids=["after the download", "overlapped"])
def overlapped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, delivery: Delivery) -> bool:
    """Unpack after or during the download."""
    if request.param:
        unpack_during_the_download(monkeypatch, delivery)
    return bool(request.param)


ALL = {"bundle": "out/bundle.tar", "site": "out/site", "values": "deploy/values.yaml"}
SITE = ["assets", "guide", "guide/empty.txt", "guide/home.html", "guide/start.html", "index.html", "latest"]
SITE_FILES = ["site", *(f"site/{name}" for name in SITE)]
ALL_FILES = ["deploy", "deploy/values.yaml", "out", "out/bundle.tar", *(f"out/{name}" for name in SITE_FILES)]
SAVING = ["downloading", "downloaded"]
UNPACKING = ["unpacking", "unpacked"]


@pytest.mark.parametrize(
    ("names", "files", "events", "phases"),
    [
        ({}, [], [], []),
        ({"bundle": "out/bundle.tar"}, ["out", "out/bundle.tar"], SAVING, [DOWNLOAD]),
        ({"site": "site"}, SITE_FILES, SAVING + UNPACKING, [DOWNLOAD, UNPACK]),
        ({"values": "deploy/values.yaml"}, ["deploy", "deploy/values.yaml"], ["values_written"], []),
        (ALL, ALL_FILES, [*SAVING, *UNPACKING, "values_written"], [DOWNLOAD, UNPACK]),
    ],
    ids=["nothing", "bundle", "site", "values", "all"],
)
@pytest.mark.usefixtures("overlapped")
def test_what_is_asked_for_is_delivered_and_recorded(
    delivery: Delivery, names: dict[str, str], files: list[str], events: list[str], phases: list[str]
) -> None:
    downloads = "bundle" in names or "site" in names

    delivery(delivery.settings_for(**names))

    job, digest = delivery.job, hashlib.sha256(ARCHIVE).hexdigest()
    assert (delivery.files, tree(delivery.temporary)) == (files, [])
    assert delivery.paths == tuple(names.get(name) for name in ("bundle", "site", "values"))
    assert job.downloaded == (Downloaded(size=len(ARCHIVE), sha256=digest) if downloads else None)
    assert job.site_files == (3 if "site" in names else None)
    assert (delivery.names, [phase.name for phase in job.phases]) == (events, phases)
    assert delivery.storage.requested == [BUNDLE.url] * downloads
    if "bundle" in names:
        assert (delivery.workspace / "out" / "bundle.tar").read_bytes() == ARCHIVE
    if "site" in names:
        assert (delivery.workspace / names["site"] / "index.html").read_bytes() == SMALL_SITE.files["index.html"]
        assert delivery.events.of("unpack_progressed")[-1] == (3, 613)


class TestSite:
    def test_its_archive_is_downloaded_to_the_temporary_folder_and_removed(self, delivery: Delivery) -> None:
        seen: list[tuple[int, list[str]]] = []
        delivery.storage.after = lambda: seen.append((len(tree(delivery.temporary)), delivery.files))

        delivery(delivery.settings_for(site="site"))

        assert seen == [(1, [])]
        assert tree(delivery.temporary) == []

    def test_without_a_temporary_folder_the_archive_is_hidden_beside_the_site(self, delivery: Delivery) -> None:
        seen: list[str] = []
        delivery.storage.after = lambda: seen.extend(delivery.files)

        delivery(DeliverySettings(site=delivery.target("out/site")))

        folder, part = seen
        assert folder == "out"
        assert part.startswith("out/.bundle.")
        assert delivery.files == ["out", *(f"out/{name}" for name in SITE_FILES)]

    @pytest.mark.usefixtures("overlapped")
    def test_a_cancel_ends_the_unpacking_and_leaves_nothing(self, delivery: Delivery) -> None:
        def cancel() -> None:
            raise Cancelled("cancelled")

        delivery.cancellation.on_check = cancel

        assert isinstance(delivery.failure(delivery.settings_for(site="site")), Cancelled)
        assert delivery.files == []

    @pytest.mark.parametrize("archive", [ARCHIVE[:4000], SEVEN_ZIP, HOSTILE["tar with an absolute name"][0]])
    @pytest.mark.parametrize("min_pages", [None, 1])
    def test_an_archive_that_cannot_be_unpacked_is_kept_unless_its_pages_are_to_be_counted(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, archive: bytes, min_pages: int | None
    ) -> None:
        delivery.storage.archive = archive
        unpack_during_the_download(monkeypatch, delivery)

        error = delivery.failure(replace(delivery.all_settings(), min_pages=min_pages))

        assert isinstance(error, InvalidBundle)
        assert delivery.files == (["out", "out/bundle.tar"] if min_pages is None else [])
        assert delivery.paths == ("out/bundle.tar" if min_pages is None else None, None, None)
        assert delivery.names == [*SAVING, "unpacking"]

    def test_a_failed_download_leaves_nothing_of_what_was_unpacked_meanwhile(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> None:
            assert delivery.is_unpacking
            raise OSError(errno.ENOSPC, "No space left on device")

        unpack_during_the_download(monkeypatch, delivery)
        delivery.storage.after = fail

        assert isinstance(delivery.failure(delivery.settings_for(bundle="bundle", site="site")), DownloadFailed)
        assert delivery.files == []


class TestMinPages:
    """The small site has two `.html` files, and a link to one. Here the API has reported no page count."""

    def test_a_site_with_as_many_html_files_is_delivered_and_its_archive_after_the_count(self, delivery: Delivery) -> None:
        delivery(replace(delivery.all_settings(), min_pages=2))

        assert (delivery.files, delivery.paths) == (ALL_FILES, tuple(ALL.values()))
        assert (delivery.workspace / "out" / "bundle.tar").read_bytes() == ARCHIVE
        assert delivery.names == [*SAVING, "unpacking", "archive_saved", "unpacked", "values_written"]

    def test_without_an_archive_to_keep_only_the_site_is_delivered(self, delivery: Delivery) -> None:
        delivery(replace(delivery.settings_for(site="site"), min_pages=2))

        assert (delivery.files, delivery.names) == (SITE_FILES, SAVING + UNPACKING)

    def test_with_fewer_html_files_nothing_is_left_not_even_the_archive(self, delivery: Delivery) -> None:
        error = delivery.failure(replace(delivery.all_settings(), min_pages=3))

        assert isinstance(error, TooFewPages)
        assert (delivery.files, delivery.paths) == ([], (None, None, None))

    def test_an_archive_that_cannot_be_published_after_the_count_is_reported(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_path: Path, _target: Path) -> Path:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "replace", refuse)

        assert isinstance(delivery.failure(replace(delivery.all_settings(), min_pages=2)), DownloadFailed)
        assert (delivery.files, delivery.paths) == ([], (None, None, None))


class TestReplacedParts:
    """Another process puts something else at the path of a part. Only what was written and hashed is used or published."""

    OTHER = gzip.compress(tar(Site(files={"other.html": b"mine"})), compresslevel=0)

    def replace(self, folder: Path) -> None:
        """Replace the only part in a folder, once."""
        parts = [*folder.rglob(".*.part")]
        if parts and not (folder / "moved").exists():
            (part,) = parts
            part.rename(folder / "moved")
            if (folder / "moved").is_dir():
                part.mkdir()
                (part / "other.html").write_text("mine")
            else:
                part.write_bytes(self.OTHER)

    def test_the_hashed_archive_is_unpacked(self, delivery: Delivery, overlapped: bool) -> None:
        if not overlapped:
            delivery.storage.headers = {"Content-Length": str(len(ARCHIVE))}
        delivery.storage.after = lambda: self.replace(delivery.temporary)

        delivery(delivery.settings_for(site="site"))

        assert delivery.files == SITE_FILES
        assert delivery.job.downloaded is not None
        assert delivery.job.downloaded.sha256 == hashlib.sha256(ARCHIVE).hexdigest()

    @pytest.mark.parametrize(
        ("names", "failure"),
        [({"bundle": "x"}, DownloadFailed), ({"values": "x"}, InternalError), ({"site": "x"}, InternalError)],
        ids=["bundle", "values", "site"],
    )
    def test_another_result_is_not_published(self, delivery: Delivery, names: dict[str, str], failure: type[ActionError]) -> None:
        old = [] if "site" in names else ["x"]
        for name in old:
            (delivery.workspace / name).write_text("old")
        delivery.storage.after = delivery.cancellation.on_check = lambda: self.replace(delivery.workspace)

        assert isinstance(delivery.failure(delivery.settings_for(**names)), failure)
        assert [name for name in delivery.files if "/" not in name] == ["moved", *old]
        assert all((delivery.workspace / name).read_text() == "old" for name in old)
        assert delivery.paths == (None, None, None)


class TestValues:
    def text(self, delivery: Delivery, bundle: Bundle = BUNDLE, *, version: str | None = None) -> str:
        delivery(DeliverySettings(values=delivery.target("values.yaml"), version=version), bundle)
        return (delivery.workspace / "values.yaml").read_text("ascii")

    def test_they_hold_the_link_and_the_version(self, delivery: Delivery) -> None:
        written = self.text(delivery, version="2024-06-01")

        assert yaml.safe_load(written) == {"staticExport": {"enabled": True, "bundleUrl": BUNDLE.url, "version": "2024-06-01"}}

    def test_foreign_text_cannot_end_the_comment(self, delivery: Delivery) -> None:
        written = self.text(delivery, Bundle(url=BUNDLE.url, expires_at="soon\nstaticExport: null"))

        assert yaml.safe_load(written) == {"staticExport": {"enabled": True, "bundleUrl": BUNDLE.url}}

    def test_they_hold_the_link_that_replaced_a_refused_one(self, delivery: Delivery) -> None:
        delivery.storage.expired = {BUNDLE.url}

        delivery(delivery.settings_for(bundle="bundle", values="values.yaml"))

        assert delivery.storage.requested == [BUNDLE.url, FRESH.url]
        assert link_in(delivery, "values.yaml") == FRESH.url


def link_in(delivery: Delivery, values: str) -> object:
    return yaml.safe_load((delivery.workspace / values).read_text())["staticExport"]["bundleUrl"]


class TestLinkRenewal:
    """A link with less than a minute left is replaced before it is written anywhere."""

    MODES = pytest.mark.parametrize(
        "names", [{}, {"bundle": "b"}, {"site": "s"}, {"values": "v"}, {"bundle": "b", "values": "v"}]
    )

    @MODES
    @pytest.mark.parametrize("remaining_seconds", [59.9, 0.5, 0, -3600])
    def test_a_link_that_expires_is_replaced(self, delivery: Delivery, names: dict[str, str], remaining_seconds: float) -> None:
        delivery.clock.advance(3600 - remaining_seconds)

        delivery(delivery.settings_for(**names))

        assert (delivery.job.bundle, delivery.storage.made_for, delivery.warnings) == (FRESH, [delivery.job], [])
        assert [name for name in delivery.names if name.startswith("link_")] == ["link_expired", "link_renewed"]
        assert delivery.job.phases[-1].name == BUNDLE_PHASE
        if "values" in names:
            assert link_in(delivery, "v") == FRESH.url
            assert delivery.names[-1] == "values_written"

    def test_one_that_expires_during_the_download_is_replaced_after_the_site_is_published(self, delivery: Delivery) -> None:
        delivery.storage.after = lambda: delivery.clock.advance(3600)

        delivery(delivery.all_settings())

        assert delivery.names[-4:] == ["unpacked", "link_expired", "link_renewed", "values_written"]
        assert [phase.name for phase in delivery.job.phases] == [DOWNLOAD, UNPACK, BUNDLE_PHASE]
        assert delivery.job.downloaded is not None

    @MODES
    @pytest.mark.parametrize(
        ("bundle", "passed"),
        [
            (BUNDLE, 3540),
            (Bundle(url=BUNDLE.url, expires_at="in a second"), 3540),
            (Bundle(url=BUNDLE.url), 10**6),
        ],
        ids=["a minute", "unknown", "none"],
    )
    def test_any_other_is_kept(self, delivery: Delivery, names: dict[str, str], bundle: Bundle, passed: float) -> None:
        delivery.clock.advance(passed)

        delivery(delivery.settings_for(**names), bundle)

        assert (delivery.job.bundle, delivery.storage.made_for) == (bundle, [])

    def test_a_fresh_link_that_expires_too_is_used(self, delivery: Delivery) -> None:
        short = replace(FRESH, expires=NOON + timedelta(hours=1, seconds=2))
        delivery.storage.made = [short]
        delivery.clock.advance(3600)

        delivery(delivery.settings_for(values="v"))

        assert (delivery.job.bundle, len(delivery.storage.made_for), delivery.warnings) == (short, 1, [])

    @MODES
    @pytest.mark.parametrize("error", [Unavailable("the API is down"), NotFound("the job is gone")])
    def test_one_that_cannot_be_replaced_is_kept_with_a_warning(
        self, delivery: Delivery, names: dict[str, str], error: ActionError
    ) -> None:
        delivery.storage.made = [error]
        delivery.clock.advance(3600)

        delivery(delivery.settings_for(**names))

        assert (delivery.job.bundle, len(delivery.warnings)) == (BUNDLE, 1)
        if "values" in names:
            assert link_in(delivery, "v") == BUNDLE.url

    def test_a_cancel_ends_it(self, delivery: Delivery) -> None:
        delivery.storage.made = [Cancelled("cancelled")]
        delivery.clock.advance(3600)

        assert isinstance(delivery.failure(delivery.settings_for(values="v")), Cancelled)
        assert (delivery.files, delivery.warnings) == ([], [])

    def test_at_the_end_of_the_run_the_values_file_is_written_again(self, delivery: Delivery) -> None:
        settings = delivery.settings_for(values="v")
        delivery(settings)
        phases, delivery.job.ended_at = [*delivery.job.phases], delivery.clock.monotonic()
        delivery.clock.advance(3600)

        assert delivery.renew_link(settings)

        assert link_in(delivery, "v") == FRESH.url
        assert (delivery.job.bundle, delivery.job.phases) == (FRESH, phases)

    def test_if_the_values_file_cannot_be_written_again_both_keep_the_old_link(self, delivery: Delivery) -> None:
        settings = delivery.settings_for(values="v")
        delivery(settings)
        delivery.clock.advance(3600)
        with files_of_at_most(1):
            assert not delivery.renew_link(settings)

        assert delivery.job.bundle == BUNDLE
        assert link_in(delivery, "v") == BUNDLE.url
        assert len(delivery.warnings) == 1

    def test_a_values_file_that_is_not_written_yet_is_not_written(self, delivery: Delivery) -> None:
        assert delivery.renew_link(delivery.settings_for(values="v"))
        assert delivery.files == []


class TestTogether:
    def test_each_result_is_recorded_before_the_next_begins(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        job, seen = delivery.job, []

        def look(step: str) -> None:
            there = (job.downloaded and "downloaded", *delivery.paths)
            seen.append((step, [name for name in there if name]))

        def values_text(**_: object) -> str:
            look("values")
            return ""

        delivery.storage.before = lambda: look("fetching")
        delivery.events.downloaded = lambda _job: look("announced")  # type: ignore[method-assign]
        delivery.cancellation.on_check = lambda: look("unpacking") if delivery.is_unpacking else None
        monkeypatch.setattr(helm_values, "values_text", values_text)

        delivery(delivery.all_settings())

        look("end")
        assert list(dict.fromkeys((step, *there) for step, there in seen)) == [
            ("fetching",),
            ("announced", "downloaded", "out/bundle.tar"),
            ("unpacking", "downloaded", "out/bundle.tar"),
            ("values", "downloaded", "out/bundle.tar", "out/site"),
            ("end", "downloaded", "out/bundle.tar", "out/site", "deploy/values.yaml"),
        ]

    def test_archive_and_site_stay_when_the_values_cannot_be_written(self, delivery: Delivery) -> None:
        (delivery.workspace / "deploy").touch()

        assert isinstance(delivery.failure(delivery.all_settings()), InternalError)
        assert delivery.paths == ("out/bundle.tar", "out/site", None)

    def test_while_there_may_be_parts_to_clean_away_that_is_known(self, delivery: Delivery) -> None:
        seen: list[bool] = []
        delivery.storage.before = delivery.cancellation.on_check = lambda: seen.append(bool(delivery.cleanups))

        delivery(delivery.all_settings())

        assert {*seen} == {True}
        assert not delivery.cleanups


Hook = Callable[[Delivery], None]


def during_the_download(happens: Hook) -> Hook:
    """Return how to have this happen when the bundle is received."""

    def prepare(delivery: Delivery) -> None:
        delivery.storage.after = lambda: happens(delivery)

    return prepare


def at_each_check(happens: Hook) -> Hook:
    """Return how to have this happen while the site is unpacked, and before each result is published."""

    def prepare(delivery: Delivery) -> None:
        delivery.cancellation.on_check = lambda: happens(delivery)

    return prepare


def fails_with(code: int) -> Hook:
    """Return a fault of the file system."""

    def fail(_delivery: Delivery) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def fills_the_site(delivery: Delivery) -> None:
    (delivery.workspace / "site").mkdir()
    (delivery.workspace / "site" / "other.html").touch()


def fails_without_a_code(_delivery: Delivery) -> None:
    raise OSError


@dataclass(frozen=True)
class Fault:
    """What to deliver, how to prepare what goes wrong, the failure, and what is left in the workspace."""

    names: Mapping[str, str]
    prepare: Hook
    failure: type[ActionError]
    left: Sequence[str] = ()
    in_job: tuple[str | None, ...] = (None, None, None)


SAVED = {"bundle": "bundle"}
ABOVE_IS_A_FILE: Hook = lambda delivery: (delivery.workspace / "x").touch()  # noqa: E731  # a row of the table below
ABOVE_IS_REMOVED = at_each_check(lambda delivery: shutil.rmtree(delivery.workspace / "x", ignore_errors=True))
IS_A_FOLDER = at_each_check(lambda delivery: (delivery.workspace / "name").mkdir(exist_ok=True))

FAULTS: Mapping[str, Fault] = {
    "The disk is full": Fault(SAVED, during_the_download(fails_with(errno.ENOSPC)), DownloadFailed),
    "The quota is used up": Fault(SAVED, during_the_download(fails_with(errno.EDQUOT)), DownloadFailed),
    "A file would be too large": Fault(SAVED, during_the_download(fails_with(errno.EFBIG)), DownloadFailed),
    "The disk is faulty": Fault(SAVED, during_the_download(fails_with(errno.EIO)), DownloadFailed),
    "Writing is denied": Fault(SAVED, during_the_download(fails_with(errno.EACCES)), DownloadFailed),
    "Writing is not permitted": Fault(SAVED, during_the_download(fails_with(errno.EPERM)), DownloadFailed),
    "The system does not say what is wrong": Fault(SAVED, during_the_download(fails_without_a_code), DownloadFailed),
    "The disk is full when the site is written": Fault(
        ALL,
        at_each_check(lambda delivery: fails_with(errno.ENOSPC)(delivery) if delivery.is_unpacking else None),
        InternalError,
        ["out", "out/bundle.tar"],
        ("out/bundle.tar", None, None),
    ),
    "The disk is full when the values are written": Fault(
        {"values": "deploy/values.yaml"}, at_each_check(fails_with(errno.ENOSPC)), InternalError
    ),
    "The folder of the bundle became a file": Fault({"bundle": "x/name"}, ABOVE_IS_A_FILE, DownloadFailed, ["x"]),
    "The folder of the site became a file": Fault({"site": "x/name"}, ABOVE_IS_A_FILE, InternalError, ["x"]),
    "The folder of the values became a file": Fault({"values": "x/name"}, ABOVE_IS_A_FILE, InternalError, ["x"]),
    "The bundle became a folder": Fault({"bundle": "name"}, IS_A_FOLDER, DownloadFailed, ["name"]),
    "The values became a folder": Fault({"values": "name"}, IS_A_FOLDER, InternalError, ["name"]),
    "The site was filled": Fault(
        {"site": "site"}, during_the_download(fills_the_site), InternalError, ["site", "site/other.html"]
    ),
    "The site became a file": Fault(
        {"site": "site"}, during_the_download(lambda delivery: (delivery.workspace / "site").touch()), InternalError, ["site"]
    ),
    "The site became a link": Fault(
        {"site": "site"},
        during_the_download(lambda delivery: (delivery.workspace / "site").symlink_to("nowhere")),
        InternalError,
        ["site"],
    ),
    "The folder of the bundle was removed": Fault({"bundle": "x/name"}, ABOVE_IS_REMOVED, DownloadFailed),
    "The folder of the site was removed": Fault({"site": "x/name"}, ABOVE_IS_REMOVED, InternalError),
    "The folder of the values was removed": Fault({"values": "x/name"}, ABOVE_IS_REMOVED, InternalError),
    "The temporary file was replaced": Fault(SAVED, during_the_download(fails_with(errno.ESTALE)), DownloadFailed),
    "The file exists": Fault(SAVED, during_the_download(fails_with(errno.EEXIST)), DownloadFailed),
    "The temporary archive of a site was removed": Fault(
        {"site": "site"}, during_the_download(fails_with(errno.ENOENT)), DownloadFailed
    ),
}
"""Faults of the file system, and what other processes do to the paths of a delivery."""


def failed(delivery: Delivery, name: str) -> ActionError:
    """Return the failure of a delivery with this fault."""
    FAULTS[name].prepare(delivery)
    return delivery.failure(delivery.settings_for(**FAULTS[name].names))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_file_system_fails_its_step_and_leaves_the_files_of_others(delivery: Delivery, name: str) -> None:
    fault = FAULTS[name]

    error = failed(delivery, name)

    assert type(error) is fault.failure
    assert isinstance(error.__cause__, OSError)
    assert (delivery.files, delivery.paths) == ([*fault.left], fault.in_job)


@pytest.mark.parametrize("name", ["Writing is denied", "Writing is not permitted"])
def test_the_failure_of_a_denied_write_says_what_probably_denies_it(delivery: Delivery, name: str) -> None:
    error = failed(delivery, name)

    assert (error.cause, error.remedy) == (DENIED_CAUSE, DENIED_REMEDY)


def test_a_disk_that_is_full_only_when_the_archive_is_closed_is_reported(delivery: Delivery) -> None:
    with files_of_at_most(len(ARCHIVE) - 1):
        error = delivery.failure(delivery.settings_for(site="site"))

    assert isinstance(error, DownloadFailed)
    assert delivery.files == []


def full_once(code: int = errno.ENOSPC) -> Callable[[], None]:
    """Return a function that fails the first time that it is called, as on a full disk."""
    errors = [OSError(code, os.strerror(code))]

    def fail() -> None:
        if errors:
            raise errors.pop()

    return fail


@dataclass
class Disk:
    """A disk with this many bytes in all. `free` returns those that are free at a path."""

    free: Callable[[Path], int]
    total: int = 1
    _statvfs: Callable[[int], object] = field(default=os.statvfs)

    def __call__(self, path: Path | int) -> object:
        """Be `os.statvfs`, but not for an open folder."""
        if isinstance(path, int):
            return self._statvfs(path)
        return SimpleNamespace(f_bavail=self.free(path), f_blocks=self.total, f_frsize=1, f_files=0, f_favail=0)


class TestDiskSpace:
    """A disk that is too small is reported before the download."""

    SIZE = len(ARCHIVE)

    def disk(self, monkeypatch: pytest.MonkeyPatch, free: Callable[[Path], int], *, total: int = 1) -> None:
        monkeypatch.setattr(os, "statvfs", Disk(free, total))

    @pytest.fixture(autouse=True)
    def _size_is_announced(self, delivery: Delivery) -> None:
        delivery.storage.headers = {"Content-Length": str(self.SIZE)}

    @pytest.mark.parametrize(
        ("names", "needed", "total"),
        [
            ({"bundle": "out/bundle"}, SIZE, 1),
            ({"bundle": "out/bundle"}, SIZE, 10 * 512),
            ({"site": "a/b/site"}, 2 * SIZE, 1),
            ({"site": "a/b/site"}, 2 * SIZE + 512, 10 * 512),
            ({"bundle": "bundle", "site": "site"}, 2 * SIZE, 1),
        ],
        ids=["bundle", "bundle on a disk without a reserve", "site", "site and the disk's reserve", "both"],
    )
    def test_an_archive_needs_its_size_and_a_site_as_much_again(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], needed: int, total: int
    ) -> None:
        self.disk(monkeypatch, lambda _: needed - 1, total=total)

        assert isinstance(delivery.failure(delivery.settings_for(**names)), DownloadFailed)
        assert (delivery.files, delivery.storage.requested) == ([], [BUNDLE.url])

        self.disk(monkeypatch, lambda _: needed, total=total)
        delivery(delivery.settings_for(**names))

    @pytest.fixture
    def _two_disks(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put the temporary folder on another disk."""
        stat = Path.stat

        def stat_with_device(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
            found = [*stat(path, follow_symlinks=follow_symlinks)]
            return os.stat_result((*found[:2], 77 if path == delivery.temporary else 7, *found[3:]))

        monkeypatch.setattr(Path, "stat", stat_with_device)

    @pytest.mark.usefixtures("_two_disks")
    def test_on_two_disks_each_needs_its_own(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk(monkeypatch, lambda _: self.SIZE)

        delivery(delivery.settings_for(site="out/site"))

        assert delivery.job.site_path == "out/site"

    @pytest.mark.usefixtures("_two_disks")
    @pytest.mark.parametrize("full", ["workspace", "temporary"])
    def test_either_disk_can_be_too_small(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, full: str) -> None:
        self.disk(monkeypatch, lambda folder: self.SIZE - (folder.name == full))

        assert isinstance(delivery.failure(delivery.settings_for(site="out/site")), DownloadFailed)

    @pytest.mark.usefixtures("_two_disks")
    @pytest.mark.parametrize("is_full_at_once", [True, False])
    def test_a_temporary_folder_that_is_too_small_or_fills_up_is_not_used(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, is_full_at_once: bool
    ) -> None:
        if is_full_at_once:
            self.disk(monkeypatch, lambda folder: self.SIZE - 1 if folder == delivery.temporary else 2 * self.SIZE)
        else:
            delivery.storage.after = full_once()

        delivery(delivery.settings_for(site="site"))

        assert (delivery.files, tree(delivery.temporary)) == (SITE_FILES, [])
        assert delivery.storage.requested == [BUNDLE.url] * 2
        assert delivery.names.count("download_moved") == 1

    def test_a_download_is_not_moved_within_one_disk(self, delivery: Delivery) -> None:
        delivery.storage.after = full_once()

        assert isinstance(delivery.failure(delivery.settings_for(site="out/site")), DownloadFailed)
        assert (len(delivery.storage.requested), "download_moved" in delivery.names) == (1, False)

    @pytest.mark.usefixtures("_two_disks")
    def test_a_download_is_not_moved_from_a_faulty_disk(self, delivery: Delivery) -> None:
        delivery.storage.after = full_once(errno.EIO)

        assert isinstance(delivery.failure(delivery.settings_for(site="out/site")), DownloadFailed)
        assert len(delivery.storage.requested) == 1

    def test_an_archive_of_unknown_size_is_downloaded(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        delivery.storage.headers = {}
        self.disk(monkeypatch, lambda _: 0)

        delivery(delivery.settings_for(bundle="bundle"))

        assert delivery.job.bundle_path == "bundle"


STORED_AS_GZIP = {"X-Goog-Stored-Content-Encoding": "gzip"}


class TestChangedCompression:
    @pytest.mark.parametrize(
        ("name", "headers", "archive", "lines"),
        [
            ("bundle.tar", {}, tar(SMALL_SITE), 0),
            ("bundle.tar.GZ", {}, tar(SMALL_SITE), 1),
            ("bundle.tgz", {}, tar(SMALL_SITE), 1),
            ("bundle.tar.gz", {}, ARCHIVE, 0),
            ("bundle.tar", STORED_AS_GZIP, tar(SMALL_SITE), 2),
            ("bundle.tar.gz", STORED_AS_GZIP, tar(SMALL_SITE), 3),
        ],
    )
    def test_what_is_not_as_stored_or_as_named_is_warned_of_once(
        self, delivery: Delivery, name: str, headers: Mapping[str, str], archive: bytes, lines: int
    ) -> None:
        delivery.storage.archive, delivery.storage.headers = archive, headers

        delivery(delivery.settings_for(bundle=name))

        assert [len(warning) for warning in delivery.warnings] == ([lines] if lines else [])

    def test_the_name_of_an_archive_that_is_not_kept_does_not_matter(self, delivery: Delivery) -> None:
        delivery.storage.archive = tar(SMALL_SITE)

        delivery(delivery.settings_for(site="site.gz"))

        assert delivery.warnings == []


def refuses_to_chown(monkeypatch: pytest.MonkeyPatch, *, owner: Owner | None = None) -> None:
    """Let every folder belong to a user of the runner, to whom nothing can be given."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(f"{deliver.__module__}.owner_of", lambda _root: owner)
    monkeypatch.setattr(os, "chown", refuse)


class TestOwner:
    @pytest.fixture
    def given(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        """Let every folder belong to a user of the runner; return the paths that this user gets."""
        given: list[Path] = []

        def chown(path: bytes | Path | int, uid: int, gid: int, *, dir_fd: int | None = None, follow_symlinks: bool) -> None:
            assert (uid, gid, follow_symlinks) == (1001, 127, isinstance(path, int))
            below = Path(f"/proc/self/fd/{dir_fd}").readlink() if dir_fd is not None else Path()
            given.append(Path(f"/proc/self/fd/{path}").readlink() if isinstance(path, int) else below / os.fsdecode(path))

        monkeypatch.setattr(f"{deliver.__module__}.owner_of", lambda _root: Owner(1001, 127))
        monkeypatch.setattr(os, "chown", chown)
        return given

    def test_everything_delivered_gets_the_workspaces_owner(self, delivery: Delivery, given: list[Path]) -> None:
        delivery(delivery.all_settings())

        names = [str(path.relative_to(delivery.workspace)) for path in given]
        assert [name for name in names if "." not in name] == ["out", "deploy"]
        assert len(given) == len(delivery.files)
        assert delivery.warnings == []

    def test_temporary_files_do_not(self, delivery: Delivery, given: list[Path]) -> None:
        delivery(delivery.settings_for(site="site"))

        assert not any(path.is_relative_to(delivery.temporary) for path in given)

    def test_folders_made_for_a_temporary_archive_do_if_the_site_is_in_them(self, delivery: Delivery, given: list[Path]) -> None:
        delivery(DeliverySettings(site=delivery.target("out/site")))

        assert delivery.workspace / "out" in given

    def test_a_chown_error_is_warned_of_once(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        refuses_to_chown(monkeypatch, owner=Owner(1001, 127))
        temporary = OutputPath(path=delivery.temporary / "bundle", root=delivery.temporary, name=f"{delivery.temporary}/bundle")

        delivery(DeliverySettings(bundle=temporary, site=delivery.target("site"), values=delivery.target("values.yaml")))

        assert len(delivery.warnings) == 1
        assert delivery.job.values_file == "values.yaml"

    def test_without_an_owner_there_is_no_warning(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        refuses_to_chown(monkeypatch)

        delivery(delivery.all_settings())

        assert delivery.warnings == []
