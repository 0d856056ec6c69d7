"""Settings: what the workflow asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final

from ..manifest import FileDigests


class Mode(StrEnum):
    """What a run does."""

    EXPORT = "export"
    COLLECT = "collect"
    UNPACK = "unpack"
    AGENT = "agent"


PLATFORM_MODES: Final = (
    Mode.EXPORT,
    Mode.COLLECT,
    Mode.AGENT,
)  # those that need the platform, and a key for it


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project of the platform. `label` is what people call its site."""

    project_id: str
    label: str | None = None


@dataclass(frozen=True, kw_only=True)
class OutputPath:
    """Where to write something. `root` is the folder above it that outlives the container, `name` the path for later steps."""

    path: Path
    root: Path
    name: str


@dataclass(frozen=True, kw_only=True)
class MaxRemoved:
    """How many pages may be removed: a number of pages, or a percentage of the published ones."""

    amount: int
    is_percentage: bool

    def of(self, published: int) -> int:
        """Return how many of the published pages may be removed."""
        return published * self.amount // 100 if self.is_percentage else self.amount


@dataclass(frozen=True, kw_only=True)
class WaitSettings:
    """How long to wait for a job, and the pauses between two reads of it."""

    timeout_seconds: float
    poll_interval_seconds: float
    max_poll_interval_seconds: float


@dataclass(frozen=True, kw_only=True)
class DeliverySettings:
    """What to do with a finished bundle. `compare_with` has the published digests by path, and none if nothing is published."""

    bundle_path: OutputPath | None = None
    bundle_sha256: str | None = None
    site_path: OutputPath | None = None
    min_pages: int | None = None
    values_file: OutputPath | None = None
    manifest_path: OutputPath | None = None
    compare_with: Mapping[bytes, FileDigests] | None = field(default=None, repr=False)
    changes_path: OutputPath | None = None
    max_removed: MaxRemoved | None = None
    export_version: str | None = None
    mask_bundle_url: bool = False


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """What to do about one job. `domain` may be a label. `job_id` is that of an existing job."""

    mode: Mode
    waiting: WaitSettings
    domain: str | None = None
    job_id: str | None = None
    project_id: str | None = None
    wait: bool = True
    start_timeout_seconds: float = 4500.0
    commit_timeout_seconds: float = 1200.0
    start_options: Mapping[str, object] | None = None
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    require_pr: bool = False


@dataclass(frozen=True, kw_only=True)
class CommitSettings:
    """The commit that the platform must serve, and whose deployments say so. The addresses are the runner's own."""

    commit: str
    github_token: str = field(repr=False)
    deployment_creator: str
    deployment_environment: str | None
    github_api_url: str
    github_server_url: str
    github_repository: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run does. `ca_bundle` is the text of a PEM file. Without a platform, there is no `base_url` and no `admin_key`."""

    base_url: str | None
    admin_key: str | None = field(repr=False)
    outage_tolerance_seconds: float
    ca_bundle: str | None = field(repr=False)
    jobs: tuple[JobSettings, ...]
    max_parallel: int
    deployment: CommitSettings | None = None
