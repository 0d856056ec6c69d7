"""The API.

What each operation of the API says about the faults of `tests/faults.py`, while it is retried and when it fails. The causes and
advice that hold for a whole `failureReason` are in [Failures](failures.md). Faults above one text have the same text, but for the
numbers and names of statuses. Each operation shows only what those before it do not say.
"""

import re
from typing import Any

from admin_api_simulator import Fault
from docs_platform_action.errors import ActionError, BadResponse, Cancelled
from docs_platform_action.http.faults import NetworkError
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from docs_platform_action.models import ExportJob
from tests.faults import FAULTS, Nature, Operation, Row
from tests.keys import ADMIN_KEY
from tests.unit.api.talk import Step, Talk, agent_job, started_job
from tests.virtual_platform import API_URL, STORAGE_URL, Sent, Trouble
from tests.wording.page import Sections

NORMAL = f'{{"status": "completed", "jobId": "se_1", "bundleUrl": "{STORAGE_URL}/b.tar.gz"}}'
OPERATIONS = {
    "Starting an export": Operation.START,
    "Reading the status of an export": Operation.READ_EXPORT,
    "Reading the status of an agent job": Operation.READ_AGENT,
    "Making the link of a bundle": Operation.BUNDLE,
}
SAID_BY_THE_VERSION = {413, 422}  # Python's phrases for these depend on its version
UNUSABLE = {Nature.MISSING_FIELD, Nature.UNUSABLE_FIELD}  # their texts are on another page
EXAMPLE = "An example of an error"
LOCATIONS = (
    "https://login.example.com/sso?token=secret",
    "https://user:secret@login.example.com:8443/sso#secret",
    "https://login.example.com",
    "//login.example.com/sso",
    "/elsewhere?secret",
    "?secret",
    "elsewhere",
    "http://:80",
    "https://[secret",
    "",
)


def sections() -> Sections:
    """Return the texts of each operation, and those of special situations."""
    known: set[str] = set()
    operations = {title: _of_operation(operation, known) for title, operation in OPERATIONS.items()}
    return {
        **operations,
        "Redirects": {location or "an empty target": _redirected(location) for location in LOCATIONS},
        "A wrong `base-url`": _wrong_base_url(),
        "Outages": _outages(),
        "Invalid responses": _invalid(),
    }


def _of_operation(operation: Operation, known: set[str]) -> dict[str, str]:
    """Return the texts that no earlier operation has, one for all faults that differ only in the status."""
    situations: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for row in FAULTS:
        if row.group not in {"Redirects", "Statuses", "Bodies"} or row.status in SAID_BY_THE_VERSION or row.nature in UNUSABLE:
            continue
        text = _of_fault(row, operation)
        key = re.sub(r'\b[0-9]{3}( \([^)]+\))?|said: ".*"', "status", text)
        if text and key not in known:
            situations.setdefault(key, []).append(row.name)
            texts.setdefault(key, text)
    known.update(texts)
    return {"\n".join(names): texts[key] for key, names in situations.items()}


def _of_fault(row: Row, operation: Operation) -> str:
    job = agent_job() if operation is Operation.READ_AGENT else started_job()
    return told(Talk(row.trouble_in(NORMAL), tolerance=60, job=job), operation)


def told(talk: Talk, operation: Operation = Operation.READ_EXPORT, **options: Any) -> str:
    """Return what a call announces and how it fails, without what all errors of a kind say."""
    try:
        talk.call(operation, **options)
    except ActionError as error:
        lines = [f"{message}. [a retry]" for _, message, *_ in talk.events.of("retrying")]
        return "\n".join([*lines, *text_of(error)])
    return ""


def text_of(error: ActionError) -> list[str]:
    """Return the lines of an error, without what all errors of its kind say."""
    cause = error.cause if error.cause not in {error.default_cause, BadResponse.default_cause} else ""
    remedy = error.remedy if error.remedy not in {error.default_remedy, BadResponse.default_remedy} else ""
    return [line for line in (error.summary, *error.details, cause, remedy) if line]


def _redirected(location: str) -> str:
    return told(Talk(Fault(status=302, headers={"Location": location})))


def _wrong_base_url() -> dict[str, str]:
    def page(status: int) -> Fault:
        return Fault(status=status, body="<html>", headers={"Content-Type": "text/html; charset=utf-8"})

    api = Fault(status=404, json={"error": "no such endpoint"})
    unknown = Fault(status=404, json={"error": "domain not found"})
    repeated = Fault(status=404, json={"error": "Not Found"})
    return {
        "A start that gets a web page": told(Talk(page(200)), Operation.START),
        "A start that gets 404 with a web page": told(Talk(page(404)), Operation.START),
        "A start that gets 403 with a web page": told(Talk(page(403)), Operation.START),
        "A later start that gets 403 with a web page": told(_answered(page(403)), Operation.START),
        "A start that gets 404, and a text that no API sends for an unknown domain": told(Talk(api), Operation.START),
        "A start that gets 405": told(Talk(Fault(status=405, body=b"")), Operation.START),
        "A start that gets 404, and the API's text": told(Talk(unknown), Operation.START),
        "A start at an address with a version": told(Talk(repeated, base_url=f"{API_URL}/v1"), Operation.START),
        "A read at an address with a version": told(Talk(repeated, base_url=f"{API_URL}/v1")),
        "The first read of a job gets 404 with a web page": told(Talk(page(404))),
        "A later read of a job gets 403 with a web page": told(_answered(page(403), tolerance=9)),
        "A later read of a job gets a web page": told(_answered(page(200), tolerance=9)),
        "A later read of a job gets a redirect": told(
            _answered(Fault(status=302, headers={"Location": "https://login.example.com/x"}))
        ),
    }


def _answered(trouble: Trouble, **options: Any) -> Talk:
    talk = Talk(trouble, **options)
    talk.api.has_answered = True
    return talk


def _outages() -> dict[str, str]:
    def lasting(seconds: float, tolerance: float) -> str:
        return told(Talk(Fault(status=502), tolerance=tolerance, seconds=seconds, jitter=lambda _: tolerance))

    def lost(first: Step = None, **flags: Any) -> str:
        def lose(_sent: Sent) -> Trouble:
            raise NetworkError(EXAMPLE, **{"maybe_processed": False, **flags})

        talk = Talk(first, lose, tolerance=100) if first else Talk(lose, tolerance=100)
        if first:
            told(talk)
        return told(talk)

    asked = Fault(status=429, headers={"Retry-After": "108000"})
    quoted = Fault(status=500, json={"error": "disk full"})
    return {
        "Attempts that take 9 s": lasting(9, 100),
        "Attempts that take 0.4 s": lasting(0.4, 100),
        "A tolerance of 250 ms": lasting(0, 0.25),
        "A start that is refused, with a pause": told(Talk(asked, tolerance=100), Operation.START),
        "A start after another error": told(
            Talk(Fault(status=429), Fault(status=503, headers={"Retry-After": "9"}), tolerance=9), Operation.START
        ),
        "A read that is refused, with a pause": told(Talk(asked, tolerance=100)),
        "The last of several errors": told(Talk(Fault(status=502), quoted, tolerance=1)),
        "The last of several errors before a deadline": told(Talk(Fault(status=502), quoted), deadline=1),
        "A new job that stays unknown": told(Talk(Fault(status=404), tolerance=9, job=started_job())),
        "A request that is cancelled, in the debug log": _cancelled(),
        "No connection": lost(),
        "A name that does not exist": lost(is_unresolved=True, is_unknown_host=True),
        "A connection that is lost": lost(maybe_processed=True),
        "No connection after a response": lost(Fault(status=404)),
        "No connection to a proxy": lost(is_proxy_error=True),
    }


def _cancelled() -> str:
    def cancel(_sent: Sent) -> Trouble:
        raise Cancelled("cancelled")

    talk = Talk(cancel)
    told(talk)
    ((_, outcome, *_),) = talk.events.of("request_ended")
    return str(outcome)


def _invalid() -> dict[str, str]:
    other = Job(mode=Mode.EXPORT, domain="other.example.com")
    mixed_up = Talk(Fault(json={"jobId": "se_1"}), others=[other])
    mixed_up.api.start_export(other, {})

    agent = Job(mode=Mode.AGENT, project_id="prj_1", job_id="aj_1")
    completed = Job(mode=Mode.COLLECT, job_id="se_1", reading=ExportJob(status="completed"))
    echo = Fault(json={"status": "running", "jobId": f"se_{ADMIN_KEY}"})
    return {
        "A start that gets the job of another domain": told(mixed_up, Operation.START),
        "The status of another agent job": told(
            Talk(Fault(json={"id": "aj_2" * 40, "status": "active"}), job=agent_job()), Operation.READ_AGENT
        ),
        "A start that gets no id": told(Talk(Fault(json={"id": "se_1"})), Operation.START),
        "A start while an export runs": told(
            Talk(Fault(status=409, json={"error": "another export is in progress", "jobId": "se_9"})), Operation.START
        ),
        "A job that is not known any more": told(_answered(Fault(status=404, json={"error": "job not found"}))),
        "An agent job that is not known any more": told(
            _answered(Fault(status=404, json={"error": "job not found"}), job=agent), Operation.READ_AGENT
        ),
        "A completed export that has no bundle any more": told(
            _answered(Fault(status=404, json={"error": "job not found"}), job=completed), Operation.BUNDLE
        ),
        "The reason in another field": told(
            Talk(Fault(status=422, json={"detail": [{"loc": ["body", "domain"], "msg": "required"}]}))
        ),
        "A bundle that is not packed yet": told(Talk(Fault(status=202), tolerance=9), Operation.BUNDLE),
        "A start that gets the key": told(Talk(echo), Operation.START),
        "A status with the key": told(Talk(echo)),
        "A body without a type": told(Talk(Fault(body=b"{", headers={"Content-Type": ""}), tolerance=1)),
    }
