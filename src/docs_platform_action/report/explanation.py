"""How the summary explains a failure: as labelled paragraphs, which the top of a page shows in one of GitHub's alerts."""

from collections.abc import Sequence
from typing import Final

from ..errors import ActionError, InvalidInput
from ..job import STARTED, Job
from ..text import as_sentence
from .failures import how_to_collect
from .view import View

CAUTION: Final = "CAUTION"
WARNING: Final = "WARNING"


def alert(kind: str, paragraphs: Sequence[str]) -> str:
    """Return an alert. GitHub shows one only at the top level, not in a list or in HTML (source: its documentation of alerts)."""
    lines = "\n\n".join(paragraphs).split("\n")
    return "\n".join([f"> [!{kind}]", *(f"> {line}".rstrip() for line in lines)])


def explanation(
    job: Job, error: ActionError, view: View, *, subject: str = "", collecting: str = "", reason: str = ""
) -> list[str]:
    """Return the paragraphs of a job's failure, about a subject if one is given."""
    summary = as_sentence(error.summary)
    happened = f"{subject}: {summary}" if subject else summary[:1].upper() + summary[1:]
    if isinstance(error, InvalidInput):
        happened = "\n".join(
            [view.show_input_error(happened), *(f"- {view.show_input_error(detail)}" for detail in error.details)]
        )
    else:
        happened = " ".join(map(view.show, [happened, *map(as_sentence, error.details)]))
    advice = [view.show_prose(error.remedy, about=job) if error.remedy else "", collecting]
    request = view.show(f"Request id {error.request_id}.") if error.request_id else ""
    return [
        f"**What happened:** {happened}",
        *([f"**Likely cause:** {view.show_prose(error.cause, about=job)}"] if error.cause else []),
        *([f"**What to do:** {' '.join(filter(None, advice))}"] if any(advice) else []),
        *([" ".join(filter(None, (reason, request)))] if reason or request else []),
    ]


def collecting_hint(job: Job, view: View) -> str:
    """Return how a later run can collect the job, beside a link to this run. Empty if none can, or has to."""
    if job.failure is not None:
        hint = how_to_collect(job, job.failure, subject="The job")
    elif job.verdict == STARTED:
        hint = f"Collect the job in a later step or run with `{job.inputs_to_collect}`."
    elif job.link_seconds(view.now) <= 0:
        hint = (
            f"By this runner's clock, the link has expired. Make a new one in a later step or run with `{job.inputs_to_collect}`."
        )
    else:
        hint = ""
    return " ".join(filter(None, [view.show_prose(hint, about=job), link_to_run(view)])) if hint else ""


def link_to_run(view: View) -> str:
    """Return a link to this workflow run, or "" if its address is unknown."""
    return f"[Link to this run](<{view.run_url}>)" if view.run_url else ""
