"""Step outputs: what later steps and jobs read."""

import contextlib
import threading
from pathlib import Path
from typing import Final

from actions_toolkit.file_command import prepare_key_value_message

from ..errors import DENIED_CAUSE, DENIED_REMEDY, InternalError
from ..models import UNUSABLE
from ..text import size
from .console import Console

MOST_BYTES_OF_A_JOB: Final = 1024 * 1024
"""What all outputs of a job may have together, in UTF-16 (source: GitHub's documentation of job outputs)."""


class Outputs:
    """Hands outputs to the runner through the file that `GITHUB_OUTPUT` names, or prints them where there is none.

    Each is written as soon as it is known: the runner reads the file after a cancel too. Once closed it takes no more.
    """

    def __init__(self, file: Path | None, console: Console) -> None:
        self._file = file
        self._console = console
        self._lock = threading.Lock()
        self._written: dict[str, str] = {}
        self._closed = False

    def check(self) -> None:
        """See that outputs can be written, before anything is done that they would have to tell. Raises `InternalError`."""
        if self._file is not None:
            self._append(self._file, b"")

    def write(self, name: str, value: object) -> None:
        """Write an output, unless it is `None` or has that value already.

        Raises `InternalError` when the file cannot be written.
        """
        if value is None:
            return
        text = _storable(str(value))
        with self._lock:
            if self._closed or self._written.get(name) == text:
                return
            if self._file is None:
                self._console.output(name, text)
            else:
                self._append(self._file, f"{prepare_key_value_message(name, text)}\n".encode())
            self._written[name] = text

    def _append(self, file: Path, record: bytes) -> None:
        """Add a whole record or nothing: half of one would cost the runner all outputs."""
        try:
            with file.open("ab", buffering=0) as stream:
                size = file.stat().st_size  # not `tell`, which a pipe refuses
                try:
                    while record:
                        record = record[stream.write(record) :]
                except OSError:
                    with contextlib.suppress(OSError):  # the first error is the one to tell
                        stream.truncate(size)
                    raise
        except OSError as error:
            denied = isinstance(error, PermissionError)
            raise InternalError(
                "the step's output file cannot be written",
                facts=(f"The file that GITHUB_OUTPUT names: {error.strerror or type(error).__name__}.",),
                cause=DENIED_CAUSE if denied else "The runner's disk is full, or its temporary folder cannot be written to.",
                remedy=DENIED_REMEDY if denied else "Fix the runner and run the workflow again.",
            ) from error

    def close(self) -> None:
        """Take no more: what comes later, from a thread that was left behind, is too late."""
        with self._lock:
            self._closed = True


def too_large_for_a_job(results: str) -> list[str] | None:
    """Make the warning that `results` are more than a job can hand to another, if they are."""
    count = len(results.encode("utf-16-le"))
    if count <= MOST_BYTES_OF_A_JOB:
        return None
    counted, most = size(count), size(MOST_BYTES_OF_A_JOB)
    return [
        "The output `results` is too large to become an output of the job",
        f"It has {counted} as GitHub counts, two bytes a character; all outputs of a job together may have {most}.",
        "The steps of this job can read it, but a job whose `outputs` hold it fails when it ends.",
        "Hand on what the next job needs alone, `toJSON(fromJSON(steps.ID.outputs.results).*.jobId)`, or export in two jobs.",
    ]


def _storable(text: str) -> str:
    """Replace what cannot be stored in UTF-8, and control characters: every output is one line."""
    return UNUSABLE.sub(" ", text)
