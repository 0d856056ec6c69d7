"""Hours of waiting in virtual time, with outages at random moments: a run ends as promised, soon after its job."""

import random
from dataclasses import dataclass
from typing import Final

import pytest

from admin_api_simulator import ExportPlan, Fault
from tests.action import run_virtually
from tests.virtual_platform import Sent, Trouble, VirtualPlatform
from tests.virtual_time import VirtualClock

TOLERANCE: Final = 300.0
MAX_PAUSE: Final = 30.0
ANSWERS: Final = (
    *(Fault(status=status) for status in (408, 425, 429, 500, 502, 503, 504)),
    *(Fault(status=503, headers={"Retry-After": "20"}), Fault(cut="before_response"), Fault(cut="in_body")),
    *(Fault(body="<html>Back soon</html>"), Fault(delay_seconds=3600.0), ConnectionRefusedError(), TimeoutError()),
)


@dataclass(frozen=True)
class Outage:
    """A time in which each response is one of some faults."""

    begins: float
    ends: float
    answers: tuple[Trouble, ...]


class World:
    """A platform whose export takes up to six hours, and is down now and then, each time shorter than the tolerance."""

    def __init__(self, seed: int, *, longest_outage: float = TOLERANCE * 0.7) -> None:
        self._chance = random.Random(seed)  # noqa: S311  # not for secrets
        self.clock = VirtualClock()
        self.seconds = self._chance.uniform(10, 6 * 3600)
        self.outages: list[Outage] = []
        at = self._chance.uniform(5, 600)
        while at < self.seconds + 60:
            length = self._chance.uniform(1, longest_outage)
            self.outages.append(Outage(at, at + length, tuple(self._chance.sample(ANSWERS, 3))))
            at += length + self._chance.uniform(200, 4000)
        self.platform = VirtualPlatform(self.clock, trouble=self._trouble)
        self.platform.simulator.plan_export("docs.example.com", ExportPlan(job_id="se_1", seconds=self.seconds))

    def _trouble(self, sent: Sent) -> Trouble:
        is_start = sent.method == "POST" and not sent.target.endswith("/bundle")
        now = [outage for outage in self.outages if outage.begins <= self.clock.elapsed < outage.ends]
        return self._chance.choice(now[0].answers) if now and not is_start else None


@pytest.mark.parametrize("seed", range(40))
def test_no_outage_that_is_shorter_than_the_tolerance_fails_a_run(seed: int) -> None:
    world = World(seed)

    ended = run_virtually(world.platform, {"domain": "docs.example.com", "timeout": "7h", "site-path": "site"}, seed=seed)

    assert ended.end == (0, None), ended.stdout
    after = [outage for outage in world.outages if outage.ends > world.seconds and outage.begins < world.clock.elapsed]
    late = max([world.seconds, *(outage.ends for outage in after)])
    assert world.clock.elapsed < late + 3 * MAX_PAUSE
    requests = world.platform.simulator.count("read_export")
    assert requests < world.seconds / MAX_PAUSE * 1.5 + 40 * (1 + len(world.outages))
    assert ended.log.count("Retrying") <= len(world.outages) * 2


@pytest.mark.parametrize("seed", range(20))
def test_an_outage_that_is_longer_ends_the_run_after_the_tolerance(seed: int) -> None:
    world = World(seed)
    world.outages = [Outage(7.0, 10**6, tuple(fault for fault in ANSWERS if isinstance(fault, Fault))[:9])]

    ended = run_virtually(world.platform, {"domain": "docs.example.com", "timeout": "7h"}, seed=seed)

    is_seen = world.seconds < 60  # before the outage, perhaps
    assert ended.end == (1, "unavailable") or is_seen, ended.stdout
    assert is_seen or TOLERANCE <= world.clock.elapsed < 7 + MAX_PAUSE + TOLERANCE + 60 + 15
