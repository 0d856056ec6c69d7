"""Which tests one worker runs one after the other, where several workers share a run of the tests, and which are begun first."""

from typing import Final

from xdist.scheduler import LoadScopeScheduling

TOGETHER: Final = {
    "tests/container/": "the image",
    "tests/workflow/": "act",
}
"""Folders whose tests look at what is made once in a process; what the tests of any other file share is for that file."""

LONGEST: Final = (
    *("tests/workflow/", "tests/container/", "tests/reliability/", "tests/integration/test_many.py", "tests/integration/"),
    *("tests/fuzz/", "tests/unit/archive/", "tests/unit/report/", "tests/unit/test_redaction.py"),
)
"""What takes longest is begun first, so that in the end no worker is left alone with it."""


def unit_of(nodeid: str) -> str:
    """Name what a test belongs to that one worker runs whole."""
    file = nodeid.partition("::")[0]
    return next((unit for path, unit in TOGETHER.items() if file.startswith(path)), file)


def turn_of(nodeid: str) -> int:
    """Tell when a test's turn comes: the lower, the earlier."""
    return next((turn for turn, folder in enumerate(LONGEST) if nodeid.startswith(folder)), len(LONGEST))


class BySharing(LoadScopeScheduling):
    """Hands each worker whole units, in the order in which the tests were collected, as it gets through with those before."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)
