"""The four operations of the administrative API."""

import hmac
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from admin_api_simulator.bundles import BundleStore
from admin_api_simulator.clock import as_timestamp
from admin_api_simulator.jobs import NO_PLAN_LABEL, UNKNOWN_LABEL, ExportJob, JobStore, first_label
from admin_api_simulator.links import LinkSigner
from admin_api_simulator.recording import RecordedRequest
from admin_api_simulator.responses import Response, error_response, json_response
from admin_api_simulator.routes import Route

Override = Mapping[str, object] | Callable[[dict[str, object]], object]

NO_PLAN = "Static export requires an Enterprise plan."


ROUTES = (
    Route(operation="start_export", method="POST", path="/v1/static-export/jobs"),
    Route(operation="read_export", method="GET", path="/v1/static-export/jobs/{}"),
    Route(operation="make_bundle", method="POST", path="/v1/static-export/jobs/{}/bundle"),
    Route(operation="read_agent_job", method="GET", path="/v2/agent/{}/job/{}"),
)


class Api:
    """Responds to the requests to the API's port.

    Routes match the raw path, because an id may contain an encoded slash or be `%2E%2E`, which HTTP libraries would resolve.
    """

    def __init__(
        self,
        *,
        key: str,
        jobs: JobStore,
        bundles: BundleStore,
        signer: LinkSigner,
        storage_url: Callable[[], str],
        max_jobs: int | None = None,
    ) -> None:
        self._key = key
        self._jobs = jobs
        self._bundles = bundles
        self._signer = signer
        self._storage_url = storage_url
        self._max_jobs = max_jobs
        self._overrides: dict[str, Override | None] = {}
        self._request_numbers = itertools.count(1)

    def override(self, operation: str, value: Override | None) -> None:
        """Replace the JSON of successful responses: by a value, or by what a function returns for the normal one."""
        self._overrides[operation] = value

    def operation_of(self, method: str, path: str) -> str:
        """Return the operation of a request, or `unknown`."""
        matches = (route.operation for route in ROUTES if route.method == method and route.match(path) is not None)
        return next(matches, "unknown")

    def domain_of(self, request: RecordedRequest) -> str | None:
        """Return the domain of the export that a request starts or refers to."""
        if request.operation == "start_export":
            return _domain_in(request.body)
        if request.operation not in ("read_export", "make_bundle"):
            return None
        job = self._jobs.export(self._ids(request)[0])
        return None if job is None else job.domain

    def respond(self, request: RecordedRequest) -> Response:
        """Run a request's operation, or reject it with the API's Error object."""
        response = self._authorized(request)
        if 200 <= response.status < 300:
            response = self._overridden(request, response)
        return replace(response, headers={**response.headers, "X-Request-Id": f"req-{next(self._request_numbers):06d}"})

    def _overridden(self, request: RecordedRequest, response: Response) -> Response:
        value = self._overrides.get(request.operation)
        if value is None:
            return response
        body = value(json.loads(bytes(response.body))) if callable(value) else value
        return replace(response, body=json.dumps(body, ensure_ascii=False).encode())

    def _authorized(self, request: RecordedRequest) -> Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        expected = self._key.encode()
        given = token.strip().encode("utf-8", "surrogateescape")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given, expected):
            message = "invalid token" if token else "missing token"
            return error_response(401, message, headers={"WWW-Authenticate": "Bearer"})
        routes = [route for route in ROUTES if route.match(request.path) is not None]
        if not routes:
            return error_response(404, "no such endpoint")
        if request.operation == "unknown":
            methods = ", ".join(route.method for route in routes)
            return error_response(405, f"use {methods} here", headers={"Allow": methods})
        return self._run_operation(request)

    def _run_operation(self, request: RecordedRequest) -> Response:
        ids = self._ids(request)
        if request.operation == "read_agent_job":
            agent = self._jobs.agent_json(*ids)
            return error_response(404, "agent job not found") if agent is None else json_response(agent)
        if request.operation == "start_export":
            return self._start_export(request)
        job = self._jobs.export(ids[0])
        if job is None:
            return error_response(404, "export job not found")
        if request.operation == "read_export":
            return json_response(self._jobs.export_json(job))
        return self._make_bundle(job)

    def _start_export(self, request: RecordedRequest) -> Response:
        media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            return error_response(415, "the body must be application/json")
        domain = _domain_in(request.body)
        if domain is None:
            return error_response(400, "the body must be a JSON object with `domain`, a non-empty string")
        label = first_label(domain)
        if label == NO_PLAN_LABEL:
            return error_response(403, NO_PLAN)
        if label == UNKNOWN_LABEL:
            return error_response(404, f"there is no deployment at {domain}")
        if self._max_jobs is not None and self._jobs.unfinished() >= self._max_jobs:
            message = f"{self._max_jobs} exports are running already"
            return error_response(429, message, headers={"Retry-After": "1"})
        return json_response({"jobId": self._jobs.start_export(domain).id, "status": "queued"}, status=202)

    def _make_bundle(self, job: ExportJob) -> Response:
        status = self._jobs.export_json(job)["status"]
        if status != "completed":
            return error_response(409, f"the export is {status}; a bundle needs a completed one")
        bundle = self._bundles.pack(job)
        url = self._storage_url()
        query, expires_at = self._signer.sign(host=url.partition("://")[2], path=bundle.path, file_name=bundle.file_name)
        return json_response(
            {
                "bundleUrl": f"{url}{bundle.path}?{query}",
                "expiresAt": as_timestamp(expires_at),
                "sizeBytes": len(bundle.content),
            }
        )

    def _ids(self, request: RecordedRequest) -> list[str]:
        return next(ids for route in ROUTES if (ids := route.match(request.path)) is not None)


def _domain_in(body: bytes) -> str | None:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    domain = fields.get("domain") if isinstance(fields, dict) else None
    return domain if isinstance(domain, str) and domain else None
