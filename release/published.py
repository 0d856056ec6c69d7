"""Checks what is published: `python -m release published`, which weekly.yml runs.

RELEASING.md explains the findings.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from release.commands import ReleaseError, run

Check = Callable[[str], Iterator[str]]
"""Yields findings about the release of a tag."""

BASE = "org.opencontainers.image.base"
MAX_REASON = 300
"""The maximum number of characters of a program's message in a finding.

GitHub refuses an issue of more than 65,536.
"""


def check_published(repository: str) -> None:
    """Check the published releases, and print each finding as soon as it is found.

    A finding is printed as an item of a list in Markdown. A check that could not run is a finding
    as well. Raises ReleaseError at the end if there were findings.
    """
    tags = published_tags(repository)
    if not tags:
        print("There is no published release of a version yet.")
        return
    newest = newest_release(tags)
    checks: list[tuple[Check, str]] = [(old_base, newest), (vulnerable_packages, newest)]
    checks += [(image_that_cannot_be_pulled, tag) for tag in tags]
    findings: set[str] = set()
    for check, tag in checks:
        for finding in findings_of(check, tag):
            if finding not in findings:
                print(f"- {finding}", flush=True)
            findings.add(finding)
    if findings:
        raise ReleaseError(f"Findings: {len(findings)}. Each line above says what to do.")
    print(
        f"Every image can be pulled, and {newest} has the newest base image "
        "and no package with a known vulnerability."
    )


def findings_of(check: Check, tag: str) -> Iterator[str]:
    """Yield the findings of a check, and another one if it could not run.

    An unexpected answer must not hide other findings.
    """
    try:
        yield from check(tag)
    except (ReleaseError, ValueError, LookupError, AttributeError, TypeError, OSError) as error:
        yield (
            f"{tag}: a check could not run: {reason(error)}. "
            "Run the workflow again; its log has more."
        )


def published_tags(repository: str) -> list[str]:
    """Return the tags of all published releases of a repository.

    Only versions, in case a release was made for `v1`.
    """
    releases = f"repos/{repository}/releases?per_page=100"
    names = ".[] | select(.draft | not) | .tag_name"
    tags = run("gh", "api", "--paginate", releases, "--jq", names).split()
    return [tag for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+(-rc\.\d+)?", tag)]


def newest_release(tags: list[str]) -> str:
    """Return the tag of the highest version, and of a prerelease only if there is nothing else."""
    final = [tag for tag in tags if "-" not in tag]
    return max(final or tags, key=numbers_in)


def numbers_in(tag: str) -> list[int]:
    """Return the numbers in a tag, for comparisons."""
    return [int(number) for number in re.findall(r"\d+", tag)]


def image_of(tag: str) -> str:
    """Return the image that action.yml names at a tag, with its digest.

    Raises ReleaseError if it names none.
    """
    line = rf"^  image: docker://(\S+@sha256:[0-9a-f]{{64}}) # {re.escape(tag)}$"
    found = re.search(line, run("git", "show", f"{tag}:action.yml"), re.MULTILINE)
    if found is None:
        raise ReleaseError(
            f"action.yml at {tag} names no published image. "
            "Delete the release if release.yml has not made it"
        )
    return found[1]


def image_that_cannot_be_pulled(tag: str) -> Iterator[str]:
    """Yield if the image of a release cannot be downloaded without credentials.

    All platforms are downloaded, and all bytes are checked by their digests.
    """
    image = image_of(tag)
    options = ("--all", "--quiet", "--retry-times=3", "--src-no-creds")
    with tempfile.TemporaryDirectory() as folder:
        try:
            run("skopeo", "copy", *options, f"docker://{image}", f"dir:{folder}")
        except ReleaseError as error:
            yield (
                f"{tag}: `{image}` cannot be pulled without credentials: {reason(error)}. "
                "Make the package public if it is private. "
                "Restore the version if it was deleted. "
                "If neither helps, delete the release, and release a new version."
            )


def old_base(tag: str) -> Iterator[str]:
    """Yield if the base image of a release is outdated or unknown.

    It is outdated if its name has another digest today.
    """
    image = image_of(tag)
    annotations = json.loads(raw_manifest(image)).get("annotations") or {}
    name = annotations.get(f"{BASE}.name")
    digest = annotations.get(f"{BASE}.digest")
    if not name or not digest:
        yield (
            f"{tag}: `{image}` has no annotations `{BASE}.name` and `.digest`, "
            "so its age is unknown. Release a new version."
        )
        return
    newest = f"sha256:{hashlib.sha256(raw_manifest(name).encode()).hexdigest()}"
    if newest != digest:
        yield (
            f"{tag}: its base image `{name}` is now `{newest}`, no longer `{digest}`. "
            "Release a new version to get its fixes."
        )


def raw_manifest(image: str) -> str:
    """Return the index of an image, or the manifest if there is no index.

    It is exactly as the registry has it.
    """
    return run("skopeo", "inspect", "--raw", "--retry-times=3", "--no-creds", f"docker://{image}")


def vulnerable_packages(tag: str) -> Iterator[str]:
    """Yield each known vulnerability of the packages that a release locks."""
    with tempfile.TemporaryDirectory() as folder:
        locked = Path(folder, "image.txt")
        locked.write_text(run("git", "show", f"{tag}:requirements/image.txt"))
        report = Path(folder, "report.json")
        options = (
            "--strict",
            "--require-hashes",
            "--disable-pip",
            "--progress-spinner=off",
            "--vulnerability-service=osv",
            f"--requirement={locked}",
            "--format=json",
            f"--output={report}",
        )
        try:
            run("pip-audit", *options)
        except ReleaseError:
            # it fails in the same way for a vulnerability, but then it has written the report
            if not report.exists():
                raise
        packages = json.loads(report.read_text())["dependencies"]
    for package in packages:
        name = package["name"]
        known = []
        for vulnerability in package["vulns"]:
            fixed_in = ", ".join(vulnerability["fix_versions"])
            remedy = f"fixed in {fixed_in}" if fixed_in else "not fixed yet"
            known.append(f"{vulnerability['id']} ({remedy})")
        if known:
            yield (
                f"{tag}: {name} {package['version']} has known vulnerabilities: "
                f"{', '.join(known)}. Check whether the action is affected, "
                f'update the package with `make lock UPGRADE="--upgrade-package {name}"`, '
                "and release a new version."
            )


def reason(error: Exception) -> str:
    """Return what failed and the last line of its message, as code in Markdown.

    Print all of it for the log, in which no line starts with the message: the runner would take one
    that starts with `::` for a command.
    """
    text = str(error) if isinstance(error, ReleaseError) else repr(error)
    for line in text.splitlines():
        print(f"| {line}", file=sys.stderr)
    what, _, message = text.partition(": ")
    lines = message.splitlines()
    if not lines or not lines[-1]:
        return f"`{what[-MAX_REASON:]}`"
    last_line = lines[-1].replace("`", "'")[-MAX_REASON:]
    return f"`{what}: {last_line}`"
