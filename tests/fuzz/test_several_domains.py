"""Several domains in virtual time, with temporary errors at any two operations: every run ends within what its inputs allow."""

import io
import json
import re
import socket
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from hypothesis import strategies as st
from requests.adapters import BaseAdapter
from urllib3.exceptions import ProtocolError

from admin_api_simulator.runner import parse_outputs, runner_environment
from docs_platform_action import main
from docs_platform_action.http.connection import AbortableRequest
from tests.archives import KINDS, SMALL_SITE
from tests.fuzz import fuzz
from tests.keys import ADMIN_KEY
from tests.unit.fakes import BASE_URL, http_response
from tests.virtual_run import SideBySide, default_inputs, in_virtual_time
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

_PATH: Final = re.compile(r"/v1/static-export/jobs(?:/se_(?P<domain>[^/]+)(?P<bundle>/bundle)?)?")


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A temporary error: a status with seconds of `Retry-After` or without, or what happens instead of a response."""

    name: str
    status: int = 0
    retry_after: int | None = None

    def __str__(self) -> str:
        return self.name if self.retry_after is None else f"{self.name}, Retry-After: {self.retry_after}"

    @property
    def was_rejected(self) -> bool:
        """Whether the platform certainly did not process the request."""
        return self.name in UNSENT or self.status == 429 or (self.status == 503 and self.retry_after is not None)


UNSENT: Final = {"refused": ConnectionRefusedError(111, "refused"), "unknown host": socket.gaierror(socket.EAI_NONAME, "unknown")}
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


def allowed_seconds(world: World) -> float:
    """Return the longest that a run may take.

    An outage is tolerated from the first error on, and followed by a last attempt. A wait for one's turn is as long at most.
    Domains are exported side by side, unless starts fail: then one may wait until all others have ended.
    """
    longest = world.longest
    last = min(LAST_ATTEMPT_SECONDS, max(longest.values()))
    start = TOLERANCE + longest["start"] + TOLERANCE + last
    poll = TIMEOUT + longest["read"] + last
    bundle = TOLERANCE + longest["bundle"] + TOLERANCE + last
    download = longest["download"] + TOLERANCE + last + 4 * bundle  # with renewed links, one of them at the end
    is_full = world.room < FOREVER or world.quota < FOREVER or any(failing.operation == "start" for failing in world.failing)
    return (world.domains if is_full else 1) * (start + poll + bundle + download) + 5.0


class Platform(BaseAdapter):
    """The transport adapter."""

    def __init__(self, world: World, clock: VirtualClock) -> None:
        super().__init__()
        self._world, self._clock = world, clock
        self._counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._started: dict[str, float] = {}
        self._uses: defaultdict[str, int] = defaultdict(int)
        self.starts: dict[str, list[Trouble | None]] = defaultdict(list)
        self.exported_after: dict[str, float] = {}  # from the start to the first byte of the bundle

    def close(self) -> None:
        """Do nothing."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # type: ignore[override]
        """Respond, or fail, after some virtual time."""
        assert isinstance(request, AbortableRequest)
        operation, domain = self._target_of(request)
        trouble = self._trouble(operation, domain)
        if operation == "start":
            self.starts[domain].append(trouble)
        if trouble is not None and trouble.name in UNSENT:
            self._clock.sleep(0.01)
            raise requests.ConnectionError(ProtocolError("failed", UNSENT[trouble.name]))
        request.mark_connected()
        if trouble is not None and trouble.name == "silence":
            idle = options["timeout"][1]
            self._clock.sleep(max(min(idle, request.exchange.ends_at - self._clock.monotonic()), 0.0))
            raise requests.ReadTimeout
        self._clock.sleep(ANSWER_SECONDS)
        if trouble is not None and trouble.name == "reset":
            raise requests.ConnectionError(ProtocolError("broken", ConnectionResetError(104, "reset")))
        if trouble is not None and trouble.status:
            retry_after = {} if trouble.retry_after is None else {"Retry-After": str(trouble.retry_after)}
            return http_response(trouble.status, b"<html>Back soon</html>", retry_after)
        status, body, headers = self._answer(operation, domain, request.url or "")
        received = len(body) // 2 if trouble is not None else len(body)
        return http_response(status, body[:received], {"Content-Length": str(len(body)), **headers})

    def _target_of(self, request: AbortableRequest) -> tuple[str, str]:
        if (found := _PATH.fullmatch(request.path_url)) is None:
            return "download", request.path_url.split("/")[1]
        if found["domain"]:
            return "bundle" if found["bundle"] else "read", found["domain"]
        assert isinstance(request.body, bytes)
        return "start", json.loads(request.body)["domain"]

    def _trouble(self, operation: str, domain: str) -> Trouble | None:
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

    def _answer(self, operation: str, domain: str, url: str) -> tuple[int, bytes, Mapping[str, str]]:
        if operation == "start":
            self._started.setdefault(domain, self._clock.elapsed)
            return 202, json.dumps({"jobId": f"se_{domain}"}).encode(), {}
        if operation == "read":
            status = "completed" if self._is_ready(domain) else "running"
            return 200, json.dumps({"status": status}).encode(), {}
        if operation == "bundle":
            self._uses[domain] += 1
            expires = (self._clock.now() + timedelta(hours=1)).isoformat()
            link = f"https://storage.example.com/{domain}/{self._uses[domain]}/bundle.tar.gz"
            return 200, json.dumps({"bundleUrl": link, "expiresAt": expires}).encode(), {}
        self._uses[url] += 1
        if self._uses[url] > self._world.link_uses:
            return 403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", {}
        self.exported_after.setdefault(domain, self._clock.elapsed - self._started[domain])
        return 200, ARCHIVE, {"ETag": '"one"'}


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
    clock, log = VirtualClock(seed=seed), io.StringIO()
    platform = Platform(world, clock)
    names = [f"docs-{number}" for number in range(world.domains)]
    inputs = {
        "base-url": BASE_URL,
        "admin-key": ADMIN_KEY,
        "domain": "\n".join(names),
        "timeout": f"{TIMEOUT}s",
        "outage-tolerance": f"{TOLERANCE}s",
        "site-path": "sites/{domain}",
    }
    with (
        tempfile.TemporaryDirectory(prefix="several-domains-") as temporary,
        in_virtual_time(platform, clock, seed=seed, thread=clock.Thread),
    ):
        folder = Path(temporary)
        environ = runner_environment(inputs={**default_inputs(), **inputs}, folder=folder, workspace=folder, debug=False)
        exit_code = main.run(environ, log, SideBySide(clock, idle_seconds=11.0), clock=clock)  # type: ignore[arg-type]
        outputs = parse_outputs((folder / "output").read_text())
    rows = {row["domain"]: row for row in json.loads(outputs["results"])}
    return Ended(seconds=clock.elapsed, exit_code=exit_code, rows=rows, platform=platform, log=log.getvalue())


ENDS: Final = {None, "unavailable", "timeout", "start-unconfirmed", "bad-response", "download-failed"}


def check(world: World, ended: Ended) -> None:
    """Check that a run ended in time, that it did not repeat starts blindly, and that they delayed no other job."""
    assert ended.seconds <= allowed_seconds(world), f"{ended.seconds} s\n{ended.log}"
    assert [ended.rows[f"docs-{number}"]["failureReason"] in ENDS for number in range(world.domains)], ended.log
    for troubles in ended.platform.starts.values():
        assert all(trouble is not None and trouble.was_rejected for trouble in troubles[:-1]), troubles
    if world.link_uses >= 1 and all(is_refused_start(failing) for failing in world.failing):
        for number in {*range(world.domains)} - world.never_ready:
            row = ended.rows[f"docs-{number}"]
            if row["jobId"] is not None:
                assert row["failureReason"] is None, row
                assert ended.platform.exported_after[f"docs-{number}"] <= UNDISTURBED_SECONDS, ended.log


def is_refused_start(failing: Failing) -> bool:
    """Return whether the platform asks for a later start, which concerns no other request."""
    return failing.operation == "start" and failing.trouble.status > 0 and failing.trouble.was_rejected


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
    """A platform that refuses one domain's start does not delay the others."""

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
