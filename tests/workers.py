"""Distributes the tests over several workers: which tests stay together, and which start first."""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final = {
    "tests/container/": "the image",
    "tests/workflow/": "act",
    # builds and removes images with the same layers; the engine fails a build if another process removes them meanwhile
    "tests/test_measurements.py": "the image",
}
"""Tests that share an object, which a process makes once. Tests elsewhere share objects within a file only."""

LONGEST: Final = (
    *(
        "tests/rehearsal/",
        "tests/workflow/",
        "tests/container/",
        "tests/reliability/",
        "tests/integration/test_many.py",
        "tests/integration/",
    ),
    *("tests/fuzz/", "tests/unit/report/", "tests/unit/test_redaction.py"),
)
"""The longest tests, which start first, so that no worker is still busy with them at the end."""


def unit_of(nodeid: str) -> str:
    """Return the name of the unit of tests that stays on one worker."""
    file = nodeid.partition("::")[0]
    return next((unit for path, unit in TOGETHER.items() if file.startswith(path)), file)


def priority_of(nodeid: str) -> int:
    """Return a test's priority; lower numbers start earlier."""
    return next((priority for priority, folder in enumerate(LONGEST) if nodeid.startswith(folder)), len(LONGEST))


class BySharing(LoadScopeScheduling):
    """Sends each worker one unit of tests after another, in collection order."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
