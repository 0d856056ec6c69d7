"""The files of examples/outside and the page about them, run as they are.

They use the image and a simulated platform.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from admin_api_simulator import ExportPlan, Simulator
from admin_api_simulator.jobs import DOCS_PROJECT
from admin_api_simulator.site import build_archive, site_files
from docs.pages import block_outside, blocks_of
from tests.ended import without_key
from tests.engine import LABEL, ROOT, docker, remove_labelled_containers
from tests.folders import read_tree
from tests.gitlab import Pipeline
from tests.keys import ADMIN_KEY
from tests.shells import source

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image

OWNER = (1001, 118)
OUTSIDE = ROOT / "examples" / "outside"
SCRIPT = (OUTSIDE / "export-docs.sh").read_text("utf-8")
REFRESH = (OUTSIDE / "refresh-docs.sh").read_text("utf-8")
IMAGE = "ghcr.io/OWNER/docs-platform-action@sha256:DIGEST"
OTHER_KEY = "adm_0ther-51b7e2f80c6d"


class Machine:
    """A machine with a workspace and the scripts of the page.

    Its scripts have other addresses and a shorter pause.
    """

    def __init__(self, folder: Path, image: str, platform: Simulator) -> None:
        self.label = f"{LABEL}={uuid.uuid4().hex[:12]}"
        self.settings = folder / "export-docs.env"
        self.workspace = folder / "workspace"
        self.temporary = folder / "temporary"
        self.workspace.mkdir()
        self.temporary.mkdir()
        if os.geteuid() == 0:
            os.chown(self.workspace, *OWNER)
        self._script = folder / "script.sh"
        options = f"--network=host --label {self.label} -e INPUT_POLL_INTERVAL=100ms"
        self._replaced = {
            IMAGE: image,
            "docker run": f"docker run {options}",
            "https://api.example.com": platform.base_url,
            "/srv/docs": str(self.workspace),
            "/etc/export-docs.env": str(self.settings),
        }

    def adapted(self, script: str) -> str:
        for text, replacement in self._replaced.items():
            script = script.replace(text, replacement)
        return script

    def start(
        self, script: str, *, env: Mapping[str, str] | None = None, shell: str = "sh"
    ) -> "subprocess.Popen[str]":
        """Start a script in the workspace, in its own session."""
        self._script.write_text(self.adapted(script))
        environment = {
            **os.environ,
            "DOCS_ADMIN_KEY": ADMIN_KEY,
            "TMPDIR": str(self.temporary),
            **(env or {}),
        }
        return subprocess.Popen(
            [*shell.split(), str(self._script)],
            cwd=self.workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(
        self, script: str, *, env: Mapping[str, str] | None = None, shell: str = "sh"
    ) -> tuple[int, str]:
        """Run a script to its end; return its exit code and what it printed."""
        with self.start(script, env=env, shell=shell) as process:
            printed, _ = process.communicate(timeout=300)
        assert [*self.temporary.iterdir()] == [], "the file with the key is removed"
        return process.returncode, without_key(printed)

    def outputs(self) -> dict[str, str]:
        return source(self.workspace / "outputs.env")


@pytest.fixture
def machine(tmp_path: Path, image: str, platform: Simulator) -> Iterator[Machine]:
    machine = Machine(tmp_path, image, platform)
    yield machine
    remove_labelled_containers(machine.label)


def test_the_shortest_form_exports_a_site(machine: Machine) -> None:
    script = block_outside("In a shell", "sh")

    code, printed = machine.run(script, env={"INPUT_ADMIN_KEY": ADMIN_KEY})

    assert code == 0, printed
    assert (machine.workspace / "site" / "index.html").exists(), printed


def test_jenkins_exports_and_reads_the_outputs(machine: Machine) -> None:
    (machine.workspace / "export-docs.sh").write_text(machine.adapted(SCRIPT))
    pipeline = (OUTSIDE / "Jenkinsfile").read_text("utf-8")
    (export,) = re.findall(r"sh '(sh export-docs\.sh)'", pipeline)
    (publish,) = re.findall(r"'''(.*?)'''", pipeline, flags=re.DOTALL)

    code, printed = machine.run(export)

    outputs = machine.outputs()
    assert code == 0, printed
    assert outputs["status"] == "completed", printed
    assert outputs["sitePath"] == "site", printed
    # the page for missing addresses is one of them
    assert printed.endswith("Exported 13 pages to site\n")
    assert "bundleUrl=***\n" in printed
    assert machine.run(publish) == (0, f"Publishing site of job {outputs['jobId']}\n")
    found = (machine.workspace / "outputs.env").stat()
    folder = machine.workspace.stat()
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert (found.st_uid, found.st_gid) == (folder.st_uid, folder.st_gid)


@pytest.fixture
def pipeline(tmp_path: Path, image: str, platform: Simulator) -> Iterator[Pipeline]:
    """Return the pipeline of the page.

    The project's variables have the key and the address of the simulated platform.
    """
    text = yaml.safe_load(block_outside("GitLab CI", "yaml"))
    variables = {
        "DOCS_ADMIN_KEY": ADMIN_KEY,
        "INPUT_BASE_URL": platform.base_url,
        "INPUT_POLL_INTERVAL": "100ms",
        "OUTPUT_ENV_FILE": "outputs.env",
    }
    pipeline = Pipeline(text, folder=tmp_path, images={IMAGE: image}, variables=variables)
    yield pipeline
    remove_labelled_containers(pipeline.label)


def test_gitlab_runs_the_action_as_the_image_of_a_job(pipeline: Pipeline) -> None:
    code, log = pipeline.run("export-docs")

    assert code == 0, log
    project = pipeline.project("export-docs")
    (kept,) = pipeline.job("export-docs")["artifacts"]["paths"]
    assert (project / kept / "index.html").exists()
    assert source(project / "outputs.env")["sitePath"] == "site"


def test_a_cancel_of_a_gitlab_job_reaches_the_action(
    pipeline: Pipeline, platform: Simulator
) -> None:
    platform.plan_export("docs.example.com", ExportPlan(seconds=3600))

    with pipeline.start("export-docs") as process:
        wait_until_read(platform)
        pipeline.cancel()
        code, log = pipeline.finish("export-docs", process)

    outputs = source(pipeline.project("export-docs") / "outputs.env")
    assert code == 143, log
    assert outputs["failureReason"] == "cancelled", log
    inputs = f"mode: collect, project-id: {DOCS_PROJECT}, job-id: {outputs['jobId']}"
    assert f"Collect it in a later run with `{inputs}`" in log


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
def test_a_failure_is_named_and_removes_the_outputs_of_an_earlier_run(
    machine: Machine, shell: str
) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    (machine.workspace / "outputs.env").write_text("export bundleUrl='of an earlier run'\n")
    script = SCRIPT.replace("docs.example.com", "unknown.example.com")

    code, printed = machine.run(script, shell=shell)

    assert code == 1, printed
    assert "bundleUrl" not in machine.outputs(), printed
    assert printed.endswith("Failed: not-found\n")


def test_a_container_that_does_not_start_is_a_failure_without_outputs(machine: Machine) -> None:
    script = SCRIPT.replace("docker run", "docker run --entrypoint /missing")

    code, _ = machine.run(script)

    assert code in {125, 127}
    assert not (machine.workspace / "outputs.env").exists()


def test_several_domains_are_passed_by_name(machine: Machine) -> None:
    script = re.sub(".*INPUT_DOMAIN.*\n", "", SCRIPT)
    script = script.replace("=site'", "=site/{domain}'")
    script = script.replace('--env-file "$settings"', '--env-file "$settings" -e INPUT_DOMAIN')
    env = {"INPUT_DOMAIN": "docs.example.com\nfailing.example.com"}

    code, printed = machine.run(script, env=env)

    rows = json.loads(machine.outputs()["results"])
    site_paths = [row["sitePath"] for row in rows]
    assert code == 1, printed
    assert site_paths == ["site/docs.example.com", None], printed


def test_with_cron_a_new_site_replaces_the_old_one_and_a_failure_keeps_it_and_prints_the_log(
    machine: Machine,
) -> None:
    settings = machine.adapted(block_outside("Cron", "dotenv"))
    settings = settings.replace("INPUT_ADMIN_KEY=…", f"INPUT_ADMIN_KEY={ADMIN_KEY}")
    (machine.workspace / "site").mkdir()

    machine.settings.write_text(settings)
    assert machine.run(REFRESH) == (0, "")

    machine.settings.write_text(settings.replace(DOCS_PROJECT, "failing"))
    code, printed = machine.run(REFRESH)

    assert code == 1, printed
    assert "Error: Export of project failing: " in printed, printed
    assert {path.name for path in machine.workspace.iterdir()} == {"site", "site.old", "export.log"}
    assert (machine.workspace / "site" / "index.html").is_file()


@pytest.mark.parametrize(
    ("shell", "send"),
    [("dash", os.kill), ("bash", os.killpg)],
    ids=["to the script", "to all its processes"],
)
def test_a_cancel_writes_the_outputs_and_the_key_is_in_no_process_list(
    machine: Machine, platform: Simulator, shell: str, send: Callable[[int, int], None]
) -> None:
    platform.plan_export("docs.example.com", ExportPlan(seconds=3600))

    with machine.start(SCRIPT, shell=shell) as process:
        wait_until_read(platform)
        container = docker("ps", "--quiet", "--filter", f"label={machine.label}").strip()
        modes = [stat.S_IMODE(file.stat().st_mode) for file in machine.temporary.iterdir()]
        processes = docker("top", container, "-eo", "pid,args", "-ww")
        processes += arguments_in_session(process.pid)
        inspected = docker("inspect", container)
        send(process.pid, signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)

    outputs = machine.outputs()
    assert process.returncode == 143, printed
    assert outputs["failureReason"] == "cancelled", printed
    end_of_log = f"INPUT_MODE=collect and INPUT_JOB_ID={outputs['jobId']}\n"
    assert without_key(printed).endswith(end_of_log)
    assert modes == [0o600]
    assert "--env-file" in without_key(processes)
    assert f"INPUT_ADMIN_KEY={ADMIN_KEY}" in inspected, "the page says so"


def test_behind_an_air_gap_an_archive_is_unpacked_without_a_network(
    image: str, tmp_path: Path
) -> None:
    site = site_files(domain="docs.example.com", pages=3)
    archive = build_archive(site, "zip")
    sha256 = hashlib.sha256(archive).hexdigest()
    (tmp_path / "docs.bundle").write_bytes(archive)
    (tmp_path / "docs.bundle.sha256").write_text(f"{sha256}  docs.bundle\n")
    page = (ROOT / "docs" / "approvals.md").read_text("utf-8")
    (script,) = blocks_of(page, "## Behind an air gap", "sh")
    script = script.replace("    docs-platform-action\n", f"    {image}\n")

    done = subprocess.run(
        ["sh", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    tree = read_tree(tmp_path / "site")
    files = {name: body for name, body in tree.items() if body is not None}
    assert files == site


def wait_until_read(platform: Simulator) -> None:
    deadline = time.monotonic() + 120
    while not platform.count("read_export"):
        assert time.monotonic() < deadline, "no job was started"
        time.sleep(0.05)


def arguments_in_session(leader: int) -> str:
    """Return the command lines of a session's processes."""
    command = ["ps", "-ww", "-o", "args", "-s", str(leader)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
