"""Measures a step with more sites than a platform lets start in an hour: `python -m bench.quota`.

In virtual time, the whole action runs with the simulated platform, which accepts ten starts an
hour, as platforms document for exports by project. The duration of an export is drawn from the
site's name, as in `scale.py`. GitHub's limit is from docs.github.com/en/actions/reference/limits.
"""

import math
import sys
from dataclasses import dataclass
from typing import Final

from bench.common import options_of, table, write_section
from bench.scale import MAX_JOB_SECONDS, NoLog, export_seconds, names_of

from admin_api_simulator import ExportPlan, StartQuota
from tests.action import run_virtually
from tests.virtual_platform import VirtualPlatform
from tests.virtual_time import VirtualClock

SITES: Final = (12, 25, 50, 60, 300)
QUOTAS: Final = {
    "no": StartQuota(starts=10),
    "yes": StartQuota(starts=10, sends_retry_after=True),
}

MAX_REFUSED_AN_HOUR: Final = 18
"""Goal: about fifteen, and those of sites whose first starts are refused together."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a step under a quota."""

    seconds: float
    refused: int
    requests: int

    @property
    def refused_an_hour(self) -> float:
        """The refused starts, in each hour that the step takes."""
        return self.refused / max(self.seconds / 3600, 1.0)


def main() -> int:
    """Measure every number of sites with every quota, and write the section."""
    options = options_of(__doc__).parse_args()
    numbers = SITES[:1] if options.smallest else SITES
    rows = []
    missed = []
    most = 0
    for quota in QUOTAS:
        for sites in numbers:
            cost = cost_of(sites, quota)
            rows.append(
                f"{sites} | {quota} | {cost.seconds / 3600:.2f} | {cost.refused} | "
                f"{cost.requests / sites:.0f} | {math.ceil(cost.seconds / 60)}"
            )
            per_hour = cost.refused_an_hour
            if per_hour > MAX_REFUSED_AN_HOUR:
                missed.append(f"{sites} sites, {quota}: {per_hour:.1f} refused starts an hour")
            if cost.seconds < MAX_JOB_SECONDS:
                most = max(most, sites)
    return write_section(
        "## More sites than starts an hour",
        """
        The whole action runs in virtual time with the default inputs and `timeout: 2h`. The
        platform accepts ten starts in a sliding hour. Exports take 240 s in the median, and from
        8 s to an hour.
        """,
        f"Goal: at most {MAX_REFUSED_AN_HOUR} refused starts an hour.",
        table(
            "sites | `Retry-After` | hours | refused starts | requests per site | billed minutes",
            rows,
        ),
        f"The 6 hours of a job on GitHub's runners are enough for {most} sites of these.",
        missed=missed,
    )


def cost_of(sites: int, quota: str) -> Cost:
    """Export sites in one step in virtual time."""
    names = names_of(sites)
    platform = VirtualPlatform(VirtualClock(), queue_share=0.05, start_quota=QUOTAS[quota])
    for name in names:
        platform.simulator.plan_export(name, ExportPlan(seconds=export_seconds(name)))
    inputs = {"domain": "\n".join(names), "timeout": "2h"}
    ended = run_virtually(platform, inputs, idle_seconds=1.0, stream=NoLog())
    if ended.exit_code != 0:
        raise SystemExit(f"the run failed: {ended.outputs}")
    return Cost(
        seconds=platform.clock.elapsed,
        refused=platform.simulator.count("start_export", status=429),
        requests=len(platform.simulator.requests),
    )


if __name__ == "__main__":
    sys.exit(main())
