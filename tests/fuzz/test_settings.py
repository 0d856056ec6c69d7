"""Inputs: every environment gives settings within the contract, or an error that names the invalid inputs."""

import json
import os
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
import trustme
from hypothesis import assume, example
from hypothesis import strategies as st

from docs_platform_action.api.client import ApiClient
from docs_platform_action.errors import InvalidInput
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.inputs.reader import Reader, is_close
from docs_platform_action.inputs.settings import DeliverySettings, JobSettings, Mode, OutputPath, Settings
from docs_platform_action.inputs.table import DEFAULTS, TARGETS
from docs_platform_action.inputs.validators import MAX_DURATION_SECONDS
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, edited, edits, mutated_bytes, mutated_text
from tests.unit.fakes import FakeTransport, http_client
from tests.virtual_platform import Sent

KEY: Final = "K3Y-9Q27X1Z4W8V05J63"
"""A key whose parts do not occur in messages."""

EXPORT: Final = {"base-url": "https://api.example.com", "admin-key": KEY, "domain": "docs.example.com"}
COLLECT: Final = {"mode": "collect", "base-url": "https://api.example.com", "admin-key": KEY, "job-id": "se_1"}
AGENT: Final = {**COLLECT, "mode": "agent", "project-id": "prj_1", "job-id": "aj_1"}

DURATIONS: Final = ("500ms", "1s", "30s", "45", "0.5", "15m", "1h30m", "1.5h", "840h", "0s", "841h", "1ms", "soon")
DOMAINS: Final = (
    *("docs.example.com", "a.example.com\nb.example.com", "a.example.com\n\n b.example.com:8443 \n", "localhost:3000", "a_b"),
    *("https://docs.example.com/start", "a.example.com, b.example.com", "a.example.com\nA.example.com:080\na.example.com:80"),
    *("müller.example", "Straße.example:8443", "\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.example", "docs.example.com."),
    *("*.example.com", "me:pw@docs.example.com", "\n".join(f"d{n}.example.com" for n in range(30)), "\ufeff\n\ufeff\n\ufeff"),
)
BOOLEANS: Final = ("true", "True", "TRUE", "false", "False", "FALSE", "yes", "0")
IDENTIFIERS: Final = ("se_1", "a b", "a/b", "..", "ü", "0", "v1.2", "2024-06-01")
OPTIONS: Final = (
    *('{"version": "v2"}', '{"paths": ["/a", "/b"], "n": 1.5, "t": true, "z": null}', "{}", '{"a": {"a": {"a": "\\ud800"}}}'),
    *('{"domain": "x"}', "[]", '{"n": NaN}', '{"n": 1e999}', '{"a": 1, "a": 2}', '{"a":' * 990 + "1" + "}" * 990, "{'a': 1}"),
)
PATHS: Final = (
    *("out/{domain}", "out/{domain}.tar.gz", "new", "new/deeper/file.txt", "file.txt", "full", "empty", "full/held.html"),
    "a//b/./c",
    *("in", "in/side", "out-of-here", "out-of-here/etc/x", "circle", "circle/x", "pipe", "../beside", "../../..", "/"),
    "/etc/passwd",
    *("{workspace}", "{workspace}/new", "{temp}/new", "{temp}", "ca.pem", "a/../b", "file.txt/x", "new/", "x" * 256),
    *("x/" * 3000 + "x", "~/site", "$RUNNER_TEMP/x", "${HOME}/x", "$(pwd)/x", "%TEMP%/x", ".\\site", "a~b", "100%", "a$", "$/x"),
)
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "mode": ("export", "collect", "agent", "Export", "import"),
    "base-url": (
        *("https://api.example.com", "https://api.example.com:8443/admin/v1/", "http://localhost:8080", "http://127.0.0.1:1/x"),
        *("http://[::1]:8080", "https://[2001:db8::1]", "https://10.0.0.1//", "HTTPS://API.example.com", "https://a.example./x"),
        *(
            "http://api.example.com",
            "https://me:pw@api.example.com",
            "https://api.example.com?x=1",
            "https://a/../b",
            "https://a:0",
        ),
    ),
    "admin-key": (KEY, f"Bearer {KEY}", f"{KEY}\n{KEY}", f"{KEY}ü", "short"),
    "domain": DOMAINS,
    "job-id": IDENTIFIERS,
    "project-id": IDENTIFIERS,
    "export-version": IDENTIFIERS,
    "timeout": DURATIONS,
    "poll-interval": DURATIONS,
    "max-poll-interval": DURATIONS,
    "outage-tolerance": DURATIONS,
    "wait": BOOLEANS,
    "mask-bundle-url": BOOLEANS,
    "require-pr": BOOLEANS,
    "start-options": OPTIONS,
    "max-parallel": ("1", "10", "100", "0", "101", "1.5", "٣"),
    "min-pages": ("1", "400", "007", "999999999", "0", "-1", "1e3", "1.0", "٣"),
    "bundle-path": PATHS,
    "site-path": PATHS,
    "values-file": PATHS,
    "ca-bundle": ("ca.pem", "{workspace}/ca.pem", "full/held.html", "empty", "pipe", "missing.pem", "../ca.pem", "circle"),
}
NAMES: Final = [*DEFAULTS]


def text_with_key(part: str, how: str) -> str:
    """Return a text that contains the key in the given way."""
    return {
        "whole": KEY,
        "between": f"{part}{KEY}{part}",
        "address": f"https://{KEY}.example.com/{part}",
        "user": f"https://{part}:{KEY}@docs.example.com",
        "list": f"{part}, {KEY}",
    }[how]


def values_for(name: str) -> st.SearchStrategy[str]:
    """Draw a value of an input: valid, mistaken or arbitrary."""
    good = st.sampled_from(VALUES[name])
    return st.one_of(
        *(good, good, good, mutated_text(good), st.text(st.characters(), max_size=12), st.sampled_from(HOSTILE_TEXTS)),
        st.builds(
            text_with_key,
            st.sampled_from(["", "x", "a.b", "/"]),
            st.sampled_from(["whole", "between", "address", "user", "list"]),
        ),
    )


def some_inputs(*names: str, most: int = 4) -> st.SearchStrategy[dict[str, str]]:
    """Draw values of a few inputs."""
    one = st.sampled_from(names).flatmap(lambda name: st.tuples(st.just(name), values_for(name)))
    return st.lists(one, max_size=most, unique_by=lambda item: item[0]).map(dict)


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Create a workspace with obstacles and the runner's temporary folder; check that reading changes nothing."""
    home = tmp_path_factory.mktemp("runner")
    workspace, temp = home / "workspace", home / "temp"
    for folder in (workspace / "full", workspace / "empty", temp):
        folder.mkdir(parents=True)
    (workspace / "full" / "held.html").write_text("held")
    (workspace / "file.txt").write_text("file")
    trustme.CA().cert_pem.write_to_path(workspace / "ca.pem")
    (workspace / "in").symlink_to("empty")
    (workspace / "out-of-here").symlink_to("/")
    (workspace / "circle").symlink_to("circle")
    os.mkfifo(workspace / "pipe")
    before = sorted(home.rglob("*"))
    yield workspace, temp
    assert sorted(home.rglob("*")) == before


def placed(inputs: Mapping[str, str], roots: tuple[Path, Path]) -> dict[str, str]:
    workspace, temp = (str(root) for root in roots)
    return {name: text.replace("{workspace}", workspace).replace("{temp}", temp) for name, text in inputs.items()}


def read(inputs: Mapping[str, str], roots: tuple[Path, Path]) -> Settings:
    environ = {f"INPUT_{name.upper()}": text for name, text in placed(inputs, roots).items()}
    return Reader(environ, in_workflow=True).read(roots=roots)


def named_in(error: InvalidInput, inputs: Mapping[str, str]) -> list[str]:
    """Return the inputs that an error names; check that it has a reason for each, and does not contain the key."""
    message = "\n".join([error.summary, *error.details, error.cause, error.remedy])
    elsewhere = "".join(text for name, text in inputs.items() if name != "admin-key")
    if inputs.get("admin-key") == KEY or KEY not in elsewhere:
        assert KEY not in message
    assert len(message) < 20_000
    if one := re.match("Invalid input `([a-z-]+)`: .", error.summary):
        assert not error.details
        return [one[1]]
    assert re.match("Invalid inputs: `", error.summary)
    assert len(error.details) > 1
    names = re.findall("`([a-z-]+)`", error.summary)
    facts = [re.match("`([a-z-]+)`: .", fact) for fact in error.details]
    assert [*dict.fromkeys(match[1] for match in facts if match)] == names
    assert {*names} <= {*NAMES}
    return names


def rejected_inputs(inputs: Mapping[str, str], roots: tuple[Path, Path]) -> list[str]:
    try:
        read(inputs, roots)
    except InvalidInput as error:
        return named_in(error, inputs)
    return []


def check(settings: Settings, roots: tuple[Path, Path]) -> None:
    """Check that settings are valid within the contract."""
    jobs = settings.jobs
    assert jobs
    assert 1 <= settings.max_parallel <= 100
    assert len({job.waiting for job in jobs}) == len({job.mode for job in jobs}) == 1
    first = jobs[0]
    seconds = (
        *(first.waiting.timeout_seconds, first.waiting.poll_interval_seconds, first.waiting.max_poll_interval_seconds),
        settings.outage_tolerance_seconds,
    )
    assert all(0 < duration <= MAX_DURATION_SECONDS for duration in seconds)
    assert first.waiting.poll_interval_seconds <= first.waiting.max_poll_interval_seconds
    assert re.fullmatch(r"[\x21-\x7e]+", settings.admin_key)
    assert settings.admin_key not in repr(settings) or len(settings.admin_key) < 8
    check_address(settings.base_url)
    if first.mode == Mode.EXPORT:
        assert all(job.domain is not None and job.job_id is None for job in jobs)
        check_start_request(first, settings)
    else:
        assert len(jobs) == 1
        assert is_identifier(first.job_id)
        assert (first.wait, first.start_options) == (True, None)
    assert is_identifier(first.project_id) is (first.mode == Mode.AGENT)
    assert first.mode != Mode.AGENT or (first.domain, first.delivery) == (None, DeliverySettings())
    assert not first.wait or first.delivery.export_version is None or first.delivery.values_file is not None
    check_targets(jobs, roots)


def check_address(url: str) -> None:
    parts = urlsplit(url)
    assert parts.scheme == "https" or parts.hostname == "localhost" or ip_address(str(parts.hostname)).is_loopback
    assert (parts.username, parts.password, parts.query, parts.fragment) == (None, None, "", "")
    assert not url.endswith("/")
    assert parts.port is None or 0 < parts.port < 65536


def is_identifier(text: str | None) -> bool:
    return bool(text) and not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", str(text))


def check_targets(jobs: Sequence[JobSettings], roots: tuple[Path, Path]) -> None:
    domains = [job.domain for job in jobs]
    assert all(domain is None or re.fullmatch(r"[A-Za-z0-9_.-]+(:[0-9]+)?", domain) for domain in domains)
    assert len({str(domain).lower() for domain in domains}) == len(domains)
    places = [place for job in jobs for place in targets_of(job).values()]
    resolved = [root.resolve() for root in roots]
    for place in places:
        assert place.root in resolved
        assert place.path.resolve() == place.path
        assert place.path.is_relative_to(place.root)
        assert is_identifier(str(place.path))
    for number, place in enumerate(places):
        assert not any(other.path.is_relative_to(place.path) for other in places[:number] + places[number + 1 :])


def targets_of(job: JobSettings) -> dict[str, OutputPath]:
    delivery = job.delivery
    places = zip(TARGETS, (delivery.bundle_path, delivery.site_path, delivery.values_file), strict=True)
    return {name: place for name, place in places if place is not None}


def check_start_request(job: JobSettings, settings: Settings) -> None:
    """Check the address, the key and the body of the start request."""
    adapter = FakeTransport()
    client = ApiClient(http_client(adapter), base_url=settings.base_url, key=settings.admin_key)
    options = job.start_options or {}
    client.send(Request(method="POST", url="/v1/jobs", body={**options, "domain": "d"}), Timeouts())
    (request,) = adapter.requests

    assert isinstance(request, Sent)
    assert request.target == f"{urlsplit(settings.base_url).path}/v1/jobs"
    assert request.headers["Authorization"] == f"Bearer {settings.admin_key}"
    assert json.loads(request.body or b"") == {**options, "domain": "d"}
    assert urlsplit(str(request.url)).netloc.lower() == urlsplit(settings.base_url).netloc.lower()


bases = st.sampled_from([EXPORT, EXPORT, COLLECT, AGENT, {}])


@fuzz("inputs", base=bases, changes=some_inputs(*NAMES))
@example(EXPORT, {"start-options": '{"a":' * 960 + "1" + "}" * 960})
def test_any_inputs_give_settings_or_an_error(roots: tuple[Path, Path], base: dict[str, str], changes: dict[str, str]) -> None:
    inputs = {**base, **changes}
    try:
        settings = read(inputs, roots)
    except InvalidInput as error:
        named_in(error, inputs)
    else:
        check(settings, roots)


@pytest.mark.parametrize("name", NAMES)
def test_each_base_value_gives_settings_or_an_error(roots: tuple[Path, Path], name: str) -> None:
    for base in (EXPORT, COLLECT, AGENT):
        for text in VALUES[name]:
            if not rejected_inputs({**base, name: text}, roots):
                check(read({**base, name: text}, roots), roots)


SINGLE: Final = [name for name in NAMES if name not in {"mode", "admin-key", "max-poll-interval", "job-id", "export-version"}]
"""Inputs whose validity does not depend on others."""


@fuzz("inputs wrong together", base=st.sampled_from([EXPORT, COLLECT, AGENT]), changes=some_inputs(*SINGLE, most=6))
def test_an_invalid_input_is_also_named_among_others(
    roots: tuple[Path, Path], base: dict[str, str], changes: dict[str, str]
) -> None:
    changes = {name: text for name, text in changes.items() if "{domain}" not in text and KEY not in text}
    alone = {name for name, text in changes.items() if name in rejected_inputs({**base, name: text}, roots)}

    assert alone <= {*rejected_inputs({**base, **changes}, roots)}

    # with an unknown mode no input is missing; like the action, strip every white space, such as U+0085
    given = {name for name in alone if changes[name].replace("\ufeff", "").strip()}
    given -= {"domain"} if base is COLLECT else set()  # several are wrong in that mode alone
    assert given <= {*rejected_inputs({**base, **changes, "mode": "import"}, roots)}


def to_inputs(settings: Settings, inputs: Mapping[str, str]) -> dict[str, str]:
    """Return settings as inputs; inputs that cannot be derived from them stay unchanged."""
    first = settings.jobs[0]
    again = {
        **inputs,
        "base-url": settings.base_url + "/",
        "admin-key": settings.admin_key,
        "timeout": duration(first.waiting.timeout_seconds),
        "poll-interval": duration(first.waiting.poll_interval_seconds),
        "max-poll-interval": duration(first.waiting.max_poll_interval_seconds),
        "outage-tolerance": duration(settings.outage_tolerance_seconds),
        "job-id": first.job_id or "",
    }
    if first.mode == Mode.AGENT:
        return {**again, "project-id": first.project_id or "", "require-pr": str(first.require_pr)}
    again |= {
        "domain": "\r\n".join(job.domain or "" for job in settings.jobs),
        "mask-bundle-url": str(first.delivery.mask_bundle_url).lower(),
        "min-pages": "" if first.delivery.min_pages is None else f"{first.delivery.min_pages:04}",
        "export-version": first.delivery.export_version or "",
    }
    if first.mode == Mode.EXPORT:
        again |= {
            "wait": str(first.wait).upper(),
            "start-options": "" if first.start_options is None else json.dumps(first.start_options),
            "max-parallel": f"{settings.max_parallel:03}",
        }
    return again | {name: str(place.path) for name, place in targets_of(first).items() if len(settings.jobs) == 1}


def duration(seconds: float) -> str:
    return f"{Decimal(seconds):f}s"


def read_or_none(inputs: Mapping[str, str], roots: tuple[Path, Path]) -> Settings | None:
    try:
        return read(inputs, roots)
    except InvalidInput:
        return None


@fuzz("inputs read back", base=st.sampled_from([EXPORT, COLLECT, AGENT]), changes=some_inputs(*NAMES))
def test_settings_written_as_inputs_give_the_same_settings(
    roots: tuple[Path, Path], base: dict[str, str], changes: dict[str, str]
) -> None:
    inputs = {**base, **changes}
    settings = read_or_none(inputs, roots)
    assume(settings is not None)
    assert settings is not None
    again = to_inputs(settings, inputs)
    assume(all(text == text.strip("\ufeff \t\n\r") for text in again.values()))  # inputs lose a path's trailing white space

    assert read(again, roots) == settings


@fuzz("inputs with underscores", base=bases, changes=some_inputs(*NAMES), hyphens=st.lists(st.sampled_from(NAMES)))
def test_outside_a_workflow_either_form_of_a_name_is_the_same(
    roots: tuple[Path, Path], base: dict[str, str], changes: dict[str, str], hyphens: list[str]
) -> None:
    inputs = placed({**base, **changes}, roots)
    names = {name: name if name in hyphens else name.replace("-", "_") for name in inputs}
    inside = Reader({f"INPUT_{name.upper()}": text for name, text in inputs.items()}, in_workflow=True)
    outside = Reader({f"INPUT_{names[name].upper()}": text for name, text in inputs.items()}, in_workflow=False)

    assert (outside.keys, outside.mode) == (inside.keys, inside.mode)
    assert ended(outside, roots) == ended(inside, roots)
    assert outside.warnings == inside.warnings


def ended(reader: Reader, roots: tuple[Path, Path]) -> Settings | tuple[str, ...]:
    try:
        return reader.read(roots=roots)
    except InvalidInput as error:
        return (error.summary, *error.details)


misspelled = st.builds(edited, st.sampled_from(NAMES).map(list), edits(st.sampled_from("-_aeist").map(list))).map("".join)


@fuzz("misspelled names", base=bases, name=misspelled, value=st.sampled_from(["", "5", "true", KEY]))
def test_a_misspelled_name_is_refused_or_warned_of_without_its_value(
    roots: tuple[Path, Path], base: dict[str, str], name: str, value: str
) -> None:
    assume(name not in {*NAMES, ""})
    expected = ended(Reader({f"INPUT_{known.upper()}": text for known, text in base.items()}, in_workflow=True), roots)
    reader = Reader({f"INPUT_{known.upper()}": text for known, text in {**base, name: value}.items()}, in_workflow=True)

    found = ended(reader, roots)

    close = [known for known in NAMES if not base.get(known) and is_close(name, known, min(2, len(known) // 3))]
    assert bool(close) is (found != expected)
    assert len(reader.warnings) == (0 if close else 1)
    assert KEY not in "".join([*reader.warnings, *(found if isinstance(found, tuple) else ())])


@pytest.fixture(scope="module")
def pem() -> bytes:
    return trustme.CA().cert_pem.bytes()


pem_pieces = st.sampled_from(
    [b"-----BEGIN CERTIFICATE-----\n", b"-----END CERTIFICATE-----\n", b"-----", b"\n", b"=", b"\0", b"MII"]
)
files = st.one_of(
    st.lists(st.one_of(st.just(b"{pem}"), pem_pieces, st.binary(max_size=20)), max_size=6).map(b"".join),
    mutated_bytes(st.just(b"{pem}" * 3), most=2),
)


@fuzz("certificate files", content=files, todo=st.none() | st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=3)))
def test_any_file_gives_certificates_or_none(
    roots: tuple[Path, Path], pem: bytes, content: bytes, todo: tuple[float, bytes] | None
) -> None:
    content = content.replace(b"{pem}", pem)
    if todo:
        at = int(todo[0] * len(content))
        content = content[:at] + todo[1] + content[at + len(todo[1]) :]
    (roots[0] / "file.txt").write_bytes(content)

    if rejected_inputs({**EXPORT, "ca-bundle": "file.txt"}, roots) == ["ca-bundle"]:
        assert not content or content.replace(pem, b"")
        return
    found = read({**EXPORT, "ca-bundle": "file.txt"}, roots).ca_bundle
    assert found is not None
    ssl.create_default_context(cadata=found)
    block = "(?s)-----BEGIN.*?END CERTIFICATE-----"
    given = re.sub("\r\n?", "\n", content.decode("ascii", "ignore"))
    assert {*re.findall(block, found)} <= {*re.findall(block, given)}
