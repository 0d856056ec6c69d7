"""The key and a link's signature are shown nowhere, whichever server echoes them, and in whatever field.

A fixture of all tests searches everything that a run leaves for the key; each run here could leave it.
"""

import itertools
import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from admin_api_simulator import Fault, Simulator
from admin_api_simulator.faults import Operation
from docs_platform_action.redaction import HIDDEN
from tests.archives import entry, tar_of
from tests.ended import Ended
from tests.inside import run_inside
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import ENCODERS, leaked

KEYS = [key for key in (ADMIN_KEY, *AWKWARD_KEYS) if not key.endswith("\\")]  # the escape of a final backslash may be left
COLLECT = {"mode": "collect", "job-id": "export-finished", "domain": ""}
AGENT = {"mode": "agent", "project-id": "p", "job-id": "aj_1", "domain": ""}


def export(platform: Simulator, workspace: Path, **inputs: str) -> Ended:
    given = {"base-url": platform.base_url, "admin-key": platform.key, "domain": "docs.example.com", "outage-tolerance": "2s"}
    return run_inside({**given, "timeout": "5s", **inputs}, workspace=workspace, debug=True)


@pytest.fixture
def platform(make_platform: Callable[..., Simulator]) -> Simulator:
    return make_platform(export_seconds=0)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def shown_places(ended: Ended) -> dict[str, str]:
    """Return what people read of a run with one failed job: the log, the annotation, the summary and the message."""
    summary = re.sub(r"\\(?=[^A-Za-z0-9 ])", "", ended.summary)  # without the escapes of Markdown
    return {"log": ended.log, "annotation": ended.error, "summary": summary, "message": ended.result["message"]}


@pytest.mark.parametrize(("form", "key"), [*zip(ENCODERS, itertools.cycle(KEYS), strict=False)])
def test_the_whole_key_is_hidden_in_every_form_wherever_it_would_be_shown(
    make_platform: Callable[..., Simulator], workspace: Path, form: str, key: str
) -> None:
    platform = make_platform(key=key)
    platform.script_forever("read_export", Fault(json={"status": f"is {ENCODERS[form](key)} now"}))

    ended = export(platform, workspace)

    assert ended.reason == "timeout"
    assert ended.outputs["status"] == f"is {HIDDEN} now"
    for place, text in shown_places(ended).items():
        assert f"is {HIDDEN} now" in text, place


API_ECHOES: dict[str, tuple[Operation, Callable[[str], Fault]]] = {
    "error of a start": ("start_export", lambda key: Fault(status=422, json={"error": f"bad token {key}."})),
    "nested error": ("start_export", lambda key: Fault(status=403, json={"error": {"detail": key}})),
    "content type": ("start_export", lambda key: Fault(body="no JSON", headers={"Content-Type": f"text/x-{key}"})),
    "request id": ("read_export", lambda key: Fault(status=401, json={}, headers={"X-Request-Id": key})),
    "redirect": ("read_export", lambda key: Fault(status=302, headers={"Location": f"https://{key}.example.com/?k={key}"})),
    "error of an outage": ("read_export", lambda key: Fault(status=503, json={"error": key})),
    "error of a failed job": ("read_export", lambda key: Fault(json={"status": "failed", "error": f"{key} is wrong"})),
    "path of a link": ("make_bundle", lambda key: Fault(json={"bundleUrl": f"https://127.0.0.1:9/{key}?sig=x"})),
    "expiry": ("make_bundle", lambda key: Fault(json={"bundleUrl": "https://127.0.0.1:9/b", "expiresAt": key})),
}


@pytest.mark.parametrize("echo", API_ECHOES)
def test_a_key_that_the_api_echoes_does_not_leak(platform: Simulator, workspace: Path, echo: str) -> None:
    operation, fault = API_ECHOES[echo]
    platform.script_forever(operation, fault(platform.key))

    ended = export(platform, workspace)

    assert platform.count(operation) > 0
    assert ended.outputs["results"]  # the run reached its end; the fixture searches what it left


STORAGE_ECHOES: dict[str, Callable[[str], Fault]] = {
    "error": lambda key: Fault(status=451, body=f"<Error><Code>Denied</Code><Message>{key}</Message></Error>"),
    "request id": lambda key: Fault(status=451, body="no", headers={"X-Request-Id": key}),
    "redirect": lambda key: Fault(status=302, headers={"Location": f"ftp://{key}.example.com/{key}"}),
    "name of a file": lambda key: Fault(body=tar_of(entry(f"../{key}".encode()))),
}


@pytest.mark.parametrize("echo", STORAGE_ECHOES)
def test_a_key_that_the_storage_echoes_does_not_leak(platform: Simulator, workspace: Path, echo: str) -> None:
    platform.script_forever("download", STORAGE_ECHOES[echo](platform.key))

    ended = export(platform, workspace, **{"site-path": "site"})

    assert (ended.exit_code, platform.count("download")) == (1, 1)
    assert HIDDEN in ended.error
    assert HIDDEN in shown_places(ended)["summary"]


AS_GIVEN: dict[str, tuple[Operation, Callable[[str], dict[str, object]], dict[str, str]]] = {
    "jobId": ("start_export", lambda key: {"jobId": f"se_{key}"}, {}),
    "bundleUrl": ("make_bundle", lambda key: {"bundleUrl": f"https://127.0.0.1:9/b?sig={key}"}, {}),
    "prLink": ("read_agent_job", lambda key: {"status": "active", "prLink": f"https://git.example.com/{key}"}, AGENT),
}
"""The fields that are used as the API gave them, each in a response with an echo, and the inputs of a run that reads it."""


@pytest.mark.parametrize("field", AS_GIVEN)
def test_the_whole_key_in_a_field_that_is_used_as_given_fails_the_run_at_once(
    platform: Simulator, workspace: Path, field: str
) -> None:
    operation, answer, inputs = AS_GIVEN[field]
    platform.script_forever(operation, Fault(json=answer(platform.key)))

    ended = export(platform, workspace, **inputs)

    assert (ended.reason, platform.count(operation)) == ("bad-response", 1)
    assert field not in ended.outputs


SHARED = "5f9d88b1c2e4a7003f6b2d1e"
"""An organization's id, which a platform may put into its keys, job ids and links."""

RELATED_KEY = f"adm_{SHARED}_k3y-9f27c1d4"


def test_a_job_and_a_link_that_share_characters_with_the_key_are_used_unchanged(
    make_platform: Callable[..., Simulator], workspace: Path
) -> None:
    job_id, target = f"{SHARED}/export 1", f"/{SHARED}/b.tar?X-Part={SHARED}.eyJz"
    platform = make_platform(key=RELATED_KEY, job_ids=[job_id], export_seconds=0)
    link = platform.storage_url + target
    platform.override("make_bundle", {"bundleUrl": link})
    platform.script_forever("download", Fault(body=tar_of(entry(b"index.html"))))

    ended = export(platform, workspace, **{"site-path": "site", "values-file": "values.yaml"})

    assert ended.exit_code == 0
    assert (ended.outputs["jobId"], ended.outputs["bundleUrl"]) == (job_id, link)
    path = f"/v1/static-export/jobs/{urllib.parse.quote(job_id, safe='')}"
    assert {request.path for request in platform.requests_of("read_export")} == {path}
    assert {f"{request.path}?{request.query}" for request in platform.requests_of("download")} == {target}
    assert f'bundleUrl: "{link}"' in (workspace / "values.yaml").read_text()
    assert job_id in ended.log
    assert job_id in ended.summary


def test_a_pull_request_that_shares_characters_with_the_key_is_handed_on_unchanged(
    make_platform: Callable[..., Simulator], workspace: Path
) -> None:
    platform = make_platform(key=RELATED_KEY, agent_seconds=0)
    link = f"https://git.example.com/{SHARED}/docs/pull/7"
    platform.add_agent_job("aj_1", project_id="p", prLink=link)

    ended = export(platform, workspace, **AGENT)

    assert (ended.outputs["prLink"], ended.result["prLink"]) == (link, link)
    assert link in ended.log
    assert f"](<{link}>)" in ended.summary


PARAMETERS = {
    "X-Amz-Signature": "vjbyPxy/bdZNm+Ga=",
    "X-Amz-Security-Token": "session-token/1cmwQ5x",
    "X-Goog-Credential": "robot@example/20240601/auto",
    "sig": "kX9vT2bQ7m==",
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("echo", ["{value} is wrong", "{quoted} is wrong", "no such path: {link}"])
def test_the_secrets_of_a_link_that_the_storage_echoes_are_shown_nowhere(
    platform: Simulator, workspace: Path, echo: str, name: str
) -> None:
    value, quoted = PARAMETERS[name], urllib.parse.quote(PARAMETERS[name], safe="")
    link = f"{platform.storage_url}/b?part=shown&{name}={quoted}"
    platform.override("make_bundle", {"bundleUrl": link})
    message = echo.format(value=value, quoted=quoted, link=link)
    platform.script_forever("download", Fault(status=451, body=f"<Code>No</Code><Message>{message}</Message>"))

    ended = export(platform, workspace, **{"bundle-path": "b.tar.gz"})

    assert ended.reason == "download-failed"
    places = shown_places(ended)
    for place in ("annotation", "summary", "message"):
        assert echo.format(value="…", quoted="…", link=f"{platform.storage_url}/b?…") in places[place], place
    for left in (ended.stdout, ended.summary, *ended.outputs.values()):
        assert leaked(value, left) == []


PLACES = {
    "request": "requests.Request.prepare",
    "log": "docs_platform_action.report.log.Log.status_read",
    "download": "docs_platform_action.bundle.deliver.BundleStream",
}


@pytest.mark.parametrize("place", PLACES)
def test_an_internal_error_does_not_leak_the_key_even_in_its_traceback(
    platform: Simulator, workspace: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def fail(*_given: object, **_named: object) -> NoReturn:
        raise RuntimeError(f"cannot take {platform.key}") from KeyError({"Authorization": f"Bearer {platform.key}"})

    monkeypatch.setattr(PLACES[place], fail)

    ended = export(platform, workspace, **{"bundle-path": "b.tar.gz"})

    assert ended.reason == "internal-error"
    lines = [command.value for command in ended.commands if command.name == "debug"]
    assert len([line for line in lines if HIDDEN in line]) == 2  # the error and its cause


@pytest.mark.parametrize("key", ["adm::set-output x::k3y-9f27c1d4", "Bearer adm_k3y-9f27c1", "adm\tk3y-\u00fc9f27"])
def test_an_impossible_key_is_rejected_and_never_shown(platform: Simulator, workspace: Path, key: str) -> None:
    ended = export(platform, workspace, **{"admin-key": key})

    assert (ended.reason, platform.requests) == ("invalid-input", [])
