"""The changelog's section of a version."""

import datetime
import re

from release.errors import ReleaseError
from release.version import Version

CHANGELOG = "CHANGELOG.md"

_HEADING = re.compile(r"^## +(.*?) *$", re.MULTILINE)
_LINK = re.compile(r"^\[[^]]+\]: \S+$", re.MULTILINE)


def changelog_section(text: str, version: Version) -> str:
    """Return the changes of a version, without the heading. Raises ReleaseError if there is no finished section."""
    wanted = f"## [{version}] - YYYY-MM-DD"
    headings = list(_HEADING.finditer(text))
    ours = [index for index, heading in enumerate(headings) if heading[1].startswith(f"[{version}]")]
    if not ours:
        raise ReleaseError(f"{CHANGELOG} has no section for {version}. Rename “Unreleased” to {wanted!r}.")
    if len(ours) > 1:
        raise ReleaseError(f"{CHANGELOG} has {len(ours)} sections for {version}. Merge them.")
    heading = headings[ours[0]]
    date = heading[1].removeprefix(f"[{version}]").removeprefix(" - ")
    if not _is_date(date):
        raise ReleaseError(f"The section for {version} in {CHANGELOG} has no valid date. Write {wanted!r}.")
    end = headings[ours[0] + 1].start() if ours[0] + 1 < len(headings) else len(text)
    section = _LINK.sub("", text[heading.end() : end]).strip()
    if not any(line and not line.startswith("#") for line in section.splitlines()):
        raise ReleaseError(f"The section for {version} in {CHANGELOG} is empty. Describe the changes for users.")
    return section


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
