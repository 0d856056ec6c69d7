"""Outputs reach the runner's file as they are, once, and early."""

import contextlib
import fcntl
import json
import os
import re
import resource
import select
import socket
import stat
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs_platform_action.errors import InternalError, JobFailed, Rejected
from docs_platform_action.job import Job
from docs_platform_action.models import AgentJob, Bundle, Downloaded
from docs_platform_action.report import appending
from docs_platform_action.report.appending import UNREAD_CAUSE
from docs_platform_action.report.outputs import Outputs
from tests.keys import ADMIN_KEY
from tests.unit.report.test_console import Log

JWT_HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "output"


def outputs_in(file: Path | None, log: Log | None = None) -> Outputs:
    return Outputs(file, (log or Log()).console)


@contextlib.contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Limit the size of files, as a full disk does: a write is cut at the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def umask(mask: int) -> Generator[None]:
    """Set the permissions that new files of this process do not get."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


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


class TestFile:
    def test_each_new_value_is_appended_at_once(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
        outputs, written = outputs_in(file), list[list[tuple[str, str]]]()

        for name, value in (("prLink", None), ("jobId", "se_1"), ("jobId", "se_1"), ("status", "queued"), ("status", "running")):
            outputs.write(name, value)
            written.append(read_outputs(file.read_text()) if file.exists() else [])
        outputs.write("pageCount", 0)

        assert [len(lines) for lines in written] == [0, 1, 1, 2, 3]
        assert read_outputs(file.read_text()) == [
            *(("jobId", "se_1"), ("status", "queued"), ("status", "running"), ("pageCount", "0"))
        ]

    def test_what_the_file_holds_already_stays(self, file: Path) -> None:
        file.write_text("a=b\n")

        outputs_in(file).write("jobId", "se_1")

        assert file.read_text().startswith("a=b\njobId<<")

    @pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
    def test_a_new_file_can_be_read_by_a_runner_that_is_not_root(self, file: Path, mask: int, mode: int) -> None:
        with umask(mask):
            outputs_in(file).check()

        assert stat.S_IMODE(file.stat().st_mode) == mode

    def test_nothing_goes_to_the_log(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        log = Log()

        outputs_in(file, log).write("jobId", "se_1")

        assert (log.text, capsys.readouterr().out) == ("", "")

    @given(st.one_of(st.text(), st.text("a\r\n<=\x85\u2028_:", max_size=12)))
    def test_any_value_is_one_line_that_reads_back(self, tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
        file = tmp_path_factory.getbasetemp() / "any-output"
        file.unlink(missing_ok=True)
        outputs = outputs_in(file)

        outputs.write("status", value)
        outputs.write("next", "x")

        text = file.read_bytes().decode()
        (name, read), *rest = read_outputs(text)
        assert name == "status"
        assert read == re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", " ", value)
        assert rest == [("next", "x")]
        assert "\n\n" not in text.replace(f"\n{read}\n", "")

    def test_a_record_that_does_not_fit_leaves_no_half_of_it(self, file: Path) -> None:
        file.write_text("a=b\n")
        outputs = outputs_in(file)

        with files_of_at_most(20), pytest.raises(InternalError):
            outputs.write("jobId", "se_1")

        assert file.read_text() == "a=b\n"

    def test_a_file_that_is_full_already_stays_as_it_is(self, file: Path) -> None:
        file.write_text("a=b\n")

        with files_of_at_most(4), pytest.raises(InternalError):
            outputs_in(file).write("jobId", "se_1")

        assert file.read_text() == "a=b\n"

    def test_what_could_not_be_written_is_written_once_it_can(self, file: Path) -> None:
        outputs = outputs_in(file)
        with files_of_at_most(10), pytest.raises(InternalError):
            outputs.write("jobId", "se_1")

        outputs.write("jobId", "se_1")

        assert read_outputs(file.read_text()) == [("jobId", "se_1")]


class TestCheck:
    def test_a_file_that_can_be_written_is_left_as_it_is(self, file: Path) -> None:
        file.write_text("a=b\n")

        outputs_in(file).check()

        assert file.read_text() == "a=b\n"

    @pytest.mark.parametrize("place", ["", "missing/output", "/dev/full"])
    def test_one_that_cannot_be_written_is_a_failure_before_and_at_the_first_output(self, tmp_path: Path, place: str) -> None:
        outputs = outputs_in(tmp_path / place)

        with pytest.raises(InternalError):
            outputs.check()
        with pytest.raises(InternalError):
            outputs.write("jobId", "se_1")

    def test_without_a_file_there_is_nothing_to_check(self) -> None:
        outputs_in(None).check()


class TestPipesAndDevices:
    """None of them blocks: each of these tests would never end."""

    @pytest.fixture(autouse=True)
    def _does_not_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(appending, "MAX_WAIT_SECONDS", 0.01)

    @pytest.fixture
    def reader(self, file: Path) -> Iterator[int]:
        """Make the file a pipe that holds a page, and return the descriptor of a reader that has not read anything yet."""
        os.mkfifo(file)
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 4096)
        yield descriptor
        with contextlib.suppress(OSError):  # a test may have closed it
            os.close(descriptor)

    @pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "socket"])
    def test_one_that_nobody_reads_is_a_failure(self, file: Path, tmp_path: Path, kind: str) -> None:
        with contextlib.ExitStack() as stack:
            if kind == "socket":
                stack.enter_context(socket.socket(socket.AF_UNIX)).bind(str(file))
            else:
                os.mkfifo(tmp_path / "pipe")
                file.symlink_to("pipe")

            with pytest.raises(InternalError) as caught:
                outputs_in(tmp_path / "pipe" if kind == "pipe" else file).check()

        assert caught.value.cause == UNREAD_CAUSE

    def test_a_device_that_takes_everything_will_do(self) -> None:
        outputs = outputs_in(Path("/dev/null"))

        outputs.check()
        outputs.write("jobId", "se_1")

    def test_a_reader_gets_all_outputs_and_no_end_in_between(self, file: Path, reader: int) -> None:
        outputs = outputs_in(file)

        outputs.check()
        with pytest.raises(BlockingIOError):  # nothing yet, but the pipe is open
            os.read(reader, 4096)
        outputs.write("jobId", "se_1")
        outputs.write("status", "completed")

        assert read_outputs(os.read(reader, 4096).decode()) == [("jobId", "se_1"), ("status", "completed")]
        del outputs
        assert os.read(reader, 4096) == b""

    def test_a_reader_that_is_slow_gets_a_value_larger_than_the_pipe(
        self, file: Path, reader: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Recorded:
            def __init__(self) -> None:
                self._poller = poll()
                self.register = self._poller.register

            def poll(self, milliseconds: float) -> object:
                waits.append(milliseconds)
                return self._poller.poll(milliseconds)

        poll, waits, received = select.poll, list[float](), bytearray()
        monkeypatch.setattr(appending, "MAX_WAIT_SECONDS", 3600.0)
        monkeypatch.setattr(select, "poll", Recorded)

        def read_all() -> None:
            while select.select([reader], [], [])[0] and (piece := os.read(reader, 1000)):
                received.extend(piece)

        reading = threading.Thread(target=read_all)
        outputs = outputs_in(file)
        outputs.check()
        reading.start()
        outputs.write("results", "x" * 100_000)
        del outputs
        reading.join()

        assert read_outputs(received.decode()) == [("results", "x" * 100_000)]
        assert set(waits) == {3_600_000}, "each part has the whole time"

    def test_a_reader_that_stops_is_a_failure_and_gets_nothing_more(self, file: Path, reader: int) -> None:
        outputs = outputs_in(file)
        outputs.write("jobId", "se_1")

        with pytest.raises(InternalError) as caught:
            outputs.write("results", "x" * 10_000)

        assert caught.value.cause == UNREAD_CAUSE
        part = os.read(reader, 10_000)
        with pytest.raises(InternalError):  # a reader would take it for a part of `results`
            outputs.write("failureReason", "internal-error")
        with pytest.raises(BlockingIOError):
            os.read(reader, 4096)
        assert part.decode().startswith("jobId<<")

    def test_a_reader_that_goes_away_is_a_failure(self, file: Path, reader: int) -> None:
        outputs = outputs_in(file)
        outputs.check()
        os.close(reader)

        with pytest.raises(InternalError) as caught:
            outputs.write("jobId", "se_1")

        assert caught.value.cause == UNREAD_CAUSE

    def test_a_terminal_that_nobody_reads_is_a_failure(self) -> None:
        master, slave = os.openpty()
        try:
            outputs = outputs_in(Path(os.ttyname(slave)))

            with pytest.raises(InternalError):
                outputs.write("results", "x" * 1_000_000)
        finally:
            os.close(master)
            os.close(slave)

    def test_a_file_that_becomes_a_pipe_is_a_failure(self, file: Path) -> None:
        outputs = outputs_in(file)
        outputs.check()
        file.unlink()
        os.mkfifo(file)

        with pytest.raises(InternalError):
            outputs.write("jobId", "se_1")


def test_a_pipe_will_do_for_a_file() -> None:
    reading, writing = os.pipe()
    outputs = outputs_in(Path(f"/dev/fd/{writing}"))

    outputs.check()
    outputs.write("jobId", "se_1")

    os.close(writing)
    del outputs
    with open(reading, encoding="utf-8") as pipe:  # noqa: PTH123  # a descriptor
        assert read_outputs(pipe.read()) == [("jobId", "se_1")]


class TestNoFile:
    def test_outputs_are_printed(self) -> None:
        log = Log(in_workflow=False)
        outputs = outputs_in(None, log)

        outputs.write("jobId", "se_1")
        outputs.write("prLink", None)

        assert log.text == "jobId=se_1\n"


class TestAll:
    def written(self, file: Path, *jobs: Job) -> list[tuple[str, str]]:
        outputs_in(file).write_all(jobs, now=60.0, duration_seconds=61.9)
        return read_outputs(file.read_text())

    def test_a_good_job_has_each_of_its_outputs_in_order(self, file: Path) -> None:
        job = Job(
            mode="export",
            job_id="se_1",
            status="completed",
            page_count=412,
            bundle=Bundle(url="https://s.example.com/b?X-Signature=abc", expires_at="soon"),
            downloaded=Downloaded(size=3, sha256="ab"),
            bundle_path="bundle",
            site_path="site",
            values_file="values.yaml",
            agent_job=AgentJob(status="completed", pr_link="https://git.example.com/1"),
        )

        written = self.written(file, job)

        assert written[:-1] == [
            ("jobId", "se_1"),
            ("status", "completed"),
            ("pageCount", "412"),
            ("bundleUrl", "https://s.example.com/b?X-Signature=abc"),
            ("expiresAt", "soon"),
            ("bundlePath", "bundle"),
            ("bundleSize", "3"),
            ("bundleSha256", "ab"),
            ("sitePath", "site"),
            ("valuesFile", "values.yaml"),
            ("prLink", "https://git.example.com/1"),
            ("durationSeconds", "61"),
        ]
        name, results = written[-1]
        assert (name, json.loads(results)) == ("results", [job.result(60.0)])

    def test_of_several_jobs_results_alone_has_them_and_the_first_that_failed_is_the_reason(self, file: Path) -> None:
        jobs = [Job(mode="export", job_id="se_1"), Job(mode="export", failure=JobFailed("no")), Job(mode="export")]
        jobs[2].failure = Rejected("no")

        written = self.written(file, *jobs)

        assert [name for name, _ in written] == ["durationSeconds", "results", "failureReason"]
        assert written[-1] == ("failureReason", "job-failed")

    def test_nothing_in_results_has_the_key_and_no_message_a_links_secret(self, file: Path) -> None:
        log = Log(in_workflow=False)
        log.console.mask([ADMIN_KEY])
        log.console.redact_link("https://s.example.com/b?X-Signature=0123456789abcdef")
        job = Job(mode="export", status=f"at {ADMIN_KEY}", failure=JobFailed("no", details=("see 0123456789abcdef",)))

        results = outputs_in(file, log).write_all([job, Job(mode="export")], now=0.0, duration_seconds=0.0)

        row, _ = json.loads(results)
        assert (row["status"], row["message"]) == ("at ***", "Static export: no. see …")

    def test_ids_and_links_that_share_characters_with_the_key_stay_as_they_are(self, file: Path) -> None:
        log = Log(in_workflow=False)
        log.console.mask([f"adm_{JWT_HEADER}_k3y-9f27c1d4"])
        link = f"https://s.example.com/b?token={JWT_HEADER}.x"
        job = Job(mode="export", job_id=f"{JWT_HEADER}-1", domain=f"{JWT_HEADER}.example", bundle_path=f"{JWT_HEADER}/b.tar")
        job.bundle = Bundle(url=link, expires_at=f"{JWT_HEADER} o'clock")

        for outputs in (outputs_in(file, log), outputs_in(None, log)):
            outputs.write_all([job], now=0.0, duration_seconds=0.0)

        written = dict(read_outputs(file.read_text()))
        row = json.loads(written["results"])[0]
        assert (written["jobId"], row["jobId"]) == (job.job_id, job.job_id)
        assert (written["bundleUrl"], row["bundleUrl"]) == (link, link)
        assert (row["domain"], row["bundlePath"], row["expiresAt"]) == (job.domain, job.bundle_path, job.bundle.expires_at)
        assert log.text == "".join(f"{name}={value}\n" for name, value in written.items())

    def test_none_is_written_afterwards(self, file: Path) -> None:
        outputs = outputs_in(file)
        outputs.write_all([Job(mode="export")], now=0.0, duration_seconds=0.0)

        outputs.job_known(Job(mode="export", job_id="se_1"))

        assert "jobId" not in dict(read_outputs(file.read_text()))


def test_a_job_is_written_once_it_is_known(file: Path) -> None:
    outputs_in(file).job_known(Job(mode="export", job_id="se_1"))

    assert read_outputs(file.read_text()) == [("jobId", "se_1")]
