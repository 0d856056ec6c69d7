"""Builds the action's image on a base without byte code, like the Python image on Docker Hub (docker-library/python deletes it).

A base with a distribution's Python has byte code, which would hide byte code that the action's own layers lack.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engine import build_image, remove_image

_FROM = re.compile(r"^FROM (\S+)$", re.MULTILINE)
"""The `FROM` of the final stage; the build stage has a name."""


def base_of(dockerfile: str) -> str:
    """Return the base image of a Dockerfile's final stage."""
    (base,) = _FROM.findall(dockerfile)
    return str(base)


@contextmanager
def stripped(base: str, folder: Path) -> Iterator[str]:
    """Build a copy of a base image without byte code, and return its tag."""
    tag = f"stripped-base:{uuid.uuid4().hex[:12]}"
    (folder / "Dockerfile").write_text(f"FROM {base}\nRUN find /usr -name '*.pyc' -delete\n")
    build_image(tag, folder)
    try:
        yield tag
    finally:
        remove_image(tag)


@contextmanager
def built_on(base: str, tag: str, context: Path) -> Iterator[str]:
    """Build an image from a folder, with another base for its final stage."""
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(_FROM.sub(f"FROM {base}", dockerfile.read_text()))
    build_image(tag, context)
    try:
        yield tag
    finally:
        remove_image(tag)
