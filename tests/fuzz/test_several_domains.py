"""Several domains in virtual time, with temporary errors at any two operations: every run ends within what its inputs allow."""

import json
import socket
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from hypothesis import strategies as st

from admin_api_simulator import ExportPlan, Fault
from tests.archives import KINDS, SMALL_SITE
from tests.fuzz import fuzz
from tests.virtual_platform import Sent, VirtualPlatform
from tests.virtual_run import run_virtually
from tests.virtual_time import VirtualClock

OPERATIONS: Final = ("start", "read", "bundle", "download")
FOREVER: Final = 10**6
TOLERANCE: Final = 30
TIMEOUT: Final = 60
READY_SECONDS: Final = 5.0

API_LIMIT_SECONDS: Final = {"start": 60.0, "read": 60.0, "bundle": 300.0, "download": 60.0}
"""The contract's limit of one request: docs/how-it-waits.md; for a download, until its response begins."""

LAST_ATTEMPT_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 0.2
UNDISTURBED_SECONDS: Final = 20.0
"""The longest time from a start to the first byte of the bundle, and from the end of a job to the seeing of it."""

ARCHIVE: Final = KINDS["tar.gz"](SMALL_SITE)

EXPIRED: Final = Fault(status=403, body="<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A temporary error: a status with seconds of `Retry-After` or without, or what happens instead of a response."""

    name: str
    status: int = 0
    retry_after: int | None = None

    def __str__(self) -> str:
        return self.name if self.retry_after is None else f"{self.name}, Retry-After: {self.retry_after}"

    @property
    def played(self) -> OSError | Fault:
        """What the platform does."""
        retry_after = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        by_status = Fault(status=self.status, body="<html>Back soon</html>", headers=retry_after) if self.status else None
        return by_status or UNSENT.get(self.name) or LOST[self.name]

    def ends(self, operation: str) -> frozenset[str]:
        """Return how a domain can fail whose requests of an operation end so."""
        if operation == "download":
            return frozenset({"download-failed"})
        if operation == "start" and not self.was_rejected:
            return frozenset({"start-unconfirmed", "bad-response"} if self.name == "html" else {"start-unconfirmed"})
        return frozenset({"unavailable", "timeout"} if operation == "read" else {"unavailable"})

    @property
    def was_rejected(self) -> bool:
        """Whether the platform certainly did not process the request."""
        return self.name in UNSENT or self.status == 429 or (self.status == 503 and self.retry_after is not None)


UNSENT: Final = {"refused": ConnectionRefusedError(111, "refused"), "unknown host": socket.gaierror(socket.EAI_NONAME, "unknown")}
LOST: Final = {
    "reset": Fault(cut="before_response"),
    "silence": Fault(delay_seconds=FOREVER),
    "cut": Fault(cut="in_body"),
}
STATUSES: Final = (408, 425, 429, 500, 502, 503, 504)
TROUBLES: Final = (
    *(Trouble(name=str(status), status=status) for status in STATUSES),
    *(Trouble(name=str(status), status=status, retry_after=seconds) for status in (429, 503) for seconds in (0, 4, 3600)),
    Trouble(name="500", status=500, retry_after=3600),
    Trouble(name="html", status=200),
    *(Trouble(name=name) for name in ("refused", "unknown host", "reset", "silence", "cut")),
)


@dataclass(frozen=True, kw_only=True)
class Failing:
    """The requests of one operation that fail: `times` of them after `after` good ones, for one domain or for all."""

    operation: str
    trouble: Trouble
    times: int = FOREVER
    after: int = 0
    domain: int | None = None

    def __str__(self) -> str:
        return f"{self.operation}: {self.trouble}"


@dataclass(frozen=True, kw_only=True)
class World:
    """A platform: `room` is for how many jobs at once, `quota` for how many starts a day, `link_uses` how often a link works."""

    domains: int
    failing: Sequence[Failing] = ()
    room: int = FOREVER
    quota: int = FOREVER
    room_retry_after: int | None = None
    link_uses: int = FOREVER
    never_ready: frozenset[int] = frozenset()

    @property
    def longest(self) -> Mapping[str, float]:
        """The longest that a request of each operation takes."""
        silent = any(failing.trouble.name == "silence" for failing in self.failing)
        return {operation: API_LIMIT_SECONDS[operation] if silent else 1.0 for operation in OPERATIONS}

    def troubles_of(self, number: int) -> Sequence[Failing]:
        """Return what fails for a domain."""
        return [failing for failing in self.failing if failing.domain in {None, number}]

    def ends(self, number: int) -> frozenset[str | None]:
        """Return how a domain can end: well, unless something never works, or as the troubles of its own requests let it."""
        own = self.troubles_of(number)
        ends: set[str | None] = {end for failing in own for end in failing.trouble.ends(failing.operation)}
        is_hopeless = any(failing.times == FOREVER and failing.after == 0 for failing in own)
        if not is_hopeless and number not in self.never_ready and self.link_uses > 0:
            ends.add(None)
        if any(failing.trouble.name == "unknown host" and failing.operation == "start" for failing in self.troubles_of(0)):
            ends.add("unavailable")  # the others are not started if the first domain finds no host
        if number in self.never_ready:
            ends.add("timeout")
        if self.room < self.domains or self.quota < self.domains:
            ends.add("unavailable")
        if self.link_uses < FOREVER:
            ends.add("download-failed")
        return frozenset(ends)


def allowed_seconds(world: World) -> float:
    """Return the longest that a run may take.

    An outage is tolerated from the first error on, and followed by a last attempt. A start that another domain's `Retry-After`
    holds back waits for the tolerance at most. Domains are exported side by side once the first one is started or has failed.
    But a start that the platform refuses for lack of room may wait until all others have ended.
    """
    longest = world.longest
    last = min(LAST_ATTEMPT_SECONDS, max(longest.values()))
    start = TOLERANCE + longest["start"] + TOLERANCE + last
    poll = TIMEOUT + longest["read"] + last
    bundle = TOLERANCE + longest["bundle"] + TOLERANCE + last
    download = longest["download"] + TOLERANCE + last + 4 * bundle  # with renewed links, one of them at the end
    starts = [failing.trouble for failing in world.failing if failing.operation == "start"]
    may_lack_room = world.room < FOREVER or world.quota < FOREVER or any(trouble.status == 429 for trouble in starts)
    rounds = world.domains if may_lack_room else 2 if starts else 1
    return rounds * (start + poll + bundle + download) + 5.0


class Platform(VirtualPlatform):
    """The simulator with the troubles of a world."""

    def __init__(self, world: World, clock: VirtualClock) -> None:
        super().__init__(clock, trouble=self._play, seconds=lambda _request: ANSWER_SECONDS, keep_requests=False)
        self._world = world
        self._counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._started: dict[str, float] = {}
        self._uses: defaultdict[str, int] = defaultdict(int)
        self.starts: dict[str, list[Trouble | None]] = defaultdict(list)
        self.exported_after: dict[str, float] = {}  # from the start to the first byte of the bundle
        for number in range(world.domains):
            seconds = FOREVER if number in world.never_ready else READY_SECONDS
            plan = ExportPlan(job_id=f"se_docs-{number}", seconds=seconds, bundle=ARCHIVE)
            self.simulator.plan_export(f"docs-{number}", plan)
        self.simulator.override("start_export", self._note_start)

    def _play(self, request: Sent) -> OSError | Fault | None:
        operation, domain = self._target_of(request)
        trouble = self._trouble_of(operation, domain)
        if operation == "start":
            self.starts[domain].append(trouble)
        if trouble is not None:
            return trouble.played
        if operation == "download":
            self._uses[request.url] += 1
            if self._uses[request.url] > self._world.link_uses:
                return EXPIRED
            self.exported_after.setdefault(domain, self._clock.elapsed + ANSWER_SECONDS - self._started[domain])
        return None

    def _target_of(self, request: Sent) -> tuple[str, str]:
        operation = self.simulator.operation_of(request.method, request.url)
        if operation == "start_export":
            return "start", json.loads(request.body or b"")["domain"]
        domain = next(part for part in urlsplit(request.url).path.split("/") if part.startswith("se_")).removeprefix("se_")
        return {"read_export": "read", "make_bundle": "bundle"}.get(operation, operation), domain

    def _trouble_of(self, operation: str, domain: str) -> Trouble | None:
        number = int(domain.split("-")[1])
        for index, failing in enumerate(self._world.failing):
            if failing.operation == operation and failing.domain in {None, number}:
                self._counts[domain, index] += 1
                if failing.after < self._counts[domain, index] <= failing.after + failing.times:
                    return failing.trouble
        if operation == "start" and self._is_full():
            return Trouble(name="429", status=429, retry_after=self._world.room_retry_after)
        return None

    def _is_full(self) -> bool:
        now = self._clock.elapsed
        running = [name for name, at in self._started.items() if not self._is_ready(name) and now < at + TIMEOUT]
        return len(running) >= self._world.room or len(self._started) >= self._world.quota

    def _is_ready(self, domain: str) -> bool:
        is_endless = int(domain.split("-")[1]) in self._world.never_ready
        return not is_endless and self._clock.elapsed >= self._started[domain] + READY_SECONDS

    def _note_start(self, job: dict[str, object]) -> dict[str, object]:
        self._started.setdefault(str(job["jobId"]).removeprefix("se_"), self._clock.elapsed)
        return job


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run that has ended, with the rows of `results` by domain."""

    seconds: float
    exit_code: int
    rows: Mapping[str, Mapping[str, Any]]
    platform: Platform
    log: str


def carry_out(world: World, *, seed: int = 1) -> Ended:
    """Run the whole action on a platform."""
    clock = VirtualClock(seed=seed)
    platform = Platform(world, clock)
    inputs = {
        "domain": "\n".join(f"docs-{number}" for number in range(world.domains)),
        "timeout": f"{TIMEOUT}s",
        "outage-tolerance": f"{TOLERANCE}s",
        "site-path": "sites/{domain}",
    }
    run = run_virtually(platform, clock, inputs, seed=seed)
    rows = {row["domain"]: row for row in json.loads(run.outputs["results"])}
    return Ended(seconds=clock.elapsed, exit_code=run.exit_code, rows=rows, platform=platform, log=run.stdout)


def check(world: World, ended: Ended) -> None:
    """Check that a run ended in time, each domain as its own troubles let it, and that no start was repeated blindly."""
    assert ended.seconds <= allowed_seconds(world), f"{ended.seconds} s\n{ended.log}"
    for number in range(world.domains):
        assert ended.rows[f"docs-{number}"]["failureReason"] in world.ends(number), f"{number}\n{ended.log}"
    for troubles in ended.platform.starts.values():
        assert all(trouble is not None and trouble.was_rejected for trouble in troubles[:-1]), troubles
    if world.link_uses >= 1:
        for number in {*range(world.domains)} - world.never_ready:
            row = ended.rows[f"docs-{number}"]
            if row["jobId"] is not None and all(failing.operation == "start" for failing in world.troubles_of(number)):
                assert row["failureReason"] is None, row
                assert ended.platform.exported_after[f"docs-{number}"] <= UNDISTURBED_SECONDS, ended.log


def pairs(one: str, other: str) -> Sequence[World]:
    """Return two domains, each with a temporary error at one operation, at first or after one good response."""
    return [
        World(domains=2, failing=[Failing(operation=one, trouble=trouble, domain=0, after=after), failing])
        for trouble, after in product(TROUBLES, (0, 1))
        for failing in (
            Failing(operation=other, trouble=trouble, domain=1),
            Failing(operation=other, trouble=Trouble(name="429", status=429, retry_after=3600), domain=1),
        )
    ]


@pytest.mark.parametrize(("one", "other"), [*combinations_with_replacement(OPERATIONS, 2)])
def test_errors_at_any_two_operations_end(one: str, other: str) -> None:
    for world in pairs(one, other):
        check(world, carry_out(world))


failing = st.builds(
    Failing,
    operation=st.sampled_from(OPERATIONS),
    trouble=st.sampled_from(TROUBLES),
    times=st.sampled_from([1, 2, 5, FOREVER]),
    after=st.sampled_from([0, 0, 1, 3]),
    domain=st.none() | st.integers(0, 4),
)
worlds = st.builds(
    World,
    domains=st.integers(1, 5),
    failing=st.lists(failing, max_size=4),
    room=st.sampled_from([FOREVER, FOREVER, 1, 2]),
    quota=st.sampled_from([FOREVER, FOREVER, 1, 3]),
    room_retry_after=st.sampled_from([None, 2, 3600, 86400]),
    link_uses=st.sampled_from([FOREVER, FOREVER, 1, 0]),
    never_ready=st.frozensets(st.integers(0, 4), max_size=2),
)


@fuzz("several domains", world=worlds, seed=st.integers(0, 999))
def test_any_errors_end(world: World, seed: int) -> None:
    check(world, carry_out(world, seed=seed))


class TestOfOneDomainForAnother:
    """What a platform does to one domain does not disturb the others."""

    @pytest.mark.parametrize("retry_after", [None, 3600, 86400])
    @pytest.mark.parametrize("link_uses", [FOREVER, 0])
    def test_a_quota_ends_after_the_tolerance(self, retry_after: int | None, link_uses: int) -> None:
        ended = carry_out(World(domains=3, quota=1, room_retry_after=retry_after, link_uses=link_uses))

        assert ended.rows["docs-0"]["failureReason"] == (None if link_uses else "download-failed")
        assert {ended.rows[name]["failureReason"] for name in ("docs-1", "docs-2")} == {"unavailable"}
        assert ended.rows["docs-0"]["durationSeconds"] < TOLERANCE + UNDISTURBED_SECONDS
        assert ended.seconds <= ended.rows["docs-0"]["durationSeconds"] + TOLERANCE + UNDISTURBED_SECONDS

    def test_a_start_without_room_waits_for_other_jobs_of_the_run(self) -> None:
        ended = carry_out(World(domains=3, room=1, room_retry_after=2, never_ready=frozenset({0})))

        assert [row["failureReason"] for row in ended.rows.values()] == ["timeout", None, None]
