"""The key never leaks, whichever server echoes it in whatever field and encoding, and also after internal errors.

A fixture of all tests searches everything that a run leaves; the runs here could leave a key.
"""

import base64
import contextlib
import functools
import html
import itertools
import json
import re
import signal
import urllib.parse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NoReturn

import pytest

from admin_api_simulator import Fault, Simulator
from docs_platform_action.redaction import MIN_RUN_LENGTH, MIN_SECRET_LENGTH
from tests.action import Action
from tests.archives import entry, tar_of
from tests.ended import Ended
from tests.inside import run_inside
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import leaked, leaked_in_part
from tests.search import SEARCH, without_mask


def wrapped(text: str, columns: int) -> str:
    return "\r\n".join(text[at : at + columns] for at in range(0, len(text), columns))


ENCODERS: dict[str, Callable[[str], str]] = {
    "unencoded": str,
    "percent-encoded": lambda key: urllib.parse.quote(key, safe=""),
    "percent-encoded in lower case": lambda key: "".join(f"%{ord(character):02x}" for character in key),
    "JSON": lambda key: json.dumps(key).replace("/", "\\/"),
    "HTML": html.escape,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: base64.b64encode(f"Authorization: Bearer {key}".encode()).decode(),
    "base64 for links": lambda key: base64.urlsafe_b64encode(f"u:{key}".encode()).decode().rstrip("="),
    "UTF-16": lambda key: key.encode("utf-16-le").decode("latin-1"),
    "wrapped": lambda key: f"{key[: len(key) // 2]}\n    {key[len(key) // 2 :]}",
    "wrapped, percent-encoded": lambda key: urllib.parse.quote(f"{key[:9]}\r\n  {key[9:]}", safe=""),
    "base64 with line breaks": lambda key: wrapped(base64.b64encode(f"Bearer {key}".encode()).decode(), 16),
    "hex": lambda key: key.encode().hex(),
    "hex in groups": lambda key: key.encode().hex(":").upper(),
    "truncated": lambda key: key[: MIN_RUN_LENGTH + 1] if len(key) > MIN_RUN_LENGTH else key,
    "cut at its beginning": lambda key: key[-MIN_RUN_LENGTH:],
}
"""Encodings of a key. In headers a space replaces line breaks."""

WHOLE = [form for form in ENCODERS if form not in {"truncated", "cut at its beginning"}]
KEYS = (ADMIN_KEY, *AWKWARD_KEYS)
BUNDLE = tar_of(entry(b"index.html"))
Echo = Callable[[str], Fault]


def headers(value: str) -> dict[str, str]:
    return {"X-Request-Id": on_a_line(value), "Content-Type": on_a_line(f"text/x-{value}")}


def on_a_line(text: str) -> str:
    """Return a text as a possible header value, without zeros and line breaks."""
    return re.sub(r"\r?\n", " ", text.replace("\0", ""))


API_ECHOES: dict[str, tuple[str, Echo]] = {
    "error of a start": ("start_export", lambda echo: Fault(status=422, json={"error": f"bad token {echo}."})),
    "nested error": ("start_export", lambda echo: Fault(status=403, json={"error": {"detail": echo}})),
    "job id": ("start_export", lambda echo: Fault(json={"jobId": f"se_{echo}".replace("\0", "")})),
    "status": ("read_export", lambda echo: Fault(json={"status": echo, "error": echo})),
    "error of a failed job": ("read_export", lambda echo: Fault(json={"status": "failed", "error": f"{echo} is wrong"})),
    "error of an outage": ("read_export", lambda echo: Fault(status=503, json={"error": echo})),
    "header": ("read_export", lambda echo: Fault(status=401, json={}, headers=headers(echo))),
    "content type": ("start_export", lambda echo: Fault(body="no JSON", headers=headers(echo))),
    "redirect": (
        "read_export",
        lambda echo: Fault(status=302, headers={"Location": on_a_line(f"https://{echo}.example.com/{echo}?k={echo}")}),
    ),
    "reason phrase": ("read_export", lambda echo: Fault(status=418, reason=on_a_line(echo), json={})),
    "link": ("make_bundle", lambda echo: Fault(json={"bundleUrl": f"https://127.0.0.1:9/{echo}?sig={echo}".replace("\0", "")})),
    "expiry": ("make_bundle", lambda echo: Fault(json={"bundleUrl": "https://127.0.0.1:9/b", "expiresAt": echo})),
}
STORAGE_ECHOES: dict[str, Echo] = {
    "error": lambda echo: Fault(status=451, body=f"<Error><Code>Denied</Code><Message>{echo}</Message></Error>"),
    "code": lambda echo: Fault(status=403, body=f"<Error><Code>{echo}</Code></Error>"),
    "header": lambda echo: Fault(status=451, body="no", headers=headers(echo)),
    "redirect": lambda echo: Fault(status=302, headers={"Location": on_a_line(f"ftp://{echo}.example.com/{echo}")}),
    "etag": lambda echo: Fault(headers={"ETag": on_a_line(f'"{echo}"')}, cut="in_body"),
}


def export(platform: Simulator, workspace: Path, **inputs: str) -> Ended:
    given = {"base-url": platform.base_url, "admin-key": platform.key, "domain": "docs.example.com", "outage-tolerance": "2s"}
    return run_inside({**given, "timeout": "5s", **inputs}, workspace=workspace, debug=True)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


def with_each_key(echoes: Collection[str]) -> list[tuple[str, str, str]]:
    """Return a third of all pairs: each echo with some forms, each form with some echoes, and each key in turn.

    Unit tests try every form. Which forms are found does not depend on where a text is shown.
    """
    keys = itertools.cycle(KEYS)
    pairs = [*itertools.product(echoes, ENCODERS)]
    return [(echo, form, next(keys)) for echo, form in pairs[:: min(3, len(echoes))]]


@pytest.mark.parametrize(("echo", "form", "key"), with_each_key(API_ECHOES))
def test_a_key_that_the_api_echoes_does_not_leak(
    make_platform: Callable[..., Simulator], workspace: Path, echo: str, form: str, key: str
) -> None:
    operation, fault = API_ECHOES[echo]
    platform = make_platform(key=key, export_seconds=0)
    platform.script_forever(operation, fault(ENCODERS[form](key)))

    ended = export(platform, workspace)

    assert platform.count(operation) > 0
    assert ended.outputs["results"]  # the run reached its end; the fixture searches what it left


@pytest.mark.parametrize(("echo", "form", "key"), with_each_key(STORAGE_ECHOES))
def test_a_key_that_the_storage_echoes_does_not_leak(
    make_platform: Callable[..., Simulator], workspace: Path, echo: str, form: str, key: str
) -> None:
    platform = make_platform(key=key, export_seconds=0)
    platform.script_forever("download", STORAGE_ECHOES[echo](ENCODERS[form](key)))

    ended = export(platform, workspace, **{"bundle-path": "b.tar.gz"})

    assert (ended.reason, platform.count("download") > 0) == ("download-failed", True)


# only the whole key is hidden: a redirect may share characters with it
@pytest.mark.parametrize(("form", "key"), [*zip(WHOLE, itertools.cycle(KEYS), strict=False)])
def test_a_key_in_a_redirect_is_not_sent_to_another_host(
    make_platform: Callable[..., Simulator], workspace: Path, form: str, key: str
) -> None:
    platform, other = make_platform(key=key, export_seconds=0), make_platform()
    written = on_a_line(ENCODERS[form](key)).replace("#", "%23").replace(" ", "")
    platform.script_forever("download", Fault(status=302, headers={"Location": f"{other.storage_url}/{written}?k={written}"}))

    export(platform, workspace, **{"bundle-path": "b.tar.gz"})

    assert other.requests  # the fixture searches these requests


@pytest.mark.parametrize(("echo", "form", "key"), with_each_key(["../{}", "good/{}/..", "{}\n"]))
def test_a_key_in_the_name_of_a_rejected_file_does_not_leak(
    make_platform: Callable[..., Simulator], workspace: Path, echo: str, form: str, key: str
) -> None:
    platform = make_platform(key=key)
    platform.put_bundle("export-finished", tar_of(entry(echo.format(ENCODERS[form](key).replace("\0", "")).encode())))

    ended = export(platform, workspace, **{"domain": "", "mode": "collect", "job-id": "export-finished", "site-path": "site"})

    assert ended.reason == "invalid-bundle"


# only the whole key is rejected: an identifier may be a part of the key
@pytest.mark.parametrize("form", [form for form in ENCODERS if form not in {"UTF-16", "truncated", "cut at its beginning"}])
def test_a_key_in_another_input_is_rejected_in_every_encoding(platform: Simulator, workspace: Path, form: str) -> None:
    ended = export(platform, workspace, **{"domain": "", "mode": "collect", "job-id": f"se_{ENCODERS[form](platform.key)}"})

    assert (ended.reason, platform.requests) == ("invalid-input", [])


@pytest.mark.parametrize("length", [1, MIN_SECRET_LENGTH - 1])
def test_a_key_as_short_as_a_word_is_removed_from_the_log_but_not_from_outputs(
    make_platform: Callable[..., Simulator], workspace: Path, length: int
) -> None:
    # below this length an echo is not more likely than a status that happens to contain the key
    platform = make_platform(key="xqzjvkwp"[:length])
    platform.script_forever("read_export", Fault(json={"status": f"is-{platform.key}"}))

    ended = export(platform, workspace)

    assert ended.outputs["status"] == f"is-{platform.key}"
    assert "is-***" in ended.log


def test_a_project_that_is_part_of_the_key_is_shown(
    make_platform: Callable[..., Simulator], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("docs_platform_action.api.admin_api.SETTLING_SECONDS", 0.0)
    project = "5f9d88b1c2e4a7003f6b2d1e"
    platform = make_platform(key=f"adm_{project}_k3y-9f27c1d4")
    platform.script_forever("read_agent_job", Fault(status=404, json={"error": f"project {project} has no such job"}))

    ended = export(platform, workspace, **{"mode": "agent", "domain": "", "project-id": project, "job-id": "j"})

    (row,) = json.loads(ended.outputs["results"])
    assert (ended.reason, row["projectId"]) == ("not-found", project)
    assert f"project {project} has no such job" in ended.error
    assert leaked(platform.key, ended.log + ended.summary) == []
    SEARCH.keys.remove(platform.key)  # the fixture would report the project as part of the key


ORGANIZATION = "5f9d88b1c2e4a7003f6b2d1e"
JWT_HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
"""What the tokens of one platform share: an organization's id, and the header of every JSON web token with HMAC and SHA-256."""

RELATED_KEYS = (f"adm_{ORGANIZATION}_k3y-9f27c1d4", f"{JWT_HEADER}.eyJzdWIiOiJrM3kifQ.9f27-c1d4e8b05a63")


def search_for_whole_keys_only(platform: Simulator, ended: Ended) -> None:
    """Check that a run did not leave the whole key; the fixture would report the parts that the platform's own names share."""
    SEARCH.keys.remove(platform.key)
    shown = "".join([without_mask(ended.stdout, platform.key), ended.stderr, ended.summary, *ended.outputs.values()])
    assert leaked(platform.key, shown) == []


@pytest.mark.parametrize("key", RELATED_KEYS)
@pytest.mark.parametrize("name", ["{}-export-0001", "se_{}", "{}/a b", "x%2F{}"])
class TestJobIdRelatedToTheKey:
    def test_it_is_requested_shown_and_handed_on_unchanged(
        self, make_platform: Callable[..., Simulator], workspace: Path, key: str, name: str
    ) -> None:
        job_id = name.format(shared_with(key))
        platform = make_platform(key=key, job_ids=[job_id], export_seconds=0)

        ended = export(platform, workspace, **{"site-path": "site"})

        search_for_whole_keys_only(platform, ended)
        assert ended.exit_code == 0
        assert (ended.outputs["jobId"], ended.result["jobId"]) == (job_id, job_id)
        path = f"/v1/static-export/jobs/{urllib.parse.quote(job_id, safe='')}"
        assert {request.path for request in platform.requests_of("read_export")} == {path}
        assert job_id in ended.log
        assert job_id in text_of(ended.summary)
        assert [line for line in ended.commands if line.name == "debug" and f"GET {path}" in line.value]

    def test_advice_and_the_platforms_messages_name_it(
        self, make_platform: Callable[..., Simulator], workspace: Path, key: str, name: str
    ) -> None:
        job_id = name.format(shared_with(key))
        platform = make_platform(key=key, job_ids=[job_id], export_seconds=3600)
        platform.script_forever("read_export", Fault(status=403, json={"error": f"no access to {job_id} with {key}"}))

        ended = export(platform, workspace)

        search_for_whole_keys_only(platform, ended)
        for shown in (ended.error, ended.result["message"]):
            assert f"no access to {job_id} with ***" in shown
        assert f"`mode: collect, job-id: {job_id}`" in ended.error
        assert f"mode: collect, job-id: {job_id}" in text_of(ended.summary)

    def test_with_several_domains_it_is_shown_too(
        self, make_platform: Callable[..., Simulator], workspace: Path, key: str, name: str
    ) -> None:
        ids = [f"{name.format(shared_with(key))}-{number}" for number in range(2)]
        platform = make_platform(key=key, job_ids=ids, export_seconds=0)

        ended = export(platform, workspace, domain="a.example.com\nb.example.com")

        search_for_whole_keys_only(platform, ended)
        assert {row["jobId"] for row in json.loads(ended.outputs["results"])} == {*ids}
        for job_id in ids:
            assert job_id in ended.log
            assert job_id in text_of(ended.summary)


def shared_with(key: str) -> str:
    return ORGANIZATION if ORGANIZATION in key else JWT_HEADER


def text_of(summary: str) -> str:
    """Return a summary without the escapes of Markdown."""
    return re.sub(r"\\(?=[^A-Za-z0-9 ])", "", summary)


@pytest.mark.parametrize("key", RELATED_KEYS)
class TestLinkRelatedToTheKey:
    def test_it_is_requested_and_handed_on_unchanged(
        self, make_platform: Callable[..., Simulator], workspace: Path, key: str
    ) -> None:
        platform = make_platform(key=key, export_seconds=0)
        target = f"/{shared_with(key)}/b.tar?token={shared_with(key)}.eyJzdWIiOiJsaW5rIn0.1cmwQ-5x"
        link = platform.storage_url + target
        platform.override("make_bundle", {"bundleUrl": link, "expiresAt": "2099-06-01T12:00:00Z"})
        platform.script_forever("download", Fault(body=BUNDLE))

        ended = export(platform, workspace, **{"bundle-path": "b.tar", "values-file": "values.yaml"})

        search_for_whole_keys_only(platform, ended)
        assert ended.exit_code == 0
        assert {f"{request.path}?{request.query}" for request in platform.requests_of("download")} == {target}
        assert (ended.outputs["bundleUrl"], ended.result["bundleUrl"]) == (link, link)
        assert f'bundleUrl: "{link}"' in (workspace / "values.yaml").read_text()
        assert link.removeprefix("http://").partition("?")[0] in ended.log
        assert "1cmwQ-5x" not in ended.stdout + ended.summary

    def test_a_redirect_is_followed_unchanged(self, make_platform: Callable[..., Simulator], workspace: Path, key: str) -> None:
        platform, other = make_platform(key=key, export_seconds=0), make_platform()
        target = f"/b.tar?token={shared_with(key)}.eyJzdWIiOiJsaW5rIn0.1cmwQ-5x"
        platform.script_forever("download", Fault(status=307, headers={"Location": other.storage_url + target}))
        other.script_forever("download", Fault(body=BUNDLE))

        ended = export(platform, workspace, **{"bundle-path": "b.tar"})

        search_for_whole_keys_only(platform, ended)
        assert ended.exit_code == 0
        assert {f"{request.path}?{request.query}" for request in other.requests} == {target}
        assert "1cmwQ-5x" not in ended.stdout + ended.summary

    def test_an_etag_is_sent_back_unchanged(self, make_platform: Callable[..., Simulator], workspace: Path, key: str) -> None:
        platform = make_platform(key=key, export_seconds=0, asset_bytes=300_000)
        etag = f'"{shared_with(key)}"'
        platform.script("download", Fault(headers={"ETag": etag}, cut="in_body"))

        ended = export(platform, workspace, **{"bundle-path": "b.tar.gz"})

        search_for_whole_keys_only(platform, ended)
        assert ended.exit_code == 0
        assert [request.headers.get("If-Range") for request in platform.requests_of("download")] == [None, etag, None]

    def test_a_pull_request_is_handed_on_unchanged(
        self, make_platform: Callable[..., Simulator], workspace: Path, key: str
    ) -> None:
        platform = make_platform(key=key, agent_seconds=0)
        link = f"https://git.example.com/{shared_with(key)}/docs/pull/7"
        platform.add_agent_job("aj_1", project_id="p", prLink=link)

        ended = export(platform, workspace, **{"mode": "agent", "domain": "", "project-id": "p", "job-id": "aj_1"})

        search_for_whole_keys_only(platform, ended)
        assert (ended.outputs["prLink"], ended.result["prLink"]) == (link, link)
        assert link in ended.log
        assert f"](<{link}>)" in ended.summary


AS_GIVEN: dict[str, tuple[str, Callable[[str], dict[str, object]], dict[str, str]]] = {
    "jobId": ("start_export", lambda echo: {"jobId": f"se_{echo}"}, {}),
    "bundleUrl": ("make_bundle", lambda echo: {"bundleUrl": f"https://127.0.0.1:9/b?sig={echo}"}, {}),
    "prLink": (
        "read_agent_job",
        lambda echo: {"status": "active", "prLink": f"https://git.example.com/{echo}"},
        {"mode": "agent", "domain": "", "project-id": "p", "job-id": "aj_1"},
    ),
}
"""The fields that are used as the API gave them, each in a response with an echo, and the inputs of a run that reads it."""


@pytest.mark.parametrize("field", AS_GIVEN)
@pytest.mark.parametrize(("form", "key"), [*zip(WHOLE, itertools.cycle(KEYS), strict=False)])
def test_the_whole_key_in_a_field_that_is_used_as_given_fails_the_run_at_once(
    make_platform: Callable[..., Simulator], workspace: Path, field: str, form: str, key: str
) -> None:
    operation, answer, inputs = AS_GIVEN[field]
    platform = make_platform(key=key, export_seconds=0)
    platform.script_forever(operation, Fault(json=answer(ENCODERS[form](key).replace("\0", ""))))

    ended = export(platform, workspace, **inputs)

    assert (ended.reason, platform.count(operation)) == ("bad-response", 1)
    assert field not in ended.outputs


JOB = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


@pytest.mark.parametrize("signature", ["Zq3", "kX9vT2bQ7m", "7d3c9a41f0b2e8d65c1a90ff3e4b7a28" * 2])
@pytest.mark.parametrize("status", [403, 451, 503])
def test_an_echoed_link_is_shown_without_its_signature(
    make_platform: Callable[..., Simulator], workspace: Path, signature: str, status: int
) -> None:
    platform = make_platform(job_ids=[JOB], export_seconds=0)
    query = f"domain=docs.example.com&job={JOB}&expires=1717243200&sig={signature}"
    link = {"bundleUrl": f"{platform.storage_url}/b?{query}", "expiresAt": "2024-06-01T12:00:00Z"}
    platform.script_forever("make_bundle", Fault(json=link))
    message = f"no /b?{query.replace('&', '&amp;')} at 2024-06-01T12:00:00Z"
    platform.script_forever("download", Fault(status=status, body=f"<Error><Code>No</Code><Message>{message}</Message></Error>"))

    ended = export(platform, workspace, **{"bundle-path": "b.tar.gz"})

    assert ended.reason == "download-failed"
    (row,) = json.loads(ended.outputs["results"])
    shown = f"no /b?domain=docs.example.com&amp;job={JOB}&amp;expires=1717243200&amp;sig=… at 2024-06-01T12:00:00Z"
    assert (row["domain"], row["jobId"]) == ("docs.example.com", JOB)
    assert shown in row["message"]
    assert shown in ended.error
    assert JOB in ended.log
    assert "docs.example.com" in ended.summary
    assert JOB in ended.summary.replace("\\", "")
    for left in (ended.stdout, ended.summary, *ended.outputs.values()):
        assert f"sig={signature}" not in left
        assert len(signature) < MIN_SECRET_LENGTH or signature not in left


LINK_ENCODERS: dict[str, Callable[[str], str]] = {
    **{form: ENCODERS[form] for form in WHOLE},
    "HTML numbers": lambda text: re.sub(r"\W", lambda found: f"&#{ord(found[0])};", text),
    "HTML hex numbers": lambda text: re.sub(r"\W", lambda found: f"&#x{ord(found[0]):X};", text),
    "JSON numbers": lambda text: re.sub(r"\W", lambda found: f"\\u{ord(found[0]):04x}", text),
    "JSON with escaped slashes": lambda text: text.replace("/", "\\/"),
    "percent-encoded three times": lambda text: functools.reduce(
        lambda inner, _: urllib.parse.quote(inner, safe=""), range(3), text
    ),
    "lower case": str.lower,
    "upper case": str.upper,
}


@pytest.mark.parametrize("form", LINK_ENCODERS)
@pytest.mark.parametrize("signature", ["vjbyPxy/bdZNm+Ga=", "Zq3+/="])
def test_a_links_signature_is_hidden_in_every_encoding(
    make_platform: Callable[..., Simulator], workspace: Path, form: str, signature: str
) -> None:
    platform = make_platform(export_seconds=0)
    link = f"{platform.storage_url}/b?x=1&sig={urllib.parse.quote(signature, safe='')}"
    echo = LINK_ENCODERS[form](f"/b?x=1&sig={signature}&y=2")
    platform.script_forever("make_bundle", Fault(json={"bundleUrl": link}))
    platform.script_forever("download", Fault(status=403, body=f"<Code>No</Code><Message>{echo}</Message>"))

    ended = export(platform, workspace, **{"bundle-path": "b.tar.gz"})

    SEARCH.signatures.add(signature)
    assert ended.reason == "download-failed"
    assert "(No: " in ended.result["message"]
    assert "…" in ended.result["message"]
    SEARCH.remember(ended.result["message"], where="the message")


class Broken:
    """A function that raises an error whose message and cause contain a key."""

    def __init__(self, error: Callable[[str], BaseException], form: str, key: str) -> None:
        self._error, self._echo = error, ENCODERS[form](key)
        self.calls = 0

    def __call__(self, *given: object, **named: object) -> NoReturn:
        self.calls += 1
        raise self._error(f"cannot take {self._echo}") from KeyError({"Authorization": f"Bearer {self._echo}"}, given, named)


PLACES = {
    "settings": "docs_platform_action.inputs.reader.Reader.read",
    "request": "requests.Request.prepare",
    "wire": "docs_platform_action.http.transport.Transport.send",
    "reading": "docs_platform_action.api.client.json.loads",
    "log": "docs_platform_action.report.job_log.JobLog.status_read",
    "download": "docs_platform_action.bundle.deliver.BundleStream",
}
ERRORS = {
    "RuntimeError": RuntimeError,
    "ExceptionGroup": lambda message: ExceptionGroup(message, [RuntimeError(message)]),
    "KeyError": KeyError,
}


@pytest.mark.parametrize(
    ("place", "form", "key", "error"),
    [(*found, error) for found, error in zip(with_each_key(PLACES), itertools.cycle(ERRORS), strict=False)],
)
def test_an_internal_error_does_not_leak_the_key_even_in_its_traceback(
    make_platform: Callable[..., Simulator],
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    form: str,
    key: str,
    error: str,
) -> None:
    platform, broken = make_platform(key=key, export_seconds=0), Broken(ERRORS[error], form, key)
    monkeypatch.setattr(PLACES[place], broken)

    ended = export(platform, workspace, **{"bundle-path": "b.tar.gz"})

    assert (ended.reason, broken.calls > 0) == ("internal-error", True)
    lines = [command.value for command in ended.commands if command.name == "debug"]
    assert [line for line in lines if line.endswith("Traceback (most recent call last):")]
    assert [line for line in lines if "***" in line]  # the fixture searches the traceback for the key


@pytest.mark.parametrize(
    "key", ["adm::set-output x::k3y-9f27c1d4", "adm ##[x]k3y-9f27c1d4", "Bearer adm_k3y-9f27c1", "adm\tk3y-\u00fc9f27"]
)
def test_an_impossible_key_is_rejected_and_never_shown(platform: Simulator, workspace: Path, key: str) -> None:
    ended = export(platform, workspace, **{"admin-key": key})

    assert (ended.reason, platform.requests) == ("invalid-input", [])


def test_the_process_has_no_key_in_its_arguments_and_no_children(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(export_seconds=3600)

    with action.start(platform, domain="docs.example.com") as running:
        running.wait_for("queued")
        process = Path(f"/proc/{running.pid}")
        arguments = (process / "cmdline").read_bytes()
        children = []
        for task in (process / "task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
                children.append((task / "children").read_text())
        running.signal(signal.SIGTERM)
        running.wait()

    assert leaked_in_part(ADMIN_KEY, arguments) == []
    assert b"entrypoint.py" in arguments
    assert {*children} == {""}
