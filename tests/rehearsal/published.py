"""A repository with published releases, in a local registry.

GitHub and the database of vulnerabilities are fakes.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.engine import ROOT
from tests.rehearsal.registry import add_blob, add_manifest
from tests.rehearsal.release import OCI

GH = """#!/bin/sh -e
# `gh api --paginate PATH --jq FILTER` answers from the file of the path's last part;
# other requests are added to `requests`.
cd "$(dirname "$0")"
if [ "$2" != --paginate ]; then printf '%s\\n' "$@" >>requests; exit; fi
name="${3##*/}"
jq --raw-output "$5" "${name%%\\?*}.json"
"""


class Osv(ThreadingHTTPServer):
    """Answers like OSV's API, which pip-audit asks."""

    known: tuple[()] | list[dict[str, Any]] = ()
    status = 200


class Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Osv)
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert query == {"package": {"name": "idna", "ecosystem": "PyPI"}, "version": "3.6"}
        self.send_response(self.server.status)
        self.end_headers()
        answer = {"vulns": self.server.known} if self.server.known else {}
        self.wfile.write(json.dumps(answer).encode())


def environment(folder: Path, osv: Osv) -> dict[str, str]:
    """Return variables for git and for the programs of the steps, and those that GitHub sets."""
    return {
        "GIT_AUTHOR_NAME": "Somebody",
        "GIT_AUTHOR_EMAIL": "Somebody",
        "GIT_COMMITTER_NAME": "Somebody",
        "GIT_COMMITTER_EMAIL": "Somebody",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / ".config"),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_AUDIT_OSV_URL": f"http://127.0.0.1:{osv.server_port}",
        "NO_PROXY": "127.0.0.1",
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        "GITHUB_REPOSITORY": "owner/name",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_RUN_ID": "7",
    }


class Project:
    """A clone in a folder, whose images are at `host`, such as `127.0.0.1:5000/name`.

    The registry keeps them in `images`.
    """

    def __init__(self, folder: Path, host: str, images: Path, osv: Osv) -> None:
        self.folder = folder
        self.clone = folder / "clone"
        self.host = host
        self._images = images
        self.osv = osv
        registries = f'[[registry]]\nlocation = "{host}"\ninsecure = true\n'
        files = {
            "gh": GH,
            "releases.json": "[]",
            "issues.json": "[]",
            "requests": "",
            ".config/containers/registries.conf": registries,
            "clone/requirements/image.txt": f"idna==3.6 \\\n    --hash=sha256:{'0' * 64}\n",
        }
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        (folder / "gh").chmod(0o755)
        (self.clone / ".venv-audit").symlink_to(ROOT / ".venv-audit")
        self.git("init", "--quiet")
        self.push_base("one")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.clone, check=True)

    def push_image(self, repository: str, content: str, tag: str | None = None) -> dict[str, Any]:
        config = add_blob(repository, b"{}", f"{OCI}.config.v1+json")
        layers = [add_blob(repository, content.encode(), f"{OCI}.layer.v1.tar")]
        image = {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.manifest.v1+json",
            "config": config,
            "layers": layers,
        }
        return add_manifest(repository, image, tag)

    def push_base(self, content: str) -> None:
        self.base = str(self.push_image(f"{self.host}/library/python", content, "3.13")["digest"])

    def release(self, tag: str, *, draft: bool = False, annotated: bool = True) -> None:
        """Push an image for two platforms, and publish or draft its release.

        The image has the annotations of release.yml.
        """
        repository = f"{self.host}/owner/{tag}"
        manifests = []
        for architecture in ("amd64", "arm64"):
            image = self.push_image(repository, architecture)
            platform = {"architecture": architecture, "os": "linux"}
            manifests.append({**image, "platform": platform})
        annotations = {}
        if annotated:
            name = f"{self.host}/library/python:3.13"
            annotations["org.opencontainers.image.base.name"] = name
            annotations["org.opencontainers.image.base.digest"] = self.base
        index = {
            "schemaVersion": 2,
            "mediaType": f"{OCI}.index.v1+json",
            "manifests": manifests,
            "annotations": annotations,
        }
        digest = add_manifest(repository, index, tag)["digest"]
        pinned = f"runs:\n  image: docker://{repository}@{digest} # {tag}\n"
        (self.clone / "action.yml").write_text(pinned)
        self.git("add", "action.yml", "requirements")
        self.git("commit", "--quiet", "--message", tag)
        self.git("tag", tag)
        file = self.folder / "releases.json"
        releases = json.loads(file.read_text())
        releases.insert(0, {"tag_name": tag, "draft": draft})
        file.write_text(json.dumps(releases))

    def delete(self, tag: str, what: str) -> None:
        """Delete files of the registry that belong to a release's image."""
        shutil.rmtree(self._images / "owner" / tag / what)

    def run_step(self, job: str, name: str, env: Mapping[str, str] | None = None) -> int:
        """Run a step of weekly.yml in the shell that GitHub uses, and return its exit code."""
        jobs = yaml.safe_load((ROOT / ".github/workflows/weekly.yml").read_text())["jobs"]
        (step,) = (step for step in jobs[job]["steps"] if step.get("name") == name)
        constants = {key: value for key, value in step.get("env", {}).items() if "${{" not in value}
        variables = {**os.environ, **constants, **(env or {})}
        shell = ["bash", "-e"]
        if step.get("shell") == "bash":
            shell += ["-o", "pipefail"]
        command = [*shell, "-c", step["run"]]
        done = subprocess.run(command, cwd=self.clone, env=variables, check=False)
        return done.returncode

    def check(self) -> tuple[int, list[str]]:
        """Return the exit code of the check, and the lines that are passed on to the issue."""
        code = self.run_step("check", "Check")
        self.run_step("check", "Pass on the findings")
        output = (self.folder / "output").read_text()
        (findings,) = re.findall(r"\Afindings<<END\n(.*)\nEND\n\Z", output, re.DOTALL)
        assert (self.folder / "summary").read_text() == findings
        return code, findings.splitlines()
