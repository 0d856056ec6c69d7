"""What many domains cost the platform and the machine compared with one, counted for the whole action in virtual time."""

import functools
from dataclasses import dataclass

import pytest

from docs_platform_action.http.pacing import GAP_SECONDS
from tests.inside import unmeasured
from tests.many_exports import Cost, Export, carry_out, names_of

STEPS = [(1, 10), (10, 10), (100, 10), (100, 100)]
FLAT = 1.1
EXTRA_THREADS = 3
"""Threads besides `max-parallel`: the main thread and two of the clock."""

EXTRA_LINES = 5
"""Extra log lines of a domain among others: started, running, done, and the two commands that fold its log."""

MAX_LOG_CHARACTERS = 64 * 1024
"""Of a domain, however often its status changes."""


@dataclass(frozen=True, kw_only=True)
class Talkative(Export):
    """An export whose status is another long text in each reading."""

    def status_at(self, age: float) -> str:
        return self.end if age >= self.seconds else f"{age} {'x' * 1000}"


@functools.cache
def cost(domains: int, max_parallel: int) -> Cost:
    """Return the cost of a step whose exports all take half a minute, so that one domain is comparable with many."""
    export = Export(seconds=30.0, queue_seconds=2.0, exponent=1.0, pages=100, end="completed")
    with unmeasured():
        return carry_out(names_of(domains), max_parallel, draw_export=lambda _domain: export)


@pytest.mark.parametrize(("domains", "max_parallel"), STEPS)
class TestStep:
    def test_a_domain_costs_no_more_requests_than_one_alone(self, domains: int, max_parallel: int) -> None:
        assert cost(domains, max_parallel).requests / domains <= cost(1, 10).requests * FLAT

    def test_no_second_has_more_requests_than_promised(self, domains: int, max_parallel: int) -> None:
        assert cost(domains, max_parallel).most_in_a_second <= 1 / GAP_SECONDS

    def test_no_more_jobs_and_threads_than_asked_for(self, domains: int, max_parallel: int) -> None:
        assert cost(domains, max_parallel).max_jobs == min(domains, max_parallel)
        assert cost(domains, max_parallel).threads <= min(domains, max_parallel) + EXTRA_THREADS

    def test_the_log_of_a_domain_has_few_more_lines_than_that_of_one_alone(self, domains: int, max_parallel: int) -> None:
        assert cost(domains, max_parallel).log_lines / domains <= cost(1, 10).log_lines * FLAT + EXTRA_LINES


@pytest.mark.parametrize("domains", [1, 10, 100])
def test_jobs_follow_each_other_without_a_gap(domains: int) -> None:
    assert cost(domains, 10).seconds <= cost(domains, 10).ideal_seconds * FLAT


def test_new_statuses_for_hours_do_not_fill_the_log() -> None:
    domains = 4
    export = Talkative(seconds=6000.0, queue_seconds=2.0, exponent=1.0, pages=0, end="completed")

    with unmeasured():
        found = carry_out(names_of(domains), domains, draw_export=lambda _domain: export)

    assert found.requests > domains * 200
    assert found.log_characters < domains * MAX_LOG_CHARACTERS
