"""Checks recorded requests against the OpenAPI description."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import yaml

from admin_api_simulator.recording import RecordedRequest

DESCRIPTION = Path(__file__).resolve().parents[2] / "docs" / "admin-api.openapi.yaml"
METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})


@dataclass(frozen=True, kw_only=True)
class DescribedOperation:
    """One operation of the description."""

    operation_id: str
    method: str
    template: str
    body: Mapping[str, Any] | None
    path_schemas: Mapping[str, Mapping[str, Any]]

    def match(self, path: str) -> dict[str, str] | None:
        """Return the decoded parameters of a raw path, or None for another path."""
        names = re.findall(r"\{(\w+)\}", self.template)
        pattern = re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(self.template))
        found = re.fullmatch(pattern, path)
        return None if found is None else dict(zip(names, map(unquote, found.groups()), strict=True))


def check_requests(requests: Iterable[RecordedRequest]) -> None:
    """Check every request to the API, but no downloads. Raises AssertionError."""
    for request in requests:
        if request.operation != "download":
            check_request(request)


def check_request(request: RecordedRequest) -> None:
    """Check method, path, bearer authentication, content type and body of one request. Raises AssertionError."""
    where = f"{request.method} {request.path}"
    operation, parameters = _find(request, where)
    for name, value in parameters.items():
        _check_schema(value, operation.path_schemas[name], f"{where}: path parameter {name}")
    _require(not request.query, f"{where}: the contract has no query, but {request.query!r} was sent")
    authorization = request.headers.get("Authorization", "")
    _require(
        re.fullmatch(r"Bearer [\x21-\x7e]+", authorization) is not None,
        f"{where}: Authorization must be `Bearer <key>`" + ("" if authorization else ", but it was not sent"),
    )
    _check_body(operation, request, where)


def _find(request: RecordedRequest, where: str) -> tuple[DescribedOperation, dict[str, str]]:
    matching = [(operation, found) for operation in operations() if (found := operation.match(request.path)) is not None]
    _require(bool(matching), f"{where}: the path is not in the contract")
    for operation, found in matching:
        if operation.method == request.method:
            return operation, found
    raise AssertionError(f"{where}: the contract has {', '.join(one.method for one, _ in matching)} at this path")


def _check_body(operation: DescribedOperation, request: RecordedRequest, where: str) -> None:
    if operation.body is None:
        _require(not request.body, f"{where}: the contract has no body, but {len(request.body)} bytes were sent")
        return
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    content = operation.body["content"]
    _require(media_type in content, f"{where}: Content-Type must be {' or '.join(content)}, not {media_type!r}")
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise AssertionError(f"{where}: the body is not JSON: {error}") from error
    _check_schema(body, content[media_type]["schema"], f"{where}: body")


def _check_schema(value: object, schema: Mapping[str, Any], what: str) -> None:
    # with the components, to which local references in the schema point
    validator = jsonschema.Draft202012Validator({**schema, "components": description()["components"]})
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


@cache
def operations() -> tuple[DescribedOperation, ...]:
    """Return the operations of the description."""
    return tuple(
        DescribedOperation(
            operation_id=about["operationId"],
            method=method.upper(),
            template=template,
            body=about.get("requestBody"),
            path_schemas={one["name"]: one["schema"] for one in map(_resolved, item.get("parameters", []))},
        )
        for template, item in description()["paths"].items()
        for method, about in item.items()
        if method in METHODS
    )


def _resolved(parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" not in parameter:
        return parameter
    name = parameter["$ref"].removeprefix("#/components/parameters/")
    found: Mapping[str, Any] = description()["components"]["parameters"][name]
    return found
