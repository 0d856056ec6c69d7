"""The key and a link's signature are shown nowhere, whichever server echoes them.

`tests/ended.py` searches everything that a run leaves for the key; each run here could leave it.
"""

import itertools
import urllib.parse
from typing import Final, NoReturn

import pytest

from admin_api_simulator import Fault
from admin_api_simulator.faults import Operation
from docs_platform_action.redaction import HIDDEN
from tests.action import Action
from tests.archives import entry, tar_of
from tests.forms import BY_DOMAIN, BY_PROJECT
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import ENCODERS, leaked
from tests.virtual_platform import STORAGE_URL, VirtualPlatform
from tests.virtual_time import VirtualClock

# the escape of a final backslash may be left
KEYS: Final = [key for key in (ADMIN_KEY, *AWKWARD_KEYS) if not key.endswith("\\")]
ENCODINGS_AND_KEYS: Final = [*zip(ENCODERS, itertools.cycle(KEYS), strict=False)]
INPUTS: Final = {
    "domain": "docs.example.com",
    "timeout": "1m",
    "outage_tolerance": "5s",
    "site_path": "site",
}
AGENT: Final = {"mode": "agent", "project_id": "p", "job_id": "aj_1"}


def platform_with(operation: Operation, fault: Fault, **options: object) -> VirtualPlatform:
    platform = VirtualPlatform(VirtualClock(), **options)
    platform.simulator.script_forever(operation, fault)
    return platform


@pytest.fixture
def action(action: Action) -> Action:
    action.debug = True
    return action


@pytest.mark.parametrize(("encoding", "key"), ENCODINGS_AND_KEYS)
def test_the_whole_key_is_hidden_in_every_encoding(action: Action, encoding: str, key: str) -> None:
    encoded = ENCODERS[encoding](key)
    fault = Fault(json={"status": f"is {encoded} now"})
    platform = platform_with("read_export", fault, key=key)

    ended = action.run(platform, **INPUTS, admin_key=key)

    assert ended.reason == "timeout"
    assert ended.outputs["status"] == f"is {HIDDEN} now"
    for text in (ended.log, ended.error, ended.result["message"], ended.summary.replace("\\", "")):
        assert f"is {HIDDEN} now" in text


ECHOES: Final[dict[str, tuple[Operation, Fault]]] = {
    "error of a start": (
        "start_export",
        Fault(status=403, json={"error": {"detail": f"bad token {ADMIN_KEY}."}}),
    ),
    "request ID": ("read_export", Fault(status=401, json={}, headers={"X-Request-Id": ADMIN_KEY})),
    "redirect": (
        "read_export",
        Fault(status=302, headers={"Location": f"https://{ADMIN_KEY}.example.com/?k={ADMIN_KEY}"}),
    ),
    "error of a failed job": (
        "read_export",
        Fault(json={"status": "failed", "error": f"{ADMIN_KEY} is wrong"}),
    ),
    "path of a link": (
        "make_bundle",
        Fault(json={"bundleUrl": f"https://storage.example.com/{ADMIN_KEY}?sig=x"}),
    ),
    "expiry": (
        "make_bundle",
        Fault(json={"bundleUrl": "https://storage.example.com/b", "expiresAt": ADMIN_KEY}),
    ),
    "error of the storage": (
        "download",
        Fault(status=451, body=f"<Code>Denied</Code><Message>{ADMIN_KEY}</Message>"),
    ),
    "name of a file": ("download", Fault(body=tar_of(entry(f"../{ADMIN_KEY}".encode())))),
}


COMPLETED: Final = {"status": "completed", "bundleUrl": "https://storage.example.com/b"}
ECHOES_BY_PROJECT: Final[dict[str, tuple[Operation, Fault]]] = {
    "error of a start": ECHOES["error of a start"],
    "error of a failed job": ECHOES["error of a failed job"],
    "path of a link": (
        "read_export",
        Fault(json={**COMPLETED, "bundleUrl": f"https://storage.example.com/{ADMIN_KEY}?sig=x"}),
    ),
    "expiry": ("read_export", Fault(json={**COMPLETED, "expiresAt": ADMIN_KEY})),
}


CASES_BY_DOMAIN: Final = [(BY_DOMAIN, echo) for echo in ECHOES]
CASES_BY_PROJECT: Final = [(BY_PROJECT, echo) for echo in ECHOES_BY_PROJECT]


@pytest.mark.parametrize(("form", "echo"), [*CASES_BY_DOMAIN, *CASES_BY_PROJECT])
def test_a_key_that_a_server_echoes_does_not_leak(action: Action, form: str, echo: str) -> None:
    echoes = ECHOES if form == BY_DOMAIN else ECHOES_BY_PROJECT
    operation, fault = echoes[echo]
    platform = platform_with(operation, fault)

    ended = action.run(platform, **INPUTS)

    assert ended.exit_code == 1
    assert platform.simulator.count(operation) > 0
    assert HIDDEN in ended.error or "expir" in echo or "path" in echo


AS_GIVEN: Final[dict[str, tuple[Operation, dict[str, object], dict[str, str]]]] = {
    "jobId": ("start_export", {"jobId": f"se_{ADMIN_KEY}"}, INPUTS),
    "bundleUrl": (
        "make_bundle",
        {"bundleUrl": f"https://storage.example.com/b?sig={ADMIN_KEY}"},
        INPUTS,
    ),
    "prLink": (
        "read_agent_job",
        {"status": "active", "prLink": f"https://git.example.com/{ADMIN_KEY}"},
        AGENT,
    ),
}


@pytest.mark.parametrize("field", AS_GIVEN)
def test_the_whole_key_in_a_field_that_is_used_as_given_fails_the_run_at_once(
    action: Action, field: str
) -> None:
    operation, body, inputs = AS_GIVEN[field]
    platform = platform_with(operation, Fault(json=body))

    ended = action.run(platform, **inputs)

    assert ended.end == (1, "bad-response")
    assert platform.simulator.count(operation) == 1
    assert field not in ended.outputs


def test_a_job_and_a_link_that_share_characters_with_the_key_are_used_unchanged(
    action: Action,
) -> None:
    # an organization's ID, which a platform may put into its keys, job IDs and links
    shared = "5f9d88b1c2e4a7003f6b2d1e"
    job_id = f"{shared}/export 1"
    link = f"{STORAGE_URL}/{shared}/b.tar?X-Part={shared}.eyJz"
    platform = VirtualPlatform(VirtualClock(), key=f"adm_{shared}_k3y-9f27c1d4", job_ids=[job_id])
    platform.simulator.override("make_bundle", {"bundleUrl": link})
    platform.simulator.script_forever("download", Fault(body=tar_of(entry(b"index.html"))))

    inputs = {**INPUTS, "admin_key": platform.simulator.key, "values_file": "values.yaml"}

    ended = action.run(platform, **inputs)

    assert ended.end == (0, None), ended.stdout
    assert ended.outputs["jobId"] == job_id
    assert ended.outputs["bundleUrl"] == link
    paths = {request.path for request in platform.simulator.requests_of("read_export")}
    assert paths == {f"/v1/static-export/jobs/{urllib.parse.quote(job_id, safe='')}"}
    assert link in (action.workspace / "values.yaml").read_text()


PARAMETERS: Final = {
    "X-Amz-Signature": "vjbyPxy/bdZNm+Ga=",
    "X-Amz-Security-Token": "session-token/1cmwQ5x",
    "X-Goog-Credential": "robot@example/20240601/auto",
    "sig": "kX9vT2bQ7m==",
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_secrets_of_a_link_that_the_storage_echoes_are_hidden(
    action: Action, name: str
) -> None:
    value = PARAMETERS[name]
    quoted = urllib.parse.quote(PARAMETERS[name], safe="")
    link = f"{STORAGE_URL}/b?part=shown&{name}={quoted}"
    fault = Fault(status=451, body=f"<Message>{value} or sig:{quoted}_ in {link}</Message>")
    platform = platform_with("download", fault)
    platform.simulator.override("make_bundle", {"bundleUrl": link})

    ended = action.run(platform, **INPUTS)

    assert ended.reason == "download-failed"
    assert f"… or sig:…_ in {STORAGE_URL}/b?…" in ended.error
    for text in (ended.stdout, ended.summary, *ended.outputs.values()):
        assert leaked(value, text) == []


PLACES: Final = {
    "log": "docs_platform_action.report.log.Log.status_read",
    "download": "docs_platform_action.bundle.deliver.BundleStream",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_traceback_does_not_show_the_key(
    action: Action, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_given: object, **_named: object) -> NoReturn:
        cause = KeyError({"Authorization": f"Bearer {ADMIN_KEY}"})
        raise RuntimeError(f"cannot take {ADMIN_KEY}") from cause

    monkeypatch.setattr(PLACES[place], fail)

    ended = action.run(VirtualPlatform(VirtualClock()), **INPUTS)

    assert ended.reason == (None if place == "log" else "internal-error")
    lines = [command.value for command in ended.commands if command.name == "debug"]
    assert len([line for line in lines if HIDDEN in line]) == 2  # the error and its cause


def test_debug_lines_have_no_header_and_no_body(action: Action) -> None:
    platform = VirtualPlatform(VirtualClock())
    body = {"status": "running", "note": "body-word"}
    platform.simulator.script("read_export", Fault(json=body, headers={"X-Note": "header-word"}))

    ended = action.run(platform, **INPUTS, start_options='{"note": "sent-word"}')

    shown = "\n".join(command.value for command in ended.commands if command.name == "debug")
    assert ended.end == (0, None)
    assert "GET /v1/" in shown
    assert "POST /v1/" in shown
    for word in ("Bearer", "body-word", "header-word", "sent-word", "X-Amz-Signature"):
        assert word not in shown
