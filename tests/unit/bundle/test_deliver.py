"""A bundle is downloaded, unpacked and written as Helm values. A failure leaves no incomplete result."""

import contextlib
import errno
import gzip
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from docs_platform_action.bundle import download, helm_values, overlap
from docs_platform_action.bundle.deliver import deliver, renew_link
from docs_platform_action.bundle.staging import Staged
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
from docs_platform_action.events import Events
from docs_platform_action.inputs.settings import DeliverySettings, OutputPath
from docs_platform_action.job import BUNDLE as BUNDLE_PHASE
from docs_platform_action.job import DOWNLOAD, UNPACK, Job
from docs_platform_action.models import EXPORT, Bundle, Downloaded
from docs_platform_action.ownership import Owner
from docs_platform_action.redaction import Redactor
from tests.archives import HOSTILE, SEVEN_ZIP, SMALL_SITE, Site, tar
from tests.unit.fakes import context
from tests.unit.report.test_outputs import files_of_at_most
from tests.virtual_time import NOON, VirtualClock

BUNDLE = Bundle(
    url="https://storage.example.com/se_1/bundle.tar?X-Signature=s3cr3t",
    expires_at="2026-05-04T13:00:00Z",
    expires=NOON + timedelta(hours=1),
)
ARCHIVE = gzip.compress(tar(SMALL_SITE), compresslevel=0)
"""Stored gzip: as large as the tar archive, which would be requested twice, because it may have been decompressed."""

FULL = "The runner's disk is full or too small."
BROKEN = "The runner's disk is faulty, or another process is using it."

NO_SECRETS = Redactor([])


class FakeStorage:
    """A storage with one archive, and the API that makes links to it. `before` and `after` are called around a response."""

    def __init__(self, archive: bytes) -> None:
        self.archive = archive
        self.headers: Mapping[str, str] = {}
        self.expired: set[str] = set()
        self.requested: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def make_bundle(self, job: Job) -> Bundle:
        assert job.job_id == "se_1"
        return Bundle(url="https://storage.example.com/fresh?X-Signature=n3w")

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str], *_: object, within_seconds: float) -> Iterator[StorageResponse]:
        assert within_seconds > 0
        assert not headers
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


class RecordedLines(Events):
    """Records the events of a delivery as lines, with the state of the job at that time."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.unpacked_so_far = (0, 0)
        self.warnings: list[list[str]] = []

    def downloading(self, job: Job) -> None:
        assert job.phases[-1].name == DOWNLOAD
        self.lines.append("downloading")

    def link_expired(self, _job: Job, error: str) -> None:
        self.lines.append(error)

    def link_renewed(self, job: Job) -> None:
        assert job.bundle is not None
        self.lines.append(f"fresh link {job.bundle.url}")

    def download_moved(self, _job: Job) -> None:
        self.lines.append("moved")

    def downloaded(self, job: Job) -> None:
        assert job.downloaded is not None
        self.lines.append(f"downloaded {job.downloaded.size} bytes to {job.bundle_path}")

    def archive_saved(self, job: Job) -> None:
        self.lines.append(f"saved {job.bundle_path}")

    def unpacking(self, job: Job) -> None:
        assert job.phases[-1].name == UNPACK
        self.lines.append("unpacking")

    def unpack_progressed(self, _job: Job, files: int, size: int) -> None:
        self.unpacked_so_far = (files, size)

    def unpacked(self, job: Job) -> None:
        self.lines.append(f"unpacked {job.site_files} files to {job.site_path}")

    def values_written(self, job: Job) -> None:
        self.lines.append(f"wrote {job.values_file}")

    def warning(self, _job: Job, lines: Sequence[str]) -> None:
        self.warnings.append([*lines])


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
        self.events = RecordedLines()
        self.cleanups = Cleanups()

    @property
    def is_unpacking(self) -> bool:
        return any(part.is_dir() for part in self.workspace.rglob(".*.part"))

    def target(self, name: str) -> OutputPath:
        return OutputPath(path=self.workspace / name, root=self.workspace, name=name)

    def settings_for(self, **names: str) -> DeliverySettings:
        return DeliverySettings(**{name: self.target(value) for name, value in names.items()}, scratch=self.temporary)

    def all_settings(self) -> DeliverySettings:
        return self.settings_for(bundle="out/bundle.tar", site="out/site", values="deploy/values.yaml")

    def __call__(self, settings: DeliverySettings, bundle: Bundle = BUNDLE) -> None:
        self.job.bundle = bundle
        shared = context(self.clock, self.events, api=self.storage)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(download, "request_bundle", self.storage.get)
            deliver(self.job, settings, replace(shared, cleanups=self.cleanups))

    def renew_link(self, settings: DeliverySettings) -> ActionError | None:
        return renew_link(self.job, settings, replace(context(self.clock, self.events, api=self.storage), cleanups=self.cleanups))

    def failure(self, settings: DeliverySettings, bundle: Bundle = BUNDLE) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self(settings, bundle)
        assert not self.cleanups
        return caught.value

    @property
    def lines(self) -> list[str]:
        return self.events.lines

    @property
    def warnings(self) -> list[list[str]]:
        return self.events.warnings

    @property
    def files(self) -> list[str]:
        return tree(self.workspace)


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def delivery(tmp_path: Path) -> Delivery:
    return Delivery(tmp_path)


SITE = ["assets", "guide", "guide/empty.txt", "guide/home.html", "guide/start.html", "index.html", "latest"]


class TestBundle:
    def test_it_is_saved_unchanged(self, delivery: Delivery) -> None:
        delivery(delivery.settings_for(bundle="out/bundle.tar"))

        assert (delivery.workspace / "out" / "bundle.tar").read_bytes() == ARCHIVE
        assert delivery.files == ["out", "out/bundle.tar"]

    def test_what_is_known_of_it_is_kept(self, delivery: Delivery) -> None:
        delivery(delivery.settings_for(bundle="out/bundle.tar"))

        digest = hashlib.sha256(ARCHIVE).hexdigest()
        assert delivery.job.downloaded == Downloaded(size=len(ARCHIVE), sha256=digest)
        assert delivery.job.bundle_path == "out/bundle.tar"
        assert (delivery.job.site_path, delivery.job.values_file) == (None, None)
        assert delivery.lines == ["downloading", f"downloaded {len(ARCHIVE)} bytes to out/bundle.tar"]

    def test_an_unsupported_archive_is_saved_too(self, delivery: Delivery) -> None:
        delivery.storage.archive = SEVEN_ZIP

        delivery(delivery.settings_for(bundle="bundle"))

        assert (delivery.workspace / "bundle").read_bytes() == SEVEN_ZIP

    def test_an_existing_file_is_replaced_only_by_a_complete_bundle(self, delivery: Delivery) -> None:
        (delivery.workspace / "bundle").write_text("old")
        seen: list[str] = []
        delivery.storage.after = lambda: seen.append((delivery.workspace / "bundle").read_text())

        delivery(delivery.settings_for(bundle="bundle"))

        assert seen == ["old"]
        assert (delivery.workspace / "bundle").read_bytes() == ARCHIVE

    def test_an_expired_link_is_renewed(self, delivery: Delivery) -> None:
        delivery.storage.expired = {BUNDLE.url}

        delivery(delivery.settings_for(bundle="bundle"))

        assert delivery.storage.requested == [BUNDLE.url, "https://storage.example.com/fresh?X-Signature=n3w"]
        assert delivery.lines[1:3] == [
            "The storage rejected the link with 403",
            "fresh link https://storage.example.com/fresh?X-Signature=n3w",
        ]


class TestSite:
    def test_it_is_unpacked_and_the_archive_is_not_kept(self, delivery: Delivery) -> None:
        delivery(delivery.settings_for(site="site"))

        assert delivery.files == ["site", *(f"site/{name}" for name in SITE)]
        assert (delivery.workspace / "site" / "index.html").read_bytes() == SMALL_SITE.files["index.html"]

    def test_what_is_known_of_it_is_kept(self, delivery: Delivery) -> None:
        delivery(delivery.settings_for(site="out/site"))

        job = delivery.job
        assert (job.bundle_path, job.site_path, job.site_files) == (None, "out/site", 3)
        assert job.downloaded is not None
        assert delivery.lines == [
            "downloading",
            f"downloaded {len(ARCHIVE)} bytes to None",
            "unpacking",
            "unpacked 3 files to out/site",
        ]
        assert delivery.events.unpacked_so_far == (3, 613)

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
        assert delivery.files == ["out", "out/site", *(f"out/site/{name}" for name in SITE)]

    def test_an_empty_folder_is_filled(self, delivery: Delivery) -> None:
        (delivery.workspace / "site").mkdir()

        delivery(delivery.settings_for(site="site"))

        assert delivery.files == ["site", *(f"site/{name}" for name in SITE)]

    def test_a_damaged_archive_leaves_nothing(self, delivery: Delivery) -> None:
        delivery.storage.archive = ARCHIVE[:4000]

        error = delivery.failure(delivery.settings_for(site="out/site"))

        assert isinstance(error, InvalidBundle)
        assert delivery.files == tree(delivery.temporary) == []
        assert (delivery.job.site_path, delivery.job.site_files) == (None, None)

    def test_a_cancel_ends_the_unpacking_and_leaves_nothing(self, delivery: Delivery) -> None:
        def cancel() -> None:
            raise Cancelled("cancelled")

        delivery.cancellation.on_check = cancel

        assert isinstance(delivery.failure(delivery.settings_for(site="site")), Cancelled)
        assert delivery.files == tree(delivery.temporary) == []


class TestMinPages:
    """The small site has two `.html` files, and a link to one. Here the API has reported no page count."""

    def settings(self, delivery: Delivery, min_pages: int) -> DeliverySettings:
        return replace(delivery.all_settings(), min_pages=min_pages)

    def test_a_site_with_as_many_html_files_is_delivered_and_its_archive_after_the_count(self, delivery: Delivery) -> None:
        delivery(self.settings(delivery, 2))

        assert delivery.files == [
            *("deploy", "deploy/values.yaml", "out", "out/bundle.tar", "out/site"),
            *(f"out/site/{name}" for name in SITE),
        ]
        assert (delivery.workspace / "out" / "bundle.tar").read_bytes() == ARCHIVE
        assert (delivery.job.bundle_path, delivery.job.site_path) == ("out/bundle.tar", "out/site")
        assert delivery.lines == [
            *("downloading", f"downloaded {len(ARCHIVE)} bytes to None"),
            *("unpacking", "saved out/bundle.tar", "unpacked 3 files to out/site"),
            "wrote deploy/values.yaml",
        ]

    def test_with_fewer_html_files_nothing_is_left_not_even_the_archive(self, delivery: Delivery) -> None:
        error = delivery.failure(self.settings(delivery, 3))

        assert isinstance(error, TooFewPages)
        assert error.summary == "the bundle has 2 `.html` files, fewer than the 3 pages that `min-pages` asks for"
        assert "no valid `pageCount`" in error.details[0]
        assert delivery.files == tree(delivery.temporary) == []
        assert (delivery.job.bundle_path, delivery.job.site_path, delivery.job.values_file) == (None, None, None)

    def test_a_damaged_archive_is_not_kept_because_its_pages_are_not_counted(self, delivery: Delivery) -> None:
        delivery.storage.archive = ARCHIVE[:4000]

        error = delivery.failure(self.settings(delivery, 1))

        assert isinstance(error, InvalidBundle)
        assert delivery.files == []

    def test_an_archive_that_cannot_be_published_after_the_count_is_reported(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_path: Path, _target: Path) -> Path:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "replace", refuse)

        error = delivery.failure(self.settings(delivery, 2))

        assert error.summary == "the bundle cannot be saved"
        assert delivery.files == []


class TestOverlappedSite:
    """Large bundles are unpacked during the download; here, every bundle is large."""

    @pytest.fixture(autouse=True)
    def large(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(overlap, "MIN_RECEIVED_BYTES", 1)
        delivery.storage.headers = {"Content-Length": str(len(ARCHIVE))}

    def test_it_is_unpacked_during_the_download_with_the_same_events(self, delivery: Delivery) -> None:
        seen: list[bool] = []
        delivery.storage.after = lambda: seen.append(delivery.is_unpacking)

        delivery(delivery.settings_for(bundle="out/bundle.tar", site="out/site"))

        assert seen == [True]
        assert delivery.files == ["out", "out/bundle.tar", "out/site", *(f"out/site/{name}" for name in SITE)]
        assert (delivery.job.site_path, delivery.job.site_files) == ("out/site", 3)
        assert [line.split(" ")[0] for line in delivery.lines] == ["downloading", "downloaded", "unpacking", "unpacked"]
        assert not delivery.cleanups

    @pytest.mark.parametrize("name", ["tar with an absolute name", "gzip with a wrong checksum"])
    def test_an_invalid_archive_is_reported_after_the_download(self, delivery: Delivery, name: str) -> None:
        archive, words = HOSTILE[name]
        delivery.storage.archive, delivery.storage.headers = archive, {"Content-Length": str(len(archive))}

        error = delivery.failure(delivery.settings_for(bundle="bundle", site="site"))

        assert isinstance(error, InvalidBundle)
        assert words in " ".join(error.details)
        assert [line.split(" ")[0] for line in delivery.lines] == ["downloading", "downloaded", "unpacking"]
        assert delivery.files == ["bundle"]

    def test_a_failed_download_leaves_nothing(self, delivery: Delivery) -> None:
        def fail() -> None:
            assert delivery.is_unpacking
            raise OSError(errno.ENOSPC, "No space left on device")

        delivery.storage.after = fail

        assert isinstance(delivery.failure(delivery.settings_for(bundle="bundle", site="site")), DownloadFailed)
        assert delivery.files == []

    def test_a_cancel_leaves_nothing(self, delivery: Delivery) -> None:
        def cancel() -> None:
            raise Cancelled("cancelled")

        delivery.cancellation.on_check = cancel

        assert isinstance(delivery.failure(delivery.settings_for(site="site")), Cancelled)
        assert delivery.files == tree(delivery.temporary) == []


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

    @pytest.mark.parametrize("min_received_bytes", [1, 10**9], ids=["overlapped", "after the download"])
    def test_the_hashed_archive_is_unpacked(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, min_received_bytes: int
    ) -> None:
        monkeypatch.setattr(overlap, "MIN_RECEIVED_BYTES", min_received_bytes)
        delivery.storage.headers = {"Content-Length": str(len(ARCHIVE))}
        delivery.storage.after = lambda: self.replace(delivery.temporary)

        delivery(delivery.settings_for(site="site"))

        assert delivery.files == ["site", *(f"site/{name}" for name in SITE)]
        assert delivery.job.downloaded is not None
        assert delivery.job.downloaded.sha256 == hashlib.sha256(ARCHIVE).hexdigest()

    def test_another_archive_is_not_published(self, delivery: Delivery) -> None:
        (delivery.workspace / "bundle").write_text("old")
        delivery.storage.after = lambda: self.replace(delivery.workspace)

        error = delivery.failure(delivery.settings_for(bundle="bundle"))

        assert isinstance(error, DownloadFailed)
        assert error.details[0] == "The temporary files of `bundle` were replaced during the run by something else."
        assert (delivery.workspace / "bundle").read_text() == "old"
        assert (delivery.files, delivery.job.bundle_path) == (["bundle", "moved"], None)

    def test_another_folder_is_not_published(self, delivery: Delivery) -> None:
        delivery.cancellation.on_check = lambda: self.replace(delivery.workspace)

        error = delivery.failure(delivery.settings_for(site="site"))

        assert isinstance(error, InternalError)
        assert not (delivery.workspace / "site").exists()
        assert delivery.job.site_path is None

    def test_other_values_are_not_published(self, delivery: Delivery) -> None:
        delivery.cancellation.on_check = lambda: self.replace(delivery.workspace)

        error = delivery.failure(delivery.settings_for(values="values.yaml"))

        assert isinstance(error, InternalError)
        assert (delivery.files, delivery.job.values_file) == (["moved"], None)


class TestValues:
    def text(self, delivery: Delivery, bundle: Bundle = BUNDLE, **changes: str) -> str:
        delivery.job.bundle = bundle
        delivery(DeliverySettings(values=delivery.target("deploy/values.yaml"), **changes), bundle)
        return (delivery.workspace / "deploy" / "values.yaml").read_text("ascii")

    def test_they_hold_the_link_and_where_it_is_from(self, delivery: Delivery) -> None:
        assert self.text(delivery, version="2024-06-01") == (
            "# Static export of docs.example.com, job se_1. The link is valid until 2026-05-04 13:00:00 UTC.\n"
            "# To get a new link, run the action with job-id: se_1\n"
            "staticExport:\n"
            "  enabled: true\n"
            f'  bundleUrl: "{BUNDLE.url}"\n'
            '  version: "2024-06-01"\n'
        )

    @pytest.mark.parametrize(
        ("bundle", "validity"),
        [
            (BUNDLE, " The link is valid until 2026-05-04 13:00:00 UTC."),
            (Bundle(url=BUNDLE.url, expires_at="in an hour"), " The link is valid until in an hour."),
            (Bundle(url=BUNDLE.url), ""),
        ],
        ids=["known", "text", "none"],
    )
    def test_the_comment_has_the_expiry_if_it_is_known(self, delivery: Delivery, bundle: Bundle, validity: str) -> None:
        assert self.text(delivery, bundle).splitlines()[0] == f"# Static export of docs.example.com, job se_1.{validity}"

    def test_a_job_without_a_domain_is_named_by_its_id(self, delivery: Delivery) -> None:
        delivery.job.domain = None

        assert self.text(delivery).startswith("# Static export, job se_1. The link is valid until ")

    def test_foreign_text_cannot_end_the_comment(self, delivery: Delivery) -> None:
        written = self.text(delivery, Bundle(url=BUNDLE.url, expires_at="soon\nstaticExport: null"))

        assert yaml.safe_load(written) == {"staticExport": {"enabled": True, "bundleUrl": BUNDLE.url}}

    def test_nothing_is_downloaded_for_them(self, delivery: Delivery) -> None:
        self.text(delivery)

        assert delivery.storage.requested == []
        assert delivery.files == ["deploy", "deploy/values.yaml"]
        assert (delivery.job.values_file, delivery.job.downloaded) == ("deploy/values.yaml", None)
        assert delivery.lines == ["wrote deploy/values.yaml"]

    def test_they_hold_the_renewed_link(self, delivery: Delivery) -> None:
        delivery.storage.expired = {BUNDLE.url}

        delivery(delivery.settings_for(bundle="bundle", values="values.yaml"))

        assert "/fresh?X-Signature=n3w" in (delivery.workspace / "values.yaml").read_text()


FRESH = Bundle(
    url="https://storage.example.com/fresh?X-Signature=n3w", expires_at="2026-05-04T14:00:00Z", expires=NOON + timedelta(hours=2)
)


class TestLinkRenewal:
    """A link with less than a minute left is replaced before it is written anywhere."""

    MODES = pytest.mark.parametrize(
        "names", [{}, {"bundle": "b"}, {"site": "s"}, {"values": "v"}, {"bundle": "b", "values": "v"}]
    )

    def requests(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, *results: Bundle | ActionError) -> list[None]:
        """Let the API return or raise these for bundle requests; return the list that gets an item for each."""
        made: list[None] = []

        def make_bundle(job: Job) -> Bundle:
            assert job is delivery.job
            made.append(None)
            result = results[len(made) - 1]
            if isinstance(result, ActionError):
                raise result
            return result

        monkeypatch.setattr(delivery.storage, "make_bundle", make_bundle)
        return made

    @MODES
    @pytest.mark.parametrize(
        ("remaining_seconds", "why"),
        [
            (59.9, "The bundle link expires in 60 s"),
            (0.5, "The bundle link expires in 0.5 s"),
            (0, "The bundle link has expired"),
            (-3600, "The bundle link has expired"),
        ],
    )
    def test_a_link_that_expires_is_replaced(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], remaining_seconds: float, why: str
    ) -> None:
        requests = self.requests(delivery, monkeypatch, FRESH)
        delivery.clock.advance(3600 - remaining_seconds)

        delivery(delivery.settings_for(**names))

        assert (delivery.job.bundle, len(requests), delivery.warnings) == (FRESH, 1, [])
        renewal = [why, f"fresh link {FRESH.url}"]
        assert [line for line in delivery.lines if line in renewal] == renewal
        if "values" in names:
            values = (delivery.workspace / "v").read_text()
            assert FRESH.url in values
            assert "The link is valid until 2026-05-04 14:00:00 UTC." in values
            assert delivery.lines[-1] == "wrote v"

    def test_one_that_expires_during_the_download_is_replaced_after_the_site_is_published(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.requests(delivery, monkeypatch, FRESH)
        delivery.storage.after = lambda: delivery.clock.advance(3600)

        delivery(delivery.all_settings())

        assert delivery.lines[-4:] == [
            "unpacked 3 files to out/site",
            *("The bundle link has expired", f"fresh link {FRESH.url}", "wrote deploy/values.yaml"),
        ]
        assert delivery.job.downloaded is not None
        assert delivery.job.downloaded.sha256 == hashlib.sha256(ARCHIVE).hexdigest()

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
    def test_any_other_is_kept(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], bundle: Bundle, passed: float
    ) -> None:
        requests = self.requests(delivery, monkeypatch)
        delivery.clock.advance(passed)

        delivery(delivery.settings_for(**names), bundle)

        assert (delivery.job.bundle, requests) == (bundle, [])

    def test_a_fresh_link_that_expires_too_is_used(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        short = replace(FRESH, expires=NOON + timedelta(hours=1, seconds=2))
        requests = self.requests(delivery, monkeypatch, short)
        delivery.clock.advance(3600)

        delivery(delivery.settings_for(values="v"))

        assert (delivery.job.bundle, len(requests), delivery.warnings) == (short, 1, [])

    @MODES
    @pytest.mark.parametrize(
        ("error", "remedy"),
        [
            (
                Unavailable("the API is down", details=("Last error: 503.",)),
                "A later run with `job-id: se_1` makes a new one.",
            ),
            (NotFound("the job is gone", remedy="Ask."), "Ask."),
        ],
    )
    def test_one_that_cannot_be_replaced_is_kept_with_a_warning(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], error: ActionError, remedy: str
    ) -> None:
        self.requests(delivery, monkeypatch, error)
        delivery.clock.advance(3600)

        delivery(delivery.settings_for(**names))

        assert delivery.job.bundle == BUNDLE
        assert delivery.warnings == [
            [
                "Static export of docs.example.com: the bundle link has expired or is about to, and could not be replaced.",
                f"{error.summary[0].upper()}{error.summary[1:]}.",
                *error.details,
                f"The old link is kept. {remedy}",
            ]
        ]
        if "values" in names:
            assert BUNDLE.url in (delivery.workspace / "v").read_text()

    def test_a_cancel_ends_it(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests(delivery, monkeypatch, Cancelled("cancelled"))
        delivery.clock.advance(3600)

        assert isinstance(delivery.failure(delivery.settings_for(values="v")), Cancelled)
        assert (delivery.files, delivery.warnings) == ([], [])

    def test_it_is_a_phase_of_its_own(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests(delivery, monkeypatch, FRESH)
        delivery.clock.advance(3600)

        delivery(delivery.settings_for(bundle="b"))

        assert [phase.name for phase in delivery.job.phases] == [DOWNLOAD, BUNDLE_PHASE]

    def test_at_the_end_of_the_run_the_values_file_is_written_again(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        requests = self.requests(delivery, monkeypatch, FRESH)
        settings = delivery.settings_for(values="v")
        delivery(settings)
        phases, delivery.job.ended_at = [*delivery.job.phases], delivery.clock.monotonic()
        delivery.clock.advance(3600)

        assert delivery.renew_link(settings)

        assert FRESH.url in (delivery.workspace / "v").read_text()
        assert (delivery.job.bundle, len(requests), delivery.job.phases) == (FRESH, 1, phases)

    def test_if_the_values_file_cannot_be_written_again_both_keep_the_old_link(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.requests(delivery, monkeypatch, FRESH)
        settings = delivery.settings_for(values="v")
        delivery(settings)
        delivery.clock.advance(3600)
        with files_of_at_most(1):
            assert not delivery.renew_link(settings)

        assert delivery.job.bundle == BUNDLE
        assert BUNDLE.url in (delivery.workspace / "v").read_text()
        assert len(delivery.warnings) == 1


class TestTogether:
    def test_without_targets_nothing_is_done(self, delivery: Delivery) -> None:
        delivery(DeliverySettings(scratch=delivery.temporary))

        assert (delivery.storage.requested, delivery.lines, delivery.files, delivery.warnings) == ([], [], [], [])

    def test_one_download_delivers_all_three(self, delivery: Delivery) -> None:
        delivery(delivery.all_settings())

        assert delivery.storage.requested == [BUNDLE.url]
        assert delivery.files == [
            *("deploy", "deploy/values.yaml", "out", "out/bundle.tar", "out/site"),
            *(f"out/site/{name}" for name in SITE),
        ]
        assert [line.split(" ")[0] for line in delivery.lines] == ["downloading", "downloaded", "unpacking", "unpacked", "wrote"]

    def test_each_result_is_recorded_before_the_next_begins(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        job, seen = delivery.job, []

        def look(step: str) -> None:
            there = (job.downloaded and "downloaded", job.bundle_path, job.site_path, job.values_file)
            seen.append((step, [name for name in there if name]))

        def values_text(**_: object) -> str:
            look("values")
            return ""

        delivery.storage.before = lambda: look("fetching")
        delivery.cancellation.on_check = lambda: look("unpacking") if delivery.is_unpacking else None
        monkeypatch.setattr(helm_values, "values_text", values_text)

        delivery(delivery.all_settings())

        look("end")
        assert list(dict.fromkeys((step, *there) for step, there in seen)) == [
            ("fetching",),
            ("unpacking", "downloaded", "out/bundle.tar"),
            ("values", "downloaded", "out/bundle.tar", "out/site"),
            ("end", "downloaded", "out/bundle.tar", "out/site", "deploy/values.yaml"),
        ]

    def test_an_archive_that_cannot_be_unpacked_is_kept_and_ends_the_delivery(self, delivery: Delivery) -> None:
        delivery.storage.archive = SEVEN_ZIP

        error = delivery.failure(delivery.all_settings())

        assert isinstance(error, InvalidBundle)
        assert delivery.files == ["out", "out/bundle.tar"]
        assert delivery.job.bundle_path == "out/bundle.tar"
        assert (delivery.job.site_path, delivery.job.values_file) == (None, None)

    def test_archive_and_site_stay_when_the_values_cannot_be_written(self, delivery: Delivery) -> None:
        (delivery.workspace / "deploy").touch()

        error = delivery.failure(delivery.all_settings())

        assert isinstance(error, InternalError)
        assert (delivery.job.bundle_path, delivery.job.site_path) == ("out/bundle.tar", "out/site")
        assert delivery.job.values_file is None

    def test_while_there_may_be_parts_to_clean_away_that_is_known(self, delivery: Delivery) -> None:
        seen: list[bool] = []
        delivery.storage.before = delivery.cancellation.on_check = lambda: seen.append(bool(delivery.cleanups))

        delivery(delivery.all_settings())

        assert {*seen} == {True}
        assert not delivery.cleanups


class TestDiskFaults:
    """An `OSError` becomes the failure of its step, with different causes for a full and a faulty disk."""

    KINDS = pytest.mark.parametrize(
        ("error", "reported", "cause"),
        [
            (OSError(errno.ENOSPC, "No space left on device"), "No space left on device", FULL),
            (OSError(errno.EDQUOT, "Disk quota exceeded"), "Disk quota exceeded", FULL),
            (OSError(errno.EFBIG, "File too large"), "File too large", FULL),
            (OSError(errno.EIO, "Input/output error"), "Input/output error", BROKEN),
            (PermissionError(errno.EACCES, "Permission denied"), "Permission denied", DENIED_CAUSE),
            (PermissionError(errno.EPERM, "Operation not permitted"), "Operation not permitted", DENIED_CAUSE),
            (OSError(), "OSError", BROKEN),
        ],
        ids=lambda value: value.strerror or "unnamed" if isinstance(value, OSError) else "",
    )

    def check(self, error: ActionError, summary: str, reported: str, cause: str) -> None:
        assert (error.summary, error.details, error.cause) == (summary, (f"The system reported: {reported}.",), cause)
        remedies = {FULL: "Free space in an earlier step", BROKEN: "Fix the runner", DENIED_CAUSE: DENIED_REMEDY}
        assert error.remedy.startswith(remedies[cause])

    @KINDS
    def test_a_download_that_cannot_be_saved(self, delivery: Delivery, error: OSError, reported: str, cause: str) -> None:
        def fail() -> None:
            raise error

        delivery.storage.after = fail

        failure = delivery.failure(delivery.all_settings())

        assert isinstance(failure, DownloadFailed)
        assert failure.__cause__ is error
        self.check(failure, "the bundle cannot be saved", reported, cause)
        assert delivery.files == []
        assert delivery.job.downloaded is None

    @KINDS
    def test_a_site_that_cannot_be_written(self, delivery: Delivery, error: OSError, reported: str, cause: str) -> None:
        def fail() -> None:
            if delivery.is_unpacking:
                raise error

        delivery.cancellation.on_check = fail

        failure = delivery.failure(delivery.all_settings())

        assert isinstance(failure, InternalError)
        self.check(failure, "the site cannot be written to out/site", reported, cause)
        assert delivery.files == ["out", "out/bundle.tar"]

    @KINDS
    def test_values_that_cannot_be_written(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, error: OSError, reported: str, cause: str
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(Staged, "open", fail)

        failure = delivery.failure(delivery.settings_for(values="deploy/values.yaml"))

        assert isinstance(failure, InternalError)
        self.check(failure, "the Helm values file cannot be written to deploy/values.yaml", reported, cause)
        assert delivery.files == []

    def test_a_disk_that_is_full_only_when_the_archive_is_closed(self, delivery: Delivery) -> None:
        with files_of_at_most(len(ARCHIVE) - 1):
            failure = delivery.failure(delivery.settings_for(site="site"))

        self.check(failure, "the bundle cannot be saved", "File too large", FULL)
        assert delivery.files == tree(delivery.temporary) == []


class TestInterference:
    """Another process uses the same path. The failure says so, and leaves the other files as they are."""

    def check(self, delivery: Delivery, names: dict[str, str], summary: str, detail: str) -> None:
        error = delivery.failure(delivery.settings_for(**names))

        assert (error.summary, error.details[0]) == (summary, detail)
        assert error.cause.startswith("Another process on the runner")
        assert error.remedy == "Use a path that nothing else writes to, and run the workflow again."
        assert (delivery.job.bundle_path, delivery.job.site_path, delivery.job.values_file) == (None, None, None)

    @pytest.mark.parametrize(
        ("names", "summary"),
        [
            ({"bundle": "x/name"}, "the bundle cannot be saved"),
            ({"values": "x/name"}, "the Helm values file cannot be written to x/name"),
            ({"site": "x/name"}, "the site cannot be written to x/name"),
        ],
    )
    def test_a_parent_folder_that_became_a_file(self, delivery: Delivery, names: dict[str, str], summary: str) -> None:
        (delivery.workspace / "x").touch()

        is_file = "`x/name`, or a folder above it, is now a file: something else created it during the run."
        self.check(delivery, names, summary, is_file)
        assert delivery.files == ["x"]

    @pytest.mark.parametrize(
        ("names", "summary"),
        [
            ({"bundle": "name"}, "the bundle cannot be saved"),
            ({"values": "name"}, "the Helm values file cannot be written to name"),
        ],
    )
    def test_a_file_that_became_a_folder(self, delivery: Delivery, names: dict[str, str], summary: str) -> None:
        delivery.cancellation.on_check = lambda: (delivery.workspace / "name").mkdir(exist_ok=True)

        self.check(delivery, names, summary, "`name` is now a folder: something else created it during the run.")
        assert delivery.files == ["name"]

    def test_a_site_that_was_filled(self, delivery: Delivery) -> None:
        def fill() -> None:
            (delivery.workspace / "site").mkdir()
            (delivery.workspace / "site" / "other.html").touch()

        delivery.storage.after = fill

        filled = "`site` is no longer empty: something else wrote there during the run."
        self.check(delivery, {"site": "site"}, "the site cannot be written to site", filled)
        assert delivery.files == ["site", "site/other.html"]

    @pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere")], ids=["file", "link"])
    def test_a_site_that_became_something_else(self, delivery: Delivery, make: Callable[[Path], None]) -> None:
        delivery.storage.after = lambda: make(delivery.workspace / "site")

        is_file = "`site`, or a folder above it, is now a file: something else created it during the run."
        self.check(delivery, {"site": "site"}, "the site cannot be written to site", is_file)
        assert [path.name for path in delivery.workspace.iterdir()] == ["site"]

    @pytest.mark.parametrize(
        ("names", "summary"),
        [
            ({"bundle": "x/name"}, "the bundle cannot be saved"),
            ({"values": "x/name"}, "the Helm values file cannot be written to x/name"),
            ({"site": "x/name"}, "the site cannot be written to x/name"),
        ],
    )
    def test_a_parent_folder_that_was_removed(self, delivery: Delivery, names: dict[str, str], summary: str) -> None:
        delivery.cancellation.on_check = lambda: shutil.rmtree(delivery.workspace / "x", ignore_errors=True)

        removed = "The temporary files of `x/name` were removed during the run by something else."
        self.check(delivery, names, summary, removed)
        assert delivery.files == []


def full_once(code: int = errno.ENOSPC) -> Callable[[], None]:
    """Return a function that fails the first time that it is called, as on a full disk."""
    errors = [OSError(code, os.strerror(code))]

    def fail() -> None:
        if errors:
            raise errors.pop()

    return fail


class TestDiskSpace:
    """A disk that is too small is reported before the download."""

    SIZE = len(ARCHIVE)

    def disk(self, monkeypatch: pytest.MonkeyPatch, free: Callable[[Path], int], *, total: int = 1) -> None:
        """Fake the free and total bytes of a disk, but not for an open folder."""
        statvfs = os.statvfs

        def fake(path: Path | int) -> object:
            if isinstance(path, int):
                return statvfs(path)
            return SimpleNamespace(f_bavail=free(path), f_blocks=total, f_frsize=1, f_files=0, f_favail=0)

        monkeypatch.setattr(os, "statvfs", fake)

    @pytest.fixture(autouse=True)
    def _size_is_announced(self, delivery: Delivery) -> None:
        delivery.storage.headers = {"Content-Length": str(self.SIZE)}

    @pytest.mark.parametrize(
        ("names", "needed"),
        [({"bundle": "out/bundle"}, SIZE), ({"site": "a/b/site"}, 2 * SIZE), ({"bundle": "bundle", "site": "site"}, 2 * SIZE)],
        ids=["bundle", "site", "both"],
    )
    def test_an_archive_needs_its_size_and_a_site_as_much_again(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, names: dict[str, str], needed: int
    ) -> None:
        self.disk(monkeypatch, lambda _: needed - 1)

        error = delivery.failure(delivery.settings_for(**names))

        assert isinstance(error, DownloadFailed)
        assert error.summary == "the bundle does not fit on the runner's disk"
        assert error.cause == FULL
        assert error.remedy == "Free space in an earlier step, or use a runner with a larger disk."
        assert delivery.files == tree(delivery.temporary) == []
        assert delivery.storage.requested == [BUNDLE.url]

        self.disk(monkeypatch, lambda _: needed)
        delivery(delivery.settings_for(**names))

    def test_the_details_say_how_much_is_needed_and_free(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk(monkeypatch, lambda _: 512)

        archive, site = (delivery.failure(delivery.settings_for(**{name: "out"})) for name in ("bundle", "site"))

        assert archive.details == ("It needs at least 10.0 KiB; 512 bytes are free.",)
        assert site.details == ("It needs at least 20.0 KiB (archive and unpacked site); 512 bytes are free.",)

    def test_the_reserved_space_is_needed_too(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        total = 10 * 512
        self.disk(monkeypatch, lambda _: 2 * self.SIZE + 511, total=total)

        error = delivery.failure(delivery.settings_for(site="site"))

        detail = "It needs at least 20.0 KiB (archive and unpacked site); 20.5 KiB are free, of which 512 bytes must stay free."
        assert isinstance(error, DownloadFailed)
        assert error.details == (detail,)
        delivery(delivery.settings_for(bundle="bundle"))
        self.disk(monkeypatch, lambda _: 2 * self.SIZE + 512, total=total)
        delivery(delivery.settings_for(site="site"))

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

        error = delivery.failure(delivery.settings_for(site="out/site"))

        assert isinstance(error, DownloadFailed)

    @pytest.mark.usefixtures("_two_disks")
    def test_a_temporary_folder_that_is_too_small_is_not_used(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk(monkeypatch, lambda folder: self.SIZE - 1 if folder == delivery.temporary else 2 * self.SIZE)

        delivery(delivery.settings_for(site="out/site"))

        assert delivery.files == ["out", "out/site", *(f"out/site/{name}" for name in SITE)]
        assert tree(delivery.temporary) == []
        assert delivery.storage.requested == [BUNDLE.url] * 2
        assert delivery.lines.count("moved") == 1

    @pytest.mark.usefixtures("_two_disks")
    def test_a_temporary_folder_that_fills_up_is_not_used(self, delivery: Delivery) -> None:
        delivery.storage.after = full_once()

        delivery(delivery.settings_for(site="out/site"))

        assert delivery.job.site_path == "out/site"
        assert tree(delivery.temporary) == []
        assert (len(delivery.storage.requested), delivery.lines.count("moved")) == (2, 1)

    def test_a_download_is_not_moved_within_one_disk(self, delivery: Delivery) -> None:
        delivery.storage.after = full_once()

        error = delivery.failure(delivery.settings_for(site="out/site"))

        assert (error.summary, error.cause) == ("the bundle cannot be saved", FULL)
        assert (len(delivery.storage.requested), "moved" in delivery.lines) == (1, False)

    @pytest.mark.usefixtures("_two_disks")
    def test_a_download_is_not_moved_from_a_faulty_disk(self, delivery: Delivery) -> None:
        delivery.storage.after = full_once(errno.EIO)

        error = delivery.failure(delivery.settings_for(site="out/site"))

        assert (error.summary, error.cause) == ("the bundle cannot be saved", BROKEN)
        assert len(delivery.storage.requested) == 1

    def test_an_archive_of_unknown_size_is_downloaded(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        delivery.storage.headers = {}
        self.disk(monkeypatch, lambda _: 0)

        delivery(delivery.settings_for(bundle="bundle"))

        assert delivery.job.bundle_path == "bundle"


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

    def refuse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "chown", refuse)

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

    @pytest.mark.usefixtures("given")
    def test_a_chown_error_is_warned_of_once(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refuse(monkeypatch)
        temporary = OutputPath(path=delivery.temporary / "bundle", root=delivery.temporary, name=f"{delivery.temporary}/bundle")

        delivery(DeliverySettings(bundle=temporary, site=delivery.target("site"), values=delivery.target("values.yaml")))

        assert delivery.warnings == [
            [
                "The action's files could not be given to the workspace's owner.",
                "The file system reported: Operation not permitted.",
                "Later steps can read them, but may not be able to change or delete them.",
            ]
        ]
        assert delivery.job.values_file == "values.yaml"

    def test_without_an_owner_there_is_no_warning(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(f"{deliver.__module__}.owner_of", lambda _root: None)
        self.refuse(monkeypatch)

        delivery(delivery.all_settings())

        assert delivery.warnings == []
