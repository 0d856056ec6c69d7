"""Step outputs: what later steps and jobs read."""

import contextlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from actions_toolkit.file_command import prepare_key_value_message

from ..errors import DENIED_CAUSE, DENIED_REMEDY, InternalError
from ..events import Events
from ..job import Job
from ..models import UNUSABLE
from ..redaction import Redactor
from ..text import format_bytes
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


class Outputs(Events):
    """Writes outputs to the file that `GITHUB_OUTPUT` names, or prints them if there is none."""

    def __init__(self, file: Path | None, console: Console, redactor: Redactor) -> None:
        self._file = file
        self._console = console
        self._redactor = redactor
        self._lock = threading.Lock()
        self._written: dict[str, str] = {}
        self._closed = False

    def check(self) -> None:
        """Raise `InternalError` if outputs cannot be written."""
        if self._file is not None:
            self._append(self._file, b"")

    def job_known(self, job: Job) -> None:
        """Write `jobId` early: the runner reads the file even after a cancel. Raises `InternalError` if it cannot be written."""
        self.write("jobId", job.job_id)

    def write_all(self, jobs: Sequence[Job], *, now: float, duration_seconds: float) -> str:
        """Write every output, and return `results`. If one cannot be written, the first job fails, and the others are written."""
        first = jobs[0]
        if len(jobs) == 1:
            for name in OUTPUTS_OF_ONE_JOB:
                # a new result for each output: if one cannot be written, the job fails, and a failed job has no link
                self._write_or_fail(first, name, first.result(now)[name])
        self._write_or_fail(first, "durationSeconds", int(duration_seconds))
        results = json.dumps([self._without_secrets(job.result(now)) for job in jobs], separators=(",", ":"))
        self._write_or_fail(first, "results", results)
        reasons = (job.failure.failure_reason for job in jobs if job.failure is not None)
        self._write_or_fail(first, "failureReason", next(reasons, None))
        with self._lock:
            self._closed = True  # a cancel may leave a thread that writes `jobId` late
        return results

    def _write_or_fail(self, job: Job, name: str, value: object) -> None:
        try:
            self.write(name, value)
        except InternalError as error:
            job.failure = job.failure or error

    def _without_secrets(self, result: dict[str, object]) -> dict[str, object]:
        """Hide the key in a job's result, and the secrets of links in its message, which may quote foreign text."""
        hidden = {name: self._redactor.hide(value) if isinstance(value, str) else value for name, value in result.items()}
        if isinstance(message := hidden["message"], str):
            hidden["message"] = self._console.hide_links(message)
        return hidden

    def write(self, name: str, value: object) -> None:
        """Write an output unless it is `None` or has that value already. Raises `InternalError` if it cannot be written."""
        if value is None:
            return
        text = UNUSABLE.sub(" ", str(value))  # surrogates and control characters: every output is one line of UTF-8
        with self._lock:
            if self._closed or self._written.get(name) == text:
                return
            if self._file is None:
                self._console.output(name, text)
            else:
                self._append(self._file, f"{prepare_key_value_message(name, text)}\n".encode())
            self._written[name] = text

    def _append(self, file: Path, record: bytes) -> None:
        """Append the whole record or nothing: a part of one would make the runner reject all outputs."""
        try:
            with file.open("ab", buffering=0) as stream:
                size = file.stat().st_size  # not `tell`, which a pipe refuses
                try:
                    while record:
                        record = record[stream.write(record) :]
                except OSError:
                    with contextlib.suppress(OSError):  # the first error is the one to report
                        stream.truncate(size)
                    raise
        except OSError as error:
            denied = isinstance(error, PermissionError)
            raise InternalError(
                "the step's output file cannot be written",
                details=(f"The file that GITHUB_OUTPUT names: {error.strerror or type(error).__name__}.",),
                cause=DENIED_CAUSE if denied else "The runner's disk is full, or its temporary folder cannot be written to.",
                remedy=DENIED_REMEDY if denied else "Fix the runner and run the workflow again.",
            ) from error


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
