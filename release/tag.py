"""The commit and the tag of a release."""

from release.action_file import ACTION_FILE, Image, pin_image
from release.errors import ReleaseError
from release.repository import Repository
from release.version import Version


def tag_release(repository: Repository, version: Version, image: Image) -> str:
    """Commit the pinned action.yml as a child of HEAD, tag the commit, and return it. Pushes nothing.

    The tag is lightweight: `git ls-remote` then shows the commit that users pin, and not a tag object. An annotation would only
    repeat the release.
    """
    pinned = pin_image(repository.read_head(ACTION_FILE), image, version)
    message = (
        f"Release {version.tag}\n\nOnly the image's line in {ACTION_FILE} changes: it names the published image by its digest.\n"
    )
    commit = repository.commit_with(ACTION_FILE, pinned, message)
    existing = repository.tag_commit(version.tag)
    if existing is None:
        repository.create_tag(version.tag, commit)
    elif existing != commit:
        raise ReleaseError(
            f"The tag {version.tag} exists, at {existing}, which is not this release's commit. "
            f"Remove the tag if it was never pushed: git tag --delete {version.tag}."
        )
    return commit
