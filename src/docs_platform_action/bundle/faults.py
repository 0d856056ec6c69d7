"""What can be wrong with a bundle, its storage and the disk, and what to do about it."""

from typing import Final

from ..errors import Advice, InvalidBundle

STORAGE_UNAVAILABLE: Final = Advice(
    cause="The storage, or the network between it and this runner, is down or overloaded.",
    remedy="Run the workflow again, or allow the download more time with `outage-tolerance`.",
)
STORAGE_UNREACHABLE: Final = Advice(
    cause="The runner's network blocks access to the storage, or the storage is down.",
    remedy="Allow the runner to reach the storage's host, or run the workflow again.",
)
STORAGE_REFUSED: Final = Advice(
    cause="The storage denies access to this runner, or links expire too early.",
    remedy="Allow the runner's address at the storage, or report it to the platform.",
)
BUNDLE_GONE: Final = Advice(
    cause="There is no bundle at the link: it was removed, or is not there yet.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
LINK_INTERCEPTED: Final = Advice(
    cause="A login page or a gateway responded instead of the storage, or changed the bundle.",
    remedy=(
        "To see what responds, open the `bundleUrl` of a run without `bundle-path` "
        "and `site-path` from the runner's network."
    ),
)
RESPONSE_IS_ERROR: Final = Advice(
    cause="The storage, or a gateway in front of it, reports an error in place of the bundle.",
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
RESPONSE_UNEXPECTED: Final = Advice(
    cause="A gateway responded instead of the storage, or the storage is misconfigured.",
    remedy=LINK_INTERCEPTED["remedy"],
)
BUNDLE_CHANGED: Final = Advice(
    cause=(
        "The bundle was replaced during the download, "
        "or something between the storage and this runner changes it."
    ),
    remedy="Run the workflow again. If it fails the same way, report it to the platform.",
)
BUNDLE_NOT_RESUMED: Final = Advice(
    cause=(
        "The connection to the storage breaks, and the storage cannot resume, "
        "or the bundle is replaced during the download."
    ),
    remedy=BUNDLE_CHANGED["remedy"],
)
DISK_FULL: Final = Advice(
    cause="The runner's disk is full or too small.",
    remedy="Free space in an earlier step, or use a runner with a larger disk.",
)
DISK_FAULTY: Final = Advice(
    cause="The runner's disk is faulty, or another process is using it.",
    remedy="Fix the runner and run the workflow again.",
)
PATH_SHARED: Final = Advice(
    cause="Another process or an earlier step uses the same path. Its files were not changed.",
    remedy="Use a path that nothing else writes to.",
)

FILE_REPLACED: Final = Advice(
    cause="Another process removed or replaced it after the inputs were checked.",
    remedy="Use a path that nothing else writes to. Nothing was unpacked.",
)

# The cause and the remedy if the archive has the right SHA-256.
UNUSABLE_FILE: Final = Advice(
    cause=(
        "The archive was damaged or not a bundle when its SHA-256 was computed, "
        "or was changed during this run."
    ),
    remedy="Use another archive, or export the site again.",
)

# The cause if the archive has the length that the storage announced.
DAMAGED_AT_STORAGE: Final = (
    "The whole archive arrived, so it was damaged at the storage, or was not made by the platform."
)


class OtherArchive(InvalidBundle):
    """The bundle, or what it holds in place of a tar archive, is an archive of another kind."""


class DiskTooSmall(InvalidBundle):
    """The archive, or the site in it, needs more space than there is."""

    def __init__(self, *details: str) -> None:
        super().__init__(
            "the bundle is too large for the runner's disk", details=details, **DISK_FULL
        )


def damaged(fact: str) -> InvalidBundle:
    """Return the failure for an archive that is incomplete or malformed."""
    return InvalidBundle("the bundle is damaged", details=(fact,))


def unsafe(fact: str) -> InvalidBundle:
    """Return the failure for an archive that holds something that must not be unpacked."""
    return InvalidBundle(
        "the bundle cannot be opened safely",
        details=(fact,),
        cause=(
            "The archive was not made by the platform, "
            "or the site contains something that cannot be unpacked."
        ),
        remedy=(
            "If the site's sources cause it, fix them and export again; "
            "otherwise report it to the platform."
        ),
    )


def too_large(fact: str) -> InvalidBundle:
    """Return the failure for an archive beyond a limit."""
    return InvalidBundle(
        "the bundle is too large to be opened safely",
        details=(fact,),
        cause=(
            "The archive was made to fill the runner's disk, "
            "or holds more than a documentation site."
        ),
        remedy="To inspect the archive, save it with `bundle-path`, without `site-path`.",
    )


_NOT_OPENED: Final = "the bundle is not an archive that can be opened"
_SUPPORTED: Final = "Supported are zip, and tar, plain or with gzip, bzip2 or xz."


def not_an_archive(fact: str) -> InvalidBundle:
    """Return the failure for what is no archive at all."""
    return InvalidBundle(
        _NOT_OPENED,
        details=(fact, _SUPPORTED),
        cause="Something else was sent or saved in place of the bundle.",
    )


def unsupported_archive(fact: str) -> OtherArchive:
    """Return the failure for an archive of an unsupported kind."""
    return OtherArchive(
        _NOT_OPENED,
        details=(fact, _SUPPORTED),
        cause="This is not the bundle, or the platform now packs bundles in another format.",
    )


def archive_in_archive(fact: str) -> OtherArchive:
    """Return the failure for compressed data that hold another archive in place of a tar."""
    return OtherArchive(
        "the bundle is an archive inside an archive",
        details=(fact, "Only a tar archive can be opened inside of gzip, bzip2 or xz data."),
        cause="The archive was compressed twice.",
    )


def compressed_on_its_way(coding: str, error: OtherArchive) -> InvalidBundle:
    """Return the failure for a bundle that is of another kind because of a response's coding."""
    return InvalidBundle(
        "the bundle was compressed once more on its way",
        details=(f"The response had the header `Content-Encoding: {coding}`.", error.details[0]),
        cause=(
            "Something between the storage and this runner, or the storage itself, "
            "compressed the bundle, which is compressed already."
        ),
        remedy="Turn off compression for bundles in the proxy or gateway, or at the storage.",
    )
