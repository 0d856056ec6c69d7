"""Values that several parts of the action pass on. Unknown ones are `None`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Final

from .errors import NoRoom
from .text import UNUSABLE, pluralize

API: Final = "API"
STORAGE: Final = "storage"
GITHUB: Final = "GitHub"


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A phase of a job, which is the current one until it has an `ended_at`.

    Both times are on the clock's `monotonic`.
    """

    name: str
    began_at: float
    ended_at: float | None = None

    def seconds(self, now: float) -> float:
        """Return how long the phase has taken."""
        ended_at = now if self.ended_at is None else self.ended_at
        return ended_at - self.began_at


@dataclass(frozen=True, kw_only=True)
class RoomWait:
    """A start's wait for room at the platform, with its last refusal.

    Times are on the clock's `monotonic`: `until` is when the last attempt is made.
    """

    refusal: NoRoom
    refusals: int
    since: float
    next_at: float = math.inf
    until: float = math.inf
    is_over: bool = False  # the last attempt was refused, too


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of a job. `progress` is a percentage, 0 to 100.

    `error` is the platform's reason for a failure.
    """

    status: str
    progress: float | None = None
    page_count: int | None = None
    error: str | None = None

    QUEUED: ClassVar[str] = "queued"
    COMPLETED: ClassVar[str] = "completed"
    FAILED: ClassVar[str] = "failed"
    KNOWN_STATUSES: ClassVar[tuple[str, ...]] = ()  # in the API's description
    FINAL_STATUSES: ClassVar[tuple[str, ...]] = ()

    @property
    def has_known_status(self) -> bool:
        """Whether the status is one that the API's description has."""
        return self.status in self.KNOWN_STATUSES

    @property
    def is_queued(self) -> bool:
        """Whether the job waits for its turn on the platform."""
        return self.status == self.QUEUED

    @property
    def is_completed(self) -> bool:
        """Whether the job has completed."""
        return self.status == self.COMPLETED

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended. A job with an unknown status is still running."""
        return self.status in self.FINAL_STATUSES


@dataclass(frozen=True, kw_only=True)
class ExportJob(Reading):
    """The status of a static export job. A completed one has a `link` by project."""

    link: "BundleLink | None" = None

    RUNNING: ClassVar[str] = "running"
    FINAL_STATUSES: ClassVar[tuple[str, ...]] = (Reading.COMPLETED, Reading.FAILED)
    KNOWN_STATUSES: ClassVar[tuple[str, ...]] = (Reading.QUEUED, RUNNING, *FINAL_STATUSES)


@dataclass(frozen=True, kw_only=True)
class AgentJob(Reading):
    """The status of an AI agent's job."""

    pr_link: str | None = None
    unusable_pr_link: str | None = None  # what the API gave instead of an address
    repository: str | None = None
    ref: str | None = None
    model: str | None = None
    created_at: str | None = None
    archived_at: str | None = None

    ARCHIVED: ClassVar[str] = "archived"
    FINAL_STATUSES: ClassVar[tuple[str, ...]] = (Reading.COMPLETED, ARCHIVED, Reading.FAILED)
    KNOWN_STATUSES: ClassVar[tuple[str, ...]] = ("active", *FINAL_STATUSES)


@dataclass(frozen=True, kw_only=True)
class BundleLink:
    """A time-limited link to a finished export."""

    url: str
    expires_at: str | None = None  # as the API writes it
    expires: datetime | None = None  # the same as a time, if it can be read


@dataclass(frozen=True, kw_only=True)
class Archive:
    """The archive of a bundle, downloaded or read from a file: its size in bytes and its digest."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FileDigests:
    """The SHA-256 of a file's content and, for a page that is not very large, of its text."""

    content: bytes
    text: bytes | None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a site has, by path. It is empty if nothing is published yet.

    `folder_links` are the symbolic links to folders, each with the path of the folder that it leads
    to in the end. Links to files are in `files`.
    """

    files: Mapping[bytes, FileDigests] = field(default_factory=dict)
    folder_links: Mapping[bytes, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LookAlikes:
    """Removed files that are added again under names that differ only in their Unicode form.

    `path` is one of the added files, with the forms of its old and its new name.
    """

    count: int
    path: str
    old_form: str
    new_form: str

    @property
    def note(self) -> str:
        """What to know about them, in sentences."""
        fact = f"{self.count:,} removed files are added again under names that look the same"
        if self.count == 1:
            fact = "1 removed file is added again under a name that looks the same"
        return (
            f"{fact}, but in another Unicode form. "
            "The program that packs the export has probably changed. "
            "For a host, the old and the new name are two addresses: "
            "pack the export as before, or expect broken links to the old addresses. "
            f"For example, this name was {self.old_form} and is now {self.new_form}: '{self.path}'."
        )


@dataclass(frozen=True, kw_only=True)
class MaxRemoved:
    """How many pages may be removed: a number, or a percentage of the published ones."""

    amount: int
    is_percentage: bool

    def of(self, published: int) -> int:
        """Return how many of the published pages may be removed."""
        if self.is_percentage:
            return published * self.amount // 100
        return self.amount

    def describe(self, published: int) -> str:
        """Return the limit in words."""
        limit = f"`max-removed` ({self.amount}%)" if self.is_percentage else "`max-removed`"
        return f"{limit} allows {self.of(published):,}"


@dataclass(frozen=True, kw_only=True)
class FolderFiles:
    """The first files of a folder, and how many more it has."""

    folder: str  # with a slash at its end. Empty for the site's top folder
    paths: Sequence[str]
    more: int


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What differs from the site that is published, by kind of change."""

    pages: Mapping[str, int]  # how many
    files: Mapping[str, int]  # how many other files
    listed: Mapping[str, Sequence[str]]  # the first pages
    listed_files: Mapping[str, Sequence[FolderFiles]]  # the first other files, scripts first
    is_first: bool  # nothing is published yet
    pages_besides_404: int | None = None  # the reported number, if it leaves out `404.html` alone
    look_alikes: LookAlikes | None = None
    max_removed: MaxRemoved | None = None
    lost_folders: str = ""  # those without any page now
    scripts: str = ""  # how many are added and changed, and where
    folder_links: str = ""  # what happens to links to folders, if anything
    has_alarm: bool = False  # there is a warning about the texts

    ADDED: ClassVar[str] = "added"
    TEXT_CHANGED: ClassVar[str] = "textChanged"  # only of pages, which then are not in `changed`
    CHANGED: ClassVar[str] = "changed"
    REMOVED: ClassVar[str] = "removed"
    UNCHANGED: ClassVar[str] = "unchanged"

    # of pages, for people
    NAMES: ClassVar[Mapping[str, str]] = {
        TEXT_CHANGED: "text changed",
        CHANGED: "otherwise changed",
    }

    @property
    def is_any(self) -> bool:
        """Whether any file was added, changed or removed."""
        for counts in (self.pages, self.files):
            for kind, count in counts.items():
                if kind != self.UNCHANGED and count > 0:
                    return True
        return False

    @property
    def published_pages(self) -> int:
        """How many pages the published site has."""
        return sum(self.pages.values()) - self.pages[self.ADDED]

    @property
    def removal(self) -> str:
        """How many of the published pages are removed, in words."""
        removed = self.pages[self.REMOVED]
        published = pluralize(self.published_pages, "published page")
        return f"{removed:,} of {published} would be removed"

    @property
    def has_new_text_everywhere(self) -> bool:
        """Whether the text of each of several pages changed, and no page was added or removed."""
        with_new_text = self.pages[self.TEXT_CHANGED]
        return with_new_text > 1 and with_new_text == sum(self.pages.values())

    @property
    def notes(self) -> Sequence[str]:
        """What to know about the numbers, in sentences."""
        notes = []
        if self.is_first:
            notes.append(
                "Nothing is published yet (`first-publication`), so every file counts as added."
            )
        if self.pages_besides_404 is not None:
            notes.append(
                f"The site has {self.pages_besides_404 + 1:,} `.html` files: "
                f"the {pluralize(self.pages_besides_404, 'page')} that the API reports, "
                "and `404.html`."
            )
        if self.pages[self.REMOVED]:
            limit = ""
            if self.max_removed is not None:
                limit = f"; {self.max_removed.describe(self.published_pages)}"
            notes.append(f"{self.removal}{limit}.")
        if self.lost_folders:
            notes.append(f"No page is left in {self.lost_folders}.")
        if self.scripts:
            notes.append(f"Scripts {self.scripts}.")
        if self.folder_links:
            notes.append(f"Links to folders: {self.folder_links}.")
        if self.look_alikes is not None:
            notes.append(self.look_alikes.note)
        if self.has_new_text_everywhere and not self.has_alarm:
            notes.append(
                "The text of every page differs, so something in each page probably changes "
                "with every export, such as a date."
            )
        return notes


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """What is delivered of a bundle so far. Paths are as later steps see them."""

    archive: Archive | None = None
    bundle_path: str | None = None
    site_path: str | None = None
    site_files: int | None = None
    html_files: int | None = None  # of the bundle, also if its site is not published
    values_file: str | None = None
    manifest_path: str | None = None
    site_sha256: str | None = None
    changes: Changes | None = None
    changes_path: str | None = None


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A deployment of a commit that an account has reported to GitHub.

    Source: GitHub's REST API, deployments and their statuses.
    """

    id: int
    commit: str
    commit_url: str
    creator: str
    environment: str
    is_transient: bool
    state: str = "unread"
    link: str | None = None  # where its state is explained
    reporter: str | None = None  # the account that has reported its state

    UNREAD: ClassVar[str] = "unread"
    PENDING: ClassVar[str] = "pending"  # without a status
    LIVE: ClassVar[str] = "success"
    FAILED: ClassVar[tuple[str, ...]] = ("failure", "error")
    INACTIVE: ClassVar[str] = "inactive"
    OVER: ClassVar[tuple[str, ...]] = (*FAILED, INACTIVE)  # it cannot succeed any more

    @property
    def name(self) -> str:
        """The short name of its commit."""
        return self.commit[:7]

    @property
    def description(self) -> str:
        """What completes "Its deployment …", where it is not live."""
        if self.state in self.FAILED:
            return "has failed"
        if self.state == self.LIVE or self.state in self.OVER:
            return "has been replaced"
        if self.state == self.UNREAD:
            return "has a state that was not read yet"
        return f"is {self.state.replace('_', ' ')}"


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project of the platform. `label` is what people call its site."""

    project_id: str
    label: str | None = None


@dataclass(frozen=True, kw_only=True)
class OutputPath:
    """Where to write something.

    `root` is the folder above it that outlives the container, `name` the path for later steps.
    """

    path: Path
    root: Path
    name: str


def is_identifier(value: str) -> bool:
    """Return whether a text can be an identifier: not empty, and without control characters."""
    return bool(value) and not UNUSABLE.search(value)
