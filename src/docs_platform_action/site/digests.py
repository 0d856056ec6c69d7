"""Take the digests of a site's files while they are unpacked."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from ..models import FileDigests
from .page import MAX_PAGE_BYTES, is_page, text_digest


class Digests:
    """The digests of a site's files by path. `published` has those of the published site."""

    def __init__(self, published: Mapping[bytes, FileDigests]) -> None:
        self.files: dict[bytes, FileDigests] = {}
        self._published = published

    def record(
        self, path: bytes, content: Iterable[bytes | memoryview]
    ) -> Iterator[bytes | memoryview]:
        """Yield a file's content, and record its digests at the end."""
        sha256 = hashlib.sha256()
        keeps_page = is_page(path)  # until it turns out to be very large
        page: list[bytes | memoryview] = []
        size = 0
        for chunk in content:
            sha256.update(chunk)
            if keeps_page:
                page.append(chunk)
                size += len(chunk)
                keeps_page = size <= MAX_PAGE_BYTES
            yield chunk
        if keeps_page:
            self.files[path] = self._digests_of_page(path, sha256.digest(), page)
        else:
            self.files[path] = FileDigests(sha256.digest(), None)

    def _digests_of_page(
        self, path: bytes, digest: bytes, page: Iterable[bytes | memoryview]
    ) -> FileDigests:
        published = self._published.get(path)
        if published is not None and published.text is not None and published.content == digest:
            # extracting the text takes much longer than reading the page
            return published
        return FileDigests(digest, text_digest(b"".join(page)))

    def add_link(self, path: bytes, target: bytes) -> None:
        """Record a symbolic link with the content of its target, unless the target is a folder."""
        found = self.files.get(target)
        if found is None:
            return
        if is_page(path):
            self.files[path] = found
        else:
            self.files[path] = FileDigests(found.content, None)
