"""The sections of `runs.md` about files that the action fails to write, and about bugs in the action."""

import errno
import io
import os
import re
import sys
from pathlib import Path
from unittest.mock import Mock, patch

from docs_platform_action import main
from docs_platform_action.clock import Clock
from docs_platform_action.errors import ActionError, internal_error
from docs_platform_action.job import Job
from docs_platform_action.outputs import Outputs
from docs_platform_action.redaction import Redactor
from docs_platform_action.report.console import MAX_JOB_OUTPUT_BYTES
from docs_platform_action.report.failures import failure_lines
from docs_platform_action.report.summary import write_summary
from docs_platform_action.signals import SignalHandler
from tests.page.samples import summary
from tests.unit.report.test_console import Log
from tests.wording.page import Sections

ERRORS = {
    "A disk that is full": errno.ENOSPC,
    "A folder that the container may not write to": errno.EACCES,
}


def sections() -> Sections:
    """Return the errors and warnings."""
    return {
        "Errors of the output file": {
            title: _error_of(Outputs(Path("output"), Redactor()), number) for title, number in ERRORS.items()
        },
        "Errors of the file for a shell": {
            "A folder that does not exist": _error_of(Outputs(None, Redactor(), env_file=Path("missing/out.env"))),
            "A folder": _error_of(Outputs(None, Redactor(), env_file=Path("/"))),
        },
        "Errors of the file for the summary": {title: _summary(number) for title, number in ERRORS.items()},
        "Errors of the log": {"On the standard error": _broken_log()},
        "More outputs than a job may have": {"The output `results`": _large()},
        "A bug in the action": {
            "Anywhere": re.sub(r"action \S+, Python \S+", "action 1.2.3, Python 3.13.0.", _explained(internal_error(KeyError()))),
            "In a part of the report": _bugs_in_the_report(),
            "Before the log begins": _bug_before_the_log(),
        },
    }


def _denied(number: int | None) -> OSError | None:
    return None if number is None else OSError(number, os.strerror(number))


def _error_of(outputs: Outputs, number: int | None = None) -> str:
    with patch.object(Path, "open", side_effect=_denied(number)):
        try:
            outputs.check()
        except ActionError as error:
            return _explained(error)
    return "no error"


def _explained(error: ActionError) -> str:
    return "\n".join(failure_lines(Job(mode="export"), error))


def _summary(number: int) -> str:
    log = Log(in_workflow=False)
    with patch.object(Path, "open", side_effect=_denied(number)):
        write_summary(summary(console=log.console), Path("summary"))
    return log.text.rstrip()


def _broken_log() -> str:
    log = Log()
    log.stream.close()
    with patch.object(sys, "stderr", io.StringIO()) as written:
        log.console.line("text")
    return written.getvalue().rstrip()


def _large() -> str:
    log = Log(in_workflow=False)
    log.console.warn_of_size("x" * (MAX_JOB_OUTPUT_BYTES // 2 + 1))
    return log.text.rstrip()


def _bugs_in_the_report() -> str:
    """Return the warning about a bug."""
    log = Log(in_workflow=False)
    with log.console.bugs_as_warnings("The log"):
        raise KeyError
    return log.text.rstrip()


def _bug_before_the_log() -> str:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written)
    with patch.object(main, "run", side_effect=KeyError), patch.object(sys, "stdout", stream):
        main.main(Mock(spec=SignalHandler), Clock())
    return written.getvalue().decode().rstrip()
