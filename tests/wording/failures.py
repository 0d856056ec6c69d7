"""Failures.

The cause and the advice of a `failureReason`, unless an error has its own, as each `timeout` has. Those of `internal-error` are
in [Runs](runs.md).
"""

from collections.abc import Callable
from unittest.mock import patch

from docs_platform_action import main
from docs_platform_action.errors import ActionError, Cancelled, InternalError
from docs_platform_action.http.trust import UnusableServerError
from docs_platform_action.job import Job
from docs_platform_action.models import Bundle, ExportJob
from docs_platform_action.report.failures import failure_lines
from tests.wording.page import Sections


def sections() -> Sections:
    """Return the failures."""
    kinds = [kind for kind in ActionError.__subclasses__() if kind.default_cause or kind.default_remedy]
    return {
        "Failure reasons": {
            kind.failure_reason: _explained(kind("an example of an error"))
            for kind in kinds
            if kind not in {Cancelled, InternalError}
        },
        "A cancelled run": {
            "Before the job": _cancelled(Job(mode="export")),
            "While the job runs": _cancelled(Job(mode="export", job_id="se_1", began_at=100.0)),
            "While a start request has no response": _cancelled(Job(mode="export", began_at=100.0), is_start_unconfirmed=True),
        },
        "What is wrong with a response of the API": {
            "Of the status": _error_of(ExportJob.from_json),
            "Of the link": _error_of(Bundle.from_json),
        },
        "The environment": {"NO_PROXY cannot be read": _no_proxy()},
    }


def _explained(error: ActionError) -> str:
    return "\n".join(failure_lines(Job(mode="export"), error))


def _cancelled(job: Job, *, is_start_unconfirmed: bool = False) -> str:
    job.cancel("SIGTERM", 131.0, is_start_unconfirmed=is_start_unconfirmed)
    assert job.failure is not None
    return _explained(job.failure)


def _error_of(read: Callable[[dict[str, object]], object]) -> str:
    try:
        read({})
    except ValueError as error:
        return str(error)
    return "no error"


def _no_proxy() -> str:
    with patch.dict("os.environ", {"NO_PROXY": "\udcff/8"}):
        try:
            main._proxies_for("https://192.0.2.1")  # noqa: SLF001  # the only part of `main` with such an error
        except UnusableServerError as error:
            return "\n".join([*error.details, error.cause, error.remedy])
    return "no error"
