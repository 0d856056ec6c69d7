"""The unpacked tree of an archive, and the promises that hold for every archive."""

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from docs_platform_action.archive.unpack import unpack
from docs_platform_action.clock import Cancellation
from docs_platform_action.errors import InvalidBundle
from tests.archive_limits import Limits
from tests.archives import open_archive
from tests.folders import Tree, read_tree

NAMES: Final = (b"a", b"b/c", b"b/d/e", b"index.html", b"./f", b"b//g", "é.html".encode(), b"h", b"i", b"j/k")
"""Names of regular files, valid in archives of any kind."""

LIMITS: Final = Limits(entries=400, unpacked_bytes=1 << 20)
"""Low enough for a generated archive to exceed each of them."""

ROOMY: Final = Limits(unpacked_bytes=1 << 24)

MAX_CHECKS: Final = 20_000
"""Maximum checks for a cancel during one run; a run with more does not end."""

ESCAPED: Final = "fuzz-escaped"
"""The name of the file that hostile names lead to."""


class BoundedCancellation(Cancellation):
    """Fails the test after too many checks."""

    def __init__(self) -> None:
        super().__init__()
        self._checks = 0

    def check(self) -> None:
        self._checks += 1
        assert self._checks < MAX_CHECKS
        super().check()


def unpacked(archive: bytes, *, limits: Limits = LIMITS) -> Tree:
    """Unpack an archive, assert that all promises hold, and return the tree. Raises `InvalidBundle`, and nothing else."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        folder = root / "beside" / "site"
        folder.mkdir(parents=True)
        (root / "bundle").write_bytes(archive)
        (root / "beside" / "kept").write_text("kept")
        before = _surroundings(root)
        try:
            with open_archive(root / "bundle", BoundedCancellation()) as file, limits.applied():
                done = unpack(file, folder, on_progress=lambda *_: None)
        except InvalidBundle:
            assert _links_and_bytes(folder, limits)[0] == 0
            raise
        finally:
            assert _surroundings(root) == before
            assert not Path(f"/{ESCAPED}").exists()
            assert not Path(f"/tmp/{ESCAPED}").exists()  # noqa: S108  # nothing is put there
        _, size = _links_and_bytes(folder, limits)
        tree = read_tree(folder)
        links = (folder / path for path, what in tree.items() if isinstance(what, str))
        assert all(Path(os.path.realpath(link, strict=True)).is_relative_to(folder.resolve()) for link in links)
        assert (done.files, done.size) == (sum(isinstance(what, bytes) for what in tree.values()), size)
        return tree


def _surroundings(root: Path) -> dict[str, tuple[int, ...]]:
    """Return the mode, size, time, inode and owner of everything except the site."""
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
    """Return the number of symbolic links in a folder and the bytes of its files, after asserting that all is harmless."""
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


def plain(name: bytes) -> str:
    """Return an archive's name as a path, without `.` and doubled slashes."""
    return "/".join(part for part in name.decode().split("/") if part not in {"", "."})
