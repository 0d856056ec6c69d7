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
    *(
        "deployedCommit",
        "jobId",
        "status",
        "pageCount",
        "bundleUrl",
        "expiresAt",
        "bundlePath",
        "bundleSize",
        "bundleSha256",
    ),
    *("sitePath", "valuesFile", "manifestPath", "siteSha256", "changed", "changesPath", "prLink"),
)

# the longest `NAME=value`, with its final zero, that Linux passes to a program (source: execve(2), `MAX_ARG_STRLEN`)
MAX_VARIABLE_BYTES: Final = 128 * 1024

_NOTHING: Final = re.compile("(?!)")  # matches nothing

_RUNNER_DISK: Final = Advice(
    cause="The runner's disk is full, or its temporary folder cannot be written to.",
    remedy="Fix the runner and run the workflow again.",
)
_ENV_FILE: Final = Advice(
    cause="Its folder is missing, full or read-only; or the path is a folder, or mounted by itself.",
    remedy="Set it to a file in an existing folder. `~` and variables are not expanded.",
)


class Outputs:
    """Writes outputs to the runner's `file`, or without one at the end to `env_file`. Safe to use from several threads.

    `values` holds them after `write_all`.
    """

    def __init__(
        self, file: Path | None, redactor: Redactor, *, env_file: Path | None = None
    ) -> None:
        self.values: Mapping[str, str] = {}
        self.error: InternalError | None = None
        self._hidden_links = _NOTHING
        self._file, self._env_file, self._redactor = (
            file,
            env_file if file is None else None,
            redactor,
        )
        self._written: dict[str, str] = {}
        self._is_closed = False
        self._lock = threading.Lock()

    def check(self) -> None:
        """Remove an earlier `env_file`. Raises `InternalError` or `InvalidInput` if outputs cannot be written."""
        if self._file is not None:
            self._append({})
        if self._env_file is not None:
            with _explained(
                InvalidInput,
                "the file of OUTPUT_ENV_FILE cannot be written",
                self._env_file,
                _ENV_FILE,
            ):
                if self._env_file.exists() and not self._env_file.is_file():
                    raise OSError(errno.EEXIST, "Not a regular file")
                self._env_file.unlink(
                    missing_ok=True
                )  # a shell must not read the outputs of an earlier run
                tempfile.TemporaryFile(dir=self._env_file.parent).close()

    def write_job_id(self, job: Job) -> None:
        """Write `jobId` and `deployedCommit` early: the runner reads the file even after a cancel. Raises `InternalError`."""
        with self._lock:
            if (
                self._file is not None and not self._is_closed
            ):  # a cancel may leave a thread that knows the id late
                self._append(
                    _texts(
                        {
                            "deployedCommit": job.deployed.commit if job.deployed else None,
                            "jobId": job.job_id,
                        }
                    )
                )

    @property
    def printable(self) -> Mapping[str, str]:
        """The outputs without the links that `mask-bundle-url` hides."""
        return {name: self._hidden_links.sub(HIDDEN, text) for name, text in self.values.items()}

    def write_all(
        self,
        jobs: Sequence[Job],
        *,
        now: float,
        duration_seconds: float,
    ) -> None:
        """Write every output. If they cannot be written, the first job that has not failed fails.

        If all have failed, `error` says why the outputs are not written.
        """
        self.values = self._values_of(jobs, now, duration_seconds)
        links = [job.link.url for job in jobs if job.masks_bundle_url and job.link is not None]
        self._hidden_links = _pattern_of(links)
        is_refused = isinstance(
            jobs[0].failure, InvalidInput
        )  # then another file may be there, such as an archive
        try:
            with self._lock:
                self._is_closed = True
                if self._file is not None:
                    self._append(
                        {
                            name: text
                            for name, text in self.values.items()
                            if self._written.get(name) != text
                        }
                    )
                elif self._env_file is not None and not (
                    is_refused and "OUTPUT_ENV_FILE" in self.values["results"]
                ):
                    self._write_env_file(self._env_file)
        except InternalError as error:
            job = next((job for job in jobs if job.failure is None), None)
            if job is not None:
                job.failure = error
            else:
                self.error = error
            self.values = self._values_of(jobs, now, duration_seconds)
            short = {name: text for name, text in self.values.items() if name != "results"}
            for part in (
                (short, {"results": self.values["results"]}) if self._file is not None else ()
            ):
                with contextlib.suppress(InternalError):  # there may be room for the short ones
                    self._append(part)

    def _values_of(
        self, jobs: Sequence[Job], now: float, duration_seconds: float
    ) -> Mapping[str, str]:
        results = [job.result(now) for job in jobs]
        for result in results:
            result["message"] = (
                self._redactor.hide(str(result["message"]))
                if result["message"] is not None
                else None
            )
        values = {name: results[0][name] for name in OUTPUTS_OF_ONE_JOB} if len(jobs) == 1 else {}
        values["durationSeconds"] = int(duration_seconds)
        values["results"] = json.dumps(results, separators=(",", ":"))
        values["failureReason"] = next(
            (job.failure.failure_reason for job in jobs if job.failure is not None), None
        )
        return _texts(values)

    def _append(self, values: Mapping[str, str]) -> None:
        assert self._file is not None  # noqa: S101  # for the type checker: the callers check it
        records = "".join(
            f"{prepare_key_value_message(name, text)}\n" for name, text in values.items()
        )
        with _explained(
            InternalError,
            "the step's output file cannot be written",
            "The file that GITHUB_OUTPUT names",
            _RUNNER_DISK,
        ):
            size = self._file.stat().st_size if self._file.exists() else 0
            try:
                with self._file.open("ab") as file:
                    file.write(records.encode())
            except OSError:
                with contextlib.suppress(
                    OSError
                ):  # the first error is reported; the runner refuses a file with half a record
                    os.truncate(self._file, size)
                raise
        self._written.update(values)

    def _write_env_file(self, path: Path) -> None:
        """Put a new file at the path, which only its owner can read, because links are secrets."""
        with _explained(
            InternalError, "the file of OUTPUT_ENV_FILE cannot be written", path, _ENV_FILE
        ):
            descriptor, part = tempfile.mkstemp(
                prefix=".docs-platform-action-", dir=path.parent
            )  # with mode 0600
            try:
                with os.fdopen(descriptor, "wb") as file:
                    if (owner := owner_of(path.parent)) is not None:
                        owner.chown(descriptor)
                    file.writelines(
                        _shell_line(name, text).encode() for name, text in self.values.items()
                    )
                Path(part).replace(path)
            except OSError:
                Path(part).unlink(missing_ok=True)
                raise


def _pattern_of(links: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for links as they are, and in JSON."""
    forms = [form for link in links for form in (link, json.dumps(link)[1:-1])]
    forms.sort(key=len, reverse=True)  # a link may begin with another one
    return re.compile("|".join(map(re.escape, forms))) if forms else _NOTHING


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    """Return the known values as one line of UTF-8 each, so without surrogates and control characters."""
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }
    return {
        name: UNUSABLE.sub(" ", text) for name, text in texts.items() if values[name] is not None
    }


def _shell_line(name: str, text: str) -> str:
    """Return an assignment, exported unless the value is so long that the shell could not start programs any more."""
    export = "export " if len(f"{name}={text}\0".encode()) <= MAX_VARIABLE_BYTES else ""
    quoted = text.replace("'", r"'\''")
    return f"{export}{name}='{quoted}'\n"


@contextlib.contextmanager
def _explained(
    kind: type[ActionError], summary: str, place: object, advice: Advice
) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        details = (f"{place}: {error.strerror or type(error).__name__}.",)
        advice = DENIED if isinstance(error, PermissionError) and advice is _RUNNER_DISK else advice
        raise kind(summary, details=details, **advice) from error
