"""The search after every test finds the key and the signatures of links only where they do not belong."""

import base64
from pathlib import Path

import pytest
from multidict import CIMultiDict

from admin_api_simulator.recording import RecordedRequest
from tests.keys import ADMIN_KEY
from tests.search import USER_AGENT_PREFIX, Search

SIGNATURE = "5f" * 32
LINK = f"https://storage.example.com/b.tar.gz?X-Amz-Expires=60&X-Amz-Signature={SIGNATURE}"


def request(operation: str, *, path: str = "/x", query: str = "", body: bytes = b"", **headers: str) -> RecordedRequest:
    given = CIMultiDict({"User-Agent": f"{USER_AGENT_PREFIX}1.0", **headers})
    return RecordedRequest(operation=operation, method="GET", path=path, query=query, headers=given, body=body)


@pytest.fixture
def search() -> Search:
    return Search(signatures={SIGNATURE})


def test_harmless_text_is_accepted(search: Search, tmp_path: Path) -> None:
    search.remember("all is well")

    assert search.found(tmp_path) == []


def test_the_key_is_found_in_a_text(search: Search, tmp_path: Path) -> None:
    search.remember(base64.b64encode(f"x:{ADMIN_KEY}".encode()).decode(), where="stderr")

    assert search.found(tmp_path) == ["stderr holds the key, base64 after 2"]


def test_the_key_of_a_run_is_found(search: Search, tmp_path: Path) -> None:
    search.keys.add("another-key-9f27")
    search.remember("another-key-9f27", where="stdout")

    assert search.found(tmp_path) == ["stdout holds the key, unencoded"]


def test_the_command_that_masks_the_key_is_accepted(search: Search, tmp_path: Path) -> None:
    search.keys.add("per%cent-key")
    search.remember(f"::add-mask::{ADMIN_KEY}\nx\n")
    search.remember("::add-mask::per%25cent-key\nx\n")

    assert search.found(tmp_path) == []


@pytest.mark.parametrize("log", ["::add-mask::{0}\n::add-mask::{0}\n", " ::add-mask::{0}\n", "::debug::{0}\n"])
def test_the_key_is_found_in_any_other_command(search: Search, tmp_path: Path, log: str) -> None:
    search.remember(log.format(ADMIN_KEY), where="stdout")

    assert search.found(tmp_path) == ["stdout holds the key, unencoded"]


@pytest.mark.parametrize("where", ["stdout", "stderr", "the summary", "the process's arguments"])
def test_a_signature_is_found_in_a_text(search: Search, tmp_path: Path, where: str) -> None:
    search.remember(LINK, where=where)

    assert search.found(tmp_path) == [f"{where} holds a link's signature, unencoded"]


@pytest.mark.parametrize(
    "text",
    ["::add-mask::LINK\n", "bundleUrl=LINK\n", 'results=[{"bundleUrl": "LINK"}]\n', "bundleUrl<<d\nLINK\nd\n"],
)
def test_a_printed_link_is_accepted_where_it_belongs(search: Search, tmp_path: Path, text: str) -> None:
    search.remember(f"x\n{text.replace('LINK', LINK)}y\n")

    assert search.found(tmp_path) == []


def test_a_link_belongs_in_outputs(search: Search, tmp_path: Path) -> None:
    search.remember(LINK, holds_links=True)

    assert search.found(tmp_path) == []


def test_signatures_from_outputs_are_searched_for(tmp_path: Path) -> None:
    search = Search()
    search.remember(SIGNATURE, where="the summary")
    search.remember(LINK, holds_links=True)

    assert search.found(tmp_path) == ["the summary holds a link's signature, unencoded"]


@pytest.mark.parametrize("name", ["home/.cache", "workspace/site/index.html", "output", "values.yaml"])
def test_the_key_is_found_in_a_file(search: Search, tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("left")  # the test's own `tmp_path` is searched after the test
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"\xff" + ADMIN_KEY.encode("utf-16-le"))

    assert search.found(folder) == [f"{name} holds the key, UTF-16-LE"]


def test_a_signature_is_found_in_a_file(search: Search, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(f"bundleUrl: {LINK}\n")

    assert search.found(tmp_path) == ["values.yaml holds a link's signature, unencoded"]


@pytest.mark.parametrize(
    ("name", "content"), [("output", "bundleUrl<<d\n{}\nd\n"), ("v", "# Static export\nstaticExport:\n  bundleUrl: {}\n")]
)
def test_a_signature_in_outputs_and_helm_values_is_accepted(search: Search, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content.format(LINK))

    assert search.found(tmp_path) == []


def test_an_authorization_belongs_to_the_api(search: Search, tmp_path: Path) -> None:
    search.requests.append(request("read_export", Authorization=f"Bearer {ADMIN_KEY}"))

    assert search.found(tmp_path) == []


def test_a_link_belongs_to_the_storage(search: Search, tmp_path: Path) -> None:
    search.requests.append(request("download", query=LINK.partition("?")[2]))

    assert search.found(tmp_path) == []


def test_an_authorization_is_found_in_a_request_to_the_storage(search: Search, tmp_path: Path) -> None:
    search.requests.append(request("download", Authorization="Bearer other"))

    assert search.found(tmp_path) == ["a request to the storage, GET /x, holds an Authorization"]


@pytest.mark.parametrize(
    "part", [{"path": f"/{ADMIN_KEY}"}, {"query": ADMIN_KEY}, {"body": ADMIN_KEY.encode()}, {"Referer": ADMIN_KEY}]
)
@pytest.mark.parametrize("operation", ["download", "read_export"])
def test_the_key_is_found_in_any_part_of_a_request(search: Search, tmp_path: Path, operation: str, part: dict[str, str]) -> None:
    search.requests.append(request(operation, **part))

    assert [finding.endswith("holds the key, unencoded") for finding in search.found(tmp_path)] == [True]


def test_a_signature_is_found_in_a_request_to_the_api(search: Search, tmp_path: Path) -> None:
    search.requests.append(request("read_export", query=LINK))

    assert search.found(tmp_path) == ["a request to the API, GET /x, holds a link's signature, unencoded"]


def test_requests_of_the_test_itself_are_not_searched(search: Search, tmp_path: Path) -> None:
    search.requests.append(request("download", Authorization="Bearer x", **{"User-Agent": "curl"}))

    assert search.found(tmp_path) == []
