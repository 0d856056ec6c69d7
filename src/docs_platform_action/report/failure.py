"""The facts of a failure, one a line: the same in the annotation, the log and the summary."""

from ..errors import ActionError, InvalidInput, NotFound
from ..model import ExportJob
from ..record import JobRecord
from ..settings import EXPORT


def failure_lines(record: JobRecord, error: ActionError) -> list[str]:
    """Tell what happened, why it probably did, what to do, and how to find it again. The first line is the title."""
    lines = [record.headline(error), *error.facts, error.because, error.way_out, how_to_collect(record, error)]
    if error.request_id:
        lines.append(f"Request id {error.request_id}.")
    return [line for line in lines if line]


def how_to_collect(record: JobRecord, error: ActionError) -> str:
    """Tell how a later run can pick up a job that goes on, or has completed, without this one."""
    attach = f"`job-id: {record.job_id}`"
    if record.job_id is None or isinstance(error, InvalidInput | NotFound):
        return ""
    if record.mode == EXPORT and record.status == ExportJob.COMPLETED:
        return f"Job {record.job_id} is completed; a run with {attach} makes its bundle link without exporting again."
    is_seen = record.started or record.status is not None
    has_ended = record.agent_job is not None and record.agent_job.ended
    if not error.job_goes_on or not is_seen or has_ended:
        return ""
    return f"Job {record.job_id} goes on at the platform; nothing is lost. Collect it in a later run with {attach}."
