"""Helpers of the integration tests, mostly parts of the action that connect to real servers."""

from collections.abc import Callable

import backoff

from docs_platform_action.api.admin_api import AdminApi
from docs_platform_action.api.client import ApiClient
from docs_platform_action.clock import Clock
from docs_platform_action.events import Events
from docs_platform_action.http.circuit_breaker import CircuitBreaker
from docs_platform_action.http.connection import AbortableAdapter, InFlight, create_ssl_context
from docs_platform_action.job import Job
from docs_platform_action.models import EXPORT
from tests.keys import ADMIN_KEY
from tests.unit.fakes import http_client


def api_client_to(base_url: str, *, adapter: AbortableAdapter | None = None, in_flight: InFlight | None = None) -> ApiClient:
    client = http_client(adapter or AbortableAdapter(create_ssl_context(None)), in_flight=in_flight)
    return ApiClient(client, base_url=base_url, key=ADMIN_KEY)


def at_once(_: float) -> float:
    return 0.0


def api_of(
    base_url: str, *, outage_tolerance_seconds: float = 0.4, jitter: Callable[[float], float] = backoff.full_jitter
) -> AdminApi:
    clock = Clock()
    return AdminApi(
        client=api_client_to(base_url),
        breaker=CircuitBreaker(clock),
        clock=clock,
        outage_tolerance_seconds=outage_tolerance_seconds,
        events=Events(),
        jobs=[],
        jitter=jitter,
    )


def finished_export() -> Job:
    """Return a job that the simulator reports as completed."""
    return Job(mode=EXPORT, job_id="export-finished")
