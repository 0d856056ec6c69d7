"""The bundle's download over real sockets: cut, stalled, rejected, moved and resumed. It is complete, or the run fails."""

import gzip
import hashlib
import json
import os
import socket
import ssl
import time
import zlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from admin_api_simulator import Fault, RecordedRequest, Simulator
from admin_api_simulator.clock import Clock, utc_now
from tests.action import Action, shell_python
from tests.archives import KINDS, Site
from tests.ended import Ended
from tests.integration.raw import RawServer, read_request
from tests.ports import refusing_port

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
    given = {"job_id": "export-finished", "bundle_path": "bundle", "outage_tolerance": "1m", **inputs}
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


def assert_failed(ended: Ended, action: Action, *parts: str) -> None:
    """Check that the run failed with `download-failed` and left nothing."""
    assert (ended.exit_code, ended.reason) == (1, "download-failed"), ended.stdout
    for text in parts:
        assert text in ended.error
    assert left_in(action) == []
    assert not {"bundleUrl", "bundlePath", "bundleSize", "bundleSha256"} & {*ended.outputs}
    assert "makes its bundle link without exporting again" in ended.error


def original(platform: Simulator, tmp_path: Path) -> bytes:
    """Return the bundle from an undisturbed download."""
    other = tmp_path / "undisturbed"
    other.mkdir()
    return assert_whole(fetch(Action(other), platform), Action(other))


def etag_of(content: bytes) -> str:
    """Return the ETag of the simulator's storage."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}-2"'


def test_it_is_saved_with_its_size_and_checksum(action: Action, platform: Simulator) -> None:
    ended = fetch(action, platform, bundle_path="dist/site.tar.gz")

    saved = (action.workspace / "dist" / "site.tar.gz").read_bytes()
    assert ended.outputs["bundlePath"] == ended.result["bundlePath"] == "dist/site.tar.gz"
    assert ended.outputs["bundleSize"] == str(ended.result["bundleSize"]) == str(len(saved))
    assert ended.outputs["bundleSha256"] == ended.result["bundleSha256"] == hashlib.sha256(saved).hexdigest()
    assert f"Downloaded {len(saved) / 2**20:.1f} MiB to dist/site.tar.gz in " in ended.log
    assert len(downloads(platform)) == 1


def test_an_existing_file_is_replaced(action: Action, platform: Simulator) -> None:
    (action.workspace / "bundle").write_bytes(b"an older one")

    assert_whole(fetch(action, platform), action)


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
        assert "before the response was complete, after 97.7 KiB of 1.9 MiB. Retrying for up to 1:00" in ended.log

    def test_without_an_etag_it_resumes_by_the_date(
        self, action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
    ) -> None:
        platform = make_platform(asset_bytes=SIZE, etags="none")
        content = original(platform, tmp_path)
        platform.script("download", Fault(cut="in_body", cut_after_bytes=700_000))

        assert_whole(fetch(action, platform), action, content)
        assert ranges(platform)[-1] == "bytes=700000-"

    @pytest.mark.parametrize("options", [{"ranges": False}, {"etags": "weak"}])
    def test_it_starts_over_if_the_storage_cannot_resume(
        self, action: Action, make_platform: Callable[..., Simulator], options: dict[str, object]
    ) -> None:
        platform = make_platform(asset_bytes=SIZE, **options)
        platform.script("download", Fault(cut="in_body"))

        ended = fetch(action, platform)

        assert len(assert_whole(ended, action)) > SIZE
        assert "Restarting the download: " in ended.log
        assert (ranges(platform)[1] is None) == ("etags" in options)

    def test_a_stalled_connection_counts_as_cut(self, action: Action, platform: Simulator) -> None:
        platform.script("download", Fault(stall_after_bytes=500_000))
        action.set_constants(bundle__storage__IDLE_SECONDS=3.0)

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert ranges(platform) == [None, "bytes=500000-"]
        assert "sent nothing for too long, after 488.3 KiB of " in ended.log

    def test_a_very_slow_connection_counts_as_cut(self, action: Action, make_platform: Callable[..., Simulator]) -> None:
        platform = make_platform()
        platform.script("download", Fault(drip_seconds=0.005))
        action.set_constants(bundle__storage__SLOW_SECONDS=0.3, bundle__storage__MIN_BYTES_PER_SECOND=1e9)

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert " sent almost nothing for 0.3 s" in ended.log

    def test_a_slow_connection_is_kept(self, action: Action, make_platform: Callable[..., Simulator]) -> None:
        platform = make_platform()
        platform.script("download", Fault(drip_seconds=0.005))
        # even on a loaded machine some bytes arrive within one period, and the download takes more than two
        action.set_constants(bundle__storage__SLOW_SECONDS=2.0, bundle__storage__MIN_BYTES_PER_SECOND=1)

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert (len(downloads(platform)), "almost nothing" in ended.log) == (1, False)

    def test_a_response_that_does_not_start_is_aborted(self, action: Action, platform: Simulator) -> None:
        platform.script("download", Fault(drip_seconds=0.05))
        action.set_constants(bundle__storage__HEAD_SECONDS=1.0)

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert "took longer than 1 s to respond" in ended.log

    def test_temporary_errors_are_retried(self, action: Action, platform: Simulator) -> None:
        platform.script(
            "download",
            Fault(status=503, headers={"Retry-After": "0"}),
            Fault(status=429),
            Fault(cut="before_response"),
            Fault(cut="in_headers"),
            Fault(raw=b"no HTTP\r\n\r\n"),
        )

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert ended.log.count("Retrying for up to") == 1

    def test_an_error_longer_than_the_tolerance_fails_the_run(self, action: Action, platform: Simulator) -> None:
        platform.script_forever("download", Fault(status=503, body="<Error><Code>SlowDown</Code></Error>"))

        ended = fetch(action, platform, outage_tolerance="1ms", values_file="values.yaml")

        assert_failed(ended, action, "the bundle could not be downloaded completely", "503 (SlowDown)", "`outage-tolerance`")

    def test_a_server_that_sends_the_same_beginning_forever_fails_the_run(
        self, action: Action, make_platform: Callable[..., Simulator]
    ) -> None:
        platform = make_platform(asset_bytes=SIZE, ranges=False)
        platform.script_forever("download", Fault(cut="in_body", cut_after_bytes=200_000))

        ended = fetch(action, platform, outage_tolerance="300ms")

        assert_failed(ended, action, "was lost before the response was complete, after 195.3 KiB of ")


class TestLength:
    def test_without_a_content_length_the_last_chunk_ends_the_bundle(
        self, action: Action, platform: Simulator, tmp_path: Path
    ) -> None:
        content = original(platform, tmp_path)
        platform.script("download", Fault(framing="chunked", cut="in_body", cut_after_bytes=700_000), Fault(framing="chunked"))

        assert_whole(fetch(action, platform), action, content)
        assert ranges(platform)[-1] == "bytes=700000-"

    @pytest.mark.parametrize("framing", ["length", "chunked", "close"])
    @pytest.mark.parametrize("size", [17, 0, 10**15, 3_000_000, "3000000", "many", -1, None, 1.5, True, [17], {"gzip": 17}])
    def test_a_size_from_the_api_has_no_effect(self, action: Action, platform: Simulator, size: object, framing: str) -> None:
        """No API document promises it: it may be that of the unpacked site."""
        platform.override("make_bundle", lambda normal: {**normal, "sizeBytes": size})
        platform.script_forever("download", Fault(framing=framing))  # type: ignore[arg-type]

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert (platform.count("make_bundle"), ranges(platform), ended.warnings) == (1, [None], [])
        assert "Restarting" not in ended.log

    def test_a_complete_body_without_a_marked_end_is_accepted(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        content = original(platform, tmp_path)
        cut = Fault(framing="chunked", cut="in_body", cut_after_bytes=len(content))
        platform.script("download", cut, None, cut)

        assert_whole(fetch(action, platform), action, content)
        # a single 416 may be about another bundle, so the storage must send it twice
        assert ranges(platform)[1:] == [None, f"bytes={len(content)}-"] * 2

    def test_a_bundle_with_a_content_length_that_is_too_long_is_accepted(
        self, action: Action, platform: Simulator, tmp_path: Path
    ) -> None:
        content = original(platform, tmp_path)
        too_long = Fault(headers={"Content-Length": str(len(content) + 1000)})
        platform.script("download", too_long, None, too_long, Fault(headers={"Content-Length": "1000"}))

        assert_whole(fetch(action, platform), action, content)
        assert ranges(platform)[1:] == [None, f"bytes={len(content)}-"] * 2

    def test_a_single_416_does_not_make_a_part_complete(self, action: Action, platform: Simulator) -> None:
        all_there = Fault(status=416, headers={"Content-Range": "bytes */600000"})
        platform.script("download", Fault(cut="in_body", cut_after_bytes=600_000), all_there)

        assert_whole(fetch(action, platform), action)
        assert ranges(platform) == [None, "bytes=600000-", None]

    def test_a_416_with_another_size_does_not_make_a_part_complete(self, action: Action, platform: Simulator) -> None:
        other = Fault(status=416, headers={"Content-Range": "bytes */100"})
        platform.script(
            "download", Fault(cut="in_body", cut_after_bytes=600_000), *[other, Fault(cut="in_body", cut_after_bytes=600_000)] * 2
        )

        assert_whole(fetch(action, platform), action)

    def test_a_web_page_is_not_a_bundle(self, action: Action, platform: Simulator) -> None:
        page = Fault(body="\ufeff\n<!doctype html><title>Sign in</title>", headers={"Content-Type": "Text/HTML; charset=utf-8"})
        platform.script("download", page)

        ended = fetch(action, platform)

        assert_whole(ended, action)
        message = "The storage's response is not a bundle: it looks like a web page (Content-Type Text/HTML; charset=utf-8)"
        assert f"{message}. Retrying for up to 1:00" in ended.log

    @pytest.mark.parametrize(
        ("content_type", "encoding", "content"),
        [
            ("text/html", None, b"\r\n" * 300 + b"<html>"),
            ("text/html", None, b"Please log in."),
            ("text/html", None, "<html>".encode("utf-16")),
            ("text/html", "gzip", gzip.compress(b"<html>")),
            ("text/plain", None, b"<!DOCTYPE html><title>Sign in</title>"),
            ("application/octet-stream", None, b"\n<HTML lang=en>"),
            ("application/gzip", None, b"<!-- portal --><html>"),
            ("application/octet-stream", None, b"<script>location='/login'</script>"),
            ("application/zip", None, b"Please log in."),
            ("application/gzip", "gzip", gzip.compress(b"<html>" + b"<p>Please log in.</p>" * 5000)),
            ("application/gzip", None, b"#!/bin/sh\n" + b"# a self-extracting archive" * 100),
            ("application/gzip", None, b""),
            ("application/gzip", None, bytes(511)),
        ],
        ids=[
            *("after blanks", "as text", "in UTF-16", "compressed", "as plain text", "as bytes", "after a comment"),
            *("as a script", "called zip", "long and compressed", "a program", "nothing", "half a block of an empty tar"),
        ],
    )
    def test_other_content_is_not_a_bundle(
        self, action: Action, platform: Simulator, content_type: str, encoding: str | None, content: bytes
    ) -> None:
        headers = {"Content-Type": content_type} | ({"Content-Encoding": encoding} if encoding else {})
        platform.script("download", Fault(body=content, headers=headers))

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert "The storage's response is not a bundle: it " in ended.log
        assert "Retrying for up to 1:00" in ended.log

    @pytest.mark.parametrize("text", ['{"status": "completed"}', "[]"])
    def test_json_is_not_a_bundle(self, action: Action, platform: Simulator, text: str) -> None:
        platform.script_forever("download", Fault(body=text, headers={"Content-Type": "application/json"}))

        ended = fetch(action, platform, outage_tolerance="100ms")

        assert_failed(
            ended, action, "response is not a bundle: it looks like JSON (Content-Type application/json)", "a login page"
        )

    @pytest.mark.parametrize("content_type", ["text/html", "application/octet-stream"])
    def test_a_page_does_not_discard_the_downloaded_part(self, action: Action, platform: Simulator, content_type: str) -> None:
        page = Fault(body="<html>", headers={"Content-Type": content_type})
        platform.script("download", Fault(cut="in_body", cut_after_bytes=700_000), page)

        assert_whole(fetch(action, platform), action)
        assert ranges(platform) == [None, "bytes=700000-", "bytes=700000-"]

    @pytest.mark.parametrize("next_byte", [b"<", b"{"])
    def test_a_part_of_a_bundle_may_begin_like_a_page(self, action: Action, platform: Simulator, next_byte: bytes) -> None:
        content = KINDS["tar"](Site(files={"a": b"-" * 99_999 + next_byte * 100_000}))
        middle = content.index(next_byte)
        platform.add_export_job("odd", bundle=content)
        html = {"Content-Type": "text/html"}
        # the first response is aborted: an uncompressed tar archive with a gzip name may have been decompressed in transit
        platform.script("download", None, Fault(cut="in_body", cut_after_bytes=middle, headers=html), Fault(headers=html))

        ended = fetch(action, platform, job_id="odd")

        assert_whole(ended, action, content)
        assert ranges(platform) == [None, None, f"bytes={middle}-"]

    def test_a_bundle_with_the_content_type_of_a_page_is_accepted(self, action: Action, platform: Simulator) -> None:
        platform.script("download", Fault(headers={"Content-Type": "text/html"}))

        assert_whole(fetch(action, platform), action)
        assert len(downloads(platform)) == 1

    def test_an_encoded_response_is_not_decoded(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        content = original(platform, tmp_path)
        platform.script("download", Fault(headers={"Content-Encoding": "gzip"}))

        assert_whole(fetch(action, platform), action, content)

    @pytest.mark.parametrize(
        "headers",
        [
            {"Content-Range": "bytes 7-9/10"},
            {"Content-Range": "bytes */10"},
            {"Content-Range": "pages 1-2/3"},
            {"Content-Range": "bytes 1000000-1000009/{size}", "Content-Type": "Multipart/Byteranges"},
            {"Content-Range": "bytes 1000000-1000009/9999999"},
            {"Content-Range": "bytes 1000000-1999999/{size}"},
            {"Content-Range": "bytes 1000000-1000009/1000005"},
            {"ETag": '"another"', "Content-Range": "bytes 1000000-1000009/{size}"},
            {},
        ],
    )
    def test_a_part_that_was_not_requested_is_discarded(
        self, action: Action, platform: Simulator, headers: dict[str, str], tmp_path: Path
    ) -> None:
        content = original(platform, tmp_path)
        cut = Fault(cut="in_body", cut_after_bytes=1_000_000)
        formatted = {name: value.format(size=len(content)) for name, value in {"ETag": etag_of(content), **headers}.items()}
        platform.script("download", cut, Fault(status=206, headers=formatted, body="x" * 10))

        ended = fetch(action, platform)

        assert_whole(ended, action, content)
        assert "Restarting the download: the storage sent a different part than requested" in ended.log

    def test_a_part_that_is_shorter_than_requested_is_kept(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        content = original(platform, tmp_path)
        part = Fault(
            status=206,
            headers={"ETag": etag_of(content), "Content-Range": f"bytes 1000000-1099999/{len(content)}"},
            body=content[1_000_000:1_100_000],
        )
        platform.script("download", Fault(cut="in_body", cut_after_bytes=1_000_000), part)

        assert_whole(fetch(action, platform), action, content)
        assert ranges(platform)[-1] == "bytes=1100000-"

    def test_a_partial_response_to_the_first_request_is_discarded(self, action: Action, platform: Simulator) -> None:
        platform.script("download", Fault(status=206, headers={"Content-Range": "bytes 0-9/10"}, body="x" * 10))

        assert_whole(fetch(action, platform), action)


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
                for size in (b"-1", b"+14", b"0x14", b" 14 ", b"1_4", b"13")
            ),
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n14\r\n" + GZIP + b"x" * 17 + b"\r\n0\r\n",
        ],
    )
    def test_a_response_that_may_be_incomplete_is_rejected(self, action: Action, platform: Simulator, answer: bytes) -> None:
        with RawServer(ScriptedStorage(answer)) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_failed(ended, action)

    def test_a_part_longer_than_announced_is_rejected(self, action: Action, platform: Simulator) -> None:
        etag = b'ETag: "a"\r\n'
        begin = HEAD + etag + b"Content-Length: 2000\r\n\r\n" + GZIP.ljust(1000, b"a")
        part = b"HTTP/1.1 206 Partial\r\n" + etag + b"Content-Range: bytes 1000-1999/2000\r\n"
        chunked = part + b"Transfer-Encoding: chunked\r\n\r\n1388\r\n" + b"b" * 5000 + b"\r\n0\r\n\r\n"
        with RawServer(ScriptedStorage(begin, chunked)) as storage:
            ended = fetch_from(action, platform, storage)

        assert_failed(ended, action, "more than the 2,000 bytes")

    @pytest.mark.parametrize(
        "headers",
        [
            b"Transfer-Encoding: chunked \r\n",
            b"Transfer-Encoding:\tChunked\t\r\n",
            b"Transfer-Encoding:\r\n chunked\r\n",
            b"Transfer-Encoding: chunked \r\nContent-Length: 5\r\n",
        ],
        ids=["a blank", "tabs", "folded", "and a length"],
    )
    def test_chunks_are_decoded_despite_white_space_in_the_header(
        self, action: Action, platform: Simulator, headers: bytes
    ) -> None:
        content = GZIP.ljust(5000, b"x")
        with RawServer(ScriptedStorage(HEAD + headers + b"\r\n1388\r\n" + content + b"\r\n0\r\n\r\n")) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_whole(ended, action, content)

    def test_repeated_equal_lengths_are_accepted(self, action: Action, platform: Simulator) -> None:
        content = GZIP.ljust(5000, b"x")
        with RawServer(ScriptedStorage(HEAD + b"Content-Length: 5000\r\nContent-Length: 5000 \r\n\r\n" + content)) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_whole(ended, action, content)

    def test_a_download_is_resumed_despite_white_space_after_header_values(self, action: Action, platform: Simulator) -> None:
        content, etag = GZIP.ljust(5000, b"x"), b'ETag: "a" \t\r\n'
        begin = HEAD + etag + b"Content-Length: 5000\r\n\r\n" + content[:3000]
        part = b"HTTP/1.1 206 Partial\r\n" + etag + b"Content-Range: bytes 3000-4999/5000 \r\nContent-Length: 2000\r\n\r\n"
        scripted = ScriptedStorage(begin, part + content[3000:])
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, content)
        assert len(scripted.requests) == 2
        assert b'If-Range: "a"\r\n' in scripted.requests[1]

    @pytest.mark.parametrize(
        ("location", "requested"),
        [
            (b"/my bundles/a b.tar.gz?name=a b", b"/my%20bundles/a%20b.tar.gz?name=a%20b"),
            (b"/bundle.tar.gz \t", b"/bundle.tar.gz"),
        ],
        ids=["inside", "behind"],
    )
    def test_a_redirect_with_spaces_is_followed(
        self, action: Action, platform: Simulator, location: bytes, requested: bytes
    ) -> None:
        content = GZIP.ljust(5000, b"x")
        there = b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
        scripted = ScriptedStorage(there, HEAD + b"Content-Length: 5000\r\n\r\n" + content)
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, content)
        assert scripted.requests[1].startswith(b"GET " + requested + b" HTTP/1.1\r\n")

    @pytest.mark.parametrize("content_type", [b"text/html", b"application/octet-stream", b"application/gzip"])
    def test_a_page_byte_by_byte_is_not_a_bundle(self, action: Action, platform: Simulator, content_type: bytes) -> None:
        page = b"<!doctype html><title>Sign in</title>"

        def drip(connection: socket.socket) -> None:
            read_request(connection)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(HEAD + b"Content-Type: " + content_type + b"\r\nContent-Length: %d\r\n\r\n" % len(page))
            for byte in page:
                connection.sendall(bytes([byte]))
                time.sleep(0.002)

        with RawServer(drip) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_failed(ended, action, "response is not a bundle: it looks like a web page", "a login page")

    def test_zeros_are_not_a_bundle(self, action: Action, platform: Simulator) -> None:
        with RawServer(ScriptedStorage(HEAD + b"Content-Length: 4096\r\n\r\n" + bytes(4096))) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_failed(ended, action, "response is not a bundle: it begins with the bytes 00 00")

    def test_a_cut_chunk_size_is_not_the_last_chunk(self, action: Action, platform: Simulator) -> None:
        content = GZIP.ljust(256, b"x")
        cut = HEAD + b"Transfer-Encoding: chunked\r\n\r\n80\r\n" + content[:128] + b"\r\n0"
        scripted = ScriptedStorage(cut, HEAD + b"Content-Length: 256\r\n\r\n" + content)
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, content)
        assert len(scripted.requests) == 2

    def test_content_of_two_mirrors_is_not_mixed(self, action: Action, platform: Simulator) -> None:
        etag = b'ETag: "1"\r\n'
        content = {name: GZIP.ljust(2000, name) for name in (b"a", b"b")}
        whole = {name: HEAD + etag + b"Content-Length: 2000\r\n\r\n" + found for name, found in content.items()}
        rest = b"HTTP/1.1 206 Partial\r\n" + etag + b"Content-Range: bytes 1000-1999/2000\r\nContent-Length: 1000\r\n\r\n"
        second_storage = ScriptedStorage(rest + b"b" * 1000, whole[b"b"])
        with (
            RawServer(ScriptedStorage(whole[b"a"][:-1000])) as first,
            RawServer(second_storage) as second,
        ):
            to = [f"HTTP/1.1 302 Found\r\nLocation: {mirror.base_url}/x\r\n\r\n".encode() for mirror in (first, second)]
            with RawServer(ScriptedStorage(*to)) as storage:
                ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, content[b"b"])

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
            bundle__storage__SLOW_SECONDS=0.3, bundle__storage__HEAD_SECONDS=0.3, http__retry__MIN_ATTEMPT_SECONDS=0.3
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

    @pytest.mark.parametrize("status", ["403 Forbidden", "412 Precondition Failed", "416 Range Not Satisfiable"])
    def test_it_starts_over_if_the_storage_rejects_a_range(self, action: Action, platform: Simulator, status: str) -> None:
        def answer(connection: socket.socket) -> None:
            if b"Range:" in read_request(connection):
                connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
                return
            connections.append(connection)
            head = HEAD + b'ETag: "a"\r\nContent-Length: 200000\r\n\r\n'
            connection.sendall(head + content[: 100_000 if len(connections) == 1 else 200_000])

        connections: list[socket.socket] = []
        content = GZIP.ljust(200_000, b"x")
        with RawServer(answer) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, content)

    def test_echoed_link_secrets_are_hidden(self, action: Action, platform: Simulator) -> None:
        secret = "AbCd%2BefGh%2FijKlmnop%3D"
        body = f"<Error><Code>No</Code><Message>got {secret} or AbCd+efGh/ijKlmnop=</Message></Error>".encode()
        head = f"HTTP/1.1 403 No\r\nX-Request-Id: {secret}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        action.debug = True
        with RawServer(ScriptedStorage(head + body)) as storage:
            there = f"HTTP/1.1 302 Found\r\nLocation: {storage.base_url}/b?sig={secret}\r\n\r\n".encode()
            with RawServer(ScriptedStorage(there)) as first:
                ended = fetch_from(action, platform, first, outage_tolerance="100ms")

        assert_failed(ended, action)
        for form in (secret, "AbCd+efGh/ijKlmnop=", "0123456789abcdef0123"):
            assert form not in ended.stdout + ended.stderr + ended.summary


def sent(content: bytes, *headers: bytes, chunked: bool = False) -> bytes:
    if not chunked:
        return HEAD + b"".join(headers) + b"Content-Length: %d\r\n\r\n" % len(content) + content
    return HEAD + b"".join(headers) + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(content) + content + b"\r\n0\r\n\r\n"


FIRST, SECOND = (GZIP.ljust(2000, letter) for letter in (b"a", b"b"))
"""Two bundles of the same length."""

PAST, RECENT, NOW = (f"Mon, 04 May 2026 {time} GMT" for time in ("12:00:00", "12:59:59", "13:00:00"))


def lines(**headers: str) -> bytes:
    """Return header lines; `Last_Modified` is `Last-Modified`."""
    return "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items()).encode()


def cut_after_half(content: bytes, headers: bytes, *, chunked: bool = False) -> bytes:
    """Return the first half of a response with a whole bundle."""
    if chunked:
        return HEAD + headers + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % (len(content) // 2) + content[: len(content) // 2]
    return (HEAD + headers + b"Content-Length: %d\r\n\r\n" % len(content) + content)[: -len(content) // 2]


def second_half(content: bytes, headers: bytes) -> bytes:
    """Return a 206 with the second half of a bundle."""
    half, size = len(content) // 2, len(content)
    span = b"Content-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n" % (half, size - 1, size, size - half)
    return b"HTTP/1.1 206 Partial Content\r\n" + headers + span + content[half:]


class TestValidator:
    """A part is appended only if it carries the validator of the first one: servers that ignore `If-Range` exist."""

    @pytest.mark.parametrize(
        ("headers", "sent"),
        [
            (lines(ETag='"1"', Date=NOW), '"1"'),
            (lines(ETag='"1"', Last_Modified=PAST, Date=NOW), '"1"'),
            (lines(Last_Modified=PAST, Date=NOW), PAST),
            (lines(Last_Modified=RECENT, Date=NOW), RECENT),
        ],
        ids=["an ETag", "an ETag and a date", "a date", "a date a second ago"],
    )
    def test_a_part_with_the_same_validator_is_appended(
        self, action: Action, platform: Simulator, headers: bytes, sent: str
    ) -> None:
        scripted = ScriptedStorage(cut_after_half(FIRST, headers), second_half(FIRST, headers))
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, FIRST)
        assert f"Range: bytes=1000-\r\nIf-Range: {sent}\r\n".encode() in scripted.requests[1]
        assert "Restarting" not in ended.log

    @pytest.mark.parametrize("chunked", [False, True], ids=["size announced", "size unknown"])
    def test_a_part_of_a_bundle_of_unknown_size_is_not_appended(self, action: Action, platform: Simulator, chunked: bool) -> None:
        """It may end before the bundle does."""
        etag = lines(ETag='"1"')
        part = (
            b"HTTP/1.1 206 Part\r\n"
            + etag
            + b"Content-Range: bytes 1000-1499/*\r\nContent-Length: 500\r\n\r\n"
            + FIRST[1000:1500]
        )
        rest = b"HTTP/1.1 206 Part\r\n" + etag + b"Content-Range: bytes 1500-1999/*\r\nContent-Length: 500\r\n\r\n" + FIRST[1500:]
        scripted = ScriptedStorage(cut_after_half(FIRST, etag, chunked=chunked), part, sent(FIRST) if chunked else rest)
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, FIRST)
        assert (b"Range: bytes=1500-" in scripted.requests[2]) is not chunked

    def test_a_part_without_a_date_of_its_own_is_appended(self, action: Action, platform: Simulator) -> None:
        whole, part = lines(Last_Modified=PAST, Date=NOW), lines(Last_Modified=PAST)
        with RawServer(ScriptedStorage(cut_after_half(FIRST, whole), second_half(FIRST, part))) as storage:
            assert_whole(fetch_from(action, platform, storage), action, FIRST)

    @pytest.mark.parametrize(
        ("first", "part"),
        [
            (lines(ETag='"1"'), b""),
            (lines(ETag='"1"'), lines(ETag='"2"')),
            (lines(ETag='"1"'), lines(ETag='W/"1"')),
            (lines(ETag='"1"'), lines(ETag="1")),
            (lines(ETag='"1"', Last_Modified=PAST, Date=NOW), lines(Last_Modified=PAST, Date=NOW)),
            (lines(Last_Modified=PAST, Date=NOW), lines(Date=NOW)),
            (lines(Last_Modified=PAST, Date=NOW), lines(ETag='"1"', Date=NOW)),
            (lines(Last_Modified=PAST, Date=NOW), lines(ETag='"1"', Last_Modified=PAST, Date=NOW)),
            (lines(Last_Modified=PAST, Date=NOW), lines(Last_Modified=RECENT, Date=NOW)),
            (lines(Last_Modified=PAST, Date=NOW), lines(Last_Modified="Monday, 04-May-26 12:00:00 GMT", Date=NOW)),
            (lines(ETag='"1"'), lines(ETag='"1"', Content_Encoding="gzip")),
            (lines(ETag='"1"', Content_Encoding="gzip"), lines(ETag='"1"')),
            (lines(ETag='"1"'), lines(ETag='"1"', Content_Type="multipart/byteranges; boundary=x")),
        ],
        ids=[
            *("no ETag", "another ETag", "a weak ETag", "an ETag without quotes", "only the date"),
            *("no date", "only an ETag", "an ETag, too", "another date", "another form of the date"),
            *("compressed", "not compressed", "several ranges"),
        ],
    )
    @pytest.mark.parametrize("chunked", [False, True], ids=["", "size unknown"])
    def test_any_other_part_starts_the_download_again(
        self, action: Action, platform: Simulator, first: bytes, part: bytes, chunked: bool
    ) -> None:
        if b"Content-Encoding" in first:
            first_content, second_content = (gzip.compress(KINDS["tar"](Site(files={"a": os.urandom(5000)})), 0) for _ in "12")
            chunked = False  # an object that is compressed in transit is not resumed
        else:
            first_content, second_content = FIRST, SECOND
        scripted = ScriptedStorage(
            cut_after_half(first_content, first, chunked=chunked), second_half(second_content, part), sent(second_content)
        )
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, second_content)
        assert b"\r\nRange: bytes=" in scripted.requests[1]
        assert b"\r\nRange: " not in scripted.requests[2]
        name = "ETag" if b"ETag" in first else "Last-Modified"
        missing = f"the storage sent the rest without the {name} of the beginning"
        reason = "the storage sent a different part than requested" if name.encode() in part else missing
        assert f"Restarting the download: {reason}" in ended.log

    @pytest.mark.parametrize(
        "headers",
        [
            lines(Last_Modified=PAST),
            lines(Last_Modified=NOW, Date=NOW),
            lines(Last_Modified=NOW, Date=PAST),
            lines(Last_Modified=PAST, Date="soon"),
            lines(Last_Modified="yesterday", Date=NOW),
            lines(Last_Modified="Monday, 04-May-26 12:00:00 GMT", Date=NOW),
            lines(Last_Modified="Mon May  4 12:00:00 2026", Date=NOW),
            lines(Last_Modified="Mon, 04 May 2026 12:00:00 +0200", Date=NOW),
            lines(Last_Modified="Thu, 31 Feb 2022 12:00:00 GMT", Date=NOW),
            lines(ETag='W/"1"', Last_Modified=PAST, Date=NOW),
            lines(ETag="1", Last_Modified=PAST, Date=NOW),
            lines(Last_Modified=PAST) + lines(Last_Modified=RECENT, Date=NOW),
            lines(Date=NOW),
        ],
        ids=[
            *("no Date", "the same second", "a later date", "an invalid Date", "an invalid date", "RFC 850", "asctime", "a zone"),
            *("no such day", "a weak ETag", "an invalid ETag", "two dates", "nothing"),
        ],
    )
    def test_without_a_strong_validator_nothing_is_resumed(self, action: Action, platform: Simulator, headers: bytes) -> None:
        scripted = ScriptedStorage(cut_after_half(FIRST, headers), sent(SECOND))
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, SECOND)
        assert b"Range: " not in scripted.requests[1]

    @pytest.mark.parametrize("validator", [{"ETag": '"1"'}, {"Last_Modified": PAST}], ids=["ETag", "date"])
    def test_a_416_about_another_bundle_does_not_make_a_part_complete(
        self, action: Action, platform: Simulator, validator: dict[str, str]
    ) -> None:
        """The first bundle is longer than the part of it, and the second one has the length of that part."""
        second = SECOND[:1000]
        refusal = b"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */1000\r\nContent-Length: 0\r\n\r\n"
        scripted = ScriptedStorage(cut_after_half(FIRST, lines(**validator, Date=NOW), chunked=True), refusal, sent(second))
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, second)

    def test_a_416_with_the_validator_makes_a_bundle_of_unknown_size_complete(self, action: Action, platform: Simulator) -> None:
        refusal = b"HTTP/1.1 416 No\r\nContent-Range: bytes */1000\r\nContent-Length: 0\r\n" + lines(ETag='"1"') + b"\r\n"
        scripted = ScriptedStorage(cut_after_half(FIRST, lines(ETag='"1"'), chunked=True), refusal)
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, FIRST[:1000])

    def test_different_416s_do_not_confirm_each_other(self, action: Action, platform: Simulator) -> None:
        etag = lines(ETag='"1"')
        refusals = [b"HTTP/1.1 416 No\r\nContent-Range: bytes */%d\r\nContent-Length: 0\r\n\r\n" % size for size in (1000, 900)]
        parts = [cut_after_half(FIRST, etag, chunked=True), cut_after_half(FIRST[:1800], etag, chunked=True)]
        scripted = ScriptedStorage(parts[0], refusals[0], parts[1], refusals[1], sent(SECOND))
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, SECOND)


TAR = KINDS["tar"](Site(files={"index.html": b"<h1>Docs</h1>" * 1000}))
PACKED = gzip.compress(TAR)
STORED_AS_GZIP = b"x-goog-stored-content-encoding: gzip\r\n"
GZIPPED = b"Content-Encoding: gzip\r\n"


class TranscodingStorage:
    """A storage that sends one form of an object, or another form if the client accepts gzip."""

    def __init__(self, plain: bytes, accepted: bytes) -> None:
        self._plain, self._accepted = plain, accepted
        self.accepted: list[bool] = []

    def __call__(self, connection: socket.socket) -> None:
        request = read_request(connection)
        self.accepted.append(b"Accept-Encoding: gzip\r\n" in request)
        connection.sendall(self._accepted if self.accepted[-1] else self._plain)


DECOMPRESSED = "changed the bundle's compression"
MISNAMED = "site.tar.gz is an uncompressed tar archive, although its name says gzip."


class TestTranscoding:
    """The stored bytes are saved, even if the storage recodes them for clients that accept no content coding."""

    def fetch(self, action: Action, platform: Simulator, storage: TranscodingStorage, name: str = "bundle.tar.gz") -> Ended:
        with RawServer(storage) as server:
            platform.override("make_bundle", {"bundleUrl": f"{server.base_url}/{name}", "sizeBytes": 4096})
            return fetch(action, platform, bundle_path="site.tar.gz", outage_tolerance="100ms")

    def saved(self, ended: Ended, action: Action) -> bytes:
        assert ended.exit_code == 0, ended.stdout
        saved = (action.workspace / "site.tar.gz").read_bytes()
        assert (ended.outputs["bundleSize"], ended.outputs["bundleSha256"]) == (
            str(len(saved)),
            hashlib.sha256(saved).hexdigest(),
        )
        return saved

    @pytest.mark.parametrize(
        ("plain", "name"),
        [
            (sent(TAR, STORED_AS_GZIP, chunked=True), "object"),
            (sent(TAR, b'ETag: W/"a"\r\n', chunked=True), "object"),
            (HEAD + b"Connection: close\r\n\r\n" + TAR, "bundle.tar.gz"),
            (sent(TAR), "bundle.tar.gz"),
            (sent(TAR, b"Content-Type: application/gzip\r\n"), "object"),
        ],
        ids=["says so", "without a length", "until the end", "by its name", "by its type"],
    )
    def test_an_object_decompressed_in_transit_is_requested_as_stored(
        self, action: Action, platform: Simulator, plain: bytes, name: str
    ) -> None:
        storage = TranscodingStorage(plain, sent(PACKED, GZIPPED))

        ended = self.fetch(action, platform, storage, name)

        assert self.saved(ended, action) == PACKED
        assert (storage.accepted, ended.warnings) == ([False, True], [])

    def test_an_object_available_only_decompressed_is_saved_with_a_warning(self, action: Action, platform: Simulator) -> None:
        decompressed = sent(TAR, STORED_AS_GZIP, chunked=True)

        ended = self.fetch(action, platform, TranscodingStorage(decompressed, decompressed))

        assert self.saved(ended, action) == TAR
        (warning,) = ended.warnings
        assert MISNAMED in warning
        assert DECOMPRESSED in warning

    def test_an_uncompressed_tar_archive_with_a_gzip_name_causes_only_one_warning(
        self, action: Action, platform: Simulator
    ) -> None:
        ended = self.fetch(action, platform, TranscodingStorage(sent(TAR), sent(TAR)))

        assert self.saved(ended, action) == TAR
        assert [MISNAMED in warning for warning in ended.warnings] == [True]
        assert DECOMPRESSED not in ended.stdout

    def test_an_object_compressed_in_transit_is_requested_as_stored(self, action: Action, platform: Simulator) -> None:
        storage = TranscodingStorage(sent(TAR, chunked=True), sent(PACKED, GZIPPED, chunked=True))

        ended = self.fetch(action, platform, storage, "object")

        assert self.saved(ended, action) == TAR
        assert storage.accepted == [False, True, False]
        assert DECOMPRESSED not in ended.stdout

    @pytest.mark.parametrize("chunked", [False, True])
    def test_an_object_stored_with_a_coding_takes_one_request(self, action: Action, platform: Simulator, chunked: bool) -> None:
        storage = TranscodingStorage(sent(PACKED, GZIPPED, chunked=chunked), b"")

        ended = self.fetch(action, platform, storage)

        assert self.saved(ended, action) == PACKED
        assert (storage.accepted, ended.warnings) == ([False], [])

    @pytest.mark.parametrize("status", [b"400 Bad Request", b"406 Not Acceptable", b"500 Oh"])
    def test_a_storage_that_rejects_gzip_is_asked_without_it(self, action: Action, platform: Simulator, status: bytes) -> None:
        refused = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
        storage = TranscodingStorage(sent(TAR, chunked=True), refused)

        ended = self.fetch(action, platform, storage, "object")

        assert self.saved(ended, action) == TAR
        assert storage.accepted == [False, True, False]

    def test_a_compressed_page_is_not_a_bundle_even_if_its_content_is_late(self, action: Action, platform: Simulator) -> None:
        page = gzip.compress(b"<!doctype html><title>Sign in</title>" * 50, 0)

        def answer(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(HEAD + GZIPPED + b"Content-Length: %d\r\n\r\n" % len(page) + page[:512])
            time.sleep(0.02)
            connection.sendall(page[512:])

        with RawServer(answer) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        assert_failed(ended, action, "response is not a bundle: it looks like a web page", "a login page")

    @pytest.mark.parametrize(
        ("encoding", "content"),
        [
            ("br", bytes.fromhex("5b00f88d94d8a0")),  # begins like JSON
            ("BR", bytes.fromhex("1b7b00f88d94d8a0")),
            ("zstd", bytes.fromhex("28b52ffd04580100")),
            ("deflate", zlib.compress(TAR)),
            ("compress", b"\x1f\x9d\x90" + TAR),
            ("gzip, br", bytes.fromhex("1b7b00f88d94d8a0")),
            ("br, gzip", gzip.compress(bytes.fromhex("1b7b00f88d94d8a0"))),
            ("gzip, zstd", bytes.fromhex("28b52ffd04580100")),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_a_coding_that_was_not_asked_for_is_named(
        self, action: Action, platform: Simulator, encoding: str, content: bytes
    ) -> None:
        with RawServer(ScriptedStorage(sent(content, f"Content-Encoding: {encoding}\r\n".encode()))) as storage:
            ended = fetch_from(action, platform, storage, outage_tolerance="100ms")

        named = f"response is compressed with {encoding.lower()} (Content-Encoding), which was not asked for."
        assert_failed(ended, action, named, "Turn compression off there for archives")
        assert "login page" not in ended.error

    @pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "deflate"])
    @pytest.mark.parametrize("kind", ["tar.gz", "tar", "tar.bz2", "tar.xz", "zip"])
    def test_an_archive_is_accepted_whatever_its_coding_is_called(
        self, action: Action, platform: Simulator, encoding: str, kind: str
    ) -> None:
        content = KINDS[kind](Site(files={"index.html": b"<h1>Docs</h1>" * 1000}))
        with RawServer(ScriptedStorage(sent(content, f"Content-Encoding: {encoding}\r\n".encode()))) as storage:
            ended = fetch_from(action, platform, storage, site_path="site")

        assert (ended.exit_code, ended.warnings) == (0, []), ended.stdout
        assert (action.workspace / "bundle").read_bytes() == content

    def test_gzip_data_with_an_empty_first_member_is_a_bundle(self, action: Action, platform: Simulator) -> None:
        content = gzip.compress(b"") + PACKED
        storage = TranscodingStorage(sent(content, GZIPPED), b"")

        ended = self.fetch(action, platform, storage)

        assert self.saved(ended, action) == content

    def test_an_object_compressed_in_transit_is_not_resumed(self, action: Action, platform: Simulator) -> None:
        cut = HEAD + b'ETag: "a"\r\n' + GZIPPED + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(PACKED) + PACKED[:-9]
        scripted = ScriptedStorage(cut, sent(PACKED, GZIPPED))
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, PACKED)
        assert b"\r\nRange:" not in scripted.requests[1]

    def test_a_resumed_download_keeps_its_coding(self, action: Action, platform: Simulator) -> None:
        content = gzip.compress(KINDS["tar"](Site(files={"a": os.urandom(5000)})))
        etag = b'ETag: "a"\r\n'
        rest = (
            b"HTTP/1.1 206 Partial\r\n"
            + etag
            + GZIPPED
            + b"Content-Range: bytes 2000-%d/%d\r\n\r\n" % (len(content) - 1, len(content))
        )
        begin = HEAD + etag + GZIPPED + b"Content-Length: %d\r\n\r\n" % len(content) + content[:2000]
        scripted = ScriptedStorage(sent(TAR, STORED_AS_GZIP, chunked=True), begin, rest + content[2000:])
        with RawServer(scripted) as storage:
            ended = fetch_from(action, platform, storage)

        assert_whole(ended, action, content)
        assert [b"Accept-Encoding: gzip" in request for request in scripted.requests] == [False, True, True]
        assert b"Range: bytes=2000-" in scripted.requests[2]


def stalled(action: Action, platform: Simulator, happens: Callable[[], None]) -> Ended:
    """Fetch the bundle over a connection that stalls after 600,000 bytes, and call `happens` meanwhile."""
    before = len(downloads(platform))
    platform.script("download", Fault(stall_after_bytes=600_000))
    action.set_constants(bundle__storage__IDLE_SECONDS=5.0)  # stalls until the action aborts it, after `happens`
    with action.start(platform, job_id="export-finished", bundle_path="bundle", outage_tolerance="1m") as running:
        while not any(request.status for request in downloads(platform)[before:]):
            time.sleep(0.005)  # waits until the simulator has prepared its response, which `happens` must not change
        happens()
        return running.wait()


EXPIRED = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"


class TestLink:
    @pytest.mark.parametrize(
        ("refusal", "shown"),
        [
            (Fault(status=403, body=EXPIRED), "403 (AccessDenied: Request has expired)"),
            (Fault(status=400, body="<Error><Code>ExpiredToken</Code></Error>"), "400 (ExpiredToken)"),
            (Fault(status=403, body="<Error><Code>ExpiredRequest</Code></Error>"), "403 (ExpiredRequest)"),
            (Fault(status=403, body="<Error><Code>AuthenticationFailed</Code></Error>"), "403 (AuthenticationFailed)"),
            (Fault(status=401, body="no"), "401"),
            (Fault(status=404, body="<Error><Code>NoSuchKey</Code></Error>"), "404 (NoSuchKey)"),
            (Fault(status=410, body="x" * 50_000), "410"),
            (Fault(status=403, body=EXPIRED, cut="in_body", cut_after_bytes=20), "403"),
        ],
    )
    def test_a_rejected_link_is_replaced(self, action: Action, platform: Simulator, refusal: Fault, shown: str) -> None:
        platform.script("download", refusal)

        ended = fetch(action, platform)

        assert_whole(ended, action)
        assert f"  The storage rejected the link with {shown}. Making a new link." in ended.log
        assert platform.count("make_bundle") == 2
        assert "X-Amz-Security-Token=session%2B2" in ended.outputs["bundleUrl"], "the output is the link that works"

    def test_a_link_that_expires_midway_is_replaced_and_the_download_resumed(
        self, action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
    ) -> None:
        later = timedelta()

        def an_hour_passes() -> None:
            nonlocal later
            later = timedelta(hours=1)

        platform = make_platform(asset_bytes=SIZE, link_seconds=3600, clock=Clock(now=lambda: utc_now() + later))
        content = original(platform, tmp_path)
        before = len(downloads(platform))

        ended = stalled(action, platform, an_hour_passes)

        assert_whole(ended, action, content)
        assert ranges(platform)[before:] == [None, "bytes=600000-", "bytes=600000-"]
        assert "403 (AccessDenied: Request has expired). Making a new link." in ended.log

    def test_a_link_with_revoked_credentials_is_replaced_midway(self, action: Action, platform: Simulator) -> None:
        ended = stalled(action, platform, platform.revoke_links)

        assert_whole(ended, action)
        assert "400 (ExpiredToken: The provided token has expired.). Making a new link." in ended.log

    def test_a_bundle_that_moved_starts_over(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        content = original(platform, tmp_path)
        before = len(downloads(platform))

        ended = stalled(action, platform, lambda: platform.move_bundle("export-finished"))

        assert_whole(ended, action, content)
        assert ranges(platform)[before:] == [None, "bytes=600000-", None]

    def test_a_replaced_bundle_starts_over(self, action: Action, platform: Simulator) -> None:
        content = GZIP + os.urandom(1_500_000)

        ended = stalled(action, platform, lambda: platform.put_bundle("export-finished", content))

        assert_whole(ended, action, content)
        assert "Restarting the download: " in ended.log

    @pytest.mark.parametrize(
        ("status", "body", "cause"),
        [
            (403, "<Error><Code>AccessDenied</Code></Error>", "The storage denies access to this runner"),
            (403, EXPIRED, "Links expire before they can be used"),
            (404, "<Error><Code>NoSuchKey</Code></Error>", "There is no bundle at the link"),
        ],
    )
    def test_new_links_rejected_beyond_the_tolerance_fail_the_run(
        self, action: Action, platform: Simulator, status: int, body: str, cause: str
    ) -> None:
        fault = Fault(status=status, body=body, headers={"x-amz-request-id": "req-7"})
        platform.script_forever("download", fault)

        ended = fetch(action, platform, outage_tolerance="200ms")

        assert_failed(ended, action, f"{status} (", "although it was just made", cause, "Request id req-7.")
        assert len(downloads(platform)) == platform.count("make_bundle") > 2

    def test_an_api_error_for_a_new_link_fails_the_run(self, action: Action, platform: Simulator) -> None:
        platform.script("make_bundle", None, Fault(status=401, json={"error": "key expired"}))
        platform.script_forever("download", Fault(status=403))

        ended = fetch(action, platform)

        assert (ended.exit_code, ended.reason) == (1, "unauthorized")
        assert "key expired" in ended.error
        assert left_in(action) == []

    def test_its_secrets_are_not_in_the_log(self, action: Action, platform: Simulator) -> None:
        secrets: list[str] = []

        def record_secrets(normal: dict[str, object]) -> dict[str, object]:
            secrets.extend(part.partition("=")[2] for part in str(normal["bundleUrl"]).partition("?")[2].split("&"))
            return normal

        platform.override("make_bundle", record_secrets)
        platform.script(
            "download", Fault(cut="in_body"), Fault(status=403, body=EXPIRED), Fault(cut="in_body", cut_after_bytes=9)
        )
        action.debug = True

        ended = fetch(action, platform, outage_tolerance="1ms")

        long = [secret for secret in secrets if len(secret) >= 16]
        assert len(long) >= 4
        assert [secret for secret in long if secret in ended.stdout + ended.stderr + ended.summary] == []

    def test_an_echoed_signature_is_not_shown(self, action: Action, platform: Simulator) -> None:
        def echoing(normal: dict[str, object]) -> dict[str, object]:
            signature = str(normal["bundleUrl"]).rpartition("=")[2]
            body = f"<Error><Code>SignatureDoesNotMatch</Code><Message>got {signature}</Message></Error>"
            platform.script("download", Fault(status=403, body=body))
            echoed.append(signature)
            return normal

        echoed: list[str] = []
        platform.override("make_bundle", echoing)

        ended = fetch(action, platform, outage_tolerance="1ms")

        assert "403 (SignatureDoesNotMatch: got …)" in ended.log
        assert [signature for signature in echoed if signature in ended.stdout + ended.summary] == []


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


class TestRedirects:
    def test_a_redirect_within_the_storage_is_followed_and_resumed(
        self, action: Action, make_platform: Callable[..., Simulator], tmp_path: Path
    ) -> None:
        platform = make_platform(asset_bytes=SIZE, redirect_downloads=True)
        content = original(platform, tmp_path)
        platform.script("download", None, Fault(cut="in_body", cut_after_bytes=500_000))

        assert_whole(fetch(action, platform), action, content)
        assert ranges(platform)[-2:] == ["bytes=500000-", "bytes=500000-"]

    @pytest.mark.parametrize(
        ("location", "shown"),
        [
            ("http://storage.example.com/bundle?secret=1", "storage.example.com"),
            ("ftp://storage.example.com/bundle", "storage.example.com"),
            ("file:///etc/passwd", "an address that cannot be read"),
            ("https://[broken/", "an address that cannot be read"),
            ("", "an address that cannot be read"),
        ],
    )
    def test_an_unsafe_redirect_fails_the_run(self, action: Action, platform: Simulator, location: str, shown: str) -> None:
        platform.script_forever("download", Fault(status=302, headers={"Location": location}))

        ended = fetch(action, platform)

        assert_failed(ended, action, f"the storage redirects to {shown} (302), which is not an https address")
        assert len(downloads(platform)) == 1

    def test_a_redirect_loop_fails_the_run(self, action: Action, platform: Simulator) -> None:
        platform.script_forever("download", Fault(status=307, headers={"Location": "/again"}))

        ended = fetch(action, platform)

        assert_failed(ended, action, "redirects more than 5 times")
        assert len(downloads(platform)) == 6


class TestPermanentErrors:
    @pytest.mark.parametrize("status", [405, 406, 412, 451])
    def test_a_permanent_error_is_not_retried(self, action: Action, platform: Simulator, status: int) -> None:
        platform.script_forever("download", Fault(status=status, body="no"))

        ended = fetch(action, platform)

        assert_failed(ended, action, f"the storage returned {status}")
        assert len(downloads(platform)) == 1

    def test_an_untrusted_certificate_of_the_storage_names_ca_bundle(self, action: Action, platform: Simulator) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        with RawServer(lambda _connection: None, tls=context) as storage:
            platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle"})
            ended = fetch(action, platform)

        assert_failed(ended, action, "the certificate of the storage at 127.0.0.1", "`ca-bundle`")

    def test_an_authority_in_ca_bundle_is_trusted(self, action: Action, make_platform: Callable[..., Simulator]) -> None:
        platform = make_platform(tls=True)
        assert platform.ca_path is not None
        (action.workspace / "ca.pem").write_bytes(platform.ca_path.read_bytes())

        ended = fetch(action, platform, ca_bundle="ca.pem")

        assert (ended.exit_code, platform.storage_url.startswith("https://")) == (0, True)
        assert (action.workspace / "bundle").exists()

    def test_an_unreachable_host_names_the_runners_network_as_the_cause(self, action: Action, platform: Simulator) -> None:
        with refusing_port() as (host, port):
            platform.override("make_bundle", {"bundleUrl": f"http://{host}:{port}/bundle"})
            ended = fetch(action, platform, outage_tolerance="1ms")

        assert_failed(ended, action, "refused the connection", "Allow the runner to reach the storage's host")


class TestDisk:
    def test_a_disk_too_small_for_the_content_length_fails_the_run(self, action: Action, platform: Simulator) -> None:
        def answer(connection: socket.socket) -> None:
            read_request(connection)
            connection.sendall(HEAD + b"Content-Length: 1000000000000000\r\n\r\n" + GZIP.ljust(1000, b"x"))

        with RawServer(answer) as storage:
            platform.override("make_bundle", {"bundleUrl": f"{storage.base_url}/bundle"})
            ended = fetch(action, platform)

        assert_failed(ended, action, "does not fit on the runner's disk")

    def test_a_disk_that_is_full_midway_leaves_nothing(self, action: Action, platform: Simulator, tmp_path: Path) -> None:
        action.python = shell_python(tmp_path, 'ulimit -f 1000 && exec "$python" "$@"')

        ended = fetch(action, platform)

        assert_failed(ended, action, "the bundle cannot be saved", "File too large", "The runner's disk is full or too small.")


def test_progress_shows_bytes_percent_and_rate(action: Action, make_platform: Callable[..., Simulator]) -> None:
    platform = make_platform()
    platform.script("download", Fault(drip_seconds=0.005))
    action.set_constants(report__job_log__LINE_SECONDS=0.2)

    ended = fetch(action, platform)

    lines = [line.split() for line in ended.log.splitlines() if line.startswith("  downloading")]
    assert len(lines) > 1
    assert {(line[2], line[5], len(line)) for line in lines if line[4] == "bytes"} <= {("%", "of", 11)}


def test_every_new_link_is_masked_too(action: Action, platform: Simulator) -> None:
    platform.script("download", Fault(status=403, body=EXPIRED))

    ended = fetch(action, platform, mask_bundle_url="true")

    masks = [command.value for command in ended.commands if command.name == "add-mask"]
    assert len(masks) == 2
    assert masks[-1] == ended.outputs["bundleUrl"] == json.loads(ended.outputs["results"])[0]["bundleUrl"]
    assert ended.log.count("GitHub drops job outputs that contain it") == 1
    assert "`job-id: export-finished`" in ended.log
