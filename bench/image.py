"""What the image adds to its base, by layer and by package: `python bench/image.py`.

The image is built on the base that the Dockerfile names, but without byte code, like the public Python image. Layers are read
from the output of `docker save`: the size of their files, and the size of the layer compressed with gzip, as a registry sends it.

Exits with 3 if the layers are larger than `MAX_UNPACKED_BYTES`.
"""

import gzip
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests have the helpers for images

from bench.needs import need_engine

from tests.container.stripped_base import base_of, built_on, stripped
from tests.engine import ROOT, copy_action, docker, temporary_tag

MAX_UNPACKED_BYTES: Final = 8_000_000
MISSED: Final = 3
"""The exit code for a missed goal; 1 is an error of the benchmark (`page.py`)."""
LARGEST: Final = 12
MB: Final = 1_000_000
COPIED: Final = "the action and its dependencies"
COMPILED: Final = "byte code of the standard library"
TITLE: Final = "## What the image adds to its base"
TEXT: Final = """
Built on the base without byte code, like the public Python image. A layer's size is that of its files; compressed is its size
with gzip, as a registry sends it. The goal: {most:.0f} MB on the disk of a runner, without unused files.
"""
MEANING: Final = """
A runner pulls the image of a release once, and builds it in each job otherwise.
The first layer contains {sources:.0%} sources, which error messages quote, and
{compiled:.0%} byte code, so that a run compiles nothing; the rest is metadata, licenses and certificate authorities. Without the
second layer each run would compile the modules that it uses from the standard library.
"""


@dataclass(kw_only=True)
class Layer:
    """One layer: its content, the sizes of its files by part and by kind, and its compressed size."""

    made_by: str
    compressed: int = 0
    parts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        """The size of all files in bytes."""
        return self.parts.total()


def main() -> int:
    """Build the image, and write the section."""
    need_engine()
    with tempfile.TemporaryDirectory(prefix="image-") as folder:
        (empty := Path(folder, "base")).mkdir()
        base = base_of((ROOT / "Dockerfile").read_text())
        context = copy_action(Path(folder, "action"))
        with stripped(base, empty) as under, built_on(under, temporary_tag(), context) as image:
            layers = [layer for layer in read_layers(image, beyond=len(layers_of(under))) if layer.size]
    return report(layers)


def layers_of(image: str) -> list[str]:
    """Return the digests of an image's layers."""
    found: list[str] = json.loads(docker("image", "inspect", "--format", "{{json .RootFS.Layers}}", image))
    return found


def read_layers(image: str, *, beyond: int) -> list[Layer]:
    """Return an image's layers beyond the given number."""
    with tempfile.TemporaryFile() as saved:
        subprocess.run(["docker", "save", image], stdout=saved, check=True)  # noqa: S603, S607  # as the tests call it
        saved.seek(0)
        with tarfile.open(fileobj=saved) as archive:
            (manifest,) = json.load(_member(archive, "manifest.json"))
            config = json.load(_member(archive, manifest["Config"]))
            made = [step.get("created_by", "") for step in config["history"] if not step.get("empty_layer")]
            files = manifest["Layers"][beyond:]
            return [_read(_member(archive, file), made_by) for file, made_by in zip(files, made[beyond:], strict=True)]


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    found = archive.extractfile(name)
    if found is None:
        raise SystemExit(f"the saved image has no {name}")
    return found


def _read(stream: IO[bytes], made_by: str) -> Layer:
    layer = Layer(made_by=COPIED if "COPY" in made_by else COMPILED)
    content = stream.read()
    layer.compressed = len(gzip.compress(content, compresslevel=6))
    stream.seek(0)
    with tarfile.open(fileobj=stream) as files:
        for file in filter(tarfile.TarInfo.isfile, files):
            layer.parts[_part_of(Path(file.name))] += file.size
            layer.kinds[Path(file.name).suffix] += file.size
    return layer


def _part_of(path: Path) -> str:
    """Return the part that a file belongs to: a distribution with its metadata, or a module of the standard library."""
    if "site-packages" in path.parts:
        return path.parts[path.parts.index("site-packages") + 1].partition("-")[0].replace("_", "-")
    below = [part for part in path.parts if part != "__pycache__"]
    library = next((number for number, part in enumerate(below) if part.startswith("python3")), None)
    return f"`{below[library + 1].partition('.')[0]}`" if library is not None and len(below) > library + 1 else "the rest"


def report(layers: list[Layer]) -> int:
    """Write the section, and return the exit code."""
    total = sum(layer.size for layer in layers)
    out = [TITLE, TEXT.format(most=MAX_UNPACKED_BYTES / MB)]
    out += _table(("layer", "MB", "of the goal", "compressed, MB"), _rows_of_layers(layers))
    out += [""]
    out += _table(("part", "layer", "MB", "share"), _rows_of_parts(layers, total))
    copied = next(layer for layer in layers if layer.made_by == COPIED)
    share = {kind: size / copied.size for kind, size in copied.kinds.items()}
    out += [MEANING.format(sources=share[".py"], compiled=share[".pyc"])]
    left = MAX_UNPACKED_BYTES - total
    out += [f"The goal is met, with {left / MB:.2f} MB left." if left >= 0 else f"The goal is missed by {-left / MB:.2f} MB."]
    sys.stdout.write("\n".join(out) + "\n")
    return 0 if left >= 0 else MISSED


def _rows_of_layers(layers: list[Layer]) -> Iterator[tuple[str, ...]]:
    rows = [(layer.made_by, layer.size, layer.compressed) for layer in layers]
    for name, size, compressed in [*rows, ("total", sum(row[1] for row in rows), sum(row[2] for row in rows))]:
        yield name, f"{size / MB:.2f}", f"{size / MAX_UNPACKED_BYTES:.0%}", f"{compressed / MB:.2f}"


def _rows_of_parts(layers: list[Layer], total: int) -> Iterator[tuple[str, ...]]:
    parts = sorted(((size, name, layer.made_by) for layer in layers for name, size in layer.parts.items()), reverse=True)
    for size, name, layer in parts[:LARGEST]:
        yield name, layer, f"{size / MB:.2f}", f"{size / total:.1%}"
    rest = sum(size for size, _, _ in parts[LARGEST:])
    yield f"{len(parts) - LARGEST} more", "both", f"{rest / MB:.2f}", f"{rest / total:.1%}"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)]


if __name__ == "__main__":
    sys.exit(main())
