"""A dry run: what a release would check, change, run and publish. It only reads."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from string import Template
from typing import Any

import yaml

from release.action_file import ACTION_FILE, PLACEHOLDER_DIGEST, Image, diff_of, pin_image
from release.changelog import CHANGELOG, changelog_section
from release.checks import BRANCH, check_release, ci_request, refuse
from release.errors import ReleaseError
from release.notes import release_notes
from release.repository import Repository
from release.version import Version, parse_version

RELEASE_WORKFLOW = ".github/workflows/release.yml"
MAJOR_TAG_WORKFLOW = ".github/workflows/major-tag.yml"

_EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


def dry_run(repository: Repository, text: str, image: Image) -> Iterator[str]:
    """Yield the report. Raises ReleaseError at the end if a check refuses the release."""
    findings = check_release(repository, text)
    head = repository.head()
    yield f"Dry run of the release of {text} from {head}. It changes nothing."
    if image.digest == PLACEHOLDER_DIGEST:
        yield "The digest is a placeholder. In a release, the build determines it."
    yield from _section("Checks", map(str, findings))
    version = parse_version(text)
    yield from _section("Further checks in a release, by asking GitHub", _questions(head))
    before = repository.read_head(ACTION_FILE)
    yield from _section(f"Change of {ACTION_FILE}", diff_of(before, pin_image(before, image, version)).splitlines())
    values = _values(version, image, head)
    yield from _section(f"Commands of {RELEASE_WORKFLOW}", _jobs(repository.read_head(RELEASE_WORKFLOW), values))
    yield from _section(
        f"Commands of {MAJOR_TAG_WORKFLOW}, once the draft is published", _jobs(repository.read_head(MAJOR_TAG_WORKFLOW), values)
    )
    try:
        notes = release_notes(changelog_section(repository.read_head(CHANGELOG), version), image, _repository(image))
    except ReleaseError as error:
        notes = str(error)
    yield from _section("Release notes", notes.splitlines())
    if refused := [str(finding) for finding in findings if finding.state == "refused"]:
        yield from _section("Refused", refused)
    refuse(findings)
    yield "\nNo check refuses this release. Not checked here: the result of CI, and the settings that RELEASING.md lists."


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"\n{title}\n"
    for line in lines:
        yield f"  {line}".rstrip()


def _questions(head: str) -> Iterator[str]:
    yield f"CI passed on {head[:12]}:"
    yield f"  {shlex.join(ci_request(head))}"
    yield f"{head[:12]} is the tip of {BRANCH}, at the start, after the approval and right before the push:"
    yield f"  git ls-remote origin refs/heads/{BRANCH}"


def _values(version: Version, image: Image, head: str) -> Mapping[str, str]:
    """Return the values of the expressions and variables in the workflows."""
    return {
        "github.repository": _repository(image),
        "github.server_url": "https://github.com",
        "github.sha": head,
        "github.event.release.tag_name": version.tag,
        "inputs.version": str(version),
        "needs.check.outputs.image": image.name,
        "needs.image.outputs.digest": image.digest,
        "ACTION_IMAGE": str(image),
        "DIGEST": image.digest,
        "GITHUB_REPOSITORY": _repository(image),
        "IMAGE": image.name,
        "TAG": version.tag,
        "VERSION": str(version),
    }


def _repository(image: Image) -> str:
    return f"OWNER/{image.name.rpartition('/')[2]}"


def _jobs(workflow: str, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the jobs of a workflow with their steps. Expressions without a known value stay as they are."""
    for name, job in yaml.safe_load(workflow)["jobs"].items():
        permissions = ", ".join(f"{scope}: {access}" for scope, access in job["permissions"].items())
        environment = f"; in the environment {job['environment']}" if "environment" in job else ""
        yield f"{name}: {_filled(job['name'], values)} ({permissions}{environment})"
        for step in job["steps"]:
            yield from (f"  {line}" for line in _step(step, values))


def _step(step: Mapping[str, Any], values: Mapping[str, str]) -> Iterator[str]:
    if "uses" in step:
        yield f"uses {step['uses']}"
        for key, value in step.get("with", {}).items():
            first, *rest = _filled(value, values).strip().splitlines()
            yield f"  {key}: {first}"
            yield from (f"  {' ' * len(key)}  {line}" for line in rest)
    else:
        yield from (f"$ {line}" for line in Template(step["run"]).safe_substitute(values).rstrip().splitlines())


def _filled(value: object, values: Mapping[str, str]) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return _EXPRESSION.sub(lambda found: values.get(found[1], found[0]), text)
