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
from docs_platform_action.redaction import Redactor
from docs_platform_action.report.outputs import MAX_VARIABLE_BYTES, Outputs
from tests.hostile import HARMFUL, YAML
from tests.keys import ADMIN_KEY
from tests.shells import SHELLS, source
from tests.unit.report.test_console import Log
from tests.unit.report.test_outputs import files_of_at_most

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
    return Outputs(None, (log or Log(in_workflow=False)).console, Redactor([ADMIN_KEY]), env_file=file)


def as_output(value: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", value)


class TestLines:
    def test_each_output_is_an_export(self, file: Path) -> None:
        outputs = outputs_in(file)

        outputs.write("jobId", "se_1")
        outputs.write("status", "it's done")
        outputs.write("pageCount", 0)
        outputs.write("prLink", None)

        assert file.read_text() == "export jobId='se_1'\nexport status='it'\\''s done'\nexport pageCount='0'\n"

    def test_outputs_are_also_printed(self, file: Path) -> None:
        log = Log(in_workflow=False)

        outputs_in(file, log).write("jobId", "se_1")

        assert log.text == "jobId=se_1\n"

    def test_each_is_there_as_soon_as_it_is_known(self, file: Path) -> None:
        outputs_in(file).job_known(Job(mode="export", job_id="se_1"))

        assert source(file) == {"jobId": "se_1"}

    def test_the_last_value_counts(self, file: Path) -> None:
        outputs = outputs_in(file)

        outputs.write("status", "queued")
        outputs.write("status", "completed")

        assert source(file) == {"status": "completed"}

    def test_in_a_workflow_it_is_not_written(self, file: Path, tmp_path: Path) -> None:
        outputs = Outputs(tmp_path / "output", Log().console, Redactor([ADMIN_KEY]), env_file=file)

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

    def test_it_is_there_before_the_first_output(self, file: Path) -> None:
        outputs_in(file).check()

        assert file.read_bytes() == b""

    @pytest.mark.parametrize("exists", [False, True])
    def test_only_its_owner_can_read_it(self, file: Path, exists: bool) -> None:
        if exists:
            file.touch(0o644)

        outputs_in(file).check()

        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_one_that_was_removed_meanwhile_is_private_again(self, file: Path) -> None:
        outputs = outputs_in(file)
        outputs.check()
        file.unlink()

        outputs.write("jobId", "se_1")

        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_a_relative_path_starts_at_the_working_directory(self, tmp_path: Path) -> None:
        with contextlib.chdir(tmp_path):
            outputs_in(Path("outputs.env")).write("jobId", "se_1")

        assert source(tmp_path / "outputs.env") == {"jobId": "se_1"}

    def test_a_pipe_gets_the_lines(self) -> None:
        reading, writing = os.pipe()

        outputs_in(Path(f"/dev/fd/{writing}")).write("jobId", "se_1")

        os.close(writing)
        with open(reading, encoding="utf-8") as pipe:  # noqa: PTH123  # a descriptor
            assert pipe.read() == "export jobId='se_1'\n"

    def test_a_device_keeps_its_mode(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.report.outputs.set_mode", lambda *_: pytest.fail("the mode changed"))

        outputs_in(Path("/dev/null")).write("jobId", "se_1")


class TestOwner:
    @pytest.fixture
    def chowns(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int, int]]]:
        """Return the changes of owners of a process that runs as root in a folder of somebody else, and do not make them."""
        changes: list[tuple[str, int, int]] = []
        found = os.stat

        def changed(result: os.stat_result, uid: int) -> os.stat_result:
            fields = [*result]
            fields[stat.ST_UID], fields[stat.ST_GID] = uid, OWNER[1]
            return os.stat_result(fields)

        def chown(path: str | Path, uid: int, gid: int, **_: object) -> None:
            changes.append((str(path), uid, gid))

        with monkeypatch.context() as patch:
            patch.setattr(os, "geteuid", lambda: 0)
            patch.setattr(Path, "stat", lambda path, **_: changed(found(path), OWNER[0]))
            patch.setattr(os, "fstat", lambda descriptor: changed(found(descriptor), self.file_uid))
            patch.setattr(os, "chown", chown)
            yield changes

    file_uid = 0

    def test_a_file_of_root_gets_the_folders_owner(self, chowns: list[tuple[str, int, int]], file: Path) -> None:
        outputs_in(file).check()

        assert chowns == [(str(file), *OWNER)]

    def test_a_link_to_a_file_stays_as_it_is(self, chowns: list[tuple[str, int, int]], file: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(file)

        outputs_in(tmp_path / "link").check()

        assert chowns == [(str(file), *OWNER)]

    def test_a_file_of_somebody_else_stays_theirs(
        self, chowns: list[tuple[str, int, int]], file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(self, "file_uid", 1002)

        outputs_in(file).check()

        assert chowns == []

    def test_in_a_folder_of_root_it_stays_roots(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.report.outputs.owner_of", lambda _: None)
        monkeypatch.setattr(os, "chown", lambda *_, **__: pytest.fail("the owner changed"))

        outputs_in(file).check()

        assert file.exists()


class TestFailures:
    @pytest.mark.parametrize("place", [".", "missing/outputs.env"])
    def test_one_that_cannot_be_written_says_what_to_do(self, tmp_path: Path, place: str) -> None:
        with pytest.raises(InternalError, match="the file that OUTPUT_ENV_FILE names cannot be written") as caught:
            outputs_in(tmp_path / place).check()

        reason = os.strerror(errno.EISDIR if place == "." else errno.ENOENT)
        assert caught.value.details == (f"{tmp_path / place}: {reason}.",)
        assert caught.value.remedy.startswith("Set OUTPUT_ENV_FILE to a file in an existing folder")

    def test_a_line_that_does_not_fit_leaves_no_part_of_it(self, file: Path) -> None:
        outputs = outputs_in(file)
        outputs.write("jobId", "se_1")

        with files_of_at_most(30), pytest.raises(InternalError, match="OUTPUT_ENV_FILE"):
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
        failure = JobFailed("no", details=(f"see {ADMIN_KEY}",))

        outputs_in(file).write_all([Job(mode="export", failure=failure)], now=0.0, duration_seconds=0.0)

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

    def test_a_link_that_is_not_masked_is_printed_too(self, file: Path) -> None:
        log, job = Log(in_workflow=False), Job(mode="export", job_id="se_1")
        job.bundle = Bundle(url=LINK, expires_at=None)

        outputs_in(file, log).write_all([job], now=0.0, duration_seconds=0.0)

        assert f"bundleUrl={LINK}\n" in log.text
