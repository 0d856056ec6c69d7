"""The search after every test finds the key and the signatures of links, but not where they belong."""

import pytest
from multidict import CIMultiDict

from admin_api_simulator.recording import RecordedRequest
from docs_platform_action.text import clean, markdown
from tests.keys import ADMIN_KEY, AWKWARD_KEYS
from tests.leaks import ENCODERS, leaked
from tests.search import USER_AGENT_PREFIX, Search

SIGNATURE = "5f" * 32
LINK = f"https://storage.example.com/b.tar.gz?X-Amz-Expires=60&X-Amz-Signature={SIGNATURE}"


@pytest.mark.parametrize("form", ENCODERS)
def test_a_key_is_found_in_every_form_wherever_it_is_written(form: str) -> None:
    for key in AWKWARD_KEYS:
        text = f"a {ENCODERS[form](key)} b"

        assert all(leaked(key, written) for written in (text, text.encode(), clean(text), markdown(text)))
        assert not leaked(key, text.replace(ENCODERS[form](key), ENCODERS[form](key[1:])))


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("all is well", False),
        (f"::add-mask::{ADMIN_KEY}\nx\n", False),
        (f"::add-mask::{ADMIN_KEY}\n::add-mask::{ADMIN_KEY}\n", True),
        (f"::debug::{ADMIN_KEY}\n", True),
        (LINK, True),
        (f"::add-mask::{LINK}\nx\n", False),
        (f"x\nbundleUrl={LINK}\n", False),
    ],
)
def test_texts_are_searched(text: str, is_found: bool) -> None:
    search = Search(signatures={SIGNATURE})
    search.remember(text)

    assert bool(search.found(None)) == is_found


def test_signatures_from_outputs_are_searched_for_elsewhere() -> None:
    search = Search()
    search.remember(LINK, holds_links=True)
    assert search.found(None) == []

    search.remember(SIGNATURE)

    assert len(search.found(None)) == 1


@pytest.mark.parametrize(
    ("name", "content", "is_found"),
    [
        ("home/.cache", b"\xff" + ADMIN_KEY.encode(), True),
        ("output", ADMIN_KEY.encode(), True),
        ("output", LINK.encode(), False),
        ("page.html", LINK.encode(), True),
        ("values.yaml", f"# Static export\nstaticExport:\n  bundleUrl: {LINK}\n".encode(), False),
    ],
)
def test_files_are_searched(tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes, is_found: bool) -> None:
    folder = tmp_path_factory.mktemp("left")  # the test's own `tmp_path` is searched after the test
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)

    assert bool(Search(signatures={SIGNATURE}).found(folder)) == is_found


@pytest.mark.parametrize(
    ("operation", "headers", "query", "is_found"),
    [
        ("read_export", {"Authorization": f"Bearer {ADMIN_KEY}"}, "", False),
        ("download", {"Authorization": "Bearer other"}, "", True),
        ("download", {"Referer": ADMIN_KEY}, "", True),
        ("download", {}, LINK, False),
        ("read_export", {}, LINK, True),
        ("read_export", {}, ADMIN_KEY, True),
        ("download", {"Authorization": "Bearer x", "User-Agent": "curl"}, "", False),
    ],
)
def test_requests_of_the_action_are_searched(operation: str, headers: dict[str, str], query: str, is_found: bool) -> None:
    sent = CIMultiDict({"User-Agent": f"{USER_AGENT_PREFIX}1.0"})
    sent.update(headers)
    request = RecordedRequest(operation=operation, method="GET", path="/x", query=query, headers=sent, body=b"")

    assert bool(Search(signatures={SIGNATURE}, requests=[request]).found(None)) == is_found
