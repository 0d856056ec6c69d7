"""Check that each sentence of the package stands on one page of `tests/wording`, and nowhere else in the tests.

`python -m tests.wording.sentences`, a part of `make lint`, does it. A sentence is what the code says between two
values: a text of at least four words that people read. One that several modules say may stand on a page for each.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.wording.page import FOLDER

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "docs_platform_action"
TESTS: Final = ROOT / "tests"
DOCS_REFERENCE: Final = TESTS / "reference_page.py"
"""It has the text of `docs/reference.md`, and tests nothing."""
MIN_WORDS: Final = 4
_WORD: Final = re.compile("[A-Za-z]{2}")
_TRANSLATED: Final = ("http.client.", "OSError")
"""Errors of which people read another text, which `http.faults` gives them."""

_BETWEEN_LITERALS: Final = re.compile(r'"\s*\n\s*f?"')


def sentences() -> frozenset[str]:
    """Return the sentences of the package."""
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in PACKAGE.rglob("*.py")]
    return frozenset(sentence for tree in trees for text in _texts(tree) for sentence in _split(text))


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


def _texts_by_name(files: Iterable[Path]) -> dict[str, str]:
    """Return what stands in each file, and again with the parts of a text on several lines joined."""
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}
    return {name: text + _BETWEEN_LITERALS.sub("", text) for name, text in texts.items()}


def main() -> int:
    """Print each sentence that a test repeats, or that stands on more pages than modules say it, and return the exit code."""
    modules = _texts_by_name(PACKAGE.rglob("*.py"))
    pages = _texts_by_name(FOLDER.glob("*.md"))
    tests = _texts_by_name(file for file in TESTS.rglob("*.py") if "node_modules" not in file.parts and file != DOCS_REFERENCE)
    found = False
    for sentence in sorted(sentences()):
        said, shown, repeated = ([name for name, text in texts.items() if sentence in text] for texts in (modules, pages, tests))
        if repeated or len(shown) > len(said):
            found = True
            sys.stdout.write(f"{sentence!r} stands in {', '.join(sorted(shown + repeated))}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
