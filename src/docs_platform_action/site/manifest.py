"""The manifest of a site: the digests of its files, and of the text of its pages.

`sha256sum --check` reads its lines, and takes those about texts for comments.
"""

import hashlib
import re
from binascii import hexlify, unhexlify
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ..errors import InvalidBundle
from ..models import FileDigests
from ..text import UNUSABLE, format_bytes
from .page import is_page

MAX_FILES: Final = 250_000
MAX_BYTES: Final = 128 * 1024**2

_HEADER: Final = re.compile(rb"# ([1-9][0-9]{0,5}) files\n")
_ENTRY: Final = re.compile(rb"([0-9a-f]{64})  (.{1,1024})\n(?:# text ([0-9a-f]{64})\n)?")
# an empty part, `.`, `..`, or a backslash
_UNSAFE: Final = re.compile(rb"(?:\A|/)\.{0,2}(?:/|\Z)|\\")

# `sha256sum` takes this name for the standard input, so a manifest has another name for the file
_STANDARD_INPUT: Final = b"-"
_FILE_NAMED_LIKE_IT: Final = b"./-"


def manifest_lines(files: Mapping[bytes, FileDigests]) -> Iterator[bytes]:
    """Yield the lines of the manifest for the digests of files by path."""
    yield b"# %d files\n" % len(files)
    for path in sorted(files):
        digests = files[path]
        name = _FILE_NAMED_LIKE_IT if path == _STANDARD_INPUT else path
        yield b"%s  %s\n" % (hexlify(digests.content), name)
        if digests.text is not None:
            yield b"# text %s\n" % hexlify(digests.text)


def site_sha256(lines: Iterable[bytes]) -> str:
    """Return the digest of a site by its manifest's lines.

    Raises `InvalidBundle` if the manifest is too large to be compared with later.
    """
    digest = hashlib.sha256()
    size = 0
    for line in lines:
        size += len(line)
        if size > MAX_BYTES:
            limit = f"the manifest's {format_bytes(MAX_BYTES)}"
            raise InvalidBundle(
                "the site is too large for its manifest",
                details=(f"The names of its files do not fit into {limit}.",),
                cause="The site has very many files with very long names.",
                remedy="Deliver it without `manifest-path` and `compare-with`.",
            )
        if not line.startswith(b"#"):
            digest.update(line)
    return digest.hexdigest()


def read_manifest(data: bytes) -> dict[bytes, FileDigests]:
    """Return the digests of files by path.

    Raises `ValueError`, which quotes the first line that is not as expected.
    """
    header = _HEADER.match(data)
    if header is None or int(header[1]) > MAX_FILES:
        raise _unexpected_line(data, 0, f"not `# N files` with N from 1 to {MAX_FILES:,}")
    files: dict[bytes, FileDigests] = {}
    previous = b""
    position = header.end()
    while position < len(data):
        entry = _ENTRY.match(data, position)
        if entry is None:
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
    count = int(header[1])
    if len(files) != count:
        reason = f"the end, after {len(files):,} files, but line 1 says {count:,}"
        raise _unexpected_line(data, position, reason)
    return files


def _is_valid_name(name: bytes) -> bool:
    if name == _FILE_NAMED_LIKE_IT:
        return True
    if name == _STANDARD_INPUT or _UNSAFE.search(name):
        return False
    return not UNUSABLE.search(name.decode(errors="surrogateescape"))


def _unexpected_line(data: bytes, position: int, reason: str) -> ValueError:
    number = data.count(b"\n", 0, position) + 1
    start = data.rfind(b"\n", 0, position) + 1
    line = data[start : start + 80].partition(b"\n")[0]
    shown = repr(line).removeprefix("b")  # shows another encoding, and CRLF
    return ValueError(f"line {number} ({shown}) is {reason}")
