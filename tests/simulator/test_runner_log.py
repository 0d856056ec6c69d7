"""The log as GitHub shows it."""

import pytest

from admin_api_simulator.runner_log import RunnerLog


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["text", "::not a command"], ["text", "::not a command"]),
        (["::error title=Export::it failed%0Atwice"], ["Error: it failed", "twice"]),
        (["::warning::slow", "::notice::note"], ["Warning: slow", "Notice: note"]),
        (["::debug::hidden"], []),
        (
            ["::group::Details", "hidden", "::warning::hidden", "::endgroup::", "shown"],
            ["▶ Details", "shown"],
        ),
        (["secret", "::add-mask::secret", "a secret"], ["secret", "a ***"]),
        (["::add-mask::a%0A%0Aab", "x ab a"], ["x *** ***"]),
    ],
)
def test_commands_are_executed_and_not_shown(lines: list[str], shown: list[str]) -> None:
    written: list[str] = []
    log = RunnerLog(written.append)

    for line in lines:
        log.show(line)

    assert written == shown


def test_lines_that_are_cut_are_counted() -> None:
    written: list[str] = []
    log = RunnerLog(written.append, cut="^cut")

    for line in ("cut 1", "cut 2", "kept", "cut 3"):
        log.show(line)
    log.end()

    assert written == ["… 2 more lines …", "kept", "… 1 more lines …"]
