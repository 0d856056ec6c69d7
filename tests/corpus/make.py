"""Make the archives of the corpus, or those that are named: python -m tests.corpus.make [ARCHIVE…]. See README.md."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.corpus.recipes import RECIPES, VERSIONS
from tests.corpus.trees import SOURCES, HardLink, Source

FOLDER: Final = Path(__file__).parent
ARCHIVES: Final = FOLDER / "archives"
MANIFEST: Final = FOLDER / "manifest.json"

_MODIFIED: Final = 1_704_067_200
"""When everything in the trees was last modified: the beginning of 2024 in UTC, in seconds since 1970."""


def main(names: list[str]) -> None:
    """Make archives, and record the version of each one's writer."""
    if os.getuid() != 0:
        sys.exit("Run this as root, for example in a container: some writers always record the user's name.")
    if unknown := [name for name in names if name not in RECIPES]:
        sys.exit(f"There is no recipe for {', '.join(unknown)}.")
    written, failed = manifest(), []
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **{name: os.environ[name] for name in ("PATH", "NODE_PATH") if name in os.environ},
            "HOME": home,
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "WRITERS": str(FOLDER / "writers"),
        }
        for name in names or RECIPES:
            try:
                _make(name, Path(home, name), environment)
                written[name] = _version(VERSIONS[RECIPES[name].writer], environment)
            except subprocess.CalledProcessError as error:
                failed.append(f"{name}: {RECIPES[name].command}\n{error.stderr}")
    MANIFEST.write_text(
        json.dumps({name: written[name] for name in sorted(RECIPES) if name in written}, indent=2) + "\n", "utf-8"
    )
    for path in ARCHIVES.iterdir():
        if path.name not in RECIPES:
            path.unlink()
    if failed:
        sys.exit("\n".join([*failed, f"{len(failed)} archives could not be made. README.md lists the programs to install."]))


def manifest() -> dict[str, str]:
    """Return the version of the writer of each archive, by the archive's name."""
    read = json.loads(MANIFEST.read_text("utf-8"))
    assert isinstance(read, dict)
    return read


def _make(name: str, made: Path, environment: dict[str, str]) -> None:
    recipe = RECIPES[name]
    with tempfile.TemporaryDirectory() as folder:
        _lay_out(SOURCES[recipe.source], Path(folder))
        _run(f"{recipe.command}\ntest -s $OUT", {**environment, "OUT": str(made)}, folder)
    (ARCHIVES / name).write_bytes(made.read_bytes())


def _version(command: str, environment: dict[str, str]) -> str:
    lines = _run(command, environment, environment["HOME"]).splitlines()
    return next(line.strip().replace("\t", " ") for line in lines if line.strip())


def _run(command: str, environment: dict[str, str], folder: str) -> str:
    bash = ["bash", "-O", "dotglob", "-o", "pipefail", "-ec", command]
    return subprocess.run(
        bash, cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
    ).stdout


def _lay_out(source: Source, folder: Path) -> None:
    for path, node in sorted(source.items(), key=lambda item: isinstance(item[1], HardLink)):
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if node is None:
            place.mkdir(exist_ok=True)
        elif isinstance(node, bytes):
            _write(place, node)
        elif isinstance(node, str):
            place.symlink_to(node)
        else:
            os.link(folder / node.path, place, follow_symlinks=False)
    for place in (folder, *folder.rglob("*")):
        os.utime(place, (_MODIFIED, _MODIFIED), follow_symlinks=False)


def _write(place: Path, content: bytes) -> None:
    """Write a file that has holes where the content is zero."""
    with place.open("wb") as file:
        for at in range(0, len(content), 4096):
            if (block := content[at : at + 4096]).strip(b"\0"):
                file.seek(at)
                file.write(block)
        file.truncate(len(content))


if __name__ == "__main__":
    main(sys.argv[1:])
