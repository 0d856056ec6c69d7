"""The line of action.yml that names the image: Dockerfile on main, the published image at a release's tag."""

import difflib
import re
from dataclasses import dataclass

from release.errors import ReleaseError
from release.version import Version

ACTION_FILE = "action.yml"
PLACEHOLDER_IMAGE = "ghcr.io/owner/docs-platform-action"
PLACEHOLDER_DIGEST = f"sha256:{'0' * 64}"

_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"[a-z0-9.-]+(?::[0-9]+)?(?:/{_PART})+")
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_RUNS = re.compile(r"^runs: *\r?\n(?P<block>(?:[ #].*\n?|\r?\n)*)", re.MULTILINE)
_LINE = re.compile(r"^  image:(?P<value>.*?)(?=\r?$)", re.MULTILINE)
"""The key of the mapping `runs`, which is indented by two spaces. A text in that mapping is indented by more."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """A published image. It has no tag: some tools refuse a name with both a tag and a digest."""

    name: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}"


def parse_image(name: str, digest: str) -> Image:
    """Check an image's name and digest, and write the name in lower case, as registries require."""
    name = name.lower()
    if "@" in name:
        raise ReleaseError(f"The image name {name!r} contains a digest. Pass the digest separately, with --digest.")
    if ":" in name.rpartition("/")[2]:
        raise ReleaseError(f"The image name {name!r} contains a tag. Remove it: the digest alone identifies the image.")
    if not _NAME.fullmatch(name):
        raise ReleaseError(f"{name!r} is not an image name with its registry, such as {PLACEHOLDER_IMAGE}.")
    if not _DIGEST.fullmatch(digest):
        raise ReleaseError(f"{digest!r} is not a digest. Write sha256: and 64 digits of 0-9 and a-f.")
    return Image(name=name, digest=digest)


def pin_image(text: str, image: Image, version: Version) -> str:
    """Return action.yml with the published image in place of the Dockerfile."""
    lines = [line for runs in _RUNS.finditer(text) for line in _LINE.finditer(text, *runs.span("block"))]
    if len(lines) != 1:
        raise ReleaseError(
            f"{ACTION_FILE} has {len(lines)} lines with `image:`, indented by two spaces, below `runs:` instead of one. "
            "Restore it from main."
        )
    (line,) = lines
    if line["value"] != " Dockerfile":
        raise ReleaseError(
            f"{ACTION_FILE} has{line['value']} as its image instead of Dockerfile. Start from main, which is never pinned."
        )
    return f"{text[: line.start()]}  image: docker://{image} # {version.tag}{text[line.end() :]}"


def diff_of(before: str, after: str) -> str:
    """Return a change of action.yml as git shows it, without colors and object names."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{ACTION_FILE}", f"b/{ACTION_FILE}"
    )
    return "".join(lines)
