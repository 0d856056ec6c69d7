"""Export jobs and agent jobs, whose status depends on their age."""

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from admin_api_simulator.clock import Clock, as_timestamp
from admin_api_simulator.recording import normalized
from admin_api_simulator.site import UNCHANGED, SiteChange

AgentOutcome = Literal["pull-request", "no-change", "archived", "failed"]

DEMO_PROJECT = "demo-project"
DOCS_PROJECT = "6520f3a1c9b1a20012ab34cd"  # an identifier as the platform's, of `docs.example.com`
FINISHED_EXPORT = "export-finished"
FAILED_EXPORT = "export-failed"
FAILING_LABEL = "failing"
CHANGING_LABEL = "changing"
NO_PLAN_LABEL = "no-plan"
SIGN_IN_LABEL = "private"
UNKNOWN_LABEL = "unknown"
BUSY_LABEL = "busy"
AGENT_JOBS: Mapping[str, AgentOutcome] = {
    "agent-pull-request": "pull-request",
    "agent-no-change": "no-change",
    "agent-archived": "archived",
    "agent-failed": "failed",
}
ENDED_ONLY_FIELDS = frozenset({"status", "prLink", "archivedAt"})
EXPORT_ERROR = "Page /guides/authentication: the component <Tabs> could not be rendered."


def first_label(domain: str) -> str:
    """Return the first label of a domain in lower case; it selects the outcome."""
    return re.split(r"[.:/]", domain.strip(), maxsplit=1)[0].lower()


def domain_of_project(project_id: str) -> str:
    """Return the domain of a project's deployment: the project `docs` has `docs.example.com`."""
    name = "docs" if project_id == DOCS_PROJECT else project_id
    return f"{name}.example.com"


@dataclass(frozen=True, kw_only=True)
class ExportPlan:
    """How the exports of a domain will be; what is None is as for every domain.

    - `seconds` include `queue_seconds`.
    - `link_delay_seconds`: how long after its end, by project, a completed job has no link yet.
    - `change`: how the site differs from one with `pages`. `bundle` replaces its archive.
    - An export with an `error` fails; with an empty one, by project, for no reported reason.
    - `job_id` is for a domain that is exported once.
    """

    job_id: str | None = None
    seconds: float | None = None
    queue_seconds: float | None = None
    link_delay_seconds: float = 0.0
    pages: int | None = None
    change: SiteChange = UNCHANGED
    error: str | None = None
    bundle: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class ExportJob:
    """An export that takes `seconds`, of which it is queued for `queue_seconds`.

    `started` is monotonic.
    """

    id: str
    domain: str
    started: float
    created_at: datetime
    seconds: float
    queue_seconds: float
    link_delay_seconds: float
    base_path: str
    pages: int
    change: SiteChange
    error: str | None
    bundle: bytes | None

    @property
    def page_count(self) -> int:
        """The number of pages of the exported site."""
        return self.pages + self.change.added - self.change.removed

    @property
    def ended(self) -> float:
        """The monotonic time at which the job ends."""
        return self.started + self.seconds

    def as_json(self, now: float) -> dict[str, object]:
        """Return the job's JSON object at a monotonic time."""
        fields: dict[str, object] = {
            "jobId": self.id,
            "domain": self.domain,
            "createdAt": as_timestamp(self.created_at),
        }
        age = now - self.started
        if age >= self.seconds:
            if self.error is not None:
                return fields | {"status": "failed", "error": self.error}
            return fields | {"status": "completed", "pageCount": self.page_count}
        if age < self.queue_seconds:
            return fields | {"status": "queued"}
        share = (age - self.queue_seconds) / (self.seconds - self.queue_seconds)
        return fields | {
            "status": "running",
            "progress": min(99, int(100 * share)),
            "pageCount": int(self.page_count * share),
        }

    def as_project_json(self, now: float, updated_at: datetime) -> dict[str, object]:
        """Return the job's JSON object by project, without a link."""
        fields: dict[str, object] = {
            "jobId": self.id,
            "status": self.as_json(now)["status"],
            "createdAt": as_timestamp(self.created_at),
            "updatedAt": as_timestamp(updated_at),
            "error": None,
        }
        if self.error and now >= self.ended:
            fields["error"] = self.error
        return fields


@dataclass(frozen=True, kw_only=True)
class AgentJob:
    """An agent job that ends `seconds` after its first read."""

    id: str
    project_id: str
    outcome: AgentOutcome
    seconds: float
    created_at: datetime
    overrides: Mapping[str, object] = field(default_factory=dict)

    def as_json(self, age_seconds: float) -> dict[str, object]:
        """Return the job's JSON object so many seconds after its first read."""
        has_ended = age_seconds >= self.seconds
        fields: dict[str, object] = {
            "id": self.id,
            "status": "active",
            "source": {"repository": "https://git.example.com/acme/docs", "ref": "main"},
            "model": "simulated-model-1",
            "prLink": None,
            "createdAt": as_timestamp(self.created_at),
            "archivedAt": None,
        }
        if has_ended:
            fields |= self._ended_fields()
        for name, value in self.overrides.items():
            if has_ended or name not in ENDED_ONLY_FIELDS:
                fields[name] = value
        return fields

    def _ended_fields(self) -> dict[str, object]:
        if self.outcome == "failed":
            return {"status": "failed"}
        if self.outcome == "archived":
            archived_at = self.created_at + timedelta(seconds=self.seconds)
            return {"status": "archived", "archivedAt": as_timestamp(archived_at)}
        if self.outcome == "pull-request":
            link = f"https://git.example.com/acme/docs/pull/{len(self.id)}"
            return {"status": "completed", "prLink": link}
        return {"status": "completed"}


class JobStore:
    """All jobs of the platform, some of which always exist."""

    def __init__(
        self,
        *,
        clock: Clock,
        export_seconds: float,
        queue_share: float,
        agent_seconds: float,
        pages: int,
        job_ids: Sequence[str] = (),
    ) -> None:
        self._clock = clock
        self._export_seconds = export_seconds
        self._queue_share = queue_share
        self._agent_seconds = agent_seconds
        self._pages = pages
        self._given_ids = iter(job_ids)
        self._numbers = itertools.count(1)
        self._plans: dict[str, ExportPlan] = {}
        self._exports: dict[str, ExportJob] = {}
        self._exports_of_others: dict[str, ExportJob] = {}
        self._agents: dict[tuple[str, str], AgentJob] = {}
        self._first_reads: dict[tuple[str, str], float] = {}
        self.add_export(FINISHED_EXPORT, plan=ExportPlan(seconds=0.0))
        self.add_export(FAILED_EXPORT, plan=ExportPlan(seconds=0.0, error=EXPORT_ERROR))
        for job_id, outcome in AGENT_JOBS.items():
            self.add_agent(job_id, outcome=outcome)

    def plan_export(self, domain: str, plan: ExportPlan) -> None:
        """Set how the exports of a domain will be."""
        self._plans[normalized(domain)] = plan

    def start_export(self, domain: str, *, base_path: str = "") -> ExportJob:
        """Start an export of a domain; its plan, or its first label, selects the outcome."""
        plan = self._plans.get(normalized(domain), self._default_plan(domain))
        job_id = plan.job_id or self._new_id(domain)
        return self.add_export(job_id, domain=domain, plan=plan, base_path=base_path)

    def _default_plan(self, domain: str) -> ExportPlan:
        label = first_label(domain)
        if label == FAILING_LABEL:
            return ExportPlan(error=EXPORT_ERROR)
        if label == CHANGING_LABEL:
            earlier = len(self._exports_of(domain))
            number = min(earlier, self._pages - 1)
            return ExportPlan(change=SiteChange(added=earlier, changed=number, removed=number))
        return ExportPlan()

    def _exports_of(self, domain: str) -> list[ExportJob]:
        key = normalized(domain)
        return [job for job in list(self._exports.values()) if normalized(job.domain) == key]

    def add_export(
        self,
        job_id: str,
        *,
        domain: str = "docs.example.com",
        plan: ExportPlan,
        base_path: str = "",
    ) -> ExportJob:
        """Add an export that begins now."""
        seconds = self._export_seconds if plan.seconds is None else plan.seconds
        queue_seconds = plan.queue_seconds
        if queue_seconds is None:
            queue_seconds = seconds * self._queue_share
        job = ExportJob(
            id=job_id,
            domain=domain,
            started=self._clock.monotonic(),
            created_at=self._clock.now(),
            seconds=seconds,
            queue_seconds=queue_seconds,
            link_delay_seconds=plan.link_delay_seconds,
            base_path=base_path,
            pages=self._pages if plan.pages is None else plan.pages,
            change=plan.change,
            error=plan.error,
            bundle=plan.bundle,
        )
        self._exports[job_id] = job
        return job

    def add_agent(
        self,
        job_id: str,
        *,
        project_id: str = DEMO_PROJECT,
        outcome: AgentOutcome = "pull-request",
        seconds: float | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        """Add an agent job that ends `seconds` after its first read."""
        self._first_reads.pop((project_id, job_id), None)
        self._agents[project_id, job_id] = AgentJob(
            id=job_id,
            project_id=project_id,
            outcome=outcome,
            seconds=self._agent_seconds if seconds is None else seconds,
            created_at=self._clock.now(),
            overrides=dict(overrides or {}),
        )

    def export(self, job_id: str) -> ExportJob | None:
        """Return an export by its id."""
        return self._exports.get(job_id)

    def unfinished(self) -> int:
        """Return the number of exports that have not ended."""
        now = self._clock.monotonic()
        return sum(now < job.ended for job in list(self._exports.values()))

    def unfinished_of(self, domain: str) -> ExportJob | None:
        """Return the first export of a domain that has not ended."""
        now = self._clock.monotonic()
        for job in self._exports_of(domain):
            if now < job.ended:
                return job
        return None

    def export_of_somebody_else(self, domain: str) -> ExportJob | None:
        """Return the unfinished export of a `busy` domain that no request started.

        The first call for each domain adds it.
        """
        if first_label(domain) != BUSY_LABEL:
            return None
        key = normalized(domain)
        if key not in self._exports_of_others:
            job_id = self._made_id(domain)
            self._exports_of_others[key] = self.add_export(job_id, domain=domain, plan=ExportPlan())
        job = self._exports_of_others[key]
        return job if self._clock.monotonic() < job.ended else None

    def max_concurrent(self) -> int:
        """Return the maximum number of exports that were unfinished at the same time."""
        jobs = list(self._exports.values())
        most = 0
        for job in jobs:
            unfinished = sum(other.started <= job.started < other.ended for other in jobs)
            most = max(most, unfinished)
        return most

    def export_json(self, job: ExportJob) -> dict[str, object]:
        """Return the JSON object of an export now."""
        return job.as_json(self._clock.monotonic())

    def project_json(self, job: ExportJob) -> dict[str, object]:
        """Return the JSON object of an export by project now, without a link."""
        return job.as_project_json(self._clock.monotonic(), self._clock.now())

    def has_link(self, job: ExportJob) -> bool:
        """Return whether an export is completed, and by project has its link now."""
        return job.error is None and self._clock.monotonic() >= job.ended + job.link_delay_seconds

    def agent_json(self, project_id: str, job_id: str) -> dict[str, object] | None:
        """Return the JSON object of an agent job; the first read starts it."""
        job = self._agents.get((project_id, job_id))
        if job is None:
            return None
        now = self._clock.monotonic()
        first_read = self._first_reads.setdefault((project_id, job_id), now)
        return job.as_json(now - first_read)

    def _new_id(self, domain: str) -> str:
        made_id = self._made_id(domain)
        return next(self._given_ids, made_id)

    def _made_id(self, domain: str) -> str:
        digest = hashlib.sha256(f"{next(self._numbers)} {domain}".encode()).hexdigest()
        return f"se_{digest[:12]}"
