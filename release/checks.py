"""The checks before a release. All mistakes are reported together, each with what to do."""

import json
import re
import subprocess
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from release.action_file import ACTION_FILE, PLACEHOLDER_DIGEST, PLACEHOLDER_IMAGE, parse_image, pin_image
from release.changelog import CHANGELOG, changelog_section
from release.errors import ReleaseError
from release.repository import Repository
from release.version import Version, parse_version

BRANCH = "main"
_EVENTS = ("push", "workflow_dispatch")
_MAX_FILES = 5
_PACKAGE = "src/docs_platform_action/__init__.py"


@dataclass(frozen=True)
class Finding:
    """The result of a check. The text of a refusal says what to do."""

    state: Literal["ok", "refused", "skipped"]
    text: str

    def __str__(self) -> str:
        return f"{self.state:<8} {self.text}"


def check_release(repository: Repository, text: str, *, ask_github: bool = False, made: str | None = None) -> list[Finding]:
    """Return the results of all checks.

    They ask the remote `origin` for its refs, and GitHub for the result of CI if `ask_github` is set. `made` is the release's
    commit if it exists: the tag may then exist as well, if it names that commit.
    """
    checks: list[Callable[[], str]] = [partial(_clean_tree, repository), partial(_branch, repository)]
    try:
        version = parse_version(text)
    except ReleaseError as error:
        findings = [Finding("refused", str(error)), *map(_finding, checks), *_origin(repository, None, made)]
    else:
        checks[:0] = [partial(check, repository, version) for check in (_project, _package, _changelog, _action_file)]
        checks.append(partial(_local_tag, repository, version, made))
        findings = [Finding("ok", f"{version} is a version."), *map(_finding, checks), *_origin(repository, version, made)]
    if ask_github:
        findings.append(_finding(partial(_ci, repository)))
    return findings


def refuse(findings: Sequence[Finding]) -> None:
    """Raise ReleaseError if a check refuses the release."""
    if refused := sum(finding.state == "refused" for finding in findings):
        raise ReleaseError(f"{refused} of {len(findings)} checks refuse this release. Each says above what to do.")


def ci_request(commit: str) -> list[str]:
    """Return the command that asks GitHub for the runs of CI on a commit."""
    return ["gh", "api", f"repos/{{owner}}/{{repo}}/actions/workflows/ci.yml/runs?branch={BRANCH}&head_sha={commit}&per_page=100"]


def _finding(check: Callable[[], str]) -> Finding:
    try:
        return Finding("ok", check())
    except ReleaseError as error:
        return Finding("refused", str(error))


def _project(repository: Repository, version: Version) -> str:
    try:
        project = tomllib.loads(repository.read_head("pyproject.toml")).get("project")
    except tomllib.TOMLDecodeError as error:
        raise ReleaseError(f"pyproject.toml is not valid TOML: {error}. Fix it on {BRANCH}.") from None
    return _same_version("pyproject.toml", project.get("version") if isinstance(project, dict) else None, version)


def _package(repository: Repository, version: Version) -> str:
    found = re.search(r'^__version__\b.*= "(.*)"\r?$', repository.read_head(_PACKAGE), re.MULTILINE)
    return _same_version(_PACKAGE, found and found[1], version)


def _same_version(path: str, found: object, version: Version) -> str:
    if found != str(version):
        raise ReleaseError(f"{path} has version {found}. Release that version, or change it to {version} on {BRANCH}.")
    return f"{path} has this version."


def _changelog(repository: Repository, version: Version) -> str:
    changelog_section(repository.read_head(CHANGELOG), version)
    return f"{CHANGELOG} has a section for this version."


def _action_file(repository: Repository, version: Version) -> str:
    # otherwise the job `tag` would find it out, when the image is already published
    pin_image(repository.read_head(ACTION_FILE), parse_image(PLACEHOLDER_IMAGE, PLACEHOLDER_DIGEST), version)
    return f"The published image can replace the Dockerfile in {ACTION_FILE}."


def _clean_tree(repository: Repository) -> str:
    if changed := repository.changed_files():
        more = f" and {len(changed) - _MAX_FILES} more" if len(changed) > _MAX_FILES else ""
        raise ReleaseError(f"Files are not committed: {', '.join(changed[:_MAX_FILES])}{more}. Commit or remove them.")
    return "All files are committed."


def _branch(repository: Repository) -> str:
    if (branch := repository.branch()) != BRANCH:
        raise ReleaseError(f"The branch is {branch or 'a detached HEAD'}. Releases are made from {BRANCH}: git switch {BRANCH}.")
    return f"The branch is {BRANCH}."


def _local_tag(repository: Repository, version: Version, made: str | None) -> str:
    if (commit := repository.tag_commit(version.tag)) and commit != made:
        raise ReleaseError(
            f"The tag {version.tag} exists in this clone, at {commit}. Release the next version, or remove the tag if it was "
            f"never pushed: git tag --delete {version.tag}."
        )
    return f"The tag {version.tag} {_names(commit)} in this clone."


def _names(commit: str | None) -> str:
    return f"names the release's commit, {commit[:12]}," if commit else "is free"


def _origin(repository: Repository, version: Version | None, made: str | None) -> list[Finding]:
    """Ask `origin` once, for the tag and the tip of main."""
    try:
        if not repository.has_origin():
            return [Finding("skipped", f"There is no remote origin: neither its tags nor the tip of {BRANCH} can be checked.")]
    except ReleaseError as error:
        return [Finding("refused", str(error))]
    tag = None if version is None else f"refs/tags/{version.tag}"
    tip = f"refs/heads/{BRANCH}"
    try:
        refs = repository.refs_of_origin(tip, *([tag] if tag else []))
    except ReleaseError as error:
        return [Finding("refused", f"origin does not respond: {error}. Check the network and the address of origin.")]
    checks = [partial(_tip, repository, refs.get(tip))]
    if version is not None:
        checks.insert(0, partial(_tag_of_origin, version, refs.get(f"refs/tags/{version.tag}"), made))
    return [_finding(check) for check in checks]


def _tag_of_origin(version: Version, taken: str | None, made: str | None) -> str:
    if taken and taken != made:
        raise ReleaseError(
            f"The tag {version.tag} exists on origin. Release the next version. If its release was never published, "
            "RELEASING.md says how to continue."
        )
    return f"The tag {version.tag} {_names(taken)} on origin."


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
    try:
        # not those of pull requests: a branch of a fork may be named main, too
        runs = [run for run in json.loads(_ask(ci_request(head)))["workflow_runs"] if run["event"] in _EVENTS]
    except (ValueError, LookupError, TypeError):
        raise ReleaseError("GitHub's answer is not a list of the runs of CI. Try again.") from None
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
