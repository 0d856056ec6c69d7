"""What an archive becomes on the disk, and the promises that hold for it whatever the archive is."""

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from docs_platform_action.archive.limits import Limits
from docs_platform_action.archive.reading import open_archive
from docs_platform_action.archive.unpack import unpack
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import InvalidBundle

Tree = dict[str, bytes | str | None]
"""By the path: a file's content, a link's target, or nothing for a folder."""

NAMES: Final = (b"a", b"b/c", b"b/d/e", b"index.html", b"./f", b"b//g", "é.html".encode(), b"h", b"i", b"j/k")
"""Of files that are nothing but files, in archives of any kind."""

LIMITS: Final = Limits(entries=400, unpacked_bytes=1 << 20)
"""Such that a generated archive can be too much of everything."""

ROOMY: Final = Limits(unpacked_bytes=1 << 24)

MAX_CHECKS: Final = 20_000
"""How often the work may ask whether it is to end; one that does so for longer goes on without an end in sight."""

ESCAPED: Final = "fuzz-escaped"
"""What hostile names call the file that they lead to, wherever it is."""


class BoundedCancellation(Cancellation):
    """Fails the test when it is asked too often."""

    def __init__(self) -> None:
        super().__init__()
        self._checks = 0

    def check(self) -> None:
        self._checks += 1
        assert self._checks < MAX_CHECKS
        super().check()


def unpacked(archive: bytes, *, limits: Limits = LIMITS) -> Tree:
    """Unpack an archive, see that all promises are kept, and give what came of it. Raises `InvalidBundle`, and nothing else."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        folder = root / "beside" / "site"
        folder.mkdir(parents=True)
        (root / "bundle").write_bytes(archive)
        (root / "beside" / "kept").write_text("kept")
        before = _surroundings(root)
        try:
            with open_archive(root / "bundle", BoundedCancellation()) as file:
                done = unpack(file, folder, on_progress=lambda *_: None, limits=limits)
        except InvalidBundle:
            assert _links_and_bytes(folder, limits)[0] == 0
            raise
        finally:
            assert _surroundings(root) == before
            assert not Path(f"/{ESCAPED}").exists()
            assert not Path(f"/tmp/{ESCAPED}").exists()  # noqa: S108  # nothing is put there
        _, size = _links_and_bytes(folder, limits)
        tree = _tree_of(folder)
        assert (done.files, done.size) == (sum(isinstance(what, bytes) for what in tree.values()), size)
        return tree


def _surroundings(root: Path) -> dict[str, tuple[int, ...]]:
    """Look at all but the site itself: what it is, how large, and when it was changed."""
    found = {}
    for inside, folders, files in os.walk(root):
        if Path(inside) == root / "beside" / "site":
            folders.clear()
            continue
        for name in (*folders, *files):
            path = Path(inside, name)
            status = path.lstat()
            if path != root / "beside" / "site":
                found[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, status.st_uid)
    return found


def _links_and_bytes(folder: Path, limits: Limits) -> tuple[int, int]:
    """See that what is in a folder is harmless and within bounds; count its symbolic links and the bytes of its files."""
    links = size = count = 0
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            status = Path(inside, name).lstat()
            count += 1
            if stat.S_ISLNK(status.st_mode):
                links += 1
                continue
            assert stat.filemode(status.st_mode) in {"-rw-r--r--", "drwxr-xr-x"}
            assert stat.S_ISDIR(status.st_mode) or status.st_nlink == 1
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
    assert size <= limits.unpacked_bytes
    assert count <= limits.entries
    return links, size


def _tree_of(folder: Path) -> Tree:
    tree: Tree = {}
    for inside, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(inside, name)
            if path.is_symlink():
                assert Path(os.path.realpath(path, strict=True)).is_relative_to(folder.resolve())
                tree[str(path.relative_to(folder))] = os.readlink(path)  # noqa: PTH115  # as it is, doubled slashes too
            else:
                tree[str(path.relative_to(folder))] = path.read_bytes() if path.is_file() else None
    return tree


def plain(name: bytes) -> str:
    """Spell an archive's name as a path: without `.` and doubled slashes."""
    return "/".join(part for part in name.decode().split("/") if part not in {"", "."})


def assert_same_files(ours: Tree, theirs: Tree) -> None:
    """See that two readers found the same files and links; what is a folder for the one may be an empty file for the other."""
    folders = {"", *(path for path, what in ours.items() if what is None)}
    files = {path: what for path, what in theirs.items() if what is not None and not (what == b"" and path in folders)}
    assert {path: what for path, what in ours.items() if what is not None} == files
