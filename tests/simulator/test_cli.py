"""The simulator as a program."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

ENDINGS = [signal.SIGTERM, signal.SIGINT]


@contextmanager
def program(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    command = [sys.executable, "-m", "admin_api_simulator", "--port", "0", "--storage-port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            banner = ""
            for line in process.stdout:
                banner += line
                if line.startswith("Ctrl-C"):
                    break
            yield process, banner
        finally:
            process.kill()


def address_in(banner: str) -> str:
    return banner.splitlines()[0].split()[-1]


def job(address: str, key: str = "simulated-admin-key") -> requests.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return requests.get(f"{address}/v1/static-export/jobs/export-finished", headers=headers, timeout=10)


def start(address: str, domain: str = "docs.example.com") -> requests.Response:
    headers = {"Authorization": "Bearer simulated-admin-key"}
    return requests.post(f"{address}/v1/static-export/jobs", json={"domain": domain}, headers=headers, timeout=10)


@pytest.mark.parametrize("ending", ENDINGS)
def test_it_prints_its_address_serves_and_ends_on_a_signal(ending: signal.Signals) -> None:
    with program("--key", "mine") as (process, banner):
        address = address_in(banner)
        response = job(address, "mine")
        process.send_signal(ending)
        _, errors = process.communicate(timeout=20)

    assert banner.startswith("The simulated platform serves at http://127.0.0.1:")
    assert response.status_code == 200
    for word in ("Storage:", "mine", "failing.", "no-plan.", "unknown.", "export-finished", "agent-archived"):
        assert word in banner
    assert (process.returncode, errors) == (0, "")


def test_a_scenario_file_plants_faults(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    one_domain = {"Bad.example.com": {"start_export": [{"status": 500}]}}
    scenario.write_text(json.dumps({"read_export": [{"status": 503}, None], "domains": one_domain}))

    with program("--scenario", str(scenario)) as (_, banner):
        address = address_in(banner)

        assert [job(address).status_code for _ in range(3)] == [503, 200, 200]
        assert [start(address, f"{name}.example.com").status_code for name in ("good", "bad", "bad")] == [202, 500, 202]


def test_a_scenario_that_is_not_right_is_reported(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text('{"read_export": [{"stauts": 503}]}')

    with program("--scenario", str(scenario)) as (process, _):
        _, errors = process.communicate(timeout=20)

    assert process.returncode == 2
    assert "read_export[0].stauts is unknown" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("option", ["--port", "--storage-port"])
def test_a_port_that_is_taken_is_reported_with_its_option(option: str) -> None:
    with program() as (_, banner):
        taken = address_in(banner).rpartition(":")[2]
        with program(option, taken) as (second, _):
            _, errors = second.communicate(timeout=20)

    assert second.returncode == 2
    assert f"port {taken} is in use. Use {option} for another port" in errors
    assert "Traceback" not in errors


def test_the_command_that_it_prints_runs_the_action() -> None:
    with program("--export-seconds", "0", "--key", "it's-a-key") as (_, banner):
        command = banner[banner.index("\nINPUT_") : banner.index("\n\nMode export")]
        ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "status=completed\n" in ended.stdout


def test_each_request_is_logged_in_a_line(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    scenario.write_text('{"start_export": [null, {"cut": "before_response"}]}')

    with program("--scenario", str(scenario)) as (process, banner):
        start(address_in(banner))
        with pytest.raises(requests.ConnectionError):
            start(address_in(banner))
        job(address_in(banner), "wrong")
        process.terminate()
        log, _ = process.communicate(timeout=20)

    time = r"\d\d:\d\d:\d\d UTC"
    lines = (
        "POST  /v1/static-export/jobs  202",
        "POST  /v1/static-export/jobs  -",
        "GET   /v1/static-export/jobs/export-finished  401",
    )
    assert re.fullmatch("".join(rf"{time}  {line}  \d+ ms\n" for line in lines), log)


def test_the_command_with_tls_runs_the_action_with_the_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with program("--export-seconds", "0", "--tls", "--ca-file", "ca.pem") as (_, banner):
        command = banner[banner.index("\nINPUT_") : banner.index("\n\nMode export")]
        ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)

    assert "INPUT_CA_BUNDLE=ca.pem" in command
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--port", "70000"),
        ("--port", "x"),
        ("--queue-share", "2"),
        ("--pages", "0"),
        ("--export-seconds", "-1"),
        ("--max-jobs", "x"),
    ],
)
def test_options_out_of_range_are_refused(arguments: tuple[str, str]) -> None:
    with program(*arguments) as (process, _):
        _, errors = process.communicate(timeout=20)

    assert process.returncode == 2
    assert arguments[0] in errors
