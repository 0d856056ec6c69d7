"""Hypothesis profiles: the same examples in every run, or random ones with `HYPOTHESIS_PROFILE=explore`."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same-every-time",
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same-every-time"))
