"""The simulated platform of a long wait: plays the drawn jobs and faults, and records each exchange."""

import email.utils
import json
import random
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import requests

from admin_api_simulator import ExportPlan, Fault
from docs_platform_action.http.transport import Exchange
from tests.reliability.soak_truth import KINDS, THROTTLED, Job, Wait
from tests.virtual_platform import Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

SIGNATURE: Final = "s1gn4ture-of-a-bundle"
_HTML: Final = "<html><body><h1>Back soon</h1></body></html>"
_FOREVER: Final = 1e6
_OPERATIONS: Final = {"start_export": "start", "read_export": "read", "read_agent_job": "read", "make_bundle": "bundle"}
_PLAYED: Final[Mapping[str, OSError | Fault]] = {
    "refused": ConnectionRefusedError(111, "refused"),
    "unreachable": TimeoutError("timed out"),
    "no such host": socket.gaierror(socket.EAI_NONAME, "unknown"),
    "reset": Fault(cut="before_response"),
    "cut": Fault(cut="in_body"),
    "stalled": Fault(delay_seconds=_FOREVER),
    "dripping": Fault(drip_seconds=_FOREVER),
    "no http": Fault(raw=b"SSH-2.0\r\n"),
    "html": Fault(body=_HTML),
    "truncated": Fault(body='{"status": "comp'),
    "list": Fault(json=[{"status": "completed"}]),
    "empty": Fault(body=""),
}
"""What happens with each kind of fault; the name of every other kind begins with a status."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One exchange. `result` is a kind of fault, an error's status, or `good`.

    `job_status` is the status in a good response; `retry_after` are the seconds of a `Retry-After`.
    """

    job: str
    operation: str
    began: float
    ended: float
    result: str
    job_status: str | None = None
    retry_after: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Played:
    """What happens to a request: `result` is as in `Seen`, or None if nothing happens."""

    job: Job
    operation: str
    result: str | None = None
    trouble: OSError | Fault | None = None
    retry_after: float = 0.0


class SoakPlatform(VirtualPlatform):
    """Calls `on_seen` with every exchange that has ended."""

    def __init__(self, wait: Wait, clock: VirtualClock, on_seen: Callable[[Seen], None]) -> None:
        super().__init__(
            clock,
            trouble=lambda request: self._played[request.exchange].trouble,
            seconds=lambda _request: self._takes(),
            keep_requests=False,
            link_seconds=timedelta(days=7).total_seconds(),  # longer than a run, so no link is renewed at its end
        )
        self._drawn, self._on_seen = wait, on_seen
        self._chance = random.Random(wait.seed)  # noqa: S311  # not for secrets
        self._jobs = {job.name: job for job in wait.jobs}
        self._known_since: dict[str, float] = {}
        self._asked_for_bundle: dict[str, float] = {}
        self._played: dict[Exchange, _Played] = {}
        self._job_status = ""
        self.starts = dict.fromkeys(self._jobs, 0)
        for job in wait.jobs:
            self._add(job)
        for operation, change in {"start_export": self._start, "read_export": self._read, "make_bundle": self._bundle}.items():
            self.simulator.override(operation, change)  # type: ignore[arg-type]  # names of operations
        self.simulator.override("read_agent_job", self._note_status)

    def _add(self, job: Job) -> None:
        error = "no" if job.end == "failed" else None
        plan = ExportPlan(
            job_id=f"se_{job.name}",
            seconds=job.seconds,
            queue_seconds=job.queue_seconds,
            pages=job.pages,
            error=error,
            bundle=b"",
        )
        self.simulator.plan_export(job.name, plan)
        if self._drawn.mode == "agent":
            link = f"https://git.example.com/docs/pull/{job.pages}" if job.has_pr else None
            self.simulator.add_agent_job(
                job.name, project_id="prj_1", seconds=job.seconds, status=job.end, prLink=link, source={"ref": None}
            )
        elif self._drawn.attached:
            outcome: Any = "failed" if error else "completed"
            self.simulator.add_export_job(
                f"se_{job.name}", outcome=outcome, seconds=job.seconds, domain=job.name, pages=job.pages, bundle=b""
            )
            self._known_since[job.name] = 0.0

    def respond(self, sent: Sent) -> requests.Response:
        """Respond, and record the exchange."""
        played = self._played[sent.exchange] = self._play(sent)
        began, result = self._clock.elapsed, "too slow"
        try:
            response = super().respond(sent)
            result = "good"
        finally:
            del self._played[sent.exchange]
            result = played.result or result
            self._on_seen(
                Seen(
                    job=played.job.name,
                    operation=played.operation,
                    began=began,
                    ended=self._clock.elapsed,
                    result=result,
                    job_status=self._job_status if result == "good" else None,
                    retry_after=played.retry_after,
                )
            )
        return response

    def _play(self, sent: Sent) -> _Played:
        operation = _OPERATIONS[self.simulator.operation_of(sent.method, sent.url)]
        job = self._job_of(sent)
        kind = self._fault_at(self._clock.elapsed)
        if kind is not None:
            return self._fault(_Played(job=job, operation=operation, result=kind))
        if status := self._refusal(job, operation):
            return _Played(job=job, operation=operation, result=str(status), trouble=Fault(status=status))
        return _Played(job=job, operation=operation)

    def _job_of(self, sent: Sent) -> Job:
        named = json.loads(sent.body)["domain"] if sent.body else sent.target
        return max((job for job in self._drawn.jobs if job.name in named), key=lambda job: len(job.name))

    def _fault_at(self, now: float) -> str | None:
        outage = next((outage for outage in self._drawn.outages if outage.began <= now < outage.ended), None)
        by_chance = self._chance.random() < self._drawn.fault_rate
        if outage is not None:
            return self._chance.choice(outage.kinds)
        return self._chance.choice(KINDS) if by_chance else None

    def _fault(self, played: _Played) -> _Played:
        """Return a fault's play. The platform may process a start without a useful response, but none that it throttles."""
        kind = str(played.result)
        if kind in _PLAYED:
            trouble, retry_after = _PLAYED[kind], 0.0
        else:
            retry_after = float(self._chance.randint(1, 120)) if len(kind) > 3 else 0.0
            body = self._chance.choice([_HTML, '{"error": "overloaded"}', ""])
            trouble = Fault(status=int(kind[:3]), headers=self._retry_after(kind, retry_after), body=body)
        if isinstance(trouble, Fault) and kind not in THROTTLED and played.operation == "start" and self._chance.random() < 0.5:
            trouble = replace(trouble, processed=True)
        return replace(played, trouble=trouble, retry_after=retry_after)

    def _retry_after(self, kind: str, seconds: float) -> dict[str, str]:
        if kind.endswith("date"):
            now = self._clock.now().replace(microsecond=0)
            dates = {"Date": now, "Retry-After": now + timedelta(seconds=seconds)}
            return {name: email.utils.format_datetime(date, usegmt=True) for name, date in dates.items()}
        return {"Retry-After": str(int(seconds))} if seconds else {}

    def _refusal(self, job: Job, operation: str) -> int | None:
        """Return the status of a request that this platform rejects, now or for good."""
        now = self._clock.elapsed
        if self._drawn.refuses is not None and now >= self._drawn.refuses[0]:
            return self._drawn.refuses[1]
        if operation == "read" and not self._drawn.attached and now - self._known_since[job.name] < job.settles_after:
            return 404
        if operation == "bundle" and now - self._asked_for_bundle.setdefault(job.name, now) < job.packs_for:
            return 409
        return None

    def _takes(self) -> float:
        return self._chance.choices([0.05, self._chance.uniform(0.05, 3.0), self._chance.uniform(3.0, 29.0)], [80, 17, 3])[0]

    def _start(self, started: dict[str, object]) -> dict[str, object]:
        name = str(started["jobId"]).removeprefix("se_")
        self.starts[name] += 1
        self._known_since.setdefault(name, self._clock.elapsed)
        return self._note_status(started)

    def _read(self, normal: dict[str, object]) -> dict[str, object]:
        job = self._jobs[str(normal["domain"])]
        age = self._clock.elapsed - self._known_since[job.name]
        status = normal["status"]
        if status == "running" and len(job.others) > 1:  # a different status at each poll
            status = job.others[self._chance.randrange(2)]
        elif status == "running" and job.others and age > job.seconds / 2:
            status = job.others[0]
        return self._note_status({"status": status, **_progress(job, age)})

    def _bundle(self, bundle: dict[str, object]) -> dict[str, object]:
        self._job_status = "bundle"
        job = str(bundle["bundleUrl"]).split("/")[4]
        return bundle | {"bundleUrl": f"https://storage.example.com/{job}/bundle.tar.gz?X-Signature={SIGNATURE}"}

    def _note_status(self, job: dict[str, object]) -> dict[str, object]:
        self._job_status = str(job["status"])
        return job


def _progress(job: Job, age: float) -> dict[str, object]:
    done = min(age / job.seconds, 1.0)
    pages = int(job.pages * done)
    return {
        "steady": {"progress": round(100 * done, 1), "pageCount": pages},
        "bursts": {"progress": 20 * int(5 * done), "pageCount": pages - pages % 100},
        "stalls": {"progress": min(int(100 * done), 70), "pageCount": min(pages, 70)},
        "backwards": {"progress": int(200 * done) % 101, "pageCount": pages},
        "nothing": {},
        "pages alone": {"pageCount": pages},
        "odd types": {"progress": f"{done:%}", "pageCount": [pages], "extra": {"deep": [None]}},
    }[job.shape]
