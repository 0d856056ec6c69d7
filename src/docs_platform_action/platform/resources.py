"""The API's resources, read from its JSON. Optional fields are `None` if missing or invalid."""

import re
from collections.abc import Mapping
from urllib.parse import quote

from ..addresses import is_bundle_url, is_web_address
from ..errors import BadResponse
from ..http.fields import (
    MAX_TEXT_LENGTH,
    is_number,
    parse_time,
    read_count,
    read_percent,
    read_text,
)
from ..http.reasons import read_error_of_success
from ..models import AgentJob, BundleLink, ExportJob, is_identifier
from .advice import IN_FRONT


def read_started(body: Mapping[str, object]) -> tuple[str, str | None]:
    """Read the job's id and its optional status in the response to a start request.

    Raises `ValueError` without a usable id.
    """
    job_id = read_job_id(body)
    if job_id is None:
        raise ValueError("`jobId` is missing or invalid")
    return job_id, read_text(body, "status")


def read_job_id(body: object) -> str | None:
    """Return a usable `jobId`: an identifier, or the decimal text of a whole number."""
    if not isinstance(body, dict):
        return None
    value = body.get("jobId")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and is_identifier(value):
        return value
    return None


def read_export_job(body: Mapping[str, object]) -> ExportJob:
    """Read the response to a status request. Raises `ValueError` if it has no `status`."""
    return ExportJob(
        status=_read_status(body),
        progress=read_percent(body, "progress"),
        page_count=read_count(body, "pageCount"),
        error=read_error_of_success(body),
    )


def read_bundle_link(body: Mapping[str, object]) -> BundleLink:
    """Read the response to a bundle request. Raises `ValueError` if it has no valid `bundleUrl`."""
    url = body.get("bundleUrl")
    if not isinstance(url, str) or not is_bundle_url(url):
        raise ValueError("`bundleUrl` is missing or is not an absolute https address")
    expires_at = body.get("expiresAt")
    if not isinstance(expires_at, str) and not is_number(expires_at):
        return BundleLink(url=url)
    return BundleLink(
        url=url,
        expires_at=str(expires_at).strip() or None,
        expires=parse_time(expires_at),
    )


def read_agent_job(body: Mapping[str, object], job_id: str | None = None) -> AgentJob:
    """Read the response to a status request.

    Raises `ValueError` without a `status`, and `BadResponse` for another job than `job_id`.
    """
    found_id = body.get("id")
    if job_id is not None and _is_other_job(found_id, job_id):
        raise BadResponse(
            "the API returned another job",
            details=(f"Its ID is '{str(found_id)[:100]}'.",),
            **IN_FRONT,
        )
    source = body.get("source")
    given_link = str(body.get("prLink") or "").strip()
    link = re.sub(r"\s", lambda blank: quote(blank[0]), given_link)
    is_usable = is_web_address(link)
    return AgentJob(
        status=_read_status(body),
        error=read_error_of_success(body),
        pr_link=link if is_usable else None,
        unusable_pr_link=None if is_usable else given_link[:MAX_TEXT_LENGTH] or None,
        repository=read_text(source, "repository"),
        ref=read_text(source, "ref"),
        model=read_text(body, "model"),
        created_at=read_text(body, "createdAt"),
        archived_at=read_text(body, "archivedAt"),
    )


def _is_other_job(found_id: object, job_id: str) -> bool:
    """Return whether the id in a response is that of another job. Upper and lower case are equal.

    A number says nothing about a job that was asked for by another kind of id.
    """
    if isinstance(found_id, int):
        return job_id.isdigit() and str(found_id) != job_id
    if not isinstance(found_id, str) or found_id == "":
        return False
    return found_id.lower() != job_id.lower()


def _read_status(body: Mapping[str, object]) -> str:
    status = read_text(body, "status")
    if status is None:
        raise ValueError("`status` is missing")
    return status
