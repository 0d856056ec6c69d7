"""The operations of the administrative API: exports by domain and by project, and agent jobs."""

import hmac
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from admin_api_simulator.bundles import BundleStore
from admin_api_simulator.clock import as_timestamp
from admin_api_simulator.jobs import (
    NO_PLAN_LABEL,
    SIGN_IN_LABEL,
    UNKNOWN_LABEL,
    ExportJob,
    JobStore,
    domain_of_project,
    first_label,
)
from admin_api_simulator.limits import StartLimits
from admin_api_simulator.links import LinkSigner
from admin_api_simulator.recording import RecordedRequest
from admin_api_simulator.responses import Response, error_response, json_response
from admin_api_simulator.routes import Route

Override = Mapping[str, object] | Callable[[dict[str, object]], object]

NO_PLAN = "Static export requires an Enterprise plan."
NOT_ENABLED = "Static export is not enabled for this deployment."
SIGN_IN = "Static export is not available for deployments that require authentication."
READ_ONLY = "This key has the scope read, and the request needs the scope write."
BASE_PATHS = ("", "/docs", "/documentation")

START_BY_DOMAIN = Route(operation="start_export", method="POST", path="/v1/static-export/jobs")
READ_BY_DOMAIN = Route(operation="read_export", method="GET", path="/v1/static-export/jobs/{}")
MAKE_BUNDLE = Route(operation="make_bundle", method="POST", path="/v1/static-export/jobs/{}/bundle")
START_BY_PROJECT = Route(operation="start_export", method="POST", path="/v1/static-export/{}/jobs")
READ_BY_PROJECT = Route(operation="read_export", method="GET", path="/v1/static-export/{}/jobs/{}")
READ_AGENT_JOB = Route(operation="read_agent_job", method="GET", path="/v2/agent/{}/job/{}")
ROUTES = (
    START_BY_DOMAIN,
    READ_BY_DOMAIN,
    MAKE_BUNDLE,
    START_BY_PROJECT,
    READ_BY_PROJECT,
    READ_AGENT_JOB,
)


class Api:
    """Responds to the requests to the API's port.

    Routes match the raw path, because an id may contain an encoded slash or be `%2E%2E`, which HTTP
    libraries would resolve.
    """

    def __init__(
        self,
        *,
        key: str,
        read_key: str,
        jobs: JobStore,
        bundles: BundleStore,
        signer: LinkSigner,
        storage_url: Callable[[], str],
        limits: StartLimits,
    ) -> None:
        self._scopes = {key: "write", read_key: "read"}
        self._jobs = jobs
        self._bundles = bundles
        self._signer = signer
        self._storage_url = storage_url
        self._limits = limits
        self._overrides: dict[str, Override | None] = {}
        self._request_numbers = itertools.count(1)

    def override(self, operation: str, value: Override | None) -> None:
        """Replace the JSON of successful responses.

        The replacement is a value, or what a function returns for the normal JSON.
        """
        self._overrides[operation] = value

    def operation_of(self, method: str, path: str) -> str:
        """Return the operation of a request, or `unknown`.

        It is the same for both forms of the export API.
        """
        route, _ = _routed(method, path)
        return "unknown" if route is None else route.operation

    def domain_of(self, request: RecordedRequest) -> str | None:
        """Return the domain of the export that a request starts or refers to."""
        route, ids = _routed(request.method, request.path)
        if route is START_BY_DOMAIN:
            return _domain_in(request.body)
        if route is START_BY_PROJECT:
            return domain_of_project(ids[0])
        if route in (READ_BY_DOMAIN, READ_BY_PROJECT, MAKE_BUNDLE):
            job = self._jobs.export(ids[-1])
            return None if job is None else job.domain
        return None

    def respond(self, request: RecordedRequest) -> Response:
        """Run a request's operation, or reject it with the API's Error object."""
        response = self._authorized(request)
        if 200 <= response.status < 300:
            response = self._overridden(request, response)
        request_id = f"req-{next(self._request_numbers):06d}"
        return replace(response, headers={**response.headers, "X-Request-Id": request_id})

    def _overridden(self, request: RecordedRequest, response: Response) -> Response:
        override = self._overrides.get(request.operation)
        if override is None:
            return response
        fields: object = override
        if callable(override):
            fields = override(json.loads(bytes(response.body)))
        return replace(response, body=json.dumps(fields, ensure_ascii=False).encode())

    def _authorized(self, request: RecordedRequest) -> Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        scope = None
        if scheme.lower() == "bearer":
            scope = self._scope_of(token.strip())
        if scope is None:
            message = "invalid token" if token else "missing token"
            return error_response(401, message, headers={"WWW-Authenticate": "Bearer"})
        routes = [route for route in ROUTES if route.match(request.path) is not None]
        if not routes:
            return error_response(404, "no such endpoint")
        if request.operation == "unknown":
            methods = ", ".join(dict.fromkeys(route.method for route in routes))
            return error_response(405, f"use {methods} here", headers={"Allow": methods})
        if scope == "read" and request.method not in ("GET", "HEAD"):
            return error_response(403, READ_ONLY)
        return self._run_operation(request)

    def _scope_of(self, token: str) -> str | None:
        given = token.encode("utf-8", "surrogateescape")
        for key, scope in self._scopes.items():
            if hmac.compare_digest(given, key.encode()):
                return scope
        return None

    def _run_operation(self, request: RecordedRequest) -> Response:
        route, ids = _routed(request.method, request.path)
        if route is READ_AGENT_JOB:
            return self._read_agent_job(*ids)
        if route is START_BY_DOMAIN:
            return self._start_by_domain(request)
        if route is START_BY_PROJECT:
            return self._start_by_project(ids[0], request.body)
        if route is READ_BY_PROJECT:
            return self._read_by_project(*ids)
        job = self._jobs.export(ids[0])
        if job is None:
            return error_response(404, "export job not found")
        if route is READ_BY_DOMAIN:
            return json_response(self._jobs.export_json(job))
        return self._make_bundle(job)

    def _read_agent_job(self, project_id: str, job_id: str) -> Response:
        fields = self._jobs.agent_json(project_id, job_id)
        if fields is None:
            return error_response(404, "agent job not found")
        return json_response(fields)

    def _read_by_project(self, project_id: str, job_id: str) -> Response:
        job = self._jobs.export(job_id)
        if job is None or job.domain != domain_of_project(project_id):
            return error_response(404, "no such export job in this project")
        return json_response(self._project_json(job))

    def _start_by_domain(self, request: RecordedRequest) -> Response:
        media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            return error_response(415, "the body must be application/json")
        domain = _domain_in(request.body)
        if domain is None:
            message = "the body must be a JSON object with `domain`, a non-empty string"
            return error_response(400, message)
        no_such_deployment = f"there is no deployment at {domain}"
        refusal = self._refusal(domain, not_enabled=NO_PLAN, unknown=no_such_deployment)
        if refusal is not None:
            return refusal
        job = self._jobs.start_export(domain)
        return json_response({"jobId": job.id, "status": "queued"}, status=202)

    def _start_by_project(self, project_id: str, body: bytes) -> Response:
        base_path = _base_path_in(body)
        if base_path is None:
            message = (
                "the body must be empty or an object with `basePath`: "
                '"", "/docs" or "/documentation"'
            )
            return error_response(400, message)
        domain = domain_of_project(project_id)
        refusal = self._refusal(domain, not_enabled=NOT_ENABLED, unknown="no such project")
        if refusal is not None:
            return refusal
        job = self._jobs.start_export(domain, base_path=base_path)
        created_at = as_timestamp(job.created_at)
        started = {
            "jobId": job.id,
            "status": "queued",
            "createdAt": created_at,
            "updatedAt": created_at,
        }
        return json_response(started, status=202)

    def _refusal(self, domain: str, *, not_enabled: str, unknown: str) -> Response | None:
        """Return why the export of a site cannot start. None: it can, and counts as a start."""
        label = first_label(domain)
        if label == NO_PLAN_LABEL:
            return error_response(403, not_enabled)
        if label == SIGN_IN_LABEL:
            return error_response(403, SIGN_IN)
        if label == UNKNOWN_LABEL:
            return error_response(404, unknown)
        return self._limits.refusal(domain)

    def _make_bundle(self, job: ExportJob) -> Response:
        status = self._jobs.export_json(job)["status"]
        if status != "completed":
            return error_response(409, f"the export is {status}; a bundle needs a completed one")
        return json_response(self._link(job, self._bundles.pack(job).file_name))

    def _project_json(self, job: ExportJob) -> dict[str, object]:
        """Return a job as exports by project show it.

        It is without progress, and has a fresh link if it is completed.
        """
        fields = self._jobs.project_json(job)
        if not self._jobs.has_link(job):
            return fields
        subdomain = first_label(job.domain)
        date = f"{job.created_at:%Y-%m-%d}"
        file_name = f"{subdomain}-export-{date}.{self._bundles.archive}"
        return fields | self._link(job, file_name)

    def _link(self, job: ExportJob, file_name: str) -> dict[str, object]:
        bundle = self._bundles.pack(job)
        url = self._storage_url()
        host = url.partition("://")[2]
        query, expires_at = self._signer.sign(host=host, path=bundle.path, file_name=file_name)
        return {
            "bundleUrl": f"{url}{bundle.path}?{query}",
            "expiresAt": as_timestamp(expires_at),
            "sizeBytes": len(bundle.content),
        }


def _routed(method: str, path: str) -> tuple[Route | None, list[str]]:
    """Return the route of a request, and the ids in its path."""
    for route in ROUTES:
        ids = route.match(path)
        if route.method == method and ids is not None:
            return route, ids
    return None, []


def _object_in(body: bytes) -> dict[str, object] | None:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _domain_in(body: bytes) -> str | None:
    """Return the domain in the body of a start by domain, or None if the body is invalid."""
    fields = _object_in(body)
    if fields is None:
        return None
    domain = fields.get("domain")
    if isinstance(domain, str) and domain:
        return domain
    return None


def _base_path_in(body: bytes) -> str | None:
    """Return the base path in the body of a start by project, or None if the body is invalid."""
    if not body:
        return ""
    fields = _object_in(body)
    if fields is None:
        return None
    base_path = fields.get("basePath", "")
    if isinstance(base_path, str) and base_path in BASE_PATHS:
        return base_path
    return None
