"""What the jobs of one run share."""

from dataclasses import dataclass

from .api.admin_api import AdminApi
from .cleanups import Cleanups
from .clock import Cancellation, Clock
from .events import Events
from .http.client import HttpClient


@dataclass(frozen=True, kw_only=True)
class Context:
    """The parts that every job of a run is handed.

    `outage_tolerance_seconds` is how long temporary errors may last. `cleanups` removes what is left when the run is cut short.
    """

    clock: Clock
    cancellation: Cancellation
    client: HttpClient
    api: AdminApi
    events: Events
    cleanups: Cleanups
    outage_tolerance_seconds: float
