"""The bundle's download over real sockets: cut, stalled, rejected, moved and resumed. It is complete, or the run fails."""

import hashlib
import os
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
import trustme

from admin_api_simulator import Fault, RecordedRequest, Simulator
from admin_api_simulator.clock import Clock, utc_now
from tests.action import Action, shell_python
from tests.ended import Ended
from tests.integration.raw import RawServer, read_request

GZIP = b"\x1f\x8b\x08"
"""The first bytes of gzip data, which are all that a download checks."""

SIZE = 2_000_000
"""Bytes of an incompressible asset, and so about the size of the bundle."""


@pytest.fixture
def platform(make_platform: Callable[..., Simulator]) -> Simulator:
    return make_platform(asset_bytes=SIZE)


def downloads(platform: Simulator) -> list[RecordedRequest]:
    return [request for request in platform.requests if request.operation == "download"]


def ranges(platform: Simulator) -> list[str | None]:
    return [request.headers.get("Range") for request in downloads(platform)]


def fetch(action: Action, platform: Simulator, *, env: Mapping[str, str] | None = None, **inputs: str) -> Ended:
    """Fetch the bundle of a finished export, with short pauses and a sufficient outage tolerance."""
    action.set_constants(http__retry__MAX_PAUSE_SECONDS=0.2)
    given = {"mode": "collect", "job_id": "export-finished", "bundle_path": "bundle", "outage_tolerance": "1m", **inputs}
    return action.run(platform, env=env, **given)


def left_in(action: Action) -> list[str]:
    return [found.name for found in action.workspace.iterdir()]


def assert_whole(ended: Ended, action: Action, content: bytes | None = None) -> bytes:
    """Check that the workspace contains only the complete bundle."""
    assert ended.exit_code == 0, ended.stdout
    saved = (action.workspace / "bundle").read_bytes()
    assert (ended.outputs["bundleSize"], ended.outputs["bundleSha256"]) == (str(len(saved)), hashlib.sha256(saved).hexdigest())
    assert content is None or saved == content
    assert left_in(action) == ["bundle"]
    return saved


def assert_failed(ended: Ended, action: Action) -> None:
    """Check that the run failed with `download-failed` and left nothing."""
    assert (ended.exit_code, ended.reason) == (1, "download-failed"), ended.stdout
    assert left_in(action) == []
    assert not {"bundleUrl", "bundlePath", "bundleSize", "bundleSha256"} & {*ended.outputs}


def original(platform: Simulator, tmp_path: Path) -> bytes:
    """Return the bundle from an undisturbed download."""
    other = tmp_path / "undisturbed"
    other.mkdir()
    return assert_whole(fetch(Action(other), platform), Action(other))


def test_it_is_saved_with_its_size_and_checksum(action: Action, platform: Simulator) -> None:
    ended = fetch(action, platform, bundle_path="dist/site.tar.gz")

    saved = (action.workspace / "dist" / "site.tar.gz").read_bytes()
    assert ended.outputs["bundlePath"] == ended.result["bundlePath"] == "dist/site.tar.gz"
    assert ended.outputs["bundleSize"] == str(ended.result["bundleSize"]) == str(len(saved))
    assert ended.outputs["bundleSha256"] == ended.result["bundleSha256"] == hashlib.sha256(saved).hexdigest()
    assert len(downloads(platform)) == 1


def assert_no_credentials(requests: list[RecordedRequest]) -> None:
    for request in requests:
        assert {*request.headers} <= {"Host", "Accept", "Accept-Encoding", "Connection", "User-Agent", "Range", "If-Range"}


def test_the_storage_gets_no_key_no_password_and_no_cookie(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform(redirect_downloads=True)
    netrc = action.workspace.parent / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    platform.script("download", Fault(headers={"Set-Cookie": "session=1; Path=/"}))
    platform.override(
        "make_bundle", lambda normal: {**normal, "bundleUrl": str(normal["bundleUrl"]).replace("://", "://me:hunter2@")}
    )

    ended = fetch(action, platform, env={"NETRC": str(netrc)})

    assert_whole(ended, action)
    assert len(downloads(platform)) == 2
    assert_no_credentials(downloads(platform))


class TestCut:
    def test_it_resumes_after_each_of_ten_cuts(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        content = original(platform, tmp_path)
        cuts = [100_001, 1, 70_000, 300_000, 65_536, 5, 250_003, 99_999, 400_000, 123_456]
        before = len(downloads(platform))
        platform.script("download", *(Fault(cut="in_body", cut_after_bytes=count) for count in cuts))

        ended = fetch(action, platform)

        assert_whole(ended, action, content)
        begins = [sum(cuts[:number]) for number in range(1, len(cuts) + 1)]
        assert ranges(platform)[before:] == [None, *(f"bytes={begin}-" for begin in begins)]
        etags = {request.headers.get("If-Range") for request in downloads(platform)[before + 1 :]}
        assert len(etags) == 1

    def test_it_resumes_a_redirected_download_by_its_date(
        self, action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
    ) -> None:
        platform = make_platform(asset_bytes=SIZE, etags="none", redirect_downloads=True)
        content = original(platform, tmp_path)
        platform.script("download", None, Fault(cut="in_body", cut_after_bytes=700_000))

        assert_whole(fetch(action, platform), action, content)
        assert ranges(platform)[-2:] == ["bytes=700000-", "bytes=700000-"]

    @pytest.mark.parametrize("framing", ["length", "chunked", "close"])
    def test_it_resumes_whatever_marks_the_end(
        self, action: Action, platform: Simulator, tmp_path: Path, framing: Literal["length", "chunked", "close"]
    ) -> None:
        content = original(platform, tmp_path)
        platform.override("make_bundle", lambda normal: {**normal, "sizeBytes": 17})  # no API document promises it
        platform.script("download", Fault(framing="chunked", cut="in_body", cut_after_bytes=700_000), Fault(framing=framing))

        assert_whole(fetch(action, platform), action, content)
        assert ranges(platform)[-2:] == [None, "bytes=700000-"]

    @pytest.mark.parametrize(
        ("fault", "constant", "seconds", "resumed"),
        [
            (Fault(stall_after_bytes=20_000), "bundle__storage__IDLE_SECONDS", 3.0, r"bytes=20000-"),
            (Fault(drip_seconds=0.05), "bundle__storage__HEAD_SECONDS", 3.0, "None"),
            (Fault(drip_seconds=0.001), "bundle__stream__SLOW_SECONDS", 0.3, r"bytes=\d+-"),
        ],
        ids=["stalled", "no end of the head", "slow"],
    )
    def test_a_connection_that_is_too_slow_counts_as_cut(
        self, action: Action, make_platform: Callable[..., Simulator], fault: Fault, constant: str, seconds: float, resumed: str
    ) -> None:
        platform = make_platform(asset_bytes=50_000)
        platform.script("download", fault)
        action.set_constants(**{constant: seconds})

        assert_whole(fetch(action, platform), action)
        assert re.fullmatch(f"None, {resumed}", ", ".join(map(str, ranges(platform))))

    @pytest.mark.parametrize(("cuts", "end"), [(2, assert_whole), (3, assert_failed)])
    def test_a_storage_that_does_not_resume_is_asked_for_all_of_it_three_times(
        self, action: Action, make_platform: Callable[..., Simulator], cuts: int, end: Callable[[Ended, Action], object]
    ) -> None:
        platform = make_platform(asset_bytes=SIZE, ranges=False)
        platform.script("download", *[Fault(cut="in_body"), None] * cuts)

        end(fetch(action, platform), action)

        assert len(downloads(platform)) == 5 + (cuts == 3)


HEAD = b"HTTP/1.1 200 OK\r\n"


class ScriptedStorage:
    """A storage that sends one of the responses on each connection and closes it; the last response repeats."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.requests: list[bytes] = []

    def __call__(self, connection: socket.socket) -> None:
        self.requests.append(read_request(connection))
        connection.sendall(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])


def fetch_from(action: Action, platform: Simulator, storage: RawServer, **inputs: str) -> Ended:
    """Fetch a bundle for which the API returns only the link."""
    platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle?X-Signature=0123456789abcdef0123"})
    return fetch(action, platform, **inputs)


CONTENT = GZIP.ljust(5000, b"x")


class TestMalformedResponses:
    @pytest.mark.parametrize(
        "answer",
        [
            HEAD + b"Content-Length: 1_0\r\n\r\n" + GZIP + b"x" * 17,
            HEAD + b"Content-Length: +10\r\n\r\n" + GZIP + b"x" * 17,
            HEAD + b"Content-Length: 10\r\nContent-Length: 20\r\n\r\n" + GZIP + b"x" * 17,
            HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n3\r\n" + GZIP + b"\r\n0\r\n\r\n",
            HEAD + b"Content-Length: 0\r\n\r\n",
            HEAD + b"Content-Length: 10\r\n\r\n" + GZIP,
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + GZIP,
            *(
                HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\n" + GZIP + b"x" * 17 + b"\r\n0\r\n\r\n"
                for size in (b"-1", b"13")
            ),
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n14\r\n" + GZIP + b"x" * 17 + b"\r\n",
        ],
    )
    def test_a_response_that_may_be_incomplete_is_rejected(self, action: Action, platform: Simulator, answer: bytes) -> None:
        with RawServer(ScriptedStorage(answer)) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_failed(ended, action)

    @pytest.mark.parametrize(
        "answer",
        [
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n5;",
            b"HTTP/1.1 202 Accepted\r\n\r\n",
            b"HTTP/1.1 403 Forbidden\r\n\r\n",
        ],
    )
    def test_an_endless_response_fails_the_run(self, action: Action, platform: Simulator, answer: bytes) -> None:
        action.set_constants(
            bundle__stream__SLOW_SECONDS=0.3, bundle__storage__HEAD_SECONDS=0.3, http__retry__MIN_ATTEMPT_SECONDS=0.3
        )

        def drip(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(answer)
            while True:
                connection.sendall(b"X-A: b\r\n" if answer.endswith(b"0\r\n") else b"x")
                time.sleep(0.02)

        with RawServer(drip) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_failed(ended, action)


class TestLink:
    def test_one_that_expires_midway_is_replaced_and_the_download_resumed(
        self, action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
    ) -> None:
        later = timedelta()
        platform = make_platform(asset_bytes=SIZE, link_seconds=3600, clock=Clock(now=lambda: utc_now() + later))
        content = original(platform, tmp_path)
        before = len(downloads(platform))
        platform.script("download", Fault(stall_after_bytes=600_000))
        action.set_constants(bundle__storage__IDLE_SECONDS=3.0)  # stalls until the action aborts it, after an hour has passed

        with action.start(
            platform, mode="collect", job_id="export-finished", bundle_path="bundle", outage_tolerance="1m"
        ) as running:
            while not any(request.status for request in downloads(platform)[before:]):
                time.sleep(0.005)  # waits until the simulator has prepared its response, which must not change
            later = timedelta(hours=1)
            ended = running.wait()

        assert_whole(ended, action, content)
        assert ranges(platform)[before:] == [None, "bytes=600000-", "bytes=600000-"]
        assert "X-Amz-Security-Token=session%2B3" in ended.outputs["bundleUrl"], "the output is the link that works"


class Tunnel:
    """An HTTPS proxy that is also the storage behind it, and records the requests to both."""

    def __init__(self, authority: trustme.CA, host: str, content: bytes) -> None:
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert(host).configure_cert(self._tls)
        self._content = content
        self.connects: list[bytes] = []
        self.requests: list[bytes] = []

    def __call__(self, connection: socket.socket) -> None:
        self.connects.append(read_request(connection))
        connection.sendall(b"HTTP/1.1 200 Go on\r\n\r\n")
        with self._tls.wrap_socket(connection.dup(), server_side=True) as secured:
            self.requests.append(read_request(secured))
            head = HEAD + b'ETag: "a"\r\nContent-Length: %d\r\n\r\n' % len(self._content)
            half = len(self._content) // 2
            if len(self.requests) == 1:
                secured.sendall(head + self._content[:half])
                return
            span = b"Content-Range: bytes %d-%d/%d\r\n" % (half, len(self._content) - 1, len(self._content))
            length = b"Content-Length: %d\r\n\r\n" % (len(self._content) - half)
            secured.sendall(b"HTTP/1.1 206 Partial\r\n" + b'ETag: "a"\r\n' + span + length + self._content[half:])


def test_a_download_through_a_proxy_is_resumed_and_the_proxy_does_not_see_the_link(action: Action, platform: Simulator) -> None:
    authority, content = trustme.CA(), GZIP + os.urandom(400_000)
    (action.workspace.parent / "temporary").mkdir()
    ca = action.workspace.parent / "temporary" / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    tunnel = Tunnel(authority, "storage.docs.invalid", content)
    link = "https://storage.docs.invalid/bundle?X-Signature=0123456789abcdef0123"
    platform.override("make_bundle", {"bundleUrl": link})

    with RawServer(tunnel) as proxy:
        env = {"HTTPS_PROXY": proxy.base_url, "RUNNER_TEMP": str(ca.parent)}
        ended = fetch(action, platform, env=env, ca_bundle=str(ca))

    assert_whole(ended, action, content)
    connects = {request.splitlines()[0].rpartition(b" ")[0] for request in tunnel.connects}
    requested = [request.splitlines()[0] for request in tunnel.requests]
    assert connects == {b"CONNECT storage.docs.invalid:443"}
    assert not any(b"X-Signature" in request or b"Authorization" in request for request in tunnel.connects)
    assert requested == [b"GET /bundle?X-Signature=0123456789abcdef0123 HTTP/1.1"] * 2
    assert not any(b"authorization" in request.lower() for request in tunnel.requests)


@pytest.mark.parametrize(
    ("fault", "requests"),
    [
        (Fault(status=302, headers={"Location": "http://storage.example.com/bundle?secret=1"}), 1),
        (Fault(status=307, headers={"Location": "/again"}), 6),
        (Fault(status=451, body="no"), 1),
    ],
    ids=["an unsafe redirect", "a redirect loop", "a permanent error"],
)
def test_what_a_retry_cannot_change_fails_the_run(action: Action, platform: Simulator, fault: Fault, requests: int) -> None:
    platform.script_forever("download", fault)

    assert_failed(fetch(action, platform), action)
    assert len(downloads(platform)) == requests


def test_a_disk_that_is_too_small_fails_the_run(action: Action, platform: Simulator, tmp_path: Path) -> None:
    action.python = shell_python(tmp_path, 'ulimit -f 1000 && exec "$python" "$@"')

    assert_failed(fetch(action, platform), action)
    assert len(downloads(platform)) == 1


def test_the_link_that_becomes_the_output_is_masked(action: Action, platform: Simulator) -> None:
    platform.script("download", Fault(status=403))  # so that a second link is needed

    ended = fetch(action, platform, mask_bundle_url="true")

    masks = [command.value for command in ended.commands if command.name == "add-mask"]
    assert platform.count("make_bundle") == 2
    assert masks == [ended.outputs["bundleUrl"]] == [ended.result["bundleUrl"]]
