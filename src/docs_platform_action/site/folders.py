"""Say in which folders pages and other files changed, for somebody who has to approve it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

from ..models import FolderFiles
from ..text import list_first, pluralize
from .page import is_page

MAX_LISTED_FILES: Final = 50
# so that the many scripts of a build do not hide one in another folder
_MAX_LISTED_OF_FOLDER: Final = 5
_MAX_NAMED_FOLDERS: Final = 5
_SCRIPT_ENDINGS: Final = (b".js", b".mjs", b".cjs", b".wasm")
_TOP_LEVELS: Final = 2  # a site may be in a folder of its own


def describe_lost_folders(published: Iterable[bytes], new: Iterable[bytes]) -> str:
    """Return the folders that had pages and have none now, those with the most pages first.

    A folder with one page is not named: some sites have a folder for each page.
    """
    new_pages = {path for path in new if is_page(path)}
    old_pages = [path for path in published if is_page(path)]
    if new_pages.issuperset(old_pages):
        return ""
    counts = _count_by_folder(old_pages)
    lost = counts.keys() - _count_by_folder(new_pages).keys()
    found = [folder for folder in lost if counts[folder] > 1 and _parent_of(folder) not in lost]
    found.sort(key=lambda folder: (-counts[folder], folder))
    names = [f"'{folder.decode()}' ({pluralize(counts[folder], 'page')})" for folder in found]
    return list_first(names, _MAX_NAMED_FOLDERS)


def _count_by_folder(pages: Iterable[bytes]) -> Counter[bytes]:
    """Return how many pages each folder has, with those in the folders inside."""
    counts: Counter[bytes] = Counter()
    for folder, count in Counter(map(_folder_of, pages)).items():
        ancestor = folder
        while ancestor:
            counts[ancestor] += count
            ancestor = _parent_of(ancestor)
    return counts


def describe_scripts(paths_by_kind: Mapping[str, Sequence[bytes]], kinds: Iterable[str]) -> str:
    """Return how many scripts there are in each of the top folders, the fewest first.

    So one that somebody has added stands out beside those of a build. Empty if there is none.
    """
    parts: list[str] = []
    for kind in kinds:
        counts = Counter(_top_folder_of(path) for path in paths_by_kind[kind] if _is_script(path))
        folders = sorted(counts, key=lambda folder: (counts[folder], folder))
        places = [f"{counts[folder]:,} in {_name_of(folder)}" for folder in folders]
        if places:
            parts.append(f"{kind}: {list_first(places, _MAX_NAMED_FOLDERS)}")
    return "; ".join(parts)


def _name_of(folder: bytes) -> str:
    return f"'{folder.decode()}'" if folder else "the site's top folder"


def list_files(paths: Iterable[bytes]) -> Sequence[FolderFiles]:
    """Return the first files by folder: scripts, then others.

    The scripts of a build are in deep folders, so those of the top folders come first. A path that
    ends with a slash is a link to a folder.
    """
    scripts: list[bytes] = []
    others: list[bytes] = []
    for path in paths:
        files = scripts if _is_script(path) else others
        files.append(path.removesuffix(b"/"))
    listed: list[FolderFiles] = []
    left = MAX_LISTED_FILES
    for files in (scripts, others):
        files.sort(key=lambda path: (path.count(b"/"), _folder_of(path), path))
        for folder, members in groupby(files, key=_folder_of):
            if left == 0:
                break
            names = [path.decode() for path in members]
            shown = names[: min(left, _MAX_LISTED_OF_FOLDER)]
            more = len(names) - len(shown)
            listed.append(FolderFiles(folder=folder.decode(), paths=shown, more=more))
            left -= len(shown)
    return tuple(listed)


def _is_script(path: bytes) -> bool:
    return path.lower().endswith(_SCRIPT_ENDINGS)


def _top_folder_of(path: bytes) -> bytes:
    """Return the first two folders of a path, with a slash at the end. Empty at the top."""
    folders = path.split(b"/")[:-1]
    return b"".join(folder + b"/" for folder in folders[:_TOP_LEVELS])


def _folder_of(path: bytes) -> bytes:
    """Return the folder of a file, with a slash at its end. Empty at the top."""
    folder, slash, _ = path.rpartition(b"/")
    return folder + slash


def _parent_of(folder: bytes) -> bytes:
    return _folder_of(folder.removesuffix(b"/"))
