"""The tables of docs/reference.md, written from action.yml: `make reference`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "reference.md"


def page() -> str:
    """Return the page with the tables as action.yml has them."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    inputs = [
        [f"`{name}`", _default(about), *described(about["description"])]
        for name, about in action["inputs"].items()
    ]
    outputs = [
        [f"`{name}`", described(about["description"])[1]]
        for name, about in action["outputs"].items()
    ]
    text = with_table(
        PAGE.read_text("utf-8"), "Inputs", [["input", "default", "in mode", "meaning"], *inputs]
    )
    return with_table(text, "Outputs", [["output", "meaning"], *outputs])


def with_table(text: str, heading: str, rows: Sequence[Sequence[str]]) -> str:
    """Return the page with another first table below the heading. The first row is the table's head."""
    before, title, section = text.partition(f"\n## {heading}\n")
    introduction, head, table = section.partition("\n| ")
    if not head:
        raise SystemExit(f"{PAGE.name} has no table below the heading {heading}")
    after = table.partition("|\n\n")[2]
    lines = [f"| {' | '.join(row)} |\n" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]
    return "".join([before, title, introduction, "\n", *lines, "\n", after]).replace("|  |", "| |")


def _default(about: Mapping[str, str]) -> str:
    return f"`{about['default']}`" if "default" in about else ""


def described(description: str) -> tuple[str, str]:
    """Return the modes that begin a description, and the rest of it, with links to the pages that it names.

    The modes stay in the text if they do not hold for all of it.
    """
    text = description.strip()
    start = re.match(r"Modes? `\w+`(?:(?:, | and )`\w+`)*: ", text)
    modes = ", ".join(re.findall(r"`(\w+)`", start[0])) if start else ""
    if start and not re.search("Modes? `", text[start.end() :]):
        text = text[start.end()].upper() + text[start.end() + 1 :]
    else:
        modes = ", ".join(
            dict.fromkeys(re.findall(r"`(\w+)`", " ".join(re.findall(r"Modes? (`[^:]*): ", text))))
        )
    linked = re.sub(r"docs/([\w-]+)\.md(#([\w-]+))?", _link, text).replace("|", r"\|")
    return modes, linked.replace("(reference.md#", "(#")


def _link(found: re.Match[str]) -> str:
    return f"[{(found[3] or found[1]).replace('-', ' ')}]({found[1]}.md{found[2] or ''})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
