"""Archives.

What somebody reads whose bundle is not unpacked. Several archives above one text are refused with the same words.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from errno import EILSEQ
from pathlib import Path
from unittest.mock import patch

import pytest

from docs_platform_action.archive.limits import Disk, Quota, Space
from docs_platform_action.errors import InvalidBundle
from docs_platform_action.text import clean
from tests.archive_limits import EXACT
from tests.archives import KINDS, REFUSED, SMALL_SITE
from tests.corpus.make import ARCHIVES
from tests.corpus.recipes import RECIPES
from tests.unit.archive.places import Place
from tests.wording.page import Sections, grouped

GIB = 1024**3


def sections() -> Sections:
    """Return the refusals of hostile and damaged archives, of those beyond a limit, and of the disk."""
    errors = {kind: {name: _refusal(archive) for name, archive in archives.items()} for kind, archives in REFUSED.items()}
    for name, recipe in RECIPES.items():
        if recipe.refused:
            errors[recipe.refused][name] = _refusal((ARCHIVES / name).read_bytes())
    errors["unsafe"] |= {
        **{f"beyond a low limit: {name}": _refusal(exact.archive, exact.applied(lowered=1)) for name, exact in EXACT.items()},
        "with a name that the disk does not accept": _refusal(KINDS["tar"](SMALL_SITE), _refused_links()),
    }
    return {
        **{kind.capitalize(): _of_kind(found) for kind, found in errors.items()},
        "Too large for the disk": {name: _text(error) for name, error in _on_the_disk().items()},
    }


def _of_kind(errors: Mapping[str, InvalidBundle]) -> dict[str, str]:
    """Return what all errors of a kind say, then what each says alone."""
    (shared,) = {_text(error.with_details(*error.details[1:])) for error in errors.values()}
    facts = {name: clean(error.details[0]) for name, error in errors.items() if error.details}
    return {"all of these" if facts else "\n".join(errors): shared, **grouped(facts)}


def _text(error: InvalidBundle) -> str:
    """Return all that an error says, but not the cause and the remedy of most bundles that are refused."""
    texts = [f"{error.summary}.", *error.details, error.cause, error.remedy]
    return "\n".join(clean(text) for text in texts if text not in {InvalidBundle.default_cause, InvalidBundle.default_remedy})


def _refusal(archive: bytes, limit: AbstractContextManager[object] | None = None) -> InvalidBundle:
    with tempfile.TemporaryDirectory() as temporary, limit or nullcontext():
        return Place(Path(temporary, "root")).refusal(archive)


def _error(attempt: Callable[[], object]) -> InvalidBundle:
    with pytest.raises(InvalidBundle) as caught:
        attempt()
    return caught.value


def _refused_links() -> AbstractContextManager[object]:
    return patch.object(os, "symlink", side_effect=OSError(EILSEQ, "Illegal byte sequence"))


class _FixedDisk(Disk):
    def __init__(self, **space: int) -> None:
        self._space = Space(**space)

    def space(self) -> Space:
        return self._space


def _on_the_disk() -> dict[str, InvalidBundle]:
    full = Quota(_FixedDisk(total_bytes=100 * GIB, free_bytes=3 * GIB))
    used_up = Quota(_FixedDisk(total_bytes=GIB, free_bytes=GIB, total_inodes=65_536, free_inodes=6_553))
    return {
        "too little space": _error(lambda: full.add_bytes(5 * GIB)),
        "too little space for a file that announces its size": _error(lambda: full.check_declared_bytes(5 * GIB)),
        "too few inodes": _error(used_up.add_entry),
    }
