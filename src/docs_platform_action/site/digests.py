"""Take the digests of a site's files while they are unpacked."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from ..errors import InvalidBundle
from ..models import FileDigests, Manifest
from .manifest import ARROW, REMEDY_WITHOUT_MANIFEST
from .page import MAX_PAGE_BYTES, is_page, text_digest


class Digests:
    """The digests of a site's files by path, and its links to folders.

    `published` has the digests of the published site.
    """

    def __init__(self, published: Mapping[bytes, FileDigests]) -> None:
        self.files: dict[bytes, FileDigests] = {}
        self.folder_links: dict[bytes, bytes] = {}
        self._published = published

    @property
    def manifest(self) -> Manifest:
        """What is recorded so far."""
        return Manifest(files=self.files, folder_links=self.folder_links)

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
        """Record a symbolic link: to a file with the file's content, to a folder with its path.

        Raises `InvalidBundle` if a link to a folder has a path that no manifest can have.
        """
        found = self.files.get(target)
        if found is None:
            self._add_folder_link(path, target)
        elif is_page(path):
            self.files[path] = found
        else:
            self.files[path] = FileDigests(found.content, None)

    def _add_folder_link(self, path: bytes, target: bytes) -> None:
        # a path that ends in " ->" would form an arrow with the space that follows it
        if ARROW in path + b" ":
            name = path.decode()  # whole, so that a key in it is hidden
            raise InvalidBundle(
                "the manifest cannot list a symbolic link of the site",
                details=(f"Symbolic link '{name}' leads to a folder.",),
                cause="Its path contains ' -> ', which separates path and folder in a manifest.",
                remedy=REMEDY_WITHOUT_MANIFEST,
            )
        self.folder_links[path] = target
