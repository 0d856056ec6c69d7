"""The scripts of docs/outside-github-actions.md, run as they are there, with the image and a simulated platform."""

import json
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from admin_api_simulator import Simulator
from tests.ended import without_key
from tests.engine import LABEL, docker, remove_labelled_containers
from tests.keys import ADMIN_KEY
from tests.outside_page import block, gitlab_job, jenkins_script
from tests.shells import source

pytestmark = pytest.mark.timeout(900)  # the first test of a session builds the image

OWNER = (1001, 118)


class Machine:
    """A machine with a workspace and the scripts of the page, with other addresses in them."""

    def __init__(self, folder: Path, image: str, platform: Simulator) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        if os.geteuid() == 0:
            os.chown(self.workspace, *OWNER)
        self.label = f"{LABEL}={folder.name}"
        self.settings = folder / "export-docs.secret"  # the search for the key leaves such files out
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self._folder = folder
        self._platform = platform
        self._replaced = {
            "ghcr.io/OWNER/docs-platform-action@sha256:DIGEST": image,
            "docker run": f"docker run --network=host --label {self.label}",
            "https://api.example.com": platform.base_url,
            "/srv/docs": str(self.workspace),
            "/etc/export-docs.env": str(self.settings),
        }

    def adapted(self, script: str) -> str:
        for text, replacement in self._replaced.items():
            script = script.replace(text, replacement)
        return script

    def start(self, script: str, *, env: Mapping[str, str] | None = None, shell: str = "sh") -> "subprocess.Popen[str]":
        """Start a script in the workspace, in its own session."""
        file = self._folder / "script.sh"
        file.write_text(self.adapted(script))
        return subprocess.Popen(
            [*shell.split(), str(file)],
            cwd=self.workspace,
            env={**os.environ, "DOCS_ADMIN_KEY": ADMIN_KEY, "TMPDIR": str(self.temporary), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, script: str, *, env: Mapping[str, str] | None = None, shell: str = "sh") -> tuple[int, str]:
        """Run a script to its end; return its exit code and what it printed."""
        with self.start(script, env=env, shell=shell) as process:
            printed, _ = process.communicate(timeout=300)
        assert [*self.temporary.iterdir()] == [], "the file with the key is removed"
        return process.returncode, without_key(printed)

    def container(self) -> str:
        """Return the container's ID, after waiting for the first reading of its job."""
        deadline = time.monotonic() + 120
        while not self._platform.count("read_export"):
            assert time.monotonic() < deadline, "no job was started"
            time.sleep(0.05)
        return docker("ps", "--quiet", "--filter", f"label={self.label}").strip()


@pytest.fixture
def machine(tmp_path: Path, image: str, platform: Simulator) -> Iterator[Machine]:
    machine = Machine(tmp_path, image, platform)
    yield machine
    remove_labelled_containers(machine.label)


def test_the_pipelines_export_and_hand_on_the_outputs(machine: Machine) -> None:
    (machine.workspace / "export-docs.sh").write_text(machine.adapted(block("In a shell", "sh")))

    code, printed = machine.run("\n".join(["set -e", *gitlab_job()["script"]]))

    outputs = source(machine.workspace / "outputs.env")
    assert (code, outputs["status"], outputs["sitePath"]) == (0, "completed", "site"), printed
    assert printed.endswith("Exported 12 pages to site\n")
    assert "bundleUrl=***\n" in printed
    assert (machine.workspace / "job.env").read_text() == f"DOCS_JOB_ID={outputs['jobId']}\n"
    assert machine.run(jenkins_script()) == (0, f"Publishing site of job {outputs['jobId']}\n")
    found, folder = (machine.workspace / "outputs.env").stat(), machine.workspace.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o600, folder.st_uid, folder.st_gid)


@pytest.mark.parametrize(
    ("domain", "reason", "shell"),
    [
        ("failing.example.com", "job-failed", "dash"),
        ("unknown.example.com", "not-found", "bash"),
        ("no-plan.example.com", "forbidden", "busybox sh"),
    ],
)
def test_a_failure_is_named_and_removes_the_outputs_of_an_earlier_run(
    machine: Machine, domain: str, reason: str, shell: str
) -> None:
    if shutil.which(shell.split()[0]) is None:
        pytest.skip(f"{shell} is not installed")
    (machine.workspace / "outputs.env").write_text("export bundleUrl='of an earlier run'\n")

    code, printed = machine.run(block("In a shell", "sh").replace("docs.example.com", domain), shell=shell)

    outputs = source(machine.workspace / "outputs.env")
    assert (code, "bundleUrl" in outputs) == (1, False), printed
    assert printed.endswith(f"Failed: {reason}\n")


def test_a_container_that_does_not_start_is_a_failure_without_outputs(machine: Machine) -> None:
    script = block("In a shell", "sh").replace("docker run", "docker run --entrypoint /missing")

    code, _ = machine.run(script)

    assert code in {125, 127}
    assert not (machine.workspace / "outputs.env").exists()


@pytest.mark.parametrize(
    ("second", "exit_code", "site"),
    [("help.example.com", 0, "site/help.example.com"), ("failing.example.com", 1, None)],
)
def test_several_domains_are_passed_by_name(machine: Machine, second: str, exit_code: int, site: str | None) -> None:
    whole = block("In a shell", "sh")
    lines = [line for line in whole.splitlines() if "INPUT_DOMAIN" not in line]
    script = (
        "\n".join(lines)
        .replace("=site'", "=site/{domain}'")
        .replace('--env-file "$settings"', '--env-file "$settings" -e INPUT_DOMAIN')
    )

    code, printed = machine.run(script, env={"INPUT_DOMAIN": f"docs.example.com\n{second}"})

    rows = json.loads(source(machine.workspace / "outputs.env")["results"])
    assert (code, [row["sitePath"] for row in rows]) == (exit_code, ["site/docs.example.com", site]), printed


OTHER_KEY = "adm_0ther-51b7e2f80c6d"


@pytest.mark.parametrize(
    ("keys", "exit_code"),
    [
        ({"INPUT_ADMIN_KEY": ADMIN_KEY}, 0),
        ({"INPUT_ADMIN_KEY": ADMIN_KEY, "INPUT_ADMIN-KEY": ADMIN_KEY}, 0),
        ({"INPUT_ADMIN_KEY": ADMIN_KEY, "INPUT_ADMIN-KEY": OTHER_KEY}, 1),
    ],
)
def test_names_with_underscores_are_inputs_and_the_key_is_hidden_in_both_forms(
    image: str, platform: Simulator, keys: Mapping[str, str], exit_code: int
) -> None:
    inputs = {"INPUT_BASE_URL": platform.base_url, "INPUT_POLL_INTERVAL": "100ms", "INPUT_DOMAIN": "docs.example.com"}
    echoed = {f"INPUT_{key.upper()}": "x" for key in keys.values()}  # a warning lists the names that are not inputs
    options = [argument for name, value in {**inputs, **keys, **echoed}.items() for argument in ("-e", f"{name}={value}")]

    ended = subprocess.run(
        ["docker", "run", "--rm", "--network=host", "--label", LABEL, *options, image],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    printed = without_key(ended.stdout + ended.stderr)
    assert (ended.returncode, platform.count("start_export")) == (exit_code, 1 - exit_code), printed
    assert printed.count("`***`") == 1, printed  # names that are hidden look the same, and are listed once


class TestCron:
    def test_a_new_site_replaces_the_old_one(self, machine: Machine) -> None:
        settings = machine.adapted(block("Cron", "dotenv"))
        machine.settings.write_text(settings.replace("INPUT_ADMIN_KEY=…", f"INPUT_ADMIN_KEY={ADMIN_KEY}"))
        machine.settings.chmod(0o600)

        first = machine.run(block("Cron", "sh"))
        second = machine.run(block("Cron", "sh"))

        assert (first, second) == ((0, ""), (0, ""))
        found = {path.name for path in machine.workspace.iterdir()}
        assert found == {"site", "site.old", "outputs.env", "export.log"}

    def test_a_failure_keeps_the_site_and_prints_the_log(self, machine: Machine) -> None:
        settings = machine.adapted(block("Cron", "dotenv")).replace("docs.example.com", "failing.example.com")
        machine.settings.write_text(settings.replace("INPUT_ADMIN_KEY=…", f"INPUT_ADMIN_KEY={ADMIN_KEY}"))
        (machine.workspace / "site").mkdir()

        code, printed = machine.run(block("Cron", "sh"))

        assert code == 1
        assert "Error: Export of failing.example.com: " in printed
        assert (machine.workspace / "site").is_dir()


class TestLongExport:
    @pytest.fixture
    def platform(self) -> Iterator[Simulator]:
        with Simulator(key=ADMIN_KEY, export_seconds=3600, host="127.0.0.1") as platform:
            yield platform

    @pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the script", "to all its processes"])
    @pytest.mark.parametrize("shell", ["dash", "bash"])
    def test_a_cancel_writes_the_outputs_and_the_key_is_in_no_process_list(
        self, machine: Machine, send: Callable[[int, int], None], shell: str
    ) -> None:
        with machine.start(block("In a shell", "sh"), shell=shell) as process:
            container = machine.container()
            modes = [stat.S_IMODE(file.stat().st_mode) for file in machine.temporary.iterdir()]
            processes = docker("top", container, "-eo", "pid,args", "-ww") + arguments_in_session(process.pid)
            inspected = docker("inspect", container)
            send(process.pid, signal.SIGTERM)
            printed, _ = process.communicate(timeout=60)

        outputs = source(machine.workspace / "outputs.env")
        assert process.returncode == 143, printed
        assert (outputs["failureReason"], outputs["status"] in {"queued", "running"}) == ("cancelled", True)
        assert printed.endswith(f"INPUT_MODE=collect and INPUT_JOB_ID={outputs['jobId']}\n")
        without_key(printed)
        assert modes == [0o600]
        assert "--env-file" in without_key(processes)
        assert f"INPUT_ADMIN_KEY={ADMIN_KEY}" in inspected, "the page says so"


def arguments_in_session(leader: int) -> str:
    """Return the command lines of a session's processes."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.getsid(int(file.parent.name)) == leader:
                found.append(file.read_bytes().replace(b"\0", b" ").decode())
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return "\n".join(found)
