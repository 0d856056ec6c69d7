"""What an answer of the API means: a result, an error, or a reason to try again."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from .. import errors
from ..errors import ActionError, Advice, BadResponse, NoRoom
from ..http.api_client import ApiClient, ApiResponse
from ..http.faults import format_status
from ..http.reasons import read_error, reasons_in
from ..http.retry import TEMPORARY_STATUSES, TransientError
from .calls import Call
from .resources import read_job_id

T = TypeVar("T")

_MISSING_ENDPOINT: Final = re.compile(
    r"(?<![\w.-])(?:endpoint|route|path|requested url|cannot (?:get|post)|method not allowed)(?![\w.-])",
    re.IGNORECASE,
)
_RESOURCE: Final = re.compile(
    r"domain|deployment|site|project", re.IGNORECASE
)  # only the API itself mentions one of these
_NOT_FOUND: Final = re.compile(
    r"(?:404\W+)?(?:resource )?not found\W*", re.IGNORECASE
)  # adds nothing to the status


MAX_SHOWN_ID_LENGTH: Final = 200  # of the job that keeps a start from being accepted


class Meaning(NamedTuple):
    """What a status means: the error that it is, and the advice while it is temporary."""

    error: type[ActionError] = errors.Rejected
    summary: str = "the platform rejected the request, {status}"
    advice: Advice = errors.NETWORK


MEANINGS: Final[Mapping[int, Meaning]] = {
    202: Meaning(advice=errors.NOT_READY),
    401: Meaning(errors.Unauthorized, "the platform rejected the admin key (401)"),
    403: Meaning(errors.Forbidden, "this key is not allowed to {action} (403)"),
    404: Meaning(errors.NotFound, "the platform does not know the {resource} (404)"),
    409: Meaning(advice=errors.NOT_READY),
    429: Meaning(advice=errors.TOO_MANY),
}
"""All others mean `Meaning()`. 3xx and 4xx are final, but for `TEMPORARY_STATUSES` and where a `Call` says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """The response to a call. `base-url` is not blamed once the API `has_answered` well in this run."""

    call: Call[T]
    response: ApiResponse
    client: ApiClient
    has_answered: bool

    def result(self, now: float) -> T:
        """Return the result.

        Raises the `ActionError` of a final response, `TransientError` for one to retry, and
        `NoRoom` if there is no room for a start.
        """
        call, response, status = self.call, self.response, self.response.status
        is_success, is_rejection = (
            200 <= status < 300,
            300 <= status < 500 and status not in TEMPORARY_STATUSES,
        )
        temporary_until = call.temporary_until.get(
            status, -math.inf if is_success or is_rejection else math.inf
        )
        is_foreign = is_rejection and status >= 400 and response.is_web_page  # not the API's own
        if is_foreign:
            temporary_until = math.inf if self.has_answered and not call.is_start else -math.inf
        if temporary_until <= now and is_success:
            return self._read_success()
        was_rejected = (
            is_rejection
            or status == 429
            or (status == 503 and response.retry_after_seconds is not None)
        )
        call.request.maybe_processed = not was_rejected
        if self._is_lack_of_room:
            raise self._no_room()
        if temporary_until <= now or (self._extra_version and self._is_wrong_base_url):
            raise self._final_error()
        raise TransientError(
            f"The API returned {format_status(status)}{' and a web page' if is_foreign else ''}",
            status=status,
            maybe_processed=not was_rejected,
            advice=errors.IN_FRONT if is_foreign else MEANINGS.get(status, Meaning()).advice,
            retry_after_seconds=response.retry_after_seconds or 0.0,
            retry_until=temporary_until,
            details=self._quotes,
            final_error=self._final_error() if status == 404 and not is_foreign else None,
        )

    @property
    def _quotes(self) -> tuple[str, ...]:
        return self.client.quote(read_error(self.response.body))

    @property
    def _extra_version(self) -> str:
        """The version at the end of `base-url`, which the action adds itself."""
        version = re.search(r"/v[0-9]+\Z", self.client.base_url)
        return version[0] if version else ""

    @property
    def _is_lack_of_room(self) -> bool:
        """Whether a start was refused because of other exports, and not because it is wrong.

        A web page with 409 is not the API's own answer.
        """
        if not self.call.is_start:
            return False
        is_busy = self.response.status == NoRoom.BUSY and not self.response.is_web_page
        return is_busy or self.response.status == NoRoom.LIMIT

    def _no_room(self) -> NoRoom:
        response = self.response
        return NoRoom(
            status=response.status,
            details=self._quotes,
            running_job_id=self._running_job_id if response.status == NoRoom.BUSY else None,
            retry_after_seconds=response.retry_after_seconds or 0.0,
            is_web_page=response.is_web_page,
        )

    @property
    def _running_job_id(self) -> str | None:
        """The job that keeps a start from being accepted, if its identifier can be shown."""
        body = self.response.body
        running = read_job_id(body)
        if running is None and isinstance(body, dict):
            running = read_job_id(body.get("error"))
        if running is None or not 0 < len(running.strip()) <= MAX_SHOWN_ID_LENGTH:
            return None
        return running

    @property
    def _is_wrong_base_url(self) -> bool:
        is_missing = reports_missing_endpoint(self.response.body, or_name=bool(self._extra_version))
        return self.response.status in {404, 405} and not self.has_answered and is_missing

    def _read_success(self) -> T:
        call, response, body = self.call, self.response, self.response.body
        problem = f"the response is not a JSON object ({response.description})"
        advice = errors.IN_FRONT if self.has_answered else errors.NOT_THE_API
        if isinstance(body, dict):
            if (name := self.client.field_with_key(body)) is not None:
                problem, advice = f"`{name}` contains the admin key", errors.ECHOED_KEY
            else:
                try:
                    result = call.read(body)
                except ValueError as error:
                    problem = str(error)
                else:
                    call.request.maybe_processed = False  # it was, and the result is known
                    return result
        elif response.is_web_page and not self.has_answered:
            reason = "the server returned a web page, not the API's JSON"
            raise self._wrong_base_url(
                BadResponse, reason, cause="That is often the dashboard's address."
            )
        returned = f"The API returned {response.status}, but {problem}"
        if advice is not errors.ECHOED_KEY and (
            call.request.method == "GET" or not isinstance(body, dict)
        ):
            raise TransientError(returned, advice=advice)
        details = [f"{returned}."]
        if call.is_start:
            came = (
                ""
                if advice is errors.ECHOED_KEY
                else f"The response was: {json.dumps(body, ensure_ascii=False)[:300]}"
            )
            details += [
                came,
                "The platform may have started a job anyway. Check the dashboard before the next run.",
            ]
        summary = f"the API's response to {call.request.url} is invalid"
        raise BadResponse(summary, details=tuple(filter(None, details)), **advice)

    def _final_error(self) -> ActionError:
        status = self.response.status
        kind, summary, _ = MEANINGS.get(status, Meaning())
        summary = summary.format(
            status=format_status(status),
            action=self.call.action,
            resource=self._resource,
        )
        in_front = errors.IN_FRONT if self.has_answered else errors.WRONG_ADDRESS
        if status < 400:
            not_followed = "The redirect was not followed: the admin key is sent only to the API's own address."
            location = self.response.headers.get("Location", "")
            host = re.match(r"(?:https?:)?//(?:[^/?#]*@)?([^/?#@\\]+)", location, re.IGNORECASE)
            target = host[1] if host else "another path" if location else "no address"
            summary = f"the API redirects to {target} ({status})"
            return BadResponse(summary, details=(not_followed,), **in_front)
        if self._is_wrong_base_url:
            version = (
                f"Remove `{self._extra_version}` from `base-url`: the action adds it."
                if self._extra_version
                else ""
            )
            reason = f"the server at {self.client.base_url} has no such endpoint ({status})"
            return self._wrong_base_url(kind, reason, remedy=version)
        if self.response.is_web_page:
            return kind(
                f"the API returned a web page instead of JSON, {format_status(status)}", **in_front
            )
        form = self.call.form
        if status == 403:
            return self._forbidden(summary)
        if status == 404:
            return self._not_found(summary)
        is_about_site = form is not None and not form.is_refusal_about_all_sites
        if status == 401 and self.call.is_start and is_about_site:
            return errors.UnauthorizedSite(summary, details=self._quotes)
        return kind(summary, details=self._quotes)

    @property
    def _resource(self) -> str:
        """What a 404 is about."""
        call = self.call
        if call.form is not None and call.is_start:
            return call.form.resource
        return "job" if call.job.project_id is None else "job or the project"

    def _forbidden(self, summary: str) -> ActionError:
        scope = "read" if self.call.request.method == "GET" else "write"
        lacks = f"key lacks the scope `{scope}`, or this runner's address is not on the key's list."
        form = self.call.form
        if form is None or not self.call.is_start:
            cause = f"The {lacks}"
            if scope == "write":
                cause += " By domain, a link needs `write`."
            return errors.Forbidden(summary, details=self._quotes, cause=cause)
        kind = errors.Forbidden if form.is_refusal_about_all_sites else errors.ForbiddenSite
        site = "Check whether static export is enabled. A site behind a sign-in cannot be exported."
        return kind(
            "the platform refused to start the export (403)",
            details=self._quotes,
            cause=f"One of these: {', '.join(form.not_enabled)}, the {lacks}",
            remedy=f"{site} {kind.default_remedy}",
        )

    def _not_found(self, summary: str) -> ActionError:
        job = self.call.job
        form = self.call.form
        cause = "`job-id` or `project-id` is wrong, or the platform has deleted the job."
        remedy = "Compare both with the dashboard."
        if self.call.is_start and form is not None:
            cause = form.unknown_site["cause"]
            remedy = form.unknown_site["remedy"]
            if not self.has_answered:
                remedy = f"{remedy} {form.other_form}."
        elif job.has_ended:
            summary, cause = f"the completed export {job.job_id} was deleted (404)", ""
            remedy = "Export again."
        elif self.has_answered:
            summary, cause = (
                f"the platform no longer knows the job {job.job_id} (404)",
                "The platform has deleted or lost it.",
            )
            remedy = f"Check the dashboard. If the job is there, use `{job.inputs_to_collect}`. If not, start another one."
        elif form is not None:
            cause = form.unknown_job["cause"]
            remedy = form.unknown_job["remedy"]
        return errors.NotFound(summary, details=self._quotes, cause=cause, remedy=remedy)

    def _wrong_base_url(
        self, kind: type[ActionError], reason: str, cause: str = "", remedy: str = ""
    ) -> ActionError:
        """Return the failure of a request that the API did not answer.

        `base-url` is wrong, or the platform has the other form of the export API.
        """
        details = self._quotes or (
            f"The response is not the API's JSON ({self.response.description}).",
        )
        cause = (
            cause or "The address or its path prefix is wrong, or it is the dashboard's address."
        )
        remedy = remedy or "Look up the API address in the platform documentation."
        summary = f"`base-url` is probably wrong: {reason}"
        form = self.call.form
        if form is not None and self._extra_version:
            remedy = f"{remedy} {form.other_form}."
        elif form is not None:
            summary = reason
            cause = f"{form.other_cause}. Or `base-url` is not the API's address."
            remedy = f"{form.other_form}. Otherwise, {remedy[:1].lower()}{remedy[1:]}"
        remedy = f"{remedy} The request went to {self.client.base_url}{self.call.request.url}."
        return kind(summary, details=details, cause=cause, remedy=remedy)


def reports_missing_endpoint(body: object, *, or_name: bool = False) -> bool:
    """Return whether a 404 or 405 means that the server lacks the endpoint, not that the API does not know a name.

    The API's error is an object with the string `error`. Other texts and fields are those of common frameworks and gateways. A
    text that only repeats the status may mean the name; with `or_name`, it counts.
    """
    if not isinstance(body, dict):
        return True
    texts, error = [*reasons_in(body)], body.get("error")
    if any(_RESOURCE.search(text) for text in texts):
        return False
    may_repeat_status = or_name or not (isinstance(error, str) and error.strip()) or "path" in body
    return any(map(_MISSING_ENDPOINT.search, texts)) or (
        may_repeat_status and all(map(_NOT_FOUND.fullmatch, texts))
    )
