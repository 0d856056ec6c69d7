"""A bundle is fetched, unpacked and written as Helm values, as far as that is asked for; what fails leaves no half result."""

import contextlib
import errno
import gzip
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from docs_platform_action.bundle import download, helm_values, overlap
from docs_platform_action.bundle.deliver import deliver
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
    TooFewPages,
)
from docs_platform_action.events import Events
from docs_platform_action.inputs.settings import DeliverySettings, OutputPath
from docs_platform_action.job import DOWNLOAD, UNPACK, Job
from docs_platform_action.models import EXPORT, Bundle, Downloaded
from docs_platform_action.ownership import Owner
from docs_platform_action.redaction import Redactor
from tests.archives import HOSTILE, SEVEN_ZIP, SMALL_SITE, tar
from tests.unit.fakes import NOON, FakeClock, context
from tests.unit.report.test_outputs import files_of_at_most

BUNDLE = Bundle(
    url="https://storage.example.com/se_1/bundle.tar?X-Signature=s3cr3t",
    expires_at="2026-05-04T13:00:00Z",
    expires=NOON + timedelta(hours=1),
)
ARCHIVE = gzip.compress(tar(SMALL_SITE), compresslevel=0)
"""As large as the tar archive, but no storage is asked for it twice, as for one that may have been decompressed on its way."""

FULL = "The runner's disk is full or too small."
BROKEN = "The runner's disk is faulty, or another process is using it."

NO_SECRETS = Redactor([])


class Shelf:
    """A storage that holds one archive, and the API that makes links to it; `before` is called when the archive is asked for."""

    def __init__(self, archive: bytes) -> None:
        self.archive = archive
        self.headers: Mapping[str, str] = {}
        self.dead: set[str] = set()
        self.asked: list[str] = []
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def make_bundle(self, job: Job) -> Bundle:
        assert job.job_id == "se_1"
        return Bundle(url="https://storage.example.com/fresh?X-Signature=n3w")

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str], *_: object, within_seconds: float) -> Iterator[StorageResponse]:
        assert within_seconds > 0
        assert not headers
        self.asked.append(url)
        self.before()
        yield StorageResponse(
            redactor=NO_SECRETS,
            status=403 if url in self.dead else 200,
            headers=self.headers,
            address="storage",
            pieces=self._pieces(),
        )

    def _pieces(self) -> Iterator[bytes]:
        yield self.archive
        self.after()


class HookedCancellation(Cancellation):
    """Calls `on_check` each time that it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.on_check: Callable[[], None] = lambda: None

    def check(self) -> None:
        self.on_check()
        super().check()


class Told(Events):
    """Tells the events of a delivery in lines, from what the job holds by then, as a log does."""

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
    """A workspace, the runner's temporary folder, and a bundle on its way there."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.temporary = folder / "workspace", folder / "temporary"
        self.workspace.mkdir()
        self.temporary.mkdir()
        self.shelf = Shelf(ARCHIVE)
        self.clock = FakeClock()
        self.clock.cancellation = self.cancellation = HookedCancellation()
        self.record = Job(mode=EXPORT, domain="docs.example.com", job_id="se_1", status="completed", bundle=BUNDLE)
        self.events = Told()
        self.cleanups = Cleanups()

    @property
    def is_unpacking(self) -> bool:
        """Whether there is the part of a site."""
        return any(part.is_dir() for part in self.workspace.rglob(".*.part"))

    def place(self, name: str) -> OutputPath:
        return OutputPath(path=self.workspace / name, root=self.workspace, name=name)

    def asked(self, **names: str) -> DeliverySettings:
        return DeliverySettings(**{name: self.place(value) for name, value in names.items()}, scratch=self.temporary)

    def everything(self) -> DeliverySettings:
        return self.asked(bundle="out/bundle.tar", site="out/site", values="deploy/values.yaml")

    def __call__(self, settings: DeliverySettings, bundle: Bundle = BUNDLE) -> None:
        self.record.bundle = bundle
        shared = context(self.clock, self.events, api=self.shelf)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(download, "request_bundle", self.shelf.get)
            deliver(self.record, settings, replace(shared, cleanups=self.cleanups))

    def failure(self, settings: DeliverySettings, bundle: Bundle = BUNDLE) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self(settings, bundle)
        assert not self.cleanups
        return caught.value

    @property
    def told(self) -> list[str]:
        return self.events.lines

    @property
    def warnings(self) -> list[list[str]]:
        return self.events.warnings

    @property
    def files(self) -> list[str]:
        """What is in the workspace."""
        return tree(self.workspace)


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def delivery(tmp_path: Path) -> Delivery:
    return Delivery(tmp_path)


SITE = ["assets", "guide", "guide/empty.txt", "guide/home.html", "guide/start.html", "index.html", "latest"]


class TestBundle:
    def test_it_is_saved_as_it_came(self, delivery: Delivery) -> None:
        delivery(delivery.asked(bundle="out/bundle.tar"))

        assert (delivery.workspace / "out" / "bundle.tar").read_bytes() == ARCHIVE
        assert delivery.files == ["out", "out/bundle.tar"]

    def test_what_is_known_of_it_is_kept(self, delivery: Delivery) -> None:
        delivery(delivery.asked(bundle="out/bundle.tar"))

        digest = hashlib.sha256(ARCHIVE).hexdigest()
        assert delivery.record.downloaded == Downloaded(size=len(ARCHIVE), sha256=digest)
        assert delivery.record.bundle_path == "out/bundle.tar"
        assert (delivery.record.site_path, delivery.record.values_file) == (None, None)
        assert delivery.told == ["downloading", f"downloaded {len(ARCHIVE)} bytes to out/bundle.tar"]

    def test_one_of_a_kind_that_cannot_be_opened_is_saved_too(self, delivery: Delivery) -> None:
        delivery.shelf.archive = SEVEN_ZIP

        delivery(delivery.asked(bundle="bundle"))

        assert (delivery.workspace / "bundle").read_bytes() == SEVEN_ZIP

    def test_one_that_is_there_is_replaced_only_by_a_whole_one(self, delivery: Delivery) -> None:
        (delivery.workspace / "bundle").write_text("old")
        seen: list[str] = []
        delivery.shelf.after = lambda: seen.append((delivery.workspace / "bundle").read_text())

        delivery(delivery.asked(bundle="bundle"))

        assert seen == ["old"]
        assert (delivery.workspace / "bundle").read_bytes() == ARCHIVE

    def test_a_dead_link_is_made_anew(self, delivery: Delivery) -> None:
        delivery.shelf.dead = {BUNDLE.url}

        delivery(delivery.asked(bundle="bundle"))

        assert delivery.shelf.asked == [BUNDLE.url, "https://storage.example.com/fresh?X-Signature=n3w"]
        assert delivery.told[1:3] == [
            "The storage rejected the link with 403",
            "fresh link https://storage.example.com/fresh?X-Signature=n3w",
        ]


class TestSite:
    def test_it_is_unpacked_and_the_archive_is_not_kept(self, delivery: Delivery) -> None:
        delivery(delivery.asked(site="site"))

        assert delivery.files == ["site", *(f"site/{name}" for name in SITE)]
        assert (delivery.workspace / "site" / "index.html").read_bytes() == SMALL_SITE.files["index.html"]

    def test_what_is_known_of_it_is_kept(self, delivery: Delivery) -> None:
        delivery(delivery.asked(site="out/site"))

        record = delivery.record
        assert (record.bundle_path, record.site_path, record.site_files) == (None, "out/site", 3)
        assert record.downloaded is not None
        assert delivery.told == [
            "downloading",
            f"downloaded {len(ARCHIVE)} bytes to None",
            "unpacking",
            "unpacked 3 files to out/site",
        ]
        assert delivery.events.unpacked_so_far == (3, 613)

    def test_its_archive_waits_in_the_temporary_folder_which_is_left_clean(self, delivery: Delivery) -> None:
        seen: list[tuple[int, list[str]]] = []
        delivery.shelf.after = lambda: seen.append((len(tree(delivery.temporary)), delivery.files))

        delivery(delivery.asked(site="site"))

        assert seen == [(1, [])]
        assert tree(delivery.temporary) == []

    def test_without_one_it_waits_hidden_beside_the_site(self, delivery: Delivery) -> None:
        seen: list[str] = []
        delivery.shelf.after = lambda: seen.extend(delivery.files)

        delivery(DeliverySettings(site=delivery.place("out/site")))

        folder, part = seen
        assert folder == "out"
        assert part.startswith("out/.bundle.")
        assert delivery.files == ["out", "out/site", *(f"out/site/{name}" for name in SITE)]

    def test_an_empty_folder_is_filled(self, delivery: Delivery) -> None:
        (delivery.workspace / "site").mkdir()

        delivery(delivery.asked(site="site"))

        assert delivery.files == ["site", *(f"site/{name}" for name in SITE)]

    def test_nothing_of_a_damaged_one_is_left(self, delivery: Delivery) -> None:
        delivery.shelf.archive = ARCHIVE[:4000]

        error = delivery.failure(delivery.asked(site="out/site"))

        assert isinstance(error, InvalidBundle)
        assert delivery.files == tree(delivery.temporary) == []
        assert (delivery.record.site_path, delivery.record.site_files) == (None, None)

    def test_a_cancel_ends_the_unpacking_and_leaves_nothing(self, delivery: Delivery) -> None:
        def cancel() -> None:
            raise Cancelled("cancelled")

        delivery.cancellation.on_check = cancel

        assert isinstance(delivery.failure(delivery.asked(site="site")), Cancelled)
        assert delivery.files == tree(delivery.temporary) == []


class TestMinPages:
    """The small site has two `.html` files, and a link to one. Here the API has reported no page count."""

    def settings(self, delivery: Delivery, min_pages: int) -> DeliverySettings:
        return replace(delivery.everything(), min_pages=min_pages)

    def test_a_site_with_as_many_html_files_is_delivered_and_its_archive_after_the_count(self, delivery: Delivery) -> None:
        delivery(self.settings(delivery, 2))

        assert delivery.files == [
            *("deploy", "deploy/values.yaml", "out", "out/bundle.tar", "out/site"),
            *(f"out/site/{name}" for name in SITE),
        ]
        assert (delivery.workspace / "out" / "bundle.tar").read_bytes() == ARCHIVE
        assert (delivery.record.bundle_path, delivery.record.site_path) == ("out/bundle.tar", "out/site")
        assert delivery.told == [
            *("downloading", f"downloaded {len(ARCHIVE)} bytes to None"),
            *("unpacking", "saved out/bundle.tar", "unpacked 3 files to out/site"),
            "wrote deploy/values.yaml",
        ]

    def test_of_one_with_fewer_nothing_is_left_not_even_the_archive(self, delivery: Delivery) -> None:
        error = delivery.failure(self.settings(delivery, 3))

        assert isinstance(error, TooFewPages)
        assert error.summary == "its bundle has 2 `.html` files, fewer than the 3 pages that `min-pages` asks for"
        assert "no usable `pageCount`" in error.details[0]
        assert delivery.files == tree(delivery.temporary) == []
        assert (delivery.record.bundle_path, delivery.record.site_path, delivery.record.values_file) == (None, None, None)

    def test_a_damaged_archive_is_not_kept_because_its_pages_are_not_counted(self, delivery: Delivery) -> None:
        delivery.shelf.archive = ARCHIVE[:4000]

        error = delivery.failure(self.settings(delivery, 1))

        assert isinstance(error, InvalidBundle)
        assert delivery.files == []

    def test_an_archive_that_cannot_be_saved_in_the_end_says_so(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(_path: Path, _goal: Path) -> Path:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "replace", refuse)

        error = delivery.failure(self.settings(delivery, 2))

        assert error.summary == "the bundle cannot be saved"
        assert delivery.files == []


class TestSiteBehindTheDownload:
    """Of a large bundle the site is unpacked as it comes; here each is large."""

    @pytest.fixture(autouse=True)
    def large(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(overlap, "MIN_RECEIVED_BYTES", 1)
        delivery.shelf.headers = {"Content-Length": str(len(ARCHIVE))}

    def test_it_is_begun_before_the_bundle_is_there_and_told_as_ever(self, delivery: Delivery) -> None:
        seen: list[bool] = []
        delivery.shelf.after = lambda: seen.append(delivery.is_unpacking)

        delivery(delivery.asked(bundle="out/bundle.tar", site="out/site"))

        assert seen == [True]
        assert delivery.files == ["out", "out/bundle.tar", "out/site", *(f"out/site/{name}" for name in SITE)]
        assert (delivery.record.site_path, delivery.record.site_files) == ("out/site", 3)
        assert [told.split(" ")[0] for told in delivery.told] == ["downloading", "downloaded", "unpacking", "unpacked"]
        assert not delivery.cleanups

    @pytest.mark.parametrize("name", ["tar with an absolute name", "gzip with a wrong checksum"])
    def test_what_is_wrong_with_it_is_told_after_the_download(self, delivery: Delivery, name: str) -> None:
        archive, words = HOSTILE[name]
        delivery.shelf.archive, delivery.shelf.headers = archive, {"Content-Length": str(len(archive))}

        error = delivery.failure(delivery.asked(bundle="bundle", site="site"))

        assert isinstance(error, InvalidBundle)
        assert words in " ".join(error.details)
        assert [told.split(" ")[0] for told in delivery.told] == ["downloading", "downloaded", "unpacking"]
        assert delivery.files == ["bundle"]

    def test_nothing_of_it_is_left_when_the_download_fails(self, delivery: Delivery) -> None:
        def fail() -> None:
            assert delivery.is_unpacking
            raise OSError(errno.ENOSPC, "No space left on device")

        delivery.shelf.after = fail

        assert isinstance(delivery.failure(delivery.asked(bundle="bundle", site="site")), DownloadFailed)
        assert delivery.files == []

    def test_a_cancel_leaves_nothing(self, delivery: Delivery) -> None:
        def cancel() -> None:
            raise Cancelled("cancelled")

        delivery.cancellation.on_check = cancel

        assert isinstance(delivery.failure(delivery.asked(site="site")), Cancelled)
        assert delivery.files == tree(delivery.temporary) == []


class TestValues:
    def text(self, delivery: Delivery, bundle: Bundle = BUNDLE, **changes: str) -> str:
        delivery.record.bundle = bundle
        delivery(DeliverySettings(values=delivery.place("deploy/values.yaml"), **changes), bundle)
        return (delivery.workspace / "deploy" / "values.yaml").read_text("ascii")

    def test_they_hold_the_link_and_tell_where_it_is_from(self, delivery: Delivery) -> None:
        assert self.text(delivery, version="2024-06-01") == (
            "# Static export of docs.example.com, job se_1. The link is valid until 2026-05-04 13:00:00 UTC.\n"
            "# To get a new link, run the action with job-id: se_1\n"
            "staticExport:\n"
            "  enabled: true\n"
            f'  bundleUrl: "{BUNDLE.url}"\n'
            '  version: "2024-06-01"\n'
        )

    @pytest.mark.parametrize(
        ("bundle", "told"),
        [
            (BUNDLE, " The link is valid until 2026-05-04 13:00:00 UTC."),
            (Bundle(url=BUNDLE.url, expires_at="in an hour"), " The link is valid until in an hour."),
            (Bundle(url=BUNDLE.url), ""),
        ],
        ids=["known", "text", "none"],
    )
    def test_an_expiry_is_told_as_far_as_it_is_known(self, delivery: Delivery, bundle: Bundle, told: str) -> None:
        assert self.text(delivery, bundle).splitlines()[0] == f"# Static export of docs.example.com, job se_1.{told}"

    def test_a_job_without_a_domain_is_told_by_its_id(self, delivery: Delivery) -> None:
        delivery.record.domain = None

        assert self.text(delivery).startswith("# Static export, job se_1. The link is valid until ")

    def test_foreign_text_in_the_comment_ends_no_line(self, delivery: Delivery) -> None:
        written = self.text(delivery, Bundle(url=BUNDLE.url, expires_at="soon\nstaticExport: null"))

        assert yaml.safe_load(written) == {"staticExport": {"enabled": True, "bundleUrl": BUNDLE.url}}

    def test_nothing_is_fetched_for_them(self, delivery: Delivery) -> None:
        self.text(delivery)

        assert delivery.shelf.asked == []
        assert delivery.files == ["deploy", "deploy/values.yaml"]
        assert (delivery.record.values_file, delivery.record.downloaded) == ("deploy/values.yaml", None)
        assert delivery.told == ["wrote deploy/values.yaml"]

    def test_a_link_that_was_made_anew_for_the_download_is_the_one_they_hold(self, delivery: Delivery) -> None:
        delivery.shelf.dead = {BUNDLE.url}

        delivery(delivery.asked(bundle="bundle", values="values.yaml"))

        assert "/fresh?X-Signature=n3w" in (delivery.workspace / "values.yaml").read_text()


class TestTogether:
    def test_nothing_asked_is_nothing_done(self, delivery: Delivery) -> None:
        delivery(DeliverySettings(scratch=delivery.temporary))

        assert (delivery.shelf.asked, delivery.told, delivery.files, delivery.warnings) == ([], [], [], [])

    def test_all_three_are_there_of_one_download(self, delivery: Delivery) -> None:
        delivery(delivery.everything())

        assert delivery.shelf.asked == [BUNDLE.url]
        assert delivery.files == [
            *("deploy", "deploy/values.yaml", "out", "out/bundle.tar", "out/site"),
            *(f"out/site/{name}" for name in SITE),
        ]
        assert [told.split(" ")[0] for told in delivery.told] == ["downloading", "downloaded", "unpacking", "unpacked", "wrote"]

    def test_each_is_on_record_before_the_next_begins(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        record, seen = delivery.record, []

        def look(step: str) -> None:
            there = (record.downloaded and "downloaded", record.bundle_path, record.site_path, record.values_file)
            seen.append((step, [name for name in there if name]))

        def values_text(**_: object) -> str:
            look("values")
            return ""

        delivery.shelf.before = lambda: look("fetching")
        delivery.cancellation.on_check = lambda: look("unpacking") if delivery.is_unpacking else None
        monkeypatch.setattr(helm_values, "values_text", values_text)

        delivery(delivery.everything())

        look("end")
        assert list(dict.fromkeys((step, *there) for step, there in seen)) == [
            ("fetching",),
            ("unpacking", "downloaded", "out/bundle.tar"),
            ("values", "downloaded", "out/bundle.tar", "out/site"),
            ("end", "downloaded", "out/bundle.tar", "out/site", "deploy/values.yaml"),
        ]

    def test_the_archive_stays_when_it_cannot_be_unpacked_and_nothing_comes_after_it(self, delivery: Delivery) -> None:
        delivery.shelf.archive = SEVEN_ZIP

        error = delivery.failure(delivery.everything())

        assert isinstance(error, InvalidBundle)
        assert delivery.files == ["out", "out/bundle.tar"]
        assert delivery.record.bundle_path == "out/bundle.tar"
        assert (delivery.record.site_path, delivery.record.values_file) == (None, None)

    def test_archive_and_site_stay_when_the_values_cannot_be_written(self, delivery: Delivery) -> None:
        (delivery.workspace / "deploy").touch()

        error = delivery.failure(delivery.everything())

        assert isinstance(error, InternalError)
        assert (delivery.record.bundle_path, delivery.record.site_path) == ("out/bundle.tar", "out/site")
        assert delivery.record.values_file is None

    def test_while_there_may_be_parts_to_clean_away_that_is_known(self, delivery: Delivery) -> None:
        seen: list[bool] = []
        delivery.shelf.before = delivery.cancellation.on_check = lambda: seen.append(bool(delivery.cleanups))

        delivery(delivery.everything())

        assert {*seen} == {True}
        assert not delivery.cleanups


class TestDiskFaults:
    """An `OSError` of a step becomes the step's failure; a full disk is told from a broken one."""

    KINDS = pytest.mark.parametrize(
        ("error", "said", "cause"),
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

    def check(self, error: ActionError, summary: str, said: str, cause: str) -> None:
        assert (error.summary, error.details, error.cause) == (summary, (f"The system reported: {said}.",), cause)
        remedies = {FULL: "Free space in an earlier step", BROKEN: "Fix the runner", DENIED_CAUSE: DENIED_REMEDY}
        assert error.remedy.startswith(remedies[cause])

    @KINDS
    def test_a_download_that_cannot_be_saved(self, delivery: Delivery, error: OSError, said: str, cause: str) -> None:
        def fail() -> None:
            raise error

        delivery.shelf.after = fail

        failure = delivery.failure(delivery.everything())

        assert isinstance(failure, DownloadFailed)
        assert failure.__cause__ is error
        self.check(failure, "the bundle cannot be saved", said, cause)
        assert delivery.files == []
        assert delivery.record.downloaded is None

    @KINDS
    def test_a_site_that_cannot_be_written(self, delivery: Delivery, error: OSError, said: str, cause: str) -> None:
        def fail() -> None:
            if delivery.is_unpacking:
                raise error

        delivery.cancellation.on_check = fail

        failure = delivery.failure(delivery.everything())

        assert isinstance(failure, InternalError)
        self.check(failure, "the site cannot be written to out/site", said, cause)
        assert delivery.files == ["out", "out/bundle.tar"]

    @KINDS
    def test_values_that_cannot_be_written(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, error: OSError, said: str, cause: str
    ) -> None:
        def fail(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(Path, "write_text", fail)

        failure = delivery.failure(delivery.asked(values="deploy/values.yaml"))

        assert isinstance(failure, InternalError)
        self.check(failure, "the Helm values file cannot be written to deploy/values.yaml", said, cause)
        assert delivery.files == []

    def test_a_disk_that_is_full_only_when_the_archive_is_closed(self, delivery: Delivery) -> None:
        with files_of_at_most(len(ARCHIVE) - 1):
            failure = delivery.failure(delivery.asked(site="site"))

        self.check(failure, "the bundle cannot be saved", "File too large", FULL)
        assert delivery.files == tree(delivery.temporary) == []

    @pytest.mark.parametrize(
        ("names", "summary"),
        [
            ({"bundle": "x/bundle"}, "the bundle cannot be saved"),
            ({"values": "x/values"}, "the Helm values file cannot be written to x/values"),
            ({"site": "x/site"}, "the site cannot be written to x/site"),
        ],
    )
    def test_a_folder_that_is_a_file_by_then(self, delivery: Delivery, names: dict[str, str], summary: str) -> None:
        (delivery.workspace / "x").touch()

        failure = delivery.failure(delivery.asked(**names))

        self.check(failure, summary, "Not a directory", BROKEN)
        assert delivery.files == ["x"]

    def test_a_folder_in_the_archives_place_by_then(self, delivery: Delivery) -> None:
        delivery.shelf.after = (delivery.workspace / "bundle").mkdir

        failure = delivery.failure(delivery.asked(bundle="bundle"))

        self.check(failure, "the bundle cannot be saved", "Is a directory", BROKEN)
        assert (delivery.files, delivery.record.bundle_path) == (["bundle"], None)

    def test_a_site_that_was_filled_meanwhile_stays_as_it_is(self, delivery: Delivery) -> None:
        def fill() -> None:
            (delivery.workspace / "site").mkdir()
            (delivery.workspace / "site" / "other.html").touch()

        delivery.shelf.after = fill

        failure = delivery.failure(delivery.asked(site="site"))

        self.check(failure, "the site cannot be written to site", "Directory not empty", BROKEN)
        assert delivery.files == ["site", "site/other.html"]
        assert delivery.record.site_path is None


def full_once(code: int = errno.ENOSPC) -> Callable[[], None]:
    """Make what fails the first time that it is called, as a full disk does."""
    errors = [OSError(code, os.strerror(code))]

    def fail() -> None:
        if errors:
            raise errors.pop()

    return fail


class TestRoom:
    """A disk that is too small is told before the download, not after."""

    SIZE = len(ARCHIVE)

    def disk(self, monkeypatch: pytest.MonkeyPatch, free: Callable[[Path], int], *, total: int = 1) -> None:
        """Have so many bytes free on a disk of so many; an open folder has plenty."""
        statvfs = os.statvfs

        def fake(place: Path | int) -> object:
            if isinstance(place, int):
                return statvfs(place)
            return SimpleNamespace(f_bavail=free(place), f_blocks=total, f_frsize=1, f_files=0, f_favail=0)

        monkeypatch.setattr(os, "statvfs", fake)

    def sized(self, delivery: Delivery, source: str) -> Bundle:
        """Have the bundle's size known from the API or from the storage."""
        if source == "storage":
            delivery.shelf.headers = {"Content-Length": str(self.SIZE)}
            return BUNDLE
        return Bundle(url=BUNDLE.url, size=self.SIZE)

    @pytest.mark.parametrize("source", ["storage", "api"])
    @pytest.mark.parametrize(
        ("names", "needed"),
        [({"bundle": "out/bundle"}, SIZE), ({"site": "a/b/site"}, 2 * SIZE), ({"bundle": "bundle", "site": "site"}, 2 * SIZE)],
        ids=["bundle", "site", "both"],
    )
    def test_an_archive_needs_its_size_and_a_site_as_much_again(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, source: str, names: dict[str, str], needed: int
    ) -> None:
        bundle = self.sized(delivery, source)
        self.disk(monkeypatch, lambda _: needed - 1)

        error = delivery.failure(delivery.asked(**names), bundle)

        assert isinstance(error, DownloadFailed)
        assert error.summary == "the bundle does not fit on the runner's disk"
        assert error.cause == FULL
        assert error.remedy == "Free space in an earlier step, or use a runner with a larger disk."
        assert delivery.files == tree(delivery.temporary) == []
        assert delivery.shelf.asked == ([BUNDLE.url] if source == "storage" else [])

        self.disk(monkeypatch, lambda _: needed)
        delivery(delivery.asked(**names), bundle)

    def test_the_facts_tell_how_much_is_needed_and_free(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk(monkeypatch, lambda _: 512)
        bundle = self.sized(delivery, "api")

        archive, site = (delivery.failure(delivery.asked(**{name: "out"}), bundle) for name in ("bundle", "site"))

        assert archive.details == ("It needs at least 10.0 KiB; 512 bytes are free.",)
        assert site.details == ("It needs at least 20.0 KiB (archive and unpacked site); 512 bytes are free.",)

    @pytest.mark.parametrize("source", ["storage", "api"])
    def test_what_unpacking_leaves_free_is_needed_too(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, source: str
    ) -> None:
        bundle, total = self.sized(delivery, source), 10 * 512
        self.disk(monkeypatch, lambda _: 2 * self.SIZE + 511, total=total)

        error = delivery.failure(delivery.asked(site="site"), bundle)

        detail = "It needs at least 20.0 KiB (archive and unpacked site); 20.5 KiB are free, of which 512 bytes must stay free."
        assert isinstance(error, DownloadFailed)
        assert error.details == (detail,)
        delivery(delivery.asked(bundle="bundle"), bundle)
        self.disk(monkeypatch, lambda _: 2 * self.SIZE + 512, total=total)
        delivery(delivery.asked(site="site"), bundle)

    @pytest.fixture
    def _two_disks(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have the temporary folder be on a disk of its own."""
        stat = Path.stat

        def stat_with_device(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
            found = [*stat(path, follow_symlinks=follow_symlinks)]
            return os.stat_result((*found[:2], 77 if path == delivery.temporary else 7, *found[3:]))

        monkeypatch.setattr(Path, "stat", stat_with_device)

    @pytest.mark.usefixtures("_two_disks")
    def test_on_two_disks_each_needs_its_own(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk(monkeypatch, lambda _: self.SIZE)

        delivery(delivery.asked(site="out/site"), self.sized(delivery, "api"))

        assert delivery.record.site_path == "out/site"

    @pytest.mark.usefixtures("_two_disks")
    @pytest.mark.parametrize("full", ["workspace", "temporary"])
    def test_and_either_can_be_too_small(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, full: str) -> None:
        self.disk(monkeypatch, lambda folder: self.SIZE - (folder.name == full))

        error = delivery.failure(delivery.asked(site="out/site"), self.sized(delivery, "api"))

        assert isinstance(error, DownloadFailed)

    @pytest.mark.usefixtures("_two_disks")
    @pytest.mark.parametrize("source", ["storage", "api"])
    def test_a_temporary_folder_that_is_too_small_is_not_used(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch, source: str
    ) -> None:
        bundle = self.sized(delivery, source)
        self.disk(monkeypatch, lambda folder: self.SIZE - 1 if folder == delivery.temporary else 2 * self.SIZE)

        delivery(delivery.asked(site="out/site"), bundle)

        assert delivery.files == ["out", "out/site", *(f"out/site/{name}" for name in SITE)]
        assert tree(delivery.temporary) == []
        assert delivery.shelf.asked == [BUNDLE.url] * (2 if source == "storage" else 1)
        assert delivery.told.count("moved") == 1

    @pytest.mark.usefixtures("_two_disks")
    def test_nor_one_that_is_full_midway_where_the_size_is_unknown(self, delivery: Delivery) -> None:
        delivery.shelf.after = full_once()

        delivery(delivery.asked(site="out/site"))

        assert delivery.record.site_path == "out/site"
        assert tree(delivery.temporary) == []
        assert (len(delivery.shelf.asked), delivery.told.count("moved")) == (2, 1)

    def test_on_the_same_disk_as_the_workspace_another_place_would_not_help(self, delivery: Delivery) -> None:
        delivery.shelf.after = full_once()

        error = delivery.failure(delivery.asked(site="out/site"))

        assert (error.summary, error.cause) == ("the bundle cannot be saved", FULL)
        assert (len(delivery.shelf.asked), "moved" in delivery.told) == (1, False)

    @pytest.mark.usefixtures("_two_disks")
    def test_nor_on_one_that_is_broken(self, delivery: Delivery) -> None:
        delivery.shelf.after = full_once(errno.EIO)

        error = delivery.failure(delivery.asked(site="out/site"))

        assert (error.summary, error.cause) == ("the bundle cannot be saved", BROKEN)
        assert len(delivery.shelf.asked) == 1

    def test_an_archive_of_unknown_size_is_tried(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        self.disk(monkeypatch, lambda _: 0)

        delivery(delivery.asked(bundle="bundle"))

        assert delivery.record.bundle_path == "bundle"


class TestOwner:
    @pytest.fixture
    def given(self, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
        """Have every folder belong to a user of the runner; keep what is given to that user."""
        given: list[Path] = []

        def chown(path: bytes | Path, uid: int, gid: int, *, dir_fd: int | None = None, follow_symlinks: bool) -> None:
            assert (uid, gid, follow_symlinks) == (1001, 127, False)
            below = Path(f"/proc/self/fd/{dir_fd}").readlink() if dir_fd is not None else Path()
            given.append(below / os.fsdecode(path))

        monkeypatch.setattr(f"{deliver.__module__}.owner_of", lambda _root: Owner(1001, 127))
        monkeypatch.setattr(os, "chown", chown)
        return given

    def refuse(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "chown", refuse)

    def test_all_that_stays_is_given_to_the_workspaces_owner(self, delivery: Delivery, given: list[Path]) -> None:
        delivery(delivery.everything())

        names = [str(path.relative_to(delivery.workspace)) for path in given]
        assert [name for name in names if "." not in name] == ["out", "deploy"]
        assert len(given) == len(delivery.files)
        assert delivery.warnings == []

    def test_what_does_not_stay_is_not(self, delivery: Delivery, given: list[Path]) -> None:
        delivery(delivery.asked(site="site"))

        assert not any(path.is_relative_to(delivery.temporary) for path in given)

    def test_folders_that_the_waiting_archive_made_are_given_with_the_site_in_them(
        self, delivery: Delivery, given: list[Path]
    ) -> None:
        delivery(DeliverySettings(site=delivery.place("out/site")))

        assert delivery.workspace / "out" in given

    @pytest.mark.usefixtures("given")
    def test_a_file_system_that_gives_nothing_away_is_warned_of_once(
        self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.refuse(monkeypatch)
        temporary = OutputPath(path=delivery.temporary / "bundle", root=delivery.temporary, name=f"{delivery.temporary}/bundle")

        delivery(DeliverySettings(bundle=temporary, site=delivery.place("site"), values=delivery.place("values.yaml")))

        assert delivery.warnings == [
            [
                "The action's files could not be given to the workspace's owner.",
                "The file system reported: Operation not permitted.",
                "Later steps can read them, but may not be able to change or delete them.",
            ]
        ]
        assert delivery.record.values_file == "values.yaml"

    def test_where_nothing_is_to_be_given_nothing_is_warned_of(self, delivery: Delivery, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(f"{deliver.__module__}.owner_of", lambda _root: None)
        self.refuse(monkeypatch)

        delivery(delivery.everything())

        assert delivery.warnings == []
