"""A page of sentences: sections, situations, and the text of each."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import Final

Sections = Mapping[str, Mapping[str, str]]
"""The text that people read, by the situation in which they read it, by section."""

FOLDER: Final = Path(__file__).parent
NAMES: Final = ("inputs", "runs", "failures", "jobs", "api", "network", "bundles", "archives")
"""The pages, each made by the function `sections` of the module with this name, whose docstring introduces it."""


def path_of(name: str) -> Path:
    """Return where a page stands."""
    return FOLDER / f"{name}.md"


def written(name: str) -> str:
    """Return a page as the package's sentences are now."""
    module = importlib.import_module(f"tests.wording.{name}")
    return "\n".join([_introduction(module), *(_section(*section) for section in module.sections().items())])


def _introduction(module: ModuleType) -> str:
    title, _, rest = (module.__doc__ or "").strip().partition("\n")
    return f"# {title.removesuffix('.')}\n{rest.rstrip()}\n\nWritten by `make wording`.\n"


def _section(title: str, texts: Mapping[str, str]) -> str:
    lines = "\n".join(f"{situation}\n{indent(text, '    ')}" for situation, text in texts.items())
    return f"## {title}\n\n~~~text\n{lines}\n~~~\n"


def grouped(texts: Mapping[str, str]) -> dict[str, str]:
    """Put the situations in which people read the same text together, each on its line."""
    situations: dict[str, list[str]] = {}
    for situation, text in texts.items():
        situations.setdefault(text, []).append(situation)
    return {"\n".join(same): text for text, same in situations.items()}
