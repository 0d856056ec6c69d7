"""The log of an action's output."""

from admin_api_simulator.runner_log import RunnerLog


def shown(*lines: str) -> list[str]:
    log = RunnerLog()
    return [visible for line in lines for visible in log.show(line)]


def test_plain_lines_are_shown_as_they_are() -> None:
    assert shown("hello", "", "a::b::c", "::unknown-command::x") == ["hello", "", "a::b::c", "::unknown-command::x"]


def test_annotations_are_shown_with_their_kind_and_their_lines() -> None:
    assert shown("::error title=Export: failed,file=::It failed.%0A  100%25 of it.", "::warning::w", "::notice::n") == [
        "Error: It failed.",
        "  100% of it.",
        "Warning: w",
        "Notice: n",
    ]


def test_a_mask_holds_from_its_line_on_for_each_of_its_lines() -> None:
    assert shown("key", "::add-mask::key%0Akeyring%0A ", "the keyring and the key", "::error::key") == [
        "key",
        "the *** and the ***",
        "Error: ***",
    ]


def test_debug_lines_are_hidden() -> None:
    assert shown("::debug::d") == []


def test_groups_are_collapsed() -> None:
    log = ("::group::Details", "inside", "::warning::w", "::group::More", "inside", "::endgroup::", "after", "::endgroup::")

    assert shown(*log) == ["▶ Details", "▶ More", "after"]


def test_a_mask_in_a_group_holds_after_it() -> None:
    assert shown("::group::Details", "::add-mask::key", "::endgroup::", "the key") == ["▶ Details", "the ***"]


def test_stopped_commands_are_shown_until_they_go_on() -> None:
    assert shown("::stop-commands::abc", "::error::text", "::abc::", "::warning::w") == ["::error::text", "Warning: w"]
