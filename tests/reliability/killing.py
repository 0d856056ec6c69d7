"""Kills the action's process at moments drawn by seed, and looks at what is left in the workspace.

Most runs kill themselves: a profile hook, put into a copy of the entry point, counts the calls of functions that ask something of
the system, by name and by what they serve, and sends SIGKILL to its own process right before one or right after. The others are
killed from outside, so long after the storage was asked for the bundle that the kernel may be in the middle of such a call.
"""

import functools
import io
import json
import os
import random
import re
import signal
import tarfile
import tempfile
import time
from collections.abc import Mapping
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
from tests.inside import run_inside
from tests.keys import ADMIN_KEY

USUAL_MOMENTS: Final = 100
MOMENTS: Final = int(os.environ.get("KILL_MOMENTS", USUAL_MOMENTS))
FROM_OUTSIDE: Final = 4
"""One moment in so many is one from outside."""

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
"""Functions of C that ask something of the system; `__exit__` is how a `with` closes a file."""

OWNERS: Final = ("posix", "io", "_io", "socket", "_socket")
"""Whose functions they are, as modules or as the modules of types: text has a `replace` too."""

PARTS: Final = ("_deliver_archive", "_deliver_site", "_write_values")
"""The methods that make up a delivery. Each call is counted by the method that it serves."""

NAMING: Final = "replace"
"""The function by which a result gets its name: drawn more often."""

_HOOK: Final = """
    import json, os, signal, sys, threading
    kill_at = json.loads(os.environ["KILL_AT"])
    met = {{}}

    def look(frame, event, function):
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
        met[key] = met.get(key, 0) + 1
        if [key, met[key]] == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        return main(signal_handler)
    finally:
        sys.setprofile(None)
        with open(os.environ["KILL_COUNT"], "w") as file:
            json.dump(met, file)
"""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a run is killed: at the `number`th call or return of a kind, or `after_seconds` of the storage's first request.

    `is_new` tells whether there is nothing of an earlier run in the workspace.
    """

    seed: int
    key: str
    number: int
    after_seconds: float | None
    is_new: bool


@dataclass(frozen=True, kw_only=True)
class Killed:
    """What a killed run left: `wrong` tells of what should not be, `whole` of the results that are there whole and new."""

    moment: Moment
    was_killed: bool
    wrong: tuple[str, ...]
    whole: frozenset[str]
    leftovers: tuple[str, ...]
    knows_job: bool
    next_run: str | None


def site() -> Site:
    """Make a site whose unpacking takes a while: a file's length and content tell whether it is whole."""
    chance = random.Random(1)  # noqa: S311  # nothing is to be kept secret
    pages = {f"pages/{number // 20}/{number}.html": chance.randbytes(chance.randrange(40_000)) for number in range(60)}
    return Site(files={**SMALL_SITE.files, **pages}, folders=SMALL_SITE.folders, links=SMALL_SITE.links)


@functools.cache
def bundle() -> bytes:
    """Pack the site; not compressed, so that much is to be fetched."""
    return tar(site())


@functools.cache
def tree_of_bundle() -> dict[str, bytes | str | None]:
    """Tell what the site's folder is to hold, as Python's own `tarfile` reads the bundle."""
    found: dict[str, bytes | str | None] = {}
    with tarfile.open(fileobj=io.BytesIO(bundle())) as archive:
        for member in archive:
            for folder in Path(member.name).parents:
                found.setdefault(str(folder), None)
            file = archive.extractfile(member) if member.isfile() else None
            found[member.name] = member.linkname if member.issym() else file.read() if file is not None else None
    del found["."]
    return found


def tree(folder: Path) -> dict[str, bytes | str | None]:
    """Read a folder: the content of each file, the target of each link, `None` for a folder."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = str(path.readlink()) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
    return found


class Killings:
    """One platform for all runs, and what it takes to start and kill one. Safe to use from several threads."""

    def __init__(self, folder: Path, platform: Simulator) -> None:
        self._folder = folder
        self._platform = platform
        self._links: set[str] = set()
        self._job_ids: set[str] = set()
        platform.override("start_export", self._with_bundle)
        platform.override("make_bundle", self._remember_link)
        self._entrypoint = folder / "entrypoint.py"
        text, late = ENTRYPOINT.read_text(), "    return main(signal_handler)\n"
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
        """Count what a run that nobody kills asks of the system, by kind: call or return, name, and what it serves."""
        workspace = self._workspace(f"whole-{is_new}")
        if not is_new:
            self._leave_results_of_an_earlier_run(workspace)
        count = self._folder / "count.json"
        action = self._action(workspace, hooked=True)
        ended = action.run(self._platform, env={"KILL_AT": "null", "KILL_COUNT": str(count)}, **INPUTS)
        assert ended.exit_code == 0, ended.stdout + ended.stderr
        return {key: int(number) for key, number in json.loads(count.read_text()).items()}

    def kill(self, moment: Moment) -> Killed:
        """Kill a run at a moment, look at what is left, and have another run follow where there was something before."""
        workspace = self._workspace(f"{moment.seed}")
        before = {} if moment.is_new else self._leave_results_of_an_earlier_run(workspace)
        try:
            ended = self._run(workspace, moment)
        except OutputFileError as error:
            raise AssertionError(f"{moment}: {error}") from error
        found = self._look(workspace, before)
        wrong = [f"{name} is neither what it was nor whole" for name, state in found.items() if state == "broken"]
        if ended.exit_code not in {0, -signal.SIGKILL}:
            wrong.append(f"it ended with {ended.exit_code}: {ended.stdout}{ended.stderr}")
        if "jobId" in ended.outputs and ended.outputs["jobId"] not in self._job_ids:
            wrong.append(f"jobId is {ended.outputs['jobId']!r}")
        return Killed(
            moment=moment,
            was_killed=ended.exit_code == -signal.SIGKILL,
            wrong=tuple(wrong),
            whole=frozenset(name for name, state in found.items() if state == "new"),
            leftovers=tuple(part.name for part in _parts(workspace)),
            knows_job="jobId" in ended.outputs,
            next_run=None if moment.is_new else self._follow(workspace, found),
        )

    def _run(self, workspace: Path, moment: Moment) -> Ended:
        hooked = moment.after_seconds is None
        env = {"KILL_AT": json.dumps([moment.key, moment.number]), "KILL_COUNT": os.devnull} if hooked else {}
        with self._action(workspace, hooked=hooked).start(self._platform, env=env, **INPUTS) as running:
            if moment.after_seconds is not None:
                running.wait_for("Bundle link ready")
                time.sleep(moment.after_seconds)
                running.signal(signal.SIGKILL)
            return running.end()

    def _follow(self, workspace: Path, found: Mapping[str, str]) -> str:
        """Run once more in the same workspace, days later, and tell how it ended; a site that is there is cleared away."""
        for part in _parts(workspace):
            long_ago = part.stat().st_mtime - 2 * 86400
            os.utime(part, (long_ago, long_ago))
        shut = workspace / "public" / "site"
        if found["site"] == "new":
            shut.rename(workspace / "public" / "site-before")
        given = {name.replace("_", "-"): text for name, text in INPUTS.items()}
        ended = run_inside({**given, "base-url": self._platform.base_url, "admin-key": ADMIN_KEY}, workspace=workspace)
        states = {*self._look(workspace, {}).values()}
        if _parts(workspace):
            return f"left {_parts(workspace)}"
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

    def _look(self, workspace: Path, before: Mapping[str, object]) -> dict[str, str]:
        """Tell of each result whether it is as it was before, new and whole, or broken."""
        archive, values, folder = (workspace / path for path in ("dist/bundle.tar.gz", "deploy/values.yaml", "public/site"))
        there = {
            "bundle": archive.read_bytes() if archive.exists() else None,
            "values": values.read_bytes() if values.exists() else None,
        }
        states = {name: "as before" if content == before.get(name) else "broken" for name, content in there.items()}
        if there["bundle"] == bundle():
            states["bundle"] = "new"
        if there["values"] is not None and self._are_new_values(there["values"]):
            states["values"] = "new"
        found = tree(folder) if folder.exists() else {}
        return {**states, "site": "as before" if not found else "new" if found == tree_of_bundle() else "broken"}

    def _are_new_values(self, content: bytes) -> bool:
        try:
            values = yaml.safe_load(content)
        except yaml.YAMLError:  # half of a file need not be YAML
            return False
        wanted = [{"staticExport": {"enabled": True, "bundleUrl": link, "version": VERSION}} for link in self._links]
        return values in wanted


def _parts(workspace: Path) -> list[Path]:
    return sorted(path for path in workspace.rglob("*") if PART.fullmatch(path.name))


def draw_moment(seed: int, calls: Mapping[bool, Mapping[str, int]]) -> Moment:
    """Draw a moment from what whole runs ask of the system: each kind is as likely as another, however often it occurs."""
    chance = random.Random(seed)  # noqa: S311  # nothing is to be kept secret
    is_new = chance.random() < 0.5
    names = sorted(calls[is_new])
    key = chance.choices(names, [6 if key.split()[1] == NAMING else 1 for key in names])[0]
    return Moment(
        seed=seed,
        key=key,
        number=chance.randint(1, calls[is_new][key]),
        after_seconds=chance.uniform(0.0, 0.15) if seed % FROM_OUTSIDE == 0 else None,
        is_new=is_new,
    )


@functools.cache
def killed_runs(count: int = MOMENTS) -> tuple[Killed, ...]:
    """Kill so many runs, once in a process; one that comes to its end before its moment is looked at too, but does not count."""
    found: list[Killed] = []
    with (
        tempfile.TemporaryDirectory(prefix="killed-") as folder,
        Simulator(key=ADMIN_KEY, export_seconds=0.05) as platform,
        ThreadPoolExecutor(AT_A_TIME) as at_a_time,
    ):
        killings = Killings(Path(folder), platform)
        calls = {is_new: killings.calls(is_new=is_new) for is_new in (True, False)}
        seed = 0
        while (missing := count - sum(killed.was_killed for killed in found)) > 0:
            moments = [draw_moment(number, calls) for number in range(seed, seed + missing)]
            found += at_a_time.map(killings.kill, moments)
            seed += missing
    return tuple(found)
