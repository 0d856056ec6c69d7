"""What a delivery publishes, what it leaves after a failure, and what it warns of."""

import gzip
import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from docs_platform_action import ownership
from docs_platform_action.bundle.deliver import deliver_bundle
from docs_platform_action.bundle.faults import DiskTooSmall
from docs_platform_action.bundle.staging import Staged
from docs_platform_action.errors import (
    ActionError,
    Cancelled,
    DownloadFailed,
    InternalError,
    InvalidBundle,
    TooFewPages,
    TooManyRemoved,
    Unavailable,
)
from docs_platform_action.inputs.settings import DeliverySettings, PublicationSettings
from docs_platform_action.job import DOWNLOAD, UNPACK, Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import (
    BundleLink,
    ExportJob,
    FileDigests,
    Manifest,
    MaxRemoved,
    OutputPath,
)
from docs_platform_action.ownership import Owner
from tests.archives import SEVEN_ZIP, SMALL_SITE, Site, entry, tar, tar_of, zipped
from tests.folders import read_tree
from tests.unit.fakes import Answer, FakeTransport, RecordedEvents, context, http_client
from tests.virtual_time import NOON, VirtualClock

LINK: Final = BundleLink(url="https://s.example.com/b?sig=1", expires=NOON + timedelta(hours=1))
SHORT: Final = replace(LINK, expires=NOON + timedelta(seconds=59))
FRESH: Final = replace(LINK, url="https://s.example.com/b?sig=2")
TAR: Final = gzip.compress(tar(SMALL_SITE), compresslevel=0)
ZIP: Final = zipped(SMALL_SITE)
BOTH = pytest.mark.parametrize("archive", [TAR, ZIP], ids=["tar.gz", "zip"])
ALL: Final = {"bundle_path": "b", "site_path": "s", "values_file": "v.yaml"}
VALUES: Final = {"values_file": "v.yaml"}
PLAN: Final = {**ALL, "manifest_path": "m", "changes_path": "c"}
OTHER: Final = FileDigests(content=bytes(32), text=bytes(32))
OLD: Final = Manifest(files={b"gone.html": OTHER, b"index.html": OTHER})  # what is published
NONE_REMOVED: Final = {
    "compare_with": OLD,
    "max_removed": MaxRemoved(amount=0, is_percentage=False),
}


def answer(archive: bytes) -> Answer:
    return Answer(headers={"Content-Length": str(len(archive))}, body=archive)


def cut(archive: bytes) -> Answer:
    half = archive[: len(archive) // 2]
    return replace(answer(archive), body=half, is_cut=True)


class Delivered:
    """A delivery to a workspace, with an API that makes these links."""

    def __init__(
        self,
        workspace: Path,
        *answers: Answer,
        links: tuple[BundleLink | ActionError, ...] = (FRESH,),
    ) -> None:
        self.workspace = workspace
        self.clock = VirtualClock()
        self.events = RecordedEvents()
        self.job = Job(kind=Export(), domain="docs.example.com", job_id="se_1", link=LINK)
        made = iter(links)

        def make_link(_job: Job) -> BundleLink:
            link = next(made)
            if isinstance(link, ActionError):
                raise link
            return link

        platform = SimpleNamespace(make_link=make_link, outage_tolerance_seconds=60.0)
        self.transport = FakeTransport(*answers, clock=self.clock)
        client = http_client(self.transport, clock=self.clock)
        self.parts = context(self.clock, self.events, client=client, platform=platform)

    def run(self, names: Mapping[str, str], **settings: Any) -> None:
        deliver_bundle(self.job, self.settings(names, **settings), self.parts)

    def settings(self, names: Mapping[str, str], **settings: Any) -> DeliverySettings:
        for key, name in names.items():
            path = self.workspace / name
            settings[key] = OutputPath(path=path, root=self.workspace, name=name)
        about_publication = {field.name for field in fields(PublicationSettings)}
        of_publication = {name: settings.pop(name) for name in about_publication & {*settings}}
        publication = PublicationSettings(**of_publication)
        return DeliverySettings(publication=publication, **settings)

    @property
    def left(self) -> set[str]:
        return {path.split("/")[0] for path in read_tree(self.workspace)}


@BOTH
@pytest.mark.parametrize(
    "names", [ALL, {"bundle_path": "b"}, {"site_path": "s"}, VALUES, {}], ids=str
)
def test_what_is_asked_for_is_delivered_and_recorded(
    tmp_path: Path, archive: bytes, names: dict[str, str]
) -> None:
    found = Delivered(tmp_path, answer(archive))

    found.run(names)

    delivered = found.job.delivered
    is_downloaded = "bundle_path" in names or "site_path" in names
    assert found.left == set(names.values())
    assert delivered.bundle_path == names.get("bundle_path")
    assert delivered.site_path == names.get("site_path")
    assert delivered.values_file == names.get("values_file")
    assert (delivered.archive is not None) == is_downloaded
    assert bool(found.transport.requests) == is_downloaded
    assert delivered.site_files == (3 if "site_path" in names else None)
    last_words = {text.split()[-1] for (text,) in found.events.of("noted")}
    assert {word.rstrip("/") for word in last_words} == set(names.values())


@BOTH
def test_the_manifest_lists_every_file_and_what_links_lead_to(
    tmp_path: Path, archive: bytes
) -> None:
    found = Delivered(tmp_path, answer(archive))

    found.run({"site_path": "s", "manifest_path": "m"})

    lines = (tmp_path / "m").read_bytes().splitlines(keepends=True)
    *about_files, about_link = [line for line in lines[1:] if not line.startswith(b"# text ")]
    listed = {line[66:-1].decode(): line[:64].decode() for line in about_files}
    digests = {}
    for path in ("guide/empty.txt", "guide/home.html", "guide/start.html"):
        digests[path] = hashlib.sha256((tmp_path / "s" / path).read_bytes()).hexdigest()
    digests["index.html"] = digests["guide/home.html"]
    assert listed == digests
    assert lines[0] == b"# 5 files\n"
    assert len(lines) == 1 + 4 + 3 + 1, "each page has a line about its text"
    assert about_link == lines[-1] == b"# link latest -> guide\n"
    delivered = found.job.delivered
    assert delivered.manifest_path == "m"
    assert delivered.changes is None
    assert delivered.site_sha256 == hashlib.sha256(b"".join([*about_files, about_link])).hexdigest()


@BOTH
def test_changes_manifest_archive_site_and_values_are_published_in_this_order(
    tmp_path: Path, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[str] = []
    publish = Staged.publish

    def record(staged: Staged) -> None:
        publish(staged)
        published.append(staged.path.name)

    monkeypatch.setattr(Staged, "publish", record)
    found = Delivered(tmp_path, answer(archive))

    found.run(PLAN, compare_with=OLD)

    changes = found.job.delivered.changes
    assert published == ["c", "m", "b", "s", "v.yaml"]
    assert changes is not None
    assert json.loads((tmp_path / "c").read_text()) == {
        "added": [
            *("guide/empty.txt", "guide/home.html", "guide/start.html"),
            *("latest", "latest/home.html", "latest/start.html"),
        ],
        "textChanged": ["index.html"],
        "changed": [],
        "removed": ["gone.html"],
    }
    assert changes.pages == {
        "added": 4,
        "textChanged": 1,
        "changed": 0,
        "removed": 1,
        "unchanged": 0,
    }


@pytest.mark.parametrize(
    ("names", "settings"),
    [
        ({"site_path": "s"}, {}),
        ({"site_path": "s", "manifest_path": "m"}, {}),
        ({"site_path": "s", "changes_path": "c"}, {"compare_with": OLD}),
        ({"site_path": "s"}, {"compare_with": OLD}),
    ],
    ids=["nothing", "manifest", "changes", "comparison"],
)
def test_only_what_is_asked_for_is_written_about_a_site(
    tmp_path: Path, names: dict[str, str], settings: dict[str, Any]
) -> None:
    found = Delivered(tmp_path, answer(TAR))

    found.run(names, **settings)

    delivered = found.job.delivered
    assert found.left == set(names.values())
    assert delivered.manifest_path == names.get("manifest_path")
    assert delivered.changes_path == names.get("changes_path")
    assert (delivered.changes is not None) == ("compare_with" in settings)
    is_compared = "manifest_path" in names or "compare_with" in settings
    assert (delivered.site_sha256 is not None) == is_compared


@BOTH
def test_if_too_many_pages_are_removed_only_the_changes_are_published(
    tmp_path: Path, archive: bytes
) -> None:
    found = Delivered(tmp_path, answer(archive))

    with pytest.raises(TooManyRemoved):
        found.run(PLAN, **NONE_REMOVED)

    delivered = found.job.delivered
    assert found.left == {"c"}
    assert delivered.changes_path == "c"
    assert delivered.manifest_path is None
    assert delivered.bundle_path is None
    assert delivered.site_path is None
    assert delivered.site_sha256
    assert delivered.changes is not None
    assert delivered.archive is not None


def test_too_few_pages_are_found_before_anything_is_compared(tmp_path: Path) -> None:
    found = Delivered(tmp_path, answer(TAR))

    with pytest.raises(TooFewPages):
        found.run(PLAN, **NONE_REMOVED, min_pages=100)

    assert found.left == set()
    assert found.job.delivered.changes is None


@pytest.mark.parametrize(("reported", "count"), [(None, 1), (7, 2)])
def test_too_few_pages_are_compared_with_the_reported_number(
    tmp_path: Path, reported: int | None, count: int
) -> None:
    found = Delivered(tmp_path, answer(TAR))
    found.job.reading = ExportJob(status=ExportJob.COMPLETED, page_count=reported)

    with pytest.raises(TooFewPages) as caught:
        found.run({"site_path": "s"}, min_pages=100)

    assert len(caught.value.details) == count
    assert ("7 pages" in caught.value.details[0]) == (reported is not None)


def test_without_the_site_the_manifest_is_no_output(tmp_path: Path) -> None:
    found = Delivered(tmp_path, answer(TAR))
    (tmp_path / "s").touch()

    with pytest.raises(InternalError):
        found.run(PLAN, compare_with=OLD)

    assert found.job.delivered.site_path is None
    assert found.job.delivered.manifest_path is None


@pytest.mark.parametrize("name", ["c", "m"])
def test_a_path_that_cannot_be_written_publishes_no_site(tmp_path: Path, name: str) -> None:
    found = Delivered(tmp_path, answer(TAR))
    (tmp_path / name).mkdir()

    with pytest.raises(InternalError):
        found.run(PLAN, compare_with=OLD)

    assert not {"b", "s", "v.yaml"} & found.left
    assert found.job.delivered.site_path is None


@pytest.mark.parametrize(
    ("archive", "phases"), [(TAR, [DOWNLOAD]), (ZIP, [DOWNLOAD, UNPACK])], ids=["tar.gz", "zip"]
)
def test_a_tar_archive_is_unpacked_while_it_arrives_and_a_zip_archive_afterwards(
    tmp_path: Path, archive: bytes, phases: list[str]
) -> None:
    found = Delivered(tmp_path, answer(archive))

    found.run({"site_path": "s"})

    assert [phase.name for phase in found.job.phases] == phases
    names = [name for name in found.events.names if name in {"unpack_progressed", "downloaded"}]
    assert (names[0] == "downloaded") == (UNPACK in phases)
    assert names.count("unpack_progressed") > 0


@pytest.mark.parametrize(("cuts", "left"), [(2, {*ALL.values()}), (3, set())])
def test_a_download_that_cannot_be_resumed_begins_again_twice(
    tmp_path: Path, cuts: int, left: set[str]
) -> None:
    found = Delivered(tmp_path, *[cut(TAR)] * cuts, answer(TAR))

    with nullcontext() if left else pytest.raises(DownloadFailed):
        found.run(ALL)

    assert found.left == left
    assert found.events.names.count("download_restarted") == 2


@pytest.mark.parametrize(
    ("names", "guard", "left"),
    [
        (ALL, {}, {"b"}),
        (ALL, {"min_pages": 1}, set()),
        (ALL, {"compare_with": OLD}, set()),
        ({"site_path": "s"}, {}, set()),
    ],
    ids=str,
)
def test_a_refused_archive_is_read_to_its_end_and_kept_alone_for_inspection(
    tmp_path: Path, names: dict[str, str], guard: dict[str, Any], left: set[str]
) -> None:
    archive = tar_of(entry(b"../outside")) + bytes(5000)
    found = Delivered(tmp_path, answer(archive))

    with pytest.raises(InvalidBundle):
        found.run(names, **guard)

    assert found.left == left
    assert found.job.delivered.bundle_path == ("b" if left else None)
    if left:
        assert (tmp_path / "b").read_bytes() == archive


@pytest.mark.parametrize("names", [{"bundle_path": "b"}, {"site_path": "s"}, VALUES], ids=str)
def test_after_a_cancel_nothing_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: dict[str, str]
) -> None:
    found = Delivered(tmp_path, answer(TAR))
    found.job.link = SHORT

    def cancel(*_: object) -> None:
        found.clock.cancellation.cancel()

    for last_event in ("downloaded", "link_made"):
        monkeypatch.setattr(found.events, last_event, cancel, raising=False)

    with pytest.raises(Cancelled):
        found.run(names)

    assert found.left == set()


def test_the_only_folder_of_a_site_is_warned_of(tmp_path: Path) -> None:
    found = Delivered(tmp_path, answer(tar(Site(files={"build/index.html": b"x"}))))

    found.run({"site_path": "s"})

    ((lines,),) = found.events.of("warning")
    assert "`s/build`" in "".join(lines)
    assert found.job.warnings == [lines]


INNER: Final = Site(files={"export/site.tar.gz": TAR})


@BOTH
def test_a_bundle_without_pages_is_published_with_one_warning(
    tmp_path: Path, archive: bytes
) -> None:
    pack = zipped if archive is ZIP else tar
    found = Delivered(tmp_path, answer(pack(INNER)))

    found.run({"site_path": "s"})

    ((lines,),) = found.events.of("warning")
    assert found.job.warnings == [lines]
    assert lines[0] == f"{found.job.title}: the bundle has no `.html` file (1 file in all)."
    assert lines[1] == "Its only file, 'export/site.tar.gz', looks like gzip data."
    assert found.job.delivered.site_files == 1
    assert found.job.delivered.html_files == 0


def test_with_min_pages_the_error_alone_names_the_archive_in_the_archive(tmp_path: Path) -> None:
    found = Delivered(tmp_path, answer(tar(INNER)))

    with pytest.raises(TooFewPages) as caught:
        found.run({"site_path": "s"}, min_pages=1)

    assert "'export/site.tar.gz', looks like gzip data" in caught.value.details[0]
    assert found.job.warnings == []
    assert found.job.delivered.html_files == 0


def test_a_warning_stays_if_the_site_is_then_held_back(tmp_path: Path) -> None:
    found = Delivered(tmp_path, answer(tar(INNER)))

    with pytest.raises(TooManyRemoved):
        found.run({"site_path": "s"}, **NONE_REMOVED)

    assert len(found.job.warnings) == 1


@pytest.mark.parametrize(
    ("names", "files", "links", "warnings"),
    [
        ({"manifest_path": "m"}, ["a", "b", "d/c"], [], 1),
        ({"manifest_path": "m"}, ["a"], ["b", "c", "d"], 0),
        ({}, ["a", "b", "c"], [], 0),
    ],
    ids=["files", "links", "without digests"],
)
def test_files_with_the_same_text_bring_a_warning_only_if_digests_are_taken(
    tmp_path: Path, names: Mapping[str, str], files: list[str], links: list[str], warnings: int
) -> None:
    site = Site(
        files={f"{name}.html": b"<p>Not found" for name in files},
        links={f"{name}.html": "a.html" for name in links},
    )
    found = Delivered(tmp_path, answer(tar(site)))

    found.run({"site_path": "s", **names})

    shown = [lines for (lines,) in found.events.of("warning")]
    assert len(shown) == warnings
    for lines in shown:
        assert lines[0] == f"{found.job.title}: 3 of 3 `.html` files have the same text."
        assert lines[1] == 'Their text begins with "Not found".'


@pytest.mark.parametrize(
    ("archive", "names", "factor"),
    [(TAR, {"bundle_path": "b"}, 1), (TAR, {"site_path": "s"}, 1), (ZIP, {"site_path": "s"}, 2)],
)
def test_a_disk_that_is_too_small_fails_the_run_before_it_is_filled(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    archive: bytes,
    names: dict[str, str],
    factor: int,
) -> None:
    disk = SimpleNamespace(total=10**6, free=factor * len(archive) - 1)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: disk)
    found = Delivered(tmp_path, answer(archive))

    with pytest.raises(ActionError):
        found.run(names)

    assert found.left == set()
    assert "unpack_progressed" not in found.events.names


def test_on_a_disk_that_becomes_full_the_archive_is_not_kept_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = SimpleNamespace(total=10**9, free=10**9)
    later = SimpleNamespace(f_blocks=10**6, f_bavail=0, f_frsize=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: before)
    monkeypatch.setattr("os.statvfs", lambda _root: later)
    found = Delivered(tmp_path, answer(TAR))

    with pytest.raises(DiskTooSmall):
        found.run(ALL)

    assert found.left == set()


@pytest.mark.parametrize(("seconds", "is_replaced"), [(59, True), (61, False), (None, False)])
def test_a_link_with_less_than_a_minute_left_is_replaced_before_it_is_written(
    tmp_path: Path, seconds: int | None, is_replaced: bool
) -> None:
    found = Delivered(tmp_path, answer(TAR))
    expires = NOON + timedelta(seconds=seconds) if seconds else None
    found.job.link = replace(LINK, expires=expires)

    found.run(VALUES)

    assert (found.job.link == FRESH) == is_replaced
    assert ("link_made" in found.events.names) == is_replaced
    assert (FRESH.url in (tmp_path / "v.yaml").read_text()) == is_replaced
    assert not found.job.has_short_link
    assert found.events.of("warning") == []


def test_a_link_that_cannot_be_replaced_is_written_with_a_warning(tmp_path: Path) -> None:
    found = Delivered(tmp_path, answer(TAR), links=(Unavailable("it is down"),))
    found.job.link = SHORT

    found.run(VALUES)

    assert found.job.delivered.values_file == "v.yaml"
    assert LINK.url in (tmp_path / "v.yaml").read_text()
    assert len(found.events.of("warning")) == 1


@pytest.mark.parametrize("is_supported", [True, False])
def test_everything_gets_the_workspaces_owner_or_there_is_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_supported: bool
) -> None:
    owned: list[os.stat_result] = []

    def chown(owner: Owner, path: Any, *, dir_fd: int | None = None) -> None:
        owned.append(os.stat(path, dir_fd=dir_fd))
        owner.chown_error = None if is_supported else "Operation not permitted"

    monkeypatch.setattr(ownership, "owner_of", lambda _folder: Owner(5, 6))
    monkeypatch.setattr(Owner, "chown", chown)
    found = Delivered(tmp_path, answer(TAR))

    found.run({**ALL, "values_file": "deploy/v.yaml"})

    # the three results, the new folder of one, and what is in the site
    assert len(owned) == 3 + 1 + 7
    assert len(found.events.of("warning")) == (0 if is_supported else 1)


def test_an_archive_that_cannot_be_kept_does_not_hide_why_it_was_refused(tmp_path: Path) -> None:
    interrupted = cut(b"7z\xbc\xaf\x27\x1c" + bytes(100_000))
    resumable = replace(interrupted, headers={**interrupted.headers, "ETag": '"1"'})
    refused = Answer(status=403)
    unreachable = Unavailable("the API remained unavailable")
    found = Delivered(tmp_path, resumable, refused, links=(unreachable,))

    with pytest.raises(InvalidBundle):
        found.run({"bundle_path": "b", "site_path": "s"})

    assert found.left == set()


def refusal(workspace: Path, archive: bytes, **headers: str) -> InvalidBundle:
    """Return the failure to unpack a response's archive."""
    sent = Answer(headers={name.replace("_", "-"): headers[name] for name in headers}, body=archive)
    with pytest.raises(InvalidBundle) as caught:
        Delivered(workspace, sent).run({"site_path": "s"})
    return caught.value


@pytest.mark.parametrize(
    "archive",
    [gzip.compress(TAR), gzip.compress(ZIP), SEVEN_ZIP],
    ids=["gzip in gzip", "zip in gzip", "7z"],
)
def test_of_a_bundle_that_was_compressed_on_its_way_the_header_is_named(
    tmp_path: Path, archive: bytes
) -> None:
    failure = refusal(tmp_path, archive, Content_Encoding="gzip")

    assert "compressed once more" in failure.summary
    assert "`Content-Encoding: gzip`" in failure.details[0]
    assert "looks like" in failure.details[1]
    assert "another format" not in failure.cause


@pytest.mark.parametrize(
    ("archive", "summary", "cause"),
    [
        (gzip.compress(TAR), "an archive inside an archive", "compressed twice"),
        (gzip.compress(ZIP), "an archive inside an archive", "compressed twice"),
        (SEVEN_ZIP, "not an archive that can be opened", "another format"),
        (gzip.compress(b"<html>"), "not an archive that can be opened", "Something else"),
        (TAR[:-20], "damaged", "The whole archive arrived"),
        (tar_of(entry(b"../outside")), "opened safely", "not made by the platform"),
    ],
    ids=["gzip in gzip", "zip in gzip", "7z", "web page", "damaged", "unsafe"],
)
def test_a_cause_that_the_run_has_ruled_out_is_not_shown(
    tmp_path: Path, archive: bytes, summary: str, cause: str
) -> None:
    failure = refusal(tmp_path, archive, Content_Length=str(len(archive)))

    assert summary in failure.summary
    assert cause in failure.cause


def test_a_web_page_that_was_compressed_is_not_taken_for_a_compressed_bundle(
    tmp_path: Path,
) -> None:
    failure = refusal(tmp_path, gzip.compress(b"<html>"), Content_Encoding="gzip")

    assert "Something else" in failure.cause


def test_a_damaged_archive_of_unknown_length_may_have_been_damaged_in_transit(
    tmp_path: Path,
) -> None:
    assert refusal(tmp_path, TAR[:-20]).cause == InvalidBundle.default_cause


@BOTH
def test_an_archive_with_a_coding_that_is_its_own_is_delivered_as_it_is(
    tmp_path: Path, archive: bytes
) -> None:
    sent = answer(archive)
    sent = replace(sent, headers={**sent.headers, "Content-Encoding": "gzip"})

    Delivered(tmp_path, sent).run({"site_path": "s", "bundle_path": "b"})

    assert (tmp_path / "b").read_bytes() == archive
