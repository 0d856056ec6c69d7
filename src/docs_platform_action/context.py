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
    """What the jobs of every run share."""

    clock: Clock
    outputs: Outputs
    listener: Listener
    room: Room


@dataclass(frozen=True, kw_only=True)
class PlatformContext(Context):
    """What the jobs of a run that uses the platform share."""

    client: HttpClient
    platform: Platform
    github: GitHub | None = None
