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
from docs_platform_action.errors import InternalError, internal_error
from docs_platform_action.job import Job
from docs_platform_action.report.failures import failure_lines
from docs_platform_action.report.final_report import write_final_report
from docs_platform_action.report.outputs import MAX_JOB_OUTPUT_BYTES, Outputs, size_warning
from docs_platform_action.report.summary import write_summary
from docs_platform_action.signals import SignalHandler
from tests.page.samples import view
from tests.unit.report.logs import LoggedJobs
from tests.unit.report.test_console import Log
from tests.unit.report.test_final_report import PARTS
from tests.wording.page import Sections

ERRORS = {
    "A disk that is full": errno.ENOSPC,
    "A folder that the container may not write to": errno.EACCES,
    "A pipe that nobody reads": errno.ENXIO,
}


def sections() -> Sections:
    """Return the errors and warnings."""
    return {
        "Errors of the output file": {
            title: _error_of(Outputs(Path("output"), Log().console), number) for title, number in ERRORS.items()
        },
        "Errors of the file for a shell": {
            "A file that cannot be replaced": _error_of(Outputs(None, Log().console, env_file=Path("out.env")), errno.EBUSY),
            "A folder or a pipe": _error_of(Outputs(None, Log().console, env_file=Path("/dev/null"))),
        },
        "Errors of the file for the summary": {title: _summary(number) for title, number in ERRORS.items()},
        "Errors of the log": {"On the standard error": _broken_log()},
        "More outputs than a job may have": {"The output `results`": "\n".join(_large())},
        "A bug in the action": {
            "Anywhere": re.sub(r"action \S+, Python \S+", "action 1.2.3, Python 3.13.0.", _explained(internal_error(KeyError()))),
            "In a part of the report": _bugs_in_the_report(),
            "Before the log begins": _bug_before_the_log(),
        },
    }


def _denied(number: int | None) -> OSError | None:
    return None if number is None else OSError(number, os.strerror(number))


def _error_of(outputs: Outputs, number: int | None = None) -> str:
    with patch.object(os, "open", side_effect=_denied(number)):
        try:
            outputs.check()
        except InternalError as error:
            return _explained(error)
    return "no error"


def _explained(error: InternalError) -> str:
    return "\n".join(failure_lines(Job(mode="export"), error))


def _summary(number: int) -> str:
    log = Log(in_workflow=False)
    with patch.object(os, "open", side_effect=_denied(number)):
        write_summary([], view(log.console), Path("summary"), duration_seconds=1)
    return log.text.rstrip()


def _broken_log() -> str:
    log = Log()
    log.stream.close()
    with patch.object(sys, "stderr", io.StringIO()) as written:
        log.console.line("text")
    return written.getvalue().rstrip()


def _large() -> list[str]:
    return size_warning("x" * (MAX_JOB_OUTPUT_BYTES // 2 + 1)) or []


def _bugs_in_the_report() -> str:
    """Return the warning about a bug, and its first line for other parts."""
    warnings = []
    for function in ("multi_log.describe_duration", *PARTS):
        run = LoggedJobs("a.example", in_workflow=False)
        run.note(0)
        with patch(f"docs_platform_action.report.{function}", side_effect=KeyError):
            run.log.close()
            write_final_report(run.jobs, view(run.console), results="[]", duration_seconds=1, summary_file=Path(os.devnull))
        warnings.append("".join(run.text.partition("Warning: ")[1:]).rstrip())
    first, *others = warnings
    return "\n".join([first, *(other.partition("\n")[0] for other in others)])


def _bug_before_the_log() -> str:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written)
    with patch.object(main, "run", side_effect=KeyError), patch.object(sys, "stdout", stream):
        main.main(Mock(spec=SignalHandler), Clock())
    return written.getvalue().decode().rstrip()
