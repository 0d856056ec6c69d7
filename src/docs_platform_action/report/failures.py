"""The facts of a failure, one per line: the same in the annotation, the log and the summary."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from ..errors import ActionError, Cancelled, InternalError, InvalidInput, NotFound
from ..job import Job
from ..text import as_sentence, join_nonempty, pluralize
from .console import Console
from .markup import Markup

# the runner keeps ten annotations per step (source: actions/runner), and the tenth counts
MAX_DETAILED_FAILURES: Final = 9


def annotate_failures(console: Console, jobs: Iterable[Job]) -> None:
    """Write an annotation for each failure, with cancelled jobs last.

    One more annotation counts the failures beyond the limit. The stack trace of a bug in the action
    goes to the debug log, once if several jobs failed with it.
    """
    failed: list[tuple[Job, ActionError]] = []
    cancelled: list[tuple[Job, ActionError]] = []
    for job in jobs:
        if isinstance(job.failure, Cancelled):
            cancelled.append((job, job.failure))
        elif job.failure is not None:
            failed.append((job, job.failure))
    failures = failed + cancelled

    traced: set[ActionError] = set()
    for _, error in failures:
        if isinstance(error, InternalError) and error.bug is not None and error not in traced:
            traced.add(error)
            console.trace(error.bug)
    for job, error in failures[:MAX_DETAILED_FAILURES]:
        console.error(failure_lines(job, error), title=_title(job, error))
    if len(failures) > MAX_DETAILED_FAILURES:
        counts = Counter(error.failure_reason for _, error in failures[MAX_DETAILED_FAILURES:])
        noun = failures[0][0].kind.noun
        console.error(_count_lines(counts, noun), title="More failures")


def _title(job: Job, error: ActionError) -> str:
    """Return the title of an annotation. It has no foreign text, as the runner does not mask it."""
    if isinstance(error, Cancelled):
        return f"{job.kind.name} {error.failure_reason}"
    return f"{job.kind.name} {job.verdict}: {error.failure_reason}"


def _count_lines(counts: Counter[str], noun: str) -> list[str]:
    """Return how many failures have which reason."""
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
    return [
        f"{pluralize(counts.total(), f'more {noun}')} did not succeed",
        f"{reasons}.",
        "The job summary and the output `results` list each of them.",
    ]


def failure_lines(job: Job, error: ActionError) -> list[str]:
    """Return the title of a failure, its details, the cause, what to do, and the request ID."""
    advice = (error.cause, error.remedy, how_to_collect(job, error), request_line(error))
    lines = [job.headline(error), *error.details]
    lines += [line for line in advice if line]
    return lines


def failure_paragraphs(
    error: ActionError,
    markup: Markup,
    *,
    subject: str = "",
    collecting_hint: str = "",
    reason: str = "",
) -> list[str]:
    """Return what happened, the likely cause, what to do, and the request ID, in Markdown.

    What happened is about a `subject`, if one is given. `collecting_hint` and `reason` are
    sentences that are in Markdown already.
    """
    happened = markup.prose(_what_happened(error, subject))
    # each detail may be about another input
    separator = "\n- " if isinstance(error, InvalidInput) else " "
    for detail in error.details:
        happened += separator + markup.prose(as_sentence(detail))
    paragraphs = [f"**What happened:** {happened}"]
    if error.cause:
        paragraphs.append(f"**Likely cause:** {markup.prose(error.cause)}")
    advice = join_nonempty(" ", markup.prose(error.remedy), collecting_hint)
    if advice:
        paragraphs.append(f"**What to do:** {advice}")
    end = join_nonempty(" ", reason, markup.literal(request_line(error)))
    if end:
        paragraphs.append(end)
    return paragraphs


def _what_happened(error: ActionError, subject: str) -> str:
    summary = as_sentence(error.summary)
    if subject:
        return f"{subject}: {summary}"
    return summary[:1].upper() + summary[1:]


def request_line(error: ActionError) -> str:
    """Return the request ID as a sentence, or nothing if there is none."""
    return f"Request ID {error.request_id}." if error.request_id else ""


def how_to_collect(job: Job, error: ActionError, *, subject: str = "") -> str:
    """Return how a later run can collect a job that continues or has completed.

    Empty if no run can.
    """
    if job.job_id is None or isinstance(error, InvalidInput | NotFound):
        return ""
    return job.kind.how_to_collect(job, subject or f"Job {job.job_id}")
