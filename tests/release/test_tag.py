"""The commit and the tag of a release, in real clones."""

import subprocess
from pathlib import Path

import pytest

from release.action_file import parse_image
from release.errors import ReleaseError
from release.repository import Repository
from release.tag import tag_release
from release.version import parse_version
from tests.release.clones import IMAGE, Clone

VERSION = parse_version("1.2.0")


def test_the_tag_names_a_commit_after_head_that_changes_exactly_one_line(clone: Clone) -> None:
    commit = tag_release(Repository(clone.folder), VERSION, IMAGE)

    assert clone.git("diff", "--numstat", "HEAD", commit) == "1\t1\taction.yml"
    changes = clone.git("diff", "--unified=0", "HEAD", commit).splitlines()[-2:]
    assert changes == ["-  image: Dockerfile", f"+  image: docker://{IMAGE} # v1.2.0"]
    assert clone.git("rev-parse", f"{commit}^@") == clone.git("rev-parse", "HEAD")
    assert clone.git("show", "--no-patch", "--format=%s", commit) == "Release v1.2.0"
    assert clone.git("rev-parse", "refs/tags/v1.2.0") == commit
    assert clone.git("cat-file", "-t", "refs/tags/v1.2.0") == "commit"


@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["CRLF", "a single CR"])
def test_other_ends_of_lines_stay_as_they_are(clone: Clone, end: bytes) -> None:
    content = (clone.folder / "action.yml").read_bytes()
    (clone.folder / "action.yml").write_bytes(
        content.replace(b"\n", b"\r\n") if end == b"\r\n" else content.replace(b"# On main", b"# On\rmain")
    )
    clone.push("Other ends of lines")

    commit = tag_release(Repository(clone.folder), VERSION, IMAGE)

    assert clone.git("diff", "--numstat", "HEAD", commit) == "1\t1\taction.yml"


def test_in_a_subfolder_the_commit_has_all_files(clone: Clone) -> None:
    commit = tag_release(Repository(clone.folder / "src"), VERSION, IMAGE)

    assert clone.git("diff", "--numstat", "HEAD", commit) == "1\t1\taction.yml"


def test_a_commit_that_changes_more_than_a_line_is_refused(clone: Clone) -> None:
    with pytest.raises(ReleaseError, match=r"would change more than one line of action\.yml: '1\\t\d+\\taction\.yml'"):
        Repository(clone.folder).commit_with("action.yml", "name: another file\n", "A message")


def test_a_tag_that_exists_is_never_replaced(clone: Clone) -> None:
    clone.git("tag", "v1.2.0")
    head = clone.git("rev-parse", "HEAD")
    clone.git("commit", "--quiet", "--allow-empty", "--message", "Later")

    with pytest.raises(ReleaseError, match="git update-ref failed"):
        Repository(clone.folder).create_tag("v1.2.0", clone.git("rev-parse", "HEAD"))

    assert clone.git("rev-parse", "v1.2.0") == head


def test_git_asks_for_no_password(clone: Clone) -> None:
    assert Repository(clone.folder).git("-c", "alias.shown=!printenv GIT_TERMINAL_PROMPT", "shown") == "0"


def test_main_index_work_tree_and_origin_stay_as_they_are(clone: Clone) -> None:
    clone.write("action.yml", "changed, and not committed")
    clone.write("new", "")
    clone.git("add", "new")
    before = clone.git("status", "--porcelain=v2", "--branch"), clone.git("ls-remote", "origin"), clone.read("action.yml")

    tag_release(Repository(clone.folder), VERSION, IMAGE)

    after = clone.git("status", "--porcelain=v2", "--branch"), clone.git("ls-remote", "origin"), clone.read("action.yml")
    assert after == before


def test_a_second_time_gives_the_same_commit(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tag_release(Repository(clone.folder), VERSION, IMAGE)
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2030-01-01T00:00:00Z")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Somebody else")

    assert tag_release(Repository(clone.folder), VERSION, IMAGE) == first


def test_another_commit_under_the_same_tag_is_refused(clone: Clone) -> None:
    first = tag_release(Repository(clone.folder), VERSION, IMAGE)
    other = parse_image(IMAGE.name, f"sha256:{'b0' * 32}")

    with pytest.raises(ReleaseError) as caught:
        tag_release(Repository(clone.folder), VERSION, other)

    assert str(caught.value) == (
        f"The tag v1.2.0 exists, at {first}, which is not this release's commit. Remove the tag if it was never pushed: "
        "git tag --delete v1.2.0."
    )
    assert clone.git("rev-parse", "refs/tags/v1.2.0") == first


def test_a_pinned_main_is_refused(clone: Clone) -> None:
    clone.write("action.yml", clone.read("action.yml").replace("image: Dockerfile", f"image: docker://{IMAGE}"))
    clone.push("Pinned by mistake")

    with pytest.raises(ReleaseError, match="Start from main, which is never pinned"):
        tag_release(Repository(clone.folder), VERSION, IMAGE)

    assert clone.git("tag") == ""


def test_the_tag_can_be_pushed_alone_from_a_shallow_clone(clone: Clone, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"  # what actions/checkout makes
    subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{clone.origin}", shallow], check=True)
    main = clone.git("ls-remote", "origin", "refs/heads/main")

    commit = tag_release(Repository(shallow), VERSION, IMAGE)
    subprocess.run(["git", "push", "--quiet", "origin", "refs/tags/v1.2.0"], cwd=shallow, check=True)

    assert clone.git("ls-remote", "origin", "refs/tags/*") == f"{commit}\trefs/tags/v1.2.0"
    assert clone.git("ls-remote", "origin", "refs/heads/main") == main
