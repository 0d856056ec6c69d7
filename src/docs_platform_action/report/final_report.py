"""What people see when a run has ended: warnings, one annotation per failure, and the job summary."""

from collections.abc import Sequence
from pathlib import Path

from ..job import Job
from .failures import annotate_failures, write_traces
from .outputs import size_warning
from .summary import write_summary
from .view import View


def write_final_report(
    jobs: Sequence[Job], view: View, *, results: str, duration_seconds: float, summary_file: Path | None
) -> None:
    """Report a run whose outputs are written; `results` is one of them. A bug in one part costs no other."""
    console = view.console
    with console.bugs_as_warnings("A warning"):
        if (warning := size_warning(results)) is not None:
            console.warning(warning)
    with console.bugs_as_warnings("A stack trace"):
        write_traces(console, jobs)
    with console.bugs_as_warnings("An error annotation"):
        annotate_failures(console, jobs)
    if summary_file is not None:
        with console.bugs_as_warnings("The job summary"):
            write_summary(jobs, view, summary_file, duration_seconds=duration_seconds)
