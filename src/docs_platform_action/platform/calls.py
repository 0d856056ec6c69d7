"""Calls of the API, their answers, and what a form of its export API says and asks."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar
from urllib.parse import quote

from requests.models import REDIRECT_STATI

from ..errors import Advice
from ..http.attempts import TEMPORARY_STATUSES
from ..http.json_response import JsonResponse
from ..http.transport import Request, Timeouts
from ..job import Job
from ..models import BundleLink, ExportJob

T = TypeVar("T")

SETTLING_SECONDS: Final = 30.0  # how long some of the platform's servers may not know a new job


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """One operation of the API. Times are on the clock's `monotonic`.

    `read` raises `ValueError` if the response's JSON object is invalid, and `BadResponse` if no
    retry can help. That of a start records it.
    `temporary_until` says until when to retry a status that is normally final.
    Without a `form`, it is about an agent job.
    """

    job: Job
    action: str  # in a few words, such as "start exports"
    request: Request
    read: Callable[[Mapping[str, object]], T]
    form: "ExportForm | None" = None
    is_start: bool = False  # sent again only if the platform surely did not process it
    temporary_until: Mapping[int, float] = field(default_factory=dict)
    timeouts: Timeouts = field(default_factory=Timeouts)
    deadline: float = math.inf  # when to make the last attempt


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[T]):
    """The response to a call."""

    call: Call[T]
    response: JsonResponse
    base_url: str
    is_api_known: bool  # by an earlier success: then `base-url` is right
    accepted_methods: frozenset[str] = frozenset()  # of requests that the key was allowed to make

    @property
    def status(self) -> int:
        """The response's status."""
        return self.response.status

    @property
    def is_rejection(self) -> bool:
        """Whether the status is a redirect or a 4xx that another attempt does not change.

        Any other 3xx, such as 304, is not what the request asked for.
        """
        if self.status in REDIRECT_STATI:
            return True
        return 400 <= self.status < 500 and self.status not in TEMPORARY_STATUSES

    @property
    def is_intercepted(self) -> bool:
        """Whether something in front of the API rejected the request, with a web page."""
        return self.is_rejection and self.status >= 400 and self.response.is_web_page

    @property
    def is_unprocessed(self) -> bool:
        """Whether the platform says that it has not processed the request."""
        is_overloaded = self.status == 503 and self.response.retry_after_seconds is not None
        return self.is_rejection or self.status == 429 or is_overloaded

    @property
    def extra_version(self) -> str | None:
        """The version at the end of `base-url`, such as `/v1`, which the action adds itself."""
        version = re.search(r"/v[0-9]+\Z", self.base_url)
        return version[0] if version else None


class ExportForm(Protocol):
    """A form of the export API: its requests, its responses, and what its refusals mean."""

    resource: str  # what a start names
    cause_if_other_form: str  # a sentence without its full stop: the platform has the other form
    remedy_if_other_form: str  # what to do then
    not_enabled: Sequence[str]  # clauses: why a 403 to a start may be about the site
    is_refusal_about_all_sites: bool  # whether a 401 or 403 to a start concerns every site
    unknown_site: Advice  # 404 to a start
    job_names: str  # what a reading names
    unknown_job: Advice  # 404 to a reading, before any other response

    def start(self, job: Job, options: Mapping[str, object]) -> Request:
        """Return the request that starts a job's export."""

    def status(self, job: Job) -> Request:
        """Return the request for a job's status."""

    def read_status(self, body: Mapping[str, object]) -> ExportJob:
        """Read the response to a status request. Raises `ValueError` if it is invalid."""

    def link(self, job: Job) -> Call[BundleLink] | None:
        """Return the call that makes a link to a completed export's bundle.

        `None` means that the status of the job holds the link.
        """


def settles_at(job: Job) -> float:
    """Return until when a 404 is temporary: a while after the start, or the wait, began."""
    if job.waiting_since is None:
        return -math.inf
    return job.waiting_since + SETTLING_SECONDS


def path_segment(identifier: str | None) -> str:
    """Return an identifier for a path: slashes are encoded too, and the dots of `.` and `..`."""
    if identifier in {".", ".."}:
        return "%2E" * len(identifier)
    return quote(str(identifier), safe="")
