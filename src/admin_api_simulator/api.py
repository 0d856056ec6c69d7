"""The administrative API's four operations, from a request to its answer."""

import hmac
import itertools
import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import unquote

from admin_api_simulator.answers import Answer, error_answer, json_answer
from admin_api_simulator.bundles import BundleShelf
from admin_api_simulator.clock import as_timestamp
from admin_api_simulator.content import as_bytes
from admin_api_simulator.domains import domain_in, same_domain
from admin_api_simulator.jobs import NO_PLAN_LABEL, UNKNOWN_LABEL, ExportJob, JobStore, first_label
from admin_api_simulator.limits import RateLimit
from admin_api_simulator.links import LinkSigner
from admin_api_simulator.recording import RecordedRequest

Override = Mapping[str, object] | Callable[[dict[str, object]], object]

NO_PLAN = "Static export requires an Enterprise plan."
ABSOLUTE_TARGET = re.compile(r"https?://[^/?]*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Route:
    """One operation's method and path; `{}` in the path stands for one raw segment."""

    operation: str
    method: str
    path: str

    def match(self, path: str) -> list[str] | None:
        """Return the decoded segments of a raw path that stand for `{}`, None where the path is another."""
        pattern = re.escape(self.path).replace(r"\{\}", "([^/]+)")
        found = re.fullmatch(pattern, path)
        # A bare dot segment is resolved by clients and proxies on the way; only an encoded one means an id.
        if found is None or any(segment in (".", "..") for segment in found.groups()):
            return None
        return [unquote(segment) for segment in found.groups()]


ROUTES = (
    Route(operation="start_export", method="POST", path="/v1/static-export/jobs"),
    Route(operation="read_export", method="GET", path="/v1/static-export/jobs/{}"),
    Route(operation="make_bundle", method="POST", path="/v1/static-export/jobs/{}/bundle"),
    Route(operation="read_agent_job", method="GET", path="/v2/agent/{}/job/{}"),
)


class Api:
    """Answers every request that reaches the API's port.

    Routing is on the raw path: an id may hold an encoded slash, and `%2E%2E` is an id too. HTTP libraries resolve both.
    """

    def __init__(
        self,
        *,
        key: str,
        plan: bool,
        base_path: str,
        jobs: JobStore,
        shelf: BundleShelf,
        signer: LinkSigner,
        storage_url: Callable[[], str],
        link_prefix: str = "",
        rate_limit: RateLimit | None = None,
        most_jobs: int | None = None,
        retry_after_seconds: int = 1,
    ) -> None:
        self._key = key
        self._plan = plan
        self._base_path = base_path
        self._jobs = jobs
        self._shelf = shelf
        self._signer = signer
        self._storage_url = storage_url
        self._link_prefix = link_prefix
        self._lock = threading.Lock()
        self._rate_limit = rate_limit
        self._most_jobs = most_jobs
        self._retry_after_seconds = retry_after_seconds
        self._overrides: dict[tuple[str, str | None], Override] = {}
        self._request_numbers = itertools.count(1)

    def override(self, operation: str, value: Override | None, *, domain: str | None = None) -> None:
        """Answer this JSON, or what this function makes of the normal one, whenever the operation succeeds.

        With `domain` it is for that domain's requests alone, and comes before the one for all.
        """
        key = operation, None if domain is None else same_domain(domain)
        with self._lock:
            if value is None:
                self._overrides.pop(key, None)
            else:
                self._overrides[key] = value

    def operation_of(self, method: str, path: str) -> str:
        """Name the operation of a request, `unknown` for none."""
        matches = (route for route in self._routes(path) if route.method == method)
        return next((route.operation for route in matches), "unknown")

    def domain_of(self, request: RecordedRequest) -> str | None:
        """Return the domain that a start names, or that of the export which a request is about."""
        if request.operation == "start_export":
            return domain_in(request.body)
        if request.operation not in ("read_export", "make_bundle"):
            return None
        job = self._jobs.export(self._ids(request)[0])
        return None if job is None else job.domain

    def refusal(self, request: RecordedRequest) -> Answer | None:
        """Return what is answered to one request too many in a second, in place of any turn."""
        if self._rate_limit is None or self._rate_limit.takes(request.at):
            return None
        return self._numbered(self._too_many("too many requests"))

    def answer(self, request: RecordedRequest) -> Answer:
        """Carry out a request's operation, or refuse it with the API's Error object."""
        answer = self._authorised(request)
        if 200 <= answer.status < 300:
            answer = self._overridden(request, answer)
        return self._numbered(answer)

    def _numbered(self, answer: Answer) -> Answer:
        return replace(answer, headers={**answer.headers, "X-Request-Id": f"req-{next(self._request_numbers):06d}"})

    def _too_many(self, message: str) -> Answer:
        return error_answer(429, message, headers={"Retry-After": str(self._retry_after_seconds)})

    def _overridden(self, request: RecordedRequest, answer: Answer) -> Answer:
        own = None if request.domain is None else same_domain(request.domain)
        with self._lock:
            value = self._overrides.get((request.operation, own), self._overrides.get((request.operation, None)))
        if value is None:
            return answer
        told = value(json.loads(as_bytes(answer.body))) if callable(value) else value
        return replace(answer, body=json.dumps(told, ensure_ascii=False).encode())

    def _authorised(self, request: RecordedRequest) -> Answer:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        expected = self._key.encode()
        given = token.strip().encode("utf-8", "surrogateescape")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given, expected):
            message = "invalid token" if token else "missing token"
            return error_answer(401, message, headers={"WWW-Authenticate": "Bearer"})
        routes = self._routes(request.path)
        if not routes:
            return error_answer(404, "no such endpoint")
        if request.operation == "unknown":
            methods = ", ".join(route.method for route in routes)
            return error_answer(405, f"use {methods} here", headers={"Allow": methods})
        return self._carry_out(request)

    def _carry_out(self, request: RecordedRequest) -> Answer:
        ids = self._ids(request)
        if request.operation == "read_agent_job":
            return self._read_agent_job(*ids)
        if not self._plan:
            return error_answer(403, NO_PLAN)
        if request.operation == "start_export":
            return self._start_export(request)
        job = self._jobs.export(ids[0])
        if job is None:
            return error_answer(404, "export job not found")
        if request.operation == "read_export":
            return json_answer(self._jobs.tell(job))
        return self._make_bundle(job)

    def _read_agent_job(self, project_id: str, job_id: str) -> Answer:
        told = self._jobs.read_agent(project_id, job_id)
        return error_answer(404, "agent job not found") if told is None else json_answer(told)

    def _start_export(self, request: RecordedRequest) -> Answer:
        media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":
            return error_answer(415, "the body must be application/json")
        try:
            body = json.loads(request.body)
        except ValueError:
            return error_answer(400, "the body is not JSON")
        domain = body.get("domain") if isinstance(body, dict) else None
        if not isinstance(domain, str) or not domain:
            return error_answer(400, "the body must be an object with `domain`, a non-empty string")
        label = first_label(domain)
        if label == NO_PLAN_LABEL:
            return error_answer(403, NO_PLAN)
        if label == UNKNOWN_LABEL:
            return error_answer(404, f"there is no deployment at {domain}")
        if self._most_jobs is not None and self._jobs.unfinished() >= self._most_jobs:
            return self._too_many(f"{self._most_jobs} exports are under way already")
        return json_answer({"jobId": self._jobs.start_export(domain).id, "status": "queued"}, status=202)

    def _make_bundle(self, job: ExportJob) -> Answer:
        status = self._jobs.tell(job)["status"]
        if status != "completed":
            return error_answer(409, f"the export is {status}; a bundle needs a completed one")
        bundle = self._shelf.pack(job)
        url = self._storage_url()
        query, expires_at = self._signer.sign(host=url.partition("://")[2], path=bundle.path, file_name=bundle.file_name)
        return json_answer(
            {
                "bundleUrl": f"{url}{self._link_prefix}{bundle.path}?{query}",
                "expiresAt": as_timestamp(expires_at),
                "sizeBytes": len(bundle.content),
            }
        )

    def _ids(self, request: RecordedRequest) -> list[str]:
        path = self._relative(request.path) or ""
        return next(ids for route in ROUTES if (ids := route.match(path)) is not None)

    def _routes(self, path: str) -> list[Route]:
        relative = self._relative(path)
        return [] if relative is None else [route for route in ROUTES if route.match(relative) is not None]

    def _relative(self, path: str) -> str | None:
        """Return the path without the base path; a proxy's absolute target loses its host too."""
        local = ABSOLUTE_TARGET.sub("", path, count=1)
        return local.removeprefix(self._base_path) if local.startswith(f"{self._base_path}/") else None
