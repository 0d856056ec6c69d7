"""Every site is unpacked unchanged, whatever its form, and as other programs unpack it."""

import bz2
import gzip
import lzma
import posixpath
import random
import re
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from hypothesis import reject
from hypothesis import strategies as st

from tests.archives import KINDS, Site, tar
from tests.folders import Tree
from tests.fuzz import fuzz
from tests.fuzz.tree import unpacked
from tests.unit.bundle.places import limited

FORMS: Final[Mapping[str, Callable[[Site], bytes]]] = {**KINDS, "tar-ustar": lambda site: tar(site, form=tarfile.USTAR_FORMAT)}
COMPRESS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0) + bytes(4),
}

letters = st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\")
parts = st.one_of(st.text(letters, min_size=1, max_size=20), st.sampled_from(["a", "b", " ", ".a", "a.html", "A", "é" * 120]))
noise = st.builds(lambda seed: random.Random(seed).randbytes(70_000), st.integers(0, 9))  # noqa: S311  # no secret
contents = st.one_of(st.binary(max_size=600), st.binary(max_size=600), noise)


def above(path: str) -> list[str]:
    return [path[: slash.start()] for slash in re.finditer("/", path)]


@st.composite
def sites(draw: st.DrawFn, parts: st.SearchStrategy[str] = parts) -> Site:
    """Draw a valid site: each path has one type, and links lead to files, or from the top to folders."""
    names = parts.filter(lambda part: part not in {".", "..", "__MACOSX"} and not part.startswith(("._", "~")))
    paths = st.lists(names, min_size=1, max_size=6).map("/".join)
    paths = paths.filter(lambda path: len(path.encode()) <= 1000 and not re.match("[A-Za-z]:/", path))
    files = draw(st.dictionaries(paths, contents, min_size=1, max_size=8))
    folders = {folder for path in files for folder in above(path)}
    files = {path: content for path, content in files.items() if path not in folders}
    empty = draw(st.lists(paths.filter(lambda path: not {path, *above(path)} & files.keys()), max_size=3))
    folders.update(folder for path in empty for folder in (path, *above(path)))
    links = {}
    for place in draw(st.lists(st.sampled_from(["", *sorted(folders)]), max_size=3)):
        target = draw(st.sampled_from(sorted(files) if place else sorted([*files, *folders])))
        links[posixpath.join(place, "~link")] = posixpath.relpath(target, place or ".")
    return Site(files=files, folders=sorted({*empty}), links=links)


def expected(site: Site) -> Tree:
    """Return the tree that comes out."""
    folders = {folder: None for path in [*site.files, *site.folders] for folder in above(path)}
    return dict(sorted({**folders, **dict.fromkeys(site.folders), **site.files, **site.links}.items()))


@fuzz(
    "sites packed",
    form=st.sampled_from(sorted(FORMS)),
    site=sites(),
    chunk=st.sampled_from([1500, 4097, 128 * 1024]),
    added=st.sampled_from(["", "", "", "._Icon", "__MACOSX/a/._b"]),
)
def test_any_site_is_unpacked_unchanged(form: str, site: Site, chunk: int, added: str) -> None:
    left_out = {added: bytes(1024**2 + 1)} if added else {}
    try:
        archive = FORMS[form](replace(site, files={**left_out, **site.files}))
    except ValueError:  # the form has no long names
        assert form == "tar-ustar"
        reject()
    with limited("archive.CHUNK_BYTES", chunk):
        assert unpacked(archive) == expected(site)


@fuzz("streams", kind=st.sampled_from(sorted(COMPRESS)), site=sites(), cuts=st.lists(st.floats(0, 1), max_size=3))
def test_compressed_streams_in_a_row_are_one(kind: str, site: Site, cuts: list[float]) -> None:
    archive = tar(site)
    edges = [0, *sorted(int(cut * len(archive)) for cut in cuts), len(archive)]
    streams = [COMPRESS[kind](archive[start:end]) for start, end in pairwise(edges)]

    assert unpacked(b"".join(streams)) == expected(site)
