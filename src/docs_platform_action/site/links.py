"""What a site has behind its symbolic links to folders."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from ..errors import InvalidBundle
from ..models import FileDigests, Manifest
from ..text import format_bytes
from .page import is_page

# the limits of a manifest, here with the pages behind links
MAX_REACHABLE: Final = 250_000
MAX_PATH_BYTES: Final = 128 * 1024**2


def reachable_files(manifest: Manifest) -> Mapping[bytes, FileDigests]:
    """Return the digests of the listed files, and of the pages behind links to folders, by path.

    An upload that follows links publishes those pages, too, under the link's path.
    Raises `InvalidBundle` if there are too many, as there are if links lead in a circle.
    """
    targets = manifest.folder_links
    if not targets:
        return manifest.files
    found = dict(manifest.files)
    names = sorted([*filter(is_page, manifest.files), *targets])
    links = list(targets.items())
    path_bytes = 0
    for path, target in links:  # the loop appends the links that are behind this one
        for name in _below(target, names):
            reached = path + name.removeprefix(target)
            if name in targets:
                links.append((reached, targets[name]))
            else:
                found[reached] = manifest.files[name]
            # the paths get longer and longer in a circle without pages
            path_bytes += len(reached)
            count = max(len(found), len(links))
            if count > MAX_REACHABLE or path_bytes > MAX_PATH_BYTES:
                raise _endless_links()
    return found


def _below(folder: bytes, sorted_paths: Sequence[bytes]) -> Sequence[bytes]:
    """Return the paths below a folder."""
    start = bisect_left(sorted_paths, folder + b"/")
    end = bisect_left(sorted_paths, folder + b"0", start)  # the byte after the slash
    return sorted_paths[start:end]


def _endless_links() -> InvalidBundle:
    limits = f"{MAX_REACHABLE:,} files, or more than {format_bytes(MAX_PATH_BYTES)} of paths"
    return InvalidBundle(
        "the site's symbolic links lead to too many files for its manifest",
        details=(f"With the pages behind its links, the site has more than {limits}.",),
        cause="Links to folders lead to very many pages, or in a circle, which has no end.",
        remedy="Fix the links, or deliver the site without `manifest-path` and `compare-with`.",
    )
