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


@contextmanager
def program(*arguments: object) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run the simulator; yield it with what it prints once it serves."""
    command = [sys.executable, "-m", "admin_api_simulator"]
    command += ["--port", "0", "--storage-port", "0", "--github-port", "0"]
    command += [str(argument) for argument in arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
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


def status(
    banner: str,
    path: str = "/export-finished",
    *,
    domain: str = "",
    key: str = "simulated-admin-key",
) -> int:
    """Return the status of a read, or of a start with `domain`."""
    base_url = banner.split(maxsplit=6)[5]
    url = f"{base_url}/v1/static-export/jobs{path}"
    headers = {"Authorization": f"Bearer {key}"}
    if domain:
        response = requests.post(url, json={"domain": domain}, headers=headers, timeout=10)
    else:
        response = requests.get(url, headers=headers, timeout=10)
    return response.status_code


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_address_serves_and_ends_on_a_signal(ending: signal.Signals) -> None:
    with program("--key", "mine") as (process, banner):
        assert status(banner, key="mine") == 200
        process.send_signal(ending)
        _, errors = process.communicate(timeout=20)

    words = ("Storage:", "mine", "failing.", "no-plan.", "busy.", "agent-archived", "demo/replaced")
    assert all(word in banner for word in words)
    assert (process.returncode, errors) == (0, "")


def test_a_scenario_file_plants_faults_and_each_request_is_logged_in_a_line(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.json"
    one_domain = {
        "Bad.example.com": {"start_export": [{"status": 500}, {"cut": "before_response"}]}
    }
    scenario.write_text(json.dumps({"read_export": [{"status": 503}, None], "domains": one_domain}))

    with program("--scenario", scenario) as (process, banner):
        assert [status(banner), status(banner), status(banner, key="wrong")] == [503, 200, 401]
        assert status(banner, "", domain="good.example.com") == 202
        assert status(banner, "", domain="bad.example.com") == 500
        with pytest.raises(requests.ConnectionError):
            status(banner, "", domain="bad.example.com")
        process.terminate()
        log, _ = process.communicate(timeout=20)

    lines = [
        "GET   /v1/static-export/jobs/export-finished  503",
        "GET   /v1/static-export/jobs/export-finished  200",
        "GET   /v1/static-export/jobs/export-finished  401",
        "POST  /v1/static-export/jobs  202",
        "POST  /v1/static-export/jobs  500",
        "POST  /v1/static-export/jobs  -",
    ]
    expected = "".join(rf"\d\d:\d\d:\d\d UTC  {line}  \d+ ms\n" for line in lines)
    assert re.fullmatch(expected, log)


def test_its_options_limit_the_starts() -> None:
    arguments = ("--starts-per-hour", 2, "--one-active-export", "--export-seconds", 3600)
    names = ("docs", "docs", "busy", "api", "other")

    with program(*arguments) as (_, banner):
        statuses = [status(banner, "", domain=f"{name}.example.com") for name in names]

    assert statuses == [202, 409, 409, 202, 429]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--port", "70000"), "--port"),
        (("--pages", "0"), "--pages"),
        (("--export-seconds", "-1"), "--export-seconds"),
        (("--starts-per-hour", "0"), "--starts-per-hour"),
        (("--hour-seconds", "0"), "--hour-seconds"),
        (("--scenario", "{folder}/bad.json"), "read_export[0].stauts is unknown"),
        (("--tls", "--ca-file", "{folder}/missing/ca.pem"), "missing/ca.pem"),
    ],
)
def test_what_it_cannot_start_with_is_reported(
    tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    (tmp_path / "bad.json").write_text('{"read_export": [{"stauts": 503}]}')

    formatted = [argument.format(folder=tmp_path) for argument in arguments]
    with program(*formatted) as (process, _):
        _, errors = process.communicate(timeout=20)

    assert (process.returncode, error in errors, "Traceback" in errors) == (2, True, False)


def test_a_port_that_is_taken_is_reported() -> None:
    with program() as (_, banner):
        taken = re.findall(r"http://127.0.0.1:(\d+)", banner)[0]
        with program("--port", taken) as (second, _):
            _, errors = second.communicate(timeout=20)

    assert (second.returncode, f"port {taken}: " in errors, "--port 0" in errors) == (2, True, True)


@pytest.mark.parametrize("arguments", [("--key", "it's-a-key"), ("--tls", "--ca-file", "ca.pem")])
def test_the_command_that_it_prints_runs_the_action(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    with program("--export-seconds", "0", *arguments) as (_, banner):
        command = banner[banner.index("\nINPUT_") : banner.index("\n\nMode export")]
        ended = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False
        )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "status=completed\n" in ended.stdout
