"""The page `errors.md`: each error once, with its fact, its cause and its remedy.

Nearly all come from whole runs on the simulated platform. Errors of which only names and numbers
differ are shown once.
"""

import errno
import hashlib
import os
import re
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from unittest import mock

from admin_api_simulator import ExportPlan, Fault, Simulator
from admin_api_simulator.faults import Operation
from admin_api_simulator.github import COMMIT, CREATOR, OLDER
from admin_api_simulator.simulator import DEFAULT_TOKEN
from docs_platform_action import main
from docs_platform_action.bundle import staging
from docs_platform_action.bundle.pipe import Pipe
from docs_platform_action.errors import ActionError, internal_error
from docs_platform_action.inputs import paths
from docs_platform_action.job import Job
from docs_platform_action.jobs.export import Export
from docs_platform_action.outputs import Outputs
from docs_platform_action.redaction import Redactor
from docs_platform_action.text import clean
from tests.action import Action, Inputs, Platform
from tests.archives import Site, tar
from tests.keys import ADMIN_KEY
from tests.unit.bundle.test_refused_archives import ARCHIVES
from tests.unit.http.test_faults import ERRORS, message_of
from tests.virtual_platform import API_URL, Sent, Trouble, VirtualPlatform
from tests.virtual_time import VirtualClock

EXPORT: Final = {"domain": "docs.example.com"}
COLLECT: Final = {"mode": "collect", "job_id": "export-finished"}
SITE: Final = {**COLLECT, "site_path": "site"}
PLAN: Final = {"site_path": "site", "compare_with": "published.manifest"}
UNPACK: Final = {
    "mode": "unpack",
    "bundle_path": "notes.txt",
    "bundle_sha256": "0" * 64,
    "site_path": "site",
}
AGENT: Final = {"mode": "agent", "project_id": "demo-project", "job_id": "agent-pull-request"}
SEVERAL: Final = {"domain": "a.example.com\nb.example.com"}
PROJECT: Final = {"project_id": "docs"}
PROJECTS: Final = {"project_id": "a.example.com: 65\nb.example.com: 66"}
PROXY: Final = {"HTTPS_PROXY": "http://proxy.example.com:3128"}


def login_page(status: int = 200) -> Fault:
    """Return a page of something in front of the platform."""
    return Fault(
        status=status,
        body="<!doctype html><title>Log in</title>",
        headers={"Content-Type": "text/html"},
    )


INPUTS: Final[tuple[Inputs, ...]] = (
    {"domain": ""},
    {"admin_key": ""},
    {**COLLECT, "job_id": ""},
    {**AGENT, "project_id": ""},
    {"mode": "import"},
    {"base_url": "api.example.com"},
    {"base_url": "https://münchen.example"},
    {"base_url": "https://user:pa55word@api.example.com"},
    {"base_url": "http://api.example.com"},
    {"admin_key": "Bearer s3cr3t-key"},
    {"domain": "https://docs.example.com/guide"},
    {"domain": "münchen.example.com"},
    {"domain": "docs.example.com\nDocs.Example.COM"},
    {"domain": "a.example.com, b.example.com"},
    {"domain": "docs.example.com: 65"},
    {"domain": f"{ADMIN_KEY}.example.com"},
    {**COLLECT, "job_id": "a\0b"},
    {"timeout": "soon"},
    {"timeout": "0s"},
    {"timeout": "841h"},
    {"wait": "x"},
    {"start_options": "{"},
    {"start_options": '{"domain": "other.example.com"}'},
    {"max_parallel": "0"},
    {"min_pages": "0"},
    {"poll_interval": "45s"},
    {"job_id": "aj_1", "project_id": "prj_1"},
    {"domain": "", "project_id": "A: 65\n66"},
    {"domain": "", "project_id": "A: 65\na: 66"},
    {"domain": "", "project_id": "A: 65\nB: 65"},
    {"domain": "", "project_id": "65, 66"},
    {"domain": "", "project_id": "65\0"},
    {"domain": "", "project_id": "a/b: 65"},
    {"domain": "", "project_id": "..: 65"},
    {"domain": "", "project_id": "# A: 65"},
    {"domain": "", "project_id": "{projectId}"},
    {"domain": "", "project_id": "- A: 65"},
    {"domain": "", "project_id": "docs.example.com"},
    {"domain": "", "project_id": "docs.example.com:"},
    {"domain": "", "project_id": "docs.example.com:65"},
    PROJECTS,
    {**PROJECT, **SEVERAL},
    {"project_id": "A: 65"},
    {**COLLECT, **PROJECTS, "domain": ""},
    {**AGENT, "project_id": "A: 65"},
    {**PROJECT, "min_pages": "100"},
    {"commit": "main"},
    {**COLLECT, **SEVERAL},
    {**UNPACK, "bundle_path": "missing.tar.gz", "bundle_sha256": "sha256:0"},
    {"export_version": "v1"},
    {"min_pagse": "100"},
    {"site_path": "../site"},
    {"site_path": "a\nb"},
    {"site_path": "$RUNNER_TEMP/site"},
    {"site_path": ".\\site"},
    {"site_path": "circle/site"},
    {"site_path": "full"},
    {"site_path": "."},
    {"bundle_path": "notes.txt/bundle"},
    {"bundle_path": "full"},
    {"bundle_path": "out", "site_path": "out/site"},
    {**SEVERAL, "site_path": "site"},
    {**COLLECT, "domain": "", "site_path": "{domain}"},
    {"ca_bundle": "missing.pem"},
    {"ca_bundle": "notes.txt"},
    {**PLAN, "compare_with": "missing.manifest"},
    {**PLAN, "compare_with": "cut-off.manifest"},
    {**PLAN, "compare_with": "full"},
    {**PLAN, "first_publication": "true"},
    {**PLAN, "max_removed": "101%"},
    {**PLAN, "max_removed": "5%", "compare_with": "no-pages.manifest"},
)
"""Inputs that are refused, besides those of a good export."""

START: Final = (
    Fault(status=401, json={"error": "invalid token"}),
    Fault(status=403, json={}),
    login_page(403),
    login_page(),
    Fault(status=404, json={"error": "no such endpoint"}),
    Fault(status=404, json={"error": "domain not found"}),
    Fault(status=409, json={"jobId": "se_9"}),
    Fault(status=400, json={"detail": [{"loc": ["body", "domain"], "msg": "required"}]}),
    Fault(status=302, headers={"Location": "https://login.example.com/sso?token=secret"}),
    Fault(status=301, headers={"Location": "/elsewhere"}),
    Fault(status=429, json={}, headers={"Retry-After": "108000"}),
    login_page(429),
    Fault(cut="before_response"),
    Fault(json={"id": "se_1"}),
    Fault(json={"jobId": f"se_{ADMIN_KEY}"}),
)
START_BY_PROJECT: Final = (
    Fault(status=403, json={}),
    Fault(status=404, json={"error": "no such endpoint"}),
    Fault(status=404, json={"error": "project not found"}),
    Fault(status=409, json={"error": "An export of this deployment is running.", "jobId": "se_9"}),
    Fault(status=409, json={}),
)
READ: Final = (
    Fault(status=404),
    Fault(status=503, json={}),
    login_page(),
    Fault(json={"jobId": "export-finished"}),
    Fault(body=b"[" * 2 * 1024**2),
    Fault(json={"status": "completed", "jobId": f"se_{ADMIN_KEY}"}),
)
DOWNLOAD: Final = (
    Fault(
        status=403,
        body="<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
    ),
    Fault(status=404),
    Fault(status=503),
    login_page(),
    Fault(status=302, headers={"Location": "http://s.example.com/?secret=1"}),
    Fault(status=302, headers={"Location": "/"}),
    Fault(status=304),
    Fault(body=ARCHIVES["gzip of a zip"], headers={"Content-Encoding": "gzip"}),
)
LINKS_IN_MANIFEST: Final[tuple[Mapping[str, str], ...]] = (
    {"a/next": "../b", "b/previous": "../a"},
    {"a -> b": "a"},
)
"""Symbolic links to folders that a manifest cannot hold."""

TROUBLES: Final[tuple[tuple[OSError, Mapping[str, str]], ...]] = (
    (ConnectionRefusedError(), {}),
    (ConnectionRefusedError(), PROXY),
    (OSError("Tunnel connection failed: 407 Proxy Authentication Required"), PROXY),
    (OSError(), {"HTTPS_PROXY": "proxy:port"}),
    (OSError(), {"HTTPS_PROXY": "socks5://proxy.example.com:1080"}),
)
Groups = dict[tuple[str, str], dict[str, dict[str, str]]]
"""Details by fact, by cause and remedy."""

VARIABLE: Final = (
    "(?<=looks like ).*",
    "(?<=cannot be read: ).*",
    "(?<=is not a bundle: ).*",
    "(?<=compressed with ).*?(?=[.])",
    "'[^']*'",
    "^The (?:name of entry|target of symbolic link)",
    "(?<=bytes )[0-9a-f ]+",
    "(?<= is a )[a-z ]+(?=,)",
)
"""What differs between errors of a kind: names, bytes, kinds of files, and what a library or the
storage says."""

UNTRUSTED: Final = {
    10: "certificate has expired",
    62: "Hostname mismatch",
    18: "self-signed certificate",
}


class Runs:
    """Whole runs in one workspace, and the errors that ended them."""

    def __init__(self, workspace: Path) -> None:
        (workspace / "full").mkdir()
        (workspace / "full" / "index.html").touch()
        (workspace / "notes.txt").touch()
        lines = [f"{number:064}  {number}.html\n" for number in range(7)]
        manifest = f"# 7 files\n{''.join(lines)}"
        (workspace / "published.manifest").write_text(manifest)
        (workspace / "no-pages.manifest").write_text(manifest.replace(".html", ".js"))
        (workspace / "cut-off.manifest").write_text(f"{manifest}# text")
        (workspace / "circle").symlink_to("other")
        (workspace / "other").symlink_to("circle")
        self.workspace = workspace
        self._action = Action(workspace)

    def failure(
        self,
        inputs: Inputs,
        plan: Callable[[Simulator], object] = lambda _simulator: None,
        *,
        trouble: Callable[[Sent], Trouble] = lambda _sent: None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> ActionError:
        """Return why a run on a platform after `plan` failed."""
        platform = VirtualPlatform(VirtualClock(), trouble=trouble, **options)
        plan(platform.simulator)
        return self.failure_on(platform, inputs, env)

    def failure_on(
        self, platform: Platform, inputs: Inputs, env: Mapping[str, str] | None = None
    ) -> ActionError:
        """Return why a run failed, the last job if it has several."""
        with mock.patch.object(main, "annotate_failures") as annotate:
            self._action.run(platform, env=env, **inputs)
        failures = [job.failure for job in annotate.call_args.args[1] if job.failure is not None]
        assert failures, inputs
        return failures[-1]

    def faulty(self, operation: Operation, fault: Fault, inputs: Inputs) -> ActionError:
        """Return why a run failed on a platform whose operation always has this fault."""
        return self.failure(inputs, lambda simulator: simulator.script_forever(operation, fault))


FILE: Final = Path(__file__).with_name("errors.md")


def page() -> str:
    """Return the page."""
    # a longer path would be shortened in the texts
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        errors = list(_errors(Runs(workspace)))
    lines = []
    for reason, groups in _by_reason(errors, folder).items():
        lines += [f"\n## `{reason}`\n", "~~~text", *_lines(groups), "~~~"]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    sections = [
        _INTRODUCTION,
        *_network(),
        *_each_once(lines),
        f"\nSHA-256 of all lines in full: `{digest}`",
        "",
    ]
    return "\n".join(sections)


def _by_reason(errors: Iterable[ActionError], folder: str) -> Mapping[str, Groups]:
    """Group errors by failure reason. Details of which only names differ become one."""
    by_reason: dict[str, Groups] = {}
    for kind in ActionError.__subclasses__():
        by_reason[kind.failure_reason] = {}
    for error in errors:
        group = by_reason[error.failure_reason].setdefault((error.cause, error.remedy), {})
        details = group.setdefault(_shown(error.summary, folder), {})
        for detail in error.details:
            details.setdefault(_without_names(detail), _shown(detail, folder))
    return by_reason


_INTRODUCTION: Final = """\
# Errors

Most errors, each once. `…` stands for text further above. Written by `make wording`.
"""


def _network() -> list[str]:
    messages = [re.sub(r" \([A-Z0-9_]+\)", "", message_of(name)) for name in ERRORS]
    return ["## The last error of a network\n", "~~~text", *dict.fromkeys(messages), "~~~"]


def _lines(groups: Groups) -> Iterator[str]:
    """Yield the facts with their details, and below each group its advice."""
    for (cause, remedy), facts in groups.items():
        for fact, details in facts.items():
            yield fact
            for detail in details.values():
                yield f"  {detail}"
        for advice in (cause, remedy):
            if advice:
                yield f"      {advice}"


def _each_once(lines: Iterable[str]) -> Iterator[str]:
    """Shorten long sentences that stand further above, if only names differ.

    The beginning of errors about one input is shortened, too.
    """
    seen: set[str] = set()
    for line in lines:
        text = line.strip()
        indentation = line[: len(line) - len(line.lstrip())]
        sentences = re.split(r"(?<=\.) (?=[A-Z`])|(?<=^Invalid input) ", text)
        shortened = []
        for sentence in sentences:
            is_known = _is_long(sentence) and _key(sentence) in seen
            shortened.append("…" if is_known else sentence)
        seen.update(_key(sentence) for sentence in sentences)
        if shortened == sentences:
            yield line
        elif set(shortened) == {"…"}:
            first_words = " ".join(text.split()[:2])
            yield f"{indentation}{first_words}…"
        else:
            yield indentation + " ".join(shortened).replace("… ", "…")


def _key(sentence: str) -> str:
    """Return a sentence without the names that may differ."""
    return re.sub(r'for \S+ s|"[^"]*"|https:\S+|se_\w+|export-finished', "", sentence)


def _is_long(sentence: str) -> bool:
    key = _key(sentence)
    return len(key.split()) > 3 or key == "Invalid input"


def _shown(text: str, folder: str) -> str:
    return clean(text.replace(folder, "/github"), max_length=10_000)


def _without_names(text: str) -> str:
    return re.sub("|".join(VARIABLE), "…", text)


def _errors(runs: Runs) -> Iterator[ActionError]:
    for inputs in INPUTS:
        yield runs.failure({**EXPORT, **inputs})
    yield from _of_the_api(runs)
    yield from _of_github(runs)
    yield from _of_jobs(runs)
    yield from _of_the_bundle(runs)
    yield from _of_the_system(runs)
    yield from _cancelled()


def _of_github(runs: Runs) -> Iterator[ActionError]:
    """Yield why a run did not find its commit: by what is deployed, and by GitHub's responses."""
    inputs = {
        **EXPORT,
        "commit": COMMIT,
        "github_token": DEFAULT_TOKEN,
        "deployment_creator": CREATOR,
    }

    def failure_after(*deployed: str, **options: Any) -> ActionError:
        """Return why a run failed after the deployments of commits, the last with options."""

        def plan(simulator: Simulator) -> None:
            *earlier, last = deployed
            for commit in earlier:
                simulator.github.add(commit)
            simulator.github.add(last, **options)

        return runs.failure(inputs, plan)

    yield failure_after(OLDER, COMMIT, ends_as="failure")
    yield failure_after(OLDER, COMMIT, seconds=9999)
    yield failure_after(OLDER)
    yield failure_after(COMMIT, ends_as="inactive")
    yield failure_after(COMMIT, COMMIT, environment="preview")
    yield failure_after(COMMIT, environment="github-pages", creator="github-actions[bot]")
    for fault in (
        Fault(status=403, json={"message": "Resource not accessible by integration"}),
        Fault(status=429, json={}),
        Fault(status=502, json={}),
        Fault(body="<!doctype html>"),
    ):
        yield runs.faulty("list_deployments", fault, inputs)


def _of_the_api(runs: Runs) -> Iterator[ActionError]:
    for fault in START:
        yield runs.faulty("start_export", fault, EXPORT)
    for fault in START_BY_PROJECT:
        yield runs.faulty("start_export", fault, {**PROJECT, "domain": ""})
    for fault in READ:
        yield runs.faulty("read_export", fault, COLLECT)
    yield runs.faulty("make_bundle", Fault(status=403, json={"error": "no"}), COLLECT)
    yield runs.faulty(
        "read_export",
        Fault(status=404, json={"error": "not in this project"}),
        {**COLLECT, **PROJECT},
    )
    yield runs.faulty("read_export", Fault(json={"status": "completed"}), {**COLLECT, **PROJECT})
    for fault in (Fault(status=403, json={}), Fault(status=404)):
        yield runs.faulty("read_agent_job", fault, AGENT)
    for fault in (Fault(status=202), Fault(status=409, json={}), Fault(json={})):
        yield runs.faulty("make_bundle", fault, COLLECT)
    yield runs.failure({**EXPORT, "base_url": "https://api.example.com/v1"})
    yield runs.faulty("start_export", Fault(json={"jobId": "se_1"}), {**EXPORT, **SEVERAL})
    yield runs.failure({**EXPORT, **SEVERAL}, _start_the_same_deployment_twice)
    yield _after_the_first_reading(runs, Fault(status=404))
    yield _after_the_first_reading(runs, login_page(403))
    yield runs.faulty("make_bundle", Fault(status=404), COLLECT)
    yield from _of_the_network(runs)


def _start_the_same_deployment_twice(simulator: Simulator) -> None:
    simulator.plan_export("a.example.com", ExportPlan(job_id="se_1"))
    refusal = Fault(status=409, json={"jobId": "se_1"})
    simulator.script_forever("start_export", refusal, domain="b.example.com")


def _after_the_first_reading(runs: Runs, fault: Fault) -> ActionError:
    def plan(simulator: Simulator) -> None:
        simulator.script_forever("read_export", fault, after=[None])

    return runs.failure(EXPORT, plan, export_seconds=3600)


def _of_the_network(runs: Runs) -> Iterator[ActionError]:
    for error, env in TROUBLES:
        yield runs.failure(COLLECT, trouble=lambda _sent, error=error: error, env=env)
    yield runs.failure({**COLLECT, "base_url": "https://192.0.2.1"}, env={"NO_PROXY": "\udcff/8"})
    for code, reason in UNTRUSTED.items():
        untrusted = ssl.SSLCertVerificationError(1, "certificate verify failed")
        untrusted.verify_code = code
        untrusted.verify_message = reason
        yield runs.failure(COLLECT, trouble=lambda _sent, error=untrusted: error)
    with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError):
        no_threads = runs.failure_on("https://127.0.0.1:9", COLLECT)
    # it ran on a real clock
    details = [re.sub(r"for \S+ s", "for 0.5 s", detail) for detail in no_threads.details]
    yield no_threads.with_details(*details)


def _of_jobs(runs: Runs) -> Iterator[ActionError]:
    def reading(**status: object) -> Callable[[Simulator], None]:
        return lambda simulator: simulator.override("read_export", status)

    def agent(**reading: object) -> Callable[[Simulator], None]:
        return lambda simulator: simulator.override("read_agent_job", reading)

    yield runs.failure(
        EXPORT,
        lambda simulator: simulator.plan_export("docs.example.com", ExportPlan(error="no theme")),
    )
    yield runs.failure(COLLECT, reading(status="failed"))
    yield runs.failure({**COLLECT, "min_pages": "99"})
    yield runs.failure({**COLLECT, "min_pages": "99"}, reading(status="completed"))
    yield runs.failure({**SITE, "min_pages": "99"}, reading(status="completed"))
    yield runs.failure({**COLLECT, **PLAN, "max_removed": "10%"})
    is_running = reading(status="running", progress=99.9, pageCount=1412)
    yield runs.failure({**COLLECT, "timeout": "10m"}, is_running)
    yield runs.failure({**COLLECT, "timeout": "10m"}, reading(status="polishing"))
    yield runs.faulty(
        "read_export",
        Fault(status=503, json={}),
        {**COLLECT, "timeout": "10m", "outage_tolerance": "1h"},
    )
    yield runs.failure({**EXPORT, **SEVERAL}, key="another-key")
    yield runs.failure(AGENT, agent(status="failed"))
    yield runs.failure({**AGENT, "require_pr": "true"}, agent(status="completed"))
    yield runs.failure(
        {**AGENT, "require_pr": "true"}, agent(status="completed", prLink="an example")
    )
    yield runs.failure(AGENT, agent(status="completed", id="another"))


def _of_the_bundle(runs: Runs) -> Iterator[ActionError]:
    for fault in DOWNLOAD:
        yield runs.faulty("download", fault, SITE)
    for archive in ARCHIVES.values():
        yield runs.faulty("download", Fault(body=archive), SITE)
    for links in LINKS_IN_MANIFEST:
        site = tar(Site(files={"a/1.html": b"a", "b/2.html": b"b"}, links=links))
        yield runs.faulty("download", Fault(body=site), {**SITE, "manifest_path": "manifest"})
    yield runs.failure(
        SITE,
        trouble=lambda sent: None if sent.url.startswith(API_URL) else ConnectionRefusedError(),
    )
    yield runs.failure(UNPACK)
    yield runs.failure({**UNPACK, "bundle_sha256": hashlib.sha256(b"").hexdigest()})
    gone = runs.workspace / "gone.tar.gz"
    gone.touch()
    # removed after the inputs are read
    with mock.patch.object(Outputs, "check", side_effect=gone.unlink):
        yield runs.failure({**UNPACK, "bundle_path": gone.name})
    with mock.patch.object(Pipe, "start", side_effect=RuntimeError):
        yield runs.failure(SITE)


def _of_the_system(runs: Runs) -> Iterator[ActionError]:
    def failing(number: int) -> OSError:
        return OSError(number, os.strerror(number))

    for number in (errno.ENOSPC, errno.EIO, errno.EEXIST, errno.EACCES):
        with (
            mock.patch.object(staging, "write_all", side_effect=failing(number)),
            # the part is still there
            mock.patch.object(staging.Staged, "__exit__", return_value=None),
        ):
            yield runs.failure({**COLLECT, "bundle_path": f"{number}.tar.gz"})
    with mock.patch.object(paths.tempfile, "TemporaryFile", side_effect=failing(errno.EROFS)):
        yield runs.failure(SITE)
    disk = mock.Mock(total=100 * 1024**3, free=100)
    with mock.patch.object(staging.shutil, "disk_usage", return_value=disk):
        yield runs.failure(SITE, archive="tar")  # a compressed size depends on zlib's version
    for outputs in (Outputs(Path("/"), Redactor()), Outputs(None, Redactor(), env_file=Path("/"))):
        try:
            outputs.check()
        except ActionError as error:
            yield error
    bug = internal_error(KeyError())
    detail = re.sub(r"action \S+, Python \S+", "action 1.2.3, Python 3.13.0.", bug.details[0])
    yield bug.with_details(detail)


def _cancelled() -> Iterator[ActionError]:
    waiting = Job(kind=Export())
    running = Job(kind=Export(), began_at=100.0, job_id="se_1")
    in_flight = mock.Mock(was_sent=True)
    starting = Job(kind=Export(), began_at=100.0, start_attempt=in_flight)
    for job in (waiting, running, starting):
        job.cancel("SIGTERM", 131.0)
        if job.failure is not None:
            yield job.failure


def test_the_page_has_the_sentences_of_the_package() -> None:
    written = FILE.read_text(encoding="utf-8")

    assert written == page(), "read the difference that `make wording` makes"
