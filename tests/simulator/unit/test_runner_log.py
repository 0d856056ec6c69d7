"""The log of an action's output."""

import pytest

from admin_api_simulator.runner_log import RunnerLog


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (["hello", "", "a::b::c", "::unknown-command::x"], ["hello", "", "a::b::c", "::unknown-command::x"]),
        (
            ["::error title=Export: failed,file=::It failed.%0A  100%25 of it.", "::warning::w", "::notice::n"],
            ["Error: It failed.", "  100% of it.", "Warning: w", "Notice: n"],
        ),
        (
            ["key", "::add-mask::key%0Akeyring%0A ", "the keyring and the key", "::error::key"],
            ["key", "the *** and the ***", "Error: ***"],
        ),
        (["::debug::d"], []),
        (
            ["::group::A", "inside", "::warning::w", "::group::B", "inside", "::endgroup::", "after", "::endgroup::"],
            ["▶ A", "▶ B", "after"],
        ),
        (["::group::A", "::add-mask::key", "::endgroup::", "the key"], ["▶ A", "the ***"]),
        (["::stop-commands::abc", "::error::text", "::abc::", "::warning::w"], ["::error::text", "Warning: w"]),
    ],
    ids=["plain", "annotations", "masks", "debug", "groups", "a mask in a group", "stopped commands"],
)
def test_lines_are_shown_as_the_runner_shows_them(written: list[str], shown: list[str]) -> None:
    log = RunnerLog()

    assert [visible for line in written for visible in log.show(line)] == shown
