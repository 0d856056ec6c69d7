"""One cell of the matrix: a run of the whole action against one fault, and all that must hold whatever becomes of it."""

import contextlib
import functools
import gc
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
from docs_platform_action.bundle import download, storage
from docs_platform_action.http.client import Request, Timeouts
from tests.ended import Ended
from tests.inside import QuickClock, run_inside, unmeasured
from tests.leaks import leaked, leaked_in_part
from tests.reliability.expected import OK, TIMES, Rule, rule_for
from tests.reliability.faults import FAULTS, SCALE, Fault
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
    Operation,
    Scene,
    World,
)

MAX_REQUESTS: Final = 150
"""Of one run: ten minutes of reading, or an outage with its tries; no fault makes a run ask without end."""

MAX_SECONDS: Final = 20 * 60.0
"""Of the run's own clock: `timeout` and two outages."""

CONNECT_SECONDS: Final = 1.5
"""In place of the action's 10 s: a loaded machine takes its time for a TLS handshake."""

AT_ONCE: Final = 8
"""Cells that run at the same time: most of them wait, for a pause on the wire."""

ABORT_GRACE_SECONDS: Final = 60.0
"""What a thread may take that was told to end."""

MAX_BUNDLE_BYTES: Final = 4 * 1024 * 1024
"""In place of the 50 GiB at which an endless download ends."""


DELIVERED: Final[dict[str, object]] = {
    "expiresAt": EXPIRES_AT,
    "bundlePath": "out/bundle.tar.gz",
    "bundleSize": len(ARCHIVE),
    "bundleSha256": hashlib.sha256(ARCHIVE).hexdigest(),
    "sitePath": "out/site",
    "valuesFile": "out/values.yaml",
}
"""What is reported of a delivered bundle."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A fault that hits an operation, once, three times or (None) for ever."""

    fault: Fault
    operation: Operation
    times: int | None

    @property
    def rule(self) -> Rule:
        """What it has to end with, and why."""
        return rule_for(self.fault, self.operation)

    @property
    def expected(self) -> str:
        """`OK`, or the `failureReason`."""
        return self.rule.ends[TIMES.index(self.times)]

    def __str__(self) -> str:
        often = {1: "once", 3: "three times", None: "for ever"}[self.times]
        return f"{self.operation.value}: {self.fault.name}, {often}"


CELLS: Final = tuple(
    Cell(fault=fault, operation=operation, times=times) for fault, operation, times in itertools.product(FAULTS, Operation, TIMES)
)


_running: ContextVar[Cell] = ContextVar("_running")
"""The cell that a thread runs: its requests to the API are made in the same thread."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a cell ended, `OK` or the `failureReason`; what did not hold; how many requests reached a server; and the log."""

    end: str
    problems: tuple[str, ...]
    requests: int
    log: str


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What became of cells, in all: how each ended, what came on stderr, which threads and how many descriptors are left."""

    outcomes: Mapping[Cell, Outcome]
    stderr: str
    threads_left: tuple[str, ...]
    descriptors_left: int


def run_cells(cells: Iterable[Cell]) -> Ran:
    """Run cells, several at a time, with the wire's time passing `SCALE` times as fast as in the action's own bounds."""
    threads, descriptors, stderr = set(threading.enumerate()), _descriptors(), io.StringIO()
    with unmeasured(), contextlib.redirect_stderr(stderr), World() as world, _hasty(world), ThreadPoolExecutor(AT_ONCE) as pool:
        # the slow ones first, so that none is left alone in the end
        numbered = sorted(enumerate(cells), key=lambda pair: not _is_slow(pair[1]))
        outcomes = dict(pool.map(lambda pair: (pair[1], _run(pair[1], pair[0], world)), numbered))
    return Ran(
        outcomes=outcomes,
        stderr=stderr.getvalue(),
        threads_left=_still_alive(set(threading.enumerate()) - threads),
        descriptors_left=_descriptors() - descriptors,
    )


def _still_alive(threads: Iterable[threading.Thread]) -> tuple[str, ...]:
    """Name the threads that do not end, though they get a moment for it."""
    for thread in threads:
        thread.join(timeout=ABORT_GRACE_SECONDS)
    return tuple(thread.name for thread in threads if thread.is_alive())


def _descriptors() -> int:
    gc.collect()  # connections that were kept go with what kept them
    return len(list(Path("/proc/self/fd").iterdir()))


def _is_slow(cell: Cell) -> bool:
    return cell.fault.name in {"connect time-out", "no answer (read time-out)", "one byte a second"}


@contextlib.contextmanager
def _hasty(world: World) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        patch.setattr(socket, "getaddrinfo", world.resolve)
        patch.setattr(certifi, "where", lambda: str(world.other_authorities))  # to read the public ones takes longest
        patch.setattr(main, "ApiClient", _HastyApiClient)
        patch.setattr(storage, "Timeouts", functools.partial(Timeouts, connect_seconds=CONNECT_SECONDS))
        for name in ("IDLE_SECONDS", "HEAD_SECONDS", "SLOW_SECONDS"):
            patch.setattr(storage, name, getattr(storage, name) / SCALE)
        patch.setattr(download, "MAX_BUNDLE_BYTES", MAX_BUNDLE_BYTES)
        yield


class _HastyApiClient(ApiClient):
    """Keeps the bounds of the action, `SCALE` times as short where a fault has the action wait.

    Elsewhere a loaded machine may be slower than that, and a start without an answer is final.
    """

    def send(self, request: Request, timeouts: Timeouts, *, new_connection: bool = False) -> ApiResponse:
        cell = _running.get()
        is_start = request.method == "POST" and not request.url.endswith("/bundle")
        if not _is_slow(cell) or (is_start and cell.operation is not Operation.START):
            return super().send(request, timeouts, new_connection=new_connection)
        hasty = Timeouts(
            connect_seconds=min(timeouts.connect_seconds, CONNECT_SECONDS),
            idle_seconds=min(timeouts.idle_seconds, 30.0) / SCALE,
            total_seconds=max(min(timeouts.total_seconds, 60.0) / SCALE, CONNECT_SECONDS),
        )
        return super().send(request, hasty, new_connection=new_connection)


def _run(cell: Cell, number: int, world: World) -> Outcome:
    scene = Scene(number=number, operation=cell.operation, door=cell.fault.door, play=cell.fault.play, turns=cell.times)
    world.put_on(scene)
    _running.set(cell)
    clock = QuickClock(factor=SCALE)
    with tempfile.TemporaryDirectory(prefix="cell-") as folder:
        workspace = Path(folder)
        (workspace / "ca.pem").write_bytes(world.authority_pem)
        ended = run_inside(_inputs(cell, scene), workspace=workspace, clock=clock, debug=cell.times == 1)
        end = OK if ended.exit_code == 0 else ended.reason or "none"
        problems = (
            *_of_the_report(ended, end),
            *_of_the_outputs(cell, ended, scene, end),
            *_of_the_files(cell, workspace, end),
            *_of_the_requests(cell, scene),
            *_of_the_secrets(ended, workspace),
            *_of_those_asked(scene),
            *_of_the_values(workspace, scene),
            *([f"it took {clock.elapsed:.0f} s"] if clock.elapsed > MAX_SECONDS else []),
        )
    return Outcome(end=end, problems=problems, requests=len(scene.seen), log=ended.stdout)


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


def _of_the_report(ended: Ended, end: str) -> Iterator[str]:
    if ended.exit_code not in {0, 1}:
        yield f"exit code {ended.exit_code}"
    if len(ended.errors) != (0 if end == OK else 1):
        yield f"{len(ended.errors)} error annotations"
    if "Traceback" in ended.stdout + ended.summary:
        yield "a stack trace"
    if not ended.summary:
        yield "no summary"


def _of_the_outputs(cell: Cell, ended: Ended, scene: Scene, end: str) -> Iterator[str]:
    """Whatever is known when the run ends is in the outputs, and in `results` too."""
    outputs, row = ended.outputs, json.loads(ended.outputs["results"])[0]
    known: dict[str, object] = {}
    if cell.operation is not Operation.START or end == OK:
        known["jobId"] = JOB
    if cell.operation not in {Operation.START, Operation.READ_EXPORT, Operation.READ_AGENT} or end == OK:
        known |= {"status": "completed"} | ({} if cell.operation is Operation.READ_AGENT else {"pageCount": 12})
    elif cell.operation is Operation.READ_EXPORT:
        known["pageCount"] = 12 if end == "timeout" else 5  # with a status that nobody knows pages are counted all the same
    if end == OK:
        agent = cell.operation is Operation.READ_AGENT
        known |= {"prLink": PULL_REQUEST} if agent else {"bundleUrl": scene.link, **DELIVERED}
    elif outputs.get("bundleUrl") or row["bundleUrl"]:
        yield "a link of a failed run"
    for name, value in known.items():
        if outputs.get(name) != str(value) or row[name] != value:
            yield f"{name} is {outputs.get(name)!r} in the outputs and {row[name]!r} in results, not {value!r}"
    if (row["failureReason"] or OK) != end:
        yield f"results say {row['failureReason']}"


def _of_the_files(cell: Cell, workspace: Path, end: str) -> Iterator[str]:
    """All of a bundle is there, or nothing."""
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
    # the archive was fetched as the storage sent it, and stays as evidence
    kept = {"out/bundle.tar.gz"} if end == "invalid-bundle" else set()
    if left != kept:
        yield f"files left: {sorted(left)}"


def _of_the_requests(cell: Cell, scene: Scene) -> Iterator[str]:
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


def _of_the_secrets(ended: Ended, workspace: Path) -> Iterator[str]:
    mask, _, log = ended.stdout.partition("\n")
    if not mask.startswith("::add-mask::"):
        yield "the key is not masked first"
    public = {"log": log, "stderr": ended.stderr, "summary": ended.summary}
    values = workspace / "out/values.yaml"
    others = {name: text for name, text in ended.outputs.items() if name not in {"bundleUrl", "results"}}
    bearing = {**others, "bundleUrl": ended.outputs.get("bundleUrl", ""), "results": ended.outputs["results"]}
    for name, text in (*public.items(), *bearing.items(), ("values.yaml", values.read_text() if values.exists() else "")):
        if found := leaked_in_part(KEY, text):
            yield f"the key is in {name}: {', '.join(found)}"
    for name, text in (*public.items(), *others.items()):
        if leaked(SIGNATURE, text):
            yield f"the link's query is in {name}"
        if re.search(r"Bearer (?![\\*]+)", text):
            yield f"`Authorization` is in {name}"


def _of_the_values(workspace: Path, scene: Scene) -> Iterator[str]:
    values = workspace / "out/values.yaml"
    if values.exists() and yaml.safe_load(values.read_text())["staticExport"]["bundleUrl"] != scene.link:
        yield "another link in the values file"


def _of_those_asked(scene: Scene) -> Iterator[str]:
    """See that the key goes to the API with each request, and to nobody else."""
    for seen in scene.seen:
        if seen.host == scene.api_host:
            if f"\r\nauthorization: bearer {KEY.lower()}\r\n" not in seen.content.decode("latin-1").lower():
                yield "a request to the API without the key"
        elif leaked_in_part(KEY, seen.content) or b"authorization" in seen.content.lower():
            yield f"the key went to {seen.host}"
