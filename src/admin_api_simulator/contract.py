"""Checks recorded requests against the OpenAPI description."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import yaml

from admin_api_simulator.faults import GITHUB_OPERATIONS
from admin_api_simulator.recording import RecordedRequest

DESCRIPTION = Path(__file__).resolve().parents[2] / "docs" / "admin-api.openapi.yaml"


def check_requests(requests: Iterable[RecordedRequest]) -> None:
    """Check every request to the API, but no downloads and no requests to GitHub.

    Raises AssertionError.
    """
    for request in requests:
        if request.operation not in GITHUB_OPERATIONS | {"download"}:
            check_request(request)


def check_request(request: RecordedRequest) -> None:
    """Check method, path, bearer authentication, content type and body of one request.

    Raises AssertionError.
    """
    where = f"{request.method} {request.path}"
    operation = _operation(request)
    if operation is None:
        raise AssertionError(f"{where}: the contract has no such operation")
    _require(
        not request.query, f"{where}: the contract has no query, but {request.query!r} was sent"
    )
    is_bearer = re.fullmatch(r"Bearer [\x21-\x7e]+", request.headers.get("Authorization", ""))
    _require(is_bearer is not None, f"{where}: Authorization must be `Bearer <key>`")
    described = operation.get("requestBody", {})
    content = described.get("content")
    if content is None:
        _require(
            not request.body,
            f"{where}: the contract has no body, but {len(request.body)} bytes were sent",
        )
        return
    if not request.body and not described["required"]:
        _require("Content-Type" not in request.headers, f"{where}: Content-Type without a body")
        return
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    _require(
        media_type in content,
        f"{where}: Content-Type must be {' or '.join(content)}, not {media_type!r}",
    )
    try:
        _check_schema(json.loads(request.body), content[media_type]["schema"], f"{where}: body")
    except ValueError as error:
        raise AssertionError(f"{where}: the body is not JSON: {error}") from error


def _operation(request: RecordedRequest) -> Mapping[str, Any] | None:
    method = request.method.lower()
    for template, item in description()["paths"].items():
        pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(template))
        found = re.fullmatch(pattern, request.path)
        if found is None or method not in item:
            continue
        where = f"{request.method} {request.path}: path parameter"
        for parameter, value in zip(item.get("parameters", ()), found.groups(), strict=True):
            _check_schema(unquote(value), _resolved(parameter)["schema"], where)
        operation: Mapping[str, Any] = item[method]
        return operation
    return None


def _check_schema(value: object, schema: Mapping[str, Any], what: str) -> None:
    # with the components, to which local references in the schema point
    complete = {**schema, "components": description()["components"]}
    for error in jsonschema.Draft202012Validator(complete).iter_errors(value):
        raise AssertionError(f"{what}: {error.message}")


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not condition:
        raise AssertionError(message)


@cache
def description() -> dict[str, Any]:
    """Return the OpenAPI description. Raises OSError outside the repository."""
    loaded: dict[str, Any] = yaml.safe_load(DESCRIPTION.read_text(encoding="utf-8"))
    return loaded


def _resolved(parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a parameter, or the one among the components that it refers to."""
    reference: str = parameter.get("$ref", "")
    if not reference:
        return parameter
    name = reference.removeprefix("#/components/parameters/")
    found: Mapping[str, Any] = description()["components"]["parameters"][name]
    return found
