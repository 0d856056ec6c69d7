"""Step outputs: the runner's file, the file for a shell, and what is printed."""

import json
from pathlib import Path
from typing import Any

import pytest

from admin_api_simulator.runner import parse_outputs
from docs_platform_action.errors import InternalError, JobFailed
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import BundleLink, ExportJob
from docs_platform_action.outputs import MAX_VARIABLE_BYTES, Outputs
from docs_platform_action.redaction import HIDDEN, Redactor
from tests.folders import files_of_at_most
from tests.keys import ADMIN_KEY
from tests.shells import SHELLS, source

LINK = "https://s.example.com/b?sig=1,2&x='y'"


def export(**known: Any) -> Job:
    return Job(mode=Mode.EXPORT, domain="docs.example.com", **{"job_id": "se_1", **known})


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


def test_masked_links_are_hidden_only_where_they_are_printed() -> None:
    outputs, links = (
        Outputs(None, Redactor()),
        ("https://t.example.com/b", 'https://t.example.com/b"ü'),
    )
    jobs = [export(link=BundleLink(url=link), masks_bundle_url=True) for link in links] + [
        export(link=BundleLink(url=LINK))
    ]

    write(outputs, *jobs)

    assert [row["bundleUrl"] for row in json.loads(outputs.values["results"])] == [*links, LINK]
    assert [row["bundleUrl"] for row in json.loads(outputs.printable["results"])] == [
        HIDDEN,
        HIDDEN,
        LINK,
    ]


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
        assert (written["status"], env_file.stat().st_mode & 0o777) == (status, 0o600)

    def test_a_value_that_no_program_could_be_started_with_is_not_exported(
        self, env_file: Path
    ) -> None:
        name = "jobId"
        for length, is_exported in (
            (MAX_VARIABLE_BYTES - len(name) - 2, True),
            (MAX_VARIABLE_BYTES - len(name) - 1, False),
        ):
            write(Outputs(None, Redactor(), env_file=env_file), export(job_id="x" * length))
            assert (f"export {name}=" in env_file.read_text()) == is_exported

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
        outputs, failure = (
            Outputs(None, Redactor(), env_file=env_file),
            JobFailed("the export failed"),
        )
        job = export(failure=failure)
        with files_of_at_most(10):
            write(outputs, job)

        assert job.failure is failure
        assert outputs.error is not None
