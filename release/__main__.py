"""The command line: `python -m release COMMAND`, from the top folder of a clone."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from release.action_file import ACTION_FILE, PLACEHOLDER_DIGEST, PLACEHOLDER_IMAGE, parse_image, pin_image
from release.changelog import CHANGELOG, changelog_section
from release.checks import check_release, refuse
from release.errors import ReleaseError
from release.notes import release_notes
from release.repository import Repository
from release.tag import tag_release
from release.version import parse_tag, parse_version, why_major_tag_stays

_IMAGE_HELP = "name of the image, such as ghcr.io/OWNER/docs-platform-action, without a tag"
_DIGEST_HELP = "digest of the image's index, sha256:…"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m release", description="Parts of a release. RELEASING.md explains them.")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, meaning: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=meaning, description=meaning)

    check = command("check", "Check that HEAD can be released, and report all mistakes together.")
    check.add_argument("--github", action="store_true", help="also ask GitHub, with gh, whether CI passed on HEAD")
    check.add_argument(
        "--made", metavar="COMMIT", help="the commit of `tag`: the version's tag may exist if it names this commit"
    )
    pin = command("pin", f"Replace the Dockerfile in {ACTION_FILE} with the published image.")
    tag = command("tag", f"Commit the pinned {ACTION_FILE} as a child of HEAD, tag the commit, and print it. Push nothing.")
    notes = command("notes", "Print the release notes: the changelog's section and, if given, the image.")
    rehearsed = command("dry-run", "Print what a release would check, change, run and publish. Change nothing.")
    for made_command in (pin, tag):
        made_command.add_argument("--image", required=True, help=_IMAGE_HELP)
        made_command.add_argument("--digest", required=True, help=_DIGEST_HELP)
    notes.add_argument("--image", help=_IMAGE_HELP)
    notes.add_argument("--digest", help=_DIGEST_HELP)
    notes.add_argument("--repository", metavar="OWNER/NAME", help="where the image is built; default: the end of its name")
    rehearsed.add_argument("--image", default=PLACEHOLDER_IMAGE, help=_IMAGE_HELP)
    rehearsed.add_argument("--digest", default=PLACEHOLDER_DIGEST, help=_DIGEST_HELP)
    for made_command in (check, pin, tag, notes, rehearsed):
        made_command.add_argument("version", metavar="VERSION", help="1.2.3, or 1.2.3-rc.1 for a prerelease")

    major = command("major", "Print the major tag, such as v1, if it moves to a release. Reads the published tags from stdin.")
    major.add_argument("tag", metavar="TAG", help="tag of the release that was published, such as v1.2.3")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command in the current folder; return its exit code."""
    options = parser().parse_args(arguments)
    try:
        for line in _COMMANDS[options.command](Repository(Path.cwd()), options):
            print(line, flush=True)
    except ReleaseError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _check(repository: Repository, options: argparse.Namespace) -> Iterator[str]:
    findings = check_release(repository, options.version, ask_github=options.github, made=options.made)
    yield from map(str, findings)
    refuse(findings)


def _pin(repository: Repository, options: argparse.Namespace) -> Iterator[str]:
    image, version = parse_image(options.image, options.digest), parse_version(options.version)
    pinned = pin_image(repository.read(ACTION_FILE), image, version)
    (repository.folder / ACTION_FILE).write_bytes(pinned.encode())
    yield f"{ACTION_FILE} names {image}."


def _tag(repository: Repository, options: argparse.Namespace) -> Iterator[str]:
    yield tag_release(repository, parse_version(options.version), parse_image(options.image, options.digest))


def _notes(repository: Repository, options: argparse.Namespace) -> Iterator[str]:
    if (options.image is None) != (options.digest is None):
        raise ReleaseError("--image and --digest belong together. Pass both or neither.")
    image = None if options.image is None else parse_image(options.image, options.digest)
    yield release_notes(
        changelog_section(repository.read_head(CHANGELOG), parse_version(options.version)), image, options.repository
    )


def _dry_run(repository: Repository, options: argparse.Namespace) -> Iterator[str]:
    from release.dry_run import dry_run  # here, because the other commands run without the YAML parser

    yield from dry_run(repository, options.version, parse_image(options.image, options.digest))


def _major(_: Repository, options: argparse.Namespace) -> Iterator[str]:
    version = parse_tag(options.tag)
    reason = why_major_tag_stays(version, sys.stdin.read().split())
    if reason is None:
        yield version.major_tag
    else:
        print(f"{version.major_tag} stays where it is: {reason}", file=sys.stderr)


_COMMANDS: Final[Mapping[str, Callable[[Repository, argparse.Namespace], Iterator[str]]]] = {
    "check": _check,
    "pin": _pin,
    "tag": _tag,
    "notes": _notes,
    "dry-run": _dry_run,
    "major": _major,
}


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a pager that ends early is not an error
    sys.exit(main())
