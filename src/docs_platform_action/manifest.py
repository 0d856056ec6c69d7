"""The manifest of a site: the digests of its files, in lines that `sha256sum --check` reads, and of the text of its pages.

The digests of a file are bytes: that of its content and, for a page, that of its text, one after the other.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Final

from .models import UNUSABLE
from .text import quoted

MAX_FILES: Final = 250_000
MAX_BYTES: Final = 128 * 1024**2
MAX_PAGE_BYTES: Final = 8 * 1024**2  # of a page whose text has a digest
DIGEST_BYTES: Final = 32

_HEADER: Final = re.compile(rb"# ([1-9][0-9]{0,5}) files\n")
_FILE: Final = re.compile(rb"([0-9a-f]{64})  (.+)\n")
_TEXT: Final = re.compile(rb"# text ([0-9a-f]{64})\n")
_STANDARD_INPUT: Final = b"-"  # for which `sha256sum` takes the name

# No match gives back what it has read, also where an end is missing, so the time is linear for any page.
_HIDDEN: Final = re.compile(
    rb"</[^>]*+>?"  # first, because half of all tags are such
    rb"|<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->)?"
    rb"|<(script|style|template|noscript)(?=[\s/>])[^<]*+(?:<(?!/\1[\s/>])[^<]*+)*+(?:<[^>]*+>?)?"
    rb"|<[a-z!?][^>]*+>?",
    re.IGNORECASE,
)
_WHITE_SPACE: Final = bytes.maketrans(b"\t\n\v\f\r", b"     ")
_SPACES: Final = re.compile(rb"  +")


def is_page(path: bytes) -> bool:
    """Return whether a file is a page of the site."""
    return path.lower().endswith(b".html")


def text_digest(page: bytes) -> bytes:
    """Return the digest of what a reader sees of a page: no comments, scripts, styles, templates, tags and repeated spaces."""
    text = _HIDDEN.sub(b"", page).translate(_WHITE_SPACE)
    return hashlib.sha256(_SPACES.sub(b" ", text) if b"  " in text else text).digest()


def manifest_lines(files: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """Yield the manifest's lines for the digests of files by path."""
    yield b"# %d files\n" % len(files)
    for path in sorted(files):
        content, text = files[path][:DIGEST_BYTES], files[path][DIGEST_BYTES:]
        yield b"%s  %s\n" % (content.hex().encode(), b"./-" if path == _STANDARD_INPUT else path)
        if text:
            yield b"# text %s\n" % text.hex().encode()


def read_manifest(file: BinaryIO) -> dict[bytes, bytes]:
    """Return the digests of files by path. Raises `ValueError` with the number of the line that shows that it is not whole."""
    files: dict[bytes, bytes] = {}
    count, number, path = 0, 0, b""
    for number, line in enumerate(file, start=1):
        if line.endswith(b"\r\n"):
            raise ValueError(f"line {number} ends with CRLF")
        if number == 1:
            count = int(header[1]) if (header := _HEADER.fullmatch(line)) else 0
            if not 0 < count <= MAX_FILES:
                given = quoted(line[:40].decode(errors="replace").rstrip())
                raise ValueError(f"line 1 is {given}, not `# N files` with N from 1 to {MAX_FILES:,}")
        elif (text := _TEXT.fullmatch(line)) and is_page(path) and len(files[path]) == DIGEST_BYTES:
            files[path] += bytes.fromhex(text[1].decode())
        elif entry := _FILE.fullmatch(line):
            previous, path = path, _path_of(entry[2], number)
            if path <= previous:
                raise ValueError(f"line {number} {'repeats a path' if path == previous else 'is not in the order of the paths'}")
            files[path] = bytes.fromhex(entry[1].decode())
        else:
            raise ValueError(f"line {number} is not a whole line of a manifest")
    if len(files) != count:
        raise ValueError(f"line {number} is the last one, after {len(files):,} files, but line 1 says {count:,}")
    return files


def _path_of(name: bytes, number: int) -> bytes:
    """Return the path that a line names. Raises `ValueError` unless it is that of a file below the site's folder."""
    path = _STANDARD_INPUT if name == b"./-" else name
    text = path.decode(errors="surrogateescape")
    if name == _STANDARD_INPUT or UNUSABLE.search(text) or "\\" in text or {"", ".", ".."}.intersection(text.split("/")):
        raise ValueError(f"line {number} has a path that is not UTF-8 or is not below the site's folder")
    return path
