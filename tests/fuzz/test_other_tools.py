"""A site that Python packs comes out of other programs as it does from the action."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from tests.archives import KINDS, Site
from tests.engine import skip_or_fail
from tests.folders import Tree, read_tree
from tests.fuzz import fuzz
from tests.fuzz.test_sites import sites
from tests.fuzz.tree import unpacked

TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "tar": ("--extract", "--no-same-owner", "--file"),
    "bsdtar": ("-x", "--no-same-owner", "-f"),
    "unzip": ("-q",),
    "7zz": ("x", "-bd", "-y", "-snld"),
}
"""Programs, each with its arguments before the archive, to unpack it into the current folder."""

READERS: Final = {"tar": ("tar", "bsdtar", "7zz"), "zip": ("unzip", "bsdtar", "7zz")}
CASES: Final = [(kind, tool) for kind in ("tar", "tar-gnu", "zip", "zip-stored") for tool in READERS[kind[:3]]]

# without drives, which bsdtar removes, versions of VMS, which unzip removes, and letters that bsdtar composes
parts = st.text("aAbZ09-_. é日😀#%&'", min_size=1, max_size=20)


def unpacked_with(tool: str, archive: bytes) -> Tree:
    with tempfile.TemporaryDirectory() as temporary:
        file, folder = Path(temporary, "archive"), Path(temporary, "site")
        file.write_bytes(archive)
        folder.mkdir()
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        subprocess.run([tool, *TOOLS[tool], file], cwd=folder, env=env, check=True, capture_output=True, timeout=30)
        for path in folder.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755)
        return read_tree(folder)


@fuzz("sites for other programs", site=sites(parts), case=st.sampled_from(CASES))
def test_a_site_is_the_same_for_all(site: Site, case: tuple[str, str]) -> None:
    kind, tool = case
    archive = KINDS[kind](site)
    if shutil.which(tool):
        assert unpacked_with(tool, archive) == unpacked(archive)


def test_no_tool_is_missing() -> None:
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        skip_or_fail(
            f"Archives are not compared with {' and '.join(missing)}: Debian's packages are 7zip, libarchive-tools and unzip."
        )
