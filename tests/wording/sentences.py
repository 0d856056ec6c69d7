"""Check that each sentence of the package stands on one page of `tests/wording`, and nowhere else in the tests.

`python -m tests.wording.sentences` does it. A sentence is what the code says between two values: a text of at
least four words that people read.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.wording.page import FOLDER

ROOT: Final = Path(__file__).parents[2]
MIN_WORDS: Final = 4
_WORD: Final = re.compile("[A-Za-z]{2}")
_TRANSLATED: Final = ("http.client.", "OSError")
"""Errors of which people read another text, which `http.faults` gives them."""

_BETWEEN_LITERALS: Final = re.compile(r'"\s*\n\s*f?"')


def sentences() -> frozenset[str]:
    """Return the sentences of the package."""
    files = (ROOT / "src" / "docs_platform_action").rglob("*.py")
    return frozenset(sentence for file in files for text in _texts(ast.parse(file.read_text())) for sentence in _split(text))


def _texts(tree: ast.Module) -> Iterator[str]:
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    unread = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        if ast.unparse(node.exc.func).startswith(_TRANSLATED)
        for argument in node.exc.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | unread:
            yield node.value


def _split(text: str) -> Iterator[str]:
    for part in re.split(r"\n|\{\w*\}", text):
        sentence = part.strip(" .,:;\"'`()")
        if sum(_WORD.match(word) is not None for word in sentence.split()) >= MIN_WORDS:
            yield sentence


def main() -> int:
    """Print what stands in several places or in the wrong one, and return the exit code."""
    found: dict[str, list[str]] = {sentence: [] for sentence in sentences()}
    for file in sorted(file for kind in ("py", "md") for file in (ROOT / "tests").rglob(f"*.{kind}")):
        if "node_modules" in file.parts:
            continue
        text = file.read_text(encoding="utf-8")
        text += _BETWEEN_LITERALS.sub("", text)
        for sentence, places in found.items():
            if sentence in text:
                places.append(str(file.relative_to(ROOT)))
    pages = {str(page.relative_to(ROOT)) for page in FOLDER.glob("*.md")}
    wrong = {sentence: places for sentence, places in found.items() if len(places) > 1 or not pages.issuperset(places)}
    for sentence, places in sorted(wrong.items()):
        sys.stdout.write(f"{sentence!r} stands in {', '.join(places)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
