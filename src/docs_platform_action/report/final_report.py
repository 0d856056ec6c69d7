"""What people see when a run has ended: warnings, one annotation per failure, and the job summary."""

from collections.abc import Sequence
from pathlib import Path

from ..job import Job
from .failures import annotations_of, write_traces
from .outputs import size_warning
from .summary import write_summary
from .view import View


def write_final_report(
    jobs: Sequence[Job], view: View, *, results: str, duration_seconds: float, summary_file: Path | None
) -> None:
    """Report a run whose outputs are written; `results` is one of them."""
    console = view.console
    if (warning := size_warning(results)) is not None:
        console.warning(warning)
    write_traces(console, jobs)
    for title, lines in annotations_of(jobs):
        console.error(lines, title=title)
    if summary_file is not None:
        write_summary(jobs, view, summary_file, duration_seconds=duration_seconds)
