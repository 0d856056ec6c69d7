"""The checks before a release. All mistakes are reported together, each with what to do."""

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from release.changelog import CHANGELOG, changelog_section
from release.errors import ReleaseError
from release.repository import Repository
from release.version import Version, parse_version

BRANCH = "main"
_MAX_FILES = 5
_PACKAGE = "src/docs_platform_action/__init__.py"


@dataclass(frozen=True)
class Finding:
    """The result of a check. The text of a refusal says what to do."""

    state: Literal["ok", "refused", "skipped"]
    text: str

    def __str__(self) -> str:
        return f"{self.state:<8} {self.text}"


def check_release(repository: Repository, text: str, *, ask_github: bool = False) -> list[Finding]:
    """Return the results of all checks.

    They ask the remote `origin` for its refs, and GitHub for the result of CI if `ask_github` is set.
    """
    checks: list[Callable[[], str]] = [partial(_clean_tree, repository), partial(_branch, repository)]
    try:
        version = parse_version(text)
    except ReleaseError as error:
        findings = [Finding("refused", str(error)), *map(_finding, checks), *_origin(repository, None)]
    else:
        checks[:0] = [partial(check, repository, version) for check in (_project, _package, _changelog)]
        checks.append(partial(_local_tag, repository, version))
        findings = [Finding("ok", f"{version} is a version."), *map(_finding, checks), *_origin(repository, version)]
    if ask_github:
        findings.append(_finding(partial(_ci, repository)))
    return findings


def refuse(findings: Sequence[Finding]) -> None:
    """Raise ReleaseError if a check refuses the release."""
    if refused := sum(finding.state == "refused" for finding in findings):
        raise ReleaseError(f"{refused} of {len(findings)} checks refuse this release. Each says above what to do.")


def ci_request(commit: str) -> list[str]:
    """Return the command that asks GitHub for the runs of CI on a commit."""
    return ["gh", "api", f"repos/{{owner}}/{{repo}}/actions/workflows/ci.yml/runs?branch={BRANCH}&head_sha={commit}"]


def _finding(check: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", check())
    except ReleaseError as error:
        return Finding("refused", str(error))


def _project(repository: Repository, version: Version) -> str:
    found = tomllib.loads(repository.read("pyproject.toml")).get("project", {}).get("version")
    return _same_version("pyproject.toml", found, version)


def _package(repository: Repository, version: Version) -> str:
    found = re.search(r'^__version__\b.*= "(.*)"$', repository.read(_PACKAGE), re.MULTILINE)
    return _same_version(_PACKAGE, found and found[1], version)


def _same_version(path: str, found: object, version: Version) -> str:
    if found != str(version):
        raise ReleaseError(f"{path} has version {found}. Release that version, or change it to {version} on {BRANCH}.")
    return f"{path} has this version."


def _changelog(repository: Repository, version: Version) -> str:
    changelog_section(repository.read(CHANGELOG), version)
    return f"{CHANGELOG} has a section for this version."


def _clean_tree(repository: Repository) -> str:
    if changed := repository.changed_files():
        more = f" and {len(changed) - _MAX_FILES} more" if len(changed) > _MAX_FILES else ""
        raise ReleaseError(f"Files are not committed: {', '.join(changed[:_MAX_FILES])}{more}. Commit or remove them.")
    return "All files are committed."


def _branch(repository: Repository) -> str:
    if (branch := repository.branch()) != BRANCH:
        raise ReleaseError(f"The branch is {branch or 'a detached HEAD'}. Releases are made from {BRANCH}: git switch {BRANCH}.")
    return f"The branch is {BRANCH}."


def _local_tag(repository: Repository, version: Version) -> str:
    if commit := repository.tag_commit(version.tag):
        raise ReleaseError(
            f"The tag {version.tag} exists in this clone, at {commit}. Release the next version, or remove the tag if it was "
            f"never pushed: git tag --delete {version.tag}."
        )
    return f"The tag {version.tag} is free in this clone."


def _origin(repository: Repository, version: Version | None) -> list[Finding]:
    """Ask `origin` once, for the tag and the tip of main."""
    if not repository.has_origin():
        return [Finding("skipped", f"There is no remote origin: neither its tags nor the tip of {BRANCH} can be checked.")]
    tag = None if version is None else f"refs/tags/{version.tag}"
    tip = f"refs/heads/{BRANCH}"
    try:
        refs = repository.refs_of_origin(tip, *([tag] if tag else []))
    except ReleaseError as error:
        return [Finding("refused", f"origin does not respond: {error}. Check the network and the address of origin.")]
    checks = [partial(_tip, repository, refs.get(tip))]
    if version is not None:
        checks.insert(0, partial(_tag_of_origin, version, refs.get(f"refs/tags/{version.tag}")))
    return [_finding(check) for check in checks]


def _tag_of_origin(version: Version, taken: str | None) -> str:
    if taken:
        raise ReleaseError(
            f"The tag {version.tag} exists on origin. Release the next version. If its release was never published, "
            "RELEASING.md says how to continue."
        )
    return f"The tag {version.tag} is free on origin."


def _tip(repository: Repository, tip: str | None) -> str:
    head = repository.head()
    if tip is None:
        raise ReleaseError(f"origin has no branch {BRANCH}. Push it first.")
    if tip != head:
        raise ReleaseError(
            f"HEAD is {head[:12]}, and {BRANCH} on origin is {tip[:12]}. Pull or push, and release the tip. If {BRANCH} moved "
            "during a release, start the workflow again."
        )
    return f"HEAD is the tip of {BRANCH} on origin, {head[:12]}."


def _ci(repository: Repository) -> str:
    head = repository.head()
    runs = json.loads(_ask(ci_request(head)))["workflow_runs"]
    if not runs:
        raise ReleaseError(f"CI has not run on {head[:12]}. Start it, and release when it has passed: gh workflow run ci.yml.")
    newest = max(runs, key=lambda run: run["run_number"])
    if newest["status"] != "completed":
        raise ReleaseError(f"CI still runs on {head[:12]}. Wait until it has passed: {newest['html_url']}")
    if newest["conclusion"] != "success":
        raise ReleaseError(f"CI ended with {newest['conclusion']} on {head[:12]}. Fix {BRANCH} first: {newest['html_url']}")
    return f"CI passed on {head[:12]}."


def _ask(command: list[str]) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    except FileNotFoundError:
        raise ReleaseError("The program gh is missing. Install GitHub's command line, or leave out --github.") from None
    if done.returncode:
        raise ReleaseError(f"GitHub did not report the result of CI: {done.stderr.strip()}")
    return done.stdout
