"""The manifest of a site: the digests of its files and of the text of its pages, and its links.

`sha256sum --check` reads its lines, and takes those about texts and about links for comments.
"""

import hashlib
import re
from binascii import hexlify, unhexlify
from collections.abc import Container, Iterable, Iterator
from typing import Final

from ..errors import InvalidBundle
from ..models import FileDigests, Manifest
from ..text import UNUSABLE, format_bytes
from .links import MAX_REACHABLE, reachable_files
from .page import is_page

MAX_FILES: Final = 250_000
MAX_BYTES: Final = 128 * 1024**2
ARROW: Final = b" -> "  # between a link and its folder
REMEDY_WITHOUT_MANIFEST: Final = "Deliver the site without `manifest-path` and `compare-with`."

_HEADER: Final = re.compile(rb"# ([1-9][0-9]{0,5}) files\n")
_ENTRY: Final = re.compile(rb"([0-9a-f]{64})  (.{1,1024})\n(?:# text ([0-9a-f]{64})\n)?")
_LINK: Final = re.compile(rb"# link (.{1,1024}?) -> (.{1,1024})\n")
# an empty part, `.`, `..`, or a backslash
_UNSAFE: Final = re.compile(rb"(?:\A|/)\.{0,2}(?:/|\Z)|\\")

# `sha256sum` takes this name for the standard input, so a manifest has another name for the file
_STANDARD_INPUT: Final = b"-"
_FILE_NAMED_LIKE_IT: Final = b"./-"


def manifest_lines(manifest: Manifest) -> Iterator[bytes]:
    """Yield the lines of a manifest. Links to folders count as files, and follow them."""
    yield b"# %d files\n" % (len(manifest.files) + len(manifest.folder_links))
    for path in sorted(manifest.files):
        digests = manifest.files[path]
        name = _FILE_NAMED_LIKE_IT if path == _STANDARD_INPUT else path
        yield b"%s  %s\n" % (hexlify(digests.content), name)
        if digests.text is not None:
            yield b"# text %s\n" % hexlify(digests.text)
    for path, target in sorted(manifest.folder_links.items()):
        yield b"# link %s%s%s\n" % (path, ARROW, target)


def site_sha256(lines: Iterable[bytes]) -> str:
    """Return the digest of a site by its manifest's lines about files and links.

    Raises `InvalidBundle` if the manifest is too large to be compared with later.
    """
    digest = hashlib.sha256()
    size = 0
    for number, line in enumerate(lines):
        size += len(line)
        if size > MAX_BYTES:
            limit = f"the manifest's {format_bytes(MAX_BYTES)}"
            raise InvalidBundle(
                "the site is too large for its manifest",
                details=(f"The names of its files do not fit into {limit}.",),
                cause="The site has very many files with very long names.",
                remedy=REMEDY_WITHOUT_MANIFEST,
            )
        if number > 0 and not line.startswith(b"# text "):
            digest.update(line)
    return digest.hexdigest()


def read_manifest(data: bytes) -> Manifest:
    """Return what a manifest lists.

    Raises `ValueError`, which quotes the first line that is not as expected.
    """
    header = _HEADER.match(data)
    if header is None or int(header[1]) > MAX_FILES:
        raise _unexpected_line(data, 0, f"not `# N files` with N from 1 to {MAX_FILES:,}")
    files, position = _read_files(data, header.end())
    folder_links = _read_folder_links(data, position, files)
    count = int(header[1])
    found = len(files) + len(folder_links)
    if found != count:
        reason = f"the end, after {found:,} files, but line 1 says {count:,}"
        raise _unexpected_line(data, len(data), reason)
    manifest = Manifest(files=files, folder_links=folder_links)
    try:
        reachable_files(manifest)
    except InvalidBundle:
        reason = f"the first link, and links lead in a circle or to over {MAX_REACHABLE:,} files"
        raise _unexpected_line(data, position, reason) from None
    return manifest


def _read_files(data: bytes, position: int) -> tuple[dict[bytes, FileDigests], int]:
    """Return the digests of the files, of which there is at least one, and where they end."""
    files: dict[bytes, FileDigests] = {}
    previous = b""
    while position < len(data):
        entry = _ENTRY.match(data, position)
        if entry is None:
            if files and data.startswith(b"# link ", position):
                break
            raise _unexpected_line(data, position, "cut off or invalid")
        content_hex, name, text_hex = entry.groups()
        if text_hex is not None and not is_page(name):
            raise _unexpected_line(data, entry.start(3), "cut off or invalid")
        if not _is_valid_name(name):
            raise _unexpected_line(data, position, "with a path that no manifest has")
        path = _STANDARD_INPUT if name == _FILE_NAMED_LIKE_IT else name
        if path <= previous:
            raise _unexpected_line(data, position, "repeated, or not in the order of the paths")
        text = None
        if text_hex is not None:
            text = unhexlify(text_hex)
        files[path] = FileDigests(unhexlify(content_hex), text)
        previous = path
        position = entry.end()
    return files, position


def _read_folder_links(data: bytes, position: int, files: Container[bytes]) -> dict[bytes, bytes]:
    """Return the links, from where the files end to the end of the manifest."""
    folder_links: dict[bytes, bytes] = {}
    previous = b""
    while position < len(data):
        link = _LINK.match(data, position)
        if link is None:
            raise _unexpected_line(data, position, "cut off or invalid")
        path, target = link.groups()
        if ARROW in path or path in files or not (_is_valid_path(path) and _is_valid_path(target)):
            raise _unexpected_line(data, position, "with a path that no manifest has")
        if path <= previous:
            raise _unexpected_line(data, position, "repeated, or not in the order of the paths")
        folder_links[path] = target
        previous = path
        position = link.end()
    return folder_links


def _is_valid_name(name: bytes) -> bool:
    if name == _FILE_NAMED_LIKE_IT:
        return True
    return name != _STANDARD_INPUT and _is_valid_path(name)


def _is_valid_path(path: bytes) -> bool:
    if _UNSAFE.search(path):
        return False
    return not UNUSABLE.search(path.decode(errors="surrogateescape"))


def _unexpected_line(data: bytes, position: int, reason: str) -> ValueError:
    number = data.count(b"\n", 0, position) + 1
    start = data.rfind(b"\n", 0, position) + 1
    line = data[start : start + 80].partition(b"\n")[0]
    shown = repr(line).removeprefix("b")  # shows another encoding, and CRLF
    return ValueError(f"line {number} ({shown}) is {reason}")
