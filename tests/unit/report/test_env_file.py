"""Outside a workflow, a shell reads the outputs back exactly, and only the outputs of the last run."""

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import InternalError, JobFailed
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle
from docs_platform_action.ownership import Owner
from docs_platform_action.report.outputs import MAX_VARIABLE_BYTES, Outputs
from tests.folders import open_below
from tests.hostile import HARMFUL, YAML
from tests.keys import ADMIN_KEY
from tests.shells import SHELLS, source
from tests.unit.report.test_console import Log
from tests.unit.report.test_outputs import files_of_at_most, umask
from tests.unit.test_ownership import refusing

SHELL_SYNTAX = [
    *("'", "''", "'\\''", "\\", "\\\\'", '"', "`id`", "$(id)", "${IFS}", "$x", "$$", "$'\\x41'", "!!", "#", "~", "*", "a  b"),
    *("-n", "--", "-rf /", "=", "x=y", ";id", "&& id", "| id", "> /dev/null", "a\\", "a\nexport jobId='x'", "\r\n", "\t"),
    *("é 漢 \U0001f600", "\u2028", "\x80\x81\x82\x88\xff", "'; id; '", "\x00", "\ud800", ""),
]
LINK = "https://s.example.com/b?X-Signature=0123456789abcdef&x='$(id)`id`\"\\,b"
OWNER = (1001, 127)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "outputs.env"


def outputs_in(file: Path, log: Log | None = None) -> Outputs:
    return Outputs(None, (log or Log(in_workflow=False)).console, env_file=file)


def as_output(value: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", value)


class TestLines:
    def test_each_output_is_an_export_and_printed(self, file: Path) -> None:
        log = Log(in_workflow=False)
        outputs = outputs_in(file, log)

        outputs.check()
        assert file.read_bytes() == b""
        outputs.write("jobId", "se_1")
        outputs.write("status", "it's done")
        outputs.write("pageCount", 0)
        outputs.write("prLink", None)

        assert log.text == "jobId=se_1\nstatus=it's done\npageCount=0\n"
        assert file.read_text() == "export jobId='se_1'\nexport status='it'\\''s done'\nexport pageCount='0'\n"

    def test_each_is_there_as_soon_as_it_is_known(self, file: Path) -> None:
        outputs_in(file).job_known(Job(mode="export", job_id="se_1"))

        assert source(file) == {"jobId": "se_1"}

    def test_in_a_workflow_it_is_not_written(self, file: Path, tmp_path: Path) -> None:
        outputs = Outputs(tmp_path / "output", Log().console, env_file=file)

        outputs.check()
        outputs.write("jobId", "se_1")

        assert not file.exists()
        assert "se_1" in (tmp_path / "output").read_text()


class TestShells:
    @pytest.mark.parametrize("shell", SHELLS)
    def test_hostile_values_are_read_back_as_they_are(self, file: Path, shell: str) -> None:
        values = {f"v{number}": value for number, value in enumerate([*SHELL_SYNTAX, *HARMFUL, *YAML, LINK])}
        outputs = outputs_in(file)

        for name, value in values.items():
            outputs.write(name, value)

        assert source(file, shell) == {name: as_output(value) for name, value in values.items()}

    @given(st.lists(st.one_of(st.text(), st.text("'\"\\$`(){}!#~*&|;<>\n -=x", max_size=20)), max_size=40))
    def test_any_value_is_read_back(self, tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
        file = tmp_path_factory.getbasetemp() / "any.env"
        outputs = outputs_in(file)

        outputs.check()
        for number, value in enumerate(values):
            outputs.write(f"v{number}", value)

        assert source(file, SHELLS[len(values) % 2]) == {f"v{number}": as_output(value) for number, value in enumerate(values)}

    @pytest.mark.parametrize("shell", SHELLS)
    @pytest.mark.parametrize(("length", "is_exported"), [(MAX_VARIABLE_BYTES - 9, True), (MAX_VARIABLE_BYTES - 8, False)])
    def test_a_value_that_no_program_can_get_is_not_exported(
        self, file: Path, shell: str, length: int, is_exported: bool
    ) -> None:
        outputs = outputs_in(file)
        outputs.write("results", "é'" + "x" * (length - 3))  # one character of two bytes
        outputs.write("jobId", "se_1")
        with file.open("a") as more:
            more.write("export LENGTH=${#results}\n")

        found = source(file, shell)

        assert (found["jobId"], "results" in found) == ("se_1", is_exported)
        assert int(found["LENGTH"]) in {length - 1, length}  # bash counts characters or bytes, by the locale


class TestBegin:
    @pytest.mark.parametrize("is_checked", [True, False])
    def test_values_of_an_earlier_run_are_gone(self, file: Path, is_checked: bool) -> None:
        outputs_in(file).write("bundleUrl", LINK)

        outputs = outputs_in(file)
        if is_checked:  # it is not if an input is invalid
            outputs.check()
        outputs.write("failureReason", "invalid-input")

        assert source(file) == {"failureReason": "invalid-input"}

    @pytest.mark.parametrize("mode", [None, 0o644, 0o666, 0o444])
    def test_only_its_owner_can_read_it_whatever_was_there(self, file: Path, mode: int | None) -> None:
        if mode is not None:
            file.touch()
            file.chmod(mode)

        outputs_in(file).check()

        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_no_file_is_ever_one_that_others_can_read(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        opened, modes = os.open, []

        def observe(path: str, flags: int, mode: int = 0o777, **options: int) -> int:
            descriptor = opened(path, flags, mode, **options)
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            return descriptor

        monkeypatch.setattr(os, "open", observe)
        with umask(0):
            outputs_in(file).write("bundleUrl", LINK)

        assert modes == [0o600]

    def test_who_has_an_earlier_file_open_does_not_get_the_link(self, file: Path) -> None:
        file.write_text("earlier\n")

        with file.open() as earlier:
            outputs_in(file).write("bundleUrl", LINK)

            assert earlier.read() == "earlier\n"

    @pytest.mark.parametrize("other", ["removed", "a file", "a link"])
    def test_what_takes_its_place_later_does_not_get_the_link(self, file: Path, tmp_path: Path, other: str) -> None:
        outputs = outputs_in(file)
        outputs.check()
        file.unlink()
        if other == "a file":
            file.touch(0o666)
        elif other == "a link":
            file.symlink_to(tmp_path / "target")

        outputs.write("bundleUrl", LINK)

        assert [path.read_text() for path in tmp_path.iterdir() if path.exists()] == ([""] if other == "a file" else [])

    @pytest.mark.parametrize("kind", ["symbolic", "dangling", "hard"])
    def test_a_link_is_replaced_and_not_followed(self, file: Path, tmp_path: Path, kind: str) -> None:
        target = tmp_path / "target"
        if kind != "dangling":
            target.write_text("precious")
            target.chmod(0o755)
        if kind == "hard":
            file.hardlink_to(target)
        else:
            file.symlink_to(target)

        outputs_in(file).write("jobId", "se_1")

        assert (file.is_symlink(), source(file)) == (False, {"jobId": "se_1"})
        if kind == "dangling":
            assert not target.exists()
        else:
            assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("precious", 0o755)

    def test_nothing_else_is_left_in_the_folder(self, file: Path, tmp_path: Path) -> None:
        outputs_in(file).write("jobId", "se_1")

        assert [*tmp_path.iterdir()] == [file]

    def test_its_descriptor_is_closed_with_it(self, file: Path) -> None:
        outputs = outputs_in(file)
        outputs.write("jobId", "se_1")
        assert open_below(file.parent) == [file]

        del outputs

        assert open_below(file.parent) == []

    def test_a_relative_path_starts_at_the_working_directory(self, tmp_path: Path) -> None:
        with contextlib.chdir(tmp_path):
            outputs_in(Path("outputs.env")).write("jobId", "se_1")

        assert source(tmp_path / "outputs.env") == {"jobId": "se_1"}


class TestOwner:
    @pytest.fixture
    def chowns(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int, int]]]:
        """Return changes of owners, with the changed inode, of a process that is root in a folder of somebody else."""
        changes: list[tuple[int, int, int]] = []

        def chown(descriptor: int, uid: int, gid: int, **_: object) -> None:
            assert not file.exists(), "the file already has its owner when it gets its name"
            changes.append((os.fstat(descriptor).st_ino, uid, gid))

        with monkeypatch.context() as patch:
            patch.setattr("docs_platform_action.report.outputs.owner_of", lambda _: Owner(*OWNER))
            patch.setattr(os, "chown", chown)
            yield changes

    def test_a_file_of_root_gets_the_folders_owner(self, chowns: list[tuple[int, int, int]], file: Path) -> None:
        outputs_in(file).check()

        assert chowns == [(file.stat().st_ino, *OWNER)]

    def test_a_file_system_without_owners_will_do(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.report.outputs.owner_of", lambda _: Owner(*OWNER))
        monkeypatch.setattr(os, "chown", refusing(errno.EPERM))

        outputs_in(file).write("jobId", "se_1")

        assert source(file) == {"jobId": "se_1"}

    def test_in_a_folder_of_root_it_stays_roots(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.report.outputs.owner_of", lambda _: None)
        monkeypatch.setattr(os, "chown", lambda *_, **__: pytest.fail("the owner changed"))

        outputs_in(file).check()

        assert file.exists()


class TestFailures:
    @pytest.mark.parametrize("place", [".", "pipe", "link-to-a-folder", "/dev/null", "missing/outputs.env"])
    def test_one_that_cannot_be_written_is_a_failure(self, tmp_path: Path, place: str) -> None:
        os.mkfifo(tmp_path / "pipe")  # to open it would block, because nobody reads it
        (tmp_path / "link-to-a-folder").symlink_to(tmp_path)

        with pytest.raises(InternalError):
            outputs_in(tmp_path / place).check()

    @pytest.mark.parametrize("refused", ["chown", "rename"])
    def test_one_that_cannot_be_replaced_stays_and_nothing_else_does(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
    ) -> None:
        file.write_text("earlier\n")
        monkeypatch.setattr("docs_platform_action.report.outputs.owner_of", lambda _: Owner(*OWNER))
        monkeypatch.setattr(os, "chown", refusing(errno.EIO) if refused == "chown" else lambda *_, **__: None)
        monkeypatch.setattr(Path, "replace", refusing(errno.EBUSY))  # of a file that is mounted by itself

        with pytest.raises(InternalError) as caught:
            outputs_in(file).check()

        assert os.strerror(errno.EIO if refused == "chown" else errno.EBUSY) in caught.value.details[0]
        assert ([*tmp_path.iterdir()], file.read_text()) == ([file], "earlier\n")
        assert open_below(tmp_path) == []

    def test_a_line_that_does_not_fit_leaves_no_part_of_it(self, file: Path) -> None:
        outputs = outputs_in(file)
        outputs.write("jobId", "se_1")

        with files_of_at_most(30), pytest.raises(InternalError):
            outputs.write("status", "completed")

        assert source(file) == {"jobId": "se_1"}

    def test_what_could_not_be_written_is_printed_and_fails_the_job(self, tmp_path: Path) -> None:
        log, job = Log(in_workflow=False), Job(mode="export", job_id="se_1", status="completed")

        outputs_in(tmp_path / "missing" / "outputs.env", log).write_all([job], now=0.0, duration_seconds=0.0)

        assert isinstance(job.failure, InternalError)
        assert "jobId=se_1\n" in log.text
        assert log.text.endswith("failureReason=internal-error\n")


class TestSecrets:
    def test_neither_results_nor_its_message_has_the_key(self, file: Path) -> None:
        log, failure = Log(in_workflow=False), JobFailed("no", details=(f"see {ADMIN_KEY}",))
        log.console.mask([ADMIN_KEY])

        outputs_in(file, log).write_all([Job(mode="export", failure=failure)], now=0.0, duration_seconds=0.0)

        (row,) = json.loads(source(file)["results"])
        assert row["message"] == "Static export: no. see ***"

    @pytest.mark.parametrize("count", [1, 2])
    def test_a_masked_link_is_in_the_file_but_is_not_printed(self, file: Path, count: int) -> None:
        log = Log(in_workflow=False)
        jobs = [Job(mode="export", job_id=f"se_{number}", masks_bundle_url=True) for number in range(count)]
        for job in jobs:
            job.bundle = Bundle(url=LINK, expires_at=None)

        outputs_in(file, log).write_all(jobs, now=0.0, duration_seconds=0.0)

        found = source(file)
        assert [row["bundleUrl"] for row in json.loads(found["results"])] == [LINK] * count
        assert found.get("bundleUrl") == (LINK if count == 1 else None)
        assert "X-Signature" not in log.text
        assert log.text.count('"bundleUrl":"***"') == count

    def test_a_link_that_begins_with_another_one_is_hidden_whole(self, file: Path) -> None:
        log, jobs = Log(in_workflow=False), [Job(mode="export", job_id=f"se_{n}", masks_bundle_url=True) for n in range(2)]
        jobs[0].bundle = Bundle(url="https://s.example.com/b?x=1", expires_at=None)
        jobs[1].bundle = Bundle(url="https://s.example.com/b?x=1&X-Signature=short", expires_at=None)

        outputs_in(file, log).write_all(jobs, now=0.0, duration_seconds=0.0)

        assert log.text.count('"bundleUrl":"***"') == 2

    @pytest.mark.parametrize("is_masked", [True, False])
    def test_other_values_are_printed_without_a_masked_links_secret(self, file: Path, is_masked: bool) -> None:
        log = Log(in_workflow=False)
        log.console.redact_link(LINK)
        job = Job(mode="export", job_id="se_1", status="done X-Signature=0123456789abcdef", masks_bundle_url=is_masked)
        job.bundle = Bundle(url=LINK, expires_at="2026 0123456789abcdef")

        outputs_in(file, log).write_all([job], now=0.0, duration_seconds=0.0)

        assert ("0123456789abcdef" in log.text) is not is_masked
        assert source(file)["expiresAt"] == "2026 0123456789abcdef"

    @pytest.mark.parametrize(("is_masked", "has_file"), [(True, False), (False, False), (False, True)])
    def test_any_other_link_is_printed(self, file: Path, is_masked: bool, has_file: bool) -> None:
        log, job = Log(in_workflow=False), Job(mode="export", job_id="se_1", masks_bundle_url=is_masked)
        log.console.redact_link(LINK)
        job.bundle = Bundle(url=LINK, expires_at=None)

        Outputs(None, log.console, env_file=file if has_file else None).write_all([job], now=0.0, duration_seconds=0.0)

        assert f"bundleUrl={LINK}\n" in log.text
        assert f'"bundleUrl":{json.dumps(LINK)}' in log.text
