"""What the jobs of one run share."""

from dataclasses import dataclass

from .api.admin_api import AdminApi
from .cleanups import Cleanups
from .clock import Clock
from .events import Events
from .http.client import HttpClient


@dataclass(frozen=True, kw_only=True)
class Context:
    """The parts that all jobs of a run share. `cleanups` removes unfinished files after a cancel."""

    clock: Clock
    client: HttpClient
    api: AdminApi
    events: Events
    cleanups: Cleanups
