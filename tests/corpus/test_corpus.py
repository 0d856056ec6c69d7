"""Archives of real packers unpack to the trees that were packed, or are refused."""

import subprocess
from pathlib import Path

import pytest

from docs_platform_action.errors import InvalidBundle
from docs_platform_action.models import Manifest
from docs_platform_action.site.manifest import manifest_lines, read_manifest
from tests import corpus
from tests.unpacking import unpacked


@pytest.mark.parametrize("name", corpus.ACCEPTED)
def test_the_packed_tree_comes_out(name: str) -> None:
    tree = unpacked(corpus.read(name))

    assert corpus.digests(tree) == corpus.expected(name)


@pytest.mark.parametrize("name", corpus.ACCEPTED)
def test_sha256sum_accepts_the_manifest_of_the_tree(name: str) -> None:
    def look(folder: Path, manifest: Manifest) -> None:
        lines = b"".join(manifest_lines(manifest))
        checked = subprocess.run(
            ["sha256sum", "--check", "--strict"],
            cwd=folder,
            input=lines,
            capture_output=True,
            check=False,
        )
        assert checked.stderr == b""
        assert checked.returncode == 0
        assert checked.stdout.count(b": OK\n") == len(manifest.files)
        assert read_manifest(lines) == manifest

    unpacked(corpus.read(name), look)


@pytest.mark.parametrize("name", corpus.REFUSED)
def test_it_is_refused(name: str) -> None:
    with pytest.raises(InvalidBundle):
        unpacked(corpus.read(name))


def test_each_archive_is_in_the_manifest() -> None:
    names = {path.name for path in (corpus.FOLDER / "archives").iterdir()}
    assert names == {*corpus.ACCEPTED, *corpus.REFUSED}
