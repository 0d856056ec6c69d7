"""Step outputs: the runner's file, the file for a shell, and what is printed."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from admin_api_simulator.runner import parse_outputs
from docs_platform_action import outputs as module
from docs_platform_action.errors import (
    DENIED,
    ActionError,
    InternalError,
    InvalidInput,
    JobFailed,
)
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.models import BundleLink, Changes, Delivered, Deployment, ExportJob
from docs_platform_action.outputs import MAX_VARIABLE_BYTES, Outputs
from docs_platform_action.redaction import HIDDEN, Redactor
from tests.folders import files_of_at_most
from tests.keys import ADMIN_KEY
from tests.shells import SHELLS, source

LINK = "https://s.example.com/b?sig=1,2&x='y'"


def export(**known: Any) -> Job:
    return Job(kind=Export(), domain="docs.example.com", **{"job_id": "se_1", **known})


def write(outputs: Outputs, *jobs: Job) -> dict[str, str]:
    outputs.write_all(jobs, now=0.0, duration_seconds=7.9)
    return dict(outputs.values)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.fixture
def outputs(file: Path) -> Outputs:
    return Outputs(file, Redactor([ADMIN_KEY]))


class TestRunnersFile:
    def test_the_job_id_is_written_early_and_only_once(self, outputs: Outputs, file: Path) -> None:
        outputs.check()
        outputs.write_job_id(export())
        early = parse_outputs(file.read_text())
        written = write(outputs, export(reading=ExportJob(status="completed")))

        assert early == {"jobId": "se_1"}
        assert parse_outputs(file.read_text()) == written
        assert file.read_text().count("jobId<<") == 1

    def test_a_thread_that_knows_its_job_after_the_end_writes_nothing(
        self, outputs: Outputs, file: Path
    ) -> None:
        write(outputs, export())
        before = file.read_text()

        outputs.write_job_id(export(job_id="late"))

        assert file.read_text() == before

    def test_the_commit_is_written_with_the_job_id(self, outputs: Outputs, file: Path) -> None:
        deployed = Deployment(
            id=1,
            commit="c0ffee",
            commit_url="https://github.example.com/c0ffee",
            creator="docs[bot]",
            environment="production",
            is_transient=False,
        )

        outputs.write_job_id(export(deployed=deployed))

        assert parse_outputs(file.read_text()) == {"deployedCommit": "c0ffee", "jobId": "se_1"}

    def test_a_value_is_one_line_and_a_message_without_the_key(self, outputs: Outputs) -> None:
        failure = JobFailed(f"no {ADMIN_KEY}", details=("at https://a.example/?secret.",))
        written = write(
            outputs, export(reading=ExportJob(status="a\n::error::b\x85\ud800"), failure=failure)
        )

        assert written["status"] == "a ::error::b  "
        assert HIDDEN in written["results"]
        assert ADMIN_KEY not in written["results"]
        assert "secret" not in written["results"]

    def test_a_job_id_that_does_not_fit_is_an_error_at_once(
        self, outputs: Outputs, file: Path
    ) -> None:
        outputs.check()
        with files_of_at_most(100), pytest.raises(InternalError):
            outputs.write_job_id(export(job_id="x" * 200))

        assert file.read_text() == ""

    def test_if_not_all_outputs_fit_the_job_fails_and_the_short_ones_are_written(
        self, outputs: Outputs, file: Path
    ) -> None:
        job = export()
        outputs.write_job_id(job)
        # more than all outputs but `results` take, and less than `results` takes
        with files_of_at_most(500):
            write(outputs, job)

        assert isinstance(job.failure, InternalError)
        assert parse_outputs(file.read_text()) == {
            "jobId": "se_1",
            "durationSeconds": "7",
            "failureReason": "internal-error",
        }

    @pytest.mark.parametrize(
        ("error", "is_denied", "reason"),
        [
            (PermissionError(13, "Denied"), True, "Denied"),
            (OSError(28, "No space"), False, "No space"),
            (OSError(), False, "OSError"),
        ],
        ids=repr,
    )
    def test_only_a_denied_write_has_an_advice_of_its_own(
        self,
        outputs: Outputs,
        monkeypatch: pytest.MonkeyPatch,
        error: OSError,
        is_denied: bool,
        reason: str,
    ) -> None:
        monkeypatch.setattr(Path, "open", Mock(side_effect=error))

        with pytest.raises(InternalError) as caught:
            outputs.check()

        assert (caught.value.remedy == DENIED["remedy"]) == is_denied
        assert caught.value.details == (f"The file that GITHUB_OUTPUT names: {reason}.",)


def test_only_what_is_known_of_one_job_is_an_output(outputs: Outputs) -> None:
    changes = Changes(pages={"added": 1}, files={}, listed={}, listed_files={}, is_first=True)

    written = write(outputs, export(delivered=Delivered(changes=changes, site_path="s")))

    (result,) = json.loads(written.pop("results"))
    assert written == {"jobId": "se_1", "sitePath": "s", "changed": "true", "durationSeconds": "7"}
    assert result["message"] is None


def test_of_several_jobs_only_results_has_what_is_known(outputs: Outputs) -> None:
    failure = JobFailed("the export failed")

    written = write(outputs, export(), export(failure=failure), export())

    del written["results"]
    assert written == {"durationSeconds": "7", "failureReason": "job-failed"}


def test_without_masked_links_all_is_printed() -> None:
    outputs = Outputs(None, Redactor())

    write(outputs, export(link=BundleLink(url=LINK)))

    assert outputs.printable == outputs.values


def test_masked_links_are_hidden_only_where_they_are_printed() -> None:
    outputs = Outputs(None, Redactor())
    links = ("https://t.example.com/b", 'https://t.example.com/b"ü')
    jobs = [export(link=BundleLink(url=link), masks_bundle_url=True) for link in links]
    jobs.append(export(link=BundleLink(url=LINK)))
    jobs.append(export(link=None, masks_bundle_url=True))

    write(outputs, *jobs)

    results = json.loads(outputs.values["results"])
    printed = json.loads(outputs.printable["results"])
    assert [row["bundleUrl"] for row in results] == [*links, LINK, None]
    assert [row["bundleUrl"] for row in printed] == [HIDDEN, HIDDEN, LINK, None]


class TestFileForAShell:
    @pytest.fixture
    def env_file(self, tmp_path: Path) -> Path:
        return tmp_path / "outputs.env"

    @pytest.mark.parametrize("shell", SHELLS)
    def test_a_shell_reads_every_value_unchanged(self, env_file: Path, shell: str) -> None:
        outputs = Outputs(None, Redactor(), env_file=env_file)
        status = 'it\'s $HOME `id` \\ "x" !'

        written = write(
            outputs, export(link=BundleLink(url=LINK), reading=ExportJob(status=status))
        )

        assert source(env_file, shell) == written
        assert written["status"] == status
        assert env_file.stat().st_mode & 0o777 == 0o600

    def test_it_has_no_job_id_before_the_end(self, env_file: Path) -> None:
        Outputs(None, Redactor(), env_file=env_file).write_job_id(export())

        assert not env_file.exists()

    def test_the_check_removes_an_earlier_file(self, env_file: Path) -> None:
        outputs = Outputs(None, Redactor(), env_file=env_file)
        outputs.check()
        env_file.write_text("export jobId='se_0'\n")

        outputs.check()

        assert [*env_file.parent.iterdir()] == []

    @pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
    def test_the_check_refuses_a_path_that_is_not_a_file(
        self, env_file: Path, make: Callable[[Path], None]
    ) -> None:
        make(env_file)

        with pytest.raises(InvalidInput, match="OUTPUT_ENV_FILE"):
            Outputs(None, Redactor(), env_file=env_file).check()

        assert env_file.exists()

    @pytest.mark.parametrize(
        ("failure", "is_replaced"),
        [
            (InvalidInput("OUTPUT_ENV_FILE is refused"), False),
            (InvalidInput("another input is refused"), True),
            (JobFailed("the job read OUTPUT_ENV_FILE"), True),
        ],
        ids=str,
    )
    def test_what_is_at_a_refused_path_stays(
        self, env_file: Path, failure: ActionError, is_replaced: bool
    ) -> None:
        env_file.write_bytes(b"an archive")

        write(Outputs(None, Redactor(), env_file=env_file), export(failure=failure))

        assert (env_file.read_bytes() != b"an archive") == is_replaced

    def test_a_device_stays_although_inputs_are_refused_before_the_check(
        self, env_file: Path
    ) -> None:
        os.mkfifo(env_file)
        outputs = Outputs(None, Redactor(), env_file=env_file)

        write(outputs, export(failure=InvalidInput("another input is refused")))

        assert env_file.is_fifo()
        assert outputs.error is not None
        assert [*env_file.parent.iterdir()] == [env_file]

    def test_a_denied_one_keeps_the_advice_about_the_path(
        self, env_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        denied = Mock(side_effect=PermissionError(13, "Denied"))
        monkeypatch.setattr(module.tempfile, "TemporaryFile", denied)

        with pytest.raises(InvalidInput) as caught:
            Outputs(None, Redactor(), env_file=env_file).check()

        assert caught.value.remedy != DENIED["remedy"]

    def test_it_belongs_to_the_owner_of_its_folder(
        self, env_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        owner = Mock()
        monkeypatch.setattr(module, "owner_of", lambda _folder: owner)

        write(Outputs(None, Redactor(), env_file=env_file), export())

        owner.chown.assert_called_once()

    def test_with_a_file_of_the_runner_it_is_left_alone(self, env_file: Path, file: Path) -> None:
        env_file.write_text("of another program")
        outputs = Outputs(file, Redactor(), env_file=env_file)

        outputs.check()
        write(outputs, export())

        assert file.exists()
        assert env_file.read_text() == "of another program"

    @pytest.mark.parametrize(("longer", "is_exported"), [(0, True), (1, False)])
    def test_a_value_that_no_program_could_be_started_with_is_not_exported(
        self, env_file: Path, longer: int, is_exported: bool
    ) -> None:
        longest = MAX_VARIABLE_BYTES - len("jobId=") - 1  # the final zero
        job = export(job_id="x" * (longest + longer))

        write(Outputs(None, Redactor(), env_file=env_file), job)

        assert ("export jobId=" in env_file.read_text()) == is_exported

    def test_one_that_cannot_be_written_at_the_end_fails_the_job_and_leaves_nothing(
        self, env_file: Path
    ) -> None:
        job = export()
        with files_of_at_most(10):
            write(Outputs(None, Redactor(), env_file=env_file), job)

        assert isinstance(job.failure, InternalError)
        assert [*env_file.parent.iterdir()] == []

    def test_one_that_cannot_be_written_does_not_replace_a_failure_and_is_told_apart(
        self, env_file: Path
    ) -> None:
        outputs = Outputs(None, Redactor(), env_file=env_file)
        failure = JobFailed("the export failed")
        job = export(failure=failure)
        with files_of_at_most(10):
            write(outputs, job)

        assert job.failure is failure
        assert outputs.error is not None
