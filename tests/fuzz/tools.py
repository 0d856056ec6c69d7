"""Other programs that unpack archives. What the action accepts, all of them that accept it must unpack to the same tree."""

import io
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docs_platform_action.archive.tar import is_tar_header
from tests.folders import Tree
from tests.fuzz.tree import plain

Reader = Callable[[bytes], Tree | None]
"""Reads an archive; returns `None` if the tool refuses it, or unpacks it only with a warning."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program, under one of several names, and its arguments to unpack the file `{archive}` into the current folder."""

    names: tuple[str, ...]
    arguments: tuple[str, ...]

    @property
    def path(self) -> str | None:
        """The program's path, if it is installed."""
        return next((found for name in self.names if (found := shutil.which(name))), None)

    def __call__(self, archive: bytes) -> Tree | None:
        assert self.path
        with tempfile.TemporaryDirectory() as temporary:
            file, folder = Path(temporary, "archive"), Path(temporary, "site")
            file.write_bytes(archive)
            folder.mkdir()
            try:
                ended = subprocess.run(
                    [self.path, *(argument.format(archive=file) for argument in self.arguments)],
                    cwd=folder,
                    env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=5,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return None  # as unzip 6.00 does with some bzip2 data
            return None if ended.returncode else dict(_found_in(folder))


def _found_in(root: Path, inside: str = "") -> Iterator[tuple[str, bytes | str | None]]:
    """Yield each path below a folder and what is there, after making it readable."""
    (root / inside).chmod(0o755)
    for found in sorted((root / inside).iterdir()):
        path = str(found.relative_to(root))
        mode = found.lstat().st_mode
        if stat.S_ISLNK(mode):
            yield path, os.readlink(found)  # noqa: PTH115  # as it is, doubled slashes too
        elif stat.S_ISDIR(mode):
            yield path, None
            yield from _found_in(root, path)
        else:
            assert stat.S_ISREG(mode)
            found.chmod(0o644)
            yield path, found.read_bytes()


def tar_as_python_reads(archive: bytes) -> Tree | None:
    """Read a tar archive with `tarfile`."""
    tree: Tree = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:", encoding="utf-8", errors="strict") as found:
            for member in found:
                path = plain(member.name.encode())
                assert member.isdir() or member.issym() or not member.mode & 0o7000
                if member.isdir():
                    tree[path] = None
                elif member.issym():
                    tree[path] = member.linkname
                elif member.islnk() and isinstance(target := tree.get(plain(member.linkname.encode())), str):
                    tree[path] = target  # as GNU tar unpacks it; Python would read what the symbolic link leads to
                else:
                    content = found.extractfile(member)
                    assert content is not None
                    tree[path] = content.read()
            if archive[found.offset : found.offset + 512] != bytes(512):
                return None  # Python treats a header with any invalid number as the end of the archive
    except (tarfile.TarError, ValueError, OverflowError, KeyError):
        return None
    return with_folders(tree)


def zip_as_python_reads(archive: bytes) -> Tree | None:
    """Read a zip archive with `zipfile`, which knows no symbolic links and takes names without a flag for those of DOS."""
    tree: Tree = {}
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as found:
            for info in found.infolist():
                encoding = "utf-8" if info.flag_bits & 0x800 else "cp437"
                is_stored_name = info.filename == info.orig_filename.partition("\0")[0]
                name = info.orig_filename.encode(encoding) if is_stored_name else info.filename.encode()
                mode = info.external_attr >> 16 if info.create_system == 3 else 0
                content = found.read(info)
                if stat.S_ISLNK(mode):
                    tree[plain(name)] = content.decode()
                else:
                    tree[plain(name)] = None if name.endswith(b"/") or stat.S_ISDIR(mode) else content
    except zipfile.BadZipFile as error:
        if "CRC" in str(error):
            raise  # the content does not match its checksum, but the action accepted it
        return None
    except (NotImplementedError, RuntimeError, ValueError, EOFError, OSError, zlib.error, struct.error):
        return None
    return with_folders(tree)


def with_folders(tree: Tree) -> Tree:
    """Return a tree with the folders that its paths imply, without the folder itself."""
    folders = {path[: slash.start()]: None for path in tree for slash in re.finditer("/", path)}
    return {path: what for path, what in {**folders, **tree}.items() if path}


GNU_TAR: Final = Program(names=("tar", "gtar"), arguments=("--extract", "--file={archive}", "--no-same-owner"))
BSDTAR: Final = Program(names=("bsdtar",), arguments=("-xf", "{archive}", "--no-same-owner"))
UNZIP: Final = Program(names=("unzip",), arguments=("-q", "{archive}"))
SEVEN_ZIP_TAR: Final = Program(names=("7zz", "7z", "7za"), arguments=("x", "-bd", "-y", "-ttar", "{archive}"))
SEVEN_ZIP: Final = Program(names=("7zz", "7z", "7za"), arguments=("x", "-bd", "-y", "-tzip", "{archive}"))

TAR_TOOLS: Final[Mapping[str, Reader]] = {
    "GNU tar": GNU_TAR,
    "bsdtar": BSDTAR,
    "7-Zip": SEVEN_ZIP_TAR,
    "Python": tar_as_python_reads,
}
ZIP_TOOLS: Final[Mapping[str, Reader]] = {
    "unzip": UNZIP,
    "bsdtar": BSDTAR,
    "7-Zip": SEVEN_ZIP,
    "Python": zip_as_python_reads,
}


def missing_tools() -> list[str]:
    """Return the names of the tools that are not installed."""
    tools = {**TAR_TOOLS, **ZIP_TOOLS}
    return sorted(name for name, tool in tools.items() if isinstance(tool, Program) and tool.path is None)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference that is accepted: the tools that have it, why, and whether it explains their tree beside the action's."""

    tools: Collection[str]
    reason: str
    explains: Callable[[bytes, Tree, Tree], bool]


def _has_label(archive: bytes, ours: Tree, theirs: Tree) -> bool:
    """Return whether the archive begins with a label, and all that the tool has more is empty."""
    more = [what for path, what in theirs.items() if path not in ours]
    return archive[156:157] == b"V" and not any(more) and ours == {path: theirs[path] for path in ours.keys() & theirs.keys()}


def _composed(_archive: bytes, ours: Tree, theirs: Tree) -> bool:
    return {unicodedata.normalize("NFC", path): what for path, what in ours.items()} == theirs


def _with_empty_files_for_folders(_archive: bytes, ours: Tree, theirs: Tree) -> bool:
    return ours == {path: None if what == b"" and ours.get(path, b"") is None else what for path, what in theirs.items()}


def _without_versions(_archive: bytes, ours: Tree, theirs: Tree) -> bool:
    return {re.sub(";[0-9]+$", "", path): what for path, what in ours.items()} == theirs


def _has_zero_in_record(archive: bytes, _ours: Tree, _theirs: Tree) -> bool:
    return re.search(rb"\n?[0-9]+ [^=\n]+=[^\n]*\0[^\n]*\n", archive) is not None


def _with_other_targets(_archive: bytes, ours: Tree, theirs: Tree) -> bool:
    return {path: re.sub("//+", "/", what) if isinstance(what, str) else what for path, what in ours.items()} == theirs


def _with_folders_for_files(_archive: bytes, ours: Tree, theirs: Tree) -> bool:
    return theirs == {path: what if theirs.get(path, b"") is not None else None for path, what in ours.items()}


def _without_drives(_archive: bytes, ours: Tree, theirs: Tree) -> bool:
    return with_folders({re.sub("^([A-Za-z]:)+", "", path): what for path, what in ours.items()}) == theirs


_NUMBERS: Final = ((100, 8), (108, 8), (116, 8), (124, 12), (136, 12), (329, 8), (337, 8))


def _has_odd_number_first(archive: bytes, ours: Tree, theirs: Tree) -> bool:
    numbers = (archive[start : start + length] for start, length in _NUMBERS)
    is_usual = all(re.fullmatch(rb" *[0-7]+[ \0]*|\0*|(\x80\0{3}|\xff{4}).*", number, re.DOTALL) for number in numbers)
    return not is_usual and len(ours.items() - theirs.items()) <= 4 and len(theirs.items() - ours.items()) <= 1


@dataclass(frozen=True, kw_only=True)
class _Listed:
    """A record of a zip archive's directory."""

    name: bytes
    system: int
    attributes: int


def _listed(archive: bytes) -> Iterator[_Listed]:
    for found in re.finditer(rb"PK\x01\x02", archive):
        record = archive[found.start() :].ljust(46, b"\0")
        (length,) = struct.unpack_from("<H", record, 28)
        (attributes,) = struct.unpack_from("<H", record, 36)
        yield _Listed(name=record[46 : 46 + length], system=record[5], attributes=attributes)


def _has_link_with_unused_bits(archive: bytes, ours: Tree, theirs: Tree) -> bool:
    odd = {record.name.decode("utf-8", "replace") for record in _listed(archive) if record.attributes > 3}
    links: Tree = {path: what.encode() for path, what in ours.items() if isinstance(what, str) and path in odd}
    return ours | links == theirs


def _has_name_of_dos(archive: bytes, _ours: Tree, _theirs: Tree) -> bool:
    return any(record.system in {0, 6} and not record.name.isascii() for record in _listed(archive))


def _has_prefix_otherwise(archive: bytes, _ours: Tree, _theirs: Tree) -> bool:
    blocks = (archive[at : at + 512] for at in range(0, len(archive), 512))
    return any(is_tar_header(block) and any(block[345:500]) and block[257:263] != b"ustar\0" for block in blocks)


def _has_unicode_field(archive: bytes, _ours: Tree, _theirs: Tree) -> bool:
    return sys.version_info < (3, 12) and b"up" in archive


_BOTH: Final = (
    Difference(tools={"bsdtar"}, reason="removes a letter and a colon from the beginning of names", explains=_without_drives),
    Difference(tools={"bsdtar"}, reason="composes the letters of names that are UTF-8 by definition", explains=_composed),
    Difference(tools={"7-Zip"}, reason="removes doubled slashes from the targets of links", explains=_with_other_targets),
)
TAR_DIFFERENCES: Final = (
    *_BOTH,
    Difference(
        tools={"7-Zip"},
        reason="ignores an extended header with a zero byte in a value, as extended attributes may have",
        explains=_has_zero_in_record,
    ),
    Difference(tools={"7-Zip", "Python"}, reason="unpack the archive's label as an empty file", explains=_has_label),
    Difference(
        tools={"7-Zip"},
        reason="does not recognize the first header if a number is blank or needs more than 64 bits, and skips to the next",
        explains=_has_odd_number_first,
    ),
    Difference(
        tools={"Python", "7-Zip"},
        reason="read POSIX's prefix in GNU's headers too, where GNU tar keeps times",
        explains=_has_prefix_otherwise,
    ),
    Difference(
        tools={"Python"},
        reason="takes a file whose name ends with a slash for an empty file; POSIX.1-1988 says that it is a folder",
        explains=_with_empty_files_for_folders,
    ),
    Difference(
        tools={"Python"},
        reason="takes a file for a folder if the name in its header ends with a slash, whatever its extended header says",
        explains=_with_folders_for_files,
    ),
)
ZIP_DIFFERENCES: Final = (
    *_BOTH,
    Difference(tools={"unzip"}, reason="removes a version of VMS from the end of names", explains=_without_versions),
    Difference(
        tools={"unzip"},
        reason="takes a symbolic link for a file if unused bits of its internal attributes are set",
        explains=_has_link_with_unused_bits,
    ),
    Difference(
        tools={"unzip", "Python"},
        reason="take a folder whose name does not end with a slash for an empty file",
        explains=_with_empty_files_for_folders,
    ),
    Difference(
        tools={"unzip"},
        reason="takes the names of archives from DOS and OS/2 for those of a code page, even if they are marked as UTF-8",
        explains=_has_name_of_dos,
    ),
    Difference(tools={"Python"}, reason="knows the Unicode field of names only since 3.12", explains=_has_unicode_field),
)


def trees_of_others(archive: bytes, ours: Tree) -> dict[str, Tree]:
    """Return the trees of the tools that unpack an archive to another one than the action, exceptions aside."""
    is_zip = not is_tar_header(archive[:512])  # whose name may begin as a zip archive does
    ours = with_folders(ours)
    found = {}
    for name, read in (ZIP_TOOLS if is_zip else TAR_TOOLS).items():
        if (isinstance(read, Program) and not read.path) or (theirs := read(archive)) is None or theirs == ours:
            continue
        exceptions = ZIP_DIFFERENCES if is_zip else TAR_DIFFERENCES
        if not any(name in each.tools and each.explains(archive, ours, theirs) for each in exceptions):
            found[name] = theirs
    return found
