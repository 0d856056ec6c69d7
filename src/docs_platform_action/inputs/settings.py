"""Settings: what the workflow asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..models import AGENT, EXPORT, MODES


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input of the action, with the modes that it belongs to."""

    name: str
    default: str = ""
    modes: tuple[str, ...] = MODES


INPUTS: Final = (
    Input(name="mode", default=EXPORT),
    Input(name="base-url"),
    Input(name="admin-key"),
    Input(name="domain", modes=(EXPORT,)),
    Input(name="job-id"),
    Input(name="project-id", modes=(AGENT,)),
    Input(name="timeout", default="60m"),
    Input(name="wait", default="true", modes=(EXPORT,)),
    Input(name="poll-interval", default="1s"),
    Input(name="max-poll-interval", default="30s"),
    Input(name="outage-tolerance", default="5m"),
    Input(name="start-options", modes=(EXPORT,)),
    Input(name="max-parallel", default="10", modes=(EXPORT,)),
    Input(name="bundle-path", modes=(EXPORT,)),
    Input(name="site-path", modes=(EXPORT,)),
    Input(name="min-pages", modes=(EXPORT,)),
    Input(name="values-file", modes=(EXPORT,)),
    Input(name="export-version", modes=(EXPORT,)),
    Input(name="mask-bundle-url", default="false", modes=(EXPORT,)),
    Input(name="require-pr", default="false", modes=(AGENT,)),
    Input(name="ca-bundle"),
)


@dataclass(frozen=True, kw_only=True)
class OutputPath:
    """Where to write something. `root` is the folder above it that outlives the container.

    `name` is the path for later steps, relative to the workspace. In the runner's temporary folder it is the container's own
    path, because a container cannot know where that folder is on the runner.
    """

    path: Path
    root: Path
    name: str


@dataclass(frozen=True, kw_only=True)
class WaitSettings:
    """How long to wait for a job, and the pauses between two reads: `poll-interval` and `max-poll-interval`."""

    timeout_seconds: float
    shortest_pause_seconds: float
    longest_pause_seconds: float


@dataclass(frozen=True, kw_only=True)
class DeliverySettings:
    """What to do with a finished bundle."""

    bundle: OutputPath | None = None
    site: OutputPath | None = None
    values: OutputPath | None = None
    version: str | None = None
    min_pages: int | None = None
    mask_bundle_url: bool = False


@dataclass(frozen=True, kw_only=True)
class ExportSettings:
    """One export. Either `domain` or `job_id` is set, or both."""

    waiting: WaitSettings
    domain: str | None
    job_id: str | None
    wait: bool
    start_options: Mapping[str, object]
    delivery: DeliverySettings = field(default_factory=DeliverySettings)


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """The wait for one agent job."""

    waiting: WaitSettings
    project_id: str
    job_id: str
    require_pr: bool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run does. `authorities_pem` are certificate authorities to trust in addition to the public ones."""

    base_url: str
    admin_key: str = field(repr=False)
    outage_tolerance_seconds: float
    authorities_pem: str | None = field(repr=False)
    jobs: tuple[ExportSettings | AgentSettings, ...]
    max_parallel: int
    warnings: tuple[str, ...]
