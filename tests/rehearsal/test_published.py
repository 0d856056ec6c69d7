"""What weekly.yml finds and writes.

Its own steps run, with skopeo, pip-audit and a local registry.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from release.published import findings_of
from tests.engine import ROOT, skip_or_fail
from tests.rehearsal.published import Answer, Osv, Project, environment
from tests.rehearsal.registry import need_registry_tools, registry

FINE = (
    "Every image can be pulled, and v1.10.0 has the newest base image "
    "and no package with a known vulnerability."
)
IDNA = {"package": {"name": "idna", "ecosystem": "PyPI"}}
FIXED = {
    **IDNA,
    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.7"}]}],
}
KNOWN = [{"id": "PYSEC-1", "affected": [FIXED]}, {"id": "PYSEC-2", "affected": [IDNA]}]
BOT = {"login": "github-actions[bot]"}
DOCKER = """#!/bin/sh
echo Name: docker.io/library/$4
echo Digest: sha256:1
echo
echo Name: other
echo Digest: sha256:2
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Serve a registry, and return its host and the folder of its repositories."""
    need_registry_tools()
    folder = tmp_path_factory.mktemp("registry")
    with registry(folder) as host:
        yield host, folder / "images/docker/registry/v2/repositories"


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: tuple[str, Path]
) -> Iterator[Project]:
    if not (ROOT / ".venv-audit/bin/pip-audit").exists() or shutil.which("jq") is None:
        skip_or_fail(
            "Tests of what is published need jq, and pip-audit, "
            "which `make .venv-audit/installed` installs."
        )
    host, folder = images
    own = uuid.uuid4().hex
    with Osv(("127.0.0.1", 0), Answer) as osv:
        for name, value in environment(tmp_path, osv).items():
            monkeypatch.setenv(name, value)
        threading.Thread(target=osv.serve_forever, args=(0.01,), daemon=True).start()
        yield Project(tmp_path, f"{host}/{own}", folder / own, osv)
        osv.shutdown()


def delete_the_layer_for_arm64(project: Project) -> None:
    digest = hashlib.sha256(b"arm64").hexdigest()  # the layer's content
    project.delete("v1.9.0", f"_layers/sha256/{digest}")


def several_at_once(project: Project) -> None:
    project.delete("v1.9.0", "_manifests")
    project.push_base("two")
    project.osv.status = 503


def without_image(project: Project) -> None:
    project.release("v1.10.1")
    project.git("checkout", "--quiet", "v1.10.0", "--", "action.yml")
    project.git("commit", "--quiet", "--message=Another image")
    project.git("tag", "--force", "v1.10.1")


def test_a_repository_without_a_published_release_passes(project: Project) -> None:
    project.release("v1.0.0", draft=True)
    project.delete("v1.0.0", "_manifests")

    assert project.check() == (0, ["There is no published release of a version yet."])


@pytest.mark.parametrize(
    ("change", "findings"),
    [
        (lambda _: None, []),
        (lambda project: project.release("v2.0.0", draft=True, annotated=False), []),
        (lambda project: project.release("v1.11.0-rc.1", annotated=False), []),
        (
            lambda project: project.delete("v1.9.0", "_manifests"),
            [r"v1\.9\.0: `\S+` cannot be pulled .*manifest unknown"],
        ),
        (
            delete_the_layer_for_arm64,
            [r"v1\.9\.0: `\S+` cannot be pulled without credentials: `skopeo copy failed: "],
        ),
        (
            lambda project: project.push_base("two"),
            [r"v1\.10\.0: its base image `\S+/python:3\.13` is now `sha256:\w+`, no"],
        ),
        (
            lambda project: project.release("v1.10.1", annotated=False),
            [r"v1\.10\.1: `\S+` has no annotations `\S+\.base\.name`"],
        ),
        (
            lambda project: setattr(project.osv, "known", KNOWN),
            [
                (
                    r"v1\.10\.0: idna 3\.6 has known vulnerabilities: "
                    r"PYSEC-1 \(fixed in 3\.7\), PYSEC-2 \(not fixed yet\)\. "
                )
            ],
        ),
        (
            lambda project: setattr(project.osv, "status", 503),
            [
                (
                    r"v1\.10\.0: a check could not run: "
                    r"`pip-audit --strict failed: .*ServiceError`\. Run "
                )
            ],
        ),
        (
            several_at_once,
            [
                r"v1\.10\.0: its base image",
                r"v1\.10\.0: a check could not run",
                r"v1\.9\.0: \S+ cannot be",
            ],
        ),
        (
            without_image,
            [
                (
                    r"v1\.10\.1: a check could not run: "
                    r"`action.yml at v1\.10\.1 names no published image\. "
                )
            ],
        ),
    ],
)
def test_all_findings_are_reported_together(
    project: Project, change: Callable[[Project], object], findings: list[str]
) -> None:
    project.release("v1.9.0")
    project.release("v1.10.0")
    change(project)

    code, lines = project.check()

    assert code == (1 if findings else 0)
    patterns = [f"- {finding}" for finding in findings] or [re.escape(FINE)]
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.match(pattern, line), line


def test_an_unexpected_answer_hides_no_finding() -> None:
    def look(_: str) -> Iterator[str]:
        yield "one"
        raise AttributeError("::error::'NoneType' has no attribute 'get'\n" + "x" * 1000)

    one, other = findings_of(look, "v1.0.0")

    assert one == "one"
    assert other.startswith("v1.0.0: a check could not run: `")
    assert len(other) < 500


def test_a_check_that_cannot_ask_github_fails(project: Project) -> None:
    (project.folder / "releases.json").write_text("not found")

    assert project.check() == (1, ["The check failed before it had a result. Its log says why."])


@pytest.mark.parametrize(
    ("issues", "request_line"),
    [
        ([], ["POST", "repos/owner/name/issues"]),
        ([{"number": 3, "user": {"login": "somebody"}}], ["POST", "repos/owner/name/issues"]),
        ([{"number": 5, "user": BOT}], ["PATCH", "repos/owner/name/issues/5"]),
        (
            [{"number": 9, "user": BOT}, {"number": 5, "user": BOT}],
            ["PATCH", "repos/owner/name/issues/9"],
        ),
    ],
)
@pytest.mark.parametrize("findings", ["- v1.0.0: `$(touch x)` @somebody", ""])
def test_one_issue_lists_the_findings(
    project: Project, issues: list[dict[str, object]], request_line: list[str], findings: str
) -> None:
    title = "Weekly check: something is wrong with what is published"
    listed: list[dict[str, object]] = [{"number": 1, "title": "Other", "user": BOT}]
    listed += [{"title": title, **issue} for issue in issues]
    (project.folder / "issues.json").write_text(json.dumps(listed))

    assert project.run_step("issue", "Write the issue", {"FINDINGS": findings}) == 0

    request = (project.folder / "requests").read_text()
    assert request.splitlines()[:4] == ["api", "--method", *request_line]
    assert (f"title={title}\n" in request) == (request_line[0] == "POST")
    assert f"body={findings or 'The check did not finish.'}" in request
    assert "[The run](https://github.com/owner/name/actions/runs/7)" in request


def test_a_release_pins_the_base_image_of_each_stage(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    steps = workflow["jobs"]["image"]["steps"]
    (step,) = (step for step in steps if step.get("id") == "base")
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }

    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=ROOT, env=env, check=True)

    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    dockerfile = (ROOT / "Dockerfile").read_text()
    base = outputs["from"]
    base_without_tag = base.partition(":")[0]
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {base}
    assert outputs["name"] == f"docker.io/library/{base}"
    assert outputs["pinned"] == f"docker.io/library/{base_without_tag}@sha256:1"
