"""The ways a run can fail: an exception class per `failureReason`.

A text may quote a server; `report` makes that harmless.
"""

import copy
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Self, TypedDict

from . import __version__
from .text import format_approx

# The runner mounts its folders without `:z`, so their SELinux labels stay (source: actions/runner).
# In a user namespace, the container's root is an ordinary user of the machine.
DENIED_BY: Final = "SELinux on the runner, or user namespaces (rootless Docker, `userns-remap`)"


class Advice(TypedDict):
    """The likely cause of a failure, and the remedy: keyword arguments of `ActionError`."""

    cause: str
    remedy: str


DENIED: Final = Advice(
    cause=f"The container is not allowed to write there. Likely causes: {DENIED_BY}.",
    remedy=(
        "SELinux: label the runner's work folder (`chcon -R -t container_file_t`). "
        "User namespaces: give write access to the user that the container's root is mapped to."
    ),
)
NO_THREADS: Final = Advice(
    cause="The runner or its container has reached its limit of processes.",
    remedy="Raise the limit (`--pids-limit`, `ulimit -u`), or lower `max-parallel`.",
)


class ActionError(Exception):
    """A failure of the run.

    `summary` completes "Export of docs.example.com: …". Each of `details` is a sentence.
    """

    failure_reason: ClassVar[str]
    # if the first site of a run fails with it, the others would, too
    is_about_all_sites: ClassVar[bool] = False
    default_cause: ClassVar[str] = ""
    default_remedy: ClassVar[str] = ""

    def __init__(
        self,
        summary: str,
        *,
        details: tuple[str, ...] = (),
        cause: str | None = None,
        remedy: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(summary)
        self.summary = summary
        self.details = details
        self.cause = cause if cause is not None else self.default_cause
        self.remedy = remedy if remedy is not None else self.default_remedy
        self.request_id = request_id

    def with_details(self, *details: str) -> Self:
        """Return a copy of the failure with these details."""
        copied = copy.copy(self)
        copied.details = details
        return copied


class InvalidInput(ActionError):
    """An input is missing or malformed; no request was made."""

    failure_reason = "invalid-input"
    default_remedy = "Correct the inputs of the step. No request was made."


class NotDeployed(ActionError):
    """The platform did not serve the commit within `commit-timeout`.

    Or GitHub did not say what it serves.
    """

    failure_reason = "not-deployed"


class Unauthorized(ActionError):
    """The API returned 401."""

    failure_reason = "unauthorized"
    is_about_all_sites = True
    default_cause = (
        "The key is mistyped, has expired (by default after 90 days), "
        "or belongs to another organization. Or the plan has no access to the API."
    )
    default_remedy = (
        "Check the secret that `admin-key` reads. "
        "If it is right, create a new key on the dashboard's API keys page."
    )


class UnauthorizedSite(Unauthorized):
    """The API returned 401, maybe for this site alone."""

    is_about_all_sites = False
    default_cause = f"{Unauthorized.default_cause} Or static export is not enabled for the project."
    default_remedy = f"{Unauthorized.default_remedy} Also check whether static export is enabled."


class Forbidden(ActionError):
    """The API returned 403."""

    failure_reason = "forbidden"
    is_about_all_sites = True
    default_remedy = (
        "Check the key's scope and addresses in the dashboard. "
        "GitHub's own runners have no fixed addresses."
    )


class ForbiddenSite(Forbidden):
    """The API returned 403, maybe for this site alone."""

    is_about_all_sites = False


class NotFound(ActionError):
    """The API returned 404 for the job, the project or the domain."""

    failure_reason = "not-found"


class Rejected(ActionError):
    """The API returned any other 4xx that is not temporary."""

    failure_reason = "rejected"
    default_remedy = (
        "Correct the inputs if they caused it. "
        "Otherwise report it to the platform, with the time of the request."
    )


class JobFailed(ActionError):
    """The job's status is `failed`."""

    failure_reason = "job-failed"


class TooFewPages(ActionError):
    """The export finished with fewer pages than `min-pages`, or their number is unknown."""

    failure_reason = "too-few-pages"
    default_remedy = (
        "If pages are missing, fix the site and export it again. "
        "If the number is right, lower `min-pages`."
    )


class TooManyRemoved(ActionError):
    """More pages than `max-removed` allows are gone."""

    failure_reason = "too-many-removed"
    default_cause = (
        "The export is incomplete or outdated, pages were renamed, "
        "or `compare-with` is another site's manifest."
    )
    default_remedy = (
        "If these pages may disappear, raise `max-removed` and publish this export. "
        "If not, fix the site and export it again."
    )


class NoPullRequest(ActionError):
    """The job ended without a pull request, and `require-pr` asks for one."""

    failure_reason = "no-pull-request"
    default_cause = "The agent changed no file, could not open one, or was archived before that."
    default_remedy = (
        "Read the agent's session on the platform. Remove `require-pr` if none is needed."
    )


class TimedOut(ActionError):
    """The job did not end within `timeout`."""

    failure_reason = "timeout"


class Unavailable(ActionError):
    """Temporary errors lasted longer than `outage-tolerance`.

    Also: no start was allowed within `start-timeout`, or the API's certificate or the proxy cannot
    be used.
    """

    failure_reason = "unavailable"


class UnknownHost(Unavailable):
    """The name of the API's host does not exist."""

    is_about_all_sites = True


class BadResponse(ActionError):
    """A final response that breaks the API's contract."""

    failure_reason = "bad-response"


class StartUnconfirmed(ActionError):
    """The start request may have reached the platform, but no response confirmed it."""

    failure_reason = "start-unconfirmed"
    default_remedy = (
        "The request was not sent again. If the dashboard shows that the export is running, "
        "collect it with `mode: collect` and its `job-id`. If not, run the workflow again."
    )


class DownloadFailed(ActionError):
    """The bundle could not be downloaded completely."""

    failure_reason = "download-failed"


class InvalidBundle(ActionError):
    """The archive is damaged, unsafe, too large or of an unknown kind."""

    failure_reason = "invalid-bundle"
    default_cause = "The archive was damaged in transit, or was not made by the platform."
    default_remedy = "Run the workflow again. If it fails the same way, report it to the platform."


class Cancelled(ActionError):
    """SIGINT or SIGTERM ended the run."""

    failure_reason = "cancelled"
    default_cause = (
        "The workflow run was cancelled, or the step or job reached its `timeout-minutes`."
    )


class InternalError(ActionError):
    """A bug in the action, or a file of the runner that cannot be written."""

    failure_reason = "internal-error"
    default_cause = "This is a bug in the action, not in your workflow."
    default_remedy = (
        "Re-run the job with debug logging enabled, and attach its log to a bug report."
    )
    bug: Exception | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class NoRoom(Exception):
    """The platform refused a start for lack of room, certainly without processing it.

    With 409, an export of the site is queued or running. With 429, no more may be started now.
    """

    status: int
    details: tuple[str, ...] = ()  # what the API said, in sentences
    running_job_id: str | None = None
    own_site: str | None = None  # for which this run has started that job
    retry_after_seconds: float = 0.0  # what the platform asks for; 0 if it asks for nothing
    is_web_page: bool = False  # something in front of the API responded
    request_id: str | None = None

    BUSY: ClassVar[int] = 409
    LIMIT: ClassVar[int] = 429

    @property
    def asked_pause(self) -> str:
        """The pause that the platform asks for, in a sentence. Empty if it asks for none."""
        if self.retry_after_seconds <= 0:
            return ""
        return f"The platform asked to wait for {format_approx(self.retry_after_seconds)}."


def system_reason(error: OSError) -> str:
    """Return the system's reason, with the likely causes where access is denied."""
    if isinstance(error, PermissionError):
        return f"{error.strerror}; likely causes: {DENIED_BY}"
    return str(error.strerror)


def internal_error(error: Exception) -> InternalError:
    """Return the failure that reports an unexpected error."""
    location = "unknown"
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        innermost = frames[-1]
        location = f"{Path(innermost.filename).name}, line {innermost.lineno}"
    python_version = sys.version.split()[0]
    versions = f"docs-platform-action {__version__}, Python {python_version}"
    detail = f"{type(error).__name__} at {location}, {versions}."
    failure = InternalError("the action itself failed", details=(detail,))
    failure.bug = error
    return failure
