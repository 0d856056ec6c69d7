"""Settings: what the workflow asks for, with a class for each mode, read from its inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from ..models import Manifest, MaxRemoved, OutputPath
from . import table
from .checked import Inputs
from .validators import parse_github_api_url


@dataclass(frozen=True, kw_only=True)
class PlatformSettings:
    """How to reach the platform. `ca_bundle` is the text of a PEM file."""

    base_url: str
    admin_key: str = field(repr=False)
    outage_tolerance_seconds: float
    ca_bundle: str | None = field(default=None, repr=False)

    @classmethod
    def read(cls, inputs: Inputs) -> Self:
        """Return the settings in the inputs."""
        return cls(
            base_url=inputs.required(table.BASE_URL),
            admin_key=inputs.required(table.ADMIN_KEY),
            outage_tolerance_seconds=inputs.required(table.OUTAGE_TOLERANCE),
            ca_bundle=inputs.certificates,
        )


@dataclass(frozen=True, kw_only=True)
class WaitSettings:
    """How long to wait for a job, and the pauses between two reads of it."""

    timeout_seconds: float
    poll_interval_seconds: float
    max_poll_interval_seconds: float

    @classmethod
    def read(cls, inputs: Inputs) -> Self:
        """Return the settings in the inputs."""
        return cls(
            timeout_seconds=inputs.required(table.TIMEOUT),
            poll_interval_seconds=inputs.required(table.POLL_INTERVAL),
            max_poll_interval_seconds=inputs.required(table.MAX_POLL_INTERVAL),
        )


@dataclass(frozen=True, kw_only=True)
class PublicationSettings:
    """What is checked and written before a site is published.

    `compare_with` is the manifest of the published site, empty if nothing is published yet.
    """

    min_pages: int | None = None
    manifest_path: OutputPath | None = None
    compare_with: Manifest | None = field(default=None, repr=False)
    changes_path: OutputPath | None = None
    max_removed: MaxRemoved | None = None

    @property
    def is_first(self) -> bool:
        """Whether the site is to be compared, but nothing is published yet."""
        return self.compare_with is not None and not self.compare_with.files

    @classmethod
    def read(cls, inputs: Inputs, number: int) -> Self:
        """Return the settings of a site in the inputs."""
        published = inputs.published
        return cls(
            min_pages=inputs.value(table.MIN_PAGES),
            manifest_path=inputs.path(table.MANIFEST_PATH, number),
            compare_with=published[number] if published is not None else None,
            changes_path=inputs.path(table.CHANGES_PATH, number),
            max_removed=inputs.value(table.MAX_REMOVED),
        )


@dataclass(frozen=True, kw_only=True)
class DeliverySettings:
    """What to do with the bundle of a finished export."""

    bundle_path: OutputPath | None = None
    site_path: OutputPath | None = None
    publication: PublicationSettings = PublicationSettings()
    values_file: OutputPath | None = None
    export_version: str | None = None
    mask_bundle_url: bool = False

    @classmethod
    def read(cls, inputs: Inputs, number: int) -> Self:
        """Return the settings of a site in the inputs."""
        return cls(
            bundle_path=inputs.path(table.BUNDLE_PATH, number),
            site_path=inputs.path(table.SITE_PATH, number),
            publication=PublicationSettings.read(inputs, number),
            values_file=inputs.path(table.VALUES_FILE, number),
            export_version=inputs.value(table.EXPORT_VERSION),
            mask_bundle_url=inputs.required(table.MASK_BUNDLE_URL),
        )


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """A site to export or to collect. `domain` may be the label of its project."""

    domain: str | None = None
    project_id: str | None = None
    delivery: DeliverySettings = DeliverySettings()

    @classmethod
    def read(cls, inputs: Inputs, number: int) -> Self:
        """Return the settings of a site in the inputs."""
        site = inputs.sites[number]
        delivery = DeliverySettings.read(inputs, number)
        return cls(domain=site.name, project_id=site.project_id, delivery=delivery)


@dataclass(frozen=True, kw_only=True)
class CommitSettings:
    """The commit that the platform must serve, and whose deployments say so.

    The addresses and the repository are the runner's own.
    """

    commit: str
    commit_timeout_seconds: float
    github_token: str = field(repr=False)
    deployment_creator: str
    deployment_environment: str | None
    github_api_url: str
    github_server_url: str
    github_repository: str

    @classmethod
    def read(cls, inputs: Inputs) -> Self | None:
        """Return the settings in the inputs, or `None` without a commit."""
        commit = inputs.value(table.COMMIT)
        if commit is None:
            return None
        return cls(
            commit=commit,
            commit_timeout_seconds=inputs.required(table.COMMIT_TIMEOUT),
            github_token=inputs.required(table.GITHUB_TOKEN),
            deployment_creator=inputs.required(table.DEPLOYMENT_CREATOR),
            deployment_environment=inputs.value(table.DEPLOYMENT_ENVIRONMENT),
            github_api_url=parse_github_api_url(inputs.github_api_url),
            github_server_url=inputs.github_server_url,
            github_repository=inputs.github_repository,
        )


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """Mode `export`: export each site, and deliver its bundle unless `wait` is false."""

    platform: PlatformSettings
    sites: tuple[SiteSettings, ...]
    start_timeout_seconds: float
    start_options: Mapping[str, object]
    wait: bool
    waiting: WaitSettings
    max_parallel: int
    commit: CommitSettings | None

    @classmethod
    def read(cls, inputs: Inputs) -> Self:
        """Return the settings in the inputs."""
        numbers = range(len(inputs.sites))
        return cls(
            platform=PlatformSettings.read(inputs),
            sites=tuple(SiteSettings.read(inputs, number) for number in numbers),
            start_timeout_seconds=inputs.required(table.START_TIMEOUT),
            start_options=inputs.value(table.START_OPTIONS) or {},
            wait=inputs.required(table.WAIT),
            waiting=WaitSettings.read(inputs),
            max_parallel=inputs.required(table.PARALLEL),
            commit=CommitSettings.read(inputs),
        )


@dataclass(frozen=True, kw_only=True)
class CollectSettings:
    """Mode `collect`: wait for an export that runs already, and deliver its bundle."""

    platform: PlatformSettings
    job_id: str
    site: SiteSettings
    waiting: WaitSettings

    @classmethod
    def read(cls, inputs: Inputs) -> Self:
        """Return the settings in the inputs."""
        return cls(
            platform=PlatformSettings.read(inputs),
            job_id=inputs.required(table.JOB_ID),
            site=SiteSettings.read(inputs, 0),
            waiting=WaitSettings.read(inputs),
        )


@dataclass(frozen=True, kw_only=True)
class UnpackSettings:
    """Mode `unpack`: unpack a bundle that is a file here, and whose digest is known."""

    domain: str | None
    bundle_path: OutputPath
    bundle_sha256: str
    site_path: OutputPath
    publication: PublicationSettings

    @classmethod
    def read(cls, inputs: Inputs) -> Self:
        """Return the settings in the inputs."""
        return cls(
            domain=inputs.sites[0].name,
            bundle_path=inputs.required_path(table.BUNDLE_PATH),
            bundle_sha256=inputs.required(table.BUNDLE_SHA256),
            site_path=inputs.required_path(table.SITE_PATH),
            publication=PublicationSettings.read(inputs, 0),
        )


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Mode `agent`: wait for an AI agent's job."""

    platform: PlatformSettings
    project_id: str
    job_id: str
    waiting: WaitSettings
    require_pr: bool

    @classmethod
    def read(cls, inputs: Inputs) -> Self:
        """Return the settings in the inputs."""
        (project,) = inputs.required(table.PROJECT_ID)
        return cls(
            platform=PlatformSettings.read(inputs),
            project_id=project.project_id,
            job_id=inputs.required(table.JOB_ID),
            waiting=WaitSettings.read(inputs),
            require_pr=inputs.required(table.REQUIRE_PR),
        )
