"""One cell of the matrix: a run of the whole action with one fault, and the checks of its result."""

import contextlib
import functools
import hashlib
import io
import itertools
import json
import re
import socket
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import certifi
import pytest
import yaml

from docs_platform_action import main
from docs_platform_action.api.client import ApiClient, ApiResponse
from docs_platform_action.bundle import storage, stream
from docs_platform_action.clock import Clock
from docs_platform_action.http.client import HttpClient
from docs_platform_action.http.transport import Request, Timeouts
from tests.ended import Ended
from tests.faults import FAULTS, Operation, Row
from tests.inside import count_descriptors, run_inside, unmeasured
from tests.leaks import leaked
from tests.reliability.expected import OK, TIMES, Rule, rule_for
from tests.reliability.plays import PLAYS, SCALE, door_of
from tests.reliability.world import (
    ARCHIVE,
    DOMAIN,
    EXPIRES_AT,
    JOB,
    KEY,
    PROJECT,
    PULL_REQUEST,
    SIGNATURE,
    SITE,
    Scene,
    World,
)
from tests.virtual_time import VirtualClock

MAX_REQUESTS: Final = 150
"""Maximum requests of a run: ten minutes of polling, or an outage with its attempts."""

MAX_SECONDS: Final = 20 * 60.0
"""Maximum duration of a run on its own clock: `timeout` and two outages."""

CONNECT_SECONDS: Final = 1.5
"""Replaces the action's 10 s; long enough for a TLS handshake on a loaded machine."""

AT_ONCE: Final = 8
"""Cells that run in parallel; most of them wait for a pause on the wire."""

ABORT_GRACE_SECONDS: Final = 60.0
"""How long an aborted thread may take to end."""

MAX_BUNDLE_BYTES: Final = 4 * 1024 * 1024
"""Replaces the 50 GiB at which an endless download is aborted."""


DELIVERED: Final[dict[str, object]] = {
    "expiresAt": EXPIRES_AT,
    "bundlePath": "out/bundle.tar.gz",
    "bundleSize": len(ARCHIVE),
    "bundleSha256": hashlib.sha256(ARCHIVE).hexdigest(),
    "sitePath": "out/site",
    "valuesFile": "out/values.yaml",
}
"""The outputs of a delivered bundle."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A fault of an operation, once, three times or (None) forever."""

    fault: Row
    operation: Operation
    times: int | None

    @property
    def rule(self) -> Rule:
        """The expected results and their reason."""
        return rule_for(self.fault, self.operation)

    @property
    def expected(self) -> str:
        """The expected result, `OK` or a `failureReason`."""
        return self.rule.ends[TIMES.index(self.times)]

    def __str__(self) -> str:
        often = {1: "once", 3: "three times", None: "forever"}[self.times]
        return f"{self.operation.value}: {self.fault.name}, {often}"


CELLS: Final = tuple(
    Cell(fault=fault, operation=operation, times=times) for fault, operation, times in itertools.product(FAULTS, Operation, TIMES)
)


_running: ContextVar[Cell] = ContextVar("_running")
"""The cell of the current thread, which also sends its requests to the API."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a cell: `OK` or the `failureReason`, failed checks, and the log."""

    end: str
    problems: tuple[str, ...]
    log: str


@dataclass(frozen=True, kw_only=True)
class MatrixResult:
    """The results of all cells: outcomes, stderr, and remaining threads and descriptors."""

    outcomes: Mapping[Cell, Outcome]
    stderr: str
    threads_left: tuple[str, ...]
    descriptors_left: int


def run_cells(cells: Iterable[Cell]) -> MatrixResult:
    """Run cells in parallel, with timeouts shortened by `SCALE`."""
    threads, descriptors, stderr = set(threading.enumerate()), count_descriptors(), io.StringIO()
    with (
        unmeasured(),
        contextlib.redirect_stderr(stderr),
        World() as world,
        _shortened_timeouts(world),
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        # slow cells first, so that none runs alone at the end
        numbered = sorted(enumerate(cells), key=lambda pair: not _is_slow(pair[1]))
        outcomes = dict(pool.map(lambda pair: (pair[1], _run(pair[1], pair[0], world)), numbered))
    return MatrixResult(
        outcomes=outcomes,
        stderr=stderr.getvalue(),
        threads_left=_still_alive(set(threading.enumerate()) - threads),
        descriptors_left=count_descriptors() - descriptors,
    )


def _still_alive(threads: Iterable[threading.Thread]) -> tuple[str, ...]:
    """Return the names of threads that do not end within a grace period."""
    for thread in threads:
        thread.join(timeout=ABORT_GRACE_SECONDS)
    return tuple(thread.name for thread in threads if thread.is_alive())


def _is_slow(cell: Cell) -> bool:
    return cell.fault.name in {"connect timeout", "no response (read timeout)", "one byte a second"}


@contextlib.contextmanager
def _shortened_timeouts(world: World) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        patch.setattr(socket, "getaddrinfo", world.resolve)
        patch.setattr(certifi, "where", lambda: str(world.other_authorities))  # loading the public authorities takes longest
        patch.setattr(main, "ApiClient", _ImpatientApiClient)
        # real sockets: a faster clock would need faster ones
        patch.setattr(main, "HttpClient", lambda **parts: HttpClient(**parts | {"clock": Clock()}))
        patch.setattr(storage, "Timeouts", functools.partial(Timeouts, connect_seconds=CONNECT_SECONDS))
        for module, name in ((storage, "IDLE_SECONDS"), (storage, "HEAD_SECONDS"), (stream, "SLOW_SECONDS")):
            patch.setattr(module, name, getattr(module, name) / SCALE)
        patch.setattr(stream, "MAX_BUNDLE_BYTES", MAX_BUNDLE_BYTES)
        yield


class _ImpatientApiClient(ApiClient):
    """Shortens timeouts by `SCALE` if a fault makes the action wait.

    Otherwise a loaded machine may be slower than a shortened timeout, and a start without a response is final.
    """

    def send(self, request: Request, timeouts: Timeouts) -> ApiResponse:
        cell = _running.get()
        is_start = request.method == "POST" and not request.url.endswith("/bundle")
        if not _is_slow(cell) or (is_start and cell.operation is not Operation.START):
            return super().send(request, timeouts)
        shortened = Timeouts(
            connect_seconds=min(timeouts.connect_seconds, CONNECT_SECONDS),
            idle_seconds=min(timeouts.idle_seconds, 30.0) / SCALE,
            total_seconds=max(min(timeouts.total_seconds, 60.0) / SCALE, CONNECT_SECONDS),
        )
        return super().send(request, shortened)


def _run(cell: Cell, number: int, world: World) -> Outcome:
    scene = Scene(
        number=number, operation=cell.operation, door=door_of(cell.fault), play=PLAYS.get(cell.fault.name), turns=cell.times
    )
    world.add(scene)
    _running.set(cell)
    clock = VirtualClock(real_rate=SCALE)
    with tempfile.TemporaryDirectory(prefix="cell-") as folder:
        workspace = Path(folder)
        (workspace / "ca.pem").write_bytes(world.authority_pem)
        ended = run_inside(_inputs(cell, scene), workspace=workspace, clock=clock, debug=cell.times == 1)
        end = OK if ended.exit_code == 0 else ended.reason or "none"
        problems = (
            *_problems_of_report(ended, end),
            *_problems_of_outputs(cell, ended, scene, end),
            *_problems_of_files(cell, workspace, end),
            *_problems_of_requests(cell, scene),
            *_problems_of_secrets(ended, workspace),
            *_problems_of_authorization(scene),
            *_problems_of_values(workspace, scene),
            *([f"it took {clock.elapsed:.0f} s"] if clock.elapsed > MAX_SECONDS else []),
        )
    return Outcome(end=end, problems=problems, log=ended.stdout)


def _inputs(cell: Cell, scene: Scene) -> dict[str, str]:
    common = {
        "base-url": f"https://{scene.api_host}",
        "admin-key": KEY,
        "ca-bundle": "ca.pem",
        "timeout": "10m",
        "outage-tolerance": "1m" if cell.times is None else "5m",
    }
    if cell.operation is Operation.READ_AGENT:
        return {**common, "mode": "agent", "project-id": PROJECT, "job-id": JOB}
    places = {"bundle-path": "out/bundle.tar.gz", "site-path": "out/site", "values-file": "out/values.yaml"}
    return {**common, "domain": DOMAIN, **places}


def _problems_of_report(ended: Ended, end: str) -> Iterator[str]:
    if ended.exit_code not in {0, 1}:
        yield f"exit code {ended.exit_code}"
    if len(ended.errors) != (0 if end == OK else 1):
        yield f"{len(ended.errors)} error annotations"
    if "Traceback" in ended.stdout + ended.summary:
        yield "a stack trace"
    if not ended.summary:
        yield "no summary"


def _problems_of_outputs(cell: Cell, ended: Ended, scene: Scene, end: str) -> Iterator[str]:
    """Check that everything known at the end is in the outputs and in `results`."""
    outputs, row = ended.outputs, json.loads(ended.outputs["results"])[0]
    known: dict[str, object] = {}
    if cell.operation is not Operation.START or end == OK:
        known["jobId"] = JOB
    if cell.operation not in {Operation.START, Operation.READ_EXPORT, Operation.READ_AGENT} or end == OK:
        known |= {"status": "completed"} | ({} if cell.operation is Operation.READ_AGENT else {"pageCount": 12})
    elif cell.operation is Operation.READ_EXPORT:
        known["pageCount"] = None  # the count of a job that did not complete is not an output
    if end == OK:
        agent = cell.operation is Operation.READ_AGENT
        known |= {"prLink": PULL_REQUEST} if agent else {"bundleUrl": scene.link, **DELIVERED}
    elif outputs.get("bundleUrl") or row["bundleUrl"]:
        yield "a link of a failed run"
    for name, value in known.items():
        if outputs.get(name) != (None if value is None else str(value)) or row[name] != value:
            yield f"{name} is {outputs.get(name)!r} in the outputs and {row[name]!r} in results, not {value!r}"
    if (row["failureReason"] or OK) != end:
        yield f"results say {row['failureReason']}"


def _problems_of_files(cell: Cell, workspace: Path, end: str) -> Iterator[str]:
    """Check that all files of a bundle are delivered, or none."""
    left = {str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file()} - {"ca.pem"}
    site = {f"out/site/{name}" for name in SITE.files}
    if end == OK and cell.operation is not Operation.READ_AGENT:
        if left != {"out/bundle.tar.gz", "out/values.yaml", *site}:
            yield f"files: {sorted(left)}"
        elif (workspace / "out/bundle.tar.gz").read_bytes() != ARCHIVE:
            yield "another bundle"
        elif any((workspace / "out/site" / name).read_bytes() != content for name, content in SITE.files.items()):
            yield "another site"
        return
    # an invalid archive stays for inspection
    kept = {"out/bundle.tar.gz"} if end == "invalid-bundle" else set()
    if left != kept:
        yield f"files left: {sorted(left)}"


def _problems_of_requests(cell: Cell, scene: Scene) -> Iterator[str]:
    if max(len(scene.seen), len(scene.hosts)) > MAX_REQUESTS:
        yield f"{len(scene.seen)} requests on {len(scene.hosts)} connections"
    starts = [seen for seen in scene.seen if seen.operation is Operation.START]
    doubtful = [seen for seen in starts if not (seen.status == 429 or (seen.status == 503 and seen.retry_after))]
    if len(doubtful) > 1:
        yield f"{len(doubtful)} starts that may have been processed"
    if cell.times is not None and scene.played > cell.times:
        yield f"the fault was played {scene.played} times"
    if not scene.played:
        yield "no fault was played"
    allowed = {scene.api_host, scene.storage_host} | (
        {f"elsewhere-{scene.number}.example.test"} if cell.operation.is_download else set()
    )
    if strangers := set(scene.hosts) - allowed:
        yield f"connections to {strangers}"


def _problems_of_secrets(ended: Ended, workspace: Path) -> Iterator[str]:
    mask, _, log = ended.stdout.partition("\n")
    if not mask.startswith("::add-mask::"):
        yield "the key is not masked first"
    public = {"log": log, "stderr": ended.stderr, "summary": ended.summary}
    values = workspace / "out/values.yaml"
    others = {name: text for name, text in ended.outputs.items() if name not in {"bundleUrl", "results"}}
    bearing = {**others, "bundleUrl": ended.outputs.get("bundleUrl", ""), "results": ended.outputs["results"]}
    for name, text in (*public.items(), *bearing.items(), ("values.yaml", values.read_text() if values.exists() else "")):
        if found := leaked(KEY, text):
            yield f"the key is in {name}: {', '.join(found)}"
    for name, text in (*public.items(), *others.items()):
        if leaked(SIGNATURE, text):
            yield f"the link's query is in {name}"
        if re.search(r"Bearer (?![\\*]+)", text):
            yield f"`Authorization` is in {name}"


def _problems_of_values(workspace: Path, scene: Scene) -> Iterator[str]:
    values = workspace / "out/values.yaml"
    if values.exists() and yaml.safe_load(values.read_text())["staticExport"]["bundleUrl"] != scene.link:
        yield "another link in the values file"


def _problems_of_authorization(scene: Scene) -> Iterator[str]:
    """Check that every request to the API has the key, and no other request."""
    for seen in scene.seen:
        if seen.host == scene.api_host:
            if f"\r\nauthorization: bearer {KEY.lower()}\r\n" not in seen.content.decode("latin-1").lower():
                yield "a request to the API without the key"
        elif leaked(KEY, seen.content) or b"authorization" in seen.content.lower():
            yield f"the key went to {seen.host}"
