"""Inputs as variables, and the output file."""

from pathlib import Path

import pytest

from admin_api_simulator.runner import OutputFileError, parse_outputs, variable_of, with_defaults


@pytest.mark.parametrize(
    ("text", "outputs"),
    [
        ("", {}),
        ("a=1\n", {"a": "1"}),
        ("a=1=2<<3\nb=\n", {"a": "1=2<<3", "b": ""}),
        ("a<<X\none\n\ntwo=2\nX\nb=3", {"a": "one\n\ntwo=2", "b": "3"}),
        ("a<<X\nX\n", {"a": ""}),
        ("a<<X=Y\n1\nX=Y\n", {"a": "1"}),
        ("a=1\na=2\n", {"a": "2"}),
    ],
)
def test_outputs_are_read_as_the_runner_reads_them(text: str, outputs: dict[str, str]) -> None:
    assert parse_outputs(text) == outputs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=1\n\nb=2\n", "line 2 .* neither"),
        ("hello\n", "line 1 .* neither"),
        ("a<<X\none\n", "line 1 .* has no closing delimiter 'X'"),
        ("a<<\none\n", "has no delimiter"),
        ("=1\n", "has no key"),
    ],
)
def test_an_output_file_that_breaks_the_rules_is_refused(text: str, message: str) -> None:
    with pytest.raises(OutputFileError, match=message):
        parse_outputs(text)


@pytest.mark.parametrize(("name", "variable"), [("admin-key", "INPUT_ADMIN-KEY"), ("a b", "INPUT_A_B")])
def test_an_inputs_variable_keeps_hyphens(name: str, variable: str) -> None:
    assert variable_of(name) == variable


def test_inputs_not_given_get_their_default_or_an_empty_string(tmp_path: Path) -> None:
    action = tmp_path / "action.yml"
    action.write_text("inputs: {a: {default: x}, b: {required: true}, c: {default: true}, d: {default: 10}, e: }\n")

    assert with_defaults({"a": "mine", "z": "1"}, action) == {"a": "mine", "b": "", "c": "true", "d": "10", "e": "", "z": "1"}


def test_without_an_action_file_there_are_no_defaults(tmp_path: Path) -> None:
    assert with_defaults({"a": "1"}, tmp_path / "action.yml") == {"a": "1"}
