"""Refusals of the API as errors: what happened, the likely cause, and what to do."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from ..errors import (
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
from .advice import EXPLAINED, IN_FRONT, KEY_CHANGED, KEY_ENDED, MOVED, WRONG_ADDRESS
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
    if is_other_server(answer):
        return _missing_endpoint(answer)
    if answer.response.is_web_page:
        return _web_page(answer)
    if answer.call.is_start and form is not None:
        return _refused_start(answer, form)
    return _refused_request(answer)


def _refused_start(answer: Answer[T], form: ExportForm) -> ActionError:
    if answer.status == 401:
        is_general = form.is_refusal_about_all_sites
        return _unauthorized(answer, Unauthorized if is_general else UnauthorizedSite)
    if answer.status == 403:
        return _forbidden_start(answer, form)
    if answer.status == 404:
        return _unknown_site(answer, form)
    return _rejected(answer)


def _refused_request(answer: Answer[T]) -> ActionError:
    if answer.status == 401:
        return _unauthorized(answer, Unauthorized)
    if answer.status == 403:
        return _forbidden(answer)
    if answer.status == 404:
        return _unknown_job(answer)
    return _rejected(answer)


def _unauthorized(answer: Answer[T], kind: type[Unauthorized]) -> Unauthorized:
    error = kind(_UNAUTHORIZED, details=answer.response.quotes)
    if answer.accepted_methods:
        error.cause = KEY_ENDED["cause"]
        error.remedy = KEY_ENDED["remedy"]
        if kind is UnauthorizedSite:
            error.cause += " Or static export is not enabled for the project."
            error.remedy += " Also check whether static export is enabled."
    return error


def _rejected(answer: Answer[T]) -> Rejected:
    summary = f"the platform rejected the request, {format_status(answer.status)}"
    return Rejected(summary, details=answer.response.quotes)


def _redirected(answer: Answer[T]) -> BadResponse:
    location = answer.response.headers.get("Location", "")
    host = re.match(r"(?:https?:)?//(?:[^/?#]*@)?([^/?#@\\]+)", location, re.IGNORECASE)
    if host is not None:
        target = host[1]
    elif location:
        target = "another path"
    else:
        target = "no address"
    quotes = answer.response.quotes
    advice = _advice_in_front(answer)
    if quotes:
        advice = EXPLAINED if answer.is_api_known else MOVED
    return BadResponse(
        f"the API redirects to {target} ({answer.status})",
        details=(
            *quotes,
            "The redirect was not followed: the admin key is sent only to the API's own address.",
        ),
        **advice,
    )


def _web_page(answer: Answer[T]) -> ActionError:
    kind = _KINDS.get(answer.status, Rejected)
    summary = f"the API returned a web page instead of JSON, {format_status(answer.status)}"
    return kind(summary, **_advice_in_front(answer))


def _advice_in_front(answer: Answer[T]) -> Advice:
    return IN_FRONT if answer.is_api_known else WRONG_ADDRESS


def _forbidden_start(answer: Answer[T], form: ExportForm) -> Forbidden:
    kind = Forbidden if form.is_refusal_about_all_sites else ForbiddenSite
    not_enabled = ", ".join(form.not_enabled)
    remedy = "Check whether static export is enabled. A site behind a sign-in cannot be exported."
    if "POST" in answer.accepted_methods:  # for another site: the key and the plan allow it
        first, last = form.not_enabled[-2:]
        return kind(
            "the platform refused to start the export (403)",
            details=answer.response.quotes,
            cause=f"One of these: {first}, or {last}.",
            remedy=remedy,
        )
    return kind(
        "the platform refused to start the export (403)",
        details=answer.response.quotes,
        cause=f"One of these: {not_enabled}, the {_key_lacks('write')}",
        remedy=f"{remedy} {kind.default_remedy}",
    )


def _forbidden(answer: Answer[T]) -> Forbidden:
    summary = f"this key is not allowed to {answer.call.action} (403)"
    if answer.call.request.method in answer.accepted_methods:
        return Forbidden(summary, details=answer.response.quotes, **KEY_CHANGED)
    if answer.call.request.method == "GET":
        cause = f"The {_key_lacks('read')}"
    else:
        cause = f"The {_key_lacks('write')} By domain, a link needs `write`."
    return Forbidden(summary, details=answer.response.quotes, cause=cause)


def _key_lacks(scope: str) -> str:
    """Return the causes of a 403 that are about the key, after "the"."""
    return f"key lacks the scope `{scope}`, or this runner's address is not on the key's list."


def _unknown_site(answer: Answer[T], form: ExportForm) -> NotFound:
    remedy = form.unknown_site["remedy"]
    if not answer.is_api_known:
        remedy = f"{remedy} {form.remedy_if_other_form}."
    return NotFound(
        f"the platform does not know the {form.resource} (404)",
        details=answer.response.quotes,
        cause=form.unknown_site["cause"],
        remedy=remedy,
    )


def _unknown_job(answer: Answer[T]) -> NotFound:
    job = answer.call.job
    form = answer.call.form
    if job.has_ended:
        summary = f"the completed export {job.job_id} was deleted (404)"
        return NotFound(summary, details=answer.response.quotes, cause="", remedy="Export again.")
    if answer.is_api_known:
        return NotFound(
            f"the platform no longer knows the job {job.job_id} (404)",
            details=answer.response.quotes,
            cause="The platform has deleted or lost it.",
            remedy="Check the dashboard. If the job is there, use "
            f"`{job.inputs_to_collect}`. If not, start another one.",
        )
    if form is not None:
        summary = f"the platform does not know the {form.job_names} (404)"
        return NotFound(summary, details=answer.response.quotes, **form.unknown_job)
    return NotFound(
        "the platform does not know the job or the project (404)",
        details=answer.response.quotes,
        cause="`job-id` or `project-id` is wrong, or the platform has deleted the job.",
        remedy="Compare both with the dashboard.",
    )


def is_other_server(answer: Answer[T]) -> bool:
    """Return whether a 404 or 405 is that of a server which is not the API."""
    if answer.status not in {404, 405} or answer.is_api_known:
        return False
    trusts_bare_status = answer.extra_version is not None
    return reports_missing_endpoint(answer.response.body, trusts_bare_status=trusts_bare_status)


def reports_missing_endpoint(body: object, *, trusts_bare_status: bool = False) -> bool:
    """Return whether a 404 or 405 is about the endpoint, not about a name in the request.

    The first of these decides:

    - A body that is not an object is not the API's: yes.
    - A text about a site or a project: no, only the API mentions one.
    - A text about an endpoint, as of frameworks and gateways: yes.
    - The form of the API's errors, which may be about a name: no, unless `trusts_bare_status`.
    - Otherwise: yes if there is no text, or each says no more than "not found".
    """
    if not isinstance(body, dict):
        return True
    texts = list(reasons_in(body))
    if any(_RESOURCE.search(text) for text in texts):
        return False
    if any(_MISSING_ENDPOINT.search(text) for text in texts):
        return True
    if _is_error_of_api(body) and not trusts_bare_status:
        return False
    return all(_NOT_FOUND.fullmatch(text) for text in texts)


def _is_error_of_api(body: Mapping[str, object]) -> bool:
    """Return whether an object has the form of the API's errors. Frameworks add a `path`."""
    error = body.get("error")
    has_text = isinstance(error, str) and error.strip() != ""
    return has_text and "path" not in body


def _missing_endpoint(answer: Answer[T]) -> ActionError:
    version = answer.extra_version
    remedy = "Look up the API address in the platform documentation."
    if version is not None:
        remedy = f"Remove `{version}` from `base-url`: the action adds it."
    return _not_the_api(
        answer,
        _KINDS.get(answer.status, Rejected),
        f"the server at {answer.base_url} has no such endpoint ({answer.status})",
        cause="The address or its path prefix is wrong, or it is the dashboard's address.",
        remedy=remedy,
    )


def web_page_instead_of_api(answer: Answer[T]) -> ActionError:
    """Return the error for a web page with a status of success, before any answer of the API."""
    return _not_the_api(
        answer,
        BadResponse,
        "the server returned a web page, not the API's JSON",
        cause="That is often the dashboard's address.",
        remedy="Look up the API address in the platform documentation.",
    )


def _not_the_api(
    answer: Answer[T],
    kind: type[ActionError],
    fact: str,
    *,
    cause: str,
    remedy: str,
) -> ActionError:
    """Return the error for an answer of a server that is not the API at this address.

    `base-url` is wrong, or the platform has the other form of the export API.
    """
    form = answer.call.form
    has_extra_version = answer.extra_version is not None
    if form is None:
        summary = f"`base-url` is probably wrong: {fact}"
    elif has_extra_version:
        summary = f"`base-url` is probably wrong: {fact}"
        remedy = f"{remedy} {form.remedy_if_other_form}."
    else:
        summary = fact
        cause = f"{form.cause_if_other_form}. Or `base-url` is not the API's address."
        otherwise = f"{remedy[:1].lower()}{remedy[1:]}"
        remedy = f"{form.remedy_if_other_form}. Otherwise, {otherwise}"
    not_json = f"The response is not the API's JSON ({answer.response.description})."
    sent_to = f"The request went to {answer.base_url}{answer.call.request.url}."
    return kind(
        summary,
        details=answer.response.quotes or (not_json,),
        cause=cause,
        remedy=f"{remedy} {sent_to}",
    )
