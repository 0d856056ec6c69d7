"""The API's resources, read from its JSON. Optional fields are `None` if they are missing or invalid."""

import http
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import ClassVar, Final, Self, TypeGuard
from urllib.parse import quote, urlsplit

from .errors import IN_FRONT, BadResponse

API: Final = "API"
STORAGE: Final = "storage"
GITHUB: Final = "GitHub"

MAX_TEXT_LENGTH: Final = 1000

UNUSABLE: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]"
)  # control characters and lone surrogates
_AMBIGUOUS_HOST: Final = re.compile(
    r"""\\|[%<>"^`{|}][^@]*\Z"""
)  # URL parsers differ in how they read a host with one of these

_PHRASES: Final = frozenset(status.phrase.lower() for status in http.HTTPStatus) | {
    *(
        "unprocessable entity",
        "unprocessable content",
        "payload too large",
        "content too large",
    ),  # old and new ones
}
_REASONS: Final = (
    "error",
    "message",
    "msg",
    "detail",
    "errors",
    "title",
)  # fields of APIs, frameworks and gateways
_MAX_DEPTH: Final = 5  # of a reason in an error response


@dataclass(frozen=True, kw_only=True)
class ExportJob:
    """The status of a static export job. `progress` is a percentage, 0 to 100.

    A completed one has a `link` by project.
    """

    status: str
    progress: float | None = None
    page_count: int | None = None
    error: str | None = None
    link: "BundleLink | None" = None

    QUEUED: ClassVar[str] = "queued"
    RUNNING: ClassVar[str] = "running"
    COMPLETED: ClassVar[str] = "completed"
    FAILED: ClassVar[str] = "failed"
    KNOWN_STATUSES: ClassVar[tuple[str, ...]] = (QUEUED, RUNNING, COMPLETED, FAILED)

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> Self:
        """Read the response to a status request. Raises `ValueError` if it has no `status`."""
        return cls(
            status=_status(body),
            progress=_percent(body.get("progress")),
            page_count=_count(body.get("pageCount")),
            error=read_error({**body, "title": None}),  # a job's title is not a reason
        )

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended. A job with an unknown status is still running."""
        return self.status in {self.COMPLETED, self.FAILED}


@dataclass(frozen=True, kw_only=True)
class BundleLink:
    """A time-limited link to a finished export. `expires_at` is the API's text, `expires` its time."""

    url: str
    expires_at: str | None = None
    expires: datetime | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> Self:
        """Read the response to a bundle request. Raises `ValueError` if it has no valid `bundleUrl`."""
        url = body.get("bundleUrl")
        if not isinstance(url, str) or not is_bundle_url(url):
            raise ValueError("`bundleUrl` is missing or is not an absolute https address")
        expires_at = body.get("expiresAt")
        if isinstance(expires_at, str) or _is_number(expires_at):
            return cls(
                url=url, expires_at=str(expires_at).strip() or None, expires=parse_time(expires_at)
            )
        return cls(url=url)


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The archive of a bundle, downloaded or read from a file: its size in bytes and its digest."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What differs from the site that is published: the numbers of pages and of other files, and the first pages, by kind."""

    pages: Mapping[str, int]
    files: Mapping[str, int]
    listed: Mapping[str, Sequence[str]]
    is_first: bool  # nothing is published yet

    ADDED: ClassVar[str] = "added"
    TEXT_CHANGED: ClassVar[str] = "textChanged"  # only of pages, which then are not in `changed`
    CHANGED: ClassVar[str] = "changed"
    REMOVED: ClassVar[str] = "removed"
    UNCHANGED: ClassVar[str] = "unchanged"
    NAMES: ClassVar[Mapping[str, str]] = {
        TEXT_CHANGED: "text changed",
        CHANGED: "otherwise changed",
    }  # of pages, for people

    @property
    def is_any(self) -> bool:
        """Whether any file was added, changed or removed."""
        return any(
            count
            for counts in (self.pages, self.files)
            for kind, count in counts.items()
            if kind != self.UNCHANGED
        )

    @property
    def has_new_text_everywhere(self) -> bool:
        """Whether the text of each of several pages changed, and no page was added or removed."""
        return sum(self.pages.values()) == self.pages[self.TEXT_CHANGED] > 1

    @property
    def notes(self) -> Sequence[str]:
        """What to know about the numbers, in sentences."""
        first = "Nothing is published yet (`first-publication`), so every file counts as added."
        dated = "The text of every page differs, so something in each page probably changes with every export, such as a date."
        return [
            *([first] if self.is_first else []),
            *([dated] if self.has_new_text_everywhere else []),
        ]


@dataclass(frozen=True, kw_only=True)
class AgentJob:
    """The status of an AI agent's job."""

    status: str
    pr_link: str | None = None
    unusable_pr_link: str | None = None
    repository: str | None = None
    ref: str | None = None
    model: str | None = None
    created_at: str | None = None
    archived_at: str | None = None

    COMPLETED: ClassVar[str] = "completed"
    ARCHIVED: ClassVar[str] = "archived"
    FAILED: ClassVar[str] = "failed"
    KNOWN_STATUSES: ClassVar[tuple[str, ...]] = ("active", COMPLETED, ARCHIVED, FAILED)

    @classmethod
    def from_json(cls, body: Mapping[str, object], job_id: str | None = None) -> Self:
        """Read the response to a status request. Raises `ValueError` without a `status`, and `BadResponse` for another job."""
        found = body.get("id")
        is_comparable = isinstance(found, str) or (isinstance(found, int) and str(job_id).isdigit())
        if is_comparable and str(found).lower() not in {"", str(job_id or found).lower()}:
            raise BadResponse(
                "the API returned another job",
                details=(f"Its ID is '{str(found)[:100]}'.",),
                **IN_FRONT,
            )
        source, given = body.get("source"), str(body.get("prLink") or "").strip()
        link = re.sub(r"\s", lambda blank: quote(blank[0]), given)
        return cls(
            status=_status(body),
            pr_link=link if is_web_address(link) else None,
            unusable_pr_link=None if is_web_address(link) else given[:MAX_TEXT_LENGTH] or None,
            repository=_text(source, "repository"),
            ref=_text(source, "ref"),
            model=_text(body, "model"),
            created_at=_text(body, "createdAt"),
            archived_at=_text(body, "archivedAt"),
        )

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.status in {self.COMPLETED, self.ARCHIVED, self.FAILED}


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A deployment of a commit that an account has reported to GitHub. `link` is where its state is explained.

    Source: GitHub's REST API, deployments and their statuses.
    """

    id: int
    commit: str
    commit_url: str
    creator: str
    environment: str
    is_transient: bool
    state: str = "pending"
    link: str | None = None

    LIVE: ClassVar[str] = "success"
    FAILED: ClassVar[tuple[str, ...]] = ("failure", "error")
    OVER: ClassVar[tuple[str, ...]] = (*FAILED, "inactive")  # it cannot succeed any more

    @classmethod
    def from_json(cls, body: object, repository_url: str) -> Self | None:
        """Read an item of the list of deployments, if it has an `id` and a `sha`."""
        if (
            not isinstance(body, dict)
            or not isinstance(body.get("id"), int)
            or (commit := _text(body, "sha")) is None
        ):
            return None
        return cls(
            id=body["id"],
            commit=commit,
            commit_url=f"{repository_url}/commit/{commit}",
            creator=_text(body.get("creator"), "login")
            or "ghost",  # as GitHub shows deleted accounts
            environment=_text(body, "environment") or "",
            is_transient=body.get("transient_environment") is True,
        )

    def with_status(self, body: object) -> Self:
        """Return the deployment with a status, an item of the list of its statuses."""
        links = (_text(body, name) or "" for name in ("log_url", "target_url", "environment_url"))
        return replace(
            self,
            state=_text(body, "state") or self.state,
            link=next(filter(is_web_address, links), None),
        )

    @property
    def name(self) -> str:
        """The short name of its commit."""
        return self.commit[:7]

    @property
    def description(self) -> str:
        """What completes "Its deployment …", where it is not live."""
        ended = "has failed" if self.state in self.FAILED else "has been replaced"
        return (
            ended if self.state in {self.LIVE, *self.OVER} else f"is {self.state.replace('_', ' ')}"
        )


def read_error(body: object) -> str | None:
    """Read the reason in an error response, wherever it stands; one that only repeats a status, if there is no other."""
    reasons = (
        [*dict.fromkeys(itertools.islice(reasons_in(body), 3))] if isinstance(body, dict) else []
    )
    texts = [reason for reason in reasons if reason.lower() not in _PHRASES] or reasons
    return "; ".join(texts)[:MAX_TEXT_LENGTH].strip() or None


def reasons_in(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the reasons in a text, an object or a list, such as the errors of several fields."""
    if isinstance(value, str) and value.strip():
        yield value.strip()[:MAX_TEXT_LENGTH]
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        yield from (reason for item in value for reason in reasons_in(item, depth + 1))
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        known = [name for name in _REASONS if name in value]
        place = (
            ".".join(map(str, value["loc"][:_MAX_DEPTH])) + ": "
            if isinstance(value.get("loc"), list)
            else ""
        )
        for name in known if known or not depth else value:
            yield from (
                f"{place if known else f'{name}: '}{reason}"
                for reason in reasons_in(value[name], depth + 1)
            )


def read_started(body: Mapping[str, object]) -> tuple[str, str | None]:
    """Read the job's id and, if it is there, its status in the response to a start request. Raises `ValueError` without an id."""
    if (job_id := read_job_id(body)) is None:
        raise ValueError("`jobId` is missing or invalid")
    return job_id, _text(body, "status")


def read_job_id(body: object) -> str | None:
    """Return a usable `jobId`: a string that `is_job_id`, or the decimal text of a whole number."""
    value = body.get("jobId") if isinstance(body, dict) else None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return str(text) if is_job_id(text) else None


def is_job_id(value: object) -> bool:
    """Return whether a value is a non-empty string without control characters."""
    return isinstance(value, str) and bool(value) and not UNUSABLE.search(value)


def is_web_address(url: str) -> bool:
    """Return whether a URL is an absolute http or https address without white space or control characters."""
    if UNUSABLE.search(url) or re.search(r"\s", url):
        return False
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(host)
        and port != 0
        and not _AMBIGUOUS_HOST.search(parts.netloc)
    )


def is_bundle_url(url: str) -> bool:
    """Return whether a bundle may be downloaded from a URL: https, or http from this machine."""
    return is_web_address(url) and (
        urlsplit(url).scheme == "https" or is_loopback(urlsplit(url).hostname or "")
    )


def is_loopback(host: str) -> bool:
    """Return whether a host name or IP address is this machine's own."""
    try:
        return host.lower() == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _status(body: Mapping[str, object]) -> str:
    status = _text(body, "status")
    if status is None:
        raise ValueError("`status` is missing")
    return status


def _text(body: object, name: str) -> str | None:
    value = body.get(name) if isinstance(body, dict) else None
    return (value.strip()[:MAX_TEXT_LENGTH] or None) if isinstance(value, str) else None


def _is_number(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
    )  # false for NaN, too


def _percent(value: object) -> float | None:
    return float(value) if _is_number(value) and 0 <= value <= 100 else None


def _count(value: object) -> int | None:
    return int(value) if _is_number(value) and 0 <= value < 2**53 and value == int(value) else None


def parse_time(value: str | float) -> datetime | None:
    """Parse ISO 8601, or seconds or milliseconds since 1970. A time without a zone is UTC."""
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value.strip())
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
