"""Refusals of the API as errors: what happened, the likely cause, and what to do."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from ..errors import (
    IN_FRONT,
    WRONG_ADDRESS,
    ActionError,
    Advice,
    BadResponse,
    Forbidden,
    ForbiddenSite,
    NotFound,
    Rejected,
    Unauthorized,
    UnauthorizedSite,
)
from ..http.faults import format_status
from ..http.reasons import reasons_in
from .calls import Answer, ExportForm

T = TypeVar("T")

_KINDS: Final[Mapping[int, type[ActionError]]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
}

_UNAUTHORIZED: Final = "the platform rejected the admin key (401)"

# in the texts of frameworks and gateways, about what was requested
_MISSING_ENDPOINT: Final = re.compile(
    r"(?<![\w.-])"
    r"(?:endpoint|route|path|requested url|cannot (?:get|post)|method not allowed)"
    r"(?![\w.-])",
    re.IGNORECASE,
)
# only the API itself mentions one of these
_RESOURCE: Final = re.compile(r"domain|deployment|site|project", re.IGNORECASE)
# adds nothing to the status
_NOT_FOUND: Final = re.compile(r"(?:404\W+)?(?:resource )?not found\W*", re.IGNORECASE)


def final_error(answer: Answer[T]) -> ActionError:
    """Return the error that a response stands for if it is not retried."""
    form = answer.call.form
    if answer.status < 400:
        return _redirected(answer)
    if is_wrong_base_url(answer):
        return _missing_endpoint(answer)
    if answer.response.is_web_page:
        return _web_page(answer)
    if answer.call.is_start and form is not None:
        return _refused_start(answer, form)
    return _refused_request(answer)


def _refused_start(answer: Answer[T], form: ExportForm) -> ActionError:
    if answer.status == 401:
        is_general = form.is_refusal_about_all_sites
        kind = Unauthorized if is_general else UnauthorizedSite
        return kind(_UNAUTHORIZED, details=answer.quotes)
    if answer.status == 403:
        return _forbidden_start(answer, form)
    if answer.status == 404:
        return _unknown_site(answer, form)
    return _rejected(answer)


def _refused_request(answer: Answer[T]) -> ActionError:
    if answer.status == 401:
        return Unauthorized(_UNAUTHORIZED, details=answer.quotes)
    if answer.status == 403:
        return _forbidden(answer)
    if answer.status == 404:
        return _unknown_job(answer)
    return _rejected(answer)


def _rejected(answer: Answer[T]) -> Rejected:
    summary = f"the platform rejected the request, {format_status(answer.status)}"
    return Rejected(summary, details=answer.quotes)


def _redirected(answer: Answer[T]) -> BadResponse:
    location = answer.response.headers.get("Location", "")
    host = re.match(r"(?:https?:)?//(?:[^/?#]*@)?([^/?#@\\]+)", location, re.IGNORECASE)
    if host is not None:
        target = host[1]
    elif location:
        target = "another path"
    else:
        target = "no address"
    return BadResponse(
        f"the API redirects to {target} ({answer.status})",
        details=(
            "The redirect was not followed: the admin key is sent only to the API's own address.",
        ),
        **_advice_in_front(answer),
    )


def _web_page(answer: Answer[T]) -> ActionError:
    kind = _KINDS.get(answer.status, Rejected)
    summary = f"the API returned a web page instead of JSON, {format_status(answer.status)}"
    return kind(summary, **_advice_in_front(answer))


def _advice_in_front(answer: Answer[T]) -> Advice:
    return IN_FRONT if answer.has_answered else WRONG_ADDRESS


def _forbidden_start(answer: Answer[T], form: ExportForm) -> Forbidden:
    kind = Forbidden if form.is_refusal_about_all_sites else ForbiddenSite
    not_enabled = ", ".join(form.not_enabled)
    return kind(
        "the platform refused to start the export (403)",
        details=answer.quotes,
        cause=f"One of these: {not_enabled}, the {_key_lacks('write')}",
        remedy="Check whether static export is enabled. A site behind a sign-in cannot be "
        f"exported. {kind.default_remedy}",
    )


def _forbidden(answer: Answer[T]) -> Forbidden:
    if answer.call.request.method == "GET":
        cause = f"The {_key_lacks('read')}"
    else:
        cause = f"The {_key_lacks('write')} By domain, a link needs `write`."
    summary = f"this key is not allowed to {answer.call.action} (403)"
    return Forbidden(summary, details=answer.quotes, cause=cause)


def _key_lacks(scope: str) -> str:
    return f"key lacks the scope `{scope}`, or this runner's address is not on the key's list."


def _unknown_site(answer: Answer[T], form: ExportForm) -> NotFound:
    remedy = form.unknown_site["remedy"]
    if not answer.has_answered:
        remedy = f"{remedy} {form.other_form}."
    return NotFound(
        f"the platform does not know the {form.resource} (404)",
        details=answer.quotes,
        cause=form.unknown_site["cause"],
        remedy=remedy,
    )


def _unknown_job(answer: Answer[T]) -> NotFound:
    job = answer.call.job
    form = answer.call.form
    if job.has_ended:
        summary = f"the completed export {job.job_id} was deleted (404)"
        return NotFound(summary, details=answer.quotes, cause="", remedy="Export again.")
    if answer.has_answered:
        return NotFound(
            f"the platform no longer knows the job {job.job_id} (404)",
            details=answer.quotes,
            cause="The platform has deleted or lost it.",
            remedy="Check the dashboard. If the job is there, use "
            f"`{job.inputs_to_collect}`. If not, start another one.",
        )
    resource = "job" if job.project_id is None else "job or the project"
    summary = f"the platform does not know the {resource} (404)"
    if form is not None:
        return NotFound(summary, details=answer.quotes, **form.unknown_job)
    return NotFound(
        summary,
        details=answer.quotes,
        cause="`job-id` or `project-id` is wrong, or the platform has deleted the job.",
        remedy="Compare both with the dashboard.",
    )


def is_wrong_base_url(answer: Answer[T]) -> bool:
    """Return whether a 404 or 405 is that of a server which is not the API."""
    if answer.status not in {404, 405} or answer.has_answered:
        return False
    has_extra_version = answer.extra_version is not None
    return reports_missing_endpoint(answer.response.body, bare_status_counts=has_extra_version)


def reports_missing_endpoint(body: object, *, bare_status_counts: bool = False) -> bool:
    """Return whether a 404 or 405 is about the endpoint, not about a name in the request.

    The API's error is an object with the string `error`. Other texts and fields are those of
    common frameworks and gateways. If the API's error only repeats the status, it may be about the
    name, unless a `bare_status_counts`.
    """
    if not isinstance(body, dict):
        return True
    texts = list(reasons_in(body))
    if any(_RESOURCE.search(text) for text in texts):
        return False
    if any(_MISSING_ENDPOINT.search(text) for text in texts):
        return True
    error = body.get("error")
    has_error_text = isinstance(error, str) and error.strip() != ""
    is_api_error = has_error_text and "path" not in body
    if is_api_error and not bare_status_counts:
        return False
    return all(_NOT_FOUND.fullmatch(text) for text in texts)


def _missing_endpoint(answer: Answer[T]) -> ActionError:
    version = answer.extra_version
    remedy = "Look up the API address in the platform documentation."
    if version is not None:
        remedy = f"Remove `{version}` from `base-url`: the action adds it."
    return _wrong_base_url(
        answer,
        _KINDS.get(answer.status, Rejected),
        f"the server at {answer.client.base_url} has no such endpoint ({answer.status})",
        cause="The address or its path prefix is wrong, or it is the dashboard's address.",
        remedy=remedy,
    )


def web_page_instead_of_api(answer: Answer[T]) -> ActionError:
    """Return the error for a web page with a status of success, before any answer of the API."""
    return _wrong_base_url(
        answer,
        BadResponse,
        "the server returned a web page, not the API's JSON",
        cause="That is often the dashboard's address.",
        remedy="Look up the API address in the platform documentation.",
    )


def _wrong_base_url(
    answer: Answer[T], kind: type[ActionError], reason: str, *, cause: str, remedy: str
) -> ActionError:
    """Return the error for an answer that is not the API's.

    `base-url` is wrong, or the platform has the other form of the export API.
    """
    summary = f"`base-url` is probably wrong: {reason}"
    form = answer.call.form
    if form is not None and answer.extra_version is not None:
        remedy = f"{remedy} {form.other_form}."
    elif form is not None:
        summary = reason
        cause = f"{form.other_cause}. Or `base-url` is not the API's address."
        remedy = f"{form.other_form}. Otherwise, {remedy[:1].lower()}{remedy[1:]}"
    description = answer.response.description
    not_json = f"The response is not the API's JSON ({description})."
    return kind(
        summary,
        details=answer.quotes or (not_json,),
        cause=cause,
        remedy=f"{remedy} The request went to {answer.client.base_url}{answer.call.request.url}.",
    )
