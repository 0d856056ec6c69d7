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
    inputs = [["input", "default", "in mode", "meaning"]]
    for name, about in action["inputs"].items():
        modes, meaning = described(about["description"])
        inputs.append([f"`{name}`", _default(about), modes, meaning])
    outputs = [["output", "meaning"]]
    for name, about in action["outputs"].items():
        _, meaning = described(about["description"])
        outputs.append([f"`{name}`", meaning])
    text = with_table(PAGE.read_text("utf-8"), "Inputs", inputs)
    return with_table(text, "Outputs", outputs)


def with_table(text: str, heading: str, rows: Sequence[Sequence[str]]) -> str:
    """Return the page with another first table below the heading.

    The first row is the table's head.
    """
    before, title, section = text.partition(f"\n## {heading}\n")
    introduction, head, table = section.partition("\n| ")
    if not head:
        raise SystemExit(f"{PAGE.name} has no table below the heading {heading}")
    after = table.partition("|\n\n")[2]
    lines = [_line(row) for row in rows]
    lines.insert(1, _line(["---"] * len(rows[0])))
    return f"{before}{title}{introduction}\n{''.join(lines)}\n{after}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


def _default(about: Mapping[str, str]) -> str:
    if "default" not in about:
        return ""
    return f"`{about['default']}`"


def described(description: str) -> tuple[str, str]:
    """Return the modes that begin a description, and the rest of it.

    The rest has links to the pages that it names.
    The modes stay in the text if they do not hold for all of it.
    """
    text = description.strip()
    opening = re.match(r"Modes? `\w+`(?:(?:, | and )`\w+`)*: ", text)
    if opening is not None and not re.search("Modes? `", text[opening.end() :]):
        named = opening[0]
        meaning = text[opening.end() :]
        text = meaning[0].upper() + meaning[1:]
    else:
        named = " ".join(re.findall(r"Modes? (`[^:]*): ", text))
    modes = dict.fromkeys(re.findall(r"`(\w+)`", named))
    linked = re.sub(r"docs/([\w-]+)\.md(#([\w-]+))?", _link, text).replace("|", r"\|")
    return ", ".join(modes), linked.replace("(reference.md#", "(#")


def _link(found: re.Match[str]) -> str:
    page, anchor, section = found.groups()
    words = (section or page).replace("-", " ")
    return f"[{words}]({page}.md{anchor or ''})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
