"""A process that is killed at any moment leaves each result unchanged or complete, and nothing that stops the next run."""

import pytest

from tests.reliability.killing import MOMENTS, USUAL_MOMENTS, Killed, killed_runs
from tests.reliability.page import NOT_COUNTED, killed_part

pytestmark = pytest.mark.timeout(max(600, 6 * MOMENTS))


@pytest.fixture(scope="module")
def killed() -> tuple[Killed, ...]:
    return killed_runs()


def test_the_requested_number_of_runs_was_killed(killed: tuple[Killed, ...]) -> None:
    assert sum(run.was_killed for run in killed) == MOMENTS


def test_no_result_is_incomplete_under_its_final_name(killed: tuple[Killed, ...]) -> None:
    assert [(run.moment, run.wrong) for run in killed if run.wrong] == []


def test_a_later_run_in_the_same_workspace_succeeds(killed: tuple[Killed, ...]) -> None:
    followed = [run for run in killed if run.next_run is not None]

    assert len(followed) > MOMENTS / 4
    assert [(run.moment, run.next_run) for run in followed if run.next_run != "whole"] == []


@pytest.mark.skipif(MOMENTS != USUAL_MOMENTS, reason="the page has the results of the usual number")
def test_the_page_has_these_results(killed: tuple[Killed, ...]) -> None:
    assert killed_part(killed).is_on_the_page(), NOT_COUNTED


@pytest.mark.skipif(MOMENTS < USUAL_MOMENTS, reason="few moments do not cover every case")
class TestMoments:
    def test_some_are_before_the_first_result_and_some_after_each(self, killed: tuple[Killed, ...]) -> None:
        states = {run.whole for run in killed if run.was_killed}

        assert states == {frozenset(names) for names in ((), ("bundle",), ("bundle", "site"), ("bundle", "site", "values"))}

    def test_some_are_right_before_and_right_after_a_result_gets_its_name(self, killed: tuple[Killed, ...]) -> None:
        keys = {run.moment.key for run in killed if run.was_killed and run.moment.after_seconds is None}
        naming = {"replace _publish_archive", "replace _deliver_site", "replace _write_values"}

        assert {f"{event} {call}" for event in ("c_call", "c_return") for call in naming} <= keys

    def test_some_leave_a_partial_bundle_or_site_under_a_hidden_name(self, killed: tuple[Killed, ...]) -> None:
        parts = {part.split(".")[1] for run in killed for part in run.leftovers}

        assert {"bundle", "site"} <= parts

    def test_some_are_before_the_job_is_known_and_some_after(self, killed: tuple[Killed, ...]) -> None:
        assert {run.knows_job for run in killed if run.was_killed} == {True, False}
