"""The action's image on a base as Docker Hub has it, whose Python has no byte code (source: docker-library/python deletes it).

A base whose Python is a distribution's package has it, and would hide what the action's own layers bring or lack of it.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engine import build_image, remove_image

_FROM = re.compile(r"^FROM (\S+)$", re.MULTILINE)
"""The final stage's: that of the build has a name."""


def base_of(dockerfile: str) -> str:
    """Return the image that a Dockerfile's final stage is built on."""
    (base,) = _FROM.findall(dockerfile)
    return str(base)


@contextmanager
def stripped(base: str, folder: Path) -> Iterator[str]:
    """Make an image of a base image without byte code, in an empty folder."""
    tag = f"stripped-base:{uuid.uuid4().hex[:12]}"
    (folder / "Dockerfile").write_text(f"FROM {base}\nRUN find /usr -name '*.pyc' -delete\n")
    build_image(tag, folder)
    try:
        yield tag
    finally:
        remove_image(tag)


@contextmanager
def built_on(base: str, tag: str, context: Path) -> Iterator[str]:
    """Build an image from a folder, its final stage on another base."""
    dockerfile = context / "Dockerfile"
    dockerfile.write_text(_FROM.sub(f"FROM {base}", dockerfile.read_text()))
    build_image(tag, context)
    try:
        yield tag
    finally:
        remove_image(tag)
