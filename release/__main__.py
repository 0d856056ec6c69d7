"""The command line: `python -m release COMMAND`, from the top folder of a clone."""

import argparse
import json
import re
import sys
from collections.abc import Iterator

from release.commands import ReleaseError, git, run
from release.published import check_published

PACKAGE = "src/docs_platform_action/__init__.py"
DOCKERFILE_LINE = "\n  image: Dockerfile\n"
DRY_RUN_IMAGE = f"ghcr.io/OWNER/docs-platform-action@sha256:{'0' * 64}"
DRY_RUN_REPOSITORY = "OWNER/docs-platform-action"
GITHUB_ACTIONS_EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"


def file_of_head(path: str) -> str:
    """Return a file as HEAD has it."""
    return run("git", "show", f"HEAD:{path}")


def parse_version(text: str) -> str:
    """Return a version that releases can have. Raises ArgumentTypeError for any other text, such as a tag."""
    number = "(?:0|[1-9][0-9]*)"
    if not re.fullmatch(rf"{number}\.{number}\.{number}(?:-rc\.{number})?", text):
        message = (
            f"{text!r} is not a version. Write 1.2.3, or 1.2.3-rc.1 for a prerelease, without a v."
        )
        raise argparse.ArgumentTypeError(message)
    return text


def parse_image(text: str) -> str:
    """Return the name of an image with its digest. Raises ArgumentTypeError for any other text."""
    if not re.fullmatch(r"[^\s@]+@sha256:[0-9a-f]{64}", text):
        message = f"{text!r} is not an image with its digest. Write NAME@sha256: and 64 digits of 0-9 and a-f."
        raise argparse.ArgumentTypeError(message)
    return text


def check_release(version: str, *, made: str | None = None, ask_github: bool = False) -> None:
    """Check that HEAD can be released, and raise ReleaseError after all mistakes were printed.

    `made` is the release's commit if it exists: the tag and the branch may then exist as well, if they name that commit.
    """
    mistakes = [*mistakes_in_files(version), *mistakes_in_git(version, made)]
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
        if found is None or found[1] != version:
            yield f"{path} has version {found and found[1]}. Release that version, or change it to {version} on main."
    if not changelog_section(version):
        yield f"CHANGELOG.md has no changes below “## [{version}] - YYYY-MM-DD”. Rename “Unreleased” to that, with the date."
    if DOCKERFILE_LINE not in file_of_head("action.yml"):
        yield "action.yml does not have the line “  image: Dockerfile”. Restore it: main never names a published image."


def mistakes_in_git(version: str, made: str | None) -> Iterator[str]:
    """Yield what is wrong with the work tree, the tip of main, the tag and the branch, and what to do."""
    if changed := [line[3:] for line in run("git", "status", "--porcelain").splitlines()]:
        yield f"Files are not committed: {', '.join(changed)}. Commit or remove them."
    head, refs = (
        git("rev-parse", "HEAD"),
        {"tag": f"refs/tags/v{version}", "branch": f"refs/heads/release/v{version}"},
    )
    in_the_way = ("refs/heads/release", f"{refs['branch']}/*")
    lines = git("ls-remote", "origin", "refs/heads/main", *refs.values(), *in_the_way).splitlines()
    origin = {name: commit for commit, name in (line.split() for line in lines)}
    if (tip := origin.get("refs/heads/main")) != head:
        yield f"HEAD is {head}, and main on origin is {tip}. Pull or push, and release the tip of main."
    if (local := local_tag(version)) and local != made:
        yield (
            f"The tag v{version} exists in this clone, at {local}. Release the next version, or remove the tag if it was "
            f"never pushed: git tag --delete v{version}."
        )
    for name in origin:
        if name == in_the_way[0] or name.startswith(f"{refs['branch']}/"):
            branch = name.removeprefix("refs/heads/")
            yield f"The branch {branch} on origin prevents the branch release/v{version}. Rename or delete it."
    for kind, ref in refs.items():
        if (pushed := origin.get(ref)) and pushed != made:
            yield (
                f"The {kind} {ref.split('/', 2)[2]} exists on origin. Release the next version. If its release was never "
                "published, RELEASING.md says how to continue."
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
        yield f"CI has not run on {head}. Start it, and release when it has passed: gh workflow run ci.yml."
    elif runs[0]["status"] != "completed":
        yield f"CI still runs on {head}. Wait until it has passed: {runs[0]['url']}"
    elif runs[0]["conclusion"] != "success":
        yield f"CI ended with {runs[0]['conclusion']} on {head}. Fix main first: {runs[0]['url']}"


def changelog_section(version: str) -> str:
    """Return the changes of a version, or an empty text if there is no section with a date."""
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    found = re.search(
        rf"{heading}(.*?)(?=^## |\Z)", file_of_head("CHANGELOG.md"), re.MULTILINE | re.DOTALL
    )
    return found[1].strip() if found else ""


def local_tag(version: str) -> str:
    """Return what the version's tag names in this clone, or an empty text if there is no such tag."""
    return git("for-each-ref", "--format=%(objectname)", f"refs/tags/v{version}")


def make_commit(version: str, image: str) -> str:
    """Make a child of HEAD whose only change is the image's line in action.yml, and return it.

    No branch, index or work tree is touched. The author and the date are fixed, so the same HEAD and image make the same commit.
    """
    before = file_of_head("action.yml")
    if DOCKERFILE_LINE not in before:
        raise ReleaseError(
            "action.yml does not have the line “  image: Dockerfile”. Start from main."
        )
    pinned = before.replace(DOCKERFILE_LINE, f"\n  image: docker://{image} # v{version}\n")
    old, new = (
        git("rev-parse", "HEAD:action.yml"),
        git("hash-object", "-w", "--stdin", stdin=pinned),
    )
    entries = git("ls-tree", "HEAD").replace(f"{old}\taction.yml", f"{new}\taction.yml")
    tree = git("mktree", stdin=f"{entries}\n")
    fixed = {
        "NAME": "github-actions[bot]",
        "EMAIL": GITHUB_ACTIONS_EMAIL,
        "DATE": git("show", "--no-patch", "--format=%cI"),
    }
    identity = {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in fixed.items()
    }
    message = f"Release v{version}\n\nOnly action.yml changes: it names the published image by its digest.\n"
    return git("commit-tree", tree, "-p", "HEAD", stdin=message, env=identity)


def make_tag(version: str, image: str) -> str:
    """Make the release's commit, tag it, and return it. Push nothing.

    The tag is lightweight: `git ls-remote` then shows the commit that users pin. git refuses to replace another tag.
    """
    commit = make_commit(version, image)
    if local_tag(version) != commit:
        git("tag", f"v{version}", commit)
    return commit


def release_notes(version: str, image: str, repository: str) -> str:
    """Return the changes of a version, and how to verify where its image comes from.

    Wrapped lines of list items are joined, because GitHub shows every line break in release notes. `repository` has its capital
    letters, because `--signer-workflow` is a case-sensitive pattern. That pattern matches a workflow on any branch, so
    `--source-ref` requires main.
    """
    changes = re.sub(r"\n +(?![-*+] )(?=\S)", " ", changelog_section(version))
    return f"""\
{changes}

### Image

This version runs `{image}`.
It was built from this repository for `linux/amd64` and `linux/arm64`. To verify where it comes from:

```sh
gh attestation verify oci://{image} \\
  --repo {repository} --source-ref refs/heads/main \\
  --signer-workflow {repository}/.github/workflows/release.yml
```"""


def newest_of_line(version: str, published_tags: list[str]) -> str | None:
    """Return the newest published version, apart from prereleases, with the same major number."""
    versions = [tag[1:] for tag in published_tags if re.fullmatch(r"v[0-9]+\.[0-9]+\.[0-9]+", tag)]
    line = [other for other in versions if other.partition(".")[0] == version.partition(".")[0]]
    return max(line, key=lambda other: [int(number) for number in other.split(".")], default=None)


def print_major_tag(version: str, published_tags: list[str]) -> None:
    """Print the major tag, such as v1, if it moves to a version; otherwise explain on stderr why it does not."""
    major_tag, newest = f"v{version.partition('.')[0]}", newest_of_line(version, published_tags)
    if version == newest:
        print(major_tag)
    else:
        print(
            f"{major_tag} does not move to {version}: the newest published release of this line is {newest}.",
            file=sys.stderr,
        )


def dry_run(version: str) -> None:
    """Check a release, and print the change of action.yml and the notes. No branch, tag or file is changed."""
    check_release(version)
    print(
        "The result of CI was not checked. The digest below is a placeholder: in a release, the build determines it.\n"
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
