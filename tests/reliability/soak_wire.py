"""A transport adapter as the platform in virtual time: responds for the drawn jobs or with faults, and records requests."""

import email.utils
import http.client
import json
import random
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

import requests
from requests.adapters import BaseAdapter
from urllib3.exceptions import ProtocolError

from docs_platform_action.http.connection import AbortableRequest, Exchange
from tests.reliability.soak_truth import KINDS, LOST, UNSENT, Job, Wait
from tests.unit.fakes import http_response

SIGNATURE: Final = "s1gn4ture-of-a-bundle"
_HTML: Final = b"<html><body><h1>Back soon</h1></body></html>"
_PATH: Final = re.compile(r"/v1/static-export/jobs(?:/(?P<export>[^/]+)(?P<bundle>/bundle)?)?|/v2/agent/prj_1/job/(?P<agent>.+)")


class VirtualTime(Protocol):
    """The part of a run's clock that the platform needs."""

    @property
    def elapsed(self) -> float: ...

    def monotonic(self) -> float: ...

    def now(self) -> datetime: ...

    def sleep(self, seconds: float) -> None: ...


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
class _Answer:
    result: str
    status: int
    body: bytes
    headers: Mapping[str, str]
    job_status: str | None = None
    retry_after: float = 0.0


class Wire(BaseAdapter):
    """The transport adapter; calls `on_seen` with every exchange that has ended."""

    def __init__(self, wait: Wait, clock: VirtualTime, on_seen: Callable[[Seen], None]) -> None:
        super().__init__()
        self._wait, self._clock, self._on_seen = wait, clock, on_seen
        self._chance = random.Random(wait.seed)  # noqa: S311  # not for secrets
        self._jobs = {job.name: job for job in wait.jobs}
        self._started: dict[str, float] = {wait.jobs[0].name: 0.0} if wait.attached else {}
        self._asked_for_bundle: dict[str, float] = {}
        self.seed = wait.seed
        self.starts = dict.fromkeys(self._jobs, 0)
        self.under_way = self.most_under_way = 0

    def close(self) -> None:
        """Do nothing."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        assert isinstance(request, AbortableRequest)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return self._exchange(request, request.exchange, *options["timeout"])
        finally:
            self.under_way -= 1

    def _exchange(self, request: AbortableRequest, exchange: Exchange, connecting: float, idle: float) -> requests.Response:
        job, operation = self._target_of(request)
        began = self._clock.elapsed
        kind = self._fault_at(began)

        def seen(result: str, *, job_status: str | None = None, retry_after: float = 0.0) -> None:
            ended = self._clock.elapsed
            self._on_seen(
                Seen(
                    job=job.name,
                    operation=operation,
                    began=began,
                    ended=ended,
                    result=result,
                    job_status=job_status,
                    retry_after=retry_after,
                )
            )

        if kind in UNSENT:
            self._clock.sleep(connecting if kind == "unreachable" else self._chance.uniform(0.001, 0.5))
            seen(kind)
            raise _unsent(kind)
        request.mark_connected()
        takes = self._takes(kind, idle)
        left = exchange.ends_at - self._clock.monotonic()
        if takes >= min(left, idle) or kind in LOST:
            self._process_at_random(job, operation)
            if takes >= left:
                self._clock.sleep(left)
                exchange.abort()
            else:
                self._clock.sleep(min(takes, idle))
            seen(kind if kind in LOST else "too slow")
            raise _lost(kind, in_time=takes < min(left, idle))
        self._clock.sleep(takes)
        answer = self._answer(job, operation, kind)
        seen(answer.result, job_status=answer.job_status, retry_after=answer.retry_after)
        return http_response(answer.status, answer.body, answer.headers)

    def _target_of(self, request: requests.PreparedRequest) -> tuple[Job, str]:
        found = _PATH.fullmatch(request.path_url)
        assert found is not None, request.path_url
        if found["agent"]:
            return self._jobs[found["agent"]], "read"
        if found["export"]:
            return self._jobs[found["export"].removeprefix("se_")], "bundle" if found["bundle"] else "read"
        assert isinstance(request.body, bytes)
        return self._jobs[json.loads(request.body)["domain"]], "start"

    def _fault_at(self, now: float) -> str | None:
        outage = next((outage for outage in self._wait.outages if outage.began <= now < outage.ended), None)
        by_chance = self._chance.random() < self._wait.fault_rate
        if outage is not None:
            return self._chance.choice(outage.kinds)
        return self._chance.choice(KINDS) if by_chance else None

    def _takes(self, kind: str | None, idle: float) -> float:
        if kind == "stalled":
            return idle
        if kind == "dripping":
            return 3600.0
        return self._chance.choices([0.05, self._chance.uniform(0.05, 3.0), self._chance.uniform(3.0, 29.0)], [80, 17, 3])[0]

    def _process_at_random(self, job: Job, operation: str) -> None:
        """Process a start whose response is lost with a probability of one half."""
        if operation == "start" and self._chance.random() < 0.5:
            self._start(job)

    def _start(self, job: Job) -> None:
        self.starts[job.name] += 1
        self._started.setdefault(job.name, self._clock.elapsed)

    def _answer(self, job: Job, operation: str, kind: str | None) -> _Answer:
        if kind is not None:
            self._process_unless_throttled(job, operation, kind)
            return _faulty_answer(kind, self._chance, self._clock)
        if self._wait.refuses is not None and self._clock.elapsed >= self._wait.refuses[0]:
            return _error(self._wait.refuses[1])
        return {"start": self._answer_start, "read": self._answer_read, "bundle": self._answer_bundle}[operation](job)

    def _process_unless_throttled(self, job: Job, operation: str, kind: str) -> None:
        throttled = kind.startswith("429") or (kind.startswith("503") and kind != "503")
        if not throttled:
            self._process_at_random(job, operation)

    def _answer_start(self, job: Job) -> _Answer:
        self._start(job)
        return _good({"jobId": f"se_{job.name}", "status": "queued"}, job_status="queued")

    def _answer_read(self, job: Job) -> _Answer:
        age = self._clock.elapsed - self._started[job.name]
        if not self._wait.attached and age < job.settles_after:
            return _error(404)
        if self._wait.mode == "agent":
            return self._answer_agent(job, age)
        status = job.end if age >= job.seconds else "queued" if age < job.queue_seconds else self._running(job, age)
        return _good({"status": status, **self._progress(job, age)}, job_status=status)

    def _answer_agent(self, job: Job, age: float) -> _Answer:
        status = job.end if age >= job.seconds else "active"
        link = f"https://git.example.com/docs/pull/{job.pages}" if job.has_pr and age >= job.seconds else None
        source = {"repository": "https://git.example.com/docs", "ref": None}
        return _good({"id": job.name, "status": status, "source": source, "prLink": link}, job_status=status)

    def _running(self, job: Job, age: float) -> str:
        if len(job.others) > 1:  # a different status at each poll
            return job.others[self._chance.randrange(2)]
        return job.others[0] if job.others and age > job.seconds / 2 else "running"

    def _progress(self, job: Job, age: float) -> dict[str, object]:
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

    def _answer_bundle(self, job: Job) -> _Answer:
        since = self._asked_for_bundle.setdefault(job.name, self._clock.elapsed)
        if self._clock.elapsed - since < job.packs_for:
            return _error(409)
        link = f"https://storage.example.com/{job.name}/bundle.tar.gz?X-Signature={SIGNATURE}"
        expires = (self._clock.now() + timedelta(days=7)).isoformat()  # longer than a run, so no link is renewed at its end
        return _good({"bundleUrl": link, "expiresAt": expires}, job_status="bundle")


def _good(body: Mapping[str, object], *, job_status: str) -> _Answer:
    return _Answer(result="good", status=200, body=json.dumps(body).encode(), headers={}, job_status=job_status)


def _error(status: int) -> _Answer:
    return _Answer(result=str(status), status=status, body=b'{"error": "no"}', headers={"X-Request-Id": f"r{status}"})


def _faulty_answer(kind: str, chance: random.Random, clock: VirtualTime) -> _Answer:
    if not kind[0].isdigit():
        body = {"html": _HTML, "truncated": b'{"status": "comp', "list": b'[{"status": "completed"}]', "empty": b""}[kind]
        return _Answer(result=kind, status=200, body=body, headers={"Content-Type": "text/html"})
    status, retry_after = int(kind[:3]), float(chance.randint(1, 120)) if len(kind) > 3 else 0.0
    headers = {"Retry-After": str(int(retry_after))} if retry_after else {}
    if kind.endswith("date"):
        now = clock.now().replace(microsecond=0)
        headers = {name: email.utils.format_datetime(at, usegmt=True) for name, at in _dates(now, retry_after).items()}
    body = chance.choice([_HTML, b'{"error": "overloaded"}', b""])
    return _Answer(result=kind, status=status, body=body, headers=headers, retry_after=retry_after)


def _dates(now: datetime, retry_after: float) -> dict[str, datetime]:
    return {"Date": now, "Retry-After": now + timedelta(seconds=retry_after)}


def _unsent(kind: str) -> Exception:
    if kind == "unreachable":
        return requests.ConnectTimeout("timed out")
    error = socket.gaierror(-2, "unknown") if kind == "no such host" else ConnectionRefusedError(111, "refused")
    return requests.ConnectionError(ProtocolError("Connection aborted.", error))


def _lost(kind: str | None, *, in_time: bool) -> Exception:
    if not in_time:
        return requests.ReadTimeout("timed out")
    if kind == "no http":
        return http.client.BadStatusLine("SSH-2.0")
    if kind == "cut":
        return http.client.IncompleteRead(b"{", 100)
    return requests.ConnectionError(ProtocolError("broken", ConnectionResetError(104, "reset")))
