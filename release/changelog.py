"""The changelog's section of a version."""

import datetime
import re

from release.errors import ReleaseError
from release.version import Version

CHANGELOG = "CHANGELOG.md"

_HEADING = re.compile(r"^## +(.*?) *$", re.MULTILINE)
_FENCE = re.compile(r" *(?P<fence>`{3,}|~{3,})(?P<rest>[^`]*)")
_LINK = re.compile(r"^ {0,3}\[([^]]+)\]:.*\n?", re.MULTILINE)
_CONTROL = re.compile(r"[^\n\t -~\xa0-\U0010ffff]")


def changelog_section(text: str, version: Version) -> str:
    """Return the changes of a version, without the heading. Raises ReleaseError if there is no finished section."""
    wanted = f"## [{version}] - YYYY-MM-DD"
    text = text.replace("\r\n", "\n")
    _refuse_headings_in_code(text)
    headings = list(_HEADING.finditer(text))
    ours = [index for index, heading in enumerate(headings) if heading[1].startswith(f"[{version}]")]
    if not ours:
        raise ReleaseError(f"{CHANGELOG} has no section for {version}. Rename “Unreleased” to {wanted!r}.")
    if len(ours) > 1:
        raise ReleaseError(f"{CHANGELOG} has {len(ours)} sections for {version}. Merge them.")
    heading = headings[ours[0]]
    date = heading[1].removeprefix(f"[{version}]").removeprefix(" - ")
    if not _is_date(date):
        raise ReleaseError(
            f"The section for {version} in {CHANGELOG} has no valid date right after the version. Write {wanted!r}."
        )
    end = headings[ours[0] + 1].start() if ours[0] + 1 < len(headings) else len(text)
    section = _LINK.sub("", text[heading.end() : end]).strip()
    if not any(line and not line.startswith("#") for line in section.splitlines()):
        raise ReleaseError(f"The section for {version} in {CHANGELOG} is empty. Describe the changes for users.")
    for label in _LINK.findall(text):
        if re.search(rf"\[{re.escape(label)}\](?!\()", section):
            raise ReleaseError(
                f"The section for {version} in {CHANGELOG} uses the link [{label}], whose address would not be in the notes. "
                f"Write the address beside the text: [{label}](https://…)."
            )
    if found := _CONTROL.search(section):
        raise ReleaseError(f"The section for {version} in {CHANGELOG} has the control character {found[0]!r}. Remove it.")
    return section


def _refuse_headings_in_code(text: str) -> None:
    """Refuse code that contains lines like headings, because the sections are found without a parser."""
    opened = ""
    for number, line in enumerate(text.split("\n"), 1):
        if opened and line.startswith("## "):
            raise ReleaseError(
                f"Line {number} of {CHANGELOG} is code, but looks like a section's heading. Indent it, or write it differently."
            )
        if found := _FENCE.fullmatch(line):
            if not opened:
                opened = found["fence"]
            elif found["fence"].startswith(opened) and not found["rest"].strip():
                opened = ""


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
