"""What the jobs of one run share."""

from dataclasses import dataclass

from .api.admin_api import AdminApi
from .clock import Clock
from .events import Events
from .github.deployments import Deployments
from .http.client import HttpClient
from .outputs import Outputs


@dataclass(frozen=True, kw_only=True)
class Context:
    """The parts that all jobs of a run share."""

    clock: Clock
    outputs: Outputs
    events: Events


@dataclass(frozen=True, kw_only=True)
class PlatformContext(Context):
    """The parts that all jobs of a run share which uses the platform."""

    client: HttpClient
    api: AdminApi
    github: Deployments | None = None
