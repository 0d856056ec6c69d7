"""Archives.

What somebody reads whose bundle is not unpacked. Several archives above one text are refused with the same words.
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from docs_platform_action.bundle.faults import DISK_FULL
from docs_platform_action.errors import InvalidBundle
from docs_platform_action.text import clean
from tests.archives import REFUSED
from tests.corpus.make import ARCHIVES
from tests.corpus.recipes import RECIPES
from tests.unit.bundle.places import EXACT, Place, limited
from tests.wording.page import Sections, grouped

GIB = 1024**3
ELSEWHERE = {InvalidBundle.default_cause, InvalidBundle.default_remedy, *DISK_FULL.values()}
"""The cause and the remedy of most bundles that are refused, and those of a full disk, which other pages have."""


def sections() -> Sections:
    """Return the refusals of hostile and damaged archives, of those beyond a limit, and of a full disk."""
    errors = {kind: {name: _refusal(archive) for name, archive in archives.items()} for kind, archives in REFUSED.items()}
    for name, recipe in RECIPES.items():
        if recipe.refused:
            errors[recipe.refused][name] = _refusal((ARCHIVES / name).read_bytes())
    for name, exact in EXACT.items():
        error = _refusal(exact.archive, limited(exact.limit, exact.value - 1))
        (kind,) = (kind for kind, others in errors.items() if error.summary == next(iter(others.values())).summary)
        errors[kind][f"beyond a low limit: {name}"] = error
    return {
        **{kind.capitalize(): _of_kind(found) for kind, found in errors.items()},
        "Too large for the disk": {"too little space": _text(_full_disk())},
    }


def _of_kind(errors: Mapping[str, InvalidBundle]) -> dict[str, str]:
    """Return what all errors of a kind say, then what each says alone."""
    (shared,) = {_text(error.with_details(*error.details[1:])) for error in errors.values()}
    facts = {name: clean(error.details[0]) for name, error in errors.items() if error.details}
    return {"all of these" if facts else "\n".join(errors): shared, **grouped(facts)}


def _text(error: InvalidBundle) -> str:
    """Return all that an error says, except what stands elsewhere."""
    texts = [f"{error.summary}.", *error.details, error.cause, error.remedy]
    return "\n".join(clean(text) for text in texts if text not in ELSEWHERE)


def _refusal(archive: bytes, limit: AbstractContextManager[object] | None = None) -> InvalidBundle:
    with tempfile.TemporaryDirectory() as temporary, limit or nullcontext(), Place(Path(temporary, "root")) as place:
        return place.refusal(archive)


def _full_disk() -> InvalidBundle:
    disk = SimpleNamespace(f_frsize=1, f_blocks=100 * GIB, f_bavail=3 * GIB)
    with (
        tempfile.TemporaryDirectory() as temporary,
        Place(Path(temporary, "root")) as place,
        patch.object(os, "statvfs", return_value=disk),
        pytest.raises(InvalidBundle) as caught,
    ):
        place.new_tree().take_space(5 * GIB)
    return caught.value
