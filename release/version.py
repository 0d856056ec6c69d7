"""Versions, and which of them the major tag follows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from release.errors import ReleaseError

# [0-9], because \d also matches digits of other scripts
_NUMBER = "(0|[1-9][0-9]{0,8})"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-rc\.{_NUMBER})?")


@dataclass(frozen=True, kw_only=True)
class Version:
    """A version: X.Y.Z, or X.Y.Z-rc.N for a prerelease."""

    numbers: tuple[int, int, int]
    candidate: int | None = None

    def __str__(self) -> str:
        base = ".".join(map(str, self.numbers))
        return base if self.candidate is None else f"{base}-rc.{self.candidate}"

    @property
    def tag(self) -> str:
        """The tag of the version's release."""
        return f"v{self}"

    @property
    def major_tag(self) -> str:
        """The tag that moves to the newest release of the same major version."""
        return f"v{self.numbers[0]}"

    @property
    def is_prerelease(self) -> bool:
        """Whether this is a prerelease."""
        return self.candidate is not None


def parse_version(text: str) -> Version:
    """Parse a version. Raises ReleaseError for any other text, such as a tag."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ReleaseError(f"{text!r} is not a version. Write 1.2.3, or 1.2.3-rc.1 for a prerelease, without a v.")
    major, minor, patch, candidate = found.groups()
    return Version(numbers=(int(major), int(minor), int(patch)), candidate=None if candidate is None else int(candidate))


def parse_tag(text: str) -> Version:
    """Parse the tag of a version. Raises ReleaseError for any other text."""
    if not text.startswith("v"):
        raise ReleaseError(f"{text!r} is not the tag of a version, such as v1.2.3.")
    return parse_version(text.removeprefix("v"))


def why_major_tag_stays(version: Version, published_tags: Iterable[str]) -> str | None:
    """Return why the major tag does not move to a version that was published, or `None` if it moves.

    `published_tags` are the tags of all published releases except prereleases. Other tags among them are ignored.
    """
    if version.is_prerelease:
        return f"{version} is a prerelease."
    published = set()
    for tag in published_tags:
        try:
            published.add(parse_tag(tag))
        except ReleaseError:
            continue
    if version not in published:
        return f"{version.tag} is not among the published releases. GitHub marks it as a draft or a prerelease."
    newest = max(other.numbers for other in published if not other.is_prerelease and other.major_tag == version.major_tag)
    if newest > version.numbers:
        return f"{Version(numbers=newest)} is newer."
    return None
