"""Outputs reach the runner's file, the environment file and the terminal as they are, once."""

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

from docs_platform_action.errors import InternalError, InvalidInput, JobFailed, Rejected
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob, Bundle, Downloaded
from docs_platform_action.outputs import MAX_VARIABLE_BYTES, Outputs
from docs_platform_action.ownership import Owner
from docs_platform_action.redaction import HIDDEN, Redactor
from tests.folders import files_of_at_most
from tests.hostile import HARMFUL, YAML
from tests.keys import ADMIN_KEY
from tests.page.samples import export
from tests.shells import SHELLS, source
from tests.unit.test_ownership import refusing

SHELL_SYNTAX = [
    *("'", "''", "'\\''", "\\", "\\\\'", '"', "`id`", "$(id)", "${IFS}", "$x", "$$", "$'\\x41'", "!!", "#", "~", "*", "a  b"),
    *("-n", "--", "-rf /", "=", "x=y", ";id", "&& id", "| id", "> /dev/null", "a\\", "a\nexport jobId='x'", "\r\n", "\t"),
    *("é 漢 \U0001f600", "\u2028", "\x80\x81\x82\x88\xff", "'; id; '", "\x00", "\ud800", ""),
]
URL = "https://s.example.com/b?X-Signature=0123456789abcdef&x='$(id)`id`\"\\,b"
JWT_HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
OWNER = (1001, 127)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "output"


def read_outputs(text: str) -> list[tuple[str, str]]:
    """Read the file as the runner does. Source: actions/runner, FileCommandManager.cs."""
    found, lines = [], iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        name, delimiter = re.fullmatch(r"([^=<]+)<<(.+)", line).groups()  # type: ignore[union-attr]
        value = []
        while (part := next(lines)) != delimiter:
            value.append(part)
        found.append((name, "\n".join(value)))
    return found


def written_to(file: Path | None, *jobs: Job, env_file: Path | None = None, redactor: Redactor | None = None) -> Outputs:
    """Write all outputs of a run that took 61.9 s, and ended 60 s after the clock's beginning."""
    outputs = Outputs(file, redactor or Redactor(), env_file=env_file)
    outputs.write_all(jobs, now=60.0, duration_seconds=61.9)
    return outputs


def as_output(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", text)


class TestValues:
    def test_a_good_job_has_each_of_its_outputs(self) -> None:
        job = export(
            job_id="se_1",
            status="completed",
            page_count=412,
            link=Bundle(url=URL, expires_at="soon"),
            downloaded=Downloaded(size=3, sha256="ab"),
            bundle_path="bundle",
            site_path="site",
            values_file="values.yaml",
        )

        values = written_to(None, job).values

        assert json.loads(values["results"]) == [job.result(60.0)]
        assert {name: text for name, text in values.items() if name != "results"} == {
            "jobId": "se_1",
            "status": "completed",
            "pageCount": "412",
            "bundleUrl": URL,
            "expiresAt": "soon",
            "bundlePath": "bundle",
            "bundleSize": "3",
            "bundleSha256": "ab",
            "sitePath": "site",
            "valuesFile": "values.yaml",
            "durationSeconds": "61",
        }

    def test_an_agent_job_has_its_pull_request(self) -> None:
        job = Job(mode="agent", job_id="aj_1", reading=AgentJob(status="completed", pr_link="https://git.example.com/1"))

        assert written_to(None, job).values["prLink"] == "https://git.example.com/1"

    def test_zero_is_a_value(self) -> None:
        assert written_to(None, export(status="completed", page_count=0)).values["pageCount"] == "0"

    def test_only_results_has_those_of_several_jobs_and_the_first_failure_is_the_reason(self) -> None:
        jobs = [Job(mode="export", job_id="se_1"), Job(mode="export", failure=JobFailed("no")), Job(mode="export")]
        jobs[2].failure = Rejected("no")

        values = written_to(None, *jobs).values

        assert {*values} == {"durationSeconds", "results", "failureReason"}
        assert values["failureReason"] == "job-failed"

    def test_a_message_has_neither_the_key_nor_a_links_secret(self) -> None:
        redactor = Redactor([ADMIN_KEY])
        redactor.add_link(URL)
        job = Job(mode="export", failure=JobFailed("no", details=(f"see 0123456789abcdef {ADMIN_KEY}",)))

        (row,) = json.loads(written_to(None, job, redactor=redactor).values["results"])

        assert row["message"] == "Static export: no. see … ***"

    def test_ids_and_links_that_share_characters_with_the_key_stay_as_they_are(self, file: Path) -> None:
        link = Bundle(url=f"https://s.example.com/b?token={JWT_HEADER}.x", expires_at=f"{JWT_HEADER} o'clock")
        job = export(job_id=f"{JWT_HEADER}-1", domain=f"{JWT_HEADER}.example", bundle_path=f"{JWT_HEADER}/b.tar", link=link)

        outputs = written_to(file, job, redactor=Redactor([f"adm_{JWT_HEADER}_k3y-9f27c1d4"]))

        written = dict(read_outputs(file.read_text()))
        (row,) = json.loads(written["results"])
        assert (written["jobId"], row["jobId"]) == (job.job_id, job.job_id)
        assert (written["bundleUrl"], row["bundleUrl"]) == (link.url, link.url)
        assert (row["domain"], row["bundlePath"], row["expiresAt"]) == (job.domain, f"{JWT_HEADER}/b.tar", link.expires_at)
        assert outputs.printable == written


class TestPrintable:
    @pytest.mark.parametrize("count", [1, 2])
    def test_a_masked_link_is_in_the_file_but_is_not_printed(self, file: Path, count: int) -> None:
        jobs = [export(job_id=f"se_{n}", masks_bundle_url=True, link=Bundle(url=URL)) for n in range(count)]

        outputs = written_to(None, *jobs, env_file=file)

        written = source(file)
        assert [row["bundleUrl"] for row in json.loads(written["results"])] == [URL] * count
        assert [row["bundleUrl"] for row in json.loads(outputs.printable["results"])] == [HIDDEN] * count
        if count == 1:
            assert (written["bundleUrl"], outputs.printable["bundleUrl"]) == (URL, HIDDEN)
        assert "X-Signature" not in str(outputs.printable)

    def test_a_link_that_begins_with_another_one_is_hidden_whole(self) -> None:
        links = [Bundle(url=f"https://s.example.com/b?x=1{more}") for more in ("", "&X-Signature=short")]

        outputs = written_to(None, *(export(masks_bundle_url=True, link=link) for link in links))

        assert [row["bundleUrl"] for row in json.loads(outputs.printable["results"])] == [HIDDEN] * 2

    def test_any_other_link_is_printed(self) -> None:
        outputs = written_to(None, export(link=Bundle(url=URL)))

        assert outputs.printable == outputs.values


class TestRunnersFile:
    def test_the_job_id_is_there_before_all_others_and_once(self, file: Path) -> None:
        job = Job(mode="export", job_id="se_1")
        outputs = Outputs(file, Redactor())

        outputs.write_job_id(job)
        early = read_outputs(file.read_text())
        outputs.write_all([job], now=0.0, duration_seconds=7.0)

        assert early == [("jobId", "se_1")]
        assert sorted(name for name, _ in read_outputs(file.read_text())) == ["durationSeconds", "jobId", "results"]

    def test_no_job_id_is_written_after_the_end(self, file: Path) -> None:
        outputs = written_to(file, Job(mode="export"))

        outputs.write_job_id(Job(mode="export", job_id="se_1"))

        assert "jobId" not in dict(read_outputs(file.read_text()))

    def test_what_the_file_holds_already_stays(self, file: Path) -> None:
        file.write_text("a=b\n")
        outputs = Outputs(file, Redactor())

        outputs.check()
        assert file.read_text() == "a=b\n"
        outputs.write_job_id(Job(mode="export", job_id="se_1"))

        assert file.read_text().startswith("a=b\njobId<<")

    def test_in_a_workflow_the_environment_file_is_not_written(self, file: Path, tmp_path: Path) -> None:
        outputs = Outputs(file, Redactor(), env_file=tmp_path / "outputs.env")

        outputs.check()
        outputs.write_all([Job(mode="export")], now=0.0, duration_seconds=0.0)

        assert [*tmp_path.iterdir()] == [file]

    @given(st.one_of(st.text(), st.text("a\r\n<=\x85\u2028_:", max_size=12)))
    def test_any_value_is_one_line_that_reads_back(self, tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
        file = tmp_path_factory.getbasetemp() / "any-output"
        file.unlink(missing_ok=True)

        written_to(file, export(status=value, page_count=1))

        text = file.read_bytes().decode()
        written = dict(read_outputs(text))
        assert written["status"] == as_output(value)
        assert json.loads(written["results"])[0]["status"] == as_output(value)
        assert {*written} == {"status", "durationSeconds", "results"}

    @pytest.mark.parametrize("size", [4, 20])
    def test_a_record_that_does_not_fit_leaves_no_part_of_it(self, file: Path, size: int) -> None:
        file.write_text("a=b\n")

        with files_of_at_most(size), pytest.raises(InternalError):
            Outputs(file, Redactor()).write_job_id(Job(mode="export", job_id="se_1"))

        assert file.read_text() == "a=b\n"

    def test_what_could_not_be_written_early_is_written_at_the_end(self, file: Path) -> None:
        outputs, job = Outputs(file, Redactor()), Job(mode="export", job_id="se_1")
        with files_of_at_most(10), pytest.raises(InternalError):
            outputs.write_job_id(job)

        outputs.write_all([job], now=0.0, duration_seconds=0.0)

        assert dict(read_outputs(file.read_text()))["jobId"] == "se_1"

    def test_if_results_do_not_fit_the_first_good_job_fails_and_the_short_ones_are_written(self, file: Path) -> None:
        jobs = [export(domain="a", failure=JobFailed("no")), export(domain="b"), export(domain="c")]

        with files_of_at_most(300):
            outputs = written_to(file, *jobs)

        assert [job.failure.failure_reason if job.failure else None for job in jobs] == ["job-failed", "internal-error", None]
        assert read_outputs(file.read_text()) == [("durationSeconds", "61"), ("failureReason", "job-failed")]
        assert json.loads(outputs.values["results"])[1]["failureReason"] == "internal-error"

    @pytest.mark.parametrize("place", ["", "missing/output"])
    def test_one_that_cannot_be_written_is_a_failure_before_and_at_the_first_output(self, tmp_path: Path, place: str) -> None:
        outputs = Outputs(tmp_path / place, Redactor())

        with pytest.raises(InternalError):
            outputs.check()
        with pytest.raises(InternalError):
            outputs.write_job_id(Job(mode="export", job_id="se_1"))


def test_without_any_file_nothing_is_written_and_nothing_fails(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        outputs = Outputs(None, Redactor())
        outputs.check()
        outputs.write_job_id(Job(mode="export", job_id="se_1"))
        outputs.write_all([Job(mode="export", job_id="se_1")], now=0.0, duration_seconds=0.0)

    assert ([*tmp_path.iterdir()], outputs.printable["jobId"]) == ([], "se_1")


class TestEnvironmentFile:
    def test_each_output_is_an_export(self, file: Path) -> None:
        written_to(None, export(job_id="se_1", status="it's done"), env_file=file)

        lines = file.read_text().splitlines()
        assert lines[:2] == ["export jobId='se_1'", "export status='it'\\''s done'"]
        assert all(line.startswith("export ") for line in lines)

    @pytest.mark.parametrize("shell", SHELLS)
    def test_hostile_values_read_back_as_they_are(self, file: Path, shell: str) -> None:
        read = {}
        for text in (*SHELL_SYNTAX, *HARMFUL, *YAML, URL):
            written_to(None, export(status=text), env_file=file)
            read[text] = source(file, shell)["status"]

        assert read == {text: as_output(text) for text in read}

    @given(st.one_of(st.text(), st.text("'\"\\$`(){}!#~*&|;<>\n -=x", max_size=20)))
    def test_any_value_reads_back(self, tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
        file = tmp_path_factory.getbasetemp() / "any.env"

        written_to(None, export(status=text), env_file=file)

        assert source(file, SHELLS[len(text) % 2])["status"] == as_output(text)

    @pytest.mark.parametrize("shell", SHELLS)
    @pytest.mark.parametrize(("length", "is_exported"), [(MAX_VARIABLE_BYTES - 8, True), (MAX_VARIABLE_BYTES - 7, False)])
    def test_a_value_that_no_program_can_get_is_not_exported(
        self, file: Path, shell: str, length: int, is_exported: bool
    ) -> None:
        text = "é'" + "x" * (length - 3)  # one character of two bytes
        written_to(None, export(job_id="se_1", status=text), env_file=file)
        lines = [line for line in file.read_text().splitlines() if "results=" not in line]
        file.write_text("\n".join([*lines, "export LENGTH=${#status}"]))

        found = source(file, shell)

        assert (found["jobId"], "status" in found) == ("se_1", is_exported)
        assert int(found["LENGTH"]) in {length - 1, length}  # bash counts characters or bytes, by the locale

    @pytest.mark.parametrize("before", ["export bundleUrl='x'\n", None])
    def test_there_is_none_before_the_end(self, file: Path, before: str | None) -> None:
        if before is not None:
            file.write_text(before)
        outputs = Outputs(None, Redactor(), env_file=file)

        outputs.check()
        outputs.write_job_id(Job(mode="export", job_id="se_1"))

        assert not file.exists()

    @pytest.mark.parametrize("mode", [None, 0o644, 0o666, 0o444])
    def test_only_its_owner_can_read_it_whatever_was_there(self, file: Path, mode: int | None) -> None:
        if mode is not None:
            file.touch()
            file.chmod(mode)

        written_to(None, Job(mode="export"), env_file=file)

        assert stat.S_IMODE(file.stat().st_mode) == 0o600

    def test_who_has_an_earlier_file_open_does_not_get_the_link(self, file: Path) -> None:
        file.write_text("earlier\n")

        with file.open() as earlier:
            written_to(None, export(link=Bundle(url=URL)), env_file=file)

            assert earlier.read() == "earlier\n"

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

        written_to(None, Job(mode="export", job_id="se_1"), env_file=file)

        assert (file.is_symlink(), source(file)["jobId"]) == (False, "se_1")
        if kind == "dangling":
            assert not target.exists()
        else:
            assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("precious", 0o755)

    @pytest.mark.parametrize("place", [".", "pipe", "link-to-a-folder", "/dev/null", "missing/outputs.env"])
    def test_one_that_cannot_be_written_is_an_invalid_input_before_the_run(self, tmp_path: Path, place: str) -> None:
        os.mkfifo(tmp_path / "pipe")  # to open it would block, because nobody reads it
        (tmp_path / "link-to-a-folder").symlink_to(tmp_path)

        with pytest.raises(InvalidInput):
            Outputs(None, Redactor(), env_file=tmp_path / place).check()

    def test_a_check_leaves_nothing_in_the_folder(self, file: Path) -> None:
        Outputs(None, Redactor(), env_file=file).check()

        assert [*file.parent.iterdir()] == []

    def test_what_cannot_be_written_at_the_end_is_printable_and_fails_the_job(self, tmp_path: Path) -> None:
        job = export(job_id="se_1", status="completed")

        outputs = written_to(None, job, env_file=tmp_path / "missing" / "outputs.env")

        assert isinstance(job.failure, InternalError)
        assert (outputs.printable["jobId"], outputs.printable["failureReason"]) == ("se_1", "internal-error")

    @pytest.mark.parametrize("refused", ["write", "chown", "rename"])
    def test_one_that_cannot_be_written_completely_leaves_nothing(
        self, file: Path, monkeypatch: pytest.MonkeyPatch, refused: str
    ) -> None:
        job = Job(mode="export", job_id="se_1")
        with monkeypatch.context() as patch, contextlib.ExitStack() as stack:
            if refused == "write":
                stack.enter_context(files_of_at_most(30))
            elif refused == "chown":
                patch.setattr("docs_platform_action.outputs.owner_of", lambda _: Owner(*OWNER))
                patch.setattr(os, "chown", refusing(errno.EIO))
            else:
                patch.setattr(Path, "replace", refusing(errno.EBUSY))  # of a file that is mounted by itself

            written_to(None, job, env_file=file)

        assert isinstance(job.failure, InternalError)
        assert [*file.parent.iterdir()] == []


class TestOwner:
    @pytest.fixture
    def chowns(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int, int]]]:
        """Return changes of owners, with the changed inode, of a process that is root in a folder of somebody else."""
        changes: list[tuple[int, int, int]] = []

        def chown(descriptor: int, uid: int, gid: int, **_: object) -> None:
            assert not file.exists(), "the file already has its owner when it gets its name"
            changes.append((os.fstat(descriptor).st_ino, uid, gid))

        with monkeypatch.context() as patch:
            patch.setattr("docs_platform_action.outputs.owner_of", lambda _: Owner(*OWNER))
            patch.setattr(os, "chown", chown)
            yield changes

    def test_a_file_of_root_gets_the_folders_owner(self, chowns: list[tuple[int, int, int]], file: Path) -> None:
        written_to(None, Job(mode="export"), env_file=file)

        assert chowns == [(file.stat().st_ino, *OWNER)]

    def test_a_file_system_without_owners_is_accepted(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("docs_platform_action.outputs.owner_of", lambda _: Owner(*OWNER))
        monkeypatch.setattr(os, "chown", refusing(errno.EPERM))

        written_to(None, Job(mode="export", job_id="se_1"), env_file=file)

        assert source(file)["jobId"] == "se_1"
