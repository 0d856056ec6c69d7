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
    """Check every request to the API, but no downloads and no requests to GitHub. Raises AssertionError."""
    for request in requests:
        if request.operation not in GITHUB_OPERATIONS | {"download"}:
            check_request(request)


def check_request(request: RecordedRequest) -> None:
    """Check method, path, bearer authentication, content type and body of one request. Raises AssertionError."""
    where = f"{request.method} {request.path}"
    operation = _operation(request)
    _require(operation is not None, f"{where}: the contract has no such operation")
    _require(
        not request.query, f"{where}: the contract has no query, but {request.query!r} was sent"
    )
    is_bearer = re.fullmatch(r"Bearer [\x21-\x7e]+", request.headers.get("Authorization", ""))
    _require(is_bearer is not None, f"{where}: Authorization must be `Bearer <key>`")
    described = (operation or {}).get("requestBody", {})
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
    for template, item in description()["paths"].items():
        found = re.fullmatch(re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(template)), request.path)
        if found is not None and request.method.lower() in item:
            for parameter, value in zip(item.get("parameters", ()), found.groups(), strict=True):
                schema = _resolved(parameter)["schema"]
                _check_schema(
                    unquote(value), schema, f"{request.method} {request.path}: path parameter"
                )
            operation: Mapping[str, Any] = item[request.method.lower()]
            return operation
    return None


def _check_schema(value: object, schema: Mapping[str, Any], what: str) -> None:
    # with the components, to which local references in the schema point
    validator = jsonschema.Draft202012Validator(
        {**schema, "components": description()["components"]}
    )
    error = next(iter(validator.iter_errors(value)), None)
    _require(error is None, f"{what}: {error.message if error else ''}")


def _require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not condition:
        raise AssertionError(message)


@cache
def description() -> dict[str, Any]:
    """Return the OpenAPI description. Raises OSError outside the repository."""
    loaded: dict[str, Any] = yaml.safe_load(DESCRIPTION.read_text(encoding="utf-8"))
    return loaded


def _resolved(parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    name = parameter.get("$ref", "").removeprefix("#/components/parameters/")
    found: Mapping[str, Any] = (
        description()["components"]["parameters"][name] if name else parameter
    )
    return found
