"""What an answer of the API means: a result, an error, or a reason to try again."""

import json
import math
from collections.abc import Mapping
from typing import Final, TypeVar

from ..errors import ActionError, Advice, BadResponse, NoRoom
from ..http.attempts import TransientError
from ..http.faults import format_status
from .advice import (
    ECHOED_KEY,
    EXPLAINED,
    IN_FRONT,
    NETWORK,
    NOT_READY,
    NOT_THE_API,
    TOO_MANY,
)
from .calls import Answer
from .refusals import final_error, is_other_server, web_page_instead_of_api
from .resources import read_job_id

T = TypeVar("T")

MAX_SHOWN_ID_LENGTH: Final = 200  # of the job that keeps a start from being accepted
MAX_SHOWN_BODY_LENGTH: Final = 300

# while these statuses are temporary; the advice about all others is `NETWORK`
_ADVICE: Final[Mapping[int, Advice]] = {
    202: NOT_READY,
    409: NOT_READY,
    429: TOO_MANY,
}

_MAYBE_STARTED: Final = (
    "The platform may have started a job anyway. Check the dashboard before the next run."
)


def result_of(answer: Answer[T], now: float) -> T:
    """Return the result of a call.

    Raises the `ActionError` of a final response, `TransientError` for one to retry, and `NoRoom`
    if there is no room for a start.
    """
    retry_until = _retry_until(answer)
    is_temporary = retry_until > now
    if answer.response.is_success and not is_temporary:
        return _read_result(answer)
    if _is_lack_of_room(answer):
        raise _no_room(answer)
    if not is_temporary:
        raise final_error(answer)
    # a 404 may be temporary, as some servers of the platform do not know a new job yet, but not
    # if a version at the end of `base-url` shows that the address is wrong
    if answer.extra_version is not None and is_other_server(answer):
        raise final_error(answer)
    raise _temporary_error(answer, retry_until)


def _retry_until(answer: Answer[T]) -> float:
    """Return until when to retry a call.

    `-inf` means that the answer is final, and `inf` that it is temporary. A status in
    `temporary_until` has a time of its own.
    """
    call = answer.call
    if answer.is_intercepted:
        # what stands in front of an API that has answered before may let a later request pass
        may_pass = answer.is_api_known and not call.is_start
        return math.inf if may_pass else -math.inf
    if answer.status in call.temporary_until:
        return call.temporary_until[answer.status]
    is_final = answer.response.is_success or answer.is_rejection
    return -math.inf if is_final else math.inf


def _temporary_error(answer: Answer[T], retry_until: float) -> TransientError:
    response = answer.response
    message = f"The API returned {format_status(answer.status)}"
    advice = _ADVICE.get(answer.status, NETWORK)
    error_if_it_lasts = None
    if answer.is_intercepted:
        message += " and a web page"
        advice = IN_FRONT
    elif answer.status < 400 and answer.status not in _ADVICE:
        advice = _advice_about_content(answer)
    elif answer.status == 404:
        error_if_it_lasts = final_error(answer)
    return TransientError(
        message,
        status=answer.status,
        is_unprocessed=answer.is_unprocessed,
        advice=advice,
        retry_after_seconds=response.retry_after_seconds or 0.0,
        retry_until=retry_until,
        details=answer.response.quotes,
        final_error=error_if_it_lasts,
    )


def _is_lack_of_room(answer: Answer[T]) -> bool:
    """Return whether a start was refused because of other exports, not because it is wrong."""
    if not answer.call.is_start:
        return False
    if answer.status == NoRoom.BUSY:
        return not answer.response.is_web_page  # a page is not the API's own answer
    return answer.status == NoRoom.LIMIT


def _no_room(answer: Answer[T]) -> NoRoom:
    response = answer.response
    running_job_id = None
    if answer.status == NoRoom.BUSY:
        running_job_id = _running_job_id(response.body)
    return NoRoom(
        status=answer.status,
        details=answer.response.quotes,
        running_job_id=running_job_id,
        retry_after_seconds=response.retry_after_seconds or 0.0,
        is_web_page=response.is_web_page,
    )


def _running_job_id(body: object) -> str | None:
    """Return the job that keeps a start from being accepted, if its id can be shown."""
    job_id = read_job_id(body)
    if job_id is None and isinstance(body, dict):
        job_id = read_job_id(body.get("error"))
    if job_id is None:
        return None
    length = len(job_id.strip())
    return job_id if 0 < length <= MAX_SHOWN_ID_LENGTH else None


def _read_result(answer: Answer[T]) -> T:
    call = answer.call
    body = answer.response.body
    if not isinstance(body, dict):
        raise _not_an_object(answer)
    if answer.response.field_with_key is not None:
        raise _echoed_key(answer, answer.response.field_with_key)
    try:
        return call.read(body)
    except ValueError as error:
        raise _invalid_object(answer, body, str(error)) from error


def _not_an_object(answer: Answer[T]) -> ActionError | TransientError:
    """Return the error for a content that is not a JSON object.

    A web page before any answer of the API means a wrong address, and is final. Anything else is
    temporary: a reading is repeated, and a start is unconfirmed.
    """
    if answer.response.is_web_page and not answer.is_api_known:
        return web_page_instead_of_api(answer)
    problem = f"the response is not a JSON object ({answer.response.description})"
    return TransientError(
        _returned(answer, problem),
        advice=_advice_about_content(answer),
        details=answer.response.quotes,
    )


def _echoed_key(answer: Answer[T], field: str) -> BadResponse:
    returned = _returned(answer, f"`{field}` contains the admin key")
    details = [f"{returned}."]
    if answer.call.is_start:
        details.append(_MAYBE_STARTED)
    return _bad_response(answer, details, ECHOED_KEY)


def _invalid_object(
    answer: Answer[T], body: Mapping[str, object], problem: str
) -> BadResponse | TransientError:
    """Return the error for an object that the call cannot read. Only a reading is repeated."""
    returned = _returned(answer, problem)
    advice = _advice_about_content(answer)
    if answer.call.request.method == "GET":
        return TransientError(returned, advice=advice, details=answer.response.quotes)
    details = [f"{returned}.", *answer.response.quotes]
    if answer.call.is_start:
        shown = json.dumps(body, ensure_ascii=False)[:MAX_SHOWN_BODY_LENGTH]
        details.append(f"The response was: {shown}")
        details.append(_MAYBE_STARTED)
    return _bad_response(answer, details, advice)


def _returned(answer: Answer[T], problem: str) -> str:
    return f"The API returned {answer.status}, but {problem}"


def _advice_about_content(answer: Answer[T]) -> Advice:
    if answer.response.quotes:
        return EXPLAINED
    return IN_FRONT if answer.is_api_known else NOT_THE_API


def _bad_response(answer: Answer[T], details: list[str], advice: Advice) -> BadResponse:
    summary = f"the API's response to {answer.call.request.url} is invalid"
    return BadResponse(summary, details=tuple(details), **advice)
