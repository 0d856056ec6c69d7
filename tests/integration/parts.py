"""The action's own parts on real sockets, with bounds that a test can wait for."""

from collections.abc import Callable

import backoff

from docs_platform_action.api.admin_api import AdminApi
from docs_platform_action.api.calls import Caller
from docs_platform_action.clock import SystemClock
from docs_platform_action.http.circuit_breaker import CircuitBreaker
from docs_platform_action.http.client import Exchanger
from docs_platform_action.http.connection import Exchanges, GuardedAdapter, trusting
from docs_platform_action.http.rate_limit import RateLimiter
from tests.keys import ADMIN_KEY


class NoListener:
    """Hears everything, tells nothing."""

    def trouble(self, what: str, *, budget_seconds: float, pause_seconds: float) -> None:
        pass

    def recovered(self, after_seconds: float) -> None:
        pass

    def exchanged(self, method: str, path: str, *, outcome: str, milliseconds: float, request_id: str | None) -> None:
        pass


def exchanger_to(base_url: str, *, adapter: GuardedAdapter | None = None, exchanges: Exchanges | None = None) -> Exchanger:
    """Make the exchanger of a run against a base URL."""
    return Exchanger(
        adapter=adapter or GuardedAdapter(trusting(None)),
        base_url=base_url,
        key=ADMIN_KEY,
        proxies={},
        exchanges=exchanges or Exchanges(),
    )


def at_once(_: float) -> float:
    """Make no pause."""
    return 0.0


def caller_to(
    base_url: str, *, outage_tolerance_seconds: float = 0.4, jitter: Callable[[float], float] = backoff.full_jitter
) -> Caller:
    """Make the caller of a run against a base URL."""
    return Caller(
        exchanger=exchanger_to(base_url),
        breaker=CircuitBreaker(SystemClock(), RateLimiter()),
        clock=SystemClock(),
        outage_tolerance_seconds=outage_tolerance_seconds,
        listener=NoListener(),
        jitter=jitter,
    )


def api_of(base_url: str, *, outage_tolerance_seconds: float, jitter: Callable[[float], float] = backoff.full_jitter) -> AdminApi:
    """Make the API as a run sees it."""
    return AdminApi(caller_to(base_url, outage_tolerance_seconds=outage_tolerance_seconds, jitter=jitter))
