"""Checks what is published: `python -m release published`, which weekly.yml runs. RELEASING.md explains the findings."""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from release.commands import ReleaseError, run

BASE = "org.opencontainers.image.base"
MAX_REASON = 300
"""The maximum number of characters of a program's message in a finding. GitHub refuses an issue of more than 65,536."""


def check_published(repository: str) -> None:
    """Check the published releases, and print each finding at once, as an item of a list in Markdown.

    A check that could not run is a finding as well. Raises ReleaseError at the end if there were findings.
    """
    tags = published_tags(repository)
    if not tags:
        print("There is no published release of a version yet.")
        return
    newest = newest_release(tags)
    looks = [
        (old_base, newest),
        (vulnerable_packages, newest),
        *((image_that_cannot_be_pulled, tag) for tag in tags),
    ]
    findings: set[str] = set()
    for look, tag in looks:
        for finding in findings_of(look, tag):
            if finding not in findings:
                print(f"- {finding}", flush=True)
            findings.add(finding)
    if findings:
        raise ReleaseError(f"Findings: {len(findings)}. Each line above says what to do.")
    print(
        f"Every image can be pulled, and {newest} has the newest base image and no package with a known vulnerability."
    )


def findings_of(look: Callable[[str], Iterator[str]], tag: str) -> Iterator[str]:
    """Yield the findings of a check, and another one if it could not run. An unexpected answer must not hide other findings."""
    try:
        yield from look(tag)
    except (ReleaseError, ValueError, LookupError, AttributeError, TypeError, OSError) as error:
        yield f"{tag}: a check could not run: {reason(error)}. Run the workflow again; its log has more."


def published_tags(repository: str) -> list[str]:
    """Return the tags of all published releases of a repository. Only versions, in case a release was made for `v1`."""
    releases = f"repos/{repository}/releases?per_page=100"
    tags = run(
        "gh", "api", "--paginate", releases, "--jq", ".[] | select(.draft | not) | .tag_name"
    ).split()
    return [tag for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+(-rc\.\d+)?", tag)]


def newest_release(tags: list[str]) -> str:
    """Return the tag of the highest version, and of a prerelease only if there is nothing else."""
    return max(
        tags, key=lambda tag: ("-" not in tag, [int(number) for number in re.findall(r"\d+", tag)])
    )


def image_of(tag: str) -> str:
    """Return the image that action.yml names at a tag, with its digest. Raises ReleaseError if it names none."""
    line = rf"^  image: docker://(\S+@sha256:[0-9a-f]{{64}}) # {re.escape(tag)}$"
    found = re.search(line, run("git", "show", f"{tag}:action.yml"), re.MULTILINE)
    if found is None:
        raise ReleaseError(
            f"action.yml at {tag} names no published image. Delete the release if release.yml has not made it"
        )
    return found[1]


def image_that_cannot_be_pulled(tag: str) -> Iterator[str]:
    """Yield if the image of a release cannot be downloaded without credentials: all platforms, and all bytes by their digests."""
    image = image_of(tag)
    with tempfile.TemporaryDirectory() as folder:
        try:
            run(
                "skopeo",
                "copy",
                "--all",
                "--quiet",
                "--retry-times=3",
                "--src-no-creds",
                f"docker://{image}",
                f"dir:{folder}",
            )
        except ReleaseError as error:
            yield (
                f"{tag}: `{image}` cannot be pulled without credentials: {reason(error)}. Make the package public if it is "
                "private. Restore the version if it was deleted. If neither helps, delete the release, and release "
                "a new version."
            )


def old_base(tag: str) -> Iterator[str]:
    """Yield if the base image of a release has another digest today, or if the release does not say what its base image is."""
    image = image_of(tag)
    annotations = json.loads(raw_manifest(image)).get("annotations") or {}
    name, digest = annotations.get(f"{BASE}.name"), annotations.get(f"{BASE}.digest")
    if not name or not digest:
        yield f"{tag}: `{image}` has no annotations `{BASE}.name` and `.digest`, so its age is unknown. Release a new version."
        return
    newest = f"sha256:{hashlib.sha256(raw_manifest(name).encode()).hexdigest()}"
    if newest != digest:
        yield f"{tag}: its base image `{name}` is now `{newest}`, no longer `{digest}`. Release a new version to get its fixes."


def raw_manifest(image: str) -> str:
    """Return the index of an image, or the manifest if there is no index, exactly as the registry has it."""
    return run("skopeo", "inspect", "--raw", "--retry-times=3", "--no-creds", f"docker://{image}")


def vulnerable_packages(tag: str) -> Iterator[str]:
    """Yield each known vulnerability of the packages that a release locks."""
    with tempfile.TemporaryDirectory() as folder:
        locked, report = Path(folder, "image.txt"), Path(folder, "report.json")
        locked.write_text(run("git", "show", f"{tag}:requirements/image.txt"))
        options = (
            "--strict",
            "--require-hashes",
            "--disable-pip",
            "--progress-spinner=off",
            "--vulnerability-service=osv",
        )
        try:
            run(
                "pip-audit",
                *options,
                f"--requirement={locked}",
                "--format=json",
                f"--output={report}",
            )
        except ReleaseError:
            # it fails in the same way for a vulnerability, but then it has written the report
            if not report.exists():
                raise
        packages = json.loads(report.read_text())["dependencies"]
    for package in packages:
        known = [
            f"{each['id']} ({'fixed in ' + ', '.join(each['fix_versions']) if each['fix_versions'] else 'not fixed yet'})"
            for each in package["vulns"]
        ]
        if known:
            yield (
                f"{tag}: {package['name']} {package['version']} has known vulnerabilities: {', '.join(known)}. Check "
                "whether the action is affected, update the package with "
                f'`make lock UPGRADE="--upgrade-package {package["name"]}"`, and release a new version.'
            )


def reason(error: Exception) -> str:
    """Return what failed and the last line of its message, as code in Markdown. Print all of it for the log.

    No line of the log starts with the message: the runner would take one that starts with `::` for a command.
    """
    text = str(error) if isinstance(error, ReleaseError) else repr(error)
    for line in text.splitlines():
        print(f"| {line}", file=sys.stderr)
    what, _, message = text.partition(": ")
    last_line = "".join(message.splitlines()[-1:]).replace("`", "'")[-MAX_REASON:]
    return f"`{what}: {last_line}`" if last_line else f"`{what[-MAX_REASON:]}`"
