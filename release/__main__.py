"""The command line: `python -m release COMMAND`, from the top folder of a clone."""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping

from release.commands import ReleaseError, git, run
from release.published import check_published

PACKAGE = "src/docs_platform_action/__init__.py"
DOCKERFILE_LINE = "\n  image: Dockerfile\n"
DRY_RUN_IMAGE = f"ghcr.io/OWNER/docs-platform-action@sha256:{'0' * 64}"
DRY_RUN_REPOSITORY = "OWNER/docs-platform-action"
GITHUB_ACTIONS_NAME = "github-actions[bot]"
GITHUB_ACTIONS_EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"


def file_of_head(path: str) -> str:
    """Return a file as HEAD has it."""
    return run("git", "show", f"HEAD:{path}")


def parse_version(text: str) -> str:
    """Return a version that releases can have.

    Raises ArgumentTypeError for any other text, such as a tag.
    """
    number = "(?:0|[1-9][0-9]*)"
    if not re.fullmatch(rf"{number}\.{number}\.{number}(?:-rc\.{number})?", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a version. Write 1.2.3, or 1.2.3-rc.1 for a prerelease, without a v."
        )
    return text


def parse_image(text: str) -> str:
    """Return the name of an image with its digest. Raises ArgumentTypeError for any other text."""
    if not re.fullmatch(r"[^\s@]+@sha256:[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an image with its digest. "
            "Write NAME@sha256: and 64 digits of 0-9 and a-f."
        )
    return text


def check_release(version: str, *, made: str | None = None, ask_github: bool = False) -> None:
    """Check that HEAD can be released, and raise ReleaseError after all mistakes were printed.

    `made` is the release's commit if it exists: the tag and the branch may then exist as well, if
    they name that commit.
    """
    mistakes = list(mistakes_in_files(version))
    mistakes += mistakes_in_git(version, made)
    if ask_github:
        mistakes += mistakes_in_ci()
    for mistake in mistakes:
        print(f"refused  {mistake}", flush=True)
    if mistakes:
        raise ReleaseError(f"{version} cannot be released. Each line above says what to do.")
    print(f"{version} can be released from {git('rev-parse', 'HEAD')}.")


def mistakes_in_files(version: str) -> Iterator[str]:
    """Yield what is wrong in the files of HEAD, and what to do."""
    for path in ("pyproject.toml", PACKAGE):
        found = re.search(
            r'^(?:version|__version__: Final) = "(.*)"$', file_of_head(path), re.MULTILINE
        )
        declared = found[1] if found is not None else None
        if declared != version:
            yield (
                f"{path} has version {declared}. "
                f"Release that version, or change it to {version} on main."
            )
    if not changelog_section(version):
        yield (
            f"CHANGELOG.md has no changes below “## [{version}] - YYYY-MM-DD”. "
            "Rename “Unreleased” to that, with the date."
        )
    if DOCKERFILE_LINE not in file_of_head("action.yml"):
        yield (
            "action.yml does not have the line “  image: Dockerfile”. "
            "Restore it: main never names a published image."
        )


def mistakes_in_git(version: str, made: str | None) -> Iterator[str]:
    """Yield what is wrong with the work tree, the tip of main, the tag and the branch."""
    changed = [line[3:] for line in run("git", "status", "--porcelain").splitlines()]
    if changed:
        yield f"Files are not committed: {', '.join(changed)}. Commit or remove them."
    origin = refs_on_origin(version)
    head = git("rev-parse", "HEAD")
    tip = origin.get("refs/heads/main")
    if tip != head:
        yield (
            f"HEAD is {head}, and main on origin is {tip}. "
            "Pull or push, and release the tip of main."
        )
    local = local_tag(version)
    if local and local != made:
        yield (
            f"The tag v{version} exists in this clone, at {local}. "
            "Release the next version, or remove the tag if it was never pushed: "
            f"git tag --delete v{version}."
        )
    yield from refs_in_the_way(version, made, origin)


def refs_on_origin(version: str) -> dict[str, str]:
    """Return the commits of the refs on origin that matter for the release of a version."""
    refs = (
        "refs/heads/main",
        f"refs/tags/v{version}",
        f"refs/heads/release/v{version}",
        "refs/heads/release",
        f"refs/heads/release/v{version}/*",
    )
    commits = {}
    for line in git("ls-remote", "origin", *refs).splitlines():
        commit, ref = line.split()
        commits[ref] = commit
    return commits


def refs_in_the_way(version: str, made: str | None, origin: Mapping[str, str]) -> Iterator[str]:
    """Yield which refs on origin prevent the release's tag and branch, and what to do."""
    tag = f"v{version}"
    branch = f"release/v{version}"
    for ref in origin:
        # for git, a name of a branch cannot also be the folder of another one
        if ref == "refs/heads/release" or ref.startswith(f"refs/heads/{branch}/"):
            other = ref.removeprefix("refs/heads/")
            yield (
                f"The branch {other} on origin prevents the branch {branch}. Rename or delete it."
            )
    for what, ref in (
        (f"tag {tag}", f"refs/tags/{tag}"),
        (f"branch {branch}", f"refs/heads/{branch}"),
    ):
        if ref in origin and origin[ref] != made:
            yield (
                f"The {what} exists on origin. Release the next version. "
                "If its release was never published, RELEASING.md says how to continue."
            )


def mistakes_in_ci() -> Iterator[str]:
    """Yield why HEAD has not passed CI on main, by its newest run, and what to do."""
    head = git("rev-parse", "HEAD")
    options = (
        "--workflow=ci.yml",
        "--branch=main",
        f"--commit={head}",
        "--limit=1",
        "--json=status,conclusion,url",
    )
    runs = json.loads(run("gh", "run", "list", *options))
    if not runs:
        yield (
            f"CI has not run on {head}. "
            "Start it, and release when it has passed: gh workflow run ci.yml."
        )
    elif runs[0]["status"] != "completed":
        yield f"CI still runs on {head}. Wait until it has passed: {runs[0]['url']}"
    elif runs[0]["conclusion"] != "success":
        yield f"CI ended with {runs[0]['conclusion']} on {head}. Fix main first: {runs[0]['url']}"


def changelog_section(version: str) -> str:
    """Return the changes of a version, or an empty text if there is no section with a date."""
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    section = re.compile(rf"{heading}(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    found = section.search(file_of_head("CHANGELOG.md"))
    return found[1].strip() if found else ""


def local_tag(version: str) -> str:
    """Return what the version's tag names in this clone, or an empty text without such a tag."""
    return git("for-each-ref", "--format=%(objectname)", f"refs/tags/v{version}")


def make_commit(version: str, image: str) -> str:
    """Make a child of HEAD whose only change is the image's line in action.yml, and return it.

    No branch, index or work tree is touched. The author and the date are fixed, so the same HEAD
    and image make the same commit.
    """
    before = file_of_head("action.yml")
    if DOCKERFILE_LINE not in before:
        raise ReleaseError(
            "action.yml does not have the line “  image: Dockerfile”. Start from main."
        )
    pinned = before.replace(DOCKERFILE_LINE, f"\n  image: docker://{image} # v{version}\n")
    old = git("rev-parse", "HEAD:action.yml")
    new = git("hash-object", "-w", "--stdin", stdin=pinned)
    entries = git("ls-tree", "HEAD").replace(f"{old}\taction.yml", f"{new}\taction.yml")
    tree = git("mktree", stdin=f"{entries}\n")
    date = git("show", "--no-patch", "--format=%cI")
    identity = {
        "GIT_AUTHOR_NAME": GITHUB_ACTIONS_NAME,
        "GIT_AUTHOR_EMAIL": GITHUB_ACTIONS_EMAIL,
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": GITHUB_ACTIONS_NAME,
        "GIT_COMMITTER_EMAIL": GITHUB_ACTIONS_EMAIL,
        "GIT_COMMITTER_DATE": date,
    }
    message = (
        f"Release v{version}\n"
        "\n"
        "Only action.yml changes: it names the published image by its digest.\n"
    )
    return git("commit-tree", tree, "-p", "HEAD", stdin=message, env=identity)


def make_tag(version: str, image: str) -> str:
    """Make the release's commit, tag it, and return it. Push nothing.

    The tag is lightweight: `git ls-remote` then shows the commit that users pin. git refuses to
    replace another tag.
    """
    commit = make_commit(version, image)
    if local_tag(version) != commit:
        git("tag", f"v{version}", commit)
    return commit


def release_notes(version: str, image: str, repository: str) -> str:
    """Return the changes of a version, and how to verify where its image comes from.

    Wrapped lines of list items are joined, because GitHub shows every line break in release notes.
    `repository` has its capital letters, because `--signer-workflow` is a case-sensitive pattern.
    That pattern matches a workflow on any branch, so `--source-ref` requires main.
    """
    changes = re.sub(r"\n +(?![-*+] )(?=\S)", " ", changelog_section(version))
    return f"""\
{changes}

### Image

This version runs `{image}`.
It was built from this repository for `linux/amd64` and `linux/arm64`. \
To verify where it comes from:

```sh
gh attestation verify oci://{image} \\
  --repo {repository} --source-ref refs/heads/main \\
  --signer-workflow {repository}/.github/workflows/release.yml
```"""


def newest_of_line(version: str, published_tags: list[str]) -> str | None:
    """Return the newest published version, apart from prereleases, with the same major number."""
    major = version.partition(".")[0]
    line = [tag[1:] for tag in published_tags if re.fullmatch(rf"v{major}\.[0-9]+\.[0-9]+", tag)]
    return max(line, key=numbers_of, default=None)


def numbers_of(version: str) -> list[int]:
    """Return the numbers of a version that is no prerelease, for comparisons."""
    return [int(number) for number in version.split(".")]


def print_major_tag(version: str, published_tags: list[str]) -> None:
    """Print the major tag, such as v1, if it moves to a version.

    Otherwise, explain on stderr why it does not.
    """
    major_tag = f"v{version.partition('.')[0]}"
    newest = newest_of_line(version, published_tags)
    if version == newest:
        print(major_tag)
        return
    print(
        f"{major_tag} does not move to {version}: "
        f"the newest published release of this line is {newest}.",
        file=sys.stderr,
    )


def dry_run(version: str) -> None:
    """Check a release, and print the change of action.yml and the notes.

    No branch, tag or file is changed.
    """
    check_release(version)
    print(
        "The result of CI was not checked. "
        "The digest below is a placeholder: in a release, the build determines it.\n"
    )
    print(git("diff", "HEAD", make_commit(version, DRY_RUN_IMAGE)), end="\n\n")
    print(release_notes(version, DRY_RUN_IMAGE, DRY_RUN_REPOSITORY))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m release", description="Parts of a release. RELEASING.md explains them."
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check", help="check that HEAD can be released, and report all mistakes together"
    )
    check.add_argument(
        "--github", action="store_true", help="also ask GitHub, with gh, whether CI passed on HEAD"
    )
    check.add_argument(
        "--made",
        metavar="COMMIT",
        help="the commit of `tag`, which the version's tag may name already",
    )
    tag = commands.add_parser(
        "tag", help="commit action.yml with the published image, tag the commit, and print it"
    )
    notes = commands.add_parser("notes", help="print the release notes")
    for command in (tag, notes):
        command.add_argument(
            "--image",
            required=True,
            type=parse_image,
            metavar="NAME@DIGEST",
            help="the published image",
        )
    major = commands.add_parser(
        "major",
        help="print the major tag if it moves to VERSION; reads the published tags from stdin",
    )
    published = commands.add_parser(
        "published", help="check images, base image and packages of the published releases"
    )
    for command in (notes, published):
        command.add_argument(
            "--repository", required=True, metavar="OWNER/NAME", help="where the image is built"
        )
    rehearsed = commands.add_parser(
        "dry-run", help="print the checks, the change of action.yml and the notes; change nothing"
    )
    for command in (check, tag, notes, major, rehearsed):
        command.add_argument(
            "version",
            type=parse_version,
            metavar="VERSION",
            help="1.2.3, or 1.2.3-rc.1 for a prerelease",
        )
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run a command in the current folder; return its exit code."""
    options = parser().parse_args(arguments)
    try:
        match options.command:
            case "check":
                check_release(options.version, made=options.made, ask_github=options.github)
            case "tag":
                print(make_tag(options.version, options.image))
            case "notes":
                print(release_notes(options.version, options.image, options.repository))
            case "major":
                print_major_tag(options.version, sys.stdin.read().split())
            case "published":
                check_published(options.repository)
            case "dry-run":
                dry_run(options.version)
    except ReleaseError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
