"""Kills the action's process at random, seeded moments, and checks what is left in the workspace.

Most runs kill themselves: a profile hook in a copy of the entry point counts system calls by name and by the part of the
delivery that they belong to, and sends SIGKILL to its own process right before or after one of them. The other runs are killed
from outside at a random time after the request for the bundle, possibly during a system call.
"""

import functools
import io
import itertools
import json
import os
import random
import re
import signal
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from admin_api_simulator import Simulator
from admin_api_simulator.runner import OutputFileError
from tests.action import Action
from tests.archives import SMALL_SITE, Site, tar
from tests.ended import ENTRYPOINT, Ended
from tests.folders import read_tree
from tests.inside import run_inside
from tests.keys import ADMIN_KEY

USUAL_MOMENTS: Final = 100
MOMENTS: Final = int(os.environ.get("KILL_MOMENTS", USUAL_MOMENTS))
FROM_OUTSIDE: Final = 4
"""One in this many runs is killed from outside."""

AT_A_TIME: Final = 2
OLD_BUNDLE: Final = b"the bundle of an earlier run"
OLD_VALUES: Final = "staticExport:\n  enabled: true\n  bundleUrl: https://storage.example.com/earlier\n"
VERSION: Final = "20240601"
PART: Final = re.compile(r"\.[^/]+\.[0-9a-f]{16}\.part")
INPUTS: Final = {
    "domain": "docs.example.com",
    "bundle_path": "dist/bundle.tar.gz",
    "site_path": "public/site",
    "values_file": "deploy/values.yaml",
    "export_version": VERSION,
}

CALLS: Final = (
    *("open", "write", "close", "__exit__", "truncate", "flush"),
    *("mkdir", "chmod", "symlink", "replace", "unlink", "rmdir"),
    *("connect", "sendall", "recv_into", "shutdown"),
)
"""C functions that make system calls; `__exit__` closes a file at the end of a `with`."""

OWNERS: Final = ("posix", "io", "_io", "socket", "_socket")
"""The modules of these functions or of their types; `str` also has a `replace`."""

PARTS: Final = ("_publish_archive", "_deliver_site", "_unpack_tar", "read", "_write_values")
"""The functions of the delivery by which calls are counted; `read` runs in the thread that unpacks."""

NAMING: Final = "replace"
"""The function that gives a result its final name; drawn more often."""

_HOOK: Final = """
    import json, os, signal
    kill_at = json.loads(os.environ["KILL_AT"])
    counts = {{}}

    def count_call(frame, event, function):
        if event not in ("c_call", "c_return") or function.__name__ not in {calls!r}:
            return
        owner = getattr(function, "__self__", None)
        if (owner.__name__ if isinstance(owner, type(os)) else type(owner).__module__) not in {owners!r}:
            return
        part = "elsewhere"
        while frame is not None and part == "elsewhere":
            if frame.f_code.co_filename.endswith("deliver.py") and frame.f_code.co_name in {parts!r}:
                part = frame.f_code.co_name
            frame = frame.f_back
        key = f"{{event}} {{function.__name__}} {{part}}"
        counts[key] = counts.get(key, 0) + 1
        if [key, counts[key]] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(count_call)
    sys.setprofile(count_call)
    try:
        return main(signal_handler, clock)
    finally:
        sys.setprofile(None)
        with open(os.environ["KILL_COUNT"], "w") as file:
            json.dump(counts, file)
"""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a run is killed: at the `number`th call or return of a kind, or `after_seconds` after the request for the bundle.

    If `is_new`, the workspace contains no results of an earlier run.
    """

    seed: int
    key: str
    number: int
    after_seconds: float | None
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class Killed:
    """What a killed run left: `wrong` describes errors, `whole` names the complete new results."""

    moment: Moment
    was_killed: bool
    wrong: tuple[str, ...]
    whole: frozenset[str]
    leftovers: tuple[str, ...]
    knows_job: bool
    next_run: str | None


def site() -> Site:
    """Return a site whose unpacking takes a while."""
    chance = random.Random(1)  # noqa: S311  # not for secrets
    pages = {f"pages/{number // 20}/{number}.html": chance.randbytes(chance.randrange(40_000)) for number in range(60)}
    return Site(files={**SMALL_SITE.files, **pages}, folders=SMALL_SITE.folders, links=SMALL_SITE.links)


@functools.cache
def bundle() -> bytes:
    """Return the site as an archive, without compression to make the download longer."""
    return tar(site())


@functools.cache
def tree_of_bundle() -> dict[str, bytes | str | None]:
    """Return the expected content of the site's folder, as Python's `tarfile` reads the bundle."""
    found: dict[str, bytes | str | None] = {}
    with tarfile.open(fileobj=io.BytesIO(bundle())) as archive:
        for member in archive:
            for folder in Path(member.name).parents:
                found.setdefault(str(folder), None)
            file = archive.extractfile(member) if member.isfile() else None
            found[member.name] = member.linkname if member.issym() else file.read() if file is not None else None
    del found["."]
    return found


class Killings:
    """Starts and kills runs on a shared platform. Thread-safe."""

    def __init__(self, folder: Path, platform: Simulator) -> None:
        self._folder = folder
        self._platform = platform
        self._links: set[str] = set()
        self._job_ids: set[str] = set()
        platform.override("start_export", self._with_bundle)
        platform.override("make_bundle", self._remember_link)
        self._entrypoint = folder / "entrypoint.py"
        text, late = ENTRYPOINT.read_text(), "    return main(signal_handler, clock)\n"
        assert text.count(late) == 1
        self._entrypoint.write_text(text.replace(late, _HOOK.format(calls=CALLS, owners=OWNERS, parts=PARTS)))

    def _with_bundle(self, normal: dict[str, object]) -> object:
        self._job_ids.add(str(normal["jobId"]))
        self._platform.put_bundle(str(normal["jobId"]), bundle())
        return normal

    def _remember_link(self, normal: dict[str, object]) -> object:
        self._links.add(str(normal["bundleUrl"]))
        return normal

    def calls(self, *, is_new: bool) -> dict[str, int]:
        """Count the system calls of a complete run by kind: call or return, name, and part of the delivery."""
        workspace = self._workspace(f"whole-{is_new}")
        if not is_new:
            self._leave_results_of_an_earlier_run(workspace)
        count = self._folder / "count.json"
        action = self._action(workspace, hooked=True)
        ended = action.run(self._platform, env={"KILL_AT": "null", "KILL_COUNT": str(count)}, **INPUTS)
        assert ended.exit_code == 0, ended.stdout + ended.stderr
        return {key: int(number) for key, number in json.loads(count.read_text()).items()}

    def seconds_after_the_link(self) -> float:
        """Return how long a complete run takes after the request for the bundle."""
        with self._action(self._workspace("timed"), hooked=False).start(self._platform, env={}, **INPUTS) as running:
            running.wait_for("/bundle.tar.gz")
            began = time.monotonic()
            assert running.wait().exit_code == 0
            return time.monotonic() - began

    def kill(self, moment: Moment) -> Killed:
        """Kill a run at a moment, check what is left, and start another run if the workspace contained earlier results."""
        workspace = self._workspace(f"{moment.seed}")
        before = {} if moment.is_new else self._leave_results_of_an_earlier_run(workspace)
        try:
            ended = self._run(workspace, moment)
        except OutputFileError as error:
            raise AssertionError(f"{moment}: {error}") from error
        found = self._states_of_results(workspace, before)
        wrong = [f"{name} is neither unchanged nor complete" for name, state in found.items() if state == "broken"]
        if ended.exit_code not in {0, -signal.SIGKILL}:
            wrong.append(f"the run ended with {ended.exit_code}: {ended.stdout}{ended.stderr}")
        if "jobId" in ended.outputs and ended.outputs["jobId"] not in self._job_ids:
            wrong.append(f"jobId is {ended.outputs['jobId']!r}")
        return Killed(
            moment=moment,
            was_killed=ended.exit_code == -signal.SIGKILL,
            wrong=tuple(wrong),
            whole=frozenset(name for name, state in found.items() if state == "new"),
            leftovers=tuple(part.name for part in _parts(workspace)),
            knows_job="jobId" in ended.outputs,
            next_run=None if moment.is_new else self._run_again(workspace, found),
        )

    def _run(self, workspace: Path, moment: Moment) -> Ended:
        hooked = moment.after_seconds is None
        env = {"KILL_AT": json.dumps([moment.key, moment.number]), "KILL_COUNT": os.devnull} if hooked else {}
        with self._action(workspace, hooked=hooked).start(self._platform, env=env, **INPUTS) as running:
            if moment.after_seconds is not None:
                running.wait_for("/bundle.tar.gz")
                time.sleep(moment.after_seconds)
                running.signal(signal.SIGKILL)
            return running.wait()

    def _run_again(self, workspace: Path, found: Mapping[str, str]) -> str:
        """Run again in the same workspace, after removing a delivered site, and return how the run ended."""
        leftovers = _parts(workspace)
        site_folder = workspace / "public" / "site"
        if found["site"] == "new":
            site_folder.rename(workspace / "public" / "site-before")
        given = {name.replace("_", "-"): text for name, text in INPUTS.items()}
        ended = run_inside({**given, "base-url": self._platform.base_url, "admin-key": ADMIN_KEY}, workspace=workspace)
        states = {*self._states_of_results(workspace, {}).values()}
        if _parts(workspace) != leftovers:
            return f"left {_parts(workspace)}, not {leftovers}"
        return "whole" if ended.exit_code == 0 and states == {"new"} else f"{states}: {ended.stdout}{ended.stderr}"

    def _action(self, workspace: Path, *, hooked: bool) -> Action:
        action = Action(workspace)
        action.entrypoint = self._entrypoint if hooked else ENTRYPOINT
        return action

    def _workspace(self, name: str) -> Path:
        workspace = self._folder / f"workspace-{name}"
        workspace.mkdir()
        return workspace

    def _leave_results_of_an_earlier_run(self, workspace: Path) -> dict[str, object]:
        for name in ("dist", "deploy", "public", "public/site"):
            (workspace / name).mkdir()
        (workspace / "dist" / "bundle.tar.gz").write_bytes(OLD_BUNDLE)
        (workspace / "deploy" / "values.yaml").write_text(OLD_VALUES)
        return {"bundle": OLD_BUNDLE, "values": OLD_VALUES.encode()}

    def _states_of_results(self, workspace: Path, before: Mapping[str, object]) -> dict[str, str]:
        """Return the state of each result: "as before", "new" (complete) or "broken"."""
        archive, values, folder = (workspace / path for path in ("dist/bundle.tar.gz", "deploy/values.yaml", "public/site"))
        contents = {
            "bundle": archive.read_bytes() if archive.exists() else None,
            "values": values.read_bytes() if values.exists() else None,
        }
        states = {name: "as before" if content == before.get(name) else "broken" for name, content in contents.items()}
        if contents["bundle"] == bundle():
            states["bundle"] = "new"
        if contents["values"] is not None and self._are_new_values(contents["values"]):
            states["values"] = "new"
        found = read_tree(folder) if folder.exists() else {}
        return {**states, "site": "as before" if not found else "new" if found == tree_of_bundle() else "broken"}

    def _are_new_values(self, content: bytes) -> bool:
        try:
            values = yaml.safe_load(content)
        except yaml.YAMLError:  # an incomplete file may be invalid YAML
            return False
        wanted = [
            {"staticExport": {"enabled": True, "bundleUrl": link, "version": VERSION}} for link in tuple(self._links)
        ]  # other threads add to it
        return values in wanted


def _parts(workspace: Path) -> list[Path]:
    return sorted(path for path in workspace.rglob("*") if PART.fullmatch(path.name))


def draw_moment(seed: int, calls: Mapping[bool, Mapping[str, int]], seconds: float, *, from_outside: bool) -> Moment:
    """Draw a moment from the calls of complete runs, or, from outside, from their seconds after the link.

    Each kind of call is equally likely, however often it occurs.
    """
    chance = random.Random(seed)  # noqa: S311  # not for secrets
    is_new = chance.random() < 0.5
    names = sorted(calls[is_new])
    key = chance.choices(names, [6 if key.split()[1] == NAMING else 1 for key in names])[0]
    return Moment(
        seed=seed,
        key=key,
        number=chance.randint(1, calls[is_new][key]),
        after_seconds=chance.uniform(0.0, seconds) if from_outside else None,
        is_new=is_new,
    )


@functools.cache
def killed_runs(count: int = MOMENTS) -> tuple[Killed, ...]:
    """Kill `count` runs, once per process, each `FROM_OUTSIDE`th from outside.

    Runs that end before their moment are checked too, but do not count.
    """
    found: list[Killed] = []
    seeds = itertools.count()
    with (
        tempfile.TemporaryDirectory(prefix="killed-") as folder,
        Simulator(key=ADMIN_KEY, export_seconds=0.05) as platform,
        ThreadPoolExecutor(AT_A_TIME) as at_a_time,
    ):
        killings = Killings(Path(folder), platform)
        calls = {is_new: killings.calls(is_new=is_new) for is_new in (True, False)}
        seconds = killings.seconds_after_the_link()
        while missing := _missing(found, count):
            moments = [draw_moment(next(seeds), calls, seconds, from_outside=from_outside) for from_outside in missing]
            found += at_a_time.map(killings.kill, moments)
    return tuple(found)


def _missing(found: Sequence[Killed], count: int) -> list[bool]:
    """Return whether each of the runs that are still to be killed is killed from outside."""
    outside = sum(run.was_killed and run.moment.after_seconds is not None for run in found)
    inside = sum(run.was_killed for run in found) - outside
    wanted = count // FROM_OUTSIDE
    return [True] * (wanted - outside) + [False] * (count - wanted - inside)
