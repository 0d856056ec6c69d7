"""What the jobs of one run share."""

from dataclasses import dataclass

from .clock import Clock
from .events import Listener
from .github.deployments import GitHub
from .http.client import HttpClient
from .outputs import Outputs
from .platform.operations import Platform
from .platform.room import Room


@dataclass(frozen=True, kw_only=True)
class Context:
    """The parts that all jobs of a run share."""

    clock: Clock
    outputs: Outputs
    listener: Listener
    room: Room


@dataclass(frozen=True, kw_only=True)
class PlatformContext(Context):
    """The parts that all jobs of a run share which uses the platform."""

    client: HttpClient
    platform: Platform
    github: GitHub | None = None
