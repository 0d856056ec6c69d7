"""The trees that the archives are made from, and the trees that must come out of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.folders import Tree


@dataclass(frozen=True)
class HardLink:
    """A second name of the file or symbolic link at `path`. The source tree has it; what is unpacked has a copy."""

    path: str


Node = bytes | str | HardLink | None
"""A file's content, a symbolic link's target, a hard link, or a folder (`None`). Parents of a path need no entry."""

Source = Mapping[str, Node]


def unpacked(source: Source) -> Tree:
    """Return the tree that comes out: with every folder listed, and each hard link replaced by what it leads to."""
    tree: Tree = {}
    for path, node in source.items():
        parts = path.split("/")
        tree |= dict.fromkeys("/".join(parts[:count]) for count in range(1, len(parts)))
        found = source[node.path] if isinstance(node, HardLink) else node
        assert not isinstance(found, HardLink)
        tree[path] = found
    return dict(sorted(tree.items()))


_STYLE: Final = b"body { margin: 2rem }\n"
_INDEX: Final = b"<!doctype html>\n<title>Docs</title>\n<h1>Docs</h1>\n"
_START: Final = b"<!doctype html>\n<h1>Getting started</h1>\n" + b"".join(b"<p>Step %d</p>\n" % step for step in range(60))

PAGES: Final[Source] = {
    ".nojekyll": b"",
    ".well-known/security.txt": b"Contact: https://docs.example.com/contact\n",
    "404.html": b"<h1>Not found</h1>\n",
    "assets/style.css": _STYLE,
    "empty": None,
    "guide/empty.txt": b"",
    "guide/getting started.html": _START,
    "guide/what's new (2) & [more] #1 100%.html": b"<h1>What is new</h1>\n",
    "index.html": _INDEX,
    "logo.png": bytes(range(256)),
    "übersicht/😀.html": b"<h1>Hello</h1>\n",
    "übersicht/日本語 中文.html": "<h1>日本語</h1>\n".encode(),
}
"""A small site without links."""

SITE: Final[Source] = {**PAGES, "guide/home.html": "../index.html", "latest": "guide"}
"""The same with a symbolic link to a file and one to a folder."""

FOLLOWED: Final[Source] = {
    **PAGES,
    "guide/home.html": _INDEX,
    "latest/empty.txt": b"",
    "latest/getting started.html": _START,
    "latest/home.html": _INDEX,
    "latest/what's new (2) & [more] #1 100%.html": b"<h1>What is new</h1>\n",
}
"""What comes out where the writer packs what a symbolic link leads to."""

WITHOUT_FOLDERS: Final[Source] = {path: node for path, node in PAGES.items() if node is not None}
"""What comes out where the writer packs no folders, so that an empty one is lost."""

LONG_NAMES: Final[Source] = {
    f"{'a' * 100}": b"a name of 100 bytes\n",
    f"{'b' * 101}": b"a name of 101 bytes\n",
    f"{'c' * 95}.html": b"another name of 100 bytes\n",
    f"d/{'e' * 255}": b"the longest name that a file may have\n",
    f"f/{'ü' * 110}.html": b"100 bytes end in the middle of this name, but not of a letter\n",
    f"f/{'日' * 70}.html": b"100 bytes end in the middle of a letter\n",
    "/".join(["g" * 120, "h" * 120, "i" * 120, "index.html"]): b"a path of more than 255 bytes\n",
    "/".join(["j" * 200] * 5): b"a path of about 1,000 bytes\n",
    "k" * 150 + ".html": f"g{'g' * 119}/{'h' * 120}/{'i' * 120}/index.html",
    "l/" + "m" * 130: None,
}
"""Names at and beyond what a tar header holds. A symbolic link has a long name and a long target."""

USTAR_NAMES: Final[Source] = {
    "a" * 100: b"a name of 100 bytes\n",
    f"{'b' * 50}/{'c' * 99}": b"a path that is divided at its only slash\n",
    f"{'d' * 99}/{'e' * 55}/{'f' * 100}": b"the longest path, 155 and 100 bytes\n",
    f"{'g' * 90}/{'h' * 90}": None,
}
"""Names that POSIX's prefix field can just hold."""

HARD_LINKS: Final[Source] = {
    "v1/index.html": b"<h1>Version 1</h1>\n",
    "v1/same.html": HardLink("v1/index.html"),
    "v2/deep/er/index.html": HardLink("v1/index.html"),
    "v2/empty.txt": b"",
    "v2/empty too.txt": HardLink("v2/empty.txt"),
    f"v3/{'n' * 120}.html": HardLink("v1/index.html"),
    f"v3/{'o' * 120}.html": b"<h1>A long name</h1>\n",
    f"v3/{'p' * 120}.html": HardLink(f"v3/{'o' * 120}.html"),
}
"""Several names for one file, as `cp -l` makes them."""

LINKED_LINKS: Final[Source] = {
    "v1/index.html": b"<h1>Version 1</h1>\n",
    "v1/latest": "sub",
    "v1/start.html": "index.html",
    "v1/sub/page.html": b"<h1>Page</h1>\n",
    "v2/index.html": HardLink("v1/index.html"),
    "v2/latest": HardLink("v1/latest"),
    "v2/start.html": HardLink("v1/start.html"),
    "v2/sub/page.html": HardLink("v1/sub/page.html"),
}
"""What `cp -al v1 v2` makes: hard links to symbolic links too."""

SPARSE: Final[Source] = {
    "data.bin": b"begin" + bytes(96 * 1024) + b"middle" + bytes(96 * 1024) + b"end",
    "hole.bin": bytes(64 * 1024),
    "index.html": _INDEX,
}
"""Files that are mostly holes on the disk."""

LARGE: Final[Source] = {
    "index.html": _INDEX,
    "search.json": b"[%s]\n"
    % b",\n".join(b'{"page": %d, "title": "Page %d"}' % (page, page * page % 997) for page in range(3500)),
}
"""A file of several chunks, blocks and streams."""

STANDARD_INPUT: Final[Source] = {"-": _INDEX}
"""What Info-ZIP calls its standard input."""

SOURCES: Final[Mapping[str, Source]] = {
    "pages": PAGES,
    "site": SITE,
    "long-names": LONG_NAMES,
    "ustar-names": USTAR_NAMES,
    "hard-links": HARD_LINKS,
    "linked-links": LINKED_LINKS,
    "sparse": SPARSE,
    "large": LARGE,
}
"""The trees that are packed."""
