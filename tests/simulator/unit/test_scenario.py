"""Scenario files, valid and invalid."""

import json
from pathlib import Path

import pytest

from admin_api_simulator.faults import Fault, Operation
from admin_api_simulator.scenario import ScenarioError, parse_scenario, read_scenario


def test_a_scenario_is_a_list_of_turns_for_each_operation() -> None:
    scenario = parse_scenario(
        '{"read_export": [null, {"status": 503, "headers": {"Retry-After": "1"}}, {"cut": "in_body"}],'
        ' "download": [{"raw": "x", "drip_seconds": 0.5, "processed": true},'
        ' {"stall_after_bytes": 7, "framing": "chunked"}]}'
    )

    assert scenario.turns == {
        "read_export": (None, Fault(status=503, headers={"Retry-After": "1"}), Fault(cut="in_body")),
        "download": (Fault(raw=b"x", drip_seconds=0.5, processed=True), Fault(stall_after_bytes=7, framing="chunked")),
    }


def test_a_scenario_is_planned_in_a_simulator(tmp_path: Path) -> None:
    planned: dict[tuple[str, str | None], tuple[Fault | None, ...]] = {}

    class Platform:
        def script(self, operation: Operation, *turns: Fault | None, domain: str | None = None) -> None:
            planned[operation, domain] = turns

    path = tmp_path / "scenario.json"
    path.write_text(
        '{"start_export": [{"status": 429}], "domains": {"a.example.com": {"start_export": [null, {"status": 503}]}}}'
    )

    read_scenario(path).apply(Platform())

    assert planned == {
        ("start_export", None): (Fault(status=429),),
        ("start_export", "a.example.com"): (None, Fault(status=503)),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "an object of operations"),
        ('{"reed_export": []}', "unknown operation 'reed_export'; use one of start_export"),
        ('{"read_export": {}}', "read_export must be a list"),
        ('{"read_export": [null, 503]}', r"read_export\[1\] must be null"),
        ('{"domains": []}', "domains must be an object of domains"),
        ('{"domains": {"a.example": []}}', r"domains\.a\.example must be an object of operations"),
        ('{"domains": {"a.example": {"download": {}}}}', r"domains\.a\.example\.download must be a list"),
        ('{"domains": {"a.example": {"download": [{"cut": 1}]}}}', r"domains\.a\.example\.download\[0\]\.cut must be one of"),
        (
            '{"domains": {"a.example": {"read_agent_job": []}}}',
            r"unknown operation 'read_agent_job' in domains\.a\.example; use one of start_export, read_export",
        ),
        ('{"domains": {"a.example": {}, "A.example": {}}}', r"domains\.a\.example and domains\.A\.example are the same domain"),
        ('{"read_export": [{"stauts": 503}]}', r"read_export\[0\]\.stauts is unknown; use one of status"),
    ],
)
def test_an_invalid_scenario_is_reported_with_its_path(text: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        parse_scenario(text)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("status", 42, "a status from"),
        ("status", True, "a status from"),
        ("reason", "a\nb", "one line"),
        ("headers", {"A": 1}, "an object of headers"),
        ("headers", {"A": "x\r\nB: y"}, "an object of headers"),
        ("headers", {"A: b": "x"}, "an object of headers"),
        ("body", 1, "text"),
        ("delay_seconds", -1, "a number of seconds"),
        ("drip_seconds", "1", "a number of seconds"),
        ("cut", "somewhere", "one of before_response, in_headers, in_body"),
        ("cut_after_bytes", 1.5, "a number of bytes"),
        ("stall_after_bytes", -1, "a number of bytes"),
        ("framing", "guess", "one of length, chunked, close"),
        ("raw", [1], "text"),
        ("processed", "yes", "true or false"),
    ],
)
def test_an_invalid_value_is_reported_with_what_is_expected(name: str, value: object, expected: str) -> None:
    with pytest.raises(ScenarioError, match=rf"download\[0\]\.{name} must be {expected}"):
        parse_scenario(json.dumps({"download": [{name: value}]}))


def test_keys_that_exclude_each_other_are_reported_with_their_path() -> None:
    with pytest.raises(ScenarioError, match=r"download\[1\]: stall_after_bytes keeps the connection open, but cut closes it"):
        parse_scenario('{"download": [null, {"cut": "in_body", "stall_after_bytes": 3}]}')


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"gone\.json cannot be read"):
        read_scenario(tmp_path / "gone.json")
