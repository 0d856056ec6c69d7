"""Inputs: every environment gives a plan within the contract, or an error that names the invalid inputs."""

import json
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
import requests
import trustme
from hypothesis import assume, example
from hypothesis import strategies as st

from docs_platform_action.api.client import ApiClient
from docs_platform_action.errors import InvalidInput
from docs_platform_action.http.transport import Request, Timeouts
from docs_platform_action.inputs.reader import read_plan
from docs_platform_action.inputs.settings import INPUTS, AgentSettings, ExportSettings, Plan
from docs_platform_action.inputs.validators import MAX_DURATION_SECONDS
from tests.fuzz import fuzz
from tests.fuzz.mutation import HOSTILE_TEXTS, mutated_bytes, mutated_text
from tests.unit.fakes import FakeTransport, http_client
from tests.virtual_platform import Sent

KEY: Final = "K3Y-9Q27X1Z4W8V05J63"
"""A key whose parts do not occur in messages."""

EXPORT: Final = {"base-url": "https://api.example.com", "admin-key": KEY, "domain": "docs.example.com"}
AGENT: Final = {"mode": "agent", "base-url": "https://api.example.com", "admin-key": KEY, "project-id": "prj_1", "job-id": "aj_1"}

DURATIONS: Final = ("500ms", "1s", "30s", "45", "0.5", "15m", "1h30m", "1.5h", "840h", "0s", "841h", "1ms", "soon")
DOMAINS: Final = (
    *("docs.example.com", "a.example.com\nb.example.com", "a.example.com\n\n b.example.com:8443 \n", "localhost:3000", "a_b"),
    *("https://docs.example.com/start", "a.example.com, b.example.com", "a.example.com\nA.example.com:080\na.example.com:80"),
    *("müller.example", "Straße.example:8443", "\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.example", "docs.example.com."),
    *("*.example.com", "me:pw@docs.example.com", "\n".join(f"d{n}.example.com" for n in range(30))),
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
    *("x/" * 3000 + "x",),
)
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "mode": ("export", "agent", "Export", "import"),
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
NAMES: Final = [known.name for known in INPUTS]


def text_with_key(part: str, how: str) -> str:
    """Return a text that contains the key in the given way."""
    return {
        "whole": KEY,
        "between": f"{part}{KEY}{part}",
        "invisible": f"{KEY[:6]}\u200b{KEY[6:]}",
        "address": f"https://{KEY}.example.com/{part}",
        "user": f"https://{part}:{KEY}@docs.example.com",
        "small": KEY.lower(),
        "wide": "".join(chr(ord(character) + 0xFEE0) for character in KEY),
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
            st.sampled_from(["whole", "between", "invisible", "address", "user", "small", "wide", "list"]),
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


def read(inputs: Mapping[str, str], roots: tuple[Path, Path]) -> Plan:
    workspace, temp = (str(root) for root in roots)
    placed = {name: text.replace("{workspace}", workspace).replace("{temp}", temp) for name, text in inputs.items()}
    return read_plan({f"INPUT_{name.upper()}": text for name, text in placed.items()}, roots=roots)


def named_in(error: InvalidInput, inputs: Mapping[str, str]) -> list[str]:
    """Return the inputs that an error names; check that it has a reason for each, and does not contain the key."""
    message = "\n".join([error.summary, *error.details, error.cause, error.remedy])
    elsewhere = "".join(text for name, text in inputs.items() if name != "admin-key")
    if inputs.get("admin-key") == KEY or KEY not in "".join(filter(str.isprintable, elsewhere)):
        assert KEY not in message
    assert len(message) < 20_000
    if one := re.match("Invalid input `([a-z-]+)`: .", error.summary):
        names = [one[1]]
        assert not error.details
    else:
        count = re.match(r"(\d+) invalid inputs: ", error.summary)
        assert count is not None
        assert int(count[1]) == len(error.details)
        names = re.findall("`([a-z-]+)`", error.summary)
        facts = [re.match("`([a-z-]+)`: .", fact) for fact in error.details]
        assert [*dict.fromkeys(match[1] for match in facts if match)] == names
    assert names == sorted(set(names), key=NAMES.index)
    return names


def rejected_inputs(inputs: Mapping[str, str], roots: tuple[Path, Path]) -> list[str]:
    try:
        read(inputs, roots)
    except InvalidInput as error:
        return named_in(error, inputs)
    return []


def check(plan: Plan, roots: tuple[Path, Path]) -> None:
    """Check that a plan is valid within the contract."""
    assert plan.jobs
    assert 1 <= plan.max_parallel <= 100
    assert len({job.waiting for job in plan.jobs}) == 1
    first = plan.jobs[0]
    seconds = (
        *(first.waiting.timeout_seconds, first.waiting.shortest_pause_seconds, first.waiting.longest_pause_seconds),
        plan.outage_tolerance_seconds,
    )
    assert all(0 < duration <= MAX_DURATION_SECONDS for duration in seconds)
    assert first.waiting.shortest_pause_seconds <= first.waiting.longest_pause_seconds
    assert re.fullmatch(r"[\x21-\x7e]+", plan.admin_key)
    assert plan.admin_key not in repr(plan) or len(plan.admin_key) < 8
    check_address(plan.base_url)
    if isinstance(first, AgentSettings):
        assert len(plan.jobs) == 1
        assert is_identifier(first.project_id)
        assert is_identifier(first.job_id)
        return
    exports = [job for job in plan.jobs if isinstance(job, ExportSettings)]
    assert len(exports) == len(plan.jobs)
    check_exports(exports, roots)
    check_start_request(first, plan)


def check_address(url: str) -> None:
    parts = urlsplit(url)
    assert parts.scheme == "https" or parts.hostname == "localhost" or ip_address(str(parts.hostname)).is_loopback
    assert (parts.username, parts.password, parts.query, parts.fragment) == (None, None, "", "")
    assert not url.endswith("/")
    assert parts.port is None or 0 < parts.port < 65536
    assert ".." not in parts.path.split("/")


def is_identifier(text: str | None) -> bool:
    return bool(text) and not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", str(text))


def check_exports(exports: list[ExportSettings], roots: tuple[Path, Path]) -> None:
    domains = [job.domain for job in exports]
    assert all(domain is None or re.fullmatch(r"[A-Za-z0-9_.-]+(:[0-9]+)?", domain) for domain in domains)
    assert len({str(domain).lower() for domain in domains}) == len(domains)
    assert len({job.job_id for job in exports}) == 1
    assert exports[0].job_id is None or (is_identifier(exports[0].job_id) and len(exports) == 1 and exports[0].wait)
    assert exports[0].job_id is not None or None not in domains
    assert "domain" not in exports[0].start_options
    places = [
        place for job in exports for place in (job.delivery.bundle, job.delivery.site, job.delivery.values) if place is not None
    ]
    resolved = [root.resolve() for root in roots]
    for place in places:
        assert place.root in resolved
        assert place.path.resolve() == place.path
        assert place.path.is_relative_to(place.root)
        assert is_identifier(str(place.path))
    for number, place in enumerate(places):
        assert not any(other.path.is_relative_to(place.path) for other in places[:number] + places[number + 1 :])


def check_start_request(settings: ExportSettings, plan: Plan) -> None:
    """Check the address, the key and the body of the start request."""
    adapter = FakeTransport()
    client = ApiClient(http_client(adapter), base_url=plan.base_url, key=plan.admin_key)
    client.send(Request(method="POST", url="/v1/jobs", body={**settings.start_options, "domain": "d"}), Timeouts())
    (request,) = adapter.requests

    assert isinstance(request, Sent)
    assert request.target == f"{urlsplit(plan.base_url).path}/v1/jobs"
    assert request.headers["Authorization"] == f"Bearer {plan.admin_key}"
    assert json.loads(request.body or b"") == {**settings.start_options, "domain": "d"}
    assert str(request.url).lower().startswith(str(prepared(plan.base_url)).lower().rstrip("/"))


def prepared(url: str) -> str | None:
    """Return a URL as `requests` prepares it."""
    request = requests.PreparedRequest()
    request.prepare(method="GET", url=url)
    return request.url


bases = st.sampled_from([EXPORT, EXPORT, AGENT, {}])


@fuzz("inputs", base=bases, changes=some_inputs(*NAMES))
@example(EXPORT, {"domain": f"{KEY[:6]}\u200b{KEY[6:]}"})
@example(EXPORT, {"start-options": '{"a":' * 960 + "1" + "}" * 960})
def test_any_inputs_give_a_plan_or_an_error(roots: tuple[Path, Path], base: dict[str, str], changes: dict[str, str]) -> None:
    inputs = {**base, **changes}
    try:
        plan = read(inputs, roots)
    except InvalidInput as error:
        named_in(error, inputs)
    else:
        check(plan, roots)


@pytest.mark.parametrize("name", NAMES)
def test_each_base_value_gives_a_plan_or_an_error(roots: tuple[Path, Path], name: str) -> None:
    for base in (EXPORT, AGENT):
        for text in VALUES[name]:
            if not rejected_inputs({**base, name: text}, roots):
                check(read({**base, name: text}, roots), roots)


SINGLE: Final = [name for name in NAMES if name not in {"mode", "admin-key", "max-poll-interval", "job-id"}]
"""Inputs whose validity does not depend on others."""


@fuzz("inputs wrong together", base=st.sampled_from([EXPORT, AGENT]), changes=some_inputs(*SINGLE, most=6))
def test_an_invalid_input_is_also_named_among_others(
    roots: tuple[Path, Path], base: dict[str, str], changes: dict[str, str]
) -> None:
    changes = {name: text for name, text in changes.items() if "{domain}" not in text and KEY not in text}
    alone = {name for name, text in changes.items() if name in rejected_inputs({**base, name: text}, roots)}

    assert alone <= {*rejected_inputs({**base, **changes}, roots)}

    # with an unknown mode no input is missing; like the action, strip every white space, such as U+0085
    given = {name for name in alone if changes[name].strip().strip("\ufeff").strip()}
    assert given <= {*rejected_inputs({**base, **changes, "mode": "import"}, roots)}


def to_inputs(plan: Plan, inputs: Mapping[str, str]) -> dict[str, str]:
    """Return a plan as inputs; inputs that cannot be derived from it stay unchanged."""
    first = plan.jobs[0]
    again = {
        **inputs,
        "base-url": plan.base_url + "/",
        "admin-key": plan.admin_key,
        "timeout": duration(first.waiting.timeout_seconds),
        "poll-interval": duration(first.waiting.shortest_pause_seconds),
        "max-poll-interval": duration(first.waiting.longest_pause_seconds),
        "outage-tolerance": duration(plan.outage_tolerance_seconds),
        "job-id": first.job_id or "",
    }
    if isinstance(first, AgentSettings):
        return {**again, "project-id": first.project_id, "require-pr": str(first.require_pr)}
    domains = [job.domain for job in plan.jobs if isinstance(job, ExportSettings)]
    again |= {
        "domain": "\r\n".join(domain or "" for domain in domains),
        "wait": str(first.wait).upper(),
        "mask-bundle-url": str(first.delivery.mask_bundle_url).lower(),
        "start-options": json.dumps(first.start_options) if first.start_options else "",
        "max-parallel": f"{plan.max_parallel:03}",
        "min-pages": "" if first.delivery.min_pages is None else f"{first.delivery.min_pages:04}",
        "export-version": first.delivery.version or "",
    }
    places = {"bundle-path": first.delivery.bundle, "site-path": first.delivery.site, "values-file": first.delivery.values}
    if len(domains) == 1:
        again |= {name: str(place.path) for name, place in places.items() if place is not None}
    return again


def duration(seconds: float) -> str:
    return f"{Decimal(seconds):f}s"


@fuzz("inputs read back", base=st.sampled_from([EXPORT, AGENT]), changes=some_inputs(*NAMES))
def test_a_plan_written_as_inputs_gives_the_same_plan(
    roots: tuple[Path, Path], base: dict[str, str], changes: dict[str, str]
) -> None:
    inputs = {**base, **changes}
    try:
        plan = read(inputs, roots)
    except InvalidInput:
        plan = None
    assume(plan is not None)
    assert plan is not None
    again = to_inputs(plan, inputs)
    assume(all(text == text.strip("\ufeff \t\n\r") for text in again.values()))  # inputs lose a path's trailing white space

    assert read(again, roots) == plan


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
    found = read({**EXPORT, "ca-bundle": "file.txt"}, roots).authorities_pem
    assert found is not None
    ssl.create_default_context(cadata=found)
    block = "(?s)-----BEGIN.*?END CERTIFICATE-----"
    assert {*re.findall(block, found)} <= {*re.findall(block, content.decode("ascii", "ignore"))}
