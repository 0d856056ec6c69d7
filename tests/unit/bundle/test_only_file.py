"""What the only file of a bundle looks like."""

import gzip
from pathlib import Path

import pytest

from docs_platform_action.bundle.only_file import describe_only_file
from tests.archives import KINDS, SMALL_SITE


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("site.tar.gz", gzip.compress(b"a"), "gzip data"),
        ("site.tar", KINDS["tar"](SMALL_SITE), "a tar archive"),
        ("export/deep/site.zip", KINDS["zip"](SMALL_SITE), "a zip archive"),
        ("error.xml", b"<Error><Code>AccessDenied</Code></Error>", "XML, as a storage writes"),
        ("error.json", b'{"error": 1}', "JSON"),
        ("index.htm", b"<!doctype html>", "a web page"),
    ],
    ids=["gzip", "tar", "zip", "XML", "JSON", "web page"],  # an archive may hold the time
)
def test_known_data_is_named_with_its_file(
    tmp_path: Path, name: str, content: bytes, kind: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)

    assert describe_only_file(tmp_path).startswith(f"Its only file, '{name}', looks like {kind}")


@pytest.mark.parametrize("content", [b"", b"plain text"])
def test_unknown_data_is_not_described(tmp_path: Path, content: bytes) -> None:
    tmp_path.joinpath("a").write_bytes(content)

    assert describe_only_file(tmp_path) == ""


def test_a_link_is_not_the_only_file(tmp_path: Path) -> None:
    tmp_path.joinpath("z.json").write_bytes(b"{}")
    tmp_path.joinpath("a").symlink_to("z.json")

    assert describe_only_file(tmp_path) == "Its only file, 'z.json', looks like JSON."
