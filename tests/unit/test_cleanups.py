"""Unfinished results are removed when a run is cut short."""

import errno

from docs_platform_action.cleanups import Cleanups
from tests.unit.test_ownership import refusing


class TestCleanups:
    def test_the_latest_is_removed_first(self) -> None:
        cleanups, removed = Cleanups(), list[str]()

        with cleanups.registered(lambda: removed.append("first")), cleanups.registered(lambda: removed.append("second")):
            cleanups.clear()

        assert removed == ["second", "first"]

    def test_a_failed_removal_does_not_stop_the_others(self) -> None:
        cleanups, removed = Cleanups(), list[str]()

        with cleanups.registered(lambda: removed.append("first")), cleanups.registered(refusing(errno.EIO)):
            cleanups.clear()

        assert removed == ["first"]
