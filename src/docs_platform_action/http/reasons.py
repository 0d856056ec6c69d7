"""The reason in a response, in the fields where APIs, frameworks and gateways put it."""

import itertools
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Final

from .fields import MAX_TEXT_LENGTH, read_text

MAX_REASONS: Final = 3  # of one response
MAX_DEPTH: Final = 5  # of a reason in nested objects and lists

_FIELDS: Final = ("error", "message", "msg", "detail", "errors", "title")

# some servers send the names that these statuses had before, or have had since
_RENAMED_PHRASES: Final = frozenset(
    {
        "unprocessable entity",
        "unprocessable content",
        "payload too large",
        "content too large",
    }
)
_PHRASES: Final = _RENAMED_PHRASES | {status.phrase.lower() for status in HTTPStatus}


def read_error(body: object) -> str | None:
    """Return the reasons in a response, an object or a list of objects, as one text.

    A reason that only repeats the status counts only if there is no other one.
    """
    objects = body if isinstance(body, list) else [body]
    found = (reasons_in(item) for item in objects if isinstance(item, dict))
    first_reasons = itertools.islice(itertools.chain.from_iterable(found), MAX_REASONS)
    reasons = list(dict.fromkeys(first_reasons))
    informative = [reason for reason in reasons if reason.lower() not in _PHRASES]
    text = "; ".join(informative or reasons)
    return text[:MAX_TEXT_LENGTH].strip() or None


def read_error_of_success(body: object) -> str | None:
    """Return the reasons in a response with success. The title of a job is not one."""
    if isinstance(body, dict) and read_text(body, "status") is not None:
        return read_error({**body, "title": None})
    return read_error(body)


def reasons_in(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the reasons in a text, an object or a list, such as the errors of several fields."""
    if isinstance(value, str):
        text = value.strip()
        if text:
            yield text[:MAX_TEXT_LENGTH]
        return
    if depth == MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from reasons_in(item, depth + 1)
    elif isinstance(value, dict):
        yield from _reasons_in_object(value, depth)


def _reasons_in_object(value: Mapping[str, object], depth: int) -> Iterator[str]:
    known = [name for name in _FIELDS if name in value]
    location = _location(value)
    for name in known:
        for reason in reasons_in(value[name], depth + 1):
            yield f"{location}{reason}"
    if known or depth == 0:
        return
    # inside of a reason, such an object has the errors of each input by the input's name
    for name, errors in value.items():
        for reason in reasons_in(errors, depth + 1):
            yield f"{name}: {reason}"


def _location(error: Mapping[str, object]) -> str:
    """Return where an error is, such as `body.domain: `, if the server says so."""
    location = error.get("loc")
    if not isinstance(location, list):
        return ""
    parts = [str(part) for part in location[:MAX_DEPTH]]
    return f"{'.'.join(parts)}: "
