"""Helpers of the integration tests, mostly parts of the action that connect to real servers."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import yaml

from docs_platform_action.api.admin_api import AdminApi
from docs_platform_action.api.client import ApiClient
from docs_platform_action.clock import Clock
from docs_platform_action.http.pacing import Pacer
from docs_platform_action.http.transport import Transport
from docs_platform_action.http.trust import create_ssl_context
from docs_platform_action.inputs.settings import Mode
from docs_platform_action.job import Job
from tests.keys import ADMIN_KEY
from tests.unit.fakes import RecordedEvents, http_client


def api_client_to(base_url: str, *, transport: Transport | None = None, clock: Clock | None = None) -> ApiClient:
    client = http_client(transport or Transport(create_ssl_context(None)), clock=clock)
    return ApiClient(client, base_url=base_url, key=ADMIN_KEY)


def at_once(_: float) -> float:
    return 0.0


def api_of(base_url: str, *, outage_tolerance_seconds: float = 0.4, jitter: Callable[[float], float] | None = None) -> AdminApi:
    clock = Clock()
    return AdminApi(
        client=api_client_to(base_url),
        pacer=Pacer(clock),
        clock=clock,
        outage_tolerance_seconds=outage_tolerance_seconds,
        events=RecordedEvents(),
        jobs=[],
        jitter=jitter,
    )


def expiring_links(*seconds: float, clock: Clock | None = None) -> Callable[[dict[str, object]], dict[str, object]]:
    """Return an override for bundles: the links expire after so many seconds, each at its turn; the last value repeats."""
    remaining, now = [*seconds], (clock or Clock()).now

    def override(normal: dict[str, object]) -> dict[str, object]:
        expires_at = now() + timedelta(seconds=remaining.pop(0) if len(remaining) > 1 else remaining[0])
        return {**normal, "expiresAt": expires_at.isoformat()}

    return override


def link_in(values: Path) -> str:
    """Return the link in a Helm values file."""
    return str(yaml.safe_load(values.read_text())["staticExport"]["bundleUrl"])


def finished_export() -> Job:
    """Return a job that the simulator reports as completed."""
    return Job(mode=Mode.EXPORT, job_id="export-finished")
