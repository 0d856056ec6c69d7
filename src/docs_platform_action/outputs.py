"""Step outputs: what later steps and jobs read."""

import contextlib
import errno
import json
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from actions_toolkit.file_command import prepare_key_value_message

from .errors import DENIED, ActionError, Advice, InternalError, InvalidInput
from .job import Job
from .ownership import owner_of
from .redaction import HIDDEN, Redactor
from .text import UNUSABLE

# the keys of a job's result that are also outputs of a step with one job
OUTPUTS_OF_ONE_JOB: Final = (
    "deployedCommit",
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
    "manifestPath",
    "siteSha256",
    "changed",
    "changesPath",
    "prLink",
)

# the longest `NAME=value`, with its final zero, that Linux passes to a program
# (source: execve(2), `MAX_ARG_STRLEN`)
MAX_VARIABLE_BYTES: Final = 128 * 1024

_NOTHING: Final = re.compile("(?!)")  # matches nothing

_RUNNER_DISK: Final = Advice(
    cause="The runner's disk is full, or its temporary folder cannot be written to.",
    remedy="Fix the runner and run the workflow again.",
)
_ENV_FILE: Final = Advice(
    cause=(
        "Its folder is missing, full or read-only; or the path is a folder, or mounted by itself."
    ),
    remedy="Set it to a file in an existing folder. `~` and variables are not expanded.",
)


class Outputs:
    """Writes outputs to the runner's `file`, or without one at the end to `env_file`.

    `values` holds them after `write_all`. Safe to use from several threads.
    """

    def __init__(
        self, file: Path | None, redactor: Redactor, *, env_file: Path | None = None
    ) -> None:
        self.values: Mapping[str, str] = {}
        self.error: InternalError | None = None
        self._file = file
        self._env_file = env_file if file is None else None
        self._redactor = redactor
        self._hidden_links = _NOTHING
        self._written: dict[str, str] = {}
        self._is_closed = False
        self._lock = threading.Lock()

    def check(self) -> None:
        """Remove an earlier `env_file`.

        Raises `InternalError` or `InvalidInput` if outputs cannot be written.
        """
        if self._file is not None:
            self._append(self._file, {})
        if self._env_file is not None:
            _prepare_env_file(self._env_file)

    def write_job_id(self, job: Job) -> None:
        """Write `jobId` and `deployedCommit` early: the runner reads the file even after a cancel.

        Raises `InternalError`.
        """
        commit = job.deployed.commit if job.deployed else None
        values = _texts({"deployedCommit": commit, "jobId": job.job_id})
        with self._lock:
            # a cancel may leave a thread that learns the ID after the end
            if self._file is not None and not self._is_closed:
                self._append(self._file, values)

    @property
    def printable(self) -> Mapping[str, str]:
        """The outputs without the links that `mask-bundle-url` hides."""
        return {name: self._hidden_links.sub(HIDDEN, text) for name, text in self.values.items()}

    def write_all(self, jobs: Sequence[Job], *, now: float, duration_seconds: float) -> None:
        """Write every output. If they cannot be written, the first job that has not failed fails.

        If all have failed, `error` says why the outputs are not written.
        """
        self.values = self._values_of(jobs, now, duration_seconds)
        links = [job.link.url for job in jobs if job.masks_bundle_url and job.link is not None]
        self._hidden_links = _pattern_of(links)
        try:
            self._write_values(jobs)
        except InternalError as error:
            job = _first_without_failure(jobs)
            if job is None:
                self.error = error
            else:
                job.failure = error
            self.values = self._values_of(jobs, now, duration_seconds)
            if self._file is not None:
                self._append_what_fits(self._file)

    def _values_of(
        self, jobs: Sequence[Job], now: float, duration_seconds: float
    ) -> Mapping[str, str]:
        results: list[Mapping[str, object]] = []
        for job in jobs:
            result = job.result(now)
            if result["message"] is not None:
                result["message"] = self._redactor.hide(str(result["message"]))
            results.append(result)
        values: dict[str, object] = {}
        if len(results) == 1:
            for name in OUTPUTS_OF_ONE_JOB:
                values[name] = results[0][name]
        values["durationSeconds"] = int(duration_seconds)
        values["results"] = json.dumps(results, separators=(",", ":"))
        values["failureReason"] = _first_failure_reason(jobs)
        return _texts(values)

    def _write_values(self, jobs: Sequence[Job]) -> None:
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                self._append(self._file, self._new_values())
            elif self._env_file is not None and not self._is_env_file_refused(jobs):
                self._write_env_file(self._env_file)

    def _new_values(self) -> Mapping[str, str]:
        """Return the values that the runner's file does not have yet."""
        return {name: text for name, text in self.values.items() if self._written.get(name) != text}

    def _is_env_file_refused(self, jobs: Sequence[Job]) -> bool:
        """Return whether the path was refused. What is there, such as an archive, must stay."""
        has_invalid_input = isinstance(jobs[0].failure, InvalidInput)
        return has_invalid_input and "OUTPUT_ENV_FILE" in self.values["results"]

    def _append_what_fits(self, file: Path) -> None:
        """Append the outputs again: there may be room for all but the long `results`."""
        short = dict(self.values)
        results = short.pop("results")
        for part in (short, {"results": results}):
            with contextlib.suppress(InternalError):
                self._append(file, part)

    def _append(self, path: Path, values: Mapping[str, str]) -> None:
        """Append values to the runner's file, all or none."""
        records = ""
        for name, text in values.items():
            records += f"{prepare_key_value_message(name, text)}\n"
        with _explained(
            InternalError,
            "the step's output file cannot be written",
            "The file that GITHUB_OUTPUT names",
            _RUNNER_DISK,
        ):
            size = path.stat().st_size if path.exists() else 0
            try:
                with path.open("ab") as file:
                    file.write(records.encode())
            except OSError:
                # the runner refuses a file with half a record
                with contextlib.suppress(OSError):  # the first error is reported
                    os.truncate(path, size)
                raise
        self._written.update(values)

    def _write_env_file(self, path: Path) -> None:
        """Put a new file at the path, which only its owner can read, because links are secrets."""
        with _explained(
            InternalError, "the file of OUTPUT_ENV_FILE cannot be written", path, _ENV_FILE
        ):
            _check_replaceable(path)  # the inputs may be refused before `check`
            # creates the file with mode 0600
            descriptor, part = tempfile.mkstemp(prefix=".docs-platform-action-", dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    owner = owner_of(path.parent)
                    if owner is not None:
                        owner.chown(descriptor)
                    for name, text in self.values.items():
                        file.write(_shell_line(name, text).encode())
                Path(part).replace(path)
            except OSError:
                Path(part).unlink(missing_ok=True)
                raise


def _prepare_env_file(path: Path) -> None:
    """Remove an earlier file, and check that a new one can be written.

    A shell must not read the outputs of an earlier run. Raises `InvalidInput`.
    """
    with _explained(InvalidInput, "the file of OUTPUT_ENV_FILE cannot be written", path, _ENV_FILE):
        _check_replaceable(path)
        path.unlink(missing_ok=True)
        tempfile.TemporaryFile(dir=path.parent).close()


def _check_replaceable(path: Path) -> None:
    """Raise `OSError` if something else than a file is at the path, such as a device."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EEXIST, "Not a regular file")


def _first_without_failure(jobs: Sequence[Job]) -> Job | None:
    for job in jobs:
        if job.failure is None:
            return job
    return None


def _first_failure_reason(jobs: Sequence[Job]) -> str | None:
    for job in jobs:
        if job.failure is not None:
            return job.failure.failure_reason
    return None


def _pattern_of(links: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for links as they are, and in JSON."""
    if not links:
        return _NOTHING
    forms: list[str] = []
    for link in links:
        in_json = json.dumps(link).removeprefix('"').removesuffix('"')
        forms += [link, in_json]
    forms.sort(key=len, reverse=True)  # a link may begin with another one
    return re.compile("|".join(re.escape(form) for form in forms))


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    """Return the known values as one line of UTF-8 each.

    Surrogates and control characters become spaces.
    """
    texts: dict[str, str] = {}
    for name, value in values.items():
        if value is None:
            continue
        text = str(value)
        if isinstance(value, bool):
            text = text.lower()
        texts[name] = UNUSABLE.sub(" ", text)
    return texts


def _shell_line(name: str, text: str) -> str:
    """Return an assignment, exported unless the value is very long.

    With a longer variable, the shell could not start programs any more.
    """
    quoted = text.replace("'", r"'\''")
    assignment = f"{name}='{quoted}'\n"
    variable_bytes = len(f"{name}={text}\0".encode())
    if variable_bytes > MAX_VARIABLE_BYTES:
        return assignment
    return f"export {assignment}"


@contextlib.contextmanager
def _explained(
    kind: type[ActionError], summary: str, place: object, advice: Advice
) -> Iterator[None]:
    """Raise the system's errors as this kind of failure."""
    try:
        yield
    except OSError as error:
        if isinstance(error, PermissionError) and advice is _RUNNER_DISK:
            advice = DENIED
        reason = error.strerror or type(error).__name__
        raise kind(summary, details=(f"{place}: {reason}.",), **advice) from error
