"""A bundle that is a file here: its phases, and what is said of one that cannot be used."""

import hashlib
from pathlib import Path
from typing import Final

import pytest

from docs_platform_action.errors import InvalidBundle, TooFewPages
from docs_platform_action.inputs.settings import PublicationSettings, UnpackSettings
from docs_platform_action.job import UNPACK, VERIFICATION
from docs_platform_action.jobs import unpack
from docs_platform_action.jobs.task import Task
from docs_platform_action.models import Archive, Delivered, OutputPath
from tests.archives import KINDS, SMALL_SITE, entry, tar_of
from tests.unit.fakes import RecordedEvents, context
from tests.virtual_time import VirtualClock

ARCHIVE: Final = KINDS["tar.gz"](SMALL_SITE)
NO_GUARDS: Final = PublicationSettings()


class Run:
    """The one task of a file with these bytes, in a workspace."""

    def __init__(
        self,
        workspace: Path,
        archive: bytes,
        *,
        sha256: str | None = None,
        publication: PublicationSettings = NO_GUARDS,
    ) -> None:
        self.events = RecordedEvents()
        self.clock = VirtualClock()
        workspace.joinpath("b").write_bytes(archive)
        settings = UnpackSettings(
            domain="docs.example.com",
            bundle_path=OutputPath(path=workspace / "b", root=workspace, name="b"),
            bundle_sha256=sha256 or hashlib.sha256(archive).hexdigest(),
            site_path=OutputPath(path=workspace / "s", root=workspace, name="s"),
            publication=publication,
        )
        self.task: Task[UnpackSettings, object]
        (self.task,) = unpack.batch(settings).tasks
        self.job = self.task.job

    def run(self) -> None:
        for step in self.task.steps:
            step(self.job, self.task.settings, context(self.clock, self.events))

    def failure(self) -> InvalidBundle:
        with pytest.raises(InvalidBundle) as caught:
            self.run()
        return caught.value


def test_the_digest_is_verified_before_the_site_is_published(tmp_path: Path) -> None:
    run = Run(tmp_path, ARCHIVE)

    run.run()

    assert [phase.name for phase in run.job.phases] == [VERIFICATION, UNPACK]
    assert run.job.domain == "docs.example.com"
    digest = hashlib.sha256(ARCHIVE).hexdigest()
    assert run.job.delivered == Delivered(
        archive=Archive(size=len(ARCHIVE), sha256=digest),
        bundle_path="b",
        site_path="s",
        site_files=3,
        html_files=2,
    )
    texts = [text for (text,) in run.events.of("noted")]
    assert [text.split()[0] for text in texts] == ["Verified", "Unpacked"]
    assert "downloaded" not in run.events.names
    assert tmp_path.joinpath("b").read_bytes() == ARCHIVE


def test_another_archive_is_neither_recorded_nor_unpacked(tmp_path: Path) -> None:
    run = Run(tmp_path, ARCHIVE, sha256="ab" * 32)

    failure = run.failure()

    assert "`bundle-sha256`" in failure.summary
    assert [phase.name for phase in run.job.phases] == [VERIFICATION]
    assert run.job.delivered == Delivered()
    assert not tmp_path.joinpath("s").exists()


@pytest.mark.parametrize(
    ("archive", "cause"),
    [
        (ARCHIVE[:-20], "when its SHA-256 was computed"),
        (tar_of(entry(b"../outside")), "not made by the platform"),
    ],
    ids=["damaged", "with an advice of its own"],
)
def test_of_an_unusable_one_it_is_not_said_that_another_run_would_help(
    tmp_path: Path, archive: bytes, cause: str
) -> None:
    run = Run(tmp_path, archive)

    failure = run.failure()

    assert failure.remedy != InvalidBundle.default_remedy
    assert cause in failure.cause
    assert run.job.delivered.archive is not None
    assert run.job.delivered.bundle_path is None
    assert not tmp_path.joinpath("s").exists()


def test_a_guard_holds_it_back_like_a_fresh_export(tmp_path: Path) -> None:
    run = Run(tmp_path, ARCHIVE, publication=PublicationSettings(min_pages=99))

    with pytest.raises(TooFewPages):
        run.run()

    assert run.job.delivered.site_path is None
    assert run.job.delivered.bundle_path is None
