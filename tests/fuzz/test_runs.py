"""Whole runs in virtual time on a platform with arbitrary responses and errors.

Each ends as the contract allows, and in time.
"""

import socket
from typing import Any, Final

from hypothesis import strategies as st

from admin_api_simulator import Fault
from docs_platform_action.errors import ActionError
from tests.action import run_virtually
from tests.archives import KINDS, SMALL_SITE
from tests.forms import BY_PROJECT, FORMS, by_project
from tests.fuzz import fuzz
from tests.fuzz.mutation import mutated_bytes
from tests.fuzz.test_answers import contents, encoded, header_values
from tests.virtual_platform import Sent, VirtualPlatform
from tests.virtual_time import VirtualClock

REASONS: Final = {kind.failure_reason for kind in ActionError.__subclasses__()} - {
    "internal-error",
    "cancelled",
    "invalid-input",
}
TIMEOUT: Final = 60
TOLERANCE: Final = 30
LONGEST_SECONDS: Final = 20 * 60.0
"""The longest run of one domain with the inputs below.

It follows from the limits of docs/how-it-waits.md, with renewed links.
"""

headers = st.dictionaries(
    st.sampled_from(["Retry-After", "Location", "X-Request-Id", "Content-Type", "ETag"]),
    header_values.filter(lambda text: text.isprintable() and text.isascii()),
    max_size=2,
)
responses = st.builds(
    lambda status, body, found: Fault(status=status, body=body, headers=found),
    st.sampled_from([200, 200, 200, 202, 302, 400, 404, 409, 429, 500, 503]),
    encoded
    | contents
    | st.sampled_from([b"", b"[]", b"null", b'"text"', b'{"error": {"message": 1}}']),
    headers,
)
archives = mutated_bytes(st.sampled_from([KINDS["tar.gz"](SMALL_SITE), KINDS["zip"](SMALL_SITE)]))
downloads = responses | st.builds(lambda body: Fault(status=200, body=body), archives)
errors = st.sampled_from(
    [
        ConnectionRefusedError(111, "refused"),
        socket.gaierror(socket.EAI_NONAME, "unknown"),
        TimeoutError(),
        Fault(cut="before_response"),
        Fault(cut="in_body"),
        Fault(delay_seconds=10**6),
    ]
)


class Troubled:
    """What happens to the requests of each operation, in turn; then they succeed."""

    def __init__(self, troubles: dict[str, list[Any]]) -> None:
        self._left = {operation: list(turns) for operation, turns in troubles.items()}

    def __call__(self, sent: Sent) -> Any:
        left = self._left[operation_of(sent)]
        return left.pop(0) if left else None


def operation_of(sent: Sent) -> str:
    if not sent.url.startswith(VirtualPlatform.base_url):
        return "download"
    if sent.target.endswith("/bundle"):
        return "bundle"
    if sent.method == "POST":
        return "start"
    return "read"


def turns(strategy: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.none() | errors | strategy, max_size=most)


@fuzz(
    125,
    troubles=st.fixed_dictionaries(
        {
            "start": turns(responses, 1),
            "read": turns(responses, 4),
            "bundle": turns(responses, 2),
            "download": turns(downloads, 3),
        }
    ),
    domains=st.integers(1, 4),
    seed=st.integers(0, 99),
    form=st.sampled_from(FORMS),
)
def test_every_run_ends_as_the_contract_allows(
    troubles: dict[str, list[Any]], domains: int, seed: int, form: str
) -> None:
    clock = VirtualClock(seed=seed)
    platform = VirtualPlatform(clock, trouble=Troubled(troubles))
    inputs = {
        "domain": "\n".join(f"docs-{number}.example.com" for number in range(domains)),
        "timeout": f"{TIMEOUT}s",
        "outage-tolerance": f"{TOLERANCE}s",
        "bundle-path": "{domain}.bundle",
        "site-path": "sites/{domain}",
    }

    if form == BY_PROJECT:
        inputs = by_project(inputs)

    ended = run_virtually(platform, inputs, seed=seed)

    failed = [row for row in ended.results if row["failureReason"]]
    assert {row["failureReason"] for row in failed} <= REASONS
    assert failed == [] or any(any(turns) for turns in troubles.values())
    assert ended.exit_code == (1 if failed else 0)
    assert len(ended.errors) == len(failed)
    assert "Traceback" not in ended.stdout
    assert clock.elapsed < LONGEST_SECONDS * domains
    sites = {path.split("/")[1] for path in ended.left if path.startswith("sites/")}
    assert sites == {row["domain"] for row in ended.results if not row["failureReason"]}
