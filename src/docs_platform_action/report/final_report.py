"""What people see when a run has ended, after its outputs: warnings, one annotation a failure, the job summary."""

from collections.abc import Sequence
from pathlib import Path

from ..clock import Clock
from ..job import Job
from .console import Console
from .failures import failures_shown, write_traces
from .outputs import too_large_for_a_job
from .summary import room_left, summary_of, write_summary
from .view import View


def write_final_report(
    jobs: Sequence[Job], console: Console, clock: Clock, *, results: str, duration_seconds: float, summary_file: Path | None
) -> None:
    """Warn of an output `results` that is too large, report each failure, and write the job summary."""
    if (warning := too_large_for_a_job(results)) is not None:
        console.warning(warning)
    write_traces(console, jobs)
    for lines in failures_shown(jobs):
        console.error(lines)
    view = View(console=console, now=clock.now(), monotonic=clock.monotonic())
    page = summary_of(jobs, view, duration_seconds=duration_seconds, room_bytes=room_left(summary_file))
    write_summary(page, summary_file, console)
