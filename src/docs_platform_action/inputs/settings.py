"""Settings: what the workflow asks for, with a class for each mode."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..manifest import FileDigests
from ..models import MaxRemoved, OutputPath


@dataclass(frozen=True, kw_only=True)
class PlatformSettings:
    """How to reach the platform. `ca_bundle` is the text of a PEM file."""

    base_url: str
    admin_key: str = field(repr=False)
    outage_tolerance_seconds: float
    ca_bundle: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class WaitSettings:
    """How long to wait for a job, and the pauses between two reads of it."""

    timeout_seconds: float
    poll_interval_seconds: float
    max_poll_interval_seconds: float


@dataclass(frozen=True, kw_only=True)
class PublicationSettings:
    """What is checked and written before a site is published.

    `compare_with` has the published digests by path, and none if nothing is published yet.
    """

    min_pages: int | None = None
    manifest_path: OutputPath | None = None
    compare_with: Mapping[bytes, FileDigests] | None = field(default=None, repr=False)
    changes_path: OutputPath | None = None
    max_removed: MaxRemoved | None = None


@dataclass(frozen=True, kw_only=True)
class DeliverySettings:
    """What to do with the bundle of a finished export."""

    bundle_path: OutputPath | None = None
    site_path: OutputPath | None = None
    publication: PublicationSettings = PublicationSettings()
    values_file: OutputPath | None = None
    export_version: str | None = None
    mask_bundle_url: bool = False


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """A site to export or to collect. `domain` may be the label of its project."""

    domain: str | None = None
    project_id: str | None = None
    delivery: DeliverySettings = DeliverySettings()


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


@dataclass(frozen=True, kw_only=True)
class CollectSettings:
    """Mode `collect`: wait for an export that runs already, and deliver its bundle."""

    platform: PlatformSettings
    job_id: str
    site: SiteSettings
    waiting: WaitSettings


@dataclass(frozen=True, kw_only=True)
class UnpackSettings:
    """Mode `unpack`: unpack a bundle that is a file here, and whose digest is known."""

    domain: str | None
    bundle_path: OutputPath
    bundle_sha256: str
    site_path: OutputPath
    publication: PublicationSettings


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Mode `agent`: wait for an AI agent's job."""

    platform: PlatformSettings
    project_id: str
    job_id: str
    waiting: WaitSettings
    require_pr: bool


Settings = ExportSettings | CollectSettings | UnpackSettings | AgentSettings
