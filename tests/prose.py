"""Find words in code and pages that the project's style replaces: `python -m tests.prose`, a part of `make lint`.

In code it checks docstrings, comments and the names of tests, and in `src` and `release` all other strings.
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

from tests.pages import SUMMARIES, markdown_pages

ROOT: Final = Path(__file__).parents[1]

CODE: Final = ("src", "release", "tests", "bench", "docs")

RULES: Final = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"(?<!there )\b(is|was) no (?!longer|more|later|earlier|less|fewer)": "is not a",
    r"\bwhole or not at all\b": "If anything fails, … is left untouched.",
    r"\btak(e|es|en|ing) note\b": "record",
    r"\bgo(es)? on (?!\w+ing\b)": "continue",
    r"\b(anew|afresh)\b": "again",
    r"\ball the same\b": "anyway",
    r"\bput(s|ting)? (off|aside)\b": "postpone, archive",
    r"\blook in the dashboard\b": "check the dashboard",
    r"\bworks until\b": "is valid until",
    r"\bgood answer\b": "successful response",
    r"\bwait(s|ed|ing)? out\b": "retry for, wait until … is over",
    r"\bmind (that|the|these|two|three|four)\b": "note, or only the fact",
    r"\btold by\b": "reported by, from",
    r"\bof late\b": "recent, recently",
    r"\bfor ever\b": "forever",
    r"\bheed(s|ed|ing)?\b": "obey, support",
    r"\bin another's way\b": "overlaps",
    r"\bways? out\b": "remedy",
    r"\b\w*(organ|recogn|initial|normal|serial|minim|summar|parametr)is(e|es|ed|ing|ation)\b": "-ize, as in American English",
    r"\b\w*(behaviour|colour|favour|honour|neighbour|centre)\w*": "American spelling",
}
"""A regular expression for words that no text contains, and what to write instead."""

DOCSTRING_RULES: Final = {
    r"^(tell|hear|give|have|see that|take note)\b": "an imperative verb that names the result: return, record, check",
}
"""The same for the first words of docstrings."""


@dataclass(frozen=True)
class Text:
    """A piece of prose, and where it is."""

    path: Path
    line: int
    text: str
    is_docstring: bool = False


def findings(text: Text) -> Iterator[str]:
    """Yield a line for each rule that a text breaks, with what to write instead."""
    words = " ".join(re.sub(r"`[^`]*`", "`…`", text.text).split())
    for pattern, instead in (RULES | DOCSTRING_RULES if text.is_docstring else RULES).items():
        if found := re.search(pattern, words, re.IGNORECASE):
            yield f"{text.path}:{text.line}: “{found[0].strip()}”: write {instead}"


def texts_of_code(path: Path, source: str, *, prints: bool) -> Iterator[Text]:
    """Yield the docstrings, comments and names of tests in a module, and its other strings if it `prints`."""
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                docstrings.add(constant)
                yield Text(path, node.lineno, text, is_docstring=True)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield Text(path, node.lineno, name.removeprefix("test_").replace("_", " "))
    for token in tokenize.generate_tokens(iter(source.splitlines(keepends=True)).__next__):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], token.string.lstrip("# "))
    if prints:
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
                yield Text(path, node.lineno, node.value)


def texts_of_page(path: Path, source: str) -> Iterator[Text]:
    """Yield the paragraphs, headings and cells of a Markdown page, without its code blocks."""
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        if token.type == "inline":
            yield Text(path, token.map[0] + 1 if token.map else 1, token.content)


def texts() -> Iterator[Text]:
    """Yield all texts of the repository that are checked."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" not in path.parts:
                yield from texts_of_code(path.relative_to(ROOT), path.read_text(), prints=folder in ("src", "release"))
    for page in sorted({*markdown_pages()} - SUMMARIES):
        yield from texts_of_page(page.relative_to(ROOT), page.read_text())


if __name__ == "__main__":
    sys.exit("\n".join(line for text in texts() for line in findings(text)) or None)
