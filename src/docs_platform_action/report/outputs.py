"""Step outputs: what later steps and jobs read."""

import contextlib
import errno
import json
import os
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import ClassVar, Final

from actions_toolkit.file_command import prepare_key_value_message

from ..errors import DENIED_CAUSE, DENIED_REMEDY, InternalError, internal_error
from ..events import Events
from ..job import Job
from ..models import UNUSABLE
from ..ownership import owner_of
from ..text import format_bytes
from .appending import UNREAD, UNREAD_CAUSE, append, open_to_append
from .console import Console

# the limit of all outputs of a job together, in UTF-16 (source: GitHub's documentation of job outputs)
MAX_JOB_OUTPUT_BYTES: Final = 1024 * 1024

# the keys of a job's result that are also outputs of a step with one job
OUTPUTS_OF_ONE_JOB: Final = (
    "jobId",
    "status",
    "pageCount",
    "bundleUrl",
    "expiresAt",
    "bundlePath",
    "bundleSize",
    "bundleSha256",
    "sitePath",
    "valuesFile",
    "prLink",
)

MAX_VARIABLE_BYTES: Final = 128 * 1024
"""The longest `NAME=value`, with its final zero, that Linux passes to a program (source: execve(2), `MAX_ARG_STRLEN`)."""


class OutputFile:
    """The file that `GITHUB_OUTPUT` names. A pipe or a device stays open: its reader would take a close for the end."""

    _stays_open: ClassVar[bool] = False  # also if it is a regular file

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: int | None = None  # the open descriptor
        self._stalled: BlockingIOError | None = None

    def check(self) -> None:
        """Raise `InternalError` if the file cannot be written."""
        self._append(b"")

    def add(self, name: str, text: str) -> None:
        """Append an output. Raises `InternalError` if the file cannot be written."""
        self._append(f"{prepare_key_value_message(name, text)}\n".encode())

    def _append(self, record: bytes) -> None:
        try:
            if self._stalled is not None:
                raise self._stalled
            with FileIO(self._descriptor(), "ab") as file:  # its `close` reports late errors of network shares
                append(record, file)
        except OSError as error:
            if isinstance(error, BlockingIOError):  # its reader would take what follows for the rest of the record
                self._stalled = error
            raise self._failure(error) from error

    def _descriptor(self) -> int:
        """Return a descriptor for one record."""
        if self._kept is None:
            opened = self._open()
            if stat.S_ISREG(os.fstat(opened).st_mode) and not self._stays_open:
                return opened
            self._kept = opened
            weakref.finalize(self, os.close, opened)
        return os.dup(self._kept)

    def _open(self) -> int:
        return open_to_append(self._path)

    def _failure(self, error: OSError) -> InternalError:
        cause = "The runner's disk is full, or its temporary folder cannot be written to."
        remedy = "Fix the runner and run the workflow again."
        if isinstance(error, PermissionError):
            cause, remedy = DENIED_CAUSE, DENIED_REMEDY
        elif error.errno in UNREAD:
            cause = UNREAD_CAUSE
            remedy = "Set GITHUB_OUTPUT to the path of a file, or read the pipe until the step has ended."
        details = (f"The file that GITHUB_OUTPUT names: {error.strerror or type(error).__name__}.",)
        return InternalError("the step's output file cannot be written", details=details, cause=cause, remedy=remedy)


class EnvFile(OutputFile):
    """The file that `OUTPUT_ENV_FILE` names: lines for a POSIX shell to source.

    The first append puts a new file in its place, which only its owner can read, because links are secrets. Later appends go to
    that file, even if somebody puts another one at the path.
    """

    _stays_open = True

    def add(self, name: str, text: str) -> None:
        """Append an output, which is exported unless it is so long that the shell could not start programs any more."""
        export = "export " if len(f"{name}={text}\0".encode()) <= MAX_VARIABLE_BYTES else ""
        quoted = text.replace("'", r"'\''")
        self._append(f"{export}{name}='{quoted}'\n".encode())

    def _open(self) -> int:
        """Put a new file at the path, and return its descriptor. A link there is replaced, not followed. Raises `OSError`."""
        if self._path.exists() and not self._path.is_file():
            raise OSError(errno.EEXIST, "Not a regular file")
        folder = self._path.parent
        descriptor, part = tempfile.mkstemp(prefix=".docs-platform-action-", dir=folder)  # with mode 0600, under a new name
        try:
            owner = owner_of(folder)
            if owner is not None:
                owner.chown(descriptor)
            Path(part).replace(self._path)
        except OSError:
            os.close(descriptor)
            with contextlib.suppress(OSError):  # the first error is the one to report
                Path(part).unlink()
            raise
        return descriptor

    def _failure(self, error: OSError) -> InternalError:
        return InternalError(
            "the file that OUTPUT_ENV_FILE names cannot be written",
            details=(f"{self._path}: {error.strerror or type(error).__name__}.",),
            cause=(
                "It is not a regular file, or it is mounted by itself; or its folder does not exist, is full, or does not allow "
                "writing."
            ),
            remedy=(
                "Set OUTPUT_ENV_FILE to a file in an existing folder, such as the workspace that is mounted into the container, "
                "and run again. Mount the folder, not the file, and with SELinux mount it with `:z`."
            ),
        )


class Outputs(Events):
    """Writes outputs to the runner's `file`. Without one, prints them, and also writes them to `env_file`, if it is set."""

    def __init__(self, file: Path | None, console: Console, *, env_file: Path | None = None) -> None:
        self._prints = file is None
        self._file = OutputFile(file) if file is not None else EnvFile(env_file) if env_file is not None else None
        self._masked_links: list[str] = []
        self._console = console
        self._lock = threading.Lock()
        self._written: dict[str, str] = {}
        self._closed = False

    def check(self) -> None:
        """Raise `InternalError` if outputs cannot be written."""
        if self._file is not None:
            self._file.check()

    def job_known(self, job: Job) -> None:
        """Write `jobId` early: the runner reads the file even after a cancel. Raises `InternalError` if it cannot be written."""
        self.write("jobId", job.job_id)

    def write_all(self, jobs: Sequence[Job], *, now: float, duration_seconds: float) -> str:
        """Write every output, and return `results`. If one cannot be written, the first job fails, and the others are written."""
        first = jobs[0]
        links = [job.bundle.url for job in jobs if job.masks_bundle_url and job.bundle is not None]
        forms = [form for link in links for form in (link, json.dumps(link)[1:-1])]
        self._masked_links = sorted(forms, key=len, reverse=True)  # a link may begin with another one
        for name in OUTPUTS_OF_ONE_JOB if len(jobs) == 1 else ():
            # a new result for each output: if one cannot be written, the job fails, and a failed job has no link
            with _failing(first):
                self._write_or_fail(first, name, first.result(now)[name])
        self._write_or_fail(first, "durationSeconds", int(duration_seconds))
        results = ""
        with _failing(first):
            results = json.dumps([self._without_secrets(job.result(now)) for job in jobs], separators=(",", ":"))
            self._write_or_fail(first, "results", results)
        reasons = (job.failure.failure_reason for job in jobs if job.failure is not None)
        self._write_or_fail(first, "failureReason", next(reasons, None))
        with self._lock:
            self._closed = True  # a cancel may leave a thread that writes `jobId` late
        return results

    def _write_or_fail(self, job: Job, name: str, value: object) -> None:
        with _failing(job):
            self.write(name, value)

    def _without_secrets(self, result: dict[str, object]) -> dict[str, object]:
        """Hide the key in a job's result, and in its message, which may quote foreign text, the secrets of links, too."""
        hide = self._console.redactor.hide_whole_keys
        hidden = {name: hide(value) if isinstance(value, str) else value for name, value in result.items()}
        if isinstance(message := hidden["message"], str):
            hidden["message"] = self._console.hide(message)
        return hidden

    def write(self, name: str, value: object) -> None:
        """Write an output unless it is `None` or has that value already. Raises `InternalError` if it cannot be written."""
        if value is None:
            return
        text = UNUSABLE.sub(" ", str(value))  # surrogates and control characters: every output is one line of UTF-8
        with self._lock:
            if self._closed or self._written.get(name) == text:
                return
            if self._prints:
                self._console.output(name, self._printed(text))
            if self._file is not None:
                self._file.add(name, text)
            self._written[name] = text

    def _printed(self, text: str) -> str:
        """Return what to print of an output: `mask-bundle-url` hides links and their secrets, if a file has them."""
        if self._file is None or not self._masked_links:
            return text
        for link in self._masked_links:
            text = text.replace(link, "***")
        return self._console.hide(text)


@contextlib.contextmanager
def _failing(job: Job) -> Iterator[None]:
    """Fail the job, unless it has failed already, if an output cannot be written or has a bug."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # a bug in one output must not cost the others
        job.failure = job.failure or (error if isinstance(error, InternalError) else internal_error(error))


def size_warning(results: str) -> list[str] | None:
    """Return a warning if `results` is more than one job can pass to another."""
    size = len(results.encode("utf-16-le"))
    if size <= MAX_JOB_OUTPUT_BYTES:
        return None
    return [
        "The output `results` is too large for a job output",
        f"It has {format_bytes(size)} in UTF-16. All outputs of a job together may have {format_bytes(MAX_JOB_OUTPUT_BYTES)}.",
        "The steps of this job can read it, but the job fails at its end if its `outputs` pass it on.",
        "Pass on only what the next job needs, `toJSON(fromJSON(steps.ID.outputs.results).*.jobId)`, or export in two jobs.",
    ]
