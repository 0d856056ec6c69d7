"""Generated examples: quick everywhere, and the same ones in every CI run."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("unit", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("unit-ci", settings.get_profile("unit"), derandomize=True, database=None, print_blob=True)
settings.load_profile("unit-ci" if os.environ.get("CI") else "unit")
