"""The plan of a publication: what the site holds, and what it changes of what is published."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from ..errors import InvalidBundle, TooManyRemoved
from ..inputs.settings import MaxRemoved
from ..manifest import DIGEST_BYTES, MAX_BYTES, MAX_PAGE_BYTES, is_page, text_digest
from ..models import Changes
from ..text import format_bytes, pluralize
from .archive import Chunk

MAX_LISTED: Final = 50  # pages of a kind in the summary
MAX_NAMED: Final = 5  # removed pages in an error


class Digests:
    """The digests of a site's files by path, taken while they are written. `published` has those of an earlier site."""

    def __init__(self, published: Mapping[bytes, bytes]) -> None:
        self.files: dict[bytes, bytes] = {}
        self._published = published

    def record(self, path: bytes, content: Iterable[Chunk]) -> Iterator[Chunk]:
        """Yield a file's content, and record its digests at the end."""
        digest, page, size = (
            hashlib.sha256(),
            list[Chunk](),
            0 if is_page(path) else MAX_PAGE_BYTES + 1,
        )
        for chunk in content:
            digest.update(chunk)
            size += len(chunk)
            if size <= MAX_PAGE_BYTES:
                page.append(chunk)
            yield chunk
        self.files[path] = found = digest.digest()
        if size <= MAX_PAGE_BYTES:
            known = self._published.get(path, b"")
            has_same_text = known.startswith(found) and len(known) > DIGEST_BYTES
            self.files[path] = known if has_same_text else found + text_digest(b"".join(page))

    def add_link(self, path: bytes, target: bytes) -> None:
        """Record a symbolic link's target as the link's own content, unless it is a folder."""
        if target in self.files:
            self.files[path] = self.files[target][: None if is_page(path) else DIGEST_BYTES]


def compare(
    published: Mapping[bytes, bytes], files: Mapping[bytes, bytes]
) -> tuple[Changes, Mapping[str, Sequence[bytes]]]:
    """Return what changes from the published digests to those of a new site, and the sorted paths by kind.

    A page without a digest of its text, because it is very large, counts as changed in its text.
    """
    common = sorted(files.keys() & published.keys())
    differing = [
        path for path in common if files[path][:DIGEST_BYTES] != published[path][:DIGEST_BYTES]
    ]
    has_new_text = {
        path: is_page(path)
        and (
            len(files[path]) == DIGEST_BYTES
            or files[path][DIGEST_BYTES:] != published[path][DIGEST_BYTES:]
        )
        for path in differing
    }
    paths = {
        Changes.ADDED: sorted(files.keys() - published.keys()),
        Changes.TEXT_CHANGED: [path for path in differing if has_new_text[path]],
        Changes.CHANGED: [path for path in differing if not has_new_text[path]],
        Changes.REMOVED: sorted(published.keys() - files.keys()),
    }
    pages = {kind: [path for path in changed if is_page(path)] for kind, changed in paths.items()}
    counts = {kind: len(changed) for kind, changed in pages.items()}
    others = {
        kind: len(changed) - counts[kind]
        for kind, changed in paths.items()
        if kind != Changes.TEXT_CHANGED
    }
    counts[Changes.UNCHANGED] = (
        sum(map(is_page, common)) - counts[Changes.CHANGED] - counts[Changes.TEXT_CHANGED]
    )
    others[Changes.UNCHANGED] = len(common) - len(differing) - counts[Changes.UNCHANGED]
    listed = {
        kind: tuple(map(bytes.decode, changed[:MAX_LISTED])) for kind, changed in pages.items()
    }
    return Changes(pages=counts, files=others, listed=listed, is_first=not published), paths


def describe(changes: Changes) -> Iterator[str]:
    """Yield what changes, in lines for the log."""
    pages = ", ".join(
        f"{count:,} {Changes.NAMES.get(kind, kind)}"
        for kind, count in changes.pages.items()
        if count
    )
    files = ", ".join(f"{count:,} {kind}" for kind, count in changes.files.items() if count)
    yield f"Changes: pages: {pages or 'none'}; other files: {files or 'none'}"
    yield from changes.notes


def check_removed(changes: Changes, max_removed: MaxRemoved) -> None:
    """Raise `TooManyRemoved` if more pages are removed than allowed."""
    pages = changes.pages
    removed, published = pages[Changes.REMOVED], sum(pages.values()) - pages[Changes.ADDED]
    allowed = max_removed.of(published)
    if removed <= allowed:
        return
    limit = (
        f"`max-removed` ({max_removed.amount}%)" if max_removed.is_percentage else "`max-removed`"
    )
    named = [f"'{path}'" for path in changes.listed[Changes.REMOVED][:MAX_NAMED]]
    more = (
        [f"{removed - len(named):,} more (`changes-path` lists all)"]
        if removed > len(named)
        else []
    )
    raise TooManyRemoved(
        f"{removed:,} of {pluralize(published, 'published page')} would be removed, but {limit} allows {allowed:,}",
        details=(f"Removed: {', '.join([*named, *more])}.", "Nothing was published."),
    )


def site_sha256(lines: Iterable[bytes]) -> str:
    """Return the digest of a manifest's lines that name files. Raises `InvalidBundle` if the manifest is too large."""
    digest, size = hashlib.sha256(), 0
    for line in lines:
        size += len(line)
        if size > MAX_BYTES:
            raise InvalidBundle(
                "the site is too large for its manifest",
                details=(
                    f"The names of its files do not fit into the manifest's {format_bytes(MAX_BYTES)}.",
                ),
                cause="The site has very many files with very long names.",
                remedy="Deliver it without `manifest-path` and `compare-with`.",
            )
        if not line.startswith(b"#"):
            digest.update(line)
    return digest.hexdigest()


def changes_json(paths: Mapping[str, Sequence[bytes]]) -> Iterator[bytes]:
    """Yield all changed paths as JSON, in small parts: there may be 250,000."""
    opening = "{"
    for kind, changed in paths.items():
        yield f'{opening}\n  "{kind}": ['.encode()
        for number, path in enumerate(changed):
            yield f"{',' if number else ''}\n    {json.dumps(path.decode())}".encode()
        yield b"\n  ]" if changed else b"]"
        opening = ","
    yield b"\n}\n"
