"""The manifest of a site: the digests of its files, in lines that `sha256sum --check` reads, and of the text of its pages.

The digests of a file are bytes: that of its content and, for a page, that of its text, one after the other.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from .text import UNUSABLE

MAX_FILES: Final = 250_000
MAX_BYTES: Final = 128 * 1024**2
MAX_PAGE_BYTES: Final = 8 * 1024**2  # of a page whose text has a digest
DIGEST_BYTES: Final = 32

_HEADER: Final = re.compile(rb"# ([1-9][0-9]{0,5}) files\n")
_ENTRY: Final = re.compile(rb"([0-9a-f]{64})  (.{1,1024})\n(?:# text ([0-9a-f]{64})\n)?")
_UNSAFE: Final = re.compile(
    rb"(?:\A|/)\.{0,2}(?:/|\Z)|\\"
)  # an empty part, `.`, `..`, or a backslash
_STANDARD_INPUT: Final = b"-"  # for which `sha256sum` takes the name

# Closing tags are first, because half of all tags are such. No match gives back what it has read, so the time is always linear.
_HIDDEN: Final = re.compile(
    rb"</[^>]*+>?"
    rb"|<!--(?:-?>|[^-]*+(?:-(?!-!?>)[^-]*+)*+(?:--!?>)?)"
    rb"|<(script|style|template|noscript)(?=[\s/>])[^<]*+(?:<(?!/\1[\s/>])[^<]*+)*+(?:<[^>]*+>?)?"
    rb"""|<[a-z!?][^>=]*+(?:=\s*+(?:"[^"]*+"?|'[^']*+'?)?[^>=]*+)*+>?""",
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


def read_manifest(data: bytes) -> dict[bytes, bytes]:
    """Return the digests of files by path. Raises `ValueError` with the first line that no whole manifest has there."""
    files, path, header = dict[bytes, bytes](), b"", _HEADER.match(data)
    if header is None or int(header[1]) > MAX_FILES:
        raise _not_whole(data, 0, f"not `# N files` with N from 1 to {MAX_FILES:,}")
    position = header.end()
    while position < len(data):
        entry, previous = _ENTRY.match(data, position), path
        if entry is None or (entry[3] is not None and not is_page(entry[2])):
            raise _not_whole(data, entry.start(3) if entry else position, "cut off or invalid")
        path = _STANDARD_INPUT if entry[2] == b"./-" else entry[2]
        if (
            entry[2] == _STANDARD_INPUT
            or _UNSAFE.search(path)
            or UNUSABLE.search(path.decode(errors="surrogateescape"))
        ):
            raise _not_whole(data, position, "with a path that no manifest has")
        if path <= previous:
            raise _not_whole(data, position, "repeated, or not in the order of the paths")
        files[path] = bytes.fromhex(f"{entry[1].decode()}{(entry[3] or b'').decode()}")
        position = entry.end()
    if len(files) != int(header[1]):
        raise _not_whole(
            data,
            position,
            f"the end, after {len(files):,} files, but line 1 says {int(header[1]):,}",
        )
    return files


def _not_whole(data: bytes, position: int, reason: str) -> ValueError:
    number, start = data.count(b"\n", 0, position) + 1, data.rfind(b"\n", 0, position) + 1
    line = repr(data[start : start + 80].partition(b"\n")[0])[
        1:
    ]  # shows another encoding, and CRLF
    return ValueError(f"line {number} ({line}) is {reason}")
